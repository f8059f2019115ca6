/* The broker's core: a save that is written behind training, and a termination that waits for it */
#include "tests/support/core_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

/* Round 1, of step 4: rank 0 has written its part. */
static void save_half(struct core_fixture *f)
{
    core_save_now(f, "a");
    for (int n = 0; n < 2; n++)
        core_report(f, n, 1, 4, 4);
    for (int n = 0; n < 2; n++)
        core_at_step(f, n, 1, 4, true);
    core_files(f, 0, 1, 4, 1);
    core_saved(f, 0, 1, 4, 1);
}

/* Both stand at step 4 still, so the termination would save what is being written already. */
static void the_margin_names_who_still_writes_the_step_that_all_stand_at(void **state)
{
    struct core_fixture *f = *state;

    save_half(f);
    assert_int_equal(core_job(f)->rounds[0].state, ROUND_WRITING);
    core_notice(f, 0, "n1", 60000);
    for (int n = 0; n < 2; n++)
        core_report(f, n, 2, 4, 4);
    core_notice(f, 1, "n2", 2600); /* joins, and its margin comes before the freeze is over */
    core_clear(f);
    core_pass(f, 2600 - MARGIN_MS);
    const struct wire_event *abort = core_event(f, EVENT_ABORT);
    assert_non_null(abort);
    assert_int_equal(abort->round, 2);
    assert_int_equal(abort->rank, 1);
    assert_non_null(strstr(abort->text, "rank 1 had not saved"));
}

/* --- no time is left for another save, so a notice joins one, and all have captured: it is the
 * job's last, though it is written behind training --- */

/* Of round 1, the notice's now, rank 0 still writes behind. */
static void join(struct core_fixture *f)
{
    for (int n = 0; n < 2; n++) {
        f->nodes[n].p95_ms = 100;
        core_heartbeat(f, n);
    }
    plan_saves_add(&core_job(f)->saves, 60000);
    core_save_now(f, "a");
    for (int n = 0; n < 2; n++)
        core_report(f, n, 1, 4, 4);
    core_at_step(f, 1, 1, 4, true);
    core_notice(f, 1, "n1", 60000);
    core_at_step(f, 0, 1, 4, true);
    if (f->layout == LAYOUT_SHARDED)
        core_save(f, 1, 1, 4);
    assert_int_equal(core_job(f)->rounds[0].state, ROUND_WRITING);
    assert_int_equal(core_job(f)->rounds[0].cause, CAUSE_TERMINATION);
    core_clear(f);
}

static void replicate(struct core_fixture *f)
{
    core_fixture_close(f);
    core_fixture_running(f, 2, LAYOUT_REPLICATED);
}

static void opens_no_other(struct core_fixture *f)
{
    core_pass(f, 5000);
    assert_null(core_event(f, EVENT_FREEZE));
    core_files(f, 0, 1, 4, 1);
    core_saved(f, 0, 1, 4, 1);
    assert_int_equal(core_event(f, EVENT_COMMIT)->cause, CAUSE_TERMINATION);
    assert_int_equal(core_job(f)->gen.state, GENERATION_ENDING);
    assert_int_equal(core_job(f)->gen.end_status, MUSTER_PREEMPTED);
    for (const struct notice *notice = core_job(f)->notices; notice; notice = notice->next)
        assert_int_equal(notice->round, 1);
}

/* R5.16 */
static void who_joined_a_save_that_is_written_behind_opens_no_other(void **state)
{
    struct core_fixture *f = *state;

    join(f);
    opens_no_other(f);
    replicate(f);
    join(f);
    core_notice(f, 0, "n2", 30000); /* the next one joins it, too */
    assert_int_equal(core_event(f, EVENT_TERMINATION)->round, 1);
    core_restart(f, false);
    core_hello(f, 0);
    core_hello(f, 1);
    opens_no_other(f);
}

/* R5.16 */
static void its_outcome_is_the_answer_to_whoever_wants_a_save(void **state)
{
    struct core_fixture *f = *state;

    join(f);
    core_save_now(f, "b");
    assert_int_equal(core_job(f)->save_now_round, 1);
    core_save_at(f, 1, 6);
    assert_int_equal(core_event(f, EVENT_SAVE_SKIPPED)->code, MUSTER_E_ENDING);
    opens_no_other(f);
}

static void its_margin_is_the_earliest_of_who_joined(void **state)
{
    struct core_fixture *f = *state;

    join(f);
    core_notice(f, 0, "n2", 10000);
    core_clear(f);
    core_pass(f, 10000 - MARGIN_MS - 1);
    assert_null(core_event(f, EVENT_ABORT));
    core_pass(f, 1);
    assert_non_null(strstr(core_event(f, EVENT_ABORT)->text, "rank 0 had not saved"));
    assert_int_equal(core_job(f)->gen.end_status, MUSTER_E_NOT_SAVED);
}

static void a_lost_writer_of_it_is_replaced_with_steps_broken_off(void **state)
{
    struct core_fixture *f = *state;

    replicate(f);
    join(f);
    f->nodes[0].silent = true;
    core_pass(f, LOST_MS + 1000);
    assert_int_equal(core_event(f, EVENT_NODE_LOST)->flags, EVENT_FLAG_ROUND_FOLLOWS);
    assert_int_equal(core_event(f, EVENT_ABORT)->rank, 0);
    assert_int_equal(core_event(f, EVENT_FREEZE)->round, 2);
    assert_true(core_event(f, EVENT_FREEZE)->flags & EVENT_FLAG_ABORT);
    core_report_aborted(f, 1, 2, 5);
    core_save(f, 1, 2, 5);
    assert_int_equal(core_event(f, EVENT_COMMIT)->cause, CAUSE_TERMINATION);
}

/* Whom it does not need any more: the others wait for its end, not for one of their own. */
static void a_loss_or_failure_of_who_captured_leaves_it_as_it_is(void **state)
{
    struct core_fixture *f = *state;

    replicate(f);
    join(f);
    f->nodes[1].silent = true;
    core_pass(f, LOST_MS + 1000);
    assert_int_equal(core_event(f, EVENT_NODE_LOST)->flags, EVENT_FLAG_ROUND_FOLLOWS);
    assert_int_equal(core_job(f)->gen.state, GENERATION_RUNNING);
    opens_no_other(f);
    replicate(f);
    join(f);
    core_error(f, 0, 6, "its step"); /* the writer: what it writes behind may be whole anyway */
    assert_int_equal(core_event(f, EVENT_PEER_ERROR)->flags, EVENT_FLAG_ROUND_FOLLOWS);
    opens_no_other(f);
}

/* --- an ending launch, and a round of it whose writer goes --- */

/* Rank 1 was lost when the writer was on its way still, so rank 2 was told to await the round's
 * end. */
static void end_with_a_writer(struct core_fixture *f)
{
    core_fixture_close(f);
    core_fixture_running(f, 3, LAYOUT_REPLICATED);
    core_save_now(f, "a");
    for (int n = 0; n < 3; n++)
        core_report(f, n, 1, 4, 4);
    core_at_step(f, 1, 1, 4, true);
    core_at_step(f, 2, 1, 4, true);
    f->nodes[1].silent = true;
    core_pass(f, LOST_MS + 1000);
    assert_int_equal(core_event(f, EVENT_NODE_LOST)->flags, EVENT_FLAG_ROUND_FOLLOWS);
    core_at_step(f, 0, 1, 4, true);
    core_pass(f, 1500);
    assert_int_equal(core_job(f)->gen.state, GENERATION_ENDING);
    core_clear(f);
}

static void a_round_of_an_ending_launch_ends_with_who_writes_it(void **state)
{
    struct core_fixture *f = *state;

    end_with_a_writer(f);
    f->nodes[0].silent = true;
    core_pass(f, LOST_MS + 1000);
    assert_non_null(core_event(f, EVENT_ABORT));
    assert_int_equal(core_event(f, EVENT_ABORT)->rank, 0);
    assert_string_equal(core_event(f, EVENT_ABORT)->text, "rank 0 was lost");
    end_with_a_writer(f);
    core_leave(f, 0, LEAVE_ERROR, 1);
    assert_string_equal(core_event(f, EVENT_ABORT)->text, "rank 0 left before the save");
    end_with_a_writer(f);
    core_leave(f, 2, LEAVE_ERROR, 1); /* the round does not need it any more */
    assert_null(core_event(f, EVENT_ABORT));
}

/* --- a commit that crosses its writer's LEAVE --- */

/* Rank 0 has finished. Round 2 waits for its LEAVE, so it awaited the outcome of its save for a
 * moment only, and said LEAVE before it heard of the commit that names it: the next launch writes
 * the manifest. */
static void a_writer_that_left_before_it_heard_of_its_commit_leaves_the_manifest_to_the_next_launch(
    void **state)
{
    struct core_fixture *f = *state;

    save_half(f);
    core_save_at(f, 1, 7);
    assert_int_equal(core_event(f, EVENT_DECISION)->round, 2);
    core_files(f, 1, 1, 4, 1);
    core_saved(f, 1, 1, 4, 1);
    assert_int_equal(core_event(f, EVENT_COMMIT)->rank, 0);
    core_leave(f, 0, LEAVE_FINISHED, 0);
    assert_int_equal(core_event(f, EVENT_ABORT)->round, 2);
    assert_string_equal(core_event(f, EVENT_ABORT)->text, "rank 0 finished before the save");
    core_leave(f, 1, LEAVE_FINISHED, 0);
    assert_int_equal(core_job(f)->gen.state, GENERATION_ENDED);
    assert_int_equal(core_checkpoint(f, 1)->state, CHECKPOINT_COMMITTED);
    for (int n = 0; n < 2; n++) {
        f->nodes[n].incarnation += 10;
        f->nodes[n].generation = f->nodes[n].request = f->nodes[n].applied_seq = 0;
    }
    core_hello(f, 0);
    assert_true(core_sent(f, 100, WIRE_SNAPSHOT)->u.snapshot.resume_repair);
    assert_int_equal(core_sent(f, 100, WIRE_SNAPSHOT)->u.snapshot.resume_checkpoint, 1);
}

#define T(test) cmocka_unit_test_setup_teardown(test, core_run_two_sharded, core_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(the_margin_names_who_still_writes_the_step_that_all_stand_at),
        T(who_joined_a_save_that_is_written_behind_opens_no_other),
        T(its_outcome_is_the_answer_to_whoever_wants_a_save),
        T(its_margin_is_the_earliest_of_who_joined),
        T(a_lost_writer_of_it_is_replaced_with_steps_broken_off),
        T(a_loss_or_failure_of_who_captured_leaves_it_as_it_is),
        T(a_round_of_an_ending_launch_ends_with_who_writes_it),
        T(a_writer_that_left_before_it_heard_of_its_commit_leaves_the_manifest_to_the_next_launch),
    };

    return cmocka_run_group_tests_name("core_behind", tests, NULL, NULL);
}
