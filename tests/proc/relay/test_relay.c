/* The relay between a pretended broker and pretended ranks. */
#include "broker/relay.h"

#include "broker/bus_guard.h"
#include "broker/log.h"
#include "schema/error.h"
#include "schema/wire/bundle.h"
#include "schema/wire/wire.h"
#include "tests/support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#define LOOKS 2000 /* of some ms each */
#define RANKS 4
#define FLOOD 3000
#define TOPIC_BYTES 80

struct fixture {
    char dir[SCRATCH_PATH_MAX];
    char listen[SCRATCH_PATH_MAX + 32];
    struct relay *relay;
    struct muster_error err;
    void *context;
    void *router, *xpub; /* the broker's */
    char commands[128], events[128];
    void *ranks[RANKS], *subs[RANKS];
    uint8_t relay_id[5]; /* whom the broker answers */
    bool met;            /* ... once a hello came */
    uint8_t came[BUNDLE_BYTES_MAX];
    struct bundle_reader in; /* what is left of the last bundle at the broker */
    struct bundle out;
    unsigned bundles;
};

static void *bound(struct fixture *f, int type, char *ret_endpoint, size_t size)
{
    void *socket = zmq_socket(f->context, type);

    assert_non_null(socket);
    assert_int_equal(zmq_setsockopt(socket, ZMQ_LINGER, &(int){0}, sizeof(int)), 0);
    assert_int_equal(zmq_bind(socket, "tcp://127.0.0.1:*"), 0);
    assert_int_equal(zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, ret_endpoint, &size), 0);
    return socket;
}

static void *connected(struct fixture *f, int type, const char *endpoint)
{
    void *socket = zmq_socket(f->context, type);

    assert_non_null(socket);
    assert_int_equal(zmq_setsockopt(socket, ZMQ_LINGER, &(int){0}, sizeof(int)), 0);
    assert_int_equal(zmq_connect(socket, endpoint), 0);
    return socket;
}

static enum muster_status open_relay(struct fixture *f, const char *addresses)
{
    struct brokers brokers;
    struct relay_options options = {.listen = f->listen, .brokers = &brokers, .signal_fd = -1};

    assert_int_equal(brokers_read(addresses, &brokers, &f->err), MUSTER_OK);
    return relay_open(&options, &f->relay, &f->err);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    broker_log_least(LOG_LEVEL_ERROR);
    scratch_make(f->dir);
    snprintf(f->listen, sizeof f->listen, "ipc://%s/r.sock", f->dir);
    f->context = zmq_ctx_new();
    f->router = bound(f, ZMQ_ROUTER, f->commands, sizeof f->commands);
    f->xpub = bound(f, ZMQ_XPUB, f->events, sizeof f->events);
    if (open_relay(f, f->commands) != MUSTER_OK)
        fail_msg("%s", f->err.text);
    for (int i = 0; i < RANKS; i++)
        f->ranks[i] = connected(f, ZMQ_DEALER, bus_command_endpoint(relay_bus(f->relay)));
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    for (int i = 0; i < RANKS; i++) {
        zmq_close(f->ranks[i]);
        if (f->subs[i] != NULL)
            zmq_close(f->subs[i]);
    }
    zmq_close(f->router);
    zmq_close(f->xpub);
    relay_close(&f->relay);
    zmq_ctx_term(f->context);
    scratch_remove(f->dir);
    free(f);
    return 0;
}

static void pass(struct fixture *f)
{
    bool stop = false;

    if (relay_pass(f->relay, 1, &stop, &f->err) != MUSTER_OK)
        fail_msg("%s", f->err.text);
}

/* --- the broker ------------------------------------------------------------------------------- */

static void broker_sends(struct fixture *f, const void *bytes, size_t size)
{
    assert_true(zmq_send(f->router, f->relay_id, 5, ZMQ_SNDMORE) == 5);
    assert_true(zmq_send(f->router, bytes, size, 0) >= 0);
}

static void broker_answers_hello(struct fixture *f)
{
    struct bundle_hello hello = {.depth = 0};
    uint8_t bytes[BUNDLE_HELLO_MAX];

    snprintf(hello.endpoint, sizeof hello.endpoint, "%s", f->events);
    bundle_begin(&f->out, WIRE_EVENT_MAX);
    assert_true(bundle_add(&f->out, BUNDLE_CONTROL, bytes, bundle_hello_write(&hello, bytes)));
    broker_sends(f, f->out.bytes, f->out.size);
}

/* The next frame of a rank that came to the broker. Hellos are answered on the way. False: none
 * has come yet. */
static bool broker_takes(struct fixture *f, struct bundle_entry *ret_entry)
{
    int size;

    for (;;) {
        while (bundle_next(&f->in, ret_entry)) {
            if (ret_entry->peer != BUNDLE_CONTROL)
                return true;
            broker_answers_hello(f);
        }
        if (zmq_recv(f->router, f->relay_id, 5, ZMQ_DONTWAIT) < 0)
            return false;
        size = zmq_recv(f->router, f->came, sizeof f->came, 0);
        assert_in_range(size, 1, WIRE_FRAME_MAX + BUNDLE_AROUND_BYTES); /* however many wait */
        assert_int_equal(bundle_open(f->came, (size_t)size, &f->in), BUNDLE_WHOLE);
        f->bundles++;
        f->met = true;
    }
}

static struct bundle_entry await_entry(struct fixture *f)
{
    struct bundle_entry entry;

    for (int i = 0; i < LOOKS; i++) {
        if (broker_takes(f, &entry))
            return entry;
        pass(f);
    }
    fail_msg("nothing came up");
    return entry;
}

static void await_reached(struct fixture *f)
{
    struct bundle_entry entry;

    for (int i = 0; i < LOOKS && relay_counters(f->relay)->bundles_down == 0; i++) {
        assert_false(broker_takes(f, &entry));
        pass(f);
    }
    assert_true(relay_counters(f->relay)->bundles_down > 0);
}

static void rank_says(struct fixture *f, int rank, const char *text)
{
    assert_true(zmq_send(f->ranks[rank], text, strlen(text), 0) >= 0);
}

/* What a rank hears next. */
static size_t rank_hears(struct fixture *f, void *socket, void *ret_bytes, size_t size)
{
    for (int i = 0; i < LOOKS; i++) {
        int got = zmq_recv(socket, ret_bytes, size, ZMQ_DONTWAIT);

        if (got >= 0)
            return (size_t)got;
        pass(f);
    }
    fail_msg("a rank heard nothing");
    return 0;
}

/* --- frames ----------------------------------------------------------------------------------- */

static void each_rank_gets_its_own_answer(void **state)
{
    struct fixture *f = *state;
    uint32_t numbers[RANKS];
    char text[32], heard[32];

    await_reached(f);
    for (int rank = 0; rank < RANKS; rank++) {
        struct bundle_entry entry;

        snprintf(text, sizeof text, "from %d", rank);
        rank_says(f, rank, text);
        entry = await_entry(f);
        assert_int_equal(entry.size, strlen(text));
        assert_memory_equal(entry.frame, text, entry.size);
        numbers[rank] = entry.peer;
    }
    bundle_begin(&f->out, WIRE_EVENT_MAX);
    for (int rank = RANKS - 1; rank >= 0; rank--) {
        snprintf(text, sizeof text, "to %d", rank);
        assert_true(bundle_add(&f->out, numbers[rank], (const uint8_t *)text, strlen(text)));
    }
    assert_true(bundle_add(&f->out, numbers[0] + 4096, (const uint8_t *)"x", 1));
    broker_sends(f, f->out.bytes, f->out.size);
    for (int rank = 0; rank < RANKS; rank++) {
        snprintf(text, sizeof text, "to %d", rank);
        assert_int_equal(rank_hears(f, f->ranks[rank], heard, sizeof heard), strlen(text));
        assert_memory_equal(heard, text, strlen(text));
        assert_true(zmq_recv(f->ranks[rank], heard, sizeof heard, ZMQ_DONTWAIT) < 0);
    }
    assert_int_equal(relay_counters(f->relay)->unknown, 1);
}

static void what_is_there_at_once_goes_in_one_bundle(void **state)
{
    struct fixture *f = *state;
    unsigned before;

    await_reached(f);
    for (int rank = 0; rank < RANKS; rank++) /* connected, so that all is there at once */
        rank_says(f, rank, "first");
    for (int rank = 0; rank < RANKS; rank++)
        await_entry(f);
    for (int i = 0; i < 25; i++)
        for (int rank = 0; rank < RANKS; rank++)
            rank_says(f, rank, "again");
    zmq_poll(NULL, 0, 50); /* on their way, in which no pass is made */
    before = f->bundles;
    for (int i = 0; i < 25 * RANKS; i++)
        await_entry(f);
    assert_true(f->bundles - before <= 25);
}

/* One rank sends as much as it can; each bundle has the words of the others nevertheless. */
static void a_rank_that_floods_does_not_hold_up_the_others(void **state)
{
    static uint8_t large[WIRE_FRAME_MAX / 2];
    struct fixture *f = *state;
    unsigned flooded = 0;

    await_reached(f);
    for (int rank = 0; rank < 2; rank++) {
        rank_says(f, rank, "first");
        await_entry(f);
    }
    for (int i = 0; i < FLOOD; i++)
        if (zmq_send(f->ranks[0], large, sizeof large, ZMQ_DONTWAIT) < 0)
            break;
    rank_says(f, 1, "small");
    for (struct bundle_entry entry = await_entry(f); entry.size != strlen("small");
         entry = await_entry(f))
        flooded++;
    assert_true(flooded <= 200); /* of those that were there before */
}

static void a_welcome_names_the_relays_own_events(void **state)
{
    static uint8_t frame[WIRE_FRAME_MAX], heard[WIRE_FRAME_MAX];
    struct fixture *f = *state;
    struct wire_msg welcome = {.type = WIRE_WELCOME}, read;
    struct bundle_entry entry;
    struct arena arena;
    size_t size;

    await_reached(f);
    rank_says(f, 2, "hello");
    entry = await_entry(f);
    welcome.u.welcome.events_endpoint = f->events;
    welcome.u.welcome.world_size = 4;
    size = wire_encode(&welcome, frame, sizeof frame);
    bundle_begin(&f->out, WIRE_EVENT_MAX);
    assert_true(bundle_add(&f->out, entry.peer, frame, size));
    broker_sends(f, f->out.bytes, f->out.size);
    size = rank_hears(f, f->ranks[2], heard, sizeof heard);
    arena_init(&arena, 1 << 16);
    assert_int_equal(wire_decode(heard, size, &arena, &read, &f->err), MUSTER_OK);
    assert_string_equal(read.u.welcome.events_endpoint, bus_events_endpoint(relay_bus(f->relay)));
    assert_int_equal(read.u.welcome.world_size, 4);
    arena_free(&arena);
}

static void nothing_is_sent_up_before_a_broker_answers(void **state)
{
    struct fixture *f = *state;

    rank_says(f, 0, "early");
    for (int i = 0; i < LOOKS && relay_counters(f->relay)->late == 0; i++) {
        int size;

        pass(f);
        if (zmq_recv(f->router, f->relay_id, 5, ZMQ_DONTWAIT) < 0)
            continue;
        size = zmq_recv(f->router, f->came, sizeof f->came, 0);
        assert_int_equal(bundle_open(f->came, (size_t)size, &f->in), BUNDLE_WHOLE);
        assert_int_equal(f->in.left, 1); /* its hello */
        assert_int_equal(f->came[BUNDLE_HEAD_BYTES + 4], BUNDLE_CONTROL);
        f->in.left = 0;
    }
    assert_int_equal(relay_counters(f->relay)->late, 1);
}

/* --- events ----------------------------------------------------------------------------------- */

static void subscribe(struct fixture *f, int rank, const char *topic)
{
    if (f->subs[rank] == NULL)
        f->subs[rank] = connected(f, ZMQ_SUB, bus_events_endpoint(relay_bus(f->relay)));
    assert_int_equal(zmq_setsockopt(f->subs[rank], ZMQ_SUBSCRIBE, topic, strlen(topic) + 1), 0);
}

/* What the relay says to the broker's publisher next; returns 1 for a topic, 0 for its end. */
static int said_topic(struct fixture *f, char said[TOPIC_BYTES])
{
    struct bundle_entry entry;

    for (int i = 0; i < LOOKS; i++) {
        if (zmq_recv(f->xpub, said, TOPIC_BYTES, ZMQ_DONTWAIT) > 0)
            return said[0];
        pass(f);
        assert_false(broker_takes(f, &entry));
    }
    fail_msg("no topic was asked for");
    return -1;
}

static void await_topic(struct fixture *f, const char *topic)
{
    char said[TOPIC_BYTES];

    assert_int_equal(said_topic(f, said), 1);
    assert_string_equal(said + 1, topic);
}

static void publish(struct fixture *f, const char *topic, const char *text)
{
    assert_true(zmq_send(f->xpub, topic, strlen(topic) + 1, ZMQ_SNDMORE) > 0);
    assert_true(zmq_send(f->xpub, text, strlen(text), 0) > 0);
}

static void rank_hears_event(struct fixture *f, int rank, const char *topic, const char *text)
{
    char heard[80];

    assert_int_equal(rank_hears(f, f->subs[rank], heard, sizeof heard), strlen(topic) + 1);
    assert_string_equal(heard, topic);
    assert_int_equal(rank_hears(f, f->subs[rank], heard, sizeof heard), strlen(text));
    assert_memory_equal(heard, text, strlen(text));
}

static void events_are_asked_for_once_and_go_to_who_listens(void **state)
{
    struct fixture *f = *state;
    char heard[80];

    await_reached(f);
    subscribe(f, 0, "a");
    await_topic(f, "a");
    subscribe(f, 1, "a");
    subscribe(f, 2, "b");
    await_topic(f, "b"); /* and "a" was not said again */
    publish(f, "a", "one");
    publish(f, "b", "two");
    publish(f, "c", "three");
    rank_hears_event(f, 2, "b", "two");
    rank_hears_event(f, 0, "a", "one");
    rank_hears_event(f, 1, "a", "one");
    for (int rank = 0; rank < 3; rank++)
        assert_true(zmq_recv(f->subs[rank], heard, sizeof heard, ZMQ_DONTWAIT) < 0);
    assert_int_equal(relay_counters(f->relay)->events, 2);
}

/* The broker's door closes a connection that says more. Jobs that are over make room. */
static void more_jobs_one_after_another_than_a_connection_has_topics(void **state)
{
    struct fixture *f = *state;
    char topic[16], said[TOPIC_BYTES];

    await_reached(f);
    for (int i = 0; i < 2 * GUARD_TOPICS_MAX; i++) {
        snprintf(topic, sizeof topic, "job%d", i);
        subscribe(f, 0, topic);
        if (i == GUARD_TOPICS_MAX)
            break; /* what follows is said over another connection, "job0" too */
        await_topic(f, topic);
    }
    for (int i = 0; i < LOOKS && relay_counters(f->relay)->topics == 0; i++)
        pass(f);
    assert_int_equal(relay_counters(f->relay)->topics, 1); /* all of them are still wanted */
    assert_int_equal(zmq_setsockopt(f->subs[0], ZMQ_UNSUBSCRIBE, "job3", sizeof "job3"), 0);
    while (said_topic(f, said) != 1 || strcmp(said + 1, topic) != 0)
        continue; /* the one that there was no room for */
    zmq_close(f->subs[0]);
    f->subs[0] = NULL;
    for (int i = 0; i < 200; i++)
        pass(f);
    subscribe(f, 1, "later");
    while (said_topic(f, said) != 1 || strcmp(said + 1, "later") != 0)
        continue; /* CANCEL of those before, by the end of their connection */
    assert_int_equal(relay_counters(f->relay)->topics, 1);
}

/* --- which broker ----------------------------------------------------------------------------- */

static void a_broker_that_knows_no_bundles_ends_the_relay_with_what_to_do(void **state)
{
    static uint8_t frame[WIRE_FRAME_MAX];
    struct fixture *f = *state;
    struct wire_msg ack = {.type = WIRE_ACK};
    enum muster_status status = MUSTER_OK;
    bool stop = false;
    size_t size;

    ack.u.ack.code = MUSTER_E_VERSION;
    ack.u.ack.text = "the frame is of version 257";
    size = wire_encode(&ack, frame, sizeof frame);
    for (int i = 0; i < LOOKS && status == MUSTER_OK; i++) {
        if (zmq_recv(f->router, f->relay_id, 5, ZMQ_DONTWAIT) == 5) {
            assert_true(zmq_recv(f->router, f->came, sizeof f->came, 0) > 0);
            broker_sends(f, frame, size);
        }
        status = relay_pass(f->relay, 1, &stop, &f->err);
    }
    assert_int_equal(status, MUSTER_E_VERSION);
    assert_non_null(strstr(f->err.text, "install the same version of musterd on both hosts"));
    assert_non_null(strstr(f->err.text, f->commands));
}

static void a_relay_that_reaches_itself_ends(void **state)
{
    struct fixture *f = *state;
    enum muster_status status = MUSTER_OK;
    char round_about[SCRATCH_PATH_MAX + 32];
    bool stop = false;

    relay_close(&f->relay);
    assert_int_equal(open_relay(f, f->listen), MUSTER_E_ARGUMENT);
    assert_non_null(strstr(f->err.text, "is where this relay itself listens"));
    snprintf(round_about, sizeof round_about, "ipc://%s//r.sock", f->dir);
    assert_int_equal(open_relay(f, round_about), MUSTER_OK);
    for (int i = 0; i < LOOKS && status == MUSTER_OK; i++)
        status = relay_pass(f->relay, 1, &stop, &f->err);
    assert_int_equal(status, MUSTER_E_ARGUMENT);
    assert_non_null(strstr(f->err.text, "leads back to this relay"));
}

static void the_next_address_is_tried_when_one_is_silent(void **state)
{
    struct fixture *f = *state;
    char addresses[300], other[128];
    void *silent = bound(f, ZMQ_ROUTER, other, sizeof other);

    relay_close(&f->relay);
    snprintf(addresses, sizeof addresses, "%s,%s", other, f->commands);
    assert_int_equal(open_relay(f, addresses), MUSTER_OK);
    await_reached(f);
    zmq_close(silent);
}

static void a_relay_listens_on_its_own_host_alone(void **state)
{
    struct fixture *f = *state;

    relay_close(&f->relay);
    snprintf(f->listen, sizeof f->listen, "tcp://0.0.0.0:7700");
    assert_int_equal(open_relay(f, f->commands), MUSTER_E_ARGUMENT);
    assert_non_null(strstr(f->err.text, "a relay asks nobody for a key"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_rank_gets_its_own_answer, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_there_at_once_goes_in_one_bundle, setup, teardown),
        cmocka_unit_test_setup_teardown(a_rank_that_floods_does_not_hold_up_the_others, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_welcome_names_the_relays_own_events, setup, teardown),
        cmocka_unit_test_setup_teardown(nothing_is_sent_up_before_a_broker_answers, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(events_are_asked_for_once_and_go_to_who_listens, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(more_jobs_one_after_another_than_a_connection_has_topics,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_broker_that_knows_no_bundles_ends_the_relay_with_what_to_do, setup, teardown),
        cmocka_unit_test_setup_teardown(a_relay_that_reaches_itself_ends, setup, teardown),
        cmocka_unit_test_setup_teardown(the_next_address_is_tried_when_one_is_silent, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_relay_listens_on_its_own_host_alone, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
