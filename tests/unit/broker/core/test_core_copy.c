/* The broker's core after its database was restored from an older copy: what runs is believed,
 * numbers are not used twice, and nobody waits for ever for what is forgotten. RECOVERY.md R10. */
#include "tests/support/core_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static int two_open(void **state)
{
    static struct core_fixture f;

    core_fixture_open(&f, 2, LAYOUT_REPLICATED);
    *state = &f;
    return 0;
}

static int two_sharded(void **state)
{
    static struct core_fixture f;

    core_fixture_open(&f, 2, LAYOUT_SHARDED);
    *state = &f;
    return 0;
}

static int close_core(void **state)
{
    core_fixture_close(*state);
    return 0;
}

/* Both have joined; the copy is made; both restore, start and take steps; the copy is put back. */
static void forget_the_start(struct core_fixture *f)
{
    core_hello(f, 0);
    core_hello(f, 1);
    core_copy(f);
    for (int n = 0; n < 2; n++)
        core_restored(f, n, 0, 0);
    assert_int_equal(core_job(f)->gen.state, GENERATION_RUNNING);
    for (int n = 0; n < 2; n++) {
        f->nodes[n].begun = f->nodes[n].done = 40;
        f->nodes[n].applied_seq = core_job(f)->seq;
    }
    core_restart_from_copy(f);
    assert_int_equal(core_job(f)->gen.state, GENERATION_JOINING);
}

/* R10.2 */
static void who_takes_steps_has_started(void **state)
{
    struct core_fixture *f = *state;

    forget_the_start(f);
    core_hello(f, 0);
    assert_events(f, "started");
    assert_answers(f, "0:welcome g1; 0:SNAPSHOT");
    core_hello(f, 1);
    core_save_now(f, "a");
    assert_events(f, "freeze r1 operator m0,1");
}

/* R10.3 */
static void a_rank_that_does_not_come_back_is_missed(void **state)
{
    struct core_fixture *f = *state;

    f->nodes[0].generation = 3; /* nothing of it is in the copy */
    f->nodes[0].begun = f->nodes[0].done = 40;
    f->nodes[0].applied_seq = 12;
    core_hello(f, 0);
    assert_int_equal(core_job(f)->gen.state, GENERATION_RUNNING);
    core_pass(f, START_GRACE_MS - 1);
    assert_events(f, "");
    core_pass(f, 500);
    assert_events(f, "node lost rank 1 MUSTER_E_PEER");
    assert_int_equal(core_job(f)->gen.end_status, MUSTER_E_PEER);
}

static void rank_0_of_an_unknown_launch(struct core_fixture *f)
{
    f->nodes[0].generation = 3;
    f->nodes[0].begun = f->nodes[0].done = 40;
    f->nodes[0].applied_seq = 12;
    core_hello(f, 0);
    assert_int_equal(core_job(f)->gen.state, GENERATION_RUNNING);
}

/* The disk is full, maybe, and rank 1 was told so. */
static void a_rank_may_come_back_behind_the_brokers_own_absence(void **state)
{
    struct core_fixture *f = *state;

    rank_0_of_an_unknown_launch(f);
    core_pass(f, 1000);
    f->now += 60000;
    core_heartbeat(f, 0);
    core_tick(f);
    assert_events(f, "");
    f->nodes[1].generation = 3;
    f->nodes[1].begun = f->nodes[1].done = 40;
    f->nodes[1].applied_seq = 12;
    core_hello(f, 1);
    assert_answers(f, "1:welcome g3; 1:SNAPSHOT");
    core_pass(f, 2 * START_GRACE_MS);
    assert_events(f, "");
}

static void one_that_does_not_is_missed_as_ever(void **state)
{
    struct core_fixture *f = *state;

    rank_0_of_an_unknown_launch(f);
    f->now += 60000;
    core_heartbeat(f, 0);
    core_tick(f);
    core_pass(f, START_GRACE_MS - 1);
    assert_events(f, "");
    core_pass(f, 500);
    assert_events(f, "node lost rank 1 MUSTER_E_PEER");
}

static void a_loop_whose_every_pass_is_slow_misses_it_too(void **state)
{
    struct core_fixture *f = *state;
    int passes = 0;

    rank_0_of_an_unknown_launch(f);
    for (core_tick(f); passes < 3600 && core_event(f, EVENT_NODE_LOST) == NULL; passes++) {
        f->now += LOOP_GAP_MS + 100;
        core_heartbeat(f, 0);
        core_tick(f);
    }
    assert_events(f, "node lost rank 1 MUSTER_E_PEER");
    assert_int_equal(passes, GAPS_FORGIVEN + START_GRACE_MS / LOOP_GAP_MS);
}

/* What it resumed from was committed in what is lost: its manifests are not to tell another
 * step (R10.7). */
static void where_an_adopted_launch_began_is_not_known(void **state)
{
    struct core_fixture *f = *state;

    f->nodes[0].generation = 3; /* nothing of it is in the copy */
    f->nodes[0].begun = f->nodes[0].done = 40;
    core_hello(f, 0);
    assert_int_equal(core_job(f)->gen.generation, 3);
    assert_int_equal(core_job(f)->gen.opened_unix_ms, 0);
}

static void a_rank_that_does_not_come_back_is_missed_also_after_one_more_start(void **state)
{
    struct core_fixture *f = *state;

    f->nodes[0].generation = 3;
    f->nodes[0].begun = f->nodes[0].done = 40;
    f->nodes[0].applied_seq = 12;
    core_hello(f, 0);
    core_restart(f, false);
    core_hello(f, 0);
    core_pass(f, START_GRACE_MS - 1);
    assert_events(f, "");
    core_pass(f, 500);
    assert_events(f, "node lost rank 1 MUSTER_E_PEER");
}

/* It dies before anybody told this database that the launch had started: so far nobody needed it */
static void so_is_one_that_was_lost_before_the_others_were_heard(void **state)
{
    struct core_fixture *f = *state;
    struct wire_msg gone = {.type = WIRE_GONE};

    forget_the_start(f);
    gone.u.gone = (struct wire_gone){.rank = 1, .incarnation = f->nodes[1].incarnation, .signo = 9};
    core_tool(f, gone, 1);
    f->nodes[1].silent = true;
    for (int64_t ms = 0; ms < LOST_MS; ms += 100) {
        f->now += 100;
        core_tick(f);
    }
    assert_int_equal(core_job(f)->gen.state, GENERATION_JOINING);
    core_hello(f, 0);
    assert_events(f, "started");
    core_restart(f, false);
    core_hello(f, 0);
    core_pass(f, START_GRACE_MS - 1);
    assert_events(f, "");
    core_pass(f, 500);
    assert_events(f, "node lost rank 1 MUSTER_E_PEER");
}

static void who_still_waits_for_its_checkpoint_is_no_proof_of_a_start(void **state)
{
    struct core_fixture *f = *state;

    f->nodes[0].generation = 3;
    f->nodes[0].applied_seq = 12;
    core_hello(f, 0);
    assert_int_equal(core_job(f)->gen.state, GENERATION_JOINING);
    f->nodes[1].generation = 3;
    f->nodes[1].applied_seq = 12;
    core_hello(f, 1);
    core_restored(f, 0, 0, 0);
    core_restored(f, 1, 0, 0);
    assert_events(f, "started");
}

/* Event 3 was "started" when the node heard of it; in the journal that was put back it is
 * another (R10.4). */
static void numbers_that_were_used_otherwise_are_not_taken_for_known(void **state)
{
    struct core_fixture *f = *state;

    forget_the_start(f);
    core_hello(f, 0); /* writes event 3 anew, and more */
    core_notice(f, 0, "n1", 60000);
    assert_true(core_job(f)->seq > f->nodes[1].applied_seq);
    core_hello(f, 1);
    assert_answers(f, "1:welcome g1; 1:SNAPSHOT");
    f->nodes[1].applied_seq = core_job(f)->seq;
    core_hello(f, 1); /* of this start it knows all */
    assert_answers(f, "1:welcome g1");
}

/* The start that wrote over what was lost has ended when the node is heard. */
static void nor_are_they_after_one_more_start(void **state)
{
    struct core_fixture *f = *state;

    forget_the_start(f);
    f->nodes[1].history = core_start_id(f->core) - 1;
    core_hello(f, 0);
    core_notice(f, 0, "n1", 60000);
    f->nodes[0].history = core_start_id(f->core);
    f->nodes[0].applied_seq = core_job(f)->seq;
    core_restart(f, false);
    assert_true(core_job(f)->seq > f->nodes[1].applied_seq);
    core_hello(f, 1);
    assert_answers(f, "1:welcome g1; 1:SNAPSHOT");
    core_hello(f, 1); /* the answer was lost */
    assert_answers(f, "1:welcome g1; 1:SNAPSHOT");
    core_hello(f, 0); /* what it heard is here */
    assert_answers(f, "0:welcome g1");
}

/* Up to the copy all is the same, whichever start it was told by. */
static void what_was_heard_before_the_copy_is_known(void **state)
{
    struct core_fixture *f = *state;

    core_hello(f, 0);
    f->nodes[0].history = core_start_id(f->core);
    f->nodes[0].applied_seq = core_job(f)->seq;
    core_copy(f);
    core_hello(f, 1);
    core_restart_from_copy(f);
    core_hello(f, 1);
    core_restart(f, false);
    core_hello(f, 0);
    assert_answers(f, "0:welcome g1");
}

/* More starts than the row tells of (R10.4). */
static void who_was_away_for_many_starts_gets_a_snapshot(void **state)
{
    struct core_fixture *f = *state;

    core_hello(f, 0);
    f->nodes[0].history = core_start_id(f->core);
    f->nodes[0].applied_seq = core_job(f)->seq;
    for (int i = 0; i < LINEAGE_MAX - 1; i++)
        core_restart(f, false);
    core_hello(f, 0);
    assert_answers(f, "0:welcome g1");
    core_restart(f, false);
    core_hello(f, 0);
    assert_answers(f, "0:welcome g1; 0:SNAPSHOT");
}

/* All had restored before anybody took steps: another process of a rank is a later life of
 * it (R10.3). */
static void a_new_process_in_an_adopted_launch_ends_it(void **state)
{
    struct core_fixture *f = *state;

    f->nodes[0].generation = 3; /* nothing of it is in the copy */
    f->nodes[0].begun = f->nodes[0].done = 40;
    f->nodes[0].applied_seq = 12;
    core_hello(f, 0);
    core_hello(f, 1);
    assert_events(f, "rank restarted rank 1 MUSTER_E_PEER");
    assert_int_equal(core_job(f)->gen.state, GENERATION_ENDING);
}

static void so_does_one_that_came_before_the_others_were_heard(void **state)
{
    struct core_fixture *f = *state;

    core_hello(f, 1); /* opens generation 1 anew */
    f->nodes[0].generation = 1;
    f->nodes[0].begun = f->nodes[0].done = 40;
    f->nodes[0].applied_seq = 12;
    core_hello(f, 0);
    assert_events(f, "started; rank restarted rank 1 MUSTER_E_PEER");
}

static void what_a_member_left_behind_is_not_waited_for(void **state)
{
    struct core_fixture *f = *state;

    for (int n = 0; n < 2; n++)
        core_hello(f, n);
    for (int n = 0; n < 2; n++)
        core_restored(f, n, 0, 0);
    core_save_now(f, "a");
    core_report(f, 0, 1, 4, 4);
    core_report(f, 1, 1, 4, 4);
    core_copy(f); /* round 1 is decided */
    for (int n = 0; n < 2; n++) {
        f->nodes[n].begun = f->nodes[n].done = 40;
        f->nodes[n].applied_seq = core_job(f)->seq + 4;
        f->nodes[n].round = 3;
    }
    core_restart_from_copy(f);
    core_hello(f, 0);
    assert_events(f, "abort r1 operator S4 rank 0 MUSTER_E_ABORTED retry");
    core_hello(f, 1);
    assert_events(f, "freeze r4 operator m0,1"); /* no number is used twice */
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

/* Rank 0 heard of the abort and deleted its shard; rank 1 did not (R10.5). */
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

/* Launch 2 of other processes, which the copy of launch 1 does not know, at step `done`. */
static void put_back_under_launch_2(struct core_fixture *f, int64_t done)
{
    core_copy(f);
    core_restart_from_copy(f);
    for (int n = 2; n < 4; n++) {
        f->nodes[n].rank = (uint64_t)n - 2;
        f->nodes[n].role = n == 2 ? ROLE_CHIEF : ROLE_WORKER;
        f->nodes[n].generation = 2;
        f->nodes[n].begun = f->nodes[n].done = done;
        f->nodes[n].phase = PHASE_STEPPING;
    }
}

/* It retried while the broker was away. The launch that the copy knows is over, and launch 2
 * trains (R3.6). */
static void a_bystander_that_comes_first_waits_for_the_ranks(void **state)
{
    static const enum wire_role roles[] = {ROLE_EVALUATOR, ROLE_PS};

    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++) {
        struct core_fixture *f = *state;

        if (i > 0) {
            close_core(state);
            two_open(state);
        }
        core_hello(f, 0);
        core_hello(f, 1);
        for (int n = 0; n < 2; n++)
            core_restored(f, n, 0, 0);
        put_back_under_launch_2(f, 40);
        f->nodes[5].role = roles[i];
        f->nodes[5].rank = 0;
        core_hello(f, 5);
        assert_answers(f, "5:refused MUSTER_E_ENDING retry");
        for (int n = 2; n < 4; n++)
            core_hello(f, n);
        assert_answers(f, "3:welcome g2; 3:SNAPSHOT");
        core_hello(f, 5);
        assert_answers(f, "5:welcome g2; 5:SNAPSHOT");
        core_pass(f, 2 * START_GRACE_MS);
        assert_int_equal(core_job(f)->gen.state, GENERATION_RUNNING);
    }
}

/* Its ranks finished while the broker was away, and nobody is left to tell it so (R10.9). */
static void a_bystander_of_an_unknown_launch_waits_no_longer_than_its_ranks_may_take(void **state)
{
    struct core_fixture *f = *state;

    core_hello(f, 0);
    core_hello(f, 1);
    put_back_under_launch_2(f, 40);
    f->nodes[5].role = ROLE_EVALUATOR;
    f->nodes[5].rank = 0;
    f->nodes[5].generation = 2;
    core_hello(f, 5);
    assert_answers(f, "5:refused MUSTER_E_ENDING retry");
    core_pass(f, START_GRACE_MS - 1);
    core_hello(f, 5);
    assert_answers(f, "5:refused MUSTER_E_ENDING retry");
    core_pass(f, 1);
    core_hello(f, 5);
    assert_answers(f, "5:refused MUSTER_E_STALE");
}

/* Its ranks were lost, or left; nobody told it so while the broker was away (R10.2). */
static void one_of_the_launch_before_keeps_nobody_out(void **state)
{
    struct core_fixture *f = *state;

    core_hello(f, 0);
    core_hello(f, 1);
    f->nodes[5].role = ROLE_EVALUATOR;
    f->nodes[5].rank = 0;
    core_hello(f, 5);
    for (int n = 0; n < 2; n++)
        core_restored(f, n, 0, 0);
    core_restored(f, 5, 0, 0);
    put_back_under_launch_2(f, 40);
    core_hello(f, 5);
    assert_answers(f, "5:welcome g1; 5:SNAPSHOT");
    core_hello(f, 2);
    assert_answers(f, "2:welcome g2; 2:SNAPSHOT");
    core_hello(f, 3);
    assert_answers(f, "3:welcome g2; 3:SNAPSHOT");
    core_hello(f, 5);
    assert_answers(f, "5:refused MUSTER_E_STALE");
}

/* Launch 1 has saved steps 40 and 60 and left. */
static void save_40_and_60(struct core_fixture *f)
{
    for (int n = 0; n < 2; n++)
        core_hello(f, n);
    for (int n = 0; n < 2; n++)
        core_restored(f, n, 0, 0);
    core_commit_at(f, 40);
    core_commit_at(f, 60);
    for (int n = 0; n < 2; n++)
        core_leave(f, n, LEAVE_FINISHED, 0);
}

/* Both come back, are told to end and stand at `step` when they are frozen. */
static void end_at(struct core_fixture *f, int64_t step)
{
    for (int n = 2; n < 4; n++)
        core_hello(f, n);
    assert_int_equal(core_job(f)->gen.state, GENERATION_RUNNING);
    core_notice(f, 2, "n1", 20000);
    assert_events(f, "termination rank 0; freeze r3 termination m0,1");
    for (int n = 2; n < 4; n++)
        core_report(f, n, 3, step, step);
}

/* It went back to 40, or began without any: its 60 is not the other's (R10.7). */
static void what_lies_beyond_the_steps_of_an_adopted_launch_was_given_up(void **state)
{
    struct core_fixture *f = *state;

    save_40_and_60(f);
    put_back_under_launch_2(f, 50);
    end_at(f, 60);
    assert_events(f, "decision r3 termination S60 m0w,1");
    assert_int_equal(core_job(f)->gen.resume_step, 40);
    assert_int_equal(core_checkpoint(f, 1)->state, CHECKPOINT_COMMITTED);
    assert_false(core_counts(f, core_checkpoint(f, 2)));
    core_restart(f, false);
    assert_int_equal(registry_newest(core_job(f))->row.step, 40);
}

/* The further rank came first. */
static void so_was_what_lies_beyond_the_steps_of_its_last_rank(void **state)
{
    struct core_fixture *f = *state;

    save_40_and_60(f);
    put_back_under_launch_2(f, 65);
    core_hello(f, 2);
    assert_int_equal(registry_newest(core_job(f))->row.step, 60); /* it may have begun there */
    f->nodes[3].begun = f->nodes[3].done = 55;
    core_hello(f, 3);
    assert_int_equal(registry_newest(core_job(f))->row.step, 40);
    core_restart(f, false);
    assert_int_equal(registry_newest(core_job(f))->row.step, 40);
}

/* It may have begun there, and gone back and come there again (R10.7). */
static void an_adopted_launch_saves_a_step_that_others_saved(void **state)
{
    struct core_fixture *f = *state;

    save_40_and_60(f);
    put_back_under_launch_2(f, 60);
    end_at(f, 60);
    assert_events(f, "decision r3 termination S60 m0w,1");
    assert_int_equal(registry_newest(core_job(f))->row.step, 60);
}

static void begin_launch_2(struct core_fixture *f)
{
    f->fallback = true;
    for (int n = 2; n < 4; n++) {
        f->nodes[n].rank = (uint64_t)n - 2;
        f->nodes[n].role = n == 2 ? ROLE_CHIEF : ROLE_WORKER;
        core_hello(f, n);
    }
    assert_int_equal(core_job(f)->gen.resume_step, 60);
}

/* Its ranks wait for its checkpoint when the copy is made, of 60 or already of 40: 60 is damaged */
static void what_a_launch_gave_up_after_the_copy_is_given_up(void **state)
{
    for (int gone_back = 0; gone_back < 2; gone_back++) {
        struct core_fixture *f = *state;

        if (gone_back > 0) {
            close_core(state);
            two_open(state);
        }
        save_40_and_60(f);
        begin_launch_2(f);
        struct wire_msg failed = core_msg(f, 2, WIRE_RESTORE_FAILED);
        failed.u.restore_failed =
            (struct wire_restore_failed){.checkpoint = 2, .step = 60, .text = "bad"};
        if (gone_back > 0)
            core_say(f, 2, failed);
        put_back_under_launch_2(f, gone_back > 0 ? 70 : 50);
        core_hello(f, 2);
        assert_events(f, "started");
        assert_int_equal(registry_newest(core_job(f))->row.step, 40);
        assert_int_equal(core_job(f)->gen.resume_step, 40);
        assert_false(core_counts(f, core_checkpoint(f, 2)));
        assert_int_equal(core_job(f)->gen.opened_unix_ms, 0); /* it may have gone back further */
    }
}

/* It has 120 s, and rank 1 is back in two: sharded (R10.3). */
static void a_notice_waits_for_the_ranks_of_an_adopted_launch(void **state)
{
    struct core_fixture *f = *state;

    put_back_under_launch_2(f, 40);
    core_hello(f, 2);
    core_notice(f, 2, "n1", 120000);
    assert_events(f, "termination rank 0");
    core_pass(f, 1500);
    assert_events(f, "");
    core_hello(f, 3);
    assert_events(f, "freeze r1 termination m0,1");
}

/* The copy is of when rank 0 alone had joined. */
static void also_for_one_that_the_copy_has_not_seen(void **state)
{
    struct core_fixture *f = *state;

    core_hello(f, 0);
    core_copy(f);
    core_restart_from_copy(f);
    for (int n = 0; n < 2; n++) {
        f->nodes[n].generation = 1;
        f->nodes[n].begun = f->nodes[n].done = 40;
        f->nodes[n].phase = PHASE_STEPPING;
    }
    core_hello(f, 0);
    core_notice(f, 0, "n1", 120000);
    assert_events(f, "termination rank 0");
    core_hello(f, 1);
    assert_events(f, "freeze r1 termination m0,1");
}

/* Who does not come is waited for no longer than after any start; nor is anybody beyond what the
 * deadline leaves. */
static void but_not_for_ever(void **state)
{
    static const struct {
        int64_t left_ms, within_ms;
    } ways[] = {{120000, START_FREEZE_MS + 500}, {3000, 500}};

    for (size_t i = 0; i < 2; i++) {
        struct core_fixture *f = *state;

        if (i > 0) {
            close_core(state);
            two_open(state);
        }
        put_back_under_launch_2(f, 40);
        core_hello(f, 2);
        core_notice(f, 2, "n1", ways[i].left_ms);
        core_pass(f, ways[i].within_ms);
        assert_int_equal(core_job(f)->rounds[0].state, ROUND_FREEZING);
        assert_int_equal(core_job(f)->rounds[0].count, 1);
    }
}

/* R10.8 */
static void a_rank_that_comes_back_late_hears_how_its_launch_ended(void **state)
{
    struct core_fixture *f = *state;

    put_back_under_launch_2(f, 40);
    core_hello(f, 2);
    core_error(f, 2, 41, "nan");
    core_leave(f, 2, LEAVE_FAILED, 1);
    assert_int_equal(core_job(f)->gen.state, GENERATION_ENDING);
    f->nodes[4].rank = 0;
    core_hello(f, 4); /* the next launch */
    assert_answers(f, "4:refused MUSTER_E_ENDING retry");
    f->nodes[3].applied_seq = 90;
    core_hello(f, 3);
    assert_answers(f, "3:welcome g2; 3:SNAPSHOT");
    const struct wire_snapshot *s = &core_sent(f, f->nodes[3].route, WIRE_SNAPSHOT)->u.snapshot;
    assert_int_equal(s->generation_state, GENERATION_ENDING);
    assert_int_equal(s->end_status, MUSTER_E_PEER);
    assert_int_equal(s->error_rank, 0);
    core_leave(f, 3, LEAVE_FAILED, 1);
    assert_events(f, "generation ended");
    core_hello(f, 4);
    assert_answers(f, "4:welcome g3; 4:SNAPSHOT");
}

static void who_finishes_first_ends_no_launch_of_others(void **state)
{
    struct core_fixture *f = *state;

    put_back_under_launch_2(f, 40);
    core_hello(f, 2);
    core_leave(f, 2, LEAVE_FINISHED, 0);
    f->nodes[3].applied_seq = 90;
    core_hello(f, 3);
    assert_answers(f, "3:welcome g2; 3:SNAPSHOT");
    f->nodes[3].phase = PHASE_FROZEN; /* it hangs in nothing */
    core_pass(f, 2 * START_GRACE_MS);
    assert_events(f, "");
    assert_int_equal(core_job(f)->gen.state, GENERATION_RUNNING);
    core_leave(f, 3, LEAVE_FINISHED, 0);
    assert_events(f, "generation ended");
}

/* They had all finished: nobody is left to be told of one that is missed. */
static void a_launch_of_which_nobody_comes_back_is_over(void **state)
{
    struct core_fixture *f = *state;

    put_back_under_launch_2(f, 40);
    core_hello(f, 2);
    core_leave(f, 2, LEAVE_FINISHED, 0);
    assert_events(f, "");
    core_pass(f, START_GRACE_MS + 500);
    assert_events(f, "generation ended");
    assert_int_equal(core_job(f)->gen.error_rank, -1);
}

#define T(test) cmocka_unit_test_setup_teardown(test, two_open, close_core)
#define S(test) cmocka_unit_test_setup_teardown(test, two_sharded, close_core)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(who_takes_steps_has_started),
        T(so_is_one_that_was_lost_before_the_others_were_heard),
        T(a_rank_that_does_not_come_back_is_missed_also_after_one_more_start),
        T(where_an_adopted_launch_began_is_not_known),
        T(a_rank_that_does_not_come_back_is_missed),
        T(a_rank_may_come_back_behind_the_brokers_own_absence),
        T(one_that_does_not_is_missed_as_ever),
        T(a_loop_whose_every_pass_is_slow_misses_it_too),
        T(who_still_waits_for_its_checkpoint_is_no_proof_of_a_start),
        T(numbers_that_were_used_otherwise_are_not_taken_for_known),
        T(nor_are_they_after_one_more_start),
        T(what_was_heard_before_the_copy_is_known),
        T(who_was_away_for_many_starts_gets_a_snapshot),
        T(a_new_process_in_an_adopted_launch_ends_it),
        T(so_does_one_that_came_before_the_others_were_heard),
        T(what_a_member_left_behind_is_not_waited_for),
        S(a_round_of_an_older_copy_is_not_committed),
        S(a_round_of_the_newest_database_goes_on),
        T(a_bystander_that_comes_first_waits_for_the_ranks),
        T(a_bystander_of_an_unknown_launch_waits_no_longer_than_its_ranks_may_take),
        T(one_of_the_launch_before_keeps_nobody_out),
        T(what_lies_beyond_the_steps_of_an_adopted_launch_was_given_up),
        T(so_was_what_lies_beyond_the_steps_of_its_last_rank),
        T(an_adopted_launch_saves_a_step_that_others_saved),
        T(what_a_launch_gave_up_after_the_copy_is_given_up),
        S(a_notice_waits_for_the_ranks_of_an_adopted_launch),
        S(also_for_one_that_the_copy_has_not_seen),
        T(but_not_for_ever),
        S(a_rank_that_comes_back_late_hears_how_its_launch_ended),
        T(who_finishes_first_ends_no_launch_of_others),
        T(a_launch_of_which_nobody_comes_back_is_over),
    };

    return cmocka_run_group_tests_name("core_copy", tests, NULL, NULL);
}
