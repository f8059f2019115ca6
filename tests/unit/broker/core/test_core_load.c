/* The broker's core: killed and started again, from the rows that it wrote. What was decided
 * stands, what was not begins again. RECOVERY.md R9, and the invariants I4, I12. */
#include "tests/support/core_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static void all_back(struct core_fixture *f)
{
    for (int n = 0; n < 3; n++) {
        f->nodes[n].applied_seq = core_job(f)->seq;
        core_hello(f, n);
    }
}

/* R9.1 */
static void each_start_has_its_own_epoch_and_id(void **state)
{
    struct core_fixture *f = *state;

    assert_int_equal(core_epoch(f->core), 1);
    core_restart(f, false);
    assert_core(f, "+broker 2; +job");
    assert_int_equal(core_epoch(f->core), 2);
    assert_int_equal(core_start_id(f->core), 7002);
    core_restart(f, false);
    assert_core(f, "+broker 3; +job");
}

static void a_node_that_comes_back_misses_nothing(void **state)
{
    struct core_fixture *f = *state;

    f->nodes[1].applied_seq = 2;
    core_restart(f, false);
    core_hello(f, 1);
    assert_core(f, "+node 1 restored #1; 1:welcome g1"); /* it asks for what it lacks */
    assert_int_equal(core_sent(f, 101, WIRE_WELCOME)->down.last_seq, 3);
    assert_false(core_sent(f, 101, WIRE_WELCOME)->u.welcome.snapshot_follows);
    core_tick(f);
    assert_answers(f, "");
    f->now += HEARTBEAT_MS; /* and if not, it is repeated */
    core_tick(f);
    assert_answers(f, "1:events 3");
}

/* R9.2 */
static void an_undecided_round_is_aborted_and_opened_anew_when_all_are_back(void **state)
{
    struct core_fixture *f = *state;

    core_notice(f, 1, "n1", 60000);
    core_report(f, 0, 1, 5, 5);
    core_restart(f, false);
    assert_core(f, "+broker 2; +job; +round 1 aborted; +job; +event 6; "
                   "!6 abort r1 termination MUSTER_E_ABORTED retry; +job");
    f->nodes[0].applied_seq = f->nodes[1].applied_seq = f->nodes[2].applied_seq = 6;
    core_hello(f, 0);
    core_hello(f, 1);
    assert_events(f, "");
    core_hello(f, 2);
    assert_events(f, "freeze r2 termination m0,1,2");
    assert_int_equal(core_job(f)->rounds[0].count, 3);
    assert_int_equal(core_job(f)->rounds[0].attempt, 1); /* not the cause's fault */
    assert_int_equal(core_job(f)->rounds[0].deadline_boot_ms, CORE_START_MS + 1000 + 60000);
}

/* R9.2 */
static void whoever_is_not_back_after_six_seconds_is_not_waited_for(void **state)
{
    struct core_fixture *f = *state;

    core_notice(f, 1, "n1", 60000);
    core_restart(f, false);
    core_hello(f, 0);
    core_hello(f, 1);
    core_pass(f, START_FREEZE_MS - 1);
    assert_events(f, "");
    core_pass(f, 1);
    assert_events(f, "freeze r2 termination m0,1,2");
    core_report(f, 0, 2, 5, 5);
    core_report(f, 1, 2, 5, 5);
    core_pass(f, FREEZE_MS);
    assert_events(f, "abort r2 termination rank 2 MUSTER_E_TIMEOUT retry; "
                     "freeze r3 termination m0,1");
}

/* Its peers may wait for it in a step, and nobody but the broker can tell them that it is
 * gone (R9.5). */
static void whoever_is_not_back_is_lost_at_once_if_a_deadline_forces_it(void **state)
{
    struct core_fixture *f = *state;

    core_notice(f, 1, "n1", 30000);
    core_restart(f, false);
    core_hello(f, 0);
    core_hello(f, 1);
    core_pass(f, START_FREEZE_MS);
    assert_events(f, "freeze r2 termination m0,1,2");
    core_report(f, 0, 2, 5, 5);
    core_report(f, 1, 2, 6, 5);
    core_pass(f, FREEZE_MS);
    core_pass(f, HEARTBEAT_MS);
    const struct wire_event *lost = core_event(f, EVENT_NODE_LOST);
    assert_non_null(lost);
    assert_int_equal(lost->rank, 2);
    assert_int_equal(core_job(f)->gen.error_rank, 2);
}

/* R9.2 */
static void a_near_deadline_forces_the_freeze(void **state)
{
    struct core_fixture *f = *state;

    core_notice(f, 1, "n1", 7000);
    core_restart(f, false);
    core_hello(f, 0);
    core_pass(f, 2500);
    assert_events(f, "");
    core_pass(f, 500); /* freeze and twice the margin are left */
    assert_events(f, "freeze r2 termination m0,1,2");
}

static void a_freeze_that_breaks_off_steps_stays_one(void **state)
{
    struct core_fixture *f = *state;

    core_notice(f, 2, "n1", 120000);
    core_error(f, 1, 5, "bad");
    assert_non_null(core_event(f, EVENT_FREEZE));
    core_restart(f, false);
    all_back(f);
    assert_events(f, "freeze r3 termination abort m0,2");
}

/* R9.3 */
static void a_decided_round_goes_on_and_is_never_decided_again(void **state)
{
    struct core_fixture *f = *state;

    core_notice(f, 1, "n1", 60000);
    for (int n = 0; n < 3; n++)
        core_report(f, n, 1, 5, 5);
    core_at_step(f, 2, 1, 5, false);
    core_files(f, 2, 1, 5, 2);
    core_restart(f, false);
    assert_core(f, "+broker 2; +job");
    all_back(f);
    assert_events(f, "");
    core_report(f, 0, 1, 9, 9);
    assert_events(f, "");
    core_saved(f, 2, 1, 5, 2); /* its files are known still */
    assert_answers(f, "2:ack #4 MUSTER_OK");
    core_restart(f, false);
    all_back(f);
    core_save(f, 0, 1, 5);
    core_save(f, 1, 1, 5);
    assert_events(f, "commit r1 termination S5 c1 rank 0");
    assert_int_equal(core_row(f, RECORD_CHECKPOINT)->u.checkpoint.bytes, 90);
    assert_int_equal(core_row(f, RECORD_CHECKPOINT)->u.checkpoint.world_size, 3);
}

static void bounds_begin_anew_with_the_broker(void **state)
{
    struct core_fixture *f = *state;

    for (int n = 0; n < 3; n++)
        f->nodes[n].p95_ms = 100;
    core_pass(f, 1500);
    core_save_now(f, "a");
    for (int n = 0; n < 3; n++)
        core_report(f, n, 1, 5, 4);
    core_at_step(f, 0, 1, 5, false);
    f->nodes[0].begun = f->nodes[0].done = 5;
    for (int n = 1; n < 3; n++)
        f->nodes[n].begun = 5, f->nodes[n].done = 4;
    core_pass(f, 50000);
    core_restart(f, false);
    all_back(f);
    core_pass(f, STUCK_MS - 1);
    assert_events(f, "");
    core_pass(f, 1);
    assert_non_null(strstr(core_events(f), "MUSTER_E_TIMEOUT retry; freeze r2 operator m0,1,2"));
}

/* R9.6 */
static void after_a_reboot_the_deadline_is_unknown_until_its_node_repeats_the_notice(void **state)
{
    struct core_fixture *f = *state;

    core_notice(f, 1, "n1", 60000);
    for (int n = 0; n < 3; n++)
        core_report(f, n, 1, 5, 5);
    core_pass(f, 3000);
    core_at_step(f, 0, 1, 5, false);
    core_restart(f, true);
    assert_int_equal(notice_deadline(core_job(f)), 0);
    assert_true(notice_any_active(core_job(f)));
    struct wire_notice_fact fact = {"n1", NOTICE_PREEMPT, "test", 9000, true, "spot", 0};
    struct wire_msg hello = core_msg(f, 1, WIRE_HELLO);
    hello.u.hello = (struct wire_hello){.speaks = WIRE_SPEAKS,
                                        .world_size = 3,
                                        .host = "host",
                                        .layout = LAYOUT_REPLICATED,
                                        .checkpoint_dir = "/ckpt"};
    hello.u.hello.notices.items = &fact;
    hello.u.hello.notices.count = 1;
    core_feed(f, 101, &hello);
    assert_events(f, "");
    assert_int_equal(notice_deadline(core_job(f)), f->now + 9000);
    core_hello(f, 0);
    core_hello(f, 2);
    core_save(f, 0, 1, 5);
    assert_events(f, "commit r1 termination S5 c1 rank 0");
    const struct record_participant *part = &core_row(f, RECORD_PARTICIPANT)->u.participant;
    assert_int_equal(part->at_step_ms, 3000);
    assert_int_equal(part->saved_ms, 3000); /* no time of a round goes backwards */
}

static void a_notice_that_the_database_lost_comes_back_with_its_node(void **state)
{
    struct core_fixture *f = *state;
    struct wire_notice_fact facts[] = {
        {"n7", NOTICE_TERMINATE, "test", 40000, false, "", NOTICE_FLAG_AT_ONCE},
        {"n8", NOTICE_TERMINATE, "test", INT64_MAX, false, "", 0}};
    struct wire_msg hello = core_msg(f, 1, WIRE_HELLO);

    hello.u.hello = (struct wire_hello){.speaks = WIRE_SPEAKS,
                                        .world_size = 3,
                                        .host = "host",
                                        .layout = LAYOUT_REPLICATED,
                                        .checkpoint_dir = "/ckpt"};
    hello.u.hello.notices.items = facts;
    hello.u.hello.notices.count = 2;
    hello.up.applied_seq = 3;
    core_feed(f, 101, &hello);
    assert_events(f, "termination rank 1; freeze r1 termination m0,1,2");
    core_feed(f, 101, &hello);
    assert_events(f, ""); /* known now */
}

static void a_notice_that_was_cancelled_does_not_come_back_with_its_node(void **state)
{
    struct core_fixture *f = *state;
    struct wire_notice_fact fact = {"n1", NOTICE_PREEMPT, "test", 9000, true, "spot", 0};

    core_restart(f, false);
    core_hello(f, 1);
    core_notice(f, 1, "n1", 60000);
    core_cancel(f, 1, "n1");
    core_restart(f, false);
    struct wire_msg hello = core_msg(f, 1, WIRE_HELLO); /* it has not heard of the cancel yet */
    hello.u.hello = (struct wire_hello){.speaks = WIRE_SPEAKS,
                                        .world_size = 3,
                                        .host = "host",
                                        .layout = LAYOUT_REPLICATED,
                                        .checkpoint_dir = "/ckpt"};
    hello.u.hello.notices.items = &fact;
    hello.u.hello.notices.count = 1;
    core_feed(f, 101, &hello);
    core_hello(f, 0);
    core_hello(f, 2);
    core_pass(f, 2 * START_FREEZE_MS);
    assert_events(f, "");
    assert_false(notice_any_active(core_job(f)));
}

static void an_operators_save_is_not_promised_before_it_can_begin(void **state)
{
    struct core_fixture *f = *state;

    core_restart(f, false);
    core_save_now(f, "a");
    assert_core(f, "@500:ack #1 MUSTER_E_BUSY");
    core_pass(f, START_FREEZE_MS);
    assert_events(f, ""); /* nothing is owed */
    all_back(f);
    core_save_now(f, "a");
    assert_events(f, "freeze r1 operator m0,1,2");
}

static void a_resent_request_is_answered_with_its_own_round_also_after_a_start(void **state)
{
    struct core_fixture *f = *state;

    core_commit_at(f, 10); /* asked for as "save-10" or the like: round 1 */
    core_save_now(f, "a");
    assert_answers(f, "@500:ack #1 MUSTER_OK=2");
    for (int n = 0; n < 3; n++)
        core_report(f, n, 2, 20, 20);
    core_save(f, 0, 2, 20);
    core_save_at(f, 0, 30);
    assert_events(f, "decision r3 policy S30 m0w,1,2");
    core_restart(f, false);
    core_save_now(f, "a"); /* its answer was lost in the crash */
    assert_core(f, "@500:ack #1 MUSTER_OK=2");
}

/* R9.4 */
static void a_save_that_was_asked_for_survives_two_starts_in_a_row(void **state)
{
    struct core_fixture *f = *state;

    core_save_now(f, "a");
    core_restart(f, false);
    assert_int_equal(core_job(f)->want.cause, CAUSE_OPERATOR);
    core_restart(f, false); /* nobody was back yet */
    core_pass(f, 200);
    assert_events(f, "");
    core_restart(f, false);
    all_back(f);
    assert_events(f, "freeze r2 operator m0,1,2");
    assert_int_equal(core_row(f, RECORD_JOB)->u.job.want, CAUSE_NONE);
    core_restart(f, false);
    all_back(f);
    assert_events(f, "freeze r3 operator m0,1,2"); /* it was undecided again: still the same one */
    for (int n = 0; n < 3; n++)
        core_report(f, n, 3, 5, 5);
    core_save(f, 0, 3, 5);
    core_restart(f, false);
    all_back(f);
    core_pass(f, START_FREEZE_MS);
    assert_events(f, ""); /* it is made: nothing is wanted */
}

static void one_that_is_asked_for_before_it_can_begin_takes_no_other_back(void **state)
{
    struct core_fixture *f = *state;

    core_save_now(f, "a");
    core_restart(f, false);
    core_save_now(f, "b");
    assert_answers(f, "@500:ack #1 MUSTER_E_BUSY");
    all_back(f);
    assert_events(f, "freeze r2 operator m0,1,2"); /* of a */
}

static void a_notice_that_is_withdrawn_before_its_freeze_takes_none_back_either(void **state)
{
    struct core_fixture *f = *state;

    core_save_now(f, "a");
    core_restart(f, false);
    core_hello(f, 0);
    core_notice(f, 0, "n1", 60000);
    core_cancel(f, 0, "n1");
    all_back(f);
    assert_events(f, "freeze r2 operator m0,1,2");
}

/* ... nor after another start, which knows by the rows alone what the notice came before. */
static void nor_one_that_is_withdrawn_after_another_start(void **state)
{
    struct core_fixture *f = *state;

    core_save_now(f, "a");
    core_restart(f, false);
    core_hello(f, 0);
    core_notice(f, 0, "n1", 60000);
    core_restart(f, false);
    core_restart(f, false);
    core_hello(f, 0);
    core_cancel(f, 0, "n1");
    core_restart(f, false);
    all_back(f);
    assert_events(f, "freeze r2 operator m0,1,2");
}

/* R9.4 */
static void nor_one_that_had_joined_its_round(void **state)
{
    struct core_fixture *f = *state;

    core_save_now(f, "a");
    core_notice(f, 0, "n1", 30000);
    assert_events(f, "termination r1 rank 0");
    core_restart(f, false);
    core_hello(f, 0);
    core_cancel(f, 0, "n1");
    all_back(f);
    assert_events(f, "freeze r2 operator m0,1,2");
    for (int n = 0; n < 3; n++)
        core_report(f, n, 2, 5, 5);
    core_save(f, 0, 2, 5);
    assert_events(f, "commit r2 operator S5 c2 rank 0");
}

/* What was made, or given up for good, is owed to nobody (R9.4). */
static void a_notice_that_is_withdrawn_brings_back_no_save_that_was_made(void **state)
{
    struct core_fixture *f = *state;

    core_commit_at(f, 10);
    core_restart(f, false);
    core_hello(f, 0);
    core_notice(f, 0, "n1", 60000);
    core_restart(f, false);
    core_hello(f, 0);
    core_cancel(f, 0, "n1");
    all_back(f);
    core_pass(f, 2 * START_FREEZE_MS);
    assert_events(f, "");
    assert_int_equal(core_job(f)->round, 1);
}

/* A rank failed while the notice stood: the job ends with that once the notice is withdrawn. */
static void nor_one_that_cannot_be_made_any_more(void **state)
{
    struct core_fixture *f = *state;

    core_save_now(f, "a");
    core_restart(f, false);
    core_hello(f, 0);
    core_notice(f, 0, "n1", 30000);
    all_back(f);
    assert_events(f, "freeze r2 termination m0,1,2");
    core_error(f, 1, 5, "bad");
    assert_non_null(strstr(core_events(f), "freeze r3 termination abort m0,2"));
    core_restart(f, false);
    core_hello(f, 0);
    core_cancel(f, 0, "n1");
    core_pass(f, 500);
    assert_int_equal(core_job(f)->round, 3);
    assert_int_equal(core_job(f)->gen.state, GENERATION_ENDING);
}

/* Of all ranks: their steps are done, and a manager wishes for a save of the next. */
static void written_and_wished(struct core_fixture *f)
{
    struct wire_msg wish;

    core_pass(f, 500);
    core_save_now(f, "a");
    for (int n = 0; n < 3; n++)
        core_report(f, n, 1, 42, 42);
    for (int n = 0; n < 3; n++)
        core_at_step(f, n, 1, 42, true);
    assert_int_equal(core_job(f)->rounds[0].state, ROUND_WRITING);
    wish = core_msg(f, 0, WIRE_SAVE_WISH);
    wish.u.save_wish.step = 43;
    core_say(f, 0, wish);
    assert_events(f, "freeze r2 period m0,1,2");
}

/* A manager's that is given up behind it comes to nothing once more, and was all that was wanted */
static void a_save_that_is_owed_outranks_one_that_comes_by_itself(void **state)
{
    struct core_fixture *f = *state;

    written_and_wished(f);
    core_save_failed(f, 0, 1, 42, MUSTER_E_SAVE);
    assert_int_equal(core_job(f)->want.cause, CAUSE_OPERATOR);
    core_restart(f, false);
    assert_int_equal(core_job(f)->want.cause, CAUSE_OPERATOR);
    assert_int_equal(core_job(f)->want.attempt, 2);
    all_back(f);
    assert_events(f, "freeze r3 operator m0,1,2");
}

/* Both were open, in whatever order their slots are. */
static void so_it_does_behind_an_older_copy(void **state)
{
    struct core_fixture *f = *state;

    written_and_wished(f);
    core_copy(f);
    core_restart_from_older_copy(f);
    assert_int_equal(core_job(f)->want.cause, CAUSE_OPERATOR);
}

/* A rank had failed behind its part of a save, and an older copy of the database has to try that
 * save again. A notice finds it owed, and makes it the last in the same input (R2.6). */
static void a_notice_joins_a_save_that_is_owed_also_where_a_rank_failed(void **state)
{
    struct core_fixture *f = *state;

    core_save_now(f, "a");
    for (int n = 0; n < 3; n++)
        core_report(f, n, 1, 20, 20);
    core_at_step(f, 1, 1, 20, true);
    core_error(f, 1, 21, "no memory");
    core_copy(f);
    core_restart_from_older_copy(f);
    assert_int_equal(core_job(f)->gen.error_rank, 1);
    assert_int_equal(core_job(f)->want.cause, CAUSE_OPERATOR);
    core_hello(f, 0);
    core_notice(f, 0, "n1", -1);
    assert_int_equal(core_job(f)->want.cause, CAUSE_TERMINATION);
    core_hello(f, 1);
    core_hello(f, 2);
    assert_events(f, "freeze r2 termination m0,2");
}

static void a_save_that_is_owed_stays_so_behind_others_that_come_to_nothing(void **state)
{
    struct core_fixture *f = *state;

    written_and_wished(f);
    core_save_failed(f, 0, 1, 42, MUSTER_E_SAVE);
    core_pass(f, FREEZE_MS); /* nobody reports */
    assert_non_null(strstr(core_events(f), "abort r2 period"));
    core_restart(f, false);
    core_hello(f, 0);
    core_notice(f, 0, "n1", 60000);
    core_cancel(f, 0, "n1");
    assert_int_equal(core_job(f)->want.cause, CAUSE_OPERATOR);
    all_back(f);
    assert_non_null(strstr(core_events(f), "operator"));
}

/* HELLO came first, and knows no reason: what had failed for a full disk was tried again and again.
 */
static void a_save_that_failed_while_none_ran_fails_for_its_reason(void **state)
{
    struct core_fixture *f = *state;

    core_save_now(f, "a");
    for (int n = 0; n < 3; n++)
        core_report(f, n, 1, 5, 5);
    core_restart(f, false);
    f->nodes[0].round = f->nodes[0].save_failed = 1;
    all_back(f);
    assert_events(f, "");
    core_save_failed(f, 0, 1, 5, MUSTER_E_STORAGE);
    assert_events(f, "abort r1 operator S5 rank 0 MUSTER_E_STORAGE");
}

static void the_attempts_of_a_wanted_save_are_counted_over_two_starts(void **state)
{
    struct core_fixture *f = *state;

    core_save_now(f, "a");
    for (int n = 0; n < 3; n++)
        core_report(f, n, 1, 5, 5);
    core_save_failed(f, 0, 1, 5, MUSTER_E_SAVE);
    assert_events(f, "abort r1 operator S5 rank 0 MUSTER_E_SAVE retry; freeze r2 operator m0,1,2");
    core_restart(f, false);
    core_restart(f, false);
    all_back(f);
    assert_events(f, "freeze r3 operator m0,1,2");
    assert_int_equal(core_row(f, RECORD_ROUND)->u.round.attempt, 2);
    assert_false(core_row(f, RECORD_ROUND)->u.round.aborted_steps);
}

/* A termination's save is the last that there is: what an operator's attempts before it had does
 * not go from its own. */
static void a_notice_that_joined_has_all_its_attempts_also_after_a_start(void **state)
{
    struct core_fixture *f = *state;

    core_save_now(f, "a");
    for (uint64_t round = 1; round < 4; round++) {
        if (round == 3)
            core_notice(f, 2, "n1", 300000);
        for (int n = 0; n < 3; n++)
            core_report(f, n, round, 5, 5);
        if (round < 3)
            core_save_failed(f, 0, round, 5, MUSTER_E_SAVE);
    }
    core_restart(f, false);
    all_back(f);
    for (uint64_t round = 3; round < 5; round++) {
        core_save_failed(f, 0, round, 5, MUSTER_E_SAVE);
        assert_int_equal(core_event(f, EVENT_FREEZE)->round, round + 1);
        for (int n = 0; n < 3; n++)
            core_report(f, n, round + 1, 5, 5);
    }
    core_save_failed(f, 0, 5, 5, MUSTER_E_SAVE);
    assert_events(f, "abort r5 termination S5 rank 0 MUSTER_E_SAVE; "
                     "not saved r5 termination rank 0 MUSTER_E_SAVE");
}

static void a_freeze_that_breaks_off_steps_does_so_also_after_two_starts(void **state)
{
    struct core_fixture *f = *state;

    core_notice(f, 1, "n1", 300000);
    core_error(f, 2, 5, "bad");
    assert_non_null(strstr(core_events(f), "freeze r2 termination abort m0,1"));
    core_restart(f, false);
    core_restart(f, false);
    all_back(f);
    assert_non_null(strstr(core_events(f), "freeze r3 termination abort m0,1"));
}

static void a_want_that_was_withdrawn_is_not_found_by_the_next_start(void **state)
{
    struct core_fixture *f = *state;

    core_restart(f, false);
    core_hello(f, 1);
    core_notice(f, 1, "n1", 60000);
    assert_int_equal(core_job(f)->want_row.cause, CAUSE_TERMINATION);
    core_cancel(f, 1, "n1");
    assert_int_equal(core_job(f)->want_row.cause, CAUSE_NONE);
    core_restart(f, false);
    all_back(f);
    core_pass(f, START_FREEZE_MS);
    assert_events(f, "");
}

static void an_active_notice_wants_its_save_also_after_a_start(void **state)
{
    struct core_fixture *f = *state;

    core_restart(f, false);
    core_hello(f, 1);
    core_notice(f, 1, "n1", 60000); /* wanted, not open yet: the others are not back */
    assert_events(f, "termination rank 1");
    core_restart(f, false);
    all_back(f);
    assert_events(f, "freeze r1 termination m0,1,2");
}

static void a_policy_save_is_answered_the_same_after_a_start(void **state)
{
    struct core_fixture *f = *state;

    core_save_at(f, 0, 50);
    core_restart(f, false);
    all_back(f);
    core_save_at(f, 1, 50);
    assert_core(f, "+node 1 restored #2; 1:ack #2 MUSTER_OK");
    core_save(f, 0, 1, 50);
    core_restart(f, false);
    all_back(f);
    core_save_at(f, 2, 50);
    assert_answers(f, "2:ack #2 MUSTER_E_EXISTS");
    core_save_at(f, 2, 60);
    assert_events(f, "decision r2 policy S60 m0w,1,2");
}

#define T(test, setup) cmocka_unit_test_setup_teardown(test, setup, core_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(each_start_has_its_own_epoch_and_id, core_run_three),
        T(a_node_that_comes_back_misses_nothing, core_run_three),
        T(an_undecided_round_is_aborted_and_opened_anew_when_all_are_back, core_run_three),
        T(whoever_is_not_back_after_six_seconds_is_not_waited_for, core_run_three),
        T(whoever_is_not_back_is_lost_at_once_if_a_deadline_forces_it, core_run_three),
        T(a_near_deadline_forces_the_freeze, core_run_three),
        T(a_freeze_that_breaks_off_steps_stays_one, core_run_three),
        T(a_decided_round_goes_on_and_is_never_decided_again, core_run_three_sharded),
        T(bounds_begin_anew_with_the_broker, core_run_three),
        T(after_a_reboot_the_deadline_is_unknown_until_its_node_repeats_the_notice, core_run_three),
        T(a_notice_that_the_database_lost_comes_back_with_its_node, core_run_three),
        T(a_notice_that_was_cancelled_does_not_come_back_with_its_node, core_run_three),
        T(an_operators_save_is_not_promised_before_it_can_begin, core_run_three),
        T(a_resent_request_is_answered_with_its_own_round_also_after_a_start, core_run_three),
        T(a_save_that_was_asked_for_survives_two_starts_in_a_row, core_run_three),
        T(one_that_is_asked_for_before_it_can_begin_takes_no_other_back, core_run_three),
        T(a_notice_that_is_withdrawn_before_its_freeze_takes_none_back_either, core_run_three),
        T(nor_one_that_is_withdrawn_after_another_start, core_run_three),
        T(nor_one_that_had_joined_its_round, core_run_three),
        T(a_notice_that_is_withdrawn_brings_back_no_save_that_was_made, core_run_three),
        T(nor_one_that_cannot_be_made_any_more, core_run_three),
        T(a_save_that_is_owed_outranks_one_that_comes_by_itself, core_run_three),
        T(so_it_does_behind_an_older_copy, core_run_three),
        T(a_notice_joins_a_save_that_is_owed_also_where_a_rank_failed, core_run_three),
        T(a_save_that_is_owed_stays_so_behind_others_that_come_to_nothing, core_run_three),
        T(a_save_that_failed_while_none_ran_fails_for_its_reason, core_run_three),
        T(the_attempts_of_a_wanted_save_are_counted_over_two_starts, core_run_three),
        T(a_notice_that_joined_has_all_its_attempts_also_after_a_start, core_run_three),
        T(a_freeze_that_breaks_off_steps_does_so_also_after_two_starts, core_run_three),
        T(a_want_that_was_withdrawn_is_not_found_by_the_next_start, core_run_three),
        T(an_active_notice_wants_its_save_also_after_a_start, core_run_three),
        T(a_policy_save_is_answered_the_same_after_a_start, core_run_three),
    };

    return cmocka_run_group_tests_name("core_load", tests, NULL, NULL);
}
