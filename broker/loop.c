/* loop - see loop.h.
 *
 * When a batch cannot be written (disk full): it is kept with all its outputs and tried again after
 * 100 ms, doubling to 2 s. Until then the core sees only inputs that write nothing but progress,
 * and no ticks. All other messages are answered with MUSTER_E_STORAGE, and their senders send them
 * again. Messages that go out meanwhile say nothing of the unwritten batch: heads carry the last
 * committed event, events come from the file, snapshots wait. Progress of that time is dropped;
 * nodes tell it again each second. */
#include "broker/loop_internal.h"

#include "broker/announce.h"
#include "broker/base/clock.h"
#include "broker/base/failpoint.h"
#include "broker/bus_peers.h"
#include "broker/core/contract/authority.h"
#include "broker/log.h"
#include "broker/service.h"
#include "broker/turns.h"
#include "schema/error.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#define PASS_FRAMES_MAX 4096 /* then write and send what there is before reading on */
#define TICKS_LATE_MAX 4     /* passes with a full queue after which time goes on regardless */
#define WAIT_MAX_MS 500      /* an idle pass is not one that was away */
_Static_assert(WAIT_MAX_MS * 2 <= LOOP_GAP_MS,
               "silence of others is counted while nothing happens");
#define RETRY_MIN_MS 100
#define RETRY_MAX_MS 2000
#define DECODE_BYTES_MAX (1u << 20) /* a frame's strings and lists as structs */

static void loop_read_clocks(struct loop *loop)
{
    loop->now_boot_ms = clock_ms(CLOCK_BOOTTIME);
    loop->now_unix_ms = clock_ms(CLOCK_REALTIME);
}

static int64_t loop_min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* --- writing ---------------------------------------------------------------------------------- */

static void loop_block(struct loop *loop, const struct muster_error *why)
{
    if (!loop->blocked) {
        broker_log(LOG_LEVEL_ERROR,
                   "%s; until the database can be written again, nodes are answered %s", why->text,
                   muster_status_name(MUSTER_E_STORAGE));
        loop->blocked_since_ms = loop->now_boot_ms;
        loop->blocked_since_unix_ms = loop->now_unix_ms;
        loop->retry_ms = RETRY_MIN_MS;
    } else {
        loop->retry_ms = loop_min_i64(loop->retry_ms * 2, RETRY_MAX_MS);
    }
    loop->blocked = true;
    loop->blocked_by = *why;
    loop->retry_boot_ms = loop->now_boot_ms + loop->retry_ms;
}

/* Another broker may be active. Until it is known whether one is, this one acts as if it could not
 * write. */
static void loop_doubt(struct loop *loop, const struct muster_error *why)
{
    if (!loop->blocked)
        loop_block(loop, why);
    loop->retry_boot_ms = loop->now_boot_ms + RETRY_MIN_MS;
}

/* The stories of the jobs tell it, by the row that goes with the batch that waits. */
static void loop_note_blocked(struct loop *loop)
{
    int64_t ms = loop->now_boot_ms - loop->blocked_since_ms;
    char text[MUSTER_ERROR_TEXT_MAX + 96];

    snprintf(text, sizeof text,
             "for %" PRId64 ".%" PRId64 " s it could write nothing and decide nothing: %s",
             ms / 1000, ms % 1000 / 100, loop->blocked_by.text);
    store_note(loop->store, STORE_PAST_BLOCKED, loop->blocked_since_unix_ms, text);
}

static void loop_unblock(struct loop *loop)
{
    if (loop->blocked)
        broker_log(LOG_LEVEL_INFO, "the state is written again, after %" PRId64 ".%" PRId64 " s",
                   (loop->now_boot_ms - loop->blocked_since_ms) / 1000,
                   (loop->now_boot_ms - loop->blocked_since_ms) % 1000 / 100);
    loop->blocked = false;
}

/* Writes the batch, then sends it. MUSTER_OK also when it is kept for later. */
static enum muster_status loop_commit(struct loop *loop, struct muster_error *err)
{
    struct muster_error why;
    enum muster_status status;

    if (loop->blocked)
        loop_note_blocked(loop);
    failpoint_batch(FAILPOINT_COMMIT_BEFORE, &loop->batch);
    status = store_apply(loop->store, &loop->batch, loop->now_boot_ms, &why);
    if (status == MUSTER_E_STORAGE) {
        loop_block(loop, &why);
        return MUSTER_OK;
    }
    if (status != MUSTER_OK) {
        if (err != NULL)
            *err = why;
        return status;
    }
    loop_unblock(loop);
    loop->epoch_written = core_epoch(loop->core);
    failpoint_batch(FAILPOINT_COMMIT_AFTER, &loop->batch);
    status = loop_send_all(loop, err);
    bus_flush(loop->bus);
    failpoint_batch(FAILPOINT_SENT_ALL, &loop->batch);
    announce_batch(&loop->batch,
                   loop->core); /* committed, and on its way: a slow log delays nobody's save */
    actions_clear(&loop->batch);
    return status;
}

/* --- receiving -------------------------------------------------------------------------------- */

static void loop_refuse(struct loop *loop, uint64_t route, const struct wire_msg *message,
                        unsigned code, const char *text)
{
    struct wire_msg answer;

    if (message->type == WIRE_HELLO) {
        answer = loop_answer_to(loop, "", WIRE_REFUSED);
        answer.u.refused.code = code;
        answer.u.refused.text = text;
        answer.u.refused.retry = code == MUSTER_E_STORAGE;
        if (code != MUSTER_E_VERSION)
            answer.u.refused.nonce = message->u.hello.nonce;
    } else {
        answer = loop_answer_to(loop, "", WIRE_ACK);
        answer.u.ack.code = code;
        answer.u.ack.text = text;
        if (code != MUSTER_E_VERSION)
            answer.u.ack.request = message->up.request;
    }
    loop_lower_head(loop, &answer.down); /* it goes out before the batch is written */
    loop_send_message(loop, route, &answer);
}

/* A notice is a fact also while nothing can be written: nodes may show it and plan with it. */
static void loop_hint_unwritten(struct loop *loop, const struct wire_msg *message)
{
    struct wire_msg hint = loop_answer_to(loop, message->up.job, WIRE_HINT);

    loop_lower_head(loop, &hint.down);
    hint.u.hint = (struct wire_hint){.id = message->u.notice.id,
                                     .kind = message->u.notice.kind,
                                     .rank = message->u.notice.rank,
                                     .left_ms = message->u.notice.left_ms};
    loop_publish_message(loop, message->up.job, &hint);
}

/* Coordinators and workers repeat these messages each second. They are answered, so that their
 * senders know why nothing else is. */
static bool loop_is_of_tasks(enum wire_type type)
{
    return type == WIRE_QUEUE_OPEN || type == WIRE_QUEUE_BEAT || type == WIRE_WORK_HELLO;
}

static void loop_refuse_for_storage(struct loop *loop, uint64_t route,
                                    const struct wire_msg *message)
{
    loop->counters.refused++;
    if (message->type == WIRE_NOTICE)
        loop_hint_unwritten(loop, message);
    if (message->type == WIRE_HELLO || wire_is_request(message->type) ||
        loop_is_of_tasks(message->type))
        loop_refuse(loop, route, message, MUSTER_E_STORAGE, loop->blocked_by.text);
}

/* A member whose key is no longer valid says HELLO again, and is refused then. */
static void loop_refuse_key(struct loop *loop, const struct bus_frame *frame,
                            const struct wire_msg *message, const struct muster_error *why)
{
    bool member = message->up.role != ROLE_TOOL && message->type != WIRE_HELLO &&
                  !wire_is_task(message->type);

    if (key_trouble(frame->grant, loop->now_unix_ms) == NULL)
        loop->counters.denied++;
    else
        bus_refused_key(loop->bus, frame->route);
    loop_refuse(loop, frame->route, message, member ? MUSTER_E_HELLO : MUSTER_E_AUTH,
                member ? "" : why->text);
}

/* This holds for a key that is not for all jobs; a peer without a key is the broker's own user. */
static bool loop_has_room(struct loop *loop, const struct bus_frame *frame)
{
    const struct key_grant *grant = frame->grant;

    if (grant == NULL || key_covers(grant->jobs, ""))
        return true;
    if (loop->now_boot_ms - loop->disk_looked_ms >= HEARTBEAT_MS || loop->disk_looked_ms == 0) {
        loop->disk_free_bytes = store_disk(loop->store).free_bytes;
        loop->disk_looked_ms = loop->now_boot_ms;
    }
    return turns_write(loop->turns, grant->public_key, frame->size, loop->disk_free_bytes,
                       loop->now_unix_ms);
}

static void loop_refuse_share(struct loop *loop, uint64_t route, const struct wire_msg *message)
{
    loop->counters.share++;
    if (message->type == WIRE_HELLO || wire_is_request(message->type) ||
        loop_is_of_tasks(message->type))
        loop_refuse(loop, route, message, MUSTER_E_STORAGE,
                    "this key had as much written today as is free on the broker's disk: make room "
                    "there, or wait until tomorrow");
}

static void loop_load_row(void *arg, const struct record *row)
{
    struct loop *loop = arg;

    core_load(loop->core, row);
    announce_loaded(row);
}

/* A job that has left memory comes back for this message. False: it could not. */
static bool loop_wake_job(struct loop *loop, const struct wire_msg *message)
{
    struct input input = {.kind = INPUT_JOB,
                          .now_boot_ms = loop->now_boot_ms,
                          .now_unix_ms = loop->now_unix_ms,
                          .job = core_lacks(loop->core, message)};
    struct muster_error err;
    enum muster_status status;

    if (input.job == NULL)
        return true;
    status = store_load_job(loop->store, input.job, loop_load_row, loop, &err);
    if (status == MUSTER_OK)
        core_step(loop->core, &input, &loop->batch);
    else if (loop->failure == MUSTER_OK) {
        loop->failure = status;
        loop->failed = err;
    }
    return status == MUSTER_OK;
}

static void loop_take_frame(struct loop *loop, const struct bus_frame *frame)
{
    struct wire_msg message = {.type = WIRE_NONE};
    struct input input = {.kind = INPUT_MESSAGE,
                          .now_boot_ms = loop->now_boot_ms,
                          .now_unix_ms = loop->now_unix_ms,
                          .route = frame->route,
                          .message = &message,
                          .key_jobs = frame->grant != NULL ? frame->grant->jobs : NULL};
    struct muster_error err;
    enum muster_status status;

    char by[BY_MAX + 1];

    arena_reset(&loop->arena);
    status = wire_decode(frame->data, frame->size, &loop->arena, &message, &err);
    if (status == MUSTER_E_VERSION) {
        loop->counters.version++;
        loop_refuse(loop, frame->route, &message, MUSTER_E_VERSION, err.text);
    } else if (status != MUSTER_OK) {
        loop->counters.malformed++;
    } else if (!wire_is_up(message.type)) {
        loop->counters.unexpected++;
    } else if (frame->grant != NULL &&
               authority_check(frame->grant, &message, loop->now_unix_ms, &err) != MUSTER_OK) {
        loop_refuse_key(loop, frame, &message, &err);
    } else if (!core_input_is_free(&message) && !loop_has_room(loop, frame)) {
        loop_refuse_share(loop, frame->route, &message);
    } else if (!loop->blocked) {
        if (!loop_wake_job(loop, &message))
            return;
        if (message.up.role == ROLE_TOOL && wire_is_request(message.type)) {
            bus_sender(loop->bus, frame, by, sizeof by);
            input.by = by;
        }
        failpoint_message(FAILPOINT_CORE_BEFORE, &message);
        core_step(loop->core, &input, &loop->batch);
        failpoint_message(FAILPOINT_CORE_AFTER, &message);
    } else if (core_input_is_free(&message)) {
        core_step(loop->core, &input, &loop->free_outputs);
    } else {
        loop_refuse_for_storage(loop, frame->route, &message);
    }
}

/* Messages of earlier passes, from a key that had had its turn. */
static void loop_take_kept(struct loop *loop)
{
    struct bus_frame frame;
    const char *key;

    turns_begin(loop->turns);
    while (turns_next(loop->turns, &frame, &key)) {
        frame.grant = bus_grant(loop->bus, key);
        frame.kept = true;
        if (frame.grant != NULL)
            loop_take_frame(loop, &frame);
    }
    loop->counters.busy = turns_dropped(loop->turns);
}

/* True once the queue is empty. A message that is kept then waits for itself. */
static bool loop_receive_all(struct loop *loop)
{
    if (loop->turns != NULL)
        loop_take_kept(loop);
    for (int i = 0; i < PASS_FRAMES_MAX; i++) {
        struct bus_frame frame;
        enum bus_received received = bus_receive(loop->bus, &frame);

        if (received == BUS_NOTHING)
            return true;
        if (received == BUS_FRAME && (loop->turns == NULL || turns_take(loop->turns, &frame)))
            loop_take_frame(loop, &frame);
    }
    return false;
}

static bool loop_words_wait(const struct loop *loop)
{
    return loop->turns != NULL && turns_wait(loop->turns);
}

/* Silence may only be judged when no message waits, in the queue or for its key's next turn. Under
 * a flood that never ends, time goes on after some passes. */
static void loop_tick(struct loop *loop, bool drained)
{
    const struct input input = {
        .kind = INPUT_TICK, .now_boot_ms = loop->now_boot_ms, .now_unix_ms = loop->now_unix_ms};

    if ((!drained || loop_words_wait(loop)) && loop->ticks_late++ < TICKS_LATE_MAX)
        return;
    loop->ticks_late = 0;
    failpoint_pass(FAILPOINT_TICK_BEFORE);
    core_step(loop->core, &input, &loop->batch);
    failpoint_pass(FAILPOINT_TICK_AFTER);
}

/* Nodes that the journal could not serve are given to the core; its answers are another batch. */
static enum muster_status loop_serve_lacking(struct loop *loop, struct muster_error *err)
{
    size_t count = loop->lacking_count;

    if (count == 0 || loop->blocked)
        return MUSTER_OK;
    loop->lacking_count = 0;
    for (size_t i = 0; i < count; i++) {
        const struct input input = {.kind = INPUT_NO_EVENTS,
                                    .now_boot_ms = loop->now_boot_ms,
                                    .now_unix_ms = loop->now_unix_ms,
                                    .route = loop->lacking[i].route,
                                    .job = loop->lacking[i].job};

        core_step(loop->core, &input, &loop->batch);
    }
    return loop_commit(loop, err);
}

/* --- one pass --------------------------------------------------------------------------------- */

static int64_t loop_time_to_wait(const struct loop *loop, int64_t timeout_ms)
{
    int64_t now = clock_ms(CLOCK_BOOTTIME);
    int64_t due = loop->blocked ? loop->retry_boot_ms : core_wakeup_boot_ms(loop->core);
    int64_t wait;

    if (!loop->blocked)
        due = loop_min_i64(due, store_wakeup_boot_ms(loop->store));
    if (store_manifest_is_due(loop->store) ||
        (!loop->blocked && store_snapshot_is_due(loop->store)))
        due = now;
    if (loop_words_wait(loop))
        due = now;
    due = loop_min_i64(due, outbox_wakeup_boot_ms(&loop->outbox));
    wait = due == INT64_MAX ? timeout_ms : loop_min_i64(due - now, timeout_ms);
    return wait < 0 ? 0 : wait;
}

static bool loop_signal_came(const struct loop *loop)
{
    struct signalfd_siginfo info;

    if (read(loop->signal_fd, &info, sizeof info) != (ssize_t)sizeof info)
        return false;
    broker_log(LOG_LEVEL_INFO, "signal %u from pid %u: stopping", info.ssi_signo, info.ssi_pid);
    return true;
}

static void loop_count_pass(struct loop *loop)
{
    int64_t ms = clock_ms(CLOCK_BOOTTIME) - loop->now_boot_ms;

    loop->counters.passes++;
    if (ms > (int64_t)loop->counters.pass_longest_ms)
        loop->counters.pass_longest_ms = (uint64_t)ms;
}

enum muster_status loop_pass(struct loop *loop, int64_t timeout_ms, bool *ret_stop,
                             struct muster_error *err)
{
    bool drained;
    bool readable = bus_wait(loop->bus, loop->signal_fd, loop_time_to_wait(loop, timeout_ms));
    struct muster_error doubt;
    enum muster_status status = store_holds(loop->store, &doubt);
    bool in_doubt = status == MUSTER_E_STORAGE;

    loop_read_clocks(loop);
    if (status != MUSTER_OK && !in_doubt) {
        if (err != NULL)
            *err = doubt;
        return status;
    }
    if (in_doubt)
        loop_doubt(loop, &doubt);
    bus_look_at_keys(loop->bus, loop->now_unix_ms);
    if (readable && loop_signal_came(loop))
        *ret_stop = true;
    failpoint_pass(FAILPOINT_RECEIVE_BEFORE);
    drained = loop_receive_all(loop);
    if (drained)
        bus_peers_sweep(loop->now_boot_ms);
    if (loop->failure != MUSTER_OK) {
        if (err != NULL)
            *err = loop->failed;
        return loop->failure;
    }
    if (loop->blocked) {
        status = loop_send_free_outputs(loop, err);
        if (status == MUSTER_OK && !in_doubt &&
            (loop->now_boot_ms >= loop->retry_boot_ms || *ret_stop))
            status = loop_commit(loop, err);
    } else {
        loop_tick(loop, drained);
        loop_publish_hints(loop);
        failpoint_pass(FAILPOINT_HINT_AFTER);
        status = loop_commit(loop, err);
    }
    if (status == MUSTER_OK)
        status = loop_serve_lacking(loop, err);
    if (status == MUSTER_OK && !loop->blocked)
        status = store_tidy(loop->store, loop->now_boot_ms, err);
    if (status == MUSTER_OK && !loop->blocked)
        status = store_snapshot_work(loop->store, err);
    if (status == MUSTER_OK && !*ret_stop)
        store_manifest_work(loop->store, NULL); /* who asks for it hears what is wrong */
    loop_send_held(loop, *ret_stop ? INT64_MAX : loop->now_boot_ms);
    bus_flush(loop->bus);
    report_say(&loop->report, &loop->counters, bus_counters(loop->bus), loop->now_boot_ms);
    loop_write_metrics(loop);
    service_alive(loop->now_boot_ms);
    loop_count_pass(loop);
    return status;
}

enum muster_status loop_run(struct loop *loop, bool *ret_stop, struct muster_error *err)
{
    enum muster_status status = MUSTER_OK;

    *ret_stop = false;
    while (!*ret_stop && status == MUSTER_OK)
        status = loop_pass(loop, WAIT_MAX_MS, ret_stop, err);
    if (*ret_stop && loop->blocked)
        broker_log(LOG_LEVEL_WARNING, "the last inputs were not written and not answered; their "
                                      "senders repeat them to the next musterd");
    return status;
}

/* --- life ------------------------------------------------------------------------------------- */

struct loop *loop_create(struct store *store, struct bus *bus, struct core *core, int signal_fd)
{
    struct loop *loop = calloc(1, sizeof *loop);

    if (loop == NULL)
        return NULL;
    loop->store = store;
    loop->bus = bus;
    loop->core = core;
    loop->signal_fd = signal_fd;
    actions_init(&loop->batch);
    actions_init(&loop->free_outputs);
    arena_init(&loop->arena, DECODE_BYTES_MAX);
    if (!bus_asks_for_keys(bus))
        return loop;
    loop->turns = turns_create();
    if (loop->turns == NULL)
        loop_destroy(&loop);
    return loop;
}

void loop_feeds(struct loop *loop, struct metrics *metrics)
{
    loop->metrics = metrics;
}

void loop_destroy(struct loop **loop)
{
    if (*loop == NULL)
        return;
    turns_destroy(&(*loop)->turns);
    actions_free(&(*loop)->batch);
    actions_free(&(*loop)->free_outputs);
    arena_free(&(*loop)->arena);
    free(*loop);
    *loop = NULL;
}

enum muster_status loop_start(struct loop *loop, struct muster_error *err)
{
    struct input input = {.kind = INPUT_START};
    enum muster_status status = store_load(loop->store, loop_load_row, loop, err);

    if (status != MUSTER_OK)
        return status;
    loop_read_clocks(loop);
    loop->started_unix_ms = loop->now_unix_ms;
    input.now_boot_ms = loop->now_boot_ms;
    input.now_unix_ms = loop->now_unix_ms;
    store_note(loop->store, STORE_PAST_STARTED, loop->now_unix_ms,
               store_is_older(loop->store) ? "its database had been restored from an older copy"
                                           : "");
    core_step(loop->core, &input, &loop->batch);
    status = loop_commit(loop, err);
    if (status == MUSTER_OK && loop->blocked) {
        if (err != NULL)
            *err = loop->blocked_by;
        status = MUSTER_E_STORAGE;
    }
    return status;
}

const struct loop_counters *loop_counters(const struct loop *loop)
{
    return &loop->counters;
}
