/* lone_node - see lone_node.h. */
#include "tests/support/lone_node.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

#define START_ID 77
#define LONE_LOOKS 400 /* of 10 ms each, at least: on a busy machine they take longer */

struct lone lone;

/* --- the broker ------------------------------------------------------------------------------- */

int64_t lone_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void *bound(int type, char *ret_endpoint, size_t size)
{
    void *socket = zmq_socket(lone.context, type);

    assert_non_null(socket);
    assert_int_equal(zmq_setsockopt(socket, ZMQ_LINGER, &(int){0}, sizeof(int)), 0);
    assert_int_equal(zmq_bind(socket, "tcp://127.0.0.1:*"), 0);
    assert_int_equal(zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, ret_endpoint, &size), 0);
    return socket;
}

void lone_transmit(struct wire_msg *message, bool by_event)
{
    static uint8_t frame[WIRE_FRAME_MAX];
    size_t size;

    message->down = (struct wire_down){.start_id = START_ID,
                                       .broker_epoch = lone.epoch,
                                       .job = "agent",
                                       .generation = 1,
                                       .last_seq = lone.seq};
    size = wire_encode(message, frame, sizeof frame);
    assert_true(size > 0);
    if (by_event)
        assert_true(zmq_send(lone.xpub, "agent", 6, ZMQ_SNDMORE) >= 0);
    else
        assert_true(zmq_send(lone.router, lone.route, (size_t)lone.route_size, ZMQ_SNDMORE) >= 0);
    assert_true(zmq_send(by_event ? lone.xpub : lone.router, frame, size, 0) >= 0);
}

void lone_say(struct wire_event event)
{
    struct wire_msg message = {.type = WIRE_EVENT};

    event.seq = ++lone.seq;
    event.generation = 1;
    message.u.event = event;
    lone_transmit(&message, false);
}

static void answer_routine(const struct wire_msg *m)
{
    struct wire_msg reply = {.type = WIRE_ACK};

    if (m->type == WIRE_QUERY)
        return;
    if (m->up.request > 0) {
        reply.u.ack.request = m->up.request;
        reply.u.ack.code = lone.not_stored;
        lone_transmit(&reply, false);
    } else if (m->type == WIRE_PROBE_GET) {
        reply.type = WIRE_PROBE;
        reply.u.probe.nonce = m->u.probe_get.nonce;
        lone_transmit(&reply, true);
    } else if (m->type == WIRE_HEARTBEAT) {
        reply.type = WIRE_ALIVE;
        reply.u.alive.all_live = m->u.heartbeat.suspects && lone.all_live;
        lone_transmit(&reply, false);
    }
}

const struct wire_msg *lone_await(enum wire_type type)
{
    static uint8_t frame[WIRE_FRAME_MAX];
    int64_t until = lone_now_ms() + LONE_DEADLINE_MS;
    int looks = 0;
    char subscription[64];

    do {
        zmq_pollitem_t item = {.socket = lone.router, .events = ZMQ_POLLIN};
        int size;

        looks++;
        if (lone.nag != 0)
            assert_int_equal(kill(getpid(), lone.nag), 0);
        while (zmq_recv(lone.xpub, subscription, sizeof subscription, ZMQ_DONTWAIT) >= 0)
            continue; /* an XPUB subscribes only when it is read */
        if (zmq_poll(&item, 1, 10) != 1)
            continue;
        lone.route_size = zmq_recv(lone.router, lone.route, sizeof lone.route, 0);
        size = zmq_recv(lone.router, frame, sizeof frame, 0);
        arena_reset(&lone.arena);
        assert_int_equal(wire_decode(frame, (size_t)size, &lone.arena, &lone.heard, NULL),
                         MUSTER_OK);
        if (lone.heard.type != WIRE_HELLO)
            answer_routine(&lone.heard);
        lone.saves_told += lone.heard.type == WIRE_SAVED;
        lone.failures_told += lone.heard.type == WIRE_RESTORE_FAILED;
        lone.reports_told += lone.heard.type == WIRE_REPORT;
        if (lone.heard.type == type)
            return &lone.heard;
    } while (lone_now_ms() < until || looks < LONE_LOOKS);
    fail_msg("%s was awaited in vain", wire_type_name(type));
    return NULL;
}

void lone_welcome(void)
{
    struct wire_msg reply = {.type = WIRE_WELCOME};
    const struct wire_msg *hello = lone_await(WIRE_HELLO);

    lone.incarnation = hello->up.incarnation;
    reply.u.welcome = (struct wire_welcome){.speaks = WIRE_SPEAKS,
                                            .nonce = hello->u.hello.nonce,
                                            .generation = 1,
                                            .world_size = 2,
                                            .events_endpoint = lone.events,
                                            .signer = lone.signer,
                                            .heartbeat_ms = 1000};
    lone_transmit(&reply, false);
}

void lone_welcome_and_start(void)
{
    lone_welcome();
    lone_say((struct wire_event){.kind = EVENT_RESUME});
    lone_await(WIRE_RESTORED);
    lone_say((struct wire_event){.kind = EVENT_STARTED});
}

void lone_say_with_member(enum wire_event_kind kind, enum wire_cause cause, int64_t step,
                          uint64_t flags)
{
    const struct wire_member me = {.rank = 0, .incarnation = lone.incarnation, .flags = flags};

    lone_say((struct wire_event){
        .kind = kind, .round = 1, .cause = cause, .step = step, .members = {&me, 1}});
}

void lone_refuse(enum muster_status code, bool retry)
{
    struct wire_msg reply = {.type = WIRE_REFUSED};
    const struct wire_msg *hello = lone_await(WIRE_HELLO);

    reply.u.refused = (struct wire_refused){.nonce = hello->u.hello.nonce,
                                            .code = code,
                                            .text = "rank 0 is held by host h, process 1",
                                            .retry = retry};
    lone_transmit(&reply, false);
}

/* --- the node's program ----------------------------------------------------------------------- */

void lone_step_is_slow(void)
{
    while (atomic_load(&lone.slow) && !atomic_load(&lone.stop)) {
        atomic_store(&lone.in_slow_step, true);
        poll(NULL, 0, 1);
    }
    atomic_store(&lone.in_slow_step, false);
}

static int step(void *arg)
{
    (void)arg;
    atomic_fetch_add(&lone.in_step, 1);
    lone_step_is_slow();
    if (atomic_load(&lone.fail_code) != 0)
        return atomic_load(&lone.fail_code);
    if (atomic_load(&lone.hold))
        muster_node_hold(lone.node); /* the next boundary is refused, and the program closes */
    lone.weight++;
    poll(NULL, 0, 1);
    return 0;
}

static void *program(void *arg)
{
    (void)arg;
    lone.open_status = muster_node_open(&lone.options, &lone.node, &lone.error);
    if (lone.open_status != MUSTER_OK)
        return NULL;
    do
        lone.run_status = muster_node_run(lone.node, step, NULL, &lone.error);
    while (lone.run_status == MUSTER_OK && !atomic_load(&lone.stop));
    lone.close_status = muster_node_close(&lone.node, lone.close_code, NULL);
    return NULL;
}

static void on_error(const struct muster_error *error, void *arg)
{
    (void)arg;
    lone.on_error_seen = *error;
    atomic_store(&lone.slow, false); /* the step comes back */
    atomic_fetch_add(&lone.on_error_calls, 1);
}

void lone_await_steps(int count)
{
    int64_t until = lone_now_ms() + LONE_DEADLINE_MS;

    for (int looks = 0; atomic_load(&lone.in_step) < count; looks++) {
        assert_true(lone_now_ms() < until || looks < 10 * LONE_LOOKS);
        poll(NULL, 0, 1);
    }
}

/* The step that runs may have been counted before it is held, or after. */
void lone_hold_in_step(void)
{
    int64_t until = lone_now_ms() + LONE_DEADLINE_MS;

    atomic_store(&lone.slow, true);
    for (int looks = 0; !atomic_load(&lone.in_slow_step); looks++) {
        assert_true(lone_now_ms() < until || looks < 10 * LONE_LOOKS);
        poll(NULL, 0, 1);
    }
}

int lone_setup(void **state)
{
    (void)state;
    memset(&lone, 0, sizeof lone);
    scratch_make(lone.directory);
    lone.context = zmq_ctx_new();
    lone.router = bound(ZMQ_ROUTER, lone.command, sizeof lone.command);
    lone.xpub = bound(ZMQ_XPUB, lone.events, sizeof lone.events);
    lone.epoch = 1;
    arena_init(&lone.arena, 0);
    lone.options = (struct muster_node_options)MUSTER_NODE_OPTIONS_INIT;
    if (muster_state_create(&lone.state, NULL) != MUSTER_OK ||
        muster_state_add_i64(lone.state, "weight", &lone.weight, NULL) != MUSTER_OK)
        return -1;
    lone.options.broker = lone.command;
    lone.options.job = "agent";
    lone.options.rank = 0;
    lone.options.world_size = 2;
    lone.options.checkpoint_dir = lone.directory;
    lone.options.state = lone.state;
    lone.options.on_error = on_error;
    lone.options.termination.on_preempted = MUSTER_PREEMPTED_RETURN;
    lone.options.termination.signals[0] = SIGUSR1;
    return 0;
}

void lone_start(void)
{
    assert_int_equal(pthread_create(&lone.thread, NULL, program, NULL), 0);
}

void lone_end(void)
{
    atomic_store(&lone.stop, true);
    assert_int_equal(pthread_join(lone.thread, NULL), 0);
}

void lone_await_leave(void)
{
    atomic_store(&lone.stop, true);
    lone_await(WIRE_LEAVE);
    lone_end();
}

int lone_teardown(void **state)
{
    (void)state;
    zmq_close(lone.router);
    zmq_close(lone.xpub);
    zmq_ctx_term(lone.context);
    arena_free(&lone.arena);
    muster_state_destroy(&lone.state);
    scratch_remove(lone.directory);
    return 0;
}
