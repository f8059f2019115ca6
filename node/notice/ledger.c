/* ledger - see ledger.h. */
#include "node/notice/ledger.h"

#include <string.h>

void ledger_init(struct ledger *ledger)
{
    memset(ledger, 0, sizeof *ledger);
    ledger->next_number = 1;
}

static bool ledger_is_of(const struct ledger_entry *entry, const char *source, unsigned topic)
{
    return entry->topic == topic && strcmp(entry->source, source) == 0;
}

static struct ledger_entry *ledger_find(struct ledger *ledger, const char *source, unsigned topic,
                                        const char *key)
{
    for (size_t i = 0; i < ledger->count; i++)
        if (ledger_is_of(&ledger->entries[i], source, topic) &&
            strcmp(ledger->entries[i].item.key, key) == 0)
            return &ledger->entries[i];
    return NULL;
}

static void ledger_drop(struct ledger *ledger, struct ledger_entry *entry)
{
    *entry = ledger->entries[--ledger->count];
}

static void ledger_put(struct ledger_out *out, const struct ledger_entry *entry, uint64_t number,
                       bool withdrawn)
{
    struct notice_record *record;

    if (number == 0 || out->count == LEDGER_OUT_MAX)
        return;
    record = &out->records[out->count++];
    memset(record, 0, sizeof *record);
    strncpy(record->source, entry->source, SOURCE_NAME_MAX);
    record->number = number;
    record->withdrawn = withdrawn;
    record->item = entry->item;
}

static bool ledger_sooner(int64_t a, int64_t b) /* -1 is unknown, which is no time */
{
    return a >= 0 && (b < 0 || a < b);
}

/* Where room is scarce: an unknown time may be now. */
static bool ledger_more_urgent(int64_t a, int64_t b)
{
    return a < 0 ? b >= 0 : b >= 0 && a < b;
}

/* Room at the member: what stands already keeps its place; beyond it only a sooner end is told. */
static bool ledger_has_room(const struct ledger *ledger, const struct ledger_entry *entry)
{
    bool ends = wire_notice_ends(entry->item.kind), soonest = true;
    size_t told = 0;

    for (size_t i = 0; i < ledger->count; i++) {
        const struct ledger_entry *other = &ledger->entries[i];

        if (other->last == 0 || wire_notice_ends(other->item.kind) != ends)
            continue;
        told++;
        if (!ledger_more_urgent(entry->item.deadline_boot_ms, other->item.deadline_boot_ms))
            soonest = false;
    }
    if (!ends)
        return told < LEDGER_REPORTS_MAX;
    return told < LEDGER_TOLD_MAX || (told == LEDGER_TOLD_MAX && soonest);
}

static void ledger_tell(struct ledger *ledger, struct ledger_entry *entry, int64_t now_boot_ms,
                        struct ledger_out *out)
{
    uint64_t former = entry->last;

    if (entry->item.deadline_boot_ms > now_boot_ms + LEDGER_HORIZON_MS)
        return;
    if (former == 0 && !ledger_has_room(ledger, entry))
        return;
    entry->last = ledger->next_number++;
    ledger_put(out, entry, entry->last, false);
    if (entry->first == 0)
        entry->first = entry->last;
    else if (former != entry->first)
        ledger_put(out, entry, former, true); /* the new one says all that it said */
}

static struct ledger_entry *ledger_make(struct ledger *ledger, const char *source, unsigned topic,
                                        const struct notice_item *item)
{
    struct ledger_entry *entry;

    for (size_t i = 0; ledger->count == LEDGER_MAX && i < LEDGER_MAX; i++)
        if (ledger->entries[i].last == 0 || !ledger->entries[i].present)
            ledger_drop(ledger, &ledger->entries[i]);
    if (ledger->count == LEDGER_MAX)
        return NULL;
    entry = &ledger->entries[ledger->count++];
    *entry = (struct ledger_entry){.source = source, .topic = topic, .item = *item};
    return entry;
}

static bool ledger_near(int64_t a, int64_t b)
{
    return a - b < LEDGER_STEP_MS && b - a < LEDGER_STEP_MS;
}

/* Is this what was said when it was cancelled? A time that is always as far ahead is the same, too.
 */
static bool ledger_is_same(const struct ledger_entry *entry, const struct notice_item *item,
                           int64_t now_boot_ms)
{
    int64_t was = entry->said.deadline_boot_ms, is = item->deadline_boot_ms;

    if (item->kind != entry->said.kind || strcmp(item->text, entry->said.text) != 0)
        return false;
    if (was < 0 || is < 0)
        return was < 0 && is < 0;
    return ledger_near(is, was) || ledger_near(is - now_boot_ms, was - entry->said_boot_ms);
}

static void ledger_remember(struct ledger_entry *entry, const struct notice_item *item,
                            int64_t now_boot_ms)
{
    entry->said = *item;
    entry->said_boot_ms = now_boot_ms;
}

/* A report has become an end. */
static void ledger_become_end(struct ledger *ledger, struct ledger_entry *entry,
                              const struct notice_item *item, int64_t now_boot_ms,
                              struct ledger_out *out)
{
    const struct ledger_entry report = *entry;

    entry->item = *item;
    entry->first = entry->last = 0;
    ledger_tell(ledger, entry, now_boot_ms, out);
    ledger_put(out, &report, report.first, true);
    if (report.last != report.first)
        ledger_put(out, &report, report.last, true);
}

static void ledger_say_one(struct ledger *ledger, const char *source, unsigned topic,
                           const struct notice_item *item, int64_t now_boot_ms,
                           struct ledger_out *out)
{
    struct ledger_entry *entry = ledger_find(ledger, source, topic, item->key);
    int64_t known;

    if (entry != NULL && entry->hushed && !ledger_is_same(entry, item, now_boot_ms)) {
        ledger_drop(ledger, entry);
        entry = NULL;
    }
    if (entry == NULL) {
        entry = ledger_make(ledger, source, topic, item);
        if (entry == NULL)
            return; /* LEDGER_MAX are told and stand */
        entry->present = true;
        ledger_remember(entry, item, now_boot_ms);
        ledger_tell(ledger, entry, now_boot_ms, out);
        return;
    }
    entry->present = true;
    if (entry->hushed)
        return;
    ledger_remember(entry, item, now_boot_ms);
    if (wire_notice_ends(entry->item.kind) != wire_notice_ends(item->kind)) {
        if (wire_notice_ends(item->kind))
            ledger_become_end(ledger, entry, item, now_boot_ms, out);
        return;
    }
    entry->item.cancellable = item->cancellable; /* what has begun is not taken back by silence */
    known = entry->item.deadline_boot_ms;
    if (!ledger_sooner(item->deadline_boot_ms, known < 0 ? known : known - LEDGER_STEP_MS)) {
        if (entry->last == 0)
            ledger_tell(ledger, entry, now_boot_ms,
                        out); /* it was far away, or there was no room */
        return;
    }
    entry->item = *item;
    ledger_tell(ledger, entry, now_boot_ms, out);
}

void ledger_say(struct ledger *ledger, const char *source, unsigned topic,
                const struct notice_set *set, int64_t now_boot_ms, struct ledger_out *ret_out)
{
    ret_out->count = 0;
    for (size_t i = 0; i < ledger->count; i++)
        if (ledger_is_of(&ledger->entries[i], source, topic))
            ledger->entries[i].present = false;
    for (size_t i = 0; i < set->count; i++)
        ledger_say_one(ledger, source, topic, &set->items[i], now_boot_ms, ret_out);
    for (size_t i = ledger->count; i-- > 0;) {
        struct ledger_entry *entry = &ledger->entries[i];

        if (!ledger_is_of(entry, source, topic) || entry->present ||
            (!entry->item.cancellable && !entry->hushed))
            continue;
        ledger_put(ret_out, entry, entry->first, true);
        if (entry->last != entry->first)
            ledger_put(ret_out, entry, entry->last, true);
        ledger_drop(ledger, entry);
    }
}

void ledger_tick(struct ledger *ledger, int64_t now_boot_ms, struct ledger_out *ret_out)
{
    ret_out->count = 0;
    for (size_t i = 0; i < ledger->count; i++)
        if (ledger->entries[i].last == 0 && ledger->entries[i].present &&
            !ledger->entries[i].hushed)
            ledger_tell(ledger, &ledger->entries[i], now_boot_ms, ret_out);
}

/* It tells of what happened, not of how things stand. */
static bool ledger_happens(const struct ledger_entry *entry)
{
    return strcmp(entry->source, "signal") == 0 || strcmp(entry->source, "callback") == 0;
}

static void ledger_forget_item(struct ledger *ledger, struct ledger_entry *entry, uint64_t number)
{
    if (entry->first != entry->last) { /* the other one stands */
        if (entry->last == number)
            entry->last = entry->first;
        else
            entry->first = entry->last;
    } else if (ledger_happens(entry)) {
        ledger_drop(ledger, entry);
    } else {
        entry->first = entry->last = 0;
        entry->hushed = true;
    }
}

void ledger_forget(struct ledger *ledger, uint64_t number)
{
    for (size_t i = 0; i < ledger->count && number != 0; i++)
        if (ledger->entries[i].first == number || ledger->entries[i].last == number) {
            ledger_forget_item(ledger, &ledger->entries[i], number);
            return;
        }
}
