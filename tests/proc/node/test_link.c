/* The link, against sockets of a pretended broker. */
#include "node/link.h"

#include "node/clock.h"
#include "schema/brokers.h"
#include "schema/error.h"
#include "schema/limits.h"

#include "tests/support/storm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zmq.h>

#define DEADLINE_MS 5000
#define HANDSHAKE_WAIT_MS 5000 /* of a link with one address */

struct broker {
    void *context, *router, *xpub;
    char command[128], events[128];
};

static void bind_to_any(void *socket, char *ret_endpoint, size_t size)
{
    assert_non_null(socket);
    assert_int_equal(zmq_setsockopt(socket, ZMQ_RCVTIMEO, &(int){DEADLINE_MS}, sizeof(int)), 0);
    assert_int_equal(zmq_setsockopt(socket, ZMQ_LINGER, &(int){0}, sizeof(int)), 0);
    assert_int_equal(zmq_bind(socket, "tcp://127.0.0.1:*"), 0);
    assert_int_equal(zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, ret_endpoint, &size), 0);
}

static int setup(void **state)
{
    static struct broker b;

    b.context = zmq_ctx_new();
    b.router = zmq_socket(b.context, ZMQ_ROUTER);
    b.xpub = zmq_socket(b.context, ZMQ_XPUB);
    bind_to_any(b.router, b.command, sizeof b.command);
    bind_to_any(b.xpub, b.events, sizeof b.events);
    *state = &b;
    return 0;
}

static int teardown(void **state)
{
    struct broker *b = *state;

    zmq_close(b->router);
    zmq_close(b->xpub);
    return zmq_ctx_term(b->context);
}

static const uint8_t *await_frame(struct link *link, size_t *ret_size)
{
    const uint8_t *frame = link_receive(link, ret_size);

    for (int i = 0; frame == NULL && i < DEADLINE_MS / 10; i++) {
        link_wait(link, -1, 10);
        frame = link_receive(link, ret_size);
    }
    assert_non_null(frame);
    return frame;
}

static struct link *connected(struct broker *b, char *ret_route)
{
    struct link *link = NULL;
    char frame[16];
    int tries = 0;

    assert_int_equal(link_open(b->command, "words", &link, NULL), MUSTER_OK);
    while (!link_send(link, "hello", 5)) { /* not connected yet: dropped, never queued */
        assert_true(tries++ < DEADLINE_MS / 10);
        link_wait(link, -1, 10);
    }
    assert_int_equal(zmq_recv(b->router, ret_route, 5, 0), 5);
    assert_int_equal(zmq_recv(b->router, frame, sizeof frame, 0), 5);
    assert_memory_equal(frame, "hello", 5);
    return link;
}

static void frames_go_both_ways_and_odd_shapes_are_skipped(void **state)
{
    struct broker *b = *state;
    char route[5];
    struct link *link = connected(b, route);
    size_t size = 0;

    assert_int_equal(zmq_send(b->router, route, 5, ZMQ_SNDMORE), 5);
    assert_int_equal(zmq_send(b->router, "part", 4, ZMQ_SNDMORE), 4);
    assert_int_equal(zmq_send(b->router, "part", 4, 0), 4);
    assert_int_equal(zmq_send(b->router, route, 5, ZMQ_SNDMORE), 5);
    assert_int_equal(zmq_send(b->router, "whole", 5, 0), 5);
    assert_memory_equal(await_frame(link, &size), "whole", 5);
    assert_int_equal(size, 5);
    assert_null(link_receive(link, &size));
    link_close(&link);
    assert_null(link);
}

static void publish(struct broker *b, const char *topic, size_t topic_size, const char *text)
{
    assert_true(zmq_send(b->xpub, topic, topic_size, ZMQ_SNDMORE) >= 0);
    assert_true(zmq_send(b->xpub, text, strlen(text), 0) >= 0);
}

static void subscribe(struct broker *b, struct link *link)
{
    char frame[16];

    assert_int_equal(link_subscribe(link, b->events, NULL), MUSTER_OK);
    assert_int_equal(zmq_recv(b->xpub, frame, sizeof frame, 0), 7);
    assert_memory_equal(frame, "\1words", 7);
}

/* One that is not known to stand is begun again after HANDSHAKE_MS (5 s). */
static void a_connection_that_stands_is_known_and_kept(void **state)
{
    struct broker *b = *state;
    char route[5];
    struct link *link = connected(b, route);

    for (int waits = 0; !link_is_up(link); waits++) {
        assert_true(waits < 3);
        link_wait(link, -1, 1000);
    }
    subscribe(b, link);
    link_wait(link, -1, 10);
    assert_true(link_is_up(link));
    link_close(&link);
}

static void events_of_the_own_job_arrive_and_no_others(void **state)
{
    struct broker *b = *state;
    char route[5];
    struct link *link = connected(b, route);
    size_t size = 0;

    subscribe(b, link);
    publish(b, "words2", 7, "of another job");
    assert_true(zmq_send(b->xpub, "words", 6, 0) >= 0); /* no frame behind the topic */
    publish(b, "words", 6, "event");
    assert_memory_equal(await_frame(link, &size), "event", 5);
    assert_null(link_receive(link, &size));
    link_close(&link);
}

#ifdef MUSTER_FAIL_POINTS
static void the_test_switch_loses_every_second_event(void **state)
{
    struct broker *b = *state;
    char route[5];
    struct link *link;
    size_t size = 0;

    setenv("MUSTER_TEST_SUB_DROP", "2", 1);
    link = connected(b, route);
    unsetenv("MUSTER_TEST_SUB_DROP");
    subscribe(b, link);
    publish(b, "words", 6, "1");
    publish(b, "words", 6, "2");
    publish(b, "words", 6, "3");
    assert_memory_equal(await_frame(link, &size), "1", 1);
    assert_memory_equal(await_frame(link, &size), "3", 1);
    link_close(&link);
}
#endif

/* Binds where another socket was bound a moment ago. */
static void bind_again(void *socket, const char *endpoint)
{
    int tries = 0;

    while (zmq_bind(socket, endpoint) != 0) {
        assert_true(tries++ < DEADLINE_MS);
        zmq_poll(NULL, 0, 1);
    }
}

static void a_broker_that_comes_back_is_found_again_without_touching_random(void **state)
{
    struct broker *b = *state;
    char route[5], frame[16];
    struct link *link = connected(b, route);
    size_t size = 0;
    long expected;
    int tries = 0;

    subscribe(b, link);
    srandom(11);
    expected = random();
    srandom(11);
    zmq_close(b->router);
    zmq_close(b->xpub);
    for (int i = 0; i < 50; i++) /* half a second without a broker: retries, in vain */
        link_wait(link, -1, 10);
    assert_false(link_send(link, "lost", 4));
    assert_int_equal(random(), expected);
    b->router = zmq_socket(b->context, ZMQ_ROUTER);
    b->xpub = zmq_socket(b->context, ZMQ_XPUB);
    assert_int_equal(zmq_setsockopt(b->router, ZMQ_RCVTIMEO, &(int){DEADLINE_MS}, sizeof(int)), 0);
    bind_again(b->router, b->command);
    bind_again(b->xpub, b->events);
    srandom(11); /* the broker's ROUTER has used it */
    while (!link_send(link, "again", 5)) {
        assert_true(tries++ < DEADLINE_MS / 10);
        link_wait(link, -1, 10);
    }
    assert_int_equal(zmq_recv(b->router, route, 5, 0), 5);
    assert_int_equal(zmq_recv(b->router, frame, sizeof frame, 0), 5);
    assert_memory_equal(frame, "again", 5);
    for (tries = 0; zmq_recv(b->xpub, frame, sizeof frame, ZMQ_DONTWAIT) != 7; tries++) {
        assert_true(tries < DEADLINE_MS / 10);
        link_wait(link, -1, 10);
    }
    publish(b, "words", 6, "event");
    assert_memory_equal(await_frame(link, &size), "event", 5);
    assert_int_equal(random(), expected);
    link_close(&link);
}

/* A host that takes no connection is tried at an even pace, so that it is found soon when it is
 * back. */
static void a_broker_that_is_away_is_tried_several_times_a_second(void **state)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), tries = 0;
    struct link *link = NULL;
    struct muster_error err;
    int64_t began = clock_ms(CLOCK_MONOTONIC), took = 0;
    char endpoint[64];

    (void)state;
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(listener, 8), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    snprintf(endpoint, sizeof endpoint, "tcp://127.0.0.1:%d", ntohs(address.sin_port));
    assert_int_equal(link_open(endpoint, "words", &link, &err), MUSTER_OK);
    while (tries < 10) {
        int fd = accept(listener, NULL, NULL);

        if (fd >= 0) {
            tries++;
            close(fd);
        }
        link_wait(link, -1, 10);
        took = clock_ms(CLOCK_MONOTONIC) - began;
        assert_true(took < 3 * DEADLINE_MS);
    }
    assert_in_range(took, 9 * RECONNECT_MS * 4 / 5,
                    8000); /* doubling to 2 s it took more than 10 s */
    assert_int_equal(link_connections(link), 0);
    link_close(&link);
    close(listener);
}

/* --- several addresses ------------------------------------------------------------------------ */

/* Nobody listens there, and nobody will: the port stays taken. */
static int shut_port(char ret_endpoint[64])
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    snprintf(ret_endpoint, 64, "tcp://127.0.0.1:%d", ntohs(address.sin_port));
    return fd;
}

static int64_t until_said_ms(struct link *link, void *router, char *ret_route, int64_t most_ms)
{
    int64_t began = clock_ms(CLOCK_MONOTONIC), took = 0;
    char frame[16];

    while (zmq_recv(router, ret_route, 5, ZMQ_DONTWAIT) != 5) {
        link_send(link, "hello", 5);
        link_wait(link, -1, 10);
        took = clock_ms(CLOCK_MONOTONIC) - began;
        assert_true(took < most_ms);
    }
    assert_int_equal(zmq_recv(router, frame, sizeof frame, 0), 5);
    return took;
}

/* As a host whose process is frozen: the kernel takes the connection, and nobody greets. */
static void an_address_that_refuses_or_does_not_greet_is_left_for_the_next(void **state)
{
    struct broker *b = *state;
    char shut[64], frozen[64], list[300], route[5];
    int refuses = shut_port(shut), stands = shut_port(frozen);
    struct link *link = NULL;

    assert_int_equal(listen(stands, 8), 0);
    snprintf(list, sizeof list, "%s,%s,%s", shut, frozen, b->command);
    assert_int_equal(link_open(list, "words", &link, NULL), MUSTER_OK);
    assert_in_range(until_said_ms(link, b->router, route, DEADLINE_MS), 0, HANDSHAKE_WAIT_MS - 1);
    link_close(&link);
    close(refuses);
    close(stands);
}

/* It shook hands, and says no more than that. */
static void a_broker_that_is_not_heard_is_left_and_its_events_with_it(void **state)
{
    struct broker *b = *state, other;
    char list[300], route[5];
    struct link *link = NULL;
    int64_t began;
    size_t size;

    other.router = zmq_socket(b->context, ZMQ_ROUTER);
    other.xpub = zmq_socket(b->context, ZMQ_XPUB);
    bind_to_any(other.router, other.command, sizeof other.command);
    bind_to_any(other.xpub, other.events, sizeof other.events);
    snprintf(list, sizeof list, "%s,%s", b->command, other.command);
    assert_int_equal(link_open(list, "words", &link, NULL), MUSTER_OK);
    began = clock_ms(CLOCK_MONOTONIC);
    until_said_ms(link, b->router, route, DEADLINE_MS);
    subscribe(b, link);
    assert_in_range(until_said_ms(link, other.router, route, 2 * LOST_MS), LOST_MS * 3 / 4,
                    2 * LOST_MS);
    assert_true(clock_ms(CLOCK_MONOTONIC) - began >= LOST_MS);
    publish(b, "words", 6, "of the other broker");
    subscribe(&other, link);
    publish(&other, "words", 6, "event");
    assert_memory_equal(await_frame(link, &size), "event", 5);
    assert_null(link_receive(link, &size));
    link_close(&link);
    zmq_close(other.router);
    zmq_close(other.xpub);
}

static void a_broker_that_is_heard_keeps_the_link(void **state)
{
    struct broker *b = *state;
    char shut[64], list[300], route[5];
    int refuses = shut_port(shut);
    struct link *link = NULL;
    int64_t until;

    snprintf(list, sizeof list, "%s,%s", b->command, shut);
    assert_int_equal(link_open(list, "words", &link, NULL), MUSTER_OK);
    until_said_ms(link, b->router, route, DEADLINE_MS);
    until = clock_ms(CLOCK_MONOTONIC) + LOST_MS + LOST_MS / 2;
    while (clock_ms(CLOCK_MONOTONIC) < until) {
        link_wait(link, -1, 100);
        link_heard(link);
    }
    assert_int_equal(link_connections(link), 1);
    assert_true(link_is_up(link));
    link_close(&link);
    close(refuses);
}

static void a_wait_ends_when_the_descriptor_wakes_it(void **state)
{
    struct broker *b = *state;
    int fd = eventfd(1, EFD_CLOEXEC);
    struct link *link = NULL;

    assert_int_equal(link_open(b->command, "words", &link, NULL), MUSTER_OK);
    link_wait(link, fd, 60000); /* the test's own timeout is shorter */
    link_close(&link);
    assert_int_equal(close(fd), 0);
}

/* A profiler's timer, a child that ended: ZeroMQ's calls return EINTR then, also those that do not
 * wait. */
static void signals_break_no_connection_that_is_made(void **state)
{
    struct broker *b = *state;
    struct storm *storm = storm_begin(NULL);

    for (int i = 0; i < 300; i++) {
        struct link *link = NULL;
        struct muster_error err = {0};

        if (link_open(b->command, "words", &link, &err) != MUSTER_OK ||
            link_subscribe(link, b->events, &err) != MUSTER_OK)
            fail_msg("%s", err.text);
        link_close(&link);
    }
    storm_end(&storm);
}

static void a_wrong_address_is_named(void **state)
{
    static const char *const wrong[] = {"", "host:7700", "tcp://", "tcp://host", "udp://host:1"};
    struct link *link = NULL;
    struct muster_error err;

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(link_open(wrong[i], "words", &link, &err), MUSTER_E_ARGUMENT);
        assert_non_null(strstr(err.text, wrong[i]));
        assert_non_null(strstr(err.text, "tcp://HOST:PORT"));
        assert_null(link);
    }
}

static void too_few_descriptors_are_an_error_and_no_abort(void **state)
{
    struct rlimit limit, low;
    struct link *link = NULL;
    struct muster_error err;
    int next = open("/dev/null", O_RDONLY | O_CLOEXEC);

    (void)state;
    assert_int_equal(close(next), 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    for (rlim_t spare = 0; spare < 8; spare++) {
        low = (struct rlimit){.rlim_cur = (rlim_t)next + spare, .rlim_max = limit.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
        assert_int_equal(link_open("tcp://127.0.0.1:1", "words", &link, &err), MUSTER_E_IO);
        assert_non_null(strstr(err.text, "ulimit -n"));
    }
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void events_without_a_host_are_at_the_brokers(void **state)
{
    static const struct {
        const char *command, *events, *expected; /* NULL: cannot be */
    } cases[] = {
        {"tcp://10.0.0.1:7700", "tcp://0.0.0.0:7701", "tcp://10.0.0.1:7701"},
        {"tcp://head:7700", "tcp://*:7701", "tcp://head:7701"},
        {"tcp://[fe80::1]:7700", "tcp://[::]:7701", "tcp://[fe80::1]:7701"},
        {"tcp://head:7700", "tcp://other:7701", "tcp://other:7701"},
        {"tcp://head:7700", "ipc:///run/x", "ipc:///run/x"},
        {"ipc:///run/m", "ipc:///run/x", "ipc:///run/x"},
        {"ipc:///run/m", "tcp://0.0.0.0:7701", NULL},
        {"tcp://head:7700", "nonsense", NULL},
        {"tcp://head:7700", "", NULL},
    };
    char endpoint[ENDPOINT_MAX + 1];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool ok = brokers_events_at(cases[i].command, cases[i].events, endpoint);

        assert_int_equal(ok, cases[i].expected != NULL);
        if (ok)
            assert_string_equal(endpoint, cases[i].expected);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(frames_go_both_ways_and_odd_shapes_are_skipped),
        TEST(a_connection_that_stands_is_known_and_kept),
        TEST(events_of_the_own_job_arrive_and_no_others),
#ifdef MUSTER_FAIL_POINTS
        TEST(the_test_switch_loses_every_second_event),
#endif
        TEST(a_broker_that_comes_back_is_found_again_without_touching_random),
        TEST(a_broker_that_is_away_is_tried_several_times_a_second),
        TEST(an_address_that_refuses_or_does_not_greet_is_left_for_the_next),
        TEST(a_broker_that_is_not_heard_is_left_and_its_events_with_it),
        TEST(a_broker_that_is_heard_keeps_the_link),
        TEST(a_wait_ends_when_the_descriptor_wakes_it),
        TEST(signals_break_no_connection_that_is_made),
        TEST(a_wrong_address_is_named),
        TEST(too_few_descriptors_are_an_error_and_no_abort),
        TEST(events_without_a_host_are_at_the_brokers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
