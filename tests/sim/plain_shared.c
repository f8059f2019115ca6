/* Worlds with two brokers over one log (sim_shared.c); -O2 and without sanitizers, as
 * plain_fixed_set.c. What the log really does is held by tests
 * that use PostgreSQL (proc/lib_shared.sh); here it is what brokers and nodes make of it. Must-fail
 * controls: a log and a lease without what keeps two brokers apart. */
#include "tests/sim/sim_often.h"
#include "tests/sim/sim_test.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define SEEDS 2000
#define BUGS_MIN 4        /* that are seen: may grow, never fall */
#define CONTROL_SEEDS 300 /* the rarest is in one world of ten */
#define PUT_BACK 4        /* of so many worlds one has a log that loses its last batches */

static struct sim_options world(uint64_t seed)
{
    return (struct sim_options){.seed = seed,
                                .async = -1,
                                .shared = true,
                                .focused = seed % 3 == 0,
                                .put_back = seed % PUT_BACK == 0,
                                .lasting = seed % 5 == 1};
}

static void two_brokers_break_nothing(void **state)
{
    struct sim_stats stats = {0};

    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct sim_options options = world(seed);
        assert_true(sim_run_told(&options, &stats));
    }
    sim_stats_print(&stats, stdout);
    for (unsigned fault = FAULT_LOG_CUT; fault <= FAULT_HAND_OVER; fault++)
        sim_expect_often("fault", sim_fault_name(fault), stats.faults[fault]);
    sim_expect_often("take-over", "", stats.takeovers);
    sim_expect_often("take-over", "of a broker that lived on", stats.overtaken);
    sim_expect_often("batch", "that the fence refused", stats.refused);
    sim_expect_often("batch", "of a dead broker", stats.late);
    sim_expect_often("log", "that lost its last batches", stats.histories_lost);
    assert_int_equal(sim_rare(), 0);
    assert_true(stats.takeovers > 2 * SEEDS);
}

static void expect_seen(enum sim_mutation mutation, const char *invariant)
{
    const struct sim_options options = {.async = -1, .shared = true, .mutation = mutation};

    if (!sim_find_broken(&options, CONTROL_SEEDS, invariant))
        fail_msg("no seed of %u breaks %s", CONTROL_SEEDS, invariant);
}

static void a_log_without_a_fence_is_seen(void **state)
{
    (void)state;
    expect_seen(MUTANT_NO_FENCE, "I4"); /* a round that had ended is decided */
}

static void a_fence_that_is_asked_before_the_write_is_seen(void **state)
{
    (void)state;
    expect_seen(MUTANT_FENCE_APART, "I6"); /* events and epochs go back */
}

static void a_lease_by_the_brokers_own_clock_is_seen(void **state)
{
    (void)state;
    expect_seen(MUTANT_OWN_CLOCK, "lease");
}

static void a_takeover_that_reads_a_replica_is_seen(void **state)
{
    (void)state;
    expect_seen(MUTANT_READS_REPLICA, "I6");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_brokers_break_nothing),
        cmocka_unit_test(a_log_without_a_fence_is_seen),
        cmocka_unit_test(a_fence_that_is_asked_before_the_write_is_seen),
        cmocka_unit_test(a_lease_by_the_brokers_own_clock_is_seen),
        cmocka_unit_test(a_takeover_that_reads_a_replica_is_seen),
    };

    sim_guard_aborts();
    return sim_bugs_end(cmocka_run_group_tests(tests, NULL, NULL), BUGS_MIN);
}
