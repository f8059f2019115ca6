/* source - see source.h. Pure. */
#include "node/notice/base/source.h"

#include <string.h>

const char *source_state_name(enum source_state state)
{
    static const char *const names[SOURCE_STATE_COUNT] = {
        [SOURCE_OFF] = "off",           [SOURCE_PROBING] = "probing", [SOURCE_HEALTHY] = "healthy",
        [SOURCE_DEGRADED] = "degraded", [SOURCE_ABSENT] = "absent",
    };

    return state < SOURCE_STATE_COUNT ? names[state] : "unknown";
}

/* Ends before another is more urgent; what ends nothing is the least. */
static bool source_more_urgent(const struct notice_item *a, const struct notice_item *b)
{
    bool a_ends = wire_notice_ends(a->kind), b_ends = wire_notice_ends(b->kind);

    if (a_ends != b_ends)
        return a_ends;
    if ((a->deadline_boot_ms < 0) != (b->deadline_boot_ms < 0))
        return a->deadline_boot_ms < 0; /* unknown: it may be now */
    return a->deadline_boot_ms < b->deadline_boot_ms;
}

static void source_make_printable(char *text)
{
    for (; *text != '\0'; text++)
        if (*text < ' ' || *text > '~')
            *text = '?';
}

void notice_set_add(struct notice_set *set, const struct notice_item *item)
{
    struct notice_item copy = *item, *last = &set->items[0];

    source_make_printable(copy.key);
    source_make_printable(copy.text);
    for (size_t i = 0; i < set->count; i++)
        if (strcmp(set->items[i].key, copy.key) == 0) {
            if (source_more_urgent(&copy, &set->items[i]))
                set->items[i] = copy;
            return;
        }
    if (set->count < NOTICE_SET_MAX) {
        set->items[set->count++] = copy;
        return;
    }
    for (size_t i = 1; i < set->count; i++)
        if (source_more_urgent(last, &set->items[i]))
            last = &set->items[i];
    if (source_more_urgent(&copy, last))
        *last = copy;
}

void notice_text(char ret_text[NOTICE_TEXT_MAX + 1], const char *bytes, size_t size)
{
    size_t count = 0;

    for (size_t i = 0; i < size && count < NOTICE_TEXT_MAX; i++) {
        unsigned char byte = (unsigned char)bytes[i];
        bool space = byte == ' ' || byte == '\n' || byte == '\t' || byte == '\r';

        if (space && (count == 0 || ret_text[count - 1] == ' '))
            continue;
        ret_text[count++] = (char)(space ? ' ' : byte < 0x20 || byte > 0x7e ? '?' : byte);
    }
    while (count > 0 && ret_text[count - 1] == ' ')
        count--;
    ret_text[count] = '\0';
}
