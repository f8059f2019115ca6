/* status - the sentences of every status code, and filling a struct muster_error.
 * Never: allocation, I/O, locale. */
#include "schema/status.h"

#include "schema/error.h"

#undef error_set /* as the analyzer sees them */
#undef error_set_code

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    const char *sentence;
    const char *advice;
} texts[MUSTER_STATUS_COUNT] = {
#define X(name, value, sentence, advice) [value] = {#name, sentence, advice},
#include "schema/status.def"
#undef X
};

const char *muster_status_name(enum muster_status status)
{
    return (unsigned)status < MUSTER_STATUS_COUNT ? texts[status].name : "unknown status";
}

const char *muster_status_sentence(enum muster_status status)
{
    return (unsigned)status < MUSTER_STATUS_COUNT ? texts[status].sentence : "unknown status";
}

const char *muster_status_advice(enum muster_status status)
{
    return (unsigned)status < MUSTER_STATUS_COUNT ? texts[status].advice : "unknown status";
}

int muster_status_exit_code(enum muster_status status)
{
    switch (status) {
    case MUSTER_OK:
        return 0;
    case MUSTER_PREEMPTED:
        return 42;
    case MUSTER_E_ARGUMENT:
    case MUSTER_E_VERSION:
    case MUSTER_E_AUTH:
    case MUSTER_E_WORLD_SIZE:
    case MUSTER_E_RANK:
    case MUSTER_E_LAYOUT:
    case MUSTER_E_UNSUPPORTED:
    case MUSTER_E_JOB:
    case MUSTER_E_SIGNATURE:
        return 93;
    default:
        return 1;
    }
}

/* A text that was cut for its length may end inside a UTF-8 character, which no reader would take.
 */
static void status_cut_character_drop(char *text)
{
    size_t end = strlen(text), begin = end;
    unsigned char lead;
    size_t wide;

    while (begin > 0 && end - begin < 3 && ((unsigned char)text[begin - 1] & 0xc0) == 0x80)
        begin--; /* continuation bytes */
    if (begin == 0)
        return;
    lead = (unsigned char)text[begin - 1];
    wide = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
    if (wide > end - begin + 1)
        text[begin - 1] = '\0';
}

void error_clean(char *text)
{
    for (unsigned char *at = (unsigned char *)text; *at != '\0'; at++) {
        bool wide = at[0] == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0; /* U+0080 to U+009f */

        if (wide)
            at[0] = at[1] = '?', at++;
        else if (*at < ' ' || *at == 0x7f)
            *at = *at == '\n' || *at == '\t' ? ' ' : '?';
    }
}

static enum muster_status status_fill(struct muster_error *err, enum muster_status status, int code,
                                      const char *format, va_list args)
    __attribute__((format(printf, 4, 0)));

static enum muster_status status_fill(struct muster_error *err, enum muster_status status, int code,
                                      const char *format, va_list args)
{
    if (err == NULL)
        return status;
    err->status = status;
    err->rank = -1;
    err->code = code;
    err->step = -1;
    err->task = 0;
    if (vsnprintf(err->text, sizeof err->text, format, args) >= (int)sizeof err->text)
        status_cut_character_drop(err->text);
    error_clean(err->text);
    return status;
}

enum muster_status error_set(struct muster_error *err, enum muster_status status,
                             const char *format, ...)
{
    va_list args;

    va_start(args, format);
    status_fill(err, status, 0, format, args);
    va_end(args);
    return status;
}

enum muster_status error_set_code(struct muster_error *err, enum muster_status status, int code,
                                  const char *format, ...)
{
    va_list args;

    va_start(args, format);
    status_fill(err, status, code, format, args);
    va_end(args);
    return status;
}

const char *muster_version(void)
{
    return MUSTER_VERSION;
}

bool error_names_rank(const char *text, int64_t rank)
{
    char name[40];
    size_t length = (size_t)snprintf(name, sizeof name, "rank %" PRId64, rank);

    return strncmp(text, name, length) == 0 && (text[length] < '0' || text[length] > '9');
}
