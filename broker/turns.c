#include "broker/turns.h"

#include "schema/wire/wire.h"

#include <stdlib.h>
#include <string.h>

#define GROUPS 4096 /* keys: two may share one, and then share its turn */

enum lane_kind { LANE_PLAIN, LANE_QUESTIONS, LANE_KINDS };

struct kept {
    struct kept *next;
    uint64_t route;
    char key[KEY_TEXT_BYTES + 1];
    size_t size;
    uint8_t data[];
};

struct lane {
    struct kept *first, *last;
    size_t bytes;
    uint64_t pass; /* of which `work` is */
    unsigned work;
    int64_t day;      /* of which `written` is */
    uint64_t written; /* bytes of the disk */
};

struct turns {
    struct lane lanes[GROUPS][LANE_KINDS];
    uint64_t pass, dropped;
    size_t bytes;       /* kept */
    size_t group;       /* the next that is looked at */
    struct kept *taken; /* what turns_next lent */
};

/* Without decoding it: [version, type, ...]. */
static unsigned turns_type_of(const uint8_t *data, size_t size)
{
    size_t at = size > 0 && data[0] == 0xdc ? 3 : 1;

    if (size < at + 3 || data[at] > 0x7f)
        return 0;
    return data[at + 1] == 0xcc ? data[at + 2] : data[at + 1];
}

static unsigned turns_work_of(unsigned type, size_t size)
{
    switch (type) {
    case WIRE_TASKS_ADD: /* what has a list of tasks, by its size */
    case WIRE_WORK_HELLO:
    case WIRE_WORK_BEAT:
    case WIRE_WORK_DONE:
        return 1 + (unsigned)(size / TURN_LIST_BYTES);
    case WIRE_QUERY:
        return TURN_QUESTION_WORK;
    case WIRE_EVENTS_GET:
    case WIRE_MANIFEST_GET:
    case WIRE_TASKS_GET:
    case WIRE_RESULT_GET:
    case WIRE_IMPORT:
        return TURN_PAGE_WORK;
    default:
        return 1;
    }
}

static struct lane *turns_lane_of(struct turns *turns, const char *key, unsigned type)
{
    uint32_t hash = 2166136261U; /* FNV-1a */

    for (size_t i = 0; key[i] != '\0'; i++)
        hash = (hash ^ (uint8_t)key[i]) * 16777619U;
    return &turns->lanes[(hash ^ hash >> 16) % GROUPS]
                        [type == WIRE_QUERY ? LANE_QUESTIONS : LANE_PLAIN];
}

static bool turns_lane_works(struct turns *turns, struct lane *lane, unsigned work)
{
    if (lane->pass != turns->pass) {
        lane->pass = turns->pass;
        lane->work = 0;
    }
    if (lane->work >= TURN_WORK)
        return false;
    lane->work += work;
    return true;
}

struct turns *turns_create(void)
{
    return calloc(1, sizeof(struct turns));
}

void turns_destroy(struct turns **turns)
{
    if (*turns == NULL)
        return;
    for (size_t group = 0; group < GROUPS; group++)
        for (unsigned kind = 0; kind < LANE_KINDS; kind++)
            for (struct kept *next, *kept = (*turns)->lanes[group][kind].first; kept != NULL;
                 kept = next) {
                next = kept->next;
                free(kept);
            }
    free((*turns)->taken);
    free(*turns);
    *turns = NULL;
}

void turns_begin(struct turns *turns)
{
    turns->pass++;
    turns->group = 0;
}

static void turns_lane_keep(struct turns *turns, struct lane *lane, const struct bus_frame *frame)
{
    struct kept *kept = NULL;
    size_t bytes = sizeof *kept + frame->size;

    if (lane->bytes + bytes <= TURNS_HELD_BYTES && turns->bytes + bytes <= TURNS_ALL_BYTES)
        kept = malloc(bytes);
    if (kept == NULL) {
        turns->dropped++;
        return;
    }
    kept->next = NULL;
    kept->route = frame->route;
    kept->size = frame->size;
    memcpy(kept->key, frame->grant->public_key, sizeof kept->key);
    if (frame->size > 0)
        memcpy(kept->data, frame->data, frame->size);
    if (lane->first == NULL)
        lane->first = kept;
    else
        lane->last->next = kept;
    lane->last = kept;
    lane->bytes += bytes;
    turns->bytes += bytes;
}

bool turns_take(struct turns *turns, const struct bus_frame *frame)
{
    unsigned type = turns_type_of(frame->data, frame->size);
    struct lane *lane = turns_lane_of(turns, frame->grant->public_key, type);

    if (lane->first == NULL && turns_lane_works(turns, lane, turns_work_of(type, frame->size)))
        return true;
    turns_lane_keep(turns, lane, frame);
    return false;
}

static struct kept *turns_lane_pop(struct turns *turns, struct lane *lane)
{
    struct kept *kept = lane->first;

    if (kept == NULL ||
        !turns_lane_works(turns, lane,
                          turns_work_of(turns_type_of(kept->data, kept->size), kept->size)))
        return NULL;
    lane->first = kept->next;
    lane->bytes -= sizeof *kept + kept->size;
    turns->bytes -= sizeof *kept + kept->size;
    return kept;
}

bool turns_next(struct turns *turns, struct bus_frame *ret_frame, const char **ret_key)
{
    free(turns->taken);
    turns->taken = NULL;
    for (; turns->bytes > 0 && turns->group < GROUPS; turns->group++)
        for (unsigned kind = 0; kind < LANE_KINDS; kind++) {
            turns->taken = turns_lane_pop(turns, &turns->lanes[turns->group][kind]);
            if (turns->taken == NULL)
                continue;
            *ret_frame = (struct bus_frame){.route = turns->taken->route,
                                            .data = turns->taken->data,
                                            .size = turns->taken->size};
            *ret_key = turns->taken->key;
            return true;
        }
    return false;
}

bool turns_write(struct turns *turns, const char *public_key, size_t size, int64_t free_bytes,
                 int64_t now_unix_ms)
{
    struct lane *lane = turns_lane_of(turns, public_key, WIRE_HELLO);
    uint64_t bytes = TURN_ROWS * (TURN_ROW_BYTES + (uint64_t)size);

    if (lane->day != now_unix_ms / DAY_MS) {
        lane->day = now_unix_ms / DAY_MS;
        lane->written = 0;
    }
    if (lane->written + bytes > (uint64_t)(free_bytes > 0 ? free_bytes : 0))
        return false;
    lane->written += bytes;
    return true;
}

bool turns_wait(const struct turns *turns)
{
    return turns->bytes > 0;
}

uint64_t turns_dropped(const struct turns *turns)
{
    return turns->dropped;
}
