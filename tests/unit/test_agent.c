/* The agent over real sockets, with a broker that is this test: it says what the script says. The
 * node's program runs on a thread of its own, as one training process would. */
#include <muster/node.h>

#include "schema/manifest.h"
#include "schema/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

#define DEADLINE_MS 8000
#define START_ID 77

struct fixture {
    char directory[64];
    /* the broker */
    void *context, *router, *xpub;
    char command[128], events[128];
    uint8_t route[16];
    int route_size;
    uint64_t incarnation, seq, epoch;
    struct arena arena;
    struct wire_msg heard;
    /* the node's program */
    struct muster_node_options options;
    muster_state_t *state;
    int64_t weight;
    muster_node_t *node;
    pthread_t thread;
    enum muster_status open_status, run_status, close_status;
    struct muster_error error;
    _Atomic bool slow;     /* the step waits until this is false */
    _Atomic int in_step;   /* steps that have begun */
    _Atomic int fail_code; /* what the step returns */
    _Atomic bool stop;     /* the loop ends by itself */
    _Atomic int on_error_calls;
    struct muster_error on_error_seen;
    int nag;                      /* a signal that this process gets all the time; 0 = none */
    _Atomic int waits_said;       /* lines of the log that say what open waits for */
    _Atomic bool again_said;      /* ... that a signal came again */
    _Atomic int exit_code;        /* what exit_fn was called with */
    _Atomic int callbacks_inside; /* callbacks that never return */
};

static struct fixture f;

/* --- the broker ---------------------------------------------------------------------------------- */

static void *bound(int type, char *ret_endpoint, size_t size)
{
    void *socket = zmq_socket(f.context, type);

    assert_non_null(socket);
    assert_int_equal(zmq_setsockopt(socket, ZMQ_LINGER, &(int){0}, sizeof(int)), 0);
    assert_int_equal(zmq_bind(socket, "tcp://127.0.0.1:*"), 0);
    assert_int_equal(zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, ret_endpoint, &size), 0);
    return socket;
}

static void transmit(struct wire_msg *message, bool by_event)
{
    static uint8_t frame[WIRE_FRAME_MAX];
    size_t size;

    message->down = (struct wire_down){.start_id = START_ID,
                                       .broker_epoch = f.epoch,
                                       .job = "agent",
                                       .generation = 1,
                                       .last_seq = f.seq};
    size = wire_encode(message, frame, sizeof frame);
    assert_true(size > 0);
    if (by_event)
        assert_true(zmq_send(f.xpub, "agent", 6, ZMQ_SNDMORE) >= 0);
    else
        assert_true(zmq_send(f.router, f.route, (size_t)f.route_size, ZMQ_SNDMORE) >= 0);
    assert_true(zmq_send(by_event ? f.xpub : f.router, frame, size, 0) >= 0);
}

/* An event, by DEALER: it cannot get lost. */
static void say(struct wire_event event)
{
    struct wire_msg message = {.type = WIRE_EVENT};

    event.seq = ++f.seq;
    event.generation = 1;
    message.u.event = event;
    transmit(&message, false);
}

static void answer_routine(const struct wire_msg *m)
{
    struct wire_msg reply = {.type = WIRE_ACK};

    if (m->up.request > 0) {
        reply.u.ack.request = m->up.request;
        transmit(&reply, false);
    } else if (m->type == WIRE_PROBE_GET) {
        reply.type = WIRE_PROBE;
        reply.u.probe.nonce = m->u.probe_get.nonce;
        transmit(&reply, true);
    } else if (m->type == WIRE_HEARTBEAT) {
        reply.type = WIRE_ALIVE;
        transmit(&reply, false);
    }
}

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Hears and answers until a message of this type came; it is in f.heard. */
static const struct wire_msg *await(enum wire_type type)
{
    static uint8_t frame[WIRE_FRAME_MAX];
    int64_t until = now_ms() + DEADLINE_MS;
    char subscription[64];

    do {
        zmq_pollitem_t item = {.socket = f.router, .events = ZMQ_POLLIN};
        int size;

        if (f.nag != 0)
            assert_int_equal(kill(getpid(), f.nag), 0);
        while (zmq_recv(f.xpub, subscription, sizeof subscription, ZMQ_DONTWAIT) >= 0)
            continue; /* an XPUB subscribes only when it is read */
        if (zmq_poll(&item, 1, 10) != 1)
            continue;
        f.route_size = zmq_recv(f.router, f.route, sizeof f.route, 0);
        size = zmq_recv(f.router, frame, sizeof frame, 0);
        arena_reset(&f.arena);
        assert_int_equal(wire_decode(frame, (size_t)size, &f.arena, &f.heard, NULL), MUSTER_OK);
        if (f.heard.type != WIRE_HELLO)
            answer_routine(&f.heard);
        if (f.heard.type == type)
            return &f.heard;
    } while (now_ms() < until);
    fail_msg("%s was awaited in vain", wire_type_name(type));
    return NULL;
}

static void welcome(void)
{
    struct wire_msg reply = {.type = WIRE_WELCOME};
    const struct wire_msg *hello = await(WIRE_HELLO);

    f.incarnation = hello->up.incarnation;
    reply.u.welcome = (struct wire_welcome){.nonce = hello->u.hello.nonce,
                                            .generation = 1,
                                            .world_size = 2,
                                            .events_endpoint = f.events,
                                            .heartbeat_ms = 1000};
    transmit(&reply, false);
}

static void welcome_and_start(void)
{
    welcome();
    say((struct wire_event){.kind = EVENT_RESUME});
    await(WIRE_RESTORED);
    say((struct wire_event){.kind = EVENT_STARTED});
}

static void say_with_members(enum wire_event_kind kind, enum wire_cause cause, int64_t step,
                             uint64_t flags)
{
    const struct wire_member me = {.rank = 0, .incarnation = f.incarnation, .flags = flags};

    say((struct wire_event){
        .kind = kind, .round = 1, .cause = cause, .step = step, .members = {&me, 1}});
}

/* --- the node's program --------------------------------------------------------------------------- */

static int step(void *arg)
{
    (void)arg;
    atomic_fetch_add(&f.in_step, 1);
    while (atomic_load(&f.slow) && !atomic_load(&f.stop))
        poll(NULL, 0, 1);
    if (atomic_load(&f.fail_code) != 0)
        return atomic_load(&f.fail_code);
    f.weight++;
    poll(NULL, 0, 1);
    return 0;
}

static void *program(void *arg)
{
    (void)arg;
    f.open_status = muster_node_open(&f.options, &f.node, &f.error);
    if (f.open_status != MUSTER_OK)
        return NULL;
    do
        f.run_status = muster_node_run(f.node, step, NULL, &f.error);
    while (f.run_status == MUSTER_OK && !atomic_load(&f.stop));
    f.close_status = muster_node_close(&f.node, 0, NULL);
    return NULL;
}

static void on_error(const struct muster_error *error, void *arg)
{
    (void)arg;
    f.on_error_seen = *error;
    atomic_store(&f.slow, false); /* the step comes back */
    atomic_fetch_add(&f.on_error_calls, 1);
}

static void await_steps(int count)
{
    int64_t until = now_ms() + DEADLINE_MS;

    while (atomic_load(&f.in_step) < count) {
        assert_true(now_ms() < until);
        poll(NULL, 0, 1);
    }
}

static int setup(void **state)
{
    (void)state;
    memset(&f, 0, sizeof f);
    strcpy(f.directory, "/tmp/muster-agent-XXXXXX");
    f.context = zmq_ctx_new();
    f.router = bound(ZMQ_ROUTER, f.command, sizeof f.command);
    f.xpub = bound(ZMQ_XPUB, f.events, sizeof f.events);
    f.epoch = 1;
    arena_init(&f.arena, 0);
    f.options = (struct muster_node_options)MUSTER_NODE_OPTIONS_INIT;
    if (mkdtemp(f.directory) == NULL || muster_state_create(&f.state, NULL) != MUSTER_OK ||
        muster_state_add_i64(f.state, "weight", &f.weight, NULL) != MUSTER_OK)
        return -1;
    f.options.broker = f.command;
    f.options.job = "agent";
    f.options.rank = 0;
    f.options.world_size = 2;
    f.options.checkpoint_dir = f.directory;
    f.options.state = f.state;
    f.options.on_error = on_error;
    f.options.termination.on_preempted = MUSTER_PREEMPTED_RETURN;
    f.options.termination.signals[0] = SIGUSR1;
    return 0;
}

static void start(void)
{
    assert_int_equal(pthread_create(&f.thread, NULL, program, NULL), 0);
}

static void end(void)
{
    atomic_store(&f.stop, true);
    assert_int_equal(pthread_join(f.thread, NULL), 0);
}

/* The program closes by itself; the broker hears LEAVE. */
static void await_leave(void)
{
    atomic_store(&f.stop, true);
    await(WIRE_LEAVE);
    end();
}

static int teardown(void **state)
{
    char command[128];

    (void)state;
    zmq_close(f.router);
    zmq_close(f.xpub);
    zmq_ctx_term(f.context);
    arena_free(&f.arena);
    muster_state_destroy(&f.state);
    snprintf(command, sizeof command, "rm -rf %s", f.directory);
    return system(command);
}

/* --- tests ---------------------------------------------------------------------------------------- */

static void a_node_joins_steps_and_leaves(void **state)
{
    (void)state;
    start();
    welcome();
    assert_int_equal(f.heard.up.rank, 0);
    assert_int_equal(f.heard.up.role, ROLE_CHIEF);
    assert_string_equal(f.heard.u.hello.checkpoint_dir, f.directory);
    assert_int_equal(f.heard.u.hello.pid, getpid());
    say((struct wire_event){.kind = EVENT_RESUME});
    await(WIRE_RESTORED);
    assert_int_equal(atomic_load(&f.in_step), 0); /* no step before all have restored */
    say((struct wire_event){.kind = EVENT_STARTED});
    await_steps(5);
    atomic_store(&f.stop, true);
    await(WIRE_LEAVE);
    assert_int_equal(f.heard.u.leave.why, LEAVE_FINISHED);
    assert_int_equal(f.heard.u.leave.code, 0);
    end();
    assert_int_equal(f.heard.u.leave.done, f.weight);
    assert_int_equal(f.close_status, MUSTER_OK);
}

static void a_freeze_is_answered_while_a_step_runs(void **state)
{
    int64_t began_ms;

    (void)state;
    start();
    welcome_and_start();
    await_steps(3);
    atomic_store(&f.slow, true);
    await_steps(atomic_load(&f.in_step) + 1); /* now deep in a step that does not end */
    began_ms = now_ms();
    say_with_members(EVENT_FREEZE, CAUSE_OPERATOR, -1, 0);
    await(WIRE_REPORT);
    assert_true(now_ms() - began_ms < 1000);
    assert_int_equal(f.heard.u.report.round, 1);
    assert_int_equal(f.heard.u.report.begun, f.heard.u.report.done + 1);
    say((struct wire_event){.kind = EVENT_ABORT, .round = 1, .rank = -1});
    atomic_store(&f.slow, false);
    await_leave();
    assert_int_equal(f.run_status, MUSTER_OK);
}

static bool is_directory(const char *name)
{
    char path[256];
    struct stat info;

    snprintf(path, sizeof path, "%s/%s", f.directory, name);
    return stat(path, &info) == 0;
}

/* Freeze, decision two steps ahead, save. Returns S; f.heard is SAVED. */
static int64_t save_ahead(enum wire_cause cause)
{
    int64_t save_step;

    say_with_members(EVENT_FREEZE, cause, -1, 0);
    save_step = await(WIRE_REPORT)->u.report.begun + 2;
    say_with_members(EVENT_DECISION, cause, save_step, MEMBER_FLAG_WRITER);
    await(WIRE_AT_STEP);
    assert_int_equal(f.heard.u.at_step.step, save_step);
    await(WIRE_FILES);
    assert_int_equal(f.heard.u.files.files.count, 1);
    return save_step;
}

/* The commit, with the manifest that a broker would derive from f.heard, which is FILES. */
static void commit(enum wire_cause cause, int64_t save_step)
{
    struct wire_file file = f.heard.u.files.files.items[0];
    const struct manifest_shard shard = {
        .incarnation = f.incarnation, .files = &file, .file_count = 1};
    const struct manifest manifest = {.job = "agent",
                                      .generation = 1,
                                      .round = 1,
                                      .step = save_step,
                                      .layout = LAYOUT_REPLICATED,
                                      .world_size = 2,
                                      .epoch = -1,
                                      .step_in_epoch = -1,
                                      .data_position = -1,
                                      .total_run_calls = save_step,
                                      .created_unix_ms = 1,
                                      .cause = wire_cause_name(cause),
                                      .shards = &shard,
                                      .shard_count = 1};
    struct wire_msg reply = {.type = WIRE_MANIFEST_CHUNK};
    char *text = NULL;
    size_t size = 0;

    assert_int_equal(manifest_render(&manifest, &text, &size, NULL), MUSTER_OK);
    await(WIRE_SAVED);
    assert_int_equal(f.heard.u.saved.step, save_step);
    say((struct wire_event){.kind = EVENT_COMMIT,
                            .round = 1,
                            .cause = cause,
                            .step = save_step,
                            .checkpoint = 1,
                            .incarnation = f.incarnation});
    await(WIRE_MANIFEST_GET);
    reply.u.manifest_chunk = (struct wire_manifest_chunk){.checkpoint = 1,
                                                          .round_generation = 1,
                                                          .step = save_step,
                                                          .total = size,
                                                          .bytes = {(const uint8_t *)text, size}};
    transmit(&reply, false);
    await(WIRE_MANIFEST_DONE);
    free(text);
}

static void a_termination_saves_at_the_agreed_step_and_nothing_runs_after_it(void **state)
{
    char name[32];
    int64_t save_step;

    (void)state;
    start();
    welcome_and_start();
    await_steps(3);
    save_step = save_ahead(CAUSE_TERMINATION);
    commit(CAUSE_TERMINATION, save_step);
    snprintf(name, sizeof name, "%lld", (long long)save_step);
    assert_string_equal(strrchr(f.heard.u.manifest_done.path, '/') + 1, name);
    say((struct wire_event){
        .kind = EVENT_MANIFEST, .round = 1, .checkpoint = 1, .step = save_step});
    await(WIRE_LEAVE);
    assert_int_equal(f.heard.u.leave.why, LEAVE_PREEMPTED);
    assert_int_equal(f.heard.u.leave.code, 42);
    end();
    assert_int_equal(f.run_status, MUSTER_PREEMPTED);
    assert_int_equal(f.close_status, MUSTER_PREEMPTED);
    assert_int_equal(f.weight, save_step);
    assert_int_equal(atomic_load(&f.in_step), save_step);
    assert_true(is_directory(name));
}

static void an_operators_save_lets_training_go_on(void **state)
{
    int64_t save_step;

    (void)state;
    start();
    welcome_and_start();
    await_steps(3);
    save_step = save_ahead(CAUSE_OPERATOR);
    commit(CAUSE_OPERATOR, save_step);
    await_steps((int)save_step + 5);
    await_leave();
    assert_int_equal(f.run_status, MUSTER_OK);
}

static void an_aborted_rounds_files_are_removed(void **state)
{
    int64_t until;

    (void)state;
    start();
    welcome_and_start();
    await_steps(3);
    save_ahead(CAUSE_OPERATOR);
    assert_true(is_directory(".muster/1-1"));
    say((struct wire_event){.kind = EVENT_ABORT, .round = 1, .rank = 1});
    until = now_ms() + DEADLINE_MS;
    while (is_directory(".muster/1-1")) {
        assert_true(now_ms() < until);
        poll(NULL, 0, 1);
    }
    await_leave();
}

static void a_signal_becomes_a_notice_while_a_step_runs(void **state)
{
    (void)state;
    start();
    welcome_and_start();
    atomic_store(&f.slow, true);
    await_steps(1);
    assert_int_equal(kill(getpid(), SIGUSR1), 0);
    await(WIRE_NOTICE);
    assert_int_equal(f.heard.u.notice.kind, NOTICE_SIGNAL);
    assert_string_equal(f.heard.u.notice.source, "signal");
    assert_non_null(strstr(f.heard.u.notice.text, "SIGUSR1 from pid"));
    atomic_store(&f.slow, false);
    await_leave();
}

static void the_programs_own_notice_is_told_with_its_time(void **state)
{
    (void)state;
    start();
    welcome_and_start();
    await_steps(1);
    assert_int_equal(muster_node_notify(f.node, MUSTER_NOTICE_STOP, 90000, "spot"), MUSTER_OK);
    await(WIRE_NOTICE);
    assert_int_equal(f.heard.u.notice.kind, NOTICE_STOP);
    assert_true(f.heard.u.notice.left_ms > 80000 && f.heard.u.notice.left_ms <= 90000);
    assert_string_equal(f.heard.u.notice.text, "spot");
    await_leave();
}

static void a_failed_step_is_told_and_ends_this_node(void **state)
{
    int64_t failed_step;

    (void)state;
    start();
    welcome_and_start();
    await_steps(2);
    atomic_store(&f.fail_code, 19);
    await(WIRE_ERROR);
    assert_int_equal(f.heard.u.error.code, 19);
    failed_step = f.heard.u.error.step;
    await(WIRE_LEAVE);
    assert_int_equal(f.heard.u.leave.why, LEAVE_FAILED);
    end();
    assert_int_equal(failed_step, f.weight + 1);
    assert_int_equal(f.run_status, MUSTER_E_STEP);
    assert_int_equal(f.error.code, 19);
}

static void another_ranks_failure_frees_a_blocked_step_and_is_named(void **state)
{
    (void)state;
    start();
    welcome_and_start();
    atomic_store(&f.slow, true); /* as in a collective whose partner has died */
    await_steps(1);
    say((struct wire_event){.kind = EVENT_PEER_ERROR,
                            .rank = 1,
                            .code = MUSTER_E_STEP,
                            .step = 7,
                            .text = "no memory"});
    await(WIRE_LEAVE);
    end();
    assert_int_equal(atomic_load(&f.on_error_calls), 1);
    assert_int_equal(f.on_error_seen.rank, 1);
    assert_int_equal(f.run_status, MUSTER_E_PEER);
    assert_int_equal(f.error.rank, 1);
    assert_non_null(strstr(f.error.text, "no memory"));
}

static void a_step_that_was_broken_off_is_saved_as_if_it_had_not_begun(void **state)
{
    int64_t done;

    (void)state;
    start();
    welcome_and_start();
    await_steps(3);
    atomic_store(&f.slow, true);
    await_steps(atomic_load(&f.in_step) + 1);
    atomic_store(&f.fail_code, 4); /* what the step returns once on_error has freed it */
    say((struct wire_event){
        .kind = EVENT_NODE_LOST, .rank = 1, .text = "silent", .flags = EVENT_FLAG_ROUND_FOLLOWS});
    say((struct wire_event){.kind = EVENT_FREEZE,
                            .round = 1,
                            .cause = CAUSE_ERROR,
                            .flags = EVENT_FLAG_ABORT,
                            .members = {&(struct wire_member){.incarnation = f.incarnation}, 1}});
    await(WIRE_REPORT);
    assert_true(f.heard.u.report.aborted);
    done = f.heard.u.report.done;
    assert_int_equal(f.heard.u.report.begun, done);
    say_with_members(EVENT_DECISION, CAUSE_ERROR, done, MEMBER_FLAG_WRITER);
    await(WIRE_AT_STEP);
    await(WIRE_FILES);
    commit(CAUSE_ERROR, done);
    await(WIRE_LEAVE);
    end();
    assert_int_equal(f.weight, done);
    assert_int_equal(f.run_status, MUSTER_E_PEER);
    assert_non_null(strstr(f.error.text, "silent"));
}

static void garbage_from_the_network_changes_nothing(void **state)
{
    static const char *const frames[] = {"", "x", "\xc1\xc1\xc1", "\x93\x01\xff\x00"};

    (void)state;
    start();
    welcome_and_start();
    await_steps(1);
    for (size_t i = 0; i < sizeof frames / sizeof *frames; i++) {
        assert_true(zmq_send(f.router, f.route, (size_t)f.route_size, ZMQ_SNDMORE) >= 0);
        assert_true(zmq_send(f.router, frames[i], strlen(frames[i]), 0) >= 0);
        assert_true(zmq_send(f.xpub, "agent", 6, ZMQ_SNDMORE) >= 0);
        assert_true(zmq_send(f.xpub, frames[i], strlen(frames[i]), 0) >= 0);
    }
    await_steps(atomic_load(&f.in_step) + 5);
    await_leave();
    assert_int_equal(f.run_status, MUSTER_OK);
}

static void refuse(enum muster_status code, bool retry)
{
    struct wire_msg reply = {.type = WIRE_REFUSED};
    const struct wire_msg *hello = await(WIRE_HELLO);

    reply.u.refused = (struct wire_refused){.nonce = hello->u.hello.nonce,
                                            .code = code,
                                            .text = "rank 0 is held by host h, process 1",
                                            .retry = retry};
    transmit(&reply, false);
}

static void note_line(int level, const char *text, void *arg)
{
    (void)arg;
    if (level == 1 && strstr(text, "waits to join job agent: rank 0 is held by host h") != NULL)
        atomic_fetch_add(&f.waits_said, 1);
    if (level == 3 && strstr(text, "SIGUSR1") != NULL && strstr(text, "again") != NULL)
        atomic_store(&f.again_said, true);
}

static void note_exit(int code, void *arg)
{
    (void)arg;
    atomic_store(&f.exit_code, code);
}

static void a_signal_ends_the_wait_for_a_taken_rank_at_once_and_says_so(void **state)
{
    int64_t began_ms = now_ms();

    (void)state;
    f.options.log = note_line;
    f.options.termination.exit_fn = note_exit; /* policy RETURN: not called */
    start();
    refuse(MUSTER_E_RANK_TAKEN, true);
    refuse(MUSTER_E_RANK_TAKEN, true);
    assert_int_equal(kill(getpid(), SIGUSR1), 0);
    end();
    assert_true(now_ms() - began_ms < DEADLINE_MS); /* open_timeout_ms is a minute */
    assert_int_equal(f.open_status, MUSTER_PREEMPTED);
    assert_non_null(strstr(f.error.text, "signal: SIGUSR1"));
    assert_non_null(strstr(f.error.text, "while waiting to join job agent"));
    assert_non_null(strstr(f.error.text, "host h"));
    assert_int_equal(atomic_load(&f.waits_said), 1);
    assert_int_equal(atomic_load(&f.exit_code), 0);
}

static void a_signal_before_joining_leaves_by_the_exit_policy(void **state)
{
    (void)state;
    f.options.termination.on_preempted = MUSTER_PREEMPTED_EXIT;
    f.options.termination.exit_fn = note_exit;
    start();
    refuse(MUSTER_E_ENDING, true);
    assert_int_equal(kill(getpid(), SIGUSR1), 0);
    end();
    assert_int_equal(atomic_load(&f.exit_code), 42);
    assert_int_equal(f.open_status, MUSTER_PREEMPTED); /* exit_fn returned */
}

static bool say_yes(void *arg)
{
    (void)arg;
    return true;
}

static void a_notice_ends_the_wait_for_a_broker_that_is_not_there(void **state)
{
    int64_t began_ms = now_ms();

    (void)state;
    f.options.connect_timeout_ms = 10 * DEADLINE_MS;
    f.options.termination.termination_watcher_fn = say_yes;
    start(); /* nobody reads the ROUTER */
    end();
    assert_true(now_ms() - began_ms < DEADLINE_MS);
    assert_int_equal(f.open_status, MUSTER_PREEMPTED);
    assert_non_null(strstr(f.error.text, "termination_watcher_fn"));
}

static void the_join_timeout_is_told_as_unset_when_nobody_asked_for_one(void **state)
{
    (void)state;
    start();
    welcome();
    assert_int_equal(f.heard.u.hello.join_timeout_ms, 0); /* the broker's own counts */
    say((struct wire_event){.kind = EVENT_JOIN_FAILED, .rank = -1, .text = "rank 1 is missing"});
    await(WIRE_LEAVE);
    end();
    assert_int_equal(f.open_status, MUSTER_E_JOIN);
}

static void a_join_timeout_that_was_asked_for_is_told(void **state)
{
    (void)state;
    f.options.join_timeout_ms = 4321;
    start();
    welcome();
    assert_int_equal(f.heard.u.hello.join_timeout_ms, 4321);
    say((struct wire_event){.kind = EVENT_JOIN_FAILED, .rank = -1, .text = "rank 1 is missing"});
    await(WIRE_LEAVE);
    end();
    assert_int_equal(f.open_status, MUSTER_E_JOIN);
}

static void a_termination_while_the_job_assembles_is_left_with_the_restart_code(void **state)
{
    (void)state;
    start();
    welcome();
    say((struct wire_event){.kind = EVENT_NOT_SAVED, .rank = -1, .text = "nobody began"});
    await(WIRE_LEAVE);
    assert_int_equal(f.heard.u.leave.why, LEAVE_PREEMPTED);
    assert_int_equal(f.heard.u.leave.code, 42);
    end();
    assert_int_equal(f.open_status, MUSTER_PREEMPTED);
}

static void never_return(void)
{
    atomic_fetch_add(&f.callbacks_inside, 1);
    for (;;)
        pause();
}

static bool blocked_watcher(void *arg)
{
    (void)arg;
    never_return();
    return false;
}

static void blocked_log(int level, const char *text, void *arg)
{
    (void)arg;
    if (strstr(text, "SIGUSR1") != NULL && level == 3)
        never_return();
}

static void callbacks_that_never_return_stop_neither_heartbeats_nor_close(void **state)
{
    int64_t began_ms;

    (void)state;
    f.options.termination.termination_watcher_fn = blocked_watcher;
    f.options.log = blocked_log;
    start();
    welcome_and_start();
    assert_int_equal(kill(getpid(), SIGUSR1), 0);
    await(WIRE_NOTICE);
    f.nag = SIGUSR1;
    began_ms = now_ms();
    while (atomic_load(&f.callbacks_inside) < 2) {
        assert_true(now_ms() - began_ms < DEADLINE_MS);
        await(WIRE_HEARTBEAT);
    }
    f.nag = 0;
    await(WIRE_HEARTBEAT);
    await(WIRE_HEARTBEAT);
    began_ms = now_ms();
    await_leave();
    assert_true(now_ms() - began_ms < DEADLINE_MS);
    assert_int_equal(f.close_status, MUSTER_OK);
}

static void a_signal_after_its_notice_was_cancelled_is_a_new_notice(void **state)
{
    char first[NOTICE_ID_MAX + 1];
    int64_t until = now_ms() + DEADLINE_MS;

    (void)state;
    f.options.log = note_line;
    start();
    welcome_and_start();
    await_steps(1);
    assert_int_equal(kill(getpid(), SIGUSR1), 0);
    snprintf(first, sizeof first, "%s", await(WIRE_NOTICE)->u.notice.id);
    f.nag = SIGUSR1;
    while (!atomic_load(&f.again_said)) { /* it stands: another signal says nothing new */
        assert_true(now_ms() < until);
        await(WIRE_HEARTBEAT);
    }
    say((struct wire_event){.kind = EVENT_NOTICE_CANCELLED, .rank = 0, .text = first});
    await(WIRE_NOTICE);
    f.nag = 0;
    assert_string_not_equal(f.heard.u.notice.id, first);
    assert_string_equal(f.heard.u.notice.source, "signal");
    await_leave();
}

static void a_final_refusal_ends_open_at_once(void **state)
{
    int64_t began_ms = now_ms();

    (void)state;
    start();
    refuse(MUSTER_E_WORLD_SIZE, false);
    end();
    assert_true(now_ms() - began_ms < DEADLINE_MS); /* open_timeout_ms is a minute */
    assert_int_equal(f.open_status, MUSTER_E_WORLD_SIZE);
}

static void a_taken_rank_is_tried_again_until_the_timeout(void **state)
{
    (void)state;
    f.options.open_timeout_ms = 400;
    start();
    refuse(MUSTER_E_RANK_TAKEN, true);
    refuse(MUSTER_E_RANK_TAKEN, true);
    end();
    assert_int_equal(f.open_status, MUSTER_E_RANK_TAKEN);
    assert_non_null(strstr(f.error.text, "host h"));
}

static void a_taken_rank_that_becomes_free_is_joined(void **state)
{
    (void)state;
    start();
    refuse(MUSTER_E_RANK_TAKEN, true);
    welcome_and_start();
    await_steps(1);
    await_leave();
    assert_int_equal(f.run_status, MUSTER_OK);
}

static void a_silent_broker_is_named_after_the_connect_timeout(void **state)
{
    int64_t began_ms = now_ms();

    (void)state;
    f.options.connect_timeout_ms = 150;
    start(); /* nobody reads the ROUTER */
    end();
    assert_int_equal(f.open_status, MUSTER_E_BROKER);
    assert_non_null(strstr(f.error.text, f.command));
    assert_non_null(strstr(f.error.text, "musterd"));
    assert_true(now_ms() - began_ms >= 150);
}

static void a_checkpoint_that_cannot_be_read_is_an_error_of_open_and_told(void **state)
{
    (void)state;
    start();
    welcome();
    say((struct wire_event){
        .kind = EVENT_RESUME, .checkpoint = 3, .step = 9, .path = "/nonexistent/9"});
    await(WIRE_RESTORE_FAILED);
    assert_int_equal(f.heard.u.restore_failed.checkpoint, 3);
    say((struct wire_event){
        .kind = EVENT_RESTORE_FAILED, .rank = 0, .checkpoint = 3, .text = "rank 0"});
    await(WIRE_LEAVE);
    end();
    assert_int_equal(f.open_status, MUSTER_E_RESTORE);
    assert_non_null(strstr(f.error.text, "/nonexistent/9"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_node_joins_steps_and_leaves),
        TEST(a_freeze_is_answered_while_a_step_runs),
        TEST(a_termination_saves_at_the_agreed_step_and_nothing_runs_after_it),
        TEST(an_operators_save_lets_training_go_on),
        TEST(an_aborted_rounds_files_are_removed),
        TEST(a_signal_becomes_a_notice_while_a_step_runs),
        TEST(the_programs_own_notice_is_told_with_its_time),
        TEST(a_failed_step_is_told_and_ends_this_node),
        TEST(another_ranks_failure_frees_a_blocked_step_and_is_named),
        TEST(a_step_that_was_broken_off_is_saved_as_if_it_had_not_begun),
        TEST(garbage_from_the_network_changes_nothing),
        TEST(a_signal_ends_the_wait_for_a_taken_rank_at_once_and_says_so),
        TEST(a_signal_before_joining_leaves_by_the_exit_policy),
        TEST(a_notice_ends_the_wait_for_a_broker_that_is_not_there),
        TEST(the_join_timeout_is_told_as_unset_when_nobody_asked_for_one),
        TEST(a_join_timeout_that_was_asked_for_is_told),
        TEST(a_termination_while_the_job_assembles_is_left_with_the_restart_code),
        TEST(callbacks_that_never_return_stop_neither_heartbeats_nor_close),
        TEST(a_signal_after_its_notice_was_cancelled_is_a_new_notice),
        TEST(a_final_refusal_ends_open_at_once),
        TEST(a_taken_rank_is_tried_again_until_the_timeout),
        TEST(a_taken_rank_that_becomes_free_is_joined),
        TEST(a_silent_broker_is_named_after_the_connect_timeout),
        TEST(a_checkpoint_that_cannot_be_read_is_an_error_of_open_and_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
