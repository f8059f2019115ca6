/* What a connection may hold: each rule leaves the others as much as it takes. */
#include "broker/bus_peers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#define SLOTS 64
#define ROUTE(fd) ((UINT64_C(1) << 32) + (uint64_t)(fd))
#define MIB (1 << 20)

static int ends[SLOTS]; /* of the peer's side, by ours */

static bool came_from(uint32_t host, int *ret_fd)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(host)};
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    assert_true(fds[0] < SLOTS);
    *ret_fd = fds[0];
    ends[fds[0]] = fds[1];
    return bus_peers_opened(-1, fds[0], (struct sockaddr *)&address);
}

static void goes(int fd)
{
    bus_peers_closed(fd);
    close(fd);
    close(ends[fd]);
}

static bool was_ended(int fd)
{
    char byte;

    return recv(ends[fd], &byte, 1, MSG_DONTWAIT) == 0;
}

static struct bus_peers_counters counters(void)
{
    struct bus_peers_counters now;

    bus_peers_counters(&now);
    return now;
}

static int watched(void **state)
{
    (void)state;
    if (!bus_peers_start(SLOTS))
        return -1;
    bus_peers_watch(7701);
    return 0;
}

/* No sockets behind these numbers: only what ends one looks. */
static bool number_came_from(uint32_t host, int fd)
{
    const struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(host)};

    return bus_peers_opened(-1, fd, (const struct sockaddr *)&address);
}

static void an_address_has_at_most_as_many_as_are_free(void **state)
{
    int count = 0;

    (void)state;
    while (count < SLOTS && number_came_from(0x0a000001, count))
        count++;
    assert_int_equal(count, SLOTS / 2);
    assert_int_equal(counters().address, 1);
    for (int i = 0; i < SLOTS / 4; i++) /* another has room, and takes half of it */
        assert_true(number_came_from(0x0a000002, count + i));
    assert_false(number_came_from(0x0a000001, SLOTS - 1));
    bus_peers_closed(0);
    bus_peers_closed(0); /* of a descriptor that is nobody's */
    for (int i = 1; i < SLOTS; i++)
        bus_peers_closed(i);
    assert_true(number_came_from(0x0a000001, 0));
    bus_peers_closed(0);
}

static void a_key_has_at_most_as_many_as_are_free(void **state)
{
    (void)state;
    for (int i = 0; i <= SLOTS / 2; i++) {
        assert_int_equal(counters().key, 0);
        assert_true(number_came_from(0x0a000001 + (uint32_t)i, i));
        bus_peers_took(ROUTE(i), i, 10, "greedy");
        bus_peers_took(ROUTE(i), i, 10, "greedy"); /* counted once */
    }
    assert_int_equal(counters().key, 1);
    for (int i = 0; i < SLOTS; i++)
        bus_peers_closed(i);
}

static void what_is_sent_and_never_whole_ends_the_connection(void **state)
{
    int fd;
    int64_t bytes = 0;

    (void)state;
    assert_true(came_from(0x0a000001, &fd));
    while (bytes < 64 * MIB && bus_peers_received(fd, 65536))
        bytes += 65536;
    assert_in_range(bytes, 4 * MIB, PEERS_UNREAD_BYTES);
    assert_int_equal(counters().unread, 1);
    goes(fd);
}

static void what_is_read_costs_nothing_for_ever(void **state)
{
    int fd;

    (void)state;
    assert_true(came_from(0x0a000001, &fd));
    for (int i = 0; i < 100000; i++) {
        assert_true(bus_peers_received(fd, 65536 + PEERS_FRAME_BYTES));
        bus_peers_took(ROUTE(fd), fd, 65536, "honest");
    }
    goes(fd);
}

static void who_does_not_read_is_cut_off_and_who_does_is_not(void **state)
{
    int deaf, hears;
    int64_t bytes = 0;

    (void)state;
    assert_true(came_from(0x0a000001, &deaf));
    assert_true(came_from(0x0a000002, &hears));
    bus_peers_took(ROUTE(deaf), deaf, 10, "deaf");
    bus_peers_took(ROUTE(hears), hears, 10, "hears");
    while (bytes < 64 * MIB && bus_peers_queue(ROUTE(deaf), 65536)) {
        bytes += 65536;
        assert_true(bus_peers_queue(ROUTE(hears), 65536));
        bus_peers_sent(hears, 65536);
    }
    assert_in_range(bytes, 3 * MIB, PEERS_UNSENT_BYTES);
    assert_true(was_ended(deaf));
    assert_false(was_ended(hears));
    goes(deaf);
    assert_true(bus_peers_queue(ROUTE(deaf), 65536)); /* a route of nobody: libzmq says so */
    goes(hears);
}

static void many_that_hold_a_little_share_what_there_is(void **state)
{
    int fds[24];
    int64_t bytes = 0;

    (void)state;
    for (int i = 0; i < 24; i++)
        assert_true(came_from(0x0a000001 + (uint32_t)i, &fds[i]));
    for (int round = 0; round < 200; round++)
        for (int i = 0; i < 24; i++)
            if (bus_peers_received(fds[i], 65536))
                bytes += 65536;
    assert_true(bytes < PEERS_BUDGET_BYTES);
    for (int i = 0; i < 24; i++)
        goes(fds[i]);
}

static void who_says_nothing_is_ended(void **state)
{
    int64_t later_ms = 1;
    int silent, speaks;

    (void)state;
    assert_true(came_from(0x0a000001, &silent));
    assert_true(came_from(0x0a000002, &speaks));
    bus_peers_took(0, speaks, 10, "speaks");
    bus_peers_sweep(later_ms);
    assert_false(was_ended(silent));
    bus_peers_sweep(INT64_MAX);
    assert_true(was_ended(silent));
    assert_false(was_ended(speaks));
    goes(silent);
    goes(speaks);
}

static void whose_key_is_over_is_told_so_for_a_while_and_then_ended(void **state)
{
    int fd, other;

    (void)state;
    assert_true(came_from(0x0a000001, &fd));
    assert_true(came_from(0x0a000002, &other));
    bus_peers_took(ROUTE(fd), fd, 10, "revoked");
    bus_peers_took(ROUTE(other), other, 10, "good");
    for (int64_t ms = 1; ms < PEERS_REFUSED_MS; ms += 1000)
        bus_peers_refused(ROUTE(fd), ms);
    assert_false(was_ended(fd));
    bus_peers_refused(ROUTE(fd), PEERS_REFUSED_MS + 1);
    assert_true(was_ended(fd));
    assert_false(was_ended(other));
    assert_int_equal(counters().revoked, 1);
    goes(fd);
    assert_true(came_from(0x0a000001, &fd)); /* the next one on that descriptor */
    bus_peers_took(ROUTE(fd), fd, 10, "good");
    bus_peers_refused(ROUTE(fd), 2 * PEERS_REFUSED_MS);
    assert_false(was_ended(fd));
    goes(fd);
    goes(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_has_at_most_as_many_as_are_free),
        cmocka_unit_test(a_key_has_at_most_as_many_as_are_free),
        cmocka_unit_test(what_is_sent_and_never_whole_ends_the_connection),
        cmocka_unit_test(what_is_read_costs_nothing_for_ever),
        cmocka_unit_test(who_does_not_read_is_cut_off_and_who_does_is_not),
        cmocka_unit_test(many_that_hold_a_little_share_what_there_is),
        cmocka_unit_test(who_says_nothing_is_ended),
        cmocka_unit_test(whose_key_is_over_is_told_so_for_a_while_and_then_ended),
    };

    return cmocka_run_group_tests_name("bus_peers", tests, watched, NULL);
}
