/* The numbers that a relay gives. */
#include "broker/relay_peers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static struct relay_peers *peers;

static int fresh(void **state)
{
    (void)state;
    peers = calloc(1, sizeof *peers);
    return peers == NULL;
}

static int done(void **state)
{
    (void)state;
    free(peers);
    return 0;
}

static uint64_t route_of(uint32_t number)
{
    uint64_t route = 0;

    return relay_peers_route(peers, number, &route) ? route : 0;
}

static void a_number_is_one_peers_and_stays_its(void **state)
{
    uint32_t numbers[1000];

    (void)state;
    for (uint64_t i = 0; i < 1000; i++) {
        numbers[i] = relay_peers_number(peers, UINT64_C(1) << 32 | i << (i % 20));
        assert_true(numbers[i] > 1);
    }
    for (uint64_t i = 0; i < 1000; i++) {
        assert_int_equal(relay_peers_number(peers, UINT64_C(1) << 32 | i << (i % 20)), numbers[i]);
        assert_int_equal(route_of(numbers[i]), UINT64_C(1) << 32 | i << (i % 20));
    }
}

static void numbers_that_were_never_given_are_nobodys(void **state)
{
    uint32_t number = relay_peers_number(peers, 9);

    (void)state;
    assert_int_equal(route_of(0), 0);
    assert_int_equal(route_of(1), 0);
    assert_int_equal(route_of(number + 1), 0);
    assert_int_equal(route_of(number + RELAY_PEERS_MAX), 0);
    assert_int_equal(route_of(number), 9);
}

/* What is still on its way to the one before must not reach the one after. */
static void a_place_goes_to_another_peer_under_another_number(void **state)
{
    uint32_t first = relay_peers_number(peers, 1), second = relay_peers_number(peers, 2);
    uint32_t taken;

    (void)state;
    for (uint64_t i = 3; i <= RELAY_PEERS_MAX; i++)
        relay_peers_number(peers, i);
    relay_peers_number(peers, 1); /* 2 has been silent for the longest now */
    taken = relay_peers_number(peers, 1000000);
    assert_int_equal(route_of(first), 1);
    assert_int_equal(route_of(second), 0);
    assert_int_equal(route_of(taken), 1000000);
    assert_int_not_equal(relay_peers_number(peers, 2), second);
}

static void more_than_fit_are_never_mixed_up(void **state)
{
    (void)state;
    for (uint64_t i = 1; i <= RELAY_PEERS_MAX + 2000; i++) {
        uint64_t route = i * UINT64_C(0x100000001) % 49157 + 1;
        uint32_t number = relay_peers_number(peers, route);

        assert_int_equal(route_of(number), route);
        assert_int_equal(relay_peers_number(peers, route), number);
    }
    assert_int_equal(peers->count, RELAY_PEERS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_number_is_one_peers_and_stays_its, fresh, done),
        cmocka_unit_test_setup_teardown(numbers_that_were_never_given_are_nobodys, fresh, done),
        cmocka_unit_test_setup_teardown(a_place_goes_to_another_peer_under_another_number, fresh,
                                        done),
        cmocka_unit_test_setup_teardown(more_than_fit_are_never_mixed_up, fresh, done),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
