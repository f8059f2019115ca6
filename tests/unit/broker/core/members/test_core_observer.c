/* The broker's core: ps and evaluators hear events, and nobody waits for them. */
#include "tests/support/core_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#define EVALUATOR 5

static void place_evaluator(struct core_fixture *f)
{
    f->nodes[EVALUATOR].role = ROLE_EVALUATOR;
    f->nodes[EVALUATOR].rank = 0;
}

static int running(void **state)
{
    static struct core_fixture f;

    core_fixture_running(&f, 2, LAYOUT_REPLICATED);
    place_evaluator(&f);
    *state = &f;
    return 0;
}

static int empty(void **state)
{
    static struct core_fixture f;

    core_fixture_open(&f, 2, LAYOUT_REPLICATED);
    place_evaluator(&f);
    *state = &f;
    return 0;
}

static void join_evaluator(struct core_fixture *f)
{
    core_hello(f, EVALUATOR);
    assert_answers(f, "5:welcome g1; 5:SNAPSHOT");
    core_restored(f, EVALUATOR, 0, 0);
}

static void restore_failed(struct core_fixture *f, int node)
{
    struct wire_msg message = core_msg(f, node, WIRE_RESTORE_FAILED);

    message.u.restore_failed = (struct wire_restore_failed){.text = "no such file"};
    core_say(f, node, message);
}

static void assert_only_told(struct core_fixture *f, unsigned code, const char *text)
{
    const struct wire_event *event = core_event(f, EVENT_OBSERVER);

    assert_non_null(event);
    assert_int_equal(event->code, code);
    assert_int_equal(event->rank, -1);
    assert_int_equal(event->incarnation, f->nodes[EVALUATOR].incarnation);
    assert_non_null(strstr(event->text, "evaluator 0 (process 4005 on host)"));
    assert_non_null(strstr(event->text, text));
    assert_null(core_event(f, EVENT_ABORT));
    assert_null(core_event(f, EVENT_PEER_ERROR));
    assert_null(core_event(f, EVENT_NODE_LOST));
    assert_null(core_event(f, EVENT_RESTORE_FAILED));
    assert_int_equal(core_job(f)->gen.error_rank, -1);
}

static void an_evaluator_that_cannot_restore_ends_nobody_else(void **state)
{
    struct core_fixture *f = *state;

    core_hello(f, 0);
    core_hello(f, EVALUATOR);
    restore_failed(f, EVALUATOR); /* while the ranks join */
    assert_only_told(f, MUSTER_E_RESTORE, "no such file; the job goes on");
    assert_int_equal(core_job(f)->gen.state, GENERATION_JOINING);
    core_hello(f, 1);
    core_restored(f, 0, 0, 0);
    core_restored(f, 1, 0, 0);
    assert_events(f, "started");
    core_leave(f, EVALUATOR, LEAVE_FAILED, 1);
    f->nodes[EVALUATOR].incarnation++;
    f->nodes[EVALUATOR].generation = f->nodes[EVALUATOR].request = 0;
    core_hello(f, EVALUATOR); /* while they train */
    core_restored(f, EVALUATOR, 0, 7);
    assert_only_told(f, MUSTER_E_RESTORE, "another checkpoint");
    assert_int_equal(core_job(f)->gen.state, GENERATION_RUNNING);
}

/* It may have been told another checkpoint than the ranks were, by a start of the broker before
 * this one, too. */
static void an_evaluator_that_cannot_restore_is_told_so_whatever_it_was_to_restore(void **state)
{
    struct core_fixture *f = *state;
    struct wire_msg message;

    core_hello(f, EVALUATOR);
    message = core_msg(f, EVALUATOR, WIRE_RESTORE_FAILED);
    message.u.restore_failed = (struct wire_restore_failed){.checkpoint = 7, .text = "torn"};
    core_say(f, EVALUATOR, message);
    assert_only_told(f, MUSTER_E_RESTORE, "torn; the job goes on");
}

/* Nobody hears events any more; the answer says it. */
static void an_evaluator_of_a_job_that_is_over_is_answered_that_it_could_not_restore(void **state)
{
    struct core_fixture *f = *state;

    core_hello(f, EVALUATOR);
    core_leave(f, 0, LEAVE_FINISHED, 0);
    core_leave(f, 1, LEAVE_FINISHED, 0);
    assert_int_equal(core_job(f)->gen.state, GENERATION_ENDED);
    restore_failed(f, EVALUATOR);
    assert_null(core_event(f, EVENT_OBSERVER));
    assert_answers(f, "5:ack #1 MUSTER_E_RESTORE");
}

static void an_evaluator_does_not_make_the_others_fall_back(void **state)
{
    struct core_fixture *f = *state;

    f->fallback = true;
    core_hello(f, 0);
    core_hello(f, EVALUATOR);
    restore_failed(f, EVALUATOR);
    assert_only_told(f, MUSTER_E_RESTORE, "no such file");
}

/* R8.6 */
static void a_failure_a_loss_or_a_leave_of_an_evaluator_touches_no_round(void **state)
{
    struct core_fixture *f = *state;

    for (int what = 0; what < 3; what++) {
        if (what > 0) {
            core_fixture_close(f);
            running(state);
        }
        join_evaluator(f);
        core_save_now(f, "a");
        assert_events(f, "freeze r1 operator m0,1");
        if (what == 0) {
            core_error(f, EVALUATOR, 3, "bad data");
            assert_only_told(f, MUSTER_E_STEP, "bad data");
        } else if (what == 1) {
            core_leave(f, EVALUATOR, LEAVE_FAILED, 7);
            assert_only_told(f, MUSTER_E_STEP, "exit code 7");
        } else {
            f->nodes[EVALUATOR].silent = true;
            core_report(f, 0, 1, 3, 3);
            core_report(f, 1, 1, 3, 3);
            core_pass(f, LOST_MS + HEARTBEAT_MS);
            assert_only_told(f, MUSTER_E_PEER, "silent");
        }
        core_report(f, 0, 1, 3, 3);
        core_report(f, 1, 1, 3, 3);
        core_save(f, 0, 1, 3);
        core_save(f, 1, 1, 3);
        assert_int_equal(registry_newest(core_job(f))->row.step, 3);
        assert_int_equal(core_job(f)->gen.state, GENERATION_RUNNING);
    }
}

/* R7.6 */
static void the_end_of_an_evaluator_is_no_cause_of_a_save(void **state)
{
    struct core_fixture *f = *state;

    join_evaluator(f);
    core_notice(f, EVALUATOR, "e", 20000);
    assert_core(f, "+notice e active; +job; +event 4; !4 termination rank 0 retry; "
                   "+node 0 restored #2; 5:ack #2 MUSTER_OK"); /* no hint either */
    core_pass(f, 30000);
    assert_events(f, "");
    core_restart(f, false);
    core_hello(f, 0);
    core_hello(f, 1);
    core_pass(f, START_FREEZE_MS);
    assert_events(f, "");
    core_notice(f, 1, "n1", 60000);
    assert_events(f, "termination rank 1; freeze r1 termination m0,1");
    assert_int_equal(core_row(f, RECORD_ROUND)->u.round.deadline_boot_ms, f->now + 60000);
}

/* R7.6 */
static void the_notice_of_a_ps_is_one_of_the_job(void **state)
{
    struct core_fixture *f = *state;

    f->nodes[EVALUATOR].role = ROLE_PS;
    join_evaluator(f);
    core_notice(f, EVALUATOR, "p", 20000);
    assert_events(f, "termination rank 0; freeze r1 termination m0,1");
}

/* Ranks are unique within a role only. */
static void a_worker_that_finished_takes_no_notice_of_a_ps_with_it(void **state)
{
    struct core_fixture *f = *state;

    f->nodes[EVALUATOR].role = ROLE_PS;
    join_evaluator(f);
    assert_int_equal(f->nodes[EVALUATOR].rank, f->nodes[0].rank);
    core_job(f)->saves.count = 0;
    plan_saves_add(&core_job(f)->saves, 40);
    core_job(f)->step_p95_ms = 100;
    f->plans = true;
    core_notice(f, EVALUATOR, "p", 3600000);
    assert_events(f, "termination rank 0");
    core_leave(f, 0, LEAVE_FINISHED, 0);
    assert_events(f, "");
    assert_true(notice_any_active(core_job(f)));
    core_leave(f, EVALUATOR, LEAVE_FINISHED, 0); /* at its notice: the workers have to go with it */
    assert_true(notice_any_active(core_job(f)));
}

static void an_evaluator_asks_for_no_policy_save(void **state)
{
    struct core_fixture *f = *state;

    join_evaluator(f);
    core_save_at(f, EVALUATOR, 50);
    assert_answers(f, "5:ack #2 MUSTER_E_PROTOCOL");
    assert_events(f, "");
    core_save_at(f, 0, 20); /* it has not passed it */
    assert_events(f, "decision r1 policy S20 m0w,1");
}

/* R3.6 */
static void an_evaluator_opens_no_generation(void **state)
{
    struct core_fixture *f = *state;

    core_hello(f, EVALUATOR);
    assert_answers(f, "5:refused MUSTER_E_ENDING retry");
    assert_events(f, "");
    f->layout = LAYOUT_SHARDED; /* it would have said another one */
    core_hello(f, 0);
    assert_events(f, "generation opened S0; resume S0");
    core_hello(f, EVALUATOR);
    assert_answers(f, "5:welcome g1; 5:SNAPSHOT");
}

static void come_anew(struct core_fixture *f, int node)
{
    f->nodes[node].incarnation += 20;
    f->nodes[node].generation = 0;
    f->nodes[node].begun = f->nodes[node].done = 0;
    core_hello(f, node);
}

static void a_living_evaluator_keeps_no_launch_waiting(void **state)
{
    struct core_fixture *f = *state;

    join_evaluator(f);
    core_error(f, 1, 5, "bad");
    core_leave(f, 0, LEAVE_ERROR, 1);
    core_leave(f, 1, LEAVE_FAILED, 1);
    assert_int_equal(core_job(f)->gen.state, GENERATION_ENDED);
    come_anew(f, 0);
    assert_answers(f, "0:welcome g2; 0:SNAPSHOT");
    come_anew(f, EVALUATOR);
    assert_answers(f, "5:welcome g2; 5:SNAPSHOT");
}

static void an_evaluator_outlives_a_job_that_finished(void **state)
{
    struct core_fixture *f = *state;

    join_evaluator(f);
    core_leave(f, 0, LEAVE_FINISHED, 0);
    core_leave(f, 1, LEAVE_FINISHED, 0);
    assert_int_equal(core_job(f)->gen.state, GENERATION_ENDED);
    core_heartbeat(f, EVALUATOR);
    assert_answers(f, "5:ALIVE");
    core_hello(f, EVALUATOR);
    assert_answers(f, "5:welcome g1");
    core_leave(f, EVALUATOR, LEAVE_FINISHED, 0);
    assert_events(f, "");
}

#define T(test, setup) cmocka_unit_test_setup_teardown(test, setup, core_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(an_evaluator_that_cannot_restore_ends_nobody_else, empty),
        T(an_evaluator_that_cannot_restore_is_told_so_whatever_it_was_to_restore, running),
        T(an_evaluator_of_a_job_that_is_over_is_answered_that_it_could_not_restore, running),
        T(an_evaluator_does_not_make_the_others_fall_back, empty),
        T(a_failure_a_loss_or_a_leave_of_an_evaluator_touches_no_round, running),
        T(the_end_of_an_evaluator_is_no_cause_of_a_save, running),
        T(the_notice_of_a_ps_is_one_of_the_job, running),
        T(a_worker_that_finished_takes_no_notice_of_a_ps_with_it, running),
        T(an_evaluator_asks_for_no_policy_save, running),
        T(an_evaluator_opens_no_generation, empty),
        T(a_living_evaluator_keeps_no_launch_waiting, running),
        T(an_evaluator_outlives_a_job_that_finished, running),
    };

    return cmocka_run_group_tests_name("core_observer", tests, NULL, NULL);
}
