/* node_events - see node_events.h. */
#include "client/node/node_events.h"

#include "client/node/node_private.h"
#include "node/clock.h"
#include "schema/error.h"
#include "schema/sized.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TIMEOUT_MAX_MS (INT64_C(1000) * 86400 * 365)
#define DEADLINE_MOVED_MS 1000 /* less is the clocks' */

struct entry {
    struct entry *next;
    size_t size;               /* of event, without the bytes behind its text */
    struct muster_event event; /* cut off behind the text */
};
_Static_assert(sizeof(struct muster_event) - offsetof(struct muster_event, text) -
                       MUSTER_ERROR_TEXT_MAX <
                   _Alignof(struct muster_event),
               "text is the last member, or an entry is not cut off behind it any more");

struct muster_events {
    unsigned kinds; /* bits, what is kept */
    pid_t pid;      /* that made it */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct entry *first, **last;
    unsigned holders; /* the program, and nodes */
    bool ended;
    size_t count[MUSTER_EVENT_KIND_COUNT];
    uint64_t lost[MUSTER_EVENT_KIND_COUNT]; /* not told yet */
};

/* --- the queue -------------------------------------------------------------------------------- */

static void node_events_init_changed(struct muster_events *events)
{
    pthread_condattr_t attributes;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&events->changed, &attributes);
    pthread_condattr_destroy(&attributes);
}

enum muster_status muster_events_create(unsigned kinds, muster_events_t **ret_events,
                                        struct muster_error *ret_error)
{
    struct muster_events *events;

    if (ret_events == NULL)
        return error_set(ret_error, MUSTER_E_ARGUMENT,
                         "muster_events_create: ret_events is NULL; give a place for the queue");
    events = calloc(1, sizeof *events);
    if (events == NULL)
        return error_set(ret_error, MUSTER_E_NOMEM, "no memory for a queue of events; free some");
    events->kinds = kinds;
    events->pid = getpid();
    events->last = &events->first;
    events->holders = 1;
    pthread_mutex_init(&events->mutex, NULL);
    node_events_init_changed(events);
    *ret_events = events;
    return MUSTER_OK;
}

/* Its locks are the parent's. */
static bool events_are_gone(const struct muster_events *events)
{
    return events == NULL || events->pid != getpid();
}

void events_hold(struct muster_events *events)
{
    if (events_are_gone(events))
        return;
    pthread_mutex_lock(&events->mutex);
    events->holders++;
    pthread_mutex_unlock(&events->mutex);
}

/* Mutex held. */
static struct entry *events_unlink(struct muster_events *events, struct entry **place)
{
    struct entry *entry = *place;

    *place = entry->next;
    if (entry->next == NULL)
        events->last = place;
    events->count[entry->event.kind]--;
    return entry;
}

void events_drop(struct muster_events *events)
{
    bool last;

    if (events_are_gone(events))
        return;
    pthread_mutex_lock(&events->mutex);
    last = --events->holders == 0;
    pthread_mutex_unlock(&events->mutex);
    if (!last)
        return;
    while (events->first != NULL)
        free(events_unlink(events, &events->first));
    pthread_cond_destroy(&events->changed);
    pthread_mutex_destroy(&events->mutex);
    free(events);
}

void muster_events_destroy(muster_events_t **events)
{
    if (events == NULL)
        return;
    events_drop(*events);
    *events = NULL;
}

void muster_events_end(muster_events_t *events)
{
    if (events_are_gone(events))
        return;
    pthread_mutex_lock(&events->mutex);
    events->ended = true;
    pthread_cond_broadcast(&events->changed);
    pthread_mutex_unlock(&events->mutex);
}

bool events_keeps(const struct muster_events *events, enum muster_event_kind kind)
{
    return events != NULL && (events->kinds & MUSTER_EVENTS_OF(kind)) != 0;
}

/* Mutex held. The oldest one of these kinds, or NULL. */
static struct entry *events_take(struct muster_events *events, unsigned kinds)
{
    struct entry **place = &events->first;

    while (*place != NULL && (MUSTER_EVENTS_OF((*place)->event.kind) & kinds) == 0)
        place = &(*place)->next;
    return *place != NULL ? events_unlink(events, place) : NULL;
}

void events_put(struct muster_events *events, const struct muster_event *event)
{
    const size_t size = offsetof(struct muster_event, text) + strlen(event->text) + 1;
    struct entry *entry, *oldest = NULL;

    if (events_are_gone(events) || !events_keeps(events, event->kind))
        return;
    entry = malloc(offsetof(struct entry, event) + size);
    pthread_mutex_lock(&events->mutex);
    if (entry == NULL) {
        events->lost[event->kind]++;
    } else {
        entry->next = NULL;
        entry->size = size;
        memcpy((char *)entry + offsetof(struct entry, event), event, size);
        *events->last = entry;
        events->last = &entry->next;
        if (++events->count[event->kind] > EVENTS_MAX) {
            oldest = events_take(events, MUSTER_EVENTS_OF(event->kind));
            events->lost[event->kind]++;
        }
    }
    pthread_cond_broadcast(&events->changed);
    pthread_mutex_unlock(&events->mutex);
    free(oldest);
}

/* Mutex held. */
static uint64_t events_take_lost(struct muster_events *events, unsigned kinds)
{
    uint64_t lost = 0;

    for (unsigned kind = 0; kind < MUSTER_EVENT_KIND_COUNT; kind++)
        if ((MUSTER_EVENTS_OF(kind) & kinds) != 0) {
            lost += events->lost[kind];
            events->lost[kind] = 0;
        }
    return lost;
}

static struct timespec node_events_after_ms(int64_t timeout_ms)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    if (timeout_ms > TIMEOUT_MAX_MS)
        timeout_ms = TIMEOUT_MAX_MS;
    until.tv_nsec += timeout_ms % 1000 * 1000000L;
    until.tv_sec += timeout_ms / 1000 + until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    return until;
}

enum muster_status muster_events_next(muster_events_t *events, unsigned kinds, int64_t timeout_ms,
                                      struct muster_event *ret_event, size_t struct_size,
                                      struct muster_error *ret_error)
{
    struct muster_event event = {.kind = MUSTER_EVENT_NONE};
    struct entry *entry;
    struct timespec until;
    bool ended;
    int code = 0;

    if (events == NULL || ret_event == NULL || timeout_ms < 0)
        return error_set(ret_error, MUSTER_E_ARGUMENT, "muster_events_next: %s",
                         events == NULL      ? "events is NULL; muster_events_create makes one"
                         : ret_event == NULL ? "ret_event is NULL; give a place for the event"
                                             : "timeout_ms is negative; give 0 or more");
    if (events_are_gone(events))
        return error_set(ret_error, MUSTER_E_FORKED,
                         "muster_events_next: the queue is the parent's; make one in this process");
    until = node_events_after_ms(timeout_ms);
    pthread_mutex_lock(&events->mutex);
    while ((entry = events_take(events, kinds)) == NULL && !events->ended && code == 0)
        code = pthread_cond_timedwait(&events->changed, &events->mutex, &until);
    ended = events->ended;
    if (entry != NULL)
        event.lost = events_take_lost(events, kinds);
    pthread_mutex_unlock(&events->mutex);
    if (entry == NULL)
        return ended ? error_set(ret_error, MUSTER_E_CLOSED, "no event is to come: the queue ended")
                     : error_set(ret_error, MUSTER_E_TIMEOUT, "no event came within %lld ms",
                                 (long long)timeout_ms);
    uint64_t lost = event.lost;
    memcpy(&event, (const char *)entry + offsetof(struct entry, event), entry->size);
    event.lost = lost;
    free(entry);
    sized_give(ret_event, struct_size, &event, sizeof event);
    return MUSTER_OK;
}

/* --- what a node tells ------------------------------------------------------------------------ */

static const struct muster_event empty = {.rank = -1, .step = -1, .left_ms = -1};

void events_put_line(struct muster_events *events, int level, const char *text)
{
    struct muster_event event = empty;

    event.kind = MUSTER_EVENT_LOG;
    event.level = level;
    snprintf(event.text, sizeof event.text, "%s", text);
    events_put(events, &event);
}

void node_events_error(const struct muster_error *error, void *arg)
{
    const struct muster_node *node = arg;
    const struct muster_error shown = node_shown_error(node, error);
    struct muster_event event = empty;

    event.kind = MUSTER_EVENT_ERROR;
    event.status = shown.status;
    event.rank = shown.rank;
    event.code = shown.code;
    event.step = shown.step;
    memcpy(event.text, shown.text, sizeof event.text);
    events_put(node->options.events, &event);
    if (node->options.on_error != NULL)
        node->options.on_error(&shown, node->options.arg);
}

static bool node_events_is_news(const struct member_announced *now,
                                const struct member_announced *before)
{
    int64_t moved = now->deadline_boot_ms - before->deadline_boot_ms;

    return now->kind != before->kind ||
           (now->kind != NOTICE_NONE &&
            (now->rank != before->rank || moved > DEADLINE_MOVED_MS || moved < -DEADLINE_MOVED_MS));
}

static void node_events_tell_announced(struct muster_node *node, const struct member_announced *now,
                                       struct member_announced *before)
{
    struct muster_event event = empty;
    int64_t left = now->deadline_boot_ms - clock_ms(CLOCK_BOOTTIME);

    if (!node_events_is_news(now, before))
        return;
    *before = *now;
    event.kind = MUSTER_EVENT_NOTICE;
    if (now->kind != NOTICE_NONE) {
        event.notice = now->kind <= MUSTER_NOTICE_USER ? (enum muster_notice_kind)now->kind
                                                       : MUSTER_NOTICE_USER; /* of a newer muster */
        event.rank = (int)now->rank;
        event.left_ms = now->deadline_boot_ms == 0 ? -1 : left > 0 ? left : 0;
    }
    events_put(node->options.events, &event);
}

void node_events_announced(enum wire_notice_kind kind, int64_t deadline_boot_ms, void *arg)
{
    struct muster_node *node = arg;

    const struct member_announced now = {
        .kind = kind, .rank = node->rank, .deadline_boot_ms = deadline_boot_ms};

    node_events_tell_announced(node, &now, &node->seen.alone);
}

void node_events_committed(int64_t done, void *arg)
{
    const struct muster_node *node = arg;
    struct muster_event event = empty;

    event.kind = MUSTER_EVENT_COMMIT;
    event.step = done + node->wish.names.offset; /* as its user counts */
    events_put(node->options.events, &event);
}

static bool node_events_was_seen(const struct node_seen *seen, int64_t done)
{
    for (size_t i = 0; i < MEMBER_COMMITS_MAX; i++)
        if (seen->committed[i] == done)
            return true;
    return false;
}

void node_events_view(const struct member_view *view, void *arg)
{
    struct muster_node *node = arg;

    node_events_tell_announced(node, &view->announced, &node->seen.announced);
    for (size_t i = 0; i < MEMBER_COMMITS_MAX; i++)
        if (!node_events_was_seen(&node->seen, view->committed[i]))
            node_events_committed(view->committed[i], node);
    memcpy(node->seen.committed, view->committed, sizeof view->committed);
}
