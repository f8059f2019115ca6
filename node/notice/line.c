/* line - see line.h. */
#include "node/notice/line.h"

#include "node/notice/times.h"

#include <stdio.h>
#include <string.h>

#define LEAD_MAX_MS (365 * 86400000LL)
#define SECONDS_DIGITS_MAX 12
#define WORD_MAX 63

static bool seconds(const char *word, int64_t *ret_s)
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

static bool is_time(const char *word, int64_t written_unix_ms, int64_t *ret_unix_ms)
{
    int64_t value;

    if (word[0] == '+' && seconds(word + 1, &value)) {
        *ret_unix_ms = written_unix_ms + value * 1000;
        return true;
    }
    if (strlen(word) >= 9 && seconds(word, &value)) { /* less is no date of these decades */
        *ret_unix_ms = value * 1000;
        return true;
    }
    return times_rfc3339(word, ret_unix_ms);
}

static bool is_kind(const char *word, enum wire_notice_kind *ret_kind)
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

void line_parse(const char *bytes, size_t size, const struct notice_now *now,
                int64_t written_unix_ms, struct notice_item *ret_item)
{
    const char *end = memchr(bytes, '\n', size);
    size_t left = end != NULL ? (size_t)(end - bytes) : size;
    char word[WORD_MAX + 1];
    int64_t unix_ms;

    memset(ret_item, 0, sizeof *ret_item);
    ret_item->kind = NOTICE_TERMINATE;
    ret_item->deadline_boot_ms = -1;
    ret_item->cancellable = true;
    notice_text(ret_item->text, bytes, left);
    for (const char *at = ret_item->text; *at != '\0';) {
        size_t length = strcspn(at, " ");

        snprintf(word, sizeof word, "%.*s", (int)(length < WORD_MAX ? length : WORD_MAX), at);
        if (is_time(word, written_unix_ms, &unix_ms))
            ret_item->deadline_boot_ms = times_deadline(now, unix_ms, LEAD_MAX_MS);
        else if (strcmp(word, "final") == 0)
            ret_item->cancellable = false;
        else
            (void)is_kind(word, &ret_item->kind);
        at += length;
        at += strspn(at, " ");
    }
}
