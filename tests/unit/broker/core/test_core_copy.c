/* The broker's core after its database was restored from an older copy: what ran beyond the copy
 * ends, and no number is used twice. RECOVERY.md R10. */
#include "tests/support/core_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

static void start_both(struct core_fixture *f)
{
    for (int n = 0; n < 2; n++)
        core_hello(f, n);
    for (int n = 0; n < 2; n++)
        core_restored(f, n, 0, 0);
    assert_int_equal(core_job(f)->gen.state, GENERATION_RUNNING);
    for (int n = 0; n < 2; n++) {
        f->nodes[n].begun = f->nodes[n].done = 40;
        f->nodes[n].history = core_start_id(f->core);
        f->nodes[n].applied_seq = core_job(f)->seq;
        f->nodes[n].answered = f->nodes[n].request;
    }
}

static void is_told_to_leave(struct core_fixture *f, int node)
{
    const struct wire_msg *refused;

    core_hello(f, node);
    refused = core_sent(f, f->nodes[node].route, WIRE_REFUSED);
    assert_non_null(refused);
    assert_int_equal(refused->u.refused.code, MUSTER_PREEMPTED);
    assert_false(refused->u.refused.retry);
    assert_non_null(strstr(refused->u.refused.text, "restored from an older copy"));
}

/* R10.2 */
static void a_launch_that_heard_more_than_its_database_knows_ends(void **state)
{
    struct core_fixture *f = *state;

    start_both(f);
    core_copy(f);
    core_save_now(f, "a");
    f->nodes[0].applied_seq = core_job(f)->seq;
    core_restart_from_copy(f);
    core_hello(f, 1); /* it heard nothing that is not in the copy */
    assert_answers(f, "1:welcome g1");
    is_told_to_leave(f, 0);
    assert_non_null(core_event(f, EVENT_NOT_SAVED));
    assert_int_equal(core_job(f)->gen.state, GENERATION_ENDING);
    core_leave(f, 1, LEAVE_PREEMPTED, 42);
    assert_events(f, "generation ended");
}

/* R10.2: no event tells of it. */
static void so_does_one_that_was_answered_more(void **state)
{
    struct core_fixture *f = *state;

    start_both(f);
    f->nodes[0].answered--;
    core_hello(f, 0);
    assert_answers(f, "0:welcome g1");
    f->nodes[0].answered += 2;
    is_told_to_leave(f, 0);
    assert_int_equal(core_job(f)->gen.state, GENERATION_ENDING);
}

/* R10.2: its processes are in no row. */
static void so_does_one_that_its_database_does_not_know(void **state)
{
    struct core_fixture *f = *state;

    for (int n = 0; n < 2; n++) {
        f->nodes[n].generation = 3;
        f->nodes[n].begun = f->nodes[n].done = 40;
        f->nodes[n].applied_seq = 12;
        f->nodes[n].round = 5;
        is_told_to_leave(f, n);
        assert_int_equal(core_job(f)->gen.generation, 3);
        assert_int_equal(core_job(f)->gen.state, GENERATION_ENDED);
        assert_int_equal(core_job(f)->gen.end_status, MUSTER_PREEMPTED);
        assert_int_equal(core_job(f)->gen.opened_unix_ms, 0);
    }
    assert_true(core_job(f)->seq > 12);
    assert_int_equal(core_job(f)->round, 5);
    f->nodes[0].incarnation = 900;
    f->nodes[0].generation = 0;
    core_hello(f, 0); /* its number is used */
    assert_answers(f, "0:welcome g4; 0:SNAPSHOT");
}

/* R10.2: the copy is of when rank 0 alone had joined. */
static void so_does_one_of_which_a_rank_is_in_no_row(void **state)
{
    struct core_fixture *f = *state;

    core_hello(f, 0);
    core_copy(f);
    core_restart_from_copy(f);
    f->nodes[1].generation = 1;
    is_told_to_leave(f, 1);
    assert_int_equal(core_job(f)->gen.end_status, MUSTER_E_NOT_SAVED);
}

/* An observer of it, too. */
static void so_does_a_observer_of_it(void **state)
{
    struct core_fixture *f = *state;

    f->nodes[5].role = ROLE_EVALUATOR;
    f->nodes[5].rank = 0;
    f->nodes[5].generation = 2;
    is_told_to_leave(f, 5);
    assert_null(core_job(f)); /* it knows of no world, and leaves no row */
}

/* A launch in the rows speaks: another broker had let the stranger in. */
static void a_launch_that_speaks_is_ended_by_no_process_of_another(void **state)
{
    for (uint64_t generation = 1; generation < 5; generation += 3) {
        struct core_fixture *f = *state;

        core_close(state);
        core_open_two(state);
        start_both(f);
        f->nodes[2].rank = 1;
        f->nodes[2].generation = generation;
        f->nodes[2].applied_seq = 3;
        is_told_to_leave(f, 2);
        assert_int_equal(core_job(f)->gen.generation, 1);
        assert_int_equal(core_job(f)->gen.state, GENERATION_RUNNING);
    }
}

/* R10.3: up to the copy all is the same, whichever start of the broker told it. */
static void what_was_heard_before_the_copy_is_known(void **state)
{
    struct core_fixture *f = *state;

    core_hello(f, 0);
    f->nodes[0].history = core_start_id(f->core);
    f->nodes[0].applied_seq = core_job(f)->seq;
    core_copy(f);
    core_hello(f, 1);
    core_restart_from_copy(f);
    core_restart(f, false);
    core_hello(f, 0);
    assert_answers(f, "0:welcome g1");
}

/* R10.3: more starts than the row tells of. */
static void who_was_away_for_many_starts_is_known(void **state)
{
    struct core_fixture *f = *state;

    core_hello(f, 0);
    f->nodes[0].history = core_start_id(f->core);
    f->nodes[0].applied_seq = core_job(f)->seq;
    for (int i = 0; i < LINEAGE_MAX + 1; i++)
        core_restart(f, false);
    core_hello(f, 0);
    assert_answers(f, "0:welcome g1");
    f->nodes[0].history--;
    f->nodes[0].applied_seq++; /* more than when the oldest of them began */
    is_told_to_leave(f, 0);
}

/* What a process says that has left is answered, and not counted. */
static void one_that_has_left_ends_nothing(void **state)
{
    struct core_fixture *f = *state;

    start_both(f);
    core_leave(f, 0, LEAVE_FINISHED, 0);
    f->nodes[0].answered = f->nodes[0].request + 1;
    is_told_to_leave(f, 0);
    assert_int_equal(core_job(f)->gen.state, GENERATION_RUNNING);
}

/* A second WELCOME let it into this launch, where its numbers begin again, and is lost. */
static void what_was_answered_in_another_launch_is_not_compared(void **state)
{
    struct core_fixture *f = *state;

    start_both(f);
    f->nodes[0].generation = 0;
    f->nodes[0].answered = 90;
    core_hello(f, 0);
    assert_answers(f, "0:welcome g1; 0:SNAPSHOT"); /* it may not know of this launch */
    assert_int_equal(core_job(f)->gen.state, GENERATION_RUNNING);
}

/* An observer lives on behind its launch, over two starts of the broker. */
static void an_observer_of_a_launch_that_has_ended_is_known_over_two_starts(void **state)
{
    struct core_fixture *f = *state;

    f->nodes[5].role = ROLE_EVALUATOR;
    f->nodes[5].rank = 0;
    for (int n = 0; n < 2; n++)
        core_hello(f, n);
    core_hello(f, 5);
    for (int n = 0; n < 2; n++)
        core_restored(f, n, 0, 0);
    for (int n = 0; n < 2; n++)
        core_leave(f, n, LEAVE_FINISHED, 0);
    assert_int_equal(core_job(f)->gen.state, GENERATION_ENDED);
    for (int i = 0; i < 2; i++) {
        core_restart(f, false);
        core_hello(f, 5);
        assert_non_null(core_sent(f, f->nodes[5].route, WIRE_WELCOME));
        f->nodes[5].history = core_start_id(f->core);
        f->nodes[5].applied_seq = core_job(f)->seq;
    }
    core_restart(f, false);
    core_hello(f, 5);
    assert_non_null(core_sent(f, f->nodes[5].route, WIRE_WELCOME));
}

/* Just after a start nobody speaks yet: its rank is held in the rows. */
static void a_stranger_in_the_place_of_a_rank_that_is_to_come_back_ends_nothing(void **state)
{
    struct core_fixture *f = *state;

    start_both(f);
    core_restart(f, false);
    f->nodes[2].rank = 1;
    f->nodes[2].generation = 1;
    is_told_to_leave(f, 2);
    assert_int_equal(core_job(f)->gen.state, GENERATION_RUNNING);
}

/* A copy of before it was let in again. */
static void one_that_is_known_and_of_a_later_launch_takes_its_own_row_along(void **state)
{
    struct core_fixture *f = *state;

    core_hello(f, 0);
    f->nodes[0].generation = 3;
    f->nodes[0].history = 77;
    f->nodes[0].applied_seq = 40;
    is_told_to_leave(f, 0);
    assert_int_equal(core_job(f)->gen.generation, 3);
}

/* Both stand at step 4, sharded, and the save is decided; rank 0 has saved when the copy is made */
static void copy_a_half_saved_round(struct core_fixture *f)
{
    for (int n = 0; n < 2; n++)
        core_hello(f, n);
    for (int n = 0; n < 2; n++)
        core_restored(f, n, 0, 0);
    core_save_now(f, "a");
    for (int n = 0; n < 2; n++) {
        core_report(f, n, 1, 4, 4);
        f->nodes[n].begun = f->nodes[n].done = 4;
    }
    core_save(f, 0, 1, 4);
    core_copy(f);
}

/* Rank 0 heard of the abort and deleted its shard; rank 1 did not (R10.4). */
static void a_round_of_an_older_copy_is_not_committed(void **state)
{
    struct core_fixture *f = *state;

    copy_a_half_saved_round(f);
    core_restart_from_older_copy(f);
    assert_events(f, "abort r1 operator S4 MUSTER_E_ABORTED retry");
    core_hello(f, 1);
    core_save(f, 1, 1, 4);
    assert_events(f, "");
    core_hello(f, 0);
    assert_events(f, "freeze r2 operator m0,1"); /* the save is still wanted */
}

static void a_round_of_the_newest_database_goes_on(void **state)
{
    struct core_fixture *f = *state;

    copy_a_half_saved_round(f);
    core_restart_from_copy(f);
    assert_events(f, "");
    core_hello(f, 0);
    core_hello(f, 1);
    core_save(f, 1, 1, 4);
    assert_events(f, "commit r1 operator S4 c1 rank 0");
}

#define T(test) cmocka_unit_test_setup_teardown(test, core_open_two, core_close)
#define S(test) cmocka_unit_test_setup_teardown(test, core_open_two_sharded, core_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_launch_that_heard_more_than_its_database_knows_ends),
        T(so_does_one_that_was_answered_more),
        T(so_does_one_that_its_database_does_not_know),
        T(so_does_one_of_which_a_rank_is_in_no_row),
        T(so_does_a_observer_of_it),
        T(a_launch_that_speaks_is_ended_by_no_process_of_another),
        T(what_was_heard_before_the_copy_is_known),
        T(who_was_away_for_many_starts_is_known),
        T(one_that_has_left_ends_nothing),
        T(what_was_answered_in_another_launch_is_not_compared),
        T(an_observer_of_a_launch_that_has_ended_is_known_over_two_starts),
        T(a_stranger_in_the_place_of_a_rank_that_is_to_come_back_ends_nothing),
        T(one_that_is_known_and_of_a_later_launch_takes_its_own_row_along),
        S(a_round_of_an_older_copy_is_not_committed),
        S(a_round_of_the_newest_database_goes_on),
    };

    return cmocka_run_group_tests_name("core_copy", tests, NULL, NULL);
}
