/* The broker's bus against real sockets that speak as relays: who is behind them, and that nobody
 * there gets or says what is another's. */
#include "broker/bus.h"

#include "schema/error.h"
#include "schema/wire/bundle.h"
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

#define DEADLINE_MS 5000

struct fixture {
    char dir[SCRATCH_PATH_MAX];
    struct bus *bus;
    void *context;
    void *first, *second, *plain; /* two relays and a node */
    struct bundle bundle;
};

static void *connect_to(const struct fixture *f, int type, const char *endpoint)
{
    void *socket = zmq_socket(f->context, type);

    assert_non_null(socket);
    assert_int_equal(zmq_setsockopt(socket, ZMQ_RCVTIMEO, &(int){DEADLINE_MS}, sizeof(int)), 0);
    assert_int_equal(zmq_setsockopt(socket, ZMQ_LINGER, &(int){0}, sizeof(int)), 0);
    assert_int_equal(zmq_connect(socket, endpoint), 0);
    return socket;
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    char listen[SCRATCH_PATH_MAX + 32];
    struct bus_options options = {.listen = listen, .db = "x"};
    struct muster_error err;

    scratch_make(f->dir);
    snprintf(listen, sizeof listen, "ipc://%s/b.sock", f->dir);
    if (bus_open(&options, &f->bus, &err) != MUSTER_OK)
        fail_msg("%s", err.text);
    f->context = zmq_ctx_new();
    f->first = connect_to(f, ZMQ_DEALER, bus_command_endpoint(f->bus));
    f->second = connect_to(f, ZMQ_DEALER, bus_command_endpoint(f->bus));
    f->plain = connect_to(f, ZMQ_DEALER, bus_command_endpoint(f->bus));
    bundle_begin(&f->bundle, WIRE_FRAME_MAX);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    zmq_close(f->first);
    zmq_close(f->second);
    zmq_close(f->plain);
    zmq_ctx_term(f->context);
    bus_close(&f->bus);
    scratch_remove(f->dir);
    free(f);
    return 0;
}

static void add(struct fixture *f, uint32_t peer, const char *text)
{
    assert_true(bundle_add(&f->bundle, peer, (const uint8_t *)text, strlen(text)));
}

static void say(struct fixture *f, void *socket)
{
    assert_true(zmq_send(socket, f->bundle.bytes, f->bundle.size, 0) >= 0);
    bundle_begin(&f->bundle, WIRE_FRAME_MAX);
}

/* What the bus gives next, within the deadline. */
static enum bus_received receive(struct fixture *f, struct bus_frame *ret_frame)
{
    for (int i = 0; i < DEADLINE_MS / 10; i++) {
        enum bus_received received = bus_receive(f->bus, ret_frame);

        if (received != BUS_NOTHING)
            return received;
        bus_wait(f->bus, -1, 10);
    }
    fail_msg("nothing came");
    return BUS_NOTHING;
}

/* The next frame says this; returns whom to answer. */
static uint64_t takes(struct fixture *f, const char *text)
{
    struct bus_frame frame;

    assert_int_equal(receive(f, &frame), BUS_FRAME);
    assert_int_equal(frame.size, strlen(text));
    assert_memory_equal(frame.data, text, frame.size);
    assert_int_not_equal(frame.route, 0);
    return frame.route;
}

static void answer(struct fixture *f, uint64_t route, const char *text)
{
    assert_true(bus_send(f->bus, route, (const uint8_t *)text, strlen(text)));
}

/* The next message at a relay, opened. */
static struct bundle_reader hears(void *socket, uint8_t *bytes)
{
    struct bundle_reader reader = {0};
    int size = zmq_recv(socket, bytes, BUNDLE_BYTES_MAX, 0);

    assert_true(size > 0);
    assert_int_equal(bundle_open(bytes, (size_t)size, &reader), BUNDLE_WHOLE);
    return reader;
}

static void next_is(struct bundle_reader *reader, uint32_t peer, const char *text)
{
    struct bundle_entry entry;

    assert_true(bundle_next(reader, &entry));
    assert_int_equal(entry.peer, peer);
    assert_int_equal(entry.size, strlen(text));
    assert_memory_equal(entry.frame, text, entry.size);
}

static void ends(struct bundle_reader *reader)
{
    struct bundle_entry entry;

    assert_false(bundle_next(reader, &entry));
}

/* Two relays give the same numbers, since each counts for itself. */
static void each_answer_finds_who_asked(void **state)
{
    static uint8_t bytes[BUNDLE_BYTES_MAX];
    struct fixture *f = *state;
    struct bundle_reader reader;
    uint64_t a, b, c, d, e;
    char text[16];

    add(f, 2, "a");
    add(f, 3, "b");
    say(f, f->first);
    a = takes(f, "a");
    b = takes(f, "b");
    add(f, 2, "c");
    add(f, 3, "d");
    say(f, f->second);
    c = takes(f, "c");
    d = takes(f, "d");
    assert_int_equal(zmq_send(f->plain, "e", 1, 0), 1);
    e = takes(f, "e");
    assert_true(a != b && a != c && b != d && c != d && e != a && e != b && e != c && e != d);

    answer(f, b, "to b");
    answer(f, a, "to a");
    answer(f, e, "to e");
    answer(f, d, "to d");
    answer(f, c, "to c");
    answer(f, a, "to a again");
    bus_flush(f->bus);
    reader = hears(f->first, bytes);
    next_is(&reader, 3, "to b");
    next_is(&reader, 2, "to a");
    ends(&reader);
    reader = hears(f->first, bytes);
    next_is(&reader, 2, "to a again");
    ends(&reader);
    reader = hears(f->second, bytes);
    next_is(&reader, 3, "to d");
    next_is(&reader, 2, "to c");
    ends(&reader);
    assert_int_equal(zmq_recv(f->plain, text, sizeof text, 0), 4);
    assert_memory_equal(text, "to e", 4);
}

/* So the core may remember it as the place of a node. */
static void a_peer_keeps_its_route(void **state)
{
    struct fixture *f = *state;
    uint64_t route;

    add(f, UINT32_MAX, "a");
    say(f, f->first);
    route = takes(f, "a");
    add(f, 2, "b");
    add(f, UINT32_MAX, "c");
    say(f, f->first);
    assert_true(takes(f, "b") != route);
    assert_true(takes(f, "c") == route);
}

static void of_a_bundle_that_is_damaged_nothing_is_taken(void **state)
{
    struct fixture *f = *state;
    struct bus_frame frame;

    add(f, 2, "first half");
    add(f, 3, "second half");
    assert_true(zmq_send(f->first, f->bundle.bytes, f->bundle.size - 1, 0) >= 0);
    bundle_begin(&f->bundle, WIRE_FRAME_MAX);
    assert_int_equal(receive(f, &frame), BUS_DROPPED);
    assert_int_equal(bus_counters(f->bus)->dropped_shape, 1);
    add(f, 2, "whole");
    say(f, f->first);
    takes(f, "whole");
    assert_int_equal(bus_receive(f->bus, &frame), BUS_NOTHING);
}

static void what_does_not_fit_into_one_bundle_goes_in_two(void **state)
{
    static uint8_t bytes[BUNDLE_BYTES_MAX], large[WIRE_FRAME_MAX];
    struct fixture *f = *state;
    struct bundle_reader reader;
    struct bundle_entry entry;
    uint64_t a, b;

    add(f, 2, "a");
    add(f, 3, "b");
    say(f, f->first);
    a = takes(f, "a");
    b = takes(f, "b");
    assert_true(bus_send(f->bus, a, large, sizeof large));
    assert_true(bus_send(f->bus, b, large, sizeof large));
    bus_flush(f->bus);
    for (uint32_t peer = 2; peer <= 3; peer++) {
        reader = hears(f->first, bytes);
        assert_true(bundle_next(&reader, &entry));
        assert_int_equal(entry.peer, peer);
        assert_int_equal(entry.size, sizeof large);
        ends(&reader);
    }
}

/* ... although a socket takes a little more, for a bundle's sake. */
static void a_frame_that_is_too_long_is_dropped(void **state)
{
    static const uint8_t large[WIRE_FRAME_MAX + 1];
    struct fixture *f = *state;
    struct bus_frame frame;

    assert_true(zmq_send(f->plain, large, sizeof large, 0) >= 0);
    assert_int_equal(receive(f, &frame), BUS_DROPPED);
    assert_int_equal(bus_counters(f->bus)->dropped_shape, 1);
    assert_true(zmq_send(f->plain, large, WIRE_FRAME_MAX, 0) >= 0);
    assert_int_equal(receive(f, &frame), BUS_FRAME);
}

static void a_bundle_of_another_version_comes_as_a_frame_to_be_refused(void **state)
{
    static const uint8_t newer[] = {0xdc, 0, 1, 0xcd, 1, 2};
    struct fixture *f = *state;
    struct bus_frame frame;

    assert_true(zmq_send(f->first, newer, sizeof newer, 0) >= 0);
    assert_int_equal(receive(f, &frame), BUS_FRAME);
    assert_int_equal(frame.size, sizeof newer);
}

/* --- hello ------------------------------------------------------------------------------------ */

static void say_hello(struct fixture *f, uint64_t sender)
{
    struct bundle_hello hello = {.sender = sender};
    uint8_t bytes[BUNDLE_HELLO_MAX];

    assert_true(bundle_add(&f->bundle, BUNDLE_CONTROL, bytes, bundle_hello_write(&hello, bytes)));
    say(f, f->first);
}

static void a_hello_is_answered_with_the_events_and_the_depth(void **state)
{
    static uint8_t bytes[BUNDLE_BYTES_MAX];
    struct fixture *f = *state;
    struct bundle_reader reader;
    struct bundle_entry entry;
    struct bundle_hello hello;
    struct bus_frame frame;

    for (uint32_t depth = 0; depth <= 1; depth++) {
        say_hello(f, 5);
        assert_int_equal(receive(f, &frame), BUS_DROPPED);
        bus_flush(f->bus);
        reader = hears(f->first, bytes);
        assert_true(bundle_next(&reader, &entry));
        assert_int_equal(entry.peer, BUNDLE_CONTROL);
        assert_true(bundle_hello_read(entry.frame, entry.size, &hello));
        assert_string_equal(hello.endpoint, bus_events_endpoint(f->bus));
        assert_int_equal(hello.depth, depth);
        bus_is_relay(f->bus, 7, depth + 1);
    }
    assert_false(bus_met_itself(f->bus));
    say_hello(f, 7);
    assert_int_equal(receive(f, &frame), BUS_DROPPED);
    assert_true(bus_met_itself(f->bus));
}

/* So two relays that know no broker, only each other, do not take each other for one. */
static void a_relay_without_a_broker_answers_nobody(void **state)
{
    static uint8_t bytes[BUNDLE_BYTES_MAX];
    const uint32_t depths[] = {0, BUNDLE_DEPTH_MAX + 1};
    struct fixture *f = *state;
    struct bundle_reader reader;
    struct bus_frame frame;
    uint64_t route;

    for (size_t i = 0; i < 2; i++) {
        bus_is_relay(f->bus, 7, depths[i]);
        say_hello(f, 5);
        assert_int_equal(receive(f, &frame), BUS_DROPPED);
        add(f, 2, "a");
        say(f, f->first);
        route = takes(f, "a");
        answer(f, route, "to a");
        bus_flush(f->bus);
        reader = hears(f->first, bytes); /* the hello's answer would have come before */
        next_is(&reader, 2, "to a");
        ends(&reader);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_answer_finds_who_asked, setup, teardown),
        cmocka_unit_test_setup_teardown(a_peer_keeps_its_route, setup, teardown),
        cmocka_unit_test_setup_teardown(of_a_bundle_that_is_damaged_nothing_is_taken, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(what_does_not_fit_into_one_bundle_goes_in_two, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_frame_that_is_too_long_is_dropped, setup, teardown),
        cmocka_unit_test_setup_teardown(a_bundle_of_another_version_comes_as_a_frame_to_be_refused,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_hello_is_answered_with_the_events_and_the_depth, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_relay_without_a_broker_answers_nobody, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
