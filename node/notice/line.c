/* line - see line.h. */
#include "node/notice/line.h"

#include "node/notice/base/times.h"

#include <stdio.h>
#include <string.h>

#define LEAD_MAX_MS (365 * 86400000LL)
#define SECONDS_DIGITS_MAX 12

static bool line_seconds(const char *word, int64_t *ret_s)
{
    size_t digits = strspn(word, "0123456789");
    int64_t value = 0;

    if (digits == 0 || digits > SECONDS_DIGITS_MAX)
        return false;
    if (word[digits] != '\0' && strcmp(word + digits, "s") != 0)
        return false;
    for (size_t i = 0; i < digits; i++)
        value = value * 10 + (word[i] - '0');
    *ret_s = value;
    return true;
}

static bool line_is_time(const char *word, int64_t written_unix_ms, int64_t *ret_unix_ms)
{
    int64_t value;

    if (word[0] == '+' && line_seconds(word + 1, &value)) {
        *ret_unix_ms = written_unix_ms + value * 1000;
        return true;
    }
    if (strlen(word) >= 9 && line_seconds(word, &value)) { /* less is no date of these decades */
        *ret_unix_ms = value * 1000;
        return true;
    }
    return times_rfc3339(word, ret_unix_ms);
}

static bool line_is_kind(const char *word, enum wire_notice_kind *ret_kind)
{
    static const struct {
        const char *word;
        enum wire_notice_kind kind;
    } kinds[] = {
        {"preempt", NOTICE_PREEMPT}, {"terminate", NOTICE_TERMINATE},   {"stop", NOTICE_STOP},
        {"reboot", NOTICE_REBOOT},   {"time_limit", NOTICE_TIME_LIMIT}, {"user", NOTICE_USER},
        {"freeze", NOTICE_FREEZE},   {"migrate", NOTICE_MIGRATE}};

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].word, word) == 0) {
            *ret_kind = kinds[i].kind;
            return true;
        }
    return false;
}

/* A number that is meant for a moment, but is none of the three forms. */
static bool line_looks_like_time(const char *word, bool alone)
{
    size_t digits = strspn(word, "0123456789");
    const char *dash = strchr(word, '-');

    if (word[0] == '+' || (word[0] == '-' && strspn(word + 1, "0123456789") > 0))
        return true;
    if (digits == 0)
        return false;
    return digits >= 9 || (alone && word[digits + strspn(word + digits, "smh")] == '\0') ||
           strchr(word, ':') != NULL || (dash != NULL && strchr(dash + 1, '-') != NULL);
}

static bool line_is_text(const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        unsigned char byte = (unsigned char)bytes[i];

        if ((byte < ' ' && strchr("\n\t\r", byte) == NULL) || byte == 0 || byte == 0x7f ||
            byte == 0xff || byte == 0xfe)
            return false;
    }
    return true;
}

enum line_sense line_parse(const char *bytes, size_t size, const struct notice_now *now,
                           int64_t written_unix_ms, struct notice_item *ret_item, char *ret_word)
{
    const char *end = memchr(bytes, '\n', size);
    size_t left = end != NULL ? (size_t)(end - bytes) : size;
    enum line_sense sense = line_is_text(bytes, left) ? LINE_WORDS_ONLY : LINE_NO_TEXT;
    char word[LINE_WORD_MAX + 1], odd[LINE_WORD_MAX + 1] = "";
    int64_t unix_ms;

    memset(ret_item, 0, sizeof *ret_item);
    ret_item->kind = NOTICE_TERMINATE;
    ret_item->deadline_boot_ms = -1;
    ret_item->cancellable = true;
    notice_text(ret_item->text, bytes, left);
    for (const char *at = ret_item->text; *at != '\0';) {
        size_t length = strcspn(at, " ");
        bool alone = at == ret_item->text && at[length] == '\0', known = true;

        snprintf(word, sizeof word, "%.*s", (int)(length < LINE_WORD_MAX ? length : LINE_WORD_MAX),
                 at);
        if (line_is_time(word, written_unix_ms, &unix_ms))
            ret_item->deadline_boot_ms = times_deadline(now, unix_ms, LEAD_MAX_MS);
        else if (strcmp(word, "final") == 0)
            ret_item->cancellable = false;
        else
            known = line_is_kind(word, &ret_item->kind);
        if (known && sense == LINE_WORDS_ONLY)
            sense = LINE_UNDERSTOOD;
        if (!known && sense < LINE_NO_TIME && line_looks_like_time(word, alone)) {
            sense = LINE_NO_TIME;
            memcpy(odd, word, sizeof odd);
        }
        at += length;
        at += strspn(at, " ");
    }
    if (ret_item->text[0] == '\0' && sense == LINE_WORDS_ONLY)
        sense = LINE_UNDERSTOOD;
    if (sense == LINE_WORDS_ONLY)
        snprintf(odd, sizeof odd, "%.*s", LINE_WORD_MAX, ret_item->text);
    if (ret_word != NULL)
        memcpy(ret_word, odd, sizeof odd);
    return sense;
}

void line_describe(enum line_sense sense, const char *where, const char *word,
                   char ret_text[SOURCE_TEXT_MAX + 1])
{
    size_t length = strlen(where);
    const char *tail = length > 56 ? where + length - 56 : where;
    const char *colon = where[0] != '\0' ? ": " : "";

    ret_text[0] = '\0';
    if (sense == LINE_NO_TIME)
        snprintf(ret_text, SOURCE_TEXT_MAX + 1,
                 "%s%s\"%.24s\" is no +SECONDS, Unix time or 2026-11-21T12:00:00Z: a notice "
                 "without a time",
                 tail, colon, word);
    else if (sense == LINE_NO_TEXT)
        snprintf(
            ret_text, SOURCE_TEXT_MAX + 1,
            "%s%sbytes that are no text, expected [KIND] [TIME] [final]: a notice nevertheless",
            tail, colon);
    else if (sense == LINE_WORDS_ONLY)
        snprintf(ret_text, SOURCE_TEXT_MAX + 1,
                 "%s%s\"%.24s\" names no kind and no time: a notice without a time", tail, colon,
                 word);
}
