/* sim_tasks_link - the network of a world of tasks, and what stands in for client/tasks/task_link.c
 * there. */
#include "tests/sim/sim_tasks_private.h"

#include <stdlib.h>
#include <string.h>

/* --- the network ------------------------------------------------------------------------------ */

void sim_tasks_put_frame(bool up, struct task_link *link, const uint8_t *bytes, size_t size)
{
    int64_t *last = up ? &link->up_last_ms : &link->down_last_ms;
    struct frame *frame;

    if (w.core == NULL || w.frames_count == FRAMES_MAX || sim_tasks_one_in(80)) {
        w.stats->frames_lost++;
        return;
    }
    frame = &w.frames[w.frames_count++];
    *frame = (struct frame){
        .at_ms = w.now + 1 + (int64_t)sim_tasks_below(20), .up = up, .route = link->route};
    if (frame->at_ms < *last)
        frame->at_ms = *last;
    *last = frame->at_ms;
    frame->bytes = malloc(size);
    assert_non_null(frame->bytes);
    memcpy(frame->bytes, bytes, size);
    frame->size = size;
}

void sim_tasks_drop_frames(uint64_t route) /* 0: all */
{
    size_t kept = 0;

    for (size_t i = 0; i < w.frames_count; i++) {
        if (route == 0 || w.frames[i].route == route)
            free(w.frames[i].bytes);
        else
            w.frames[kept++] = w.frames[i];
    }
    w.frames_count = kept;
}

void sim_tasks_reconnect(struct task_link *link)
{
    if (link == NULL)
        return;
    sim_tasks_drop_frames(link->route);
    link->route = ++w.routes;
    link->up_last_ms = link->down_last_ms = 0;
}

/* The first that is due, in order of time; NULL: none. */
bool sim_tasks_take_frame(bool up, uint64_t route, struct frame *ret_frame)
{
    size_t best = w.frames_count;

    for (size_t i = 0; i < w.frames_count; i++)
        if (w.frames[i].up == up && w.frames[i].at_ms <= w.now &&
            (up || w.frames[i].route == route) &&
            (best == w.frames_count || w.frames[i].at_ms < w.frames[best].at_ms))
            best = i;
    if (best == w.frames_count)
        return false;
    *ret_frame = w.frames[best];
    memmove(&w.frames[best], &w.frames[best + 1], (w.frames_count - best - 1) * sizeof w.frames[0]);
    w.frames_count--;
    return true;
}

/* --- in place of client/tasks/task_link.c ----------------------------------------------------- */

int64_t task_now_ms(void)
{
    return w.now++; /* whoever waits sees time pass */
}

uint64_t task_incarnation(void)
{
    return 1000 + ++w.incarnations;
}

enum muster_status task_identity(const char *broker, const char *job,
                                 char ret_broker[BROKERS_TEXT_MAX + 1],
                                 char ret_job[JOB_NAME_MAX + 1], struct muster_error *err)
{
    (void)broker, (void)job, (void)err;
    snprintf(ret_broker, ENDPOINT_MAX + 1, "ipc:///none");
    snprintf(ret_job, JOB_NAME_MAX + 1, "train");
    return MUSTER_OK;
}

bool task_again_due(struct task_again *again, int64_t now_ms, int64_t *wait_ms)
{
    bool due = now_ms >= again->at_ms;

    if (due) {
        again->every_ms = again->every_ms == 0 ? RESEND_MIN_MS : again->every_ms * 2;
        if (again->every_ms > HEARTBEAT_MS)
            again->every_ms = HEARTBEAT_MS;
        again->at_ms = now_ms + again->every_ms;
    }
    if (again->at_ms - now_ms < *wait_ms)
        *wait_ms = again->at_ms - now_ms;
    return due;
}

void task_again_reset(struct task_again *again)
{
    *again = (struct task_again){0, 0};
}

enum muster_status task_link_open(const char *broker, const struct task_link_owner *owner,
                                  struct task_link **ret_link, struct muster_error *err)
{
    struct task_link *link = calloc(1, sizeof *link);

    (void)broker, (void)err;
    assert_non_null(link);
    link->owner = *owner;
    link->route = ++w.routes;
    *ret_link = link;
    return MUSTER_OK;
}

void task_link_wake(struct task_link *link)
{
    link->woken = true;
}

void task_link_ask(struct task_link *link)
{
    link->woken = true;
}

void task_link_push(struct task_link *link)
{
    (void)link;
}

void task_link_drive(struct task_link *link)
{
    (void)link; /* the world gives the turns */
}

uint64_t task_link_seen(struct task_link *link)
{
    (void)link;
    return 0;
}

void task_link_lead(struct task_link *link, uint64_t seen, int64_t timeout_ms)
{
    (void)link, (void)seen, (void)timeout_ms;
    sim_tasks_user_leads();
}

bool task_link_send(struct task_link *link, struct wire_msg *message)
{
    static uint8_t bytes[WIRE_FRAME_MAX];
    size_t size;

    message->up = (struct wire_up){.job = link->owner.job,
                                   .role = link->owner.role,
                                   .rank = link->owner.index,
                                   .incarnation = link->owner.incarnation};
    size = wire_encode(message, bytes, sizeof bytes);
    INSIST(size > 0, "a %s cannot be encoded", wire_type_name(message->type));
    sim_tasks_put_frame(true, link, bytes, size);
    return true;
}

void task_link_close(struct task_link **link)
{
    if (*link == NULL)
        return;
    for (size_t i = 0; i <= WORKERS; i++)
        if (w.links[i] == *link)
            w.links[i] = NULL;
    sim_tasks_drop_frames((*link)->route);
    free(*link);
    *link = NULL;
}

void sim_tasks_link_turns(struct task_link *link)
{
    static struct arena arena;
    struct frame frame;
    bool heard = false;

    if (link == NULL)
        return;
    while (sim_tasks_take_frame(false, link->route, &frame)) {
        struct wire_msg message;

        arena_reset(&arena);
        assert_int_equal(wire_decode(frame.bytes, frame.size, &arena, &message, NULL), MUSTER_OK);
        w.stats->messages[message.type]++;
        link->owner.take(link->owner.arg, &message, w.now);
        free(frame.bytes);
        heard = true;
    }
    arena_free(&arena);
    if (!heard && !link->woken && w.now < link->next_ms)
        return;
    link->woken = false;
    link->next_ms = w.now + link->owner.turn(link->owner.arg, w.now);
}
