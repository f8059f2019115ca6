/* The broker's core: from the decision to the commit, policy saves, manifests. PROTOCOL.md R5. */
#include "tests/support/core_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

/* Round 1, decided at step 4. */
static void decided(struct core_fixture *f, enum wire_cause cause)
{
    if (cause == CAUSE_TERMINATION)
        core_notice(f, 2, "n1", 600000);
    else
        core_save_now(f, "a");
    for (int n = 0; n < 3; n++)
        core_report(f, n, 1, 4, 4);
    assert_non_null(core_event(f, EVENT_DECISION));
}

/* --- the commit rule -------------------------------------------------------------------------- */

static void a_replicated_checkpoint_is_committed_by_its_one_shard(void **state)
{
    struct core_fixture *f = *state;

    decided(f, CAUSE_TERMINATION);
    core_at_step(f, 0, 1, 4, false);
    assert_core(f, "+part 1.0; +node 0 restored #2; 0:ack #2 MUSTER_OK");
    core_files(f, 0, 1, 4, 2);
    assert_core(f, "+file a; +file b; +node 0 restored #3; 0:ack #3 MUSTER_OK");
    core_saved(f, 0, 1, 4, 2);
    assert_core(f, "+shard 1.0; +checkpoint 1 writing; +part 1.0; +round 1 committed; "
                   "+checkpoint 1 committed; +job; +event 7; !7 commit r1 termination S4 c1 rank "
                   "0; +notice n1 served; +generation ending; +job; +node 0 restored #4; 0:ack "
                   "#4 MUSTER_OK");
    const struct record_checkpoint *row = &core_row(f, RECORD_CHECKPOINT)->u.checkpoint;
    assert_int_equal(row->step, 4);
    assert_int_equal(row->bytes, 30);
    assert_int_equal(row->epoch, 2);
    assert_int_equal(core_event(f, EVENT_COMMIT)->incarnation, 50);
    core_at_step(f, 1, 1, 4, true); /* what comes late changes nothing */
    assert_core(f, "+node 1 restored #2; 1:ack #2 MUSTER_E_ABORTED");
}

/* R5.11 */
static void a_sharded_checkpoint_needs_every_shard(void **state)
{
    struct core_fixture *f = *state;

    decided(f, CAUSE_OPERATOR);
    core_save(f, 2, 1, 4);
    core_save(f, 0, 1, 4);
    assert_events(f, "");
    core_save(f, 1, 1, 4);
    assert_events(f, "commit r1 operator S4 c1 rank 0");
    assert_int_equal(core_row(f, RECORD_CHECKPOINT)->u.checkpoint.bytes, 90);
    assert_int_equal(core_job(f)->gen.state, GENERATION_RUNNING);
}

struct wrong_case {
    const char *what;
    int node;
    uint64_t round;
    int64_t step;
    size_t files;
    const char *answer;
};

/* R5.11 */
static void a_shard_of_another_round_step_or_process_is_not_taken(void **state)
{
    struct core_fixture *f = *state;
    static const struct wrong_case table[] = {
        {"another round", 0, 2, 4, 1, "MUSTER_E_ABORTED"},
        {"no round", 0, 0, 4, 1, "MUSTER_E_ABORTED"},
        {"a step before", 0, 1, 3, 1, "MUSTER_E_ABORTED"},
        {"a step beyond", 0, 1, 5, 1, "MUSTER_E_ABORTED"},
        {"no writer", 1, 1, 4, 0, "MUSTER_E_ABORTED"},
    };

    decided(f, CAUSE_OPERATOR);
    core_files(f, 0, 1, 4, 1);
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        core_saved(f, table[i].node, table[i].round, table[i].step, table[i].files);
        if (strstr(core_answers(f), table[i].answer) == NULL)
            fail_msg("%s: %s", table[i].what, core_answers(f));
        assert_null(core_row(f, RECORD_SHARD));
        assert_int_equal(core_job(f)->rounds[0].state, ROUND_DECIDED);
    }
    core_at_step(f, 0, 1, 5, true);
    assert_non_null(strstr(core_answers(f), "MUSTER_E_ABORTED"));
    assert_int_equal(core_job(f)->rounds[0].parts[0].at_step_ms, -1);
    core_saved(f, 0, 1, 4, 1);
    assert_events(f, "commit r1 operator S4 c1 rank 0");
}

/* R5.11 */
static void a_shard_whose_files_are_not_all_known_is_not_waited_for(void **state)
{
    struct core_fixture *f = *state;

    decided(f, CAUSE_OPERATOR);
    core_files(f, 0, 1, 4, 1);
    core_saved(f, 0, 1, 4, 2); /* one was told to a database that was restored from a copy */
    assert_events(f, "abort r1 operator S4 rank 0 MUSTER_E_SAVE retry; freeze r2 operator m0,1,2");
    assert_string_equal(core_event(f, EVENT_ABORT)->text,
                        "rank 0 could not save: it wrote 2 files, and told the broker of 1");
    assert_null(core_row(f, RECORD_SHARD));
}

/* What could never be restored is not committed. */
static void more_files_than_a_manifest_holds_are_not_saved(void **state)
{
    struct core_fixture *f = *state;

    decided(f, CAUSE_OPERATOR);
    core_files(f, 0, 1, 4, 1);
    round_find(core_job(f), 1)->parts[0].files_taken = CHECKPOINT_FILES_MAX - 2;
    core_files(f, 1, 1, 4, 2);
    assert_events(f, "");
    core_files(f, 2, 1, 4, 1);
    assert_events(f, "abort r1 operator S4 rank 2 MUSTER_E_SAVE");
    assert_non_null(strstr(core_event(f, EVENT_ABORT)->text,
                           "rank 2 could not save: with its files the checkpoint has more than "));
}

static void another_life_of_a_rank_cannot_give_its_shard(void **state)
{
    struct core_fixture *f = *state;

    decided(f, CAUSE_OPERATOR);
    core_save(f, 1, 1, 4);
    core_save(f, 2, 1, 4);
    f->nodes[3] = f->nodes[0];
    f->nodes[3].incarnation = 90; /* the row of rank 0 was lost with the database's tail */
    f->nodes[3].route = 103;
    f->nodes[0].silent = true;
    core_pass(f, LOST_MS);
    assert_non_null(core_event(f, EVENT_ABORT));
    core_save(f, 3, 1, 4);
    assert_null(core_row(f, RECORD_SHARD));
    assert_answers(f, "3:ack #4 MUSTER_E_HELLO");
}

static void a_shard_is_counted_once(void **state)
{
    struct core_fixture *f = *state;

    decided(f, CAUSE_OPERATOR);
    core_save(f, 0, 1, 4);
    core_saved(f, 0, 1, 4, 1); /* a new number, the same shard */
    assert_core(f, "+node 0 restored #5; 0:ack #5 MUSTER_OK");
    core_files(f, 0, 1, 4, 1);
    assert_core(f, "+node 0 restored #6; 0:ack #6 MUSTER_E_ABORTED");
    assert_events(f, "");
}

/* --- failures --------------------------------------------------------------------------------- */

/* A rank whose later requests a database forgot says of all its saves that they failed: this one is
 * known there. */
static void a_shard_that_is_known_does_not_fail(void **state)
{
    struct core_fixture *f = *state;

    decided(f, CAUSE_OPERATOR);
    core_save(f, 0, 1, 4);
    core_save_failed(f, 0, 1, 4, MUSTER_E_SAVE);
    assert_answers(f, "0:ack #5 MUSTER_OK");
    assert_events(f, "");
    core_save(f, 1, 1, 4);
    core_save(f, 2, 1, 4);
    assert_non_null(core_event(f, EVENT_COMMIT));
    core_save_failed(f, 0, 1, 4, MUSTER_E_SAVE);
    assert_answers(f, "0:ack #6 MUSTER_E_ABORTED");
}

/* R5.14 */
static void a_save_that_fails_is_tried_again_but_not_on_a_full_disk(void **state)
{
    struct core_fixture *f = *state;

    decided(f, CAUSE_TERMINATION);
    core_save_failed(f, 0, 1, 4, MUSTER_E_SAVE);
    assert_core(f, "+round 1 aborted; +checkpoint 1 failed; +job; +event 7; !7 abort r1 "
                   "termination S4 rank 0 MUSTER_E_SAVE retry; +job; +round 2 freezing; +notice "
                   "n1 active; +job; +event 8; !8 freeze r2 termination m0,1,2; +node 0 restored "
                   "#2; 0:ack #2 MUSTER_OK");
    for (int n = 0; n < 3; n++)
        core_report(f, n, 2, 4, 4);
    core_save_failed(f, 0, 2, 4, MUSTER_E_STORAGE);
    assert_events(f, "abort r2 termination S4 rank 0 MUSTER_E_STORAGE; "
                     "not saved r2 termination rank 0 MUSTER_E_STORAGE");
    assert_string_equal(core_event(f, EVENT_NOT_SAVED)->text, "rank 0 could not save: no");
}

static void only_a_writer_can_fail_to_save(void **state)
{
    struct core_fixture *f = *state;

    decided(f, CAUSE_OPERATOR);
    core_save_failed(f, 1, 1, 4, MUSTER_E_SAVE);
    assert_core(f, "+node 1 restored #2; 1:ack #2 MUSTER_E_ABORTED");
    core_save_failed(f, 0, 1, 9, MUSTER_E_SAVE);
    assert_events(f, "");
}

/* R5.7, R5.14 */
static void a_node_beyond_the_save_step_aborts_the_round(void **state)
{
    struct core_fixture *f = *state;

    decided(f, CAUSE_OPERATOR);
    core_past(f, 1, 1, 6);
    assert_events(f, "abort r1 operator S4 rank 1 MUSTER_E_ABORTED retry; "
                     "freeze r2 operator m0,1,2");
    assert_string_equal(core_event(f, EVENT_ABORT)->text,
                        "rank 1 had begun step 6 already, past the save step 4");
    core_past(f, 2, 1, 6); /* of the past round */
    assert_events(f, "");
    core_past(f, 2, 2, 6); /* not decided yet: nonsense */
    assert_events(f, "");
}

static void who_was_captured_is_not_past(void **state)
{
    struct core_fixture *f = *state;

    decided(f, CAUSE_OPERATOR);
    core_at_step(f, 1, 1, 4, true);
    core_past(f, 1, 1, 9);
    assert_core(f, "+node 1 restored #3; 1:ack #3 MUSTER_E_ABORTED");
}

struct needed_case {
    const char *what;
    int node;
    bool saved, captured;
    const char *events;
};

/* R5.13 */
static void a_member_is_needed_until_it_captured_and_a_writer_until_it_saved(void **state)
{
    struct core_fixture *f = *state;
    static const struct needed_case table[] = {
        {"a member before its capture", 1, false, false,
         "abort r1 operator S4 rank 1 MUSTER_E_ABORTED retry; freeze r2 operator m0,2"},
        {"a member after its capture", 1, false, true, ""},
        {"the writer at the step", 0, false, true,
         "abort r1 operator S4 rank 0 MUSTER_E_ABORTED retry; freeze r2 operator m1,2"},
    };

    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        decided(f, CAUSE_OPERATOR);
        if (table[i].captured)
            core_at_step(f, table[i].node, 1, 4, table[i].node != 0);
        core_leave(f, table[i].node, LEAVE_FINISHED, 0);
        if (strcmp(core_events(f), table[i].events) != 0)
            fail_msg("%s: %s", table[i].what, core_events(f));
        core_fixture_close(f);
        core_fixture_running(f, 3, LAYOUT_REPLICATED);
    }
}

/* R5.14 */
static void a_save_is_bounded_from_the_arrival_of_its_rank(void **state)
{
    struct core_fixture *f = *state;

    decided(f, CAUSE_OPERATOR);
    core_at_step(f, 1, 1, 4, true);
    core_at_step(f, 2, 1, 4, true);
    core_pass(f, 30000);
    core_at_step(f, 0, 1, 4, false);
    core_pass(f, STUCK_MS - 1);
    assert_events(f, "");
    core_pass(f, 1);
    assert_events(f, "abort r1 operator S4 rank 0 MUSTER_E_TIMEOUT retry; "
                     "freeze r2 operator m0,1,2");
    assert_string_equal(core_event(f, EVENT_ABORT)->text, "rank 0 did not finish its save in 60 s");
}

/* --- writes behind ---------------------------------------------------------------------------- */

static void writing_begin(struct core_fixture *f)
{
    decided(f, CAUSE_OPERATOR);
    for (int n = 0; n < 3; n++)
        core_at_step(f, n, 1, 4, true);
    assert_int_equal(core_row(f, RECORD_ROUND)->u.round.state, ROUND_WRITING);
    assert_null(round_open_one(core_job(f)));
}

/* R5.2 */
static void a_round_whose_members_are_captured_lets_the_next_open(void **state)
{
    struct core_fixture *f = *state;

    writing_begin(f);
    core_save_now(f, "b");
    assert_events(f, "freeze r2 operator m0,1,2");
    core_files(f, 0, 1, 4, 1);
    core_saved(f, 0, 1, 4, 1);
    assert_events(f, "commit r1 operator S4 c1 rank 0");
    assert_int_equal(round_open_one(core_job(f))->round, 2);
}

static void write_behind_is_there(struct core_fixture *f)
{
    core_files(f, 0, 1, 4, 1);
    core_saved(f, 0, 1, 4, 1);
}

/* R5.5 */
static void a_step_that_is_being_written_counts_if_it_is_there_in_time(void **state)
{
    struct core_fixture *f = *state;

    writing_begin(f);
    core_notice(f, 1, "n1", 60000);
    assert_events(f, "termination rank 1; freeze r2 termination m0,1,2");
    core_report_all(f, 2, 4);
    assert_events(f, ""); /* S would be 4 */
    write_behind_is_there(f);
    assert_events(f, "commit r1 operator S4 c1 rank 0; unchanged r2 termination S4 c1");
    assert_int_equal(core_job(f)->gen.end_status, MUSTER_PREEMPTED);
}

/* Two are being written, each without another rank's shard; the termination waits for the later
 * one. */
static void at_the_margin_who_writes_the_awaited_step_is_named(void **state)
{
    struct core_fixture *f = *state;
    const struct {
        uint64_t round;
        int64_t step;
        int lacks;
    } saves[] = {{1, 4, 0}, {2, 6, 1}};

    for (size_t i = 0; i < sizeof saves / sizeof saves[0]; i++) {
        core_save_now(f, i == 0 ? "a" : "b");
        core_report_all(f, saves[i].round, saves[i].step);
        for (int n = 0; n < 3; n++)
            core_at_step(f, n, saves[i].round, saves[i].step, true);
        for (int n = 0; n < 3; n++)
            if (n != saves[i].lacks)
                core_save(f, n, saves[i].round, saves[i].step);
    }
    core_notice(f, 2, "n1", 2500);
    core_report_all(f, 3, 6);
    core_events(f);                       /* r3 is frozen, and waits for r2 */
    core_leave(f, 2, LEAVE_PREEMPTED, 0); /* its clock is the first to reach the margin */
    assert_events(f, "abort r3 termination rank 1 MUSTER_E_NOT_SAVED; "
                     "not saved r3 termination rank 1 MUSTER_E_NOT_SAVED");
    assert_string_equal(core_event(f, EVENT_ABORT)->text,
                        "the deadline's margin was reached while rank 1 had not saved");
}

/* R5.5 */
static void a_step_whose_writing_fails_is_saved_anew(void **state)
{
    struct core_fixture *f = *state;

    writing_begin(f);
    core_notice(f, 1, "n1", 60000);
    core_report_all(f, 2, 4);
    core_save_failed(f, 0, 1, 4, MUSTER_E_SAVE);
    assert_events(f, "abort r1 operator S4 rank 0 MUSTER_E_SAVE retry; "
                     "decision r2 termination S4 m0w,1,2");
}

static void a_step_that_is_written_too_long_is_saved_anew(void **state)
{
    struct core_fixture *f = *state;

    writing_begin(f);
    core_save_now(f, "b");
    core_report_all(f, 2, 4);
    core_pass(f, FREEZE_MS - 1);
    assert_events(f, "");
    core_pass(f, 1); /* before any node thaws */
    assert_events(f, "decision r2 operator S4 m0w,1,2");
    write_behind_is_there(f);
    assert_events(f, "commit r1 operator S4 c1 rank 0");
    core_save(f, 0, 2, 4);
    assert_events(f, "commit r2 operator S4 c2 rank 0");
}

/* R5.17 */
static void a_policy_save_of_a_step_that_is_being_written_is_skipped(void **state)
{
    struct core_fixture *f = *state;

    writing_begin(f);
    core_save_at(f, 0, 4);
    assert_events(f, "save skipped S4");
}

static void a_writer_that_is_lost_while_it_writes_behind_aborts_its_round_at_once(void **state)
{
    struct core_fixture *f = *state;

    writing_begin(f);
    f->nodes[0].silent = true;
    core_pass(f, LOST_MS);
    assert_events(f, "node lost S4 rank 0 MUSTER_E_PEER; "
                     "abort r1 operator S4 rank 0 MUSTER_E_PEER");
    assert_int_equal(core_job(f)->gen.state, GENERATION_ENDING);
}

static void a_failing_write_behind_does_not_push_a_termination_aside(void **state)
{
    struct core_fixture *f = *state;

    writing_begin(f);
    struct job *job = core_job(f);
    for (size_t i = 1; i < ROUNDS_ACTIVE_MAX; i++) { /* all places are taken */
        job->rounds[i].used = true;
        job->rounds[i].state = ROUND_WRITING;
        job->rounds[i].round = 90 + i;
        job->rounds[i].way_until_boot_ms = INT64_MAX;
    }
    core_notice(f, 1, "n1", 600000);
    assert_events(f, "termination rank 1");
    core_save_failed(f, 0, 1, 4, MUSTER_E_SAVE);
    assert_events(f, "abort r1 operator S4 rank 0 MUSTER_E_SAVE; "
                     "freeze r2 termination m0,1,2");
}

/* --- policy saves ----------------------------------------------------------------------------- */

/* R5.1 */
static void the_first_save_at_decides_and_the_others_hear_of_it(void **state)
{
    struct core_fixture *f = *state;

    f->nodes[2].begun = f->nodes[2].done = 50; /* it is there already, and asks next */
    core_pass(f, 500);
    core_save_at(f, 1, 50);
    assert_core(f, "+job; +round 1 decided; +checkpoint 1 writing; +part 1.0; +part 1.1; "
                   "+part 1.2; +job; +event 4; !4 decision r1 policy S50 m0w,1,2; "
                   "+node 1 restored #2; 1:ack #2 MUSTER_OK");
    core_save_at(f, 0, 50);
    assert_core(f, "+node 0 restored #2; 0:ack #2 MUSTER_OK");
    core_save(f, 0, 1, 50);
    assert_events(f, "commit r1 policy S50 c1 rank 0");
    core_save_at(f, 2, 50); /* late: it need not wait */
    assert_core(f, "+node 2 restored #2; 2:ack #2 MUSTER_E_EXISTS");
    core_save_at(f, 2, 40); /* older */
    assert_core(f, "+node 2 restored #3; 2:ack #3 MUSTER_E_ABORTED");
    core_save_at(f, 2, 60);
    assert_events(f, "decision r2 policy S60 m0w,1,2");
}

/* R5.17 */
static void a_save_at_is_answered_by_what_the_first_one_got(void **state)
{
    struct core_fixture *f = *state;

    core_commit_at(f, 10);
    core_save_at(f, 1, 10);
    assert_events(f, "save skipped S10 MUSTER_E_EXISTS"); /* on disk already */
    core_save_at(f, 0, 10);
    assert_core(f, "+node 0 restored #5; 0:ack #5 MUSTER_E_EXISTS");
    core_save_at(f, 0, 20);
    core_past(f, 2, 2, 21);
    assert_events(f, "abort r2 policy S20 rank 2 MUSTER_E_ABORTED"); /* never tried again */
    core_save_at(f, 1, 20);
    assert_answers(f, "1:ack #4 MUSTER_E_ABORTED");
    core_commit_at(f, 30);
    core_save_at(f, 0, 40);
    core_save(f, 0, 4, 40);
    core_save_at(f, 2, 10); /* who lags by more than one save: each of them is there */
    assert_answers(f, "2:ack #5 MUSTER_E_EXISTS");
    core_save_at(f, 2, 30);
    assert_answers(f, "2:ack #6 MUSTER_E_EXISTS");
    core_save_at(f, 2, 20);
    assert_answers(f, "2:ack #7 MUSTER_E_ABORTED");
    core_save_at(f, 2, 40);
    assert_answers(f, "2:ack #8 MUSTER_E_EXISTS");
}

/* The others heard that it is saved: whoever lags hears the same, whatever a keep policy did to it
 * since. */
static void a_save_that_was_deleted_since_is_a_save(void **state)
{
    struct core_fixture *f = *state;

    core_save_at(f, 0, 10);
    core_save(f, 0, 1, 10);
    core_save_at(f, 0, 20);
    core_save(f, 0, 2, 20);
    registry_drop(core_job(f), 1);
    core_save_at(f, 2, 10);
    assert_answers(f, "2:ack #2 MUSTER_E_EXISTS");
    core_restart(f, false);
    for (int n = 0; n < 3; n++)
        core_hello(f, n);
    registry_drop(core_job(f), 1);
    core_save_at(f, 1, 10);
    assert_answers(f, "1:ack #2 MUSTER_E_EXISTS");
}

/* R5.17 */
static void a_greater_step_waits_for_the_open_round(void **state)
{
    struct core_fixture *f = *state;

    core_save_at(f, 0, 50);
    core_at_step(f, 1, 1, 50, true);
    core_save_at(f, 1, 60); /* it was captured and trains on */
    assert_core(f, "+node 1 restored #3; 1:ack #3 MUSTER_OK");
    core_save(f, 0, 1, 50);
    assert_events(f, "commit r1 policy S50 c1 rank 0; decision r2 policy S60 m0w,1,2");
}

static void a_member_that_skips_the_save_step_aborts_the_round(void **state)
{
    struct core_fixture *f = *state;

    core_save_at(f, 0, 50);
    core_save_at(f, 1, 60); /* not captured at 50, and at 60 now */
    assert_events(f, "abort r1 policy S50 rank 1 MUSTER_E_ABORTED; "
                     "decision r2 policy S60 m0w,1,2");
}

static void a_step_that_others_have_passed_when_its_turn_comes_is_skipped(void **state)
{
    struct core_fixture *f = *state;

    core_save_now(f, "a");
    core_report(f, 0, 1, 45, 45);
    core_save_at(f, 0, 45); /* sent before the freeze was heard */
    core_report(f, 1, 1, 46, 45);
    core_report(f, 2, 1, 45, 45);
    assert_events(f, "decision r1 operator S46 m0w,1,2");
    core_at_step(f, 1, 1, 46, true);
    core_at_step(f, 2, 1, 46, true);
    core_save(f, 0, 1, 46);
    assert_events(f, "commit r1 operator S46 c1 rank 0; save skipped S45");
}

/* R5.17 */
static void a_sharded_policy_save_without_a_rank_is_skipped(void **state)
{
    struct core_fixture *f = *state;

    core_leave(f, 2, LEAVE_FINISHED, 0);
    core_save_at(f, 0, 50);
    assert_events(f, "save skipped S50");
    assert_string_equal(core_event(f, EVENT_SAVE_SKIPPED)->text,
                        "rank 2 finished, and a sharded checkpoint needs every rank");
}

static void steps_that_cannot_be_are_refused(void **state)
{
    struct core_fixture *f = *state;
    int64_t table[] = {-1, INT64_MIN, INT64_MAX};

    for (size_t i = 0; i < 3; i++) {
        core_save_at(f, 0, table[i]);
        assert_events(f, "");
        assert_non_null(strstr(core_answers(f), "MUSTER_E_ARGUMENT"));
    }
    f->nodes[0].p95_ms = INT32_MAX; /* the longest way that can be told does not overflow */
    core_pass(f, 500);
    core_save_at(f, 0, STEP_MAX - 1);
    assert_non_null(core_event(f, EVENT_DECISION));
    f->nodes[1].begun = INT64_MAX;
    f->nodes[1].done = INT64_MIN;
    core_pass(f, 500);
    assert_int_equal(core_job(f)->trainers[1]->begun, 0);
}

static void a_notice_takes_a_policy_save_as_its_own(void **state)
{
    struct core_fixture *f = *state;

    core_save_at(f, 0, 50);
    core_notice(f, 1, "n1", FREEZE_MS + 2 * MARGIN_MS); /* no other one fits in */
    assert_events(f, "termination r1 rank 1");
    core_save(f, 0, 1, 50);
    assert_events(f, "commit r1 termination S50 c1 rank 0");
    core_save_at(f, 0, 60);
    assert_events(f, "");
    assert_answers(f, "0:ack #6 MUSTER_E_ABORTED");
}

/* --- manifests -------------------------------------------------------------------------------- */

/* R5.12 */
static void the_lowest_live_writer_makes_the_manifest(void **state)
{
    struct core_fixture *f = *state;

    decided(f, CAUSE_TERMINATION);
    core_save(f, 0, 1, 4);
    core_leave(f, 0, LEAVE_FINISHED, 0); /* its shard is there: nobody needs it any more */
    assert_events(f, "");
    core_save(f, 1, 1, 4);
    core_save(f, 2, 1, 4);
    assert_events(f, "commit r1 termination S4 c1 rank 1");
    assert_int_equal(core_event(f, EVENT_COMMIT)->incarnation, 51);
}

/* One is decided at a time, and the greatest step stands for those before it. */
static void of_saves_that_wait_for_a_round_the_latest_is_made(void **state)
{
    struct core_fixture *f = *state;

    core_save_now(f, "a");
    core_save_at(f, 0, 20);
    core_save_at(f, 1, 40);
    core_save_at(f, 2, 30);
    for (int n = 0; n < 3; n++)
        core_report(f, n, 1, 10, 10);
    core_save(f, 0, 1, 10);
    assert_int_equal(core_event(f, EVENT_DECISION)->step, 40);
}

#define T(test, setup) cmocka_unit_test_setup_teardown(test, setup, core_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(of_saves_that_wait_for_a_round_the_latest_is_made, core_run_three),
        T(a_replicated_checkpoint_is_committed_by_its_one_shard, core_run_three),
        T(a_sharded_checkpoint_needs_every_shard, core_run_three_sharded),
        T(a_shard_of_another_round_step_or_process_is_not_taken, core_run_three),
        T(a_shard_whose_files_are_not_all_known_is_not_waited_for, core_run_three),
        T(more_files_than_a_manifest_holds_are_not_saved, core_run_three_sharded),
        T(another_life_of_a_rank_cannot_give_its_shard, core_run_three_sharded),
        T(a_shard_is_counted_once, core_run_three_sharded),
        T(a_save_that_fails_is_tried_again_but_not_on_a_full_disk, core_run_three),
        T(a_shard_that_is_known_does_not_fail, core_run_three_sharded),
        T(only_a_writer_can_fail_to_save, core_run_three),
        T(a_node_beyond_the_save_step_aborts_the_round, core_run_three),
        T(who_was_captured_is_not_past, core_run_three),
        T(a_member_is_needed_until_it_captured_and_a_writer_until_it_saved, core_run_three),
        T(a_save_is_bounded_from_the_arrival_of_its_rank, core_run_three),
        T(a_round_whose_members_are_captured_lets_the_next_open, core_run_three),
        T(a_step_that_is_being_written_counts_if_it_is_there_in_time, core_run_three),
        T(at_the_margin_who_writes_the_awaited_step_is_named, core_run_three_sharded),
        T(a_step_whose_writing_fails_is_saved_anew, core_run_three),
        T(a_step_that_is_written_too_long_is_saved_anew, core_run_three),
        T(a_policy_save_of_a_step_that_is_being_written_is_skipped, core_run_three),
        T(a_writer_that_is_lost_while_it_writes_behind_aborts_its_round_at_once, core_run_three),
        T(a_failing_write_behind_does_not_push_a_termination_aside, core_run_three),
        T(the_first_save_at_decides_and_the_others_hear_of_it, core_run_three),
        T(a_save_at_is_answered_by_what_the_first_one_got, core_run_three),
        T(a_save_that_was_deleted_since_is_a_save, core_run_three),
        T(a_greater_step_waits_for_the_open_round, core_run_three),
        T(a_member_that_skips_the_save_step_aborts_the_round, core_run_three),
        T(a_step_that_others_have_passed_when_its_turn_comes_is_skipped, core_run_three),
        T(a_sharded_policy_save_without_a_rank_is_skipped, core_run_three_sharded),
        T(steps_that_cannot_be_are_refused, core_run_three),
        T(a_notice_takes_a_policy_save_as_its_own, core_run_three),
        T(the_lowest_live_writer_makes_the_manifest, core_run_three_sharded),
    };

    return cmocka_run_group_tests_name("core_save", tests, NULL, NULL);
}
