/* The broker's core: what is never deleted: pinned, being restored, the newest. */
#include "tests/unit/broker/core/core_keep_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

/* --- what is never deleted -------------------------------------------------------------------- */

/* R12.3, R12.10 */
static void a_pinned_checkpoint_stays_until_it_is_let_go(void **state)
{
    struct core_fixture *f = *state;

    core_policies(f, "latest 1", "");
    uint64_t first = core_saved_whole(f, 1);
    core_pin(f, first, "op", 0);
    assert_true(core_checkpoint(f, first)->pinned);
    core_saved_whole(f, 2);
    core_start_again(f);
    core_saved_whole(f, 3);
    core_obey(f);
    assert_kept(f, "pinned", "1 3");
    core_pin(f, 0, "op", 0); /* the newest */
    core_unpin(f, first, "somebody else");
    assert_kept(f, "not by another", "1 3");
    core_unpin(f, first, "op");
    assert_kept(f, "let go", "3");
    assert_int_equal(core_job(f)->keep.pins_count, 1);
}

/* R12.10 */
static void a_lease_falls_and_is_prolonged(void **state)
{
    struct core_fixture *f = *state;

    core_policies(f, "latest 1", "");
    uint64_t first = core_saved_whole(f, 1);
    core_pin(f, first, "reader", 10000);
    core_saved_whole(f, 2);
    core_pass(f, 9000);
    core_pin(f, first, "reader", 10000);
    f->now += 9000;
    core_start_again(f);       /* it counts on over a start */
    core_pass(f, LOST_MS - 1); /* a second of it was left: there is time to prolong it */
    assert_kept(f, "held", "1 2");
    core_pass(f, 1000);
    assert_kept(f, "fallen", "2");
    assert_int_equal(core_job(f)->keep.pins_count, 0);
}

static void pins_of_what_is_not_there_are_refused(void **state)
{
    struct core_fixture *f = *state;

    core_pin(f, 0, "op", 0);
    assert_non_null(strstr(core_answers(f), "MUSTER_E_NOT_FOUND"));
    core_saved_whole(f, 1);
    core_pin(f, 77, "op", 0);
    assert_non_null(strstr(core_answers(f), "MUSTER_E_NOT_FOUND"));
    core_pin(f, 0, "", 0);
    assert_non_null(strstr(core_answers(f), "MUSTER_E_ARGUMENT"));
    core_pin(f, 0, "op", -1);
    assert_non_null(strstr(core_answers(f), "MUSTER_E_ARGUMENT"));
}

/* R12.3, R12.12 */
static void what_is_being_restored_stays(void **state)
{
    struct core_fixture *f = *state;

    core_policies(f, "latest 1", "");
    uint64_t first = core_saved_whole(f, 1);
    core_launch_again(f, "latest 1");
    f->nodes[1] =
        (struct core_node){.role = ROLE_EVALUATOR, .rank = 0, .incarnation = 990, .route = 101};
    core_hello(f, 1); /* joins, and reads the launch's choice */
    core_saved_whole(f, 2);
    core_obey(f);
    assert_kept(f, "an evaluator reads it", "1 2");
    core_restored(f, 1, first, 1);
    core_obey(f);
    assert_kept(f, "it has restored", "2");
    f->nodes[2] =
        (struct core_node){.role = ROLE_EVALUATOR, .rank = 1, .incarnation = 991, .route = 102};
    core_hello(f, 2); /* the launch's choice is gone: it is told the newest */
    const struct wire_snapshot *snapshot = &core_sent(f, 102, WIRE_SNAPSHOT)->u.snapshot;
    uint64_t told = snapshot->resume_checkpoint;
    assert_string_equal(snapshot->resume_path, "/ckpt/2");
    core_saved_whole(f, 3);
    core_obey(f);
    assert_kept(f, "it reads the newest of its time", "2 3");
    core_restored(f, 2, told, 2);
    assert_int_equal(core_ack_code(f, 2), MUSTER_OK);
    core_obey(f);
    assert_kept(f, "both have restored", "3");
}

/* It was told the choice without a path, failed to restore it, came back, and so on until somebody
 * saved (R12.12). */
static void a_observer_that_finds_all_deleted_begins_from_nothing(void **state)
{
    struct core_fixture *f = *state;

    uint64_t first = core_saved_whole(f, 1);
    core_launch_again(f, "");
    core_drop(f, first, true);
    core_obey(f);
    assert_kept(f, "dropped", "");
    f->nodes[1] =
        (struct core_node){.role = ROLE_EVALUATOR, .rank = 0, .incarnation = 990, .route = 101};
    core_hello(f, 1);
    assert_int_equal(core_sent(f, 101, WIRE_SNAPSHOT)->u.snapshot.resume_checkpoint, 0);
    assert_int_equal(core_sent(f, 101, WIRE_SNAPSHOT)->u.snapshot.resume_step, 0);
    core_restored(f, 1, 0, 0);
    assert_int_equal(core_ack_code(f, 1), MUSTER_OK);
}

/* What an observer was told to restore is in no row: after a start of the broker it may be any. */
static void what_is_being_restored_stays_over_a_start(void **state)
{
    struct core_fixture *f = *state;

    core_policies(f, "latest 1", "");
    core_saved_whole(f, 1);
    core_launch_again(f, "latest 1");
    core_saved_whole(f, 2);
    core_obey(f);
    uint64_t second = registry_newest(core_job(f))->row.round;
    f->nodes[1] =
        (struct core_node){.role = ROLE_EVALUATOR, .rank = 0, .incarnation = 990, .route = 101};
    core_hello(f, 1); /* is told the newest: the launch's choice is gone */
    assert_int_equal(core_sent(f, 101, WIRE_SNAPSHOT)->u.snapshot.resume_checkpoint, second);
    f->nodes[1].applied_seq = core_job(f)->seq;
    core_start_again(f);
    core_hello(f, 1);
    core_saved_whole(f, 3);
    core_obey(f);
    assert_kept(f, "it still reads", "2 3");
    core_hello(f, 1); /* with a snapshot or without */
    core_restored(f, 1, second, 2);
    assert_int_equal(core_ack_code(f, 1), MUSTER_OK);
    core_obey(f);
    assert_kept(f, "it has restored", "3");
}

/* A snapshot that is told again does not move it to another one (R12.12). */
static void who_is_told_again_reads_the_same(void **state)
{
    struct core_fixture *f = *state;

    core_policies(f, "latest 1", "");
    core_saved_whole(f, 1);
    core_launch_again(f, "latest 1");
    core_saved_whole(f, 2);
    core_obey(f);
    f->nodes[1] =
        (struct core_node){.role = ROLE_EVALUATOR, .rank = 0, .incarnation = 990, .route = 101};
    core_hello(f, 1);
    uint64_t told = core_sent(f, 101, WIRE_SNAPSHOT)->u.snapshot.resume_checkpoint;
    core_saved_whole(f, 3);
    f->nodes[1].applied_seq = 0; /* it lost the journal */
    core_hello(f, 1);
    assert_int_equal(core_sent(f, 101, WIRE_SNAPSHOT)->u.snapshot.resume_checkpoint, told);
}

/* R12.3 */
static void nothing_goes_while_ranks_restore(void **state)
{
    struct core_fixture *f = *state; /* three */

    core_policies(f, "latest 1", "");
    core_saved_whole(f, 1);
    core_saved_whole(f, 2);
    for (int n = 0; n < 3; n++)
        core_leave(f, n, LEAVE_FINISHED, 0);
    for (int n = 0; n < 3; n++) {
        f->nodes[n].incarnation += 100;
        f->nodes[n].generation = f->nodes[n].request = 0;
        f->nodes[n].begun = f->nodes[n].done = 0;
        core_hello(f, n);
    }
    core_tick(f);
    assert_deletes(f, ""); /* what was decided waits for a hand that has restored */
    core_policies(f, "latest 0", "");
    assert_kept(f, "joining", "2");
}

/* A database that was restored from a copy may hold pins that nobody remembers. */
static void a_refused_deletion_names_who_holds_on_to_it(void **state)
{
    struct core_fixture *f = *state;
    uint64_t first = core_saved_whole(f, 1);

    core_saved_whole(f, 2);
    core_pin(f, first, "nightly", 60000);
    core_drop(f, first, false);
    assert_int_equal(core_ack_code(f, 0), MUSTER_E_BUSY);
    assert_string_equal(core_sent(f, 100, WIRE_ACK)->u.ack.text,
                        "checkpoint 1 (step 1) stays: nightly has pinned it, for 60 s more");
    core_pin(f, first, "anna", 0);
    core_drop(f, first, false);
    assert_string_equal(
        core_sent(f, 100, WIRE_ACK)->u.ack.text,
        "checkpoint 1 (step 1) stays: anna has pinned it; `muster unpin 1 --job train "
        "--id anna` lets it go");
}

/* R12.11 */
static void a_checkpoint_is_dropped_on_demand_but_for_what_must_stay(void **state)
{
    struct core_fixture *f = *state;
    struct wire_msg message = core_msg(f, 0, WIRE_DROP);

    uint64_t first = core_saved_whole(f, 1);
    uint64_t second = core_saved_whole(f, 2);
    core_pin(f, first, "op", 0);
    message.u.drop.checkpoint = first;
    core_say(f, 0, message);
    assert_int_equal(core_ack_code(f, 0), MUSTER_E_BUSY);
    message.u.drop.checkpoint = second;
    core_say(f, 0, message);
    assert_int_equal(core_ack_code(f, 0), MUSTER_E_BUSY);
    core_unpin(f, first, "op");
    message.u.drop.checkpoint = first;
    core_say(f, 0, message);
    assert_int_equal(core_ack_code(f, 0), MUSTER_OK);
    core_say(f, 0, message); /* it goes already */
    assert_int_equal(core_ack_code(f, 0), MUSTER_OK);
    message.u.drop.checkpoint = second;
    message.u.drop.newest = true;
    core_say(f, 0, message);
    assert_int_equal(core_ack_code(f, 0), MUSTER_OK);
    core_obey(f);
    assert_kept(f, "all dropped", "");
    core_say(f, 0, message);
    assert_int_equal(core_ack_code(f, 0), MUSTER_E_NOT_FOUND);
}

int main(void)
{
#define ONE(test) cmocka_unit_test_setup_teardown(test, core_run_one, core_close)
#define THREE(test) cmocka_unit_test_setup_teardown(test, core_run_three, core_close)
    const struct CMUnitTest tests[] = {
        ONE(a_pinned_checkpoint_stays_until_it_is_let_go),
        ONE(a_lease_falls_and_is_prolonged),
        ONE(pins_of_what_is_not_there_are_refused),
        ONE(what_is_being_restored_stays),
        ONE(a_observer_that_finds_all_deleted_begins_from_nothing),
        ONE(what_is_being_restored_stays_over_a_start),
        ONE(who_is_told_again_reads_the_same),
        THREE(nothing_goes_while_ranks_restore),
        ONE(a_refused_deletion_names_who_holds_on_to_it),
        ONE(a_checkpoint_is_dropped_on_demand_but_for_what_must_stay),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
