/* The relay's connection to the brokers above it: bundles and events over real sockets, and when
 * the next address is tried. Time is the caller's. */
#include "broker/bus_up.h"

#include "broker/bus_guard.h"
#include "tests/support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <zmq.h>

#define LOOKS 10000 /* of a ms each, at most */
#define START_MS 1000000

static char dir[SCRATCH_PATH_MAX], address[2][SCRATCH_PATH_MAX + 16], events[SCRATCH_PATH_MAX + 16];
static void *context, *router, *xpub;
static struct bus_up *up;
static struct muster_error err;

static void *bound(int type, const char *endpoint)
{
    void *socket = zmq_socket(context, type);

    assert_int_equal(zmq_setsockopt(socket, ZMQ_LINGER, &(int){0}, sizeof(int)), 0);
    assert_int_equal(zmq_bind(socket, endpoint), 0);
    return socket;
}

static void open_up(const char *addresses)
{
    struct brokers brokers;

    assert_int_equal(brokers_read(addresses, &brokers, &err), MUSTER_OK);
    assert_int_equal(bus_up_open(&brokers, NULL, -1, START_MS, &up, &err), MUSTER_OK);
}

static int setup(void **state)
{
    (void)state;
    scratch_make(dir);
    for (int i = 0; i < 2; i++)
        snprintf(address[i], sizeof address[i], "ipc://%s", scratch_path(dir, "%d", i));
    snprintf(events, sizeof events, "ipc://%s", scratch_path(dir, "events"));
    context = zmq_ctx_new();
    router = bound(ZMQ_ROUTER, address[0]);
    xpub = bound(ZMQ_XPUB, events);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    bus_up_close(&up);
    zmq_close(router);
    zmq_close(xpub);
    zmq_ctx_term(context);
    scratch_remove(dir);
    return 0;
}

/* The next message of a socket of the broker's; of ROUTER its second part. */
static int heard(void *socket, char *ret_bytes, int size)
{
    int got = -1;

    for (int i = 0; i < LOOKS && got < 0; i++) {
        got = zmq_recv(socket, ret_bytes, (size_t)size, ZMQ_DONTWAIT);
        if (got < 0)
            poll(NULL, 0, 1);
    }
    assert_true(got >= 0);
    return got;
}

static void send_until_it_goes(const char *text)
{
    for (int i = 0; i < LOOKS; i++) {
        if (bus_up_send(up, (const uint8_t *)text, strlen(text)))
            return;
        poll(NULL, 0, 1);
    }
    fail_msg("nobody is there");
}

static void await_ready(void)
{
    for (int i = 0; i < LOOKS && !bus_up_is_ready(up); i++) {
        struct pollfd fd = {.fd = bus_up_fd(up), .events = POLLIN};

        poll(&fd, 1, 1);
    }
    assert_true(bus_up_is_ready(up));
}

static void bundles_go_up_and_answers_come_down(void **state)
{
    char route[16], bytes[64];
    const uint8_t *got;
    size_t size;
    int route_size;

    (void)state;
    open_up(address[0]);
    send_until_it_goes("bundle");
    route_size = heard(router, route, sizeof route);
    assert_int_equal(heard(router, bytes, sizeof bytes), 6);
    assert_memory_equal(bytes, "bundle", 6);
    assert_null(bus_up_receive(up, &size));
    /* One of two parts is no message of a broker's. */
    zmq_send(router, route, (size_t)route_size, ZMQ_SNDMORE);
    zmq_send(router, "of two", 6, ZMQ_SNDMORE);
    zmq_send(router, "parts", 5, 0);
    zmq_send(router, route, (size_t)route_size, ZMQ_SNDMORE);
    zmq_send(router, "answer", 6, 0);
    await_ready();
    got = bus_up_receive(up, &size);
    for (int i = 0; i < LOOKS && got == NULL; i++) {
        poll(NULL, 0, 1);
        got = bus_up_receive(up, &size);
    }
    assert_int_equal(size, 6);
    assert_memory_equal(got, "answer", 6);
}

static void events_come_of_topics_that_are_wanted(void **state)
{
    char told[64], topic[JOB_NAME_MAX + 1];
    size_t size;
    const uint8_t *got = NULL;

    (void)state;
    open_up(address[0]);
    assert_true(bus_up_topic(up, "train", true));
    assert_int_equal(bus_up_heard(up, events, START_MS, &err), MUSTER_OK);
    assert_true(bus_up_is_reached(up));
    assert_int_equal(heard(xpub, told, sizeof told), 7); /* 1, the name and its end */
    assert_memory_equal(told, "\1train", 7);
    zmq_send(xpub, "train", 6, ZMQ_SNDMORE);
    zmq_send(xpub, "event", 5, 0);
    for (int i = 0; i < LOOKS && got == NULL; i++) {
        got = bus_up_event(up, topic, &size);
        if (got == NULL)
            poll(NULL, 0, 1);
    }
    assert_string_equal(topic, "train");
    assert_int_equal(size, 5);
    assert_memory_equal(got, "event", 5);
}

/* The broker's door closes a connection that names more of them. */
static void a_connection_names_no_more_topics_than_the_door_allows(void **state)
{
    char name[16];

    (void)state;
    open_up(address[0]);
    for (int i = 0; i < GUARD_TOPICS_MAX; i++) {
        snprintf(name, sizeof name, "job%d", i);
        assert_true(bus_up_topic(up, name, true));
    }
    assert_false(bus_up_topic(up, "one-more", true));
    assert_true(bus_up_topic(up, "job3", false)); /* makes room, by another connection */
    assert_true(bus_up_topic(up, "one-more", true));
    assert_false(bus_up_topic(up, "job3", true));
}

static void an_address_of_events_that_leads_nowhere_is_told(void **state)
{
    (void)state;
    open_up(address[0]);
    assert_int_equal(bus_up_heard(up, "nowhere", START_MS, &err), MUSTER_E_ARGUMENT);
    assert_non_null(strstr(err.text, "the broker sends events from \"nowhere\""));
}

static void silence_leads_to_the_next_address_and_back(void **state)
{
    char both[2 * SCRATCH_PATH_MAX + 40];
    const int64_t first_ms = 4 * RECONNECT_MS; /* for a first answer */

    (void)state;
    snprintf(both, sizeof both, "%s,%s", address[0], address[1]);
    open_up(both);
    assert_false(bus_up_tick(up, START_MS + first_ms - 1, &err));
    assert_string_equal(bus_up_address(up), address[0]);
    assert_true(bus_up_tick(up, START_MS + first_ms, &err));
    assert_string_equal(bus_up_address(up), address[1]);
    assert_int_equal(bus_up_heard(up, events, START_MS + first_ms, &err), MUSTER_OK);
    /* One that has answered is given longer. */
    assert_false(bus_up_tick(up, START_MS + first_ms + LOST_MS - 1, &err));
    assert_true(bus_up_is_reached(up));
    assert_true(bus_up_tick(up, START_MS + first_ms + LOST_MS, &err));
    assert_string_equal(bus_up_address(up), address[0]);
    assert_false(bus_up_is_reached(up));
}

static void a_single_address_keeps_its_connection(void **state)
{
    char route[2][16], bytes[16];

    (void)state;
    open_up(address[0]);
    send_until_it_goes("a");
    assert_int_equal(bus_up_heard(up, events, START_MS, &err), MUSTER_OK);
    assert_true(bus_up_tick(up, START_MS + LOST_MS, &err));
    assert_false(bus_up_is_reached(up));
    assert_false(bus_up_tick(up, START_MS + LOST_MS + 1, &err));
    send_until_it_goes("b");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(heard(router, route[i], sizeof route[i]), 5);
        heard(router, bytes, sizeof bytes);
    }
    assert_memory_equal(route[0], route[1], 5);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(bundles_go_up_and_answers_come_down),
        T(events_come_of_topics_that_are_wanted),
        T(a_connection_names_no_more_topics_than_the_door_allows),
        T(an_address_of_events_that_leads_nowhere_is_told),
        T(silence_leads_to_the_next_address_and_back),
        T(a_single_address_keeps_its_connection),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
