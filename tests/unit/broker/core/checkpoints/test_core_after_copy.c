/* The broker's core: what only a database that was restored, or read in another order, can show. */
#include "tests/unit/broker/core/core_keep_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#define YEAR_MS ((int64_t)365 * 24 * 3600 * 1000)

static struct record *row_of(struct core_fixture *f, enum record_kind kind, size_t skip)
{
    for (size_t i = 0; i < f->rows_count; i++)
        if (f->rows[i].kind == kind && skip-- == 0)
            return &f->rows[i];
    fail_msg("no such row");
    return NULL;
}

/* Its number was lost with the database, and may be a directory's. */
static void a_round_that_a_node_has_seen_lends_its_number_to_no_other(void **state)
{
    struct core_fixture *f = *state;

    core_restart(f, false);
    f->nodes[0].round = 41;
    core_hello(f, 0);
    f->nodes[0].round = 0;
    core_pass(f, 1000);
    core_save_now(f, "op");
    assert_int_equal(core_job(f)->round, 42);
    assert_int_equal(row_of(f, RECORD_ROUND, 0)->u.round.round, 42);
}

/* ... also one whose save it made before it went on. */
static void a_round_that_a_node_has_saved_lends_its_number_to_no_other(void **state)
{
    struct core_fixture *f = *state;

    core_restart(f, false);
    f->nodes[0].round = 3;
    f->nodes[0].save_failed = 41;
    core_hello(f, 0);
    core_pass(f, 1000);
    core_save_now(f, "op");
    assert_int_equal(core_job(f)->round, 42);
}

static void a_lease_of_a_wall_clock_that_went_back_is_no_longer_than_the_longest(void **state)
{
    struct core_fixture *f = *state;
    uint64_t first = core_saved_whole(f, 1);

    core_pin(f, first, "reader", 10000);
    row_of(f, RECORD_PIN, 0)->u.pin.until_unix_ms += 10 * YEAR_MS;
    core_restart(f, false);
    assert_int_equal(core_job(f)->keep.pins[0].until_boot_ms - f->now, YEAR_MS);
}

static void of_two_checkpoints_of_one_step_the_later_round_is_newer_in_whatever_order(void **state)
{
    struct core_fixture *f = *state;
    uint64_t first = core_saved_whole(f, 1);
    uint64_t second = core_saved_whole(f, 2);
    struct record *one = NULL, *two = NULL, swapped;

    for (size_t i = 0; i < f->rows_count; i++)
        if (f->rows[i].kind == RECORD_CHECKPOINT && f->rows[i].u.checkpoint.round == first)
            one = &f->rows[i];
        else if (f->rows[i].kind == RECORD_CHECKPOINT && f->rows[i].u.checkpoint.round == second)
            two = &f->rows[i];
    assert_non_null(one);
    assert_non_null(two);
    two->u.checkpoint.step = one->u.checkpoint.step;
    for (int i = 0; i < 2; i++) {
        swapped = *one;
        *one = *two;
        *two = swapped;
        core_restart(f, false);
        assert_int_equal(registry_newest(core_job(f))->row.round, second);
    }
}

static void the_next_life_joins(struct core_fixture *f)
{
    core_leave(f, 0, LEAVE_FINISHED, 0);
    f->nodes[0].incarnation += 100;
    f->nodes[0].generation = f->nodes[0].request = f->nodes[0].applied_seq = 0;
    core_hello(f, 0);
    assert_false(core_job(f)->gen.resume_ready);
}

/* R3.2 */
static void the_manifest_of_an_older_checkpoint_announces_no_choice(void **state)
{
    struct core_fixture *f = *state;

    core_commit_at(f, 5);
    core_commit_at(f, 6);
    the_next_life_joins(f);
    assert_int_equal(core_job(f)->gen.resume_step, 6);
    core_manifest_done(f, 1, 5);
    assert_events(f, "manifest r1 S5 c1");
    assert_false(core_job(f)->gen.resume_ready);
    core_manifest_done(f, 2, 6);
    assert_events(f, "manifest r2 S6 c2; resume S6 c2");
}

static void a_launch_that_ends_is_told_of_no_choice_any_more(void **state)
{
    struct core_fixture *f = *state;

    core_commit_at(f, 5);
    the_next_life_joins(f);
    core_job(f)->gen.state = GENERATION_ENDING; /* as if its time to join was over */
    core_manifest_done(f, core_job(f)->gen.resume_checkpoint, 5);
    assert_events(f, "manifest r1 S5 c1");
}

/* Rank 0 of launch 4 is heard, and the copy knows launch 1 alone, in the middle of a save (R3.1) */
static void the_rounds_of_a_launch_before_end_with_the_next_ones_opening(void **state)
{
    struct core_fixture *f = *state;

    core_save_now(f, "op");
    core_report(f, 0, 1, 5, 5);
    assert_int_equal(core_job(f)->rounds[0].state, ROUND_DECIDED);
    core_restart(f, false);
    f->nodes[2] = f->nodes[0];
    f->nodes[2].incarnation = 72;
    f->nodes[2].route = 102;
    f->nodes[2].generation = 4;
    f->nodes[2].begun = f->nodes[2].done = 40;
    f->nodes[2].applied_seq = 200;
    core_hello(f, 2);
    assert_int_equal(core_job(f)->gen.generation, 4);
    assert_int_equal(row_of(f, RECORD_ROUND, 0)->u.round.state, ROUND_ABORTED);
    assert_false(core_job(f)->rounds[0].used);
}

int main(void)
{
#define ONE(test) cmocka_unit_test_setup_teardown(test, core_run_one, core_close)
    const struct CMUnitTest tests[] = {
        ONE(a_round_that_a_node_has_seen_lends_its_number_to_no_other),
        ONE(a_round_that_a_node_has_saved_lends_its_number_to_no_other),
        ONE(the_rounds_of_a_launch_before_end_with_the_next_ones_opening),
        ONE(a_lease_of_a_wall_clock_that_went_back_is_no_longer_than_the_longest),
        ONE(of_two_checkpoints_of_one_step_the_later_round_is_newer_in_whatever_order),
        ONE(the_manifest_of_an_older_checkpoint_announces_no_choice),
        ONE(a_launch_that_ends_is_told_of_no_choice_any_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
