/* What a connection may send before libzmq takes memory for it. */
#include "broker/bus_guard.h"
#include "broker/bus_peers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define WORDS_MAX 4096
#define FLAG_LONG_ONLY 2
#define CONNECTIONS 32 /* descriptors from here on are none */

static struct words {
    uint8_t bytes[WORDS_MAX + WIRE_FRAME_MAX];
    size_t size;
} said;

static void say(const void *bytes, size_t size)
{
    memcpy(said.bytes + said.size, bytes, size);
    said.size += size;
}

static void greet(void)
{
    uint8_t greeting[64] = {[0] = 0xff, [9] = 0x7f, [10] = 3, [12] = 'N'};

    said.size = 0;
    say(greeting, sizeof greeting);
    say("\4\5\5READY", 7);
}

static void say_long(uint8_t flags, uint64_t size)
{
    uint8_t head[9] = {flags};

    for (int i = 0; i < 8; i++)
        head[1 + i] = (uint8_t)(size >> (56 - 8 * i));
    say(head, sizeof head);
}

/* In one piece and byte by byte it is the same. */
static bool is_taken(void)
{
    struct bus_guard_stream whole = {0}, bytes = {0};
    bool taken = bus_guard_stream_take(&whole, said.bytes, said.size);
    bool each = true;

    for (size_t i = 0; i < said.size && each; i++)
        each = bus_guard_stream_take(&bytes, said.bytes + i, 1);
    assert_int_equal(taken, each);
    if (taken)
        assert_memory_equal(&whole, &bytes, sizeof whole);
    return taken;
}

static void messages_of_one_part_are_taken(void **state)
{
    static const uint8_t body[WIRE_FRAME_MAX + WIRE_SEAL] = {0x94};

    (void)state;
    greet();
    for (int i = 0; i < 100; i++)
        say("\0\3\x94\1\1", 5);
    say("\0\0", 2); /* an empty one */
    say_long(2, WIRE_FRAME_MAX + WIRE_SEAL);
    say(body, sizeof body);
    say("\0\1\x90", 3);
    assert_true(is_taken());
}

static void a_part_that_is_not_the_last_is_not_taken(void **state)
{
    (void)state;
    greet();
    say("\1", 1);
    assert_false(is_taken());
    greet();
    say("\0\1\x90\3", 4); /* after a whole message; not even its length is awaited */
    assert_false(is_taken());
}

static void a_frame_beyond_the_limit_is_not_taken(void **state)
{
    (void)state;
    greet();
    say_long(2, WIRE_FRAME_MAX + WIRE_SEAL + 1);
    assert_false(is_taken());
    greet();
    say_long(2, UINT64_MAX);
    assert_false(is_taken());
}

static void a_long_command_is_not_taken(void **state)
{
    (void)state;
    greet();
    say_long(6, GUARD_COMMAND_BYTES);
    assert_true(is_taken());
    greet();
    say_long(6, GUARD_COMMAND_BYTES + 1);
    assert_false(is_taken());
}

static void older_protocols_are_not_taken(void **state)
{
    (void)state;
    said.size = 0;
    say("\1\0", 2); /* ZMTP 1 */
    assert_false(is_taken());
    greet();
    said.bytes[10] = 1; /* ZMTP 2 */
    assert_false(is_taken());
    greet();
    said.bytes[9] = 0;
    assert_false(is_taken());
}

static void a_few_topics_are_taken_and_no_more(void **state)
{
    (void)state;
    greet();
    for (int i = 0; i < GUARD_TOPICS_MAX; i += 2) {
        say("\0\4\1job", 6);
        say("\4\015\011SUBSCRIBEjob", 15);
    }
    assert_true(is_taken());
    say("\4\012\6CANCELjob", 12);
    assert_false(is_taken());
}

static void a_topic_is_no_longer_than_a_jobs_name(void **state)
{
    uint8_t topic[GUARD_TOPIC_BYTES + 1] = {1};

    (void)state;
    greet();
    say((uint8_t[]){0, GUARD_TOPIC_BYTES}, 2);
    say(topic, GUARD_TOPIC_BYTES);
    assert_true(is_taken());
    greet();
    say((uint8_t[]){0, GUARD_TOPIC_BYTES + 1}, 2);
    say(topic, GUARD_TOPIC_BYTES + 1);
    assert_false(is_taken());
}

static void other_commands_are_no_topics(void **state)
{
    (void)state;
    greet();
    for (int i = 0; i < 4 * GUARD_TOPICS_MAX; i++)
        say("\4\5\4PING", 7);
    assert_true(is_taken());
}

static int start(void **state)
{
    (void)state;
    return bus_guard_start(2 * CONNECTIONS) ? 0 : -1;
}

static int listen_somewhere(struct sockaddr_un *place, socklen_t *size)
{
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);

    *place = (struct sockaddr_un){.sun_family = AF_UNIX}; /* the kernel names it */
    *size = sizeof *place;
    assert_int_equal(bind(listener, (struct sockaddr *)place, sizeof place->sun_family), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)place, size), 0);
    assert_int_equal(listen(listener, 1), 0);
    return listener;
}

static bool is_judged(int fd, int peer)
{
    struct bus_guard_counters before, after;
    char byte;

    bus_guard_counters(&before);
    assert_int_equal(write(peer, "x", 1), 1);
    ssize_t got = bus_guard_recv(fd, &byte, 1, 0);
    bus_guard_counters(&after);
    assert_int_equal(got, after.hostile == before.hostile ? 1 : 0);
    return after.hostile > before.hostile;
}

/* Nor is what the broker connects to, a database: it speaks another protocol. */
static void what_is_closed_is_counted(void **state)
{
    struct sockaddr_un place;
    socklen_t size;
    int listener = listen_somewhere(&place, &size), peer = socket(AF_UNIX, SOCK_STREAM, 0), pair[2];

    (void)state;
    assert_int_equal(connect(peer, (struct sockaddr *)&place, size), 0);
    int connection = bus_guard_accept(listener, NULL, NULL, 0);
    assert_int_equal(dup2(connection, CONNECTIONS), CONNECTIONS);
    assert_false(is_judged(CONNECTIONS, peer)); /* none of its connections */
    assert_true(is_judged(connection, peer));
    bus_guard_close(connection);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    assert_int_equal(pair[0], connection); /* the descriptor of one that was accepted */
    assert_false(is_judged(pair[0], pair[1]));
    close(CONNECTIONS);
    close(listener);
    close(peer);
    close(pair[0]);
    close(pair[1]);
}

/* The kernel gives a new connection the descriptor of one that was closed. */
static void connection_at_a_local_socket_is_judged_from_its_own_first_byte(void **state)
{
    struct sockaddr_un place;
    socklen_t size;
    int listener = listen_somewhere(&place, &size), first = -1;
    uint8_t got[WORDS_MAX];

    (void)state;
    for (int i = 0; i < 3; i++) {
        int peer = socket(AF_UNIX, SOCK_STREAM, 0), connection;

        assert_int_equal(connect(peer, (struct sockaddr *)&place, size), 0);
        connection = bus_guard_accept(listener, NULL, NULL, 0);
        first = i == 0 ? connection : first;
        assert_int_equal(connection, first);
        greet();
        assert_int_equal(write(peer, said.bytes, said.size), said.size);
        assert_int_equal(bus_guard_recv(connection, got, sizeof got, 0), said.size);
        assert_int_equal(write(peer, "\0\5ha", 4), 4); /* and it ends within a message */
        assert_int_equal(bus_guard_recv(connection, got, sizeof got, 0), 4);
        bus_guard_close(connection);
        close(peer);
    }
    close(listener);
}

/* --- inside CURVE, where only sizes can be seen ----------------------------------------------- */

static void greet_sealed_alone(void)
{
    uint8_t greeting[64] = {[0] = 0xff, [9] = 0x7f, [10] = 3, [12] = 'C', 'U', 'R', 'V', 'E'};

    said.size = 0;
    say(greeting, sizeof greeting);
}

static void greet_sealed(void)
{
    greet_sealed_alone();
    say("\4\1h", 3);
    say("\4\1i", 3);
}

static bool sealed_is_taken(bool listens, struct bus_guard_stream *stream)
{
    *stream = (struct bus_guard_stream){.listens = listens};
    return bus_guard_stream_take(stream, said.bytes, said.size);
}

static void a_sealed_listener_says_so_many_topics_and_no_more(void **state)
{
    struct bus_guard_stream stream;

    (void)state;
    greet_sealed();
    for (int i = 0; i < GUARD_TOPICS_MAX; i++)
        say("\0\1t", 3);
    assert_true(sealed_is_taken(true, &stream));
    say("\0\1t", 3);
    assert_false(sealed_is_taken(true, &stream));
    assert_true(sealed_is_taken(false, &stream)); /* who commands may go on */
    greet_sealed();
    say_long(FLAG_LONG_ONLY, GUARD_COMMAND_BYTES + 1);
    assert_false(sealed_is_taken(true, &stream));
    assert_true(sealed_is_taken(false, &stream));
}

static void what_a_sealed_message_costs_is_what_the_broker_will_read_of_it(void **state)
{
    struct bus_guard_stream stream;

    (void)state;
    greet_sealed();
    say_long(FLAG_LONG_ONLY, 1000 + GUARD_CURVE_BYTES);
    assert_true(sealed_is_taken(false, &stream));
    assert_int_equal(stream.begun, 1000 + PEERS_FRAME_BYTES);
    assert_true(is_taken());
}

static void a_sealed_handshake_does_not_go_on_for_ever(void **state)
{
    struct bus_guard_stream stream;

    (void)state;
    greet_sealed();
    for (int i = 2; i < GUARD_COMMANDS_MAX; i++)
        say("\4\1x", 3);
    assert_true(sealed_is_taken(false, &stream));
    say("\4\1x", 3);
    assert_false(sealed_is_taken(false, &stream));
}

/* libzmq opens an INITIATE that does not say that it is a command, of whatever length. */
static void a_sealed_handshake_is_of_commands(void **state)
{
    struct bus_guard_stream stream;

    (void)state;
    greet_sealed_alone();
    say("\4\1h", 3);
    assert_true(sealed_is_taken(false, &stream));
    say("\0\1i", 3);
    assert_false(sealed_is_taken(false, &stream));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sealed_listener_says_so_many_topics_and_no_more),
        cmocka_unit_test(what_a_sealed_message_costs_is_what_the_broker_will_read_of_it),
        cmocka_unit_test(a_sealed_handshake_does_not_go_on_for_ever),
        cmocka_unit_test(a_sealed_handshake_is_of_commands),
        cmocka_unit_test(messages_of_one_part_are_taken),
        cmocka_unit_test(a_part_that_is_not_the_last_is_not_taken),
        cmocka_unit_test(a_frame_beyond_the_limit_is_not_taken),
        cmocka_unit_test(a_long_command_is_not_taken),
        cmocka_unit_test(older_protocols_are_not_taken),
        cmocka_unit_test(a_few_topics_are_taken_and_no_more),
        cmocka_unit_test(a_topic_is_no_longer_than_a_jobs_name),
        cmocka_unit_test(other_commands_are_no_topics),
        cmocka_unit_test(what_is_closed_is_counted),
        cmocka_unit_test(connection_at_a_local_socket_is_judged_from_its_own_first_byte),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
