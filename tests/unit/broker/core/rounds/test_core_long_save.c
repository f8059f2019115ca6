/* The broker's core: a save that takes longer than any before is waited for as long as it goes on.
 */
#include "tests/support/core_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#define LOOK_MS 30000

/* Longer than a pass: the broker's clock stands still meanwhile. */
static void broker_is_away(struct core_fixture *f)
{
    f->now += LOOP_GAP_MS + 100;
    core_tick(f);
}

/* Round 1 at step 4 of two ranks, which both write; rank 1 has arrived. */
static int writing(void **state)
{
    static struct core_fixture f;

    core_fixture_running(&f, 2, LAYOUT_SHARDED);
    broker_is_away(&f); /* the bounds below are on its clock, which is not the machine's */
    core_save_now(&f, "a");
    for (int n = 0; n < 2; n++)
        core_report(&f, n, 1, 4, 4);
    core_at_step(&f, 1, 1, 4, false);
    core_at_step(&f, 0, 1, 4, false);
    core_files(&f, 0, 1, 4, 1);
    core_saved(&f, 0, 1, 4, 1);
    *state = &f;
    return 0;
}

static void goes_on(struct core_fixture *f, uint64_t round, uint64_t bytes)
{
    f->nodes[1].saving_round = round;
    f->nodes[1].saving_bytes = bytes;
    core_heartbeat(f, 1);
    core_pass(f, LOOK_MS);
}

static const struct wire_event *aborted(struct core_fixture *f)
{
    return core_event(f, EVENT_ABORT);
}

/* The first save of a large state has no measured one before it: it was given up after 60 s, three
 * times, and the job never had a checkpoint. */
static void a_save_that_goes_on_is_waited_for(void **state)
{
    struct core_fixture *f = *state;

    for (uint64_t i = 1; i <= 20; i++) { /* ten minutes */
        goes_on(f, 1, i << 30);
        assert_null(aborted(f));
    }
    core_files(f, 1, 1, 4, 1);
    core_saved(f, 1, 1, 4, 1);
    assert_non_null(core_event(f, EVENT_COMMIT));
}

static void one_that_stands_still_is_given_up(void **state)
{
    struct core_fixture *f = *state;

    goes_on(f, 1, 1000);
    goes_on(f, 1, 2000);
    assert_null(aborted(f));
    core_pass(f, STUCK_MS - LOOK_MS - 1); /* its bytes are told all the while: the same */
    assert_null(aborted(f));
    core_pass(f, 1);
    assert_non_null(aborted(f));
    assert_int_equal(aborted(f)->rank, 1);
    assert_string_equal(
        aborted(f)->text,
        "rank 1 did not finish its save in 90 s (it has stood still at 2000 bytes for 60 s)");
}

static void the_brokers_own_absence_is_no_time_of_a_save(void **state)
{
    struct core_fixture *f = *state;

    goes_on(f, 1, 1000);
    broker_is_away(f);
    core_pass(f, STUCK_MS - LOOK_MS - 1);
    assert_null(aborted(f));
    core_pass(f, 1);
    assert_non_null(aborted(f));
}

static void what_is_told_of_another_round_does_not_count(void **state)
{
    struct core_fixture *f = *state;

    goes_on(f, 7, 1000);
    assert_null(aborted(f));
    goes_on(f, 7, 2000);
    assert_non_null(aborted(f));
}

/* Its stillness is bounded by what is known of this job's saves. */
static void where_saves_are_long_one_may_stand_still_three_times_as_long(void **state)
{
    struct core_fixture *f = *state;

    core_job(f)->save_p95_ms = STUCK_MS;
    goes_on(f, 1, 1000);
    goes_on(f, 1, 2000);
    core_pass(f, 3 * STUCK_MS - LOOK_MS - 1);
    assert_null(aborted(f));
    core_pass(f, 1);
    assert_non_null(aborted(f));
}

static void nothing_keeps_a_round_for_longer_than_a_day(void **state)
{
    struct core_fixture *f = *state;
    struct participant *part = &core_job(f)->rounds[0].parts[1];

    assert_int_equal(part->rank, 1);
    part->at_step_boot_ms -= DAY_MS - 3 * LOOK_MS; /* as if so much had passed */
    goes_on(f, 1, 1);
    goes_on(f, 1, 2);
    assert_null(aborted(f));
    goes_on(f, 1, 3);
    assert_non_null(aborted(f));
}

/* Who waits for its verdict is told that the save is awaited here, and by it: so its wait is as
 * long as this one. */
static uint64_t awaited(struct core_fixture *f, int node, uint64_t round)
{
    struct wire_msg beat = core_msg(f, node, WIRE_HEARTBEAT);

    beat.u.heartbeat =
        (struct wire_heartbeat){.begun = 4, .done = 4, .round = round, .sources = ""};
    core_feed(f, f->nodes[node].route, &beat);
    return core_sent(f, f->nodes[node].route, WIRE_ALIVE)->u.alive.awaited_round;
}

static void members_are_told_that_a_save_is_awaited(void **state)
{
    struct core_fixture *f = *state;

    assert_int_equal(awaited(f, 0, 1), 1);
    assert_int_equal(awaited(f, 0, 0), 0);
    assert_int_equal(awaited(f, 0, 2), 0);
    core_restart(f, false);
    core_hello(f, 0);
    core_hello(f, 1);
    assert_int_equal(awaited(f, 0, 1), 1);
    core_job(f)->rounds[0].parts[0].incarnation +=
        1000; /* as if another life of it were the member */
    assert_int_equal(awaited(f, 0, 1), 0);
    assert_int_equal(awaited(f, 1, 1), 1);
    core_files(f, 1, 1, 4, 1);
    core_saved(f, 1, 1, 4, 1);
    assert_non_null(core_event(f, EVENT_COMMIT));
    assert_int_equal(awaited(f, 1, 1), 0);
    core_save_now(f, "b");
    assert_int_equal(core_event(f, EVENT_FREEZE)->round, 2);
    assert_int_equal(awaited(f, 1, 2), 0); /* a freeze has bounds of its own at its members */
}

#define T(test) cmocka_unit_test_setup_teardown(test, writing, core_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_save_that_goes_on_is_waited_for),
        T(one_that_stands_still_is_given_up),
        T(the_brokers_own_absence_is_no_time_of_a_save),
        T(what_is_told_of_another_round_does_not_count),
        T(where_saves_are_long_one_may_stand_still_three_times_as_long),
        T(nothing_keeps_a_round_for_longer_than_a_day),
        T(members_are_told_that_a_save_is_awaited),
    };

    return cmocka_run_group_tests_name("core_long_save", tests, NULL, NULL);
}
