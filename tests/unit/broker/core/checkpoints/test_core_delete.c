/* The broker's core: deletions, from the decision to the chief's hand. */
#include "tests/unit/broker/core/core_keep_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

/* --- deletions -------------------------------------------------------------------------------- */

/* R12.6 */
static void a_deletion_is_on_record_before_it_is_told(void **state)
{
    struct core_fixture *f = *state;

    core_policies(f, "latest 1", "");
    assert_core(f, "+policy 'latest 1' ''; +node 0 restored #2; 0:ack #2 MUSTER_OK");
    uint64_t first = core_saved_whole(f, 1);
    core_commit_at(f, 2);
    uint64_t second = core_job(f)->round;
    assert_int_equal(core_checkpoint(f, first)->state,
                     CHECKPOINT_COMMITTED); /* the last whole one */
    core_manifest_done(f, second, 2);
    assert_int_equal(core_checkpoint(f, first)->state, CHECKPOINT_DELETING);
    core_tick(f);
    assert_deletes(f, "0:1");
    const struct wire_delete *told = &core_sent(f, 100, WIRE_DELETE)->u.delete;
    assert_string_equal(told->path, "/ckpt/1");
    assert_int_equal(told->step, 1);
    assert_int_equal(told->round_generation, 1);
    core_pass(f, (2 * HEARTBEAT_MS) - 1);
    assert_deletes(f, "");
    core_pass(f, 1);
    assert_deletes(f, "0:1"); /* until it is done */
    core_start_again(f);
    core_tick(f);
    assert_deletes(f, "0:1");
    core_deleted(f, 0, first, MUSTER_OK);
    assert_int_equal(core_checkpoint(f, first)->state, CHECKPOINT_DELETED);
    core_deleted(f, 0, first, MUSTER_OK); /* told twice */
    assert_int_equal(core_ack_code(f, 0), MUSTER_OK);
    core_pass(f, 10000);
    assert_deletes(f, "");
}

/* R12.8 */
static void one_that_fails_waits_and_the_others_go_on(void **state)
{
    struct core_fixture *f = *state;

    core_policies(f, "latest 1", "");
    uint64_t first = core_saved_whole(f, 1);
    uint64_t second = core_saved_whole(f, 2);
    core_saved_whole(f, 3);
    core_tick(f);
    core_deleted(f, 0, first, MUSTER_E_IO);
    core_tick(f);
    core_deleted(f, 0, second, MUSTER_OK);
    core_tick(f);
    assert_deletes(f, "");
    core_pass(f, START_GRACE_MS);
    assert_deletes(f, "0:1");
}

/* R12.6 */
static void eight_are_told_at_a_time(void **state)
{
    struct core_fixture *f = *state;

    for (int64_t step = 1; step <= DELETES_IN_FLIGHT_MAX + 3; step++)
        core_saved_whole(f, step);
    core_policies(f, "latest 1", "");
    core_tick(f);
    assert_deletes(f, "0:10 0:9 0:8 0:7 0:6 0:5 0:4 0:3");
    core_deleted(f, 0, 7, MUSTER_OK);
    core_tick(f);
    assert_deletes(f, "0:2");
    core_deleted(f, 0, 3, MUSTER_OK);
    core_tick(f);
    assert_deletes(f, "0:1");
}

/* Whoever is launched next, or closes, is not to wait for a time that was set for the one
 * before (R12.8). */
static void a_deletion_that_failed_is_tried_by_the_next_launch_and_at_the_end(void **state)
{
    struct core_fixture *f = *state;
    uint64_t first;

    core_policies(f, "latest 1", "");
    first = core_saved_whole(f, 1);
    core_saved_whole(f, 2);
    core_tick(f);
    core_deleted(f, 0, first, MUSTER_E_IO);
    core_tick(f);
    assert_deletes(f, "");
    core_sweep(f, true);
    assert_int_equal(core_ack_value(f, 0), 1);
    core_tick(f);
    assert_deletes(f, "0:1");
    core_deleted(f, 0, first, MUSTER_E_IO);
    core_sweep(f, true); /* once: not with each question how many are left */
    assert_string_equal(core_sent(f, 100, WIRE_ACK)->u.ack.text, "why not");
    core_tick(f);
    assert_deletes(f, "");
    core_launch_again(f, "latest 1");
    core_tick(f);
    assert_deletes(f, "0:1");
}

/* R12.6 */
static void the_next_rank_deletes_when_the_chief_is_gone(void **state)
{
    struct core_fixture *f = *state; /* three */

    core_policies(f, "latest 1", "");
    core_saved_whole(f, 1);
    core_saved_whole(f, 2);
    core_leave(f, 0, LEAVE_FINISHED, 0);
    core_pass(f, (2 * HEARTBEAT_MS));
    assert_deletes(f, "1:1");
}

/* R12.3 */
static void a_checkpoint_without_its_manifest_stays_until_it_has_one(void **state)
{
    struct core_fixture *f = *state;

    core_policies(f, "latest 1", "");
    core_commit_at(f, 1);
    uint64_t first = core_job(f)->round;
    core_saved_whole(f, 2);
    assert_kept(f, "its writer may be at it", "1 2");
    core_manifest_done(f, first, 1);
    assert_kept(f, "now it may go", "2");
}

/* R12.3 */
static void the_last_whole_one_stays_until_a_newer_one_is(void **state)
{
    struct core_fixture *f = *state;

    core_policies(f, "latest 1", "");
    uint64_t first = core_saved_whole(f, 1);
    core_commit_at(f, 2);
    uint64_t second = core_job(f)->round;
    core_obey(f);
    assert_kept(f, "what can be read", "1 2");
    core_drop(f, first, true);
    assert_int_equal(core_ack_code(f, 0), MUSTER_E_BUSY);
    core_sweep(f, true);
    assert_int_equal(core_ack_value(f, 0), 1); /* it waits for the manifest */
    core_start_again(f);
    core_policies(f, "latest 0", "");
    core_obey(f);
    assert_kept(f, "what can be read after a start", "1 2");
    core_manifest_done(f, second, 2);
    core_tick(f);
    assert_deletes(f, "0:1");
}

/* A chief that closed waited ten seconds for what had failed already. */
static void a_manifest_that_was_given_up_is_not_waited_for(void **state)
{
    struct core_fixture *f = *state;
    struct wire_msg given_up = core_msg(f, 0, WIRE_MANIFEST_DONE);

    core_policies(f, "latest 1", "");
    uint64_t first = core_saved_whole(f, 1);
    core_commit_at(f, 2);
    uint64_t second = core_job(f)->round;
    core_sweep(f, false);
    assert_int_equal(core_ack_value(f, 0), 1);
    given_up.u.manifest_done = (struct wire_manifest_done){.checkpoint = second, .path = ""};
    core_say(f, 0, given_up);
    assert_int_equal(core_ack_code(f, 0), MUSTER_OK);
    core_sweep(f, false);
    assert_int_equal(core_ack_value(f, 0), 0);
    assert_kept(f, "what can be read, and the newest", "1 2");
    assert_int_equal(core_checkpoint(f, first)->state, CHECKPOINT_COMMITTED);
    core_manifest_done(f, second, 2); /* the next launch's */
    assert_int_equal(core_checkpoint(f, first)->state, CHECKPOINT_DELETING);
}

static void the_last_manifest_of_a_launch_lets_the_older_one_go(void **state)
{
    struct core_fixture *f = *state;

    core_policies(f, "latest 1", "");
    core_saved_whole(f, 1);
    core_notice(f, 0, "n1", 1000000);
    uint64_t last = core_job(f)->round;
    core_report(f, 0, last, 4, 4);
    core_save(f, 0, last, 4);
    assert_int_equal(core_job(f)->gen.state, GENERATION_ENDING);
    assert_kept(f, "no manifest yet", "1 4");
    core_manifest_done(f, last, 4);
    core_tick(f);
    assert_deletes(f, "0:1");
    assert_kept(f, "the launch's last", "4");
}

static void a_deletion_is_not_told_while_nothing_as_new_is_whole(void **state)
{
    struct core_fixture *f = *state;

    core_saved_whole(f, 1);
    uint64_t second = core_saved_whole(f, 2);
    core_drop(f, second, true);
    assert_int_equal(core_ack_code(f, 0), MUSTER_OK);
    core_commit_at(f, 3);
    uint64_t third = core_job(f)->round;
    core_pass(f, 2 * (2 * HEARTBEAT_MS));
    assert_deletes(f, "");
    core_manifest_done(f, third, 3);
    core_tick(f);
    assert_deletes(f, "0:2");
}

/* A launch's choice that is deleted is no reason to save nothing (R5.5). */
static void what_was_dropped_is_saved_again(void **state)
{
    struct core_fixture *f = *state;

    core_saved_whole(f, 4);
    core_launch_again(f, "");
    core_drop(f, registry_newest(core_job(f))->row.round, true);
    core_obey(f);
    assert_kept(f, "dropped", "");
    core_save_now(f, "a");
    uint64_t round = core_job(f)->round;
    core_report(f, 0, round, 4, 4);
    assert_int_equal(core_job(f)->rounds[0].state, ROUND_DECIDED);
    core_save(f, 0, round, 4);
    assert_kept(f, "saved again", "4");
}

/* R12.1 */
static void another_launch_keeps_all_until_it_tells_its_policies(void **state)
{
    struct core_fixture *f = *state;

    core_policies(f, "latest 1", "");
    core_saved_whole(f, 1);
    core_saved_whole(f, 2);
    core_obey(f);
    core_launch_again(f, "");
    core_saved_whole(f, 3);
    core_saved_whole(f, 4);
    core_obey(f);
    assert_kept(f, "it wants all", "2 3 4");
    core_policies(f, "latest 2", "");
    core_obey(f);
    assert_kept(f, "now it does not", "3 4");
}

/* A launch that had not told its policies yet removed for good what the one before it wanted moved.
 */
static void a_deletion_goes_where_the_launch_that_decided_it_said(void **state)
{
    struct core_fixture *f = *state;

    core_policies_trash(f, "latest 1", "old");
    core_saved_whole(f, 1);
    core_saved_whole(f, 2);
    core_tick(f);
    assert_deletes(f, "0:1");
    assert_string_equal(core_sent(f, 100, WIRE_DELETE)->u.delete.trash, "old");
    core_launch_again(f, "");
    core_pass(f, (2 * HEARTBEAT_MS));
    assert_deletes(f, "0:1");
    assert_string_equal(core_sent(f, 100, WIRE_DELETE)->u.delete.trash, "old");
    core_start_again(f);
    core_policies_trash(f, "latest 1", "elsewhere");
    core_pass(f, (2 * HEARTBEAT_MS));
    assert_deletes(f, "0:1");
    assert_string_equal(core_sent(f, 100, WIRE_DELETE)->u.delete.trash, "old");
}

int main(void)
{
#define ONE(test) cmocka_unit_test_setup_teardown(test, core_run_one, core_close)
#define THREE(test) cmocka_unit_test_setup_teardown(test, core_run_three, core_close)
    const struct CMUnitTest tests[] = {
        ONE(a_deletion_is_on_record_before_it_is_told),
        ONE(eight_are_told_at_a_time),
        ONE(one_that_fails_waits_and_the_others_go_on),
        ONE(a_deletion_that_failed_is_tried_by_the_next_launch_and_at_the_end),
        THREE(the_next_rank_deletes_when_the_chief_is_gone),
        ONE(a_checkpoint_without_its_manifest_stays_until_it_has_one),
        ONE(the_last_whole_one_stays_until_a_newer_one_is),
        ONE(a_manifest_that_was_given_up_is_not_waited_for),
        ONE(the_last_manifest_of_a_launch_lets_the_older_one_go),
        ONE(a_deletion_is_not_told_while_nothing_as_new_is_whole),
        ONE(what_was_dropped_is_saved_again),
        ONE(a_deletion_goes_where_the_launch_that_decided_it_said),
        ONE(another_launch_keeps_all_until_it_tells_its_policies),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
