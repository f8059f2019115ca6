/* Tests of tools/supervise: what `muster run` decides from exits, signals and time.
 * Programs are not in the archive that tests link, so the pure part is compiled in here. */
#include "tools/run/supervise.c" /* NOLINT(bugprone-suspicious-include) */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define START_MS 1000000

static struct supervise_exit code(int rank, int value)
{
    return (struct supervise_exit){.rank = rank, .code = value};
}

static struct supervise_exit killed(int rank, int signo)
{
    return (struct supervise_exit){.rank = rank, .signo = signo};
}

static struct supervise fresh(int ranks)
{
    struct supervise_policy policy;
    struct supervise sup;

    supervise_defaults(&policy, ranks);
    supervise_init(&sup, &policy, 1);
    supervise_begin(&sup, START_MS);
    return sup;
}

static void gone(struct supervise *sup, struct supervise_exit exit, int64_t at_ms)
{
    supervise_exited(sup, &exit, START_MS + at_ms);
}

/* A launch of two ranks that end so; steps: the newest checkpoint, or NULL. */
static struct supervise_verdict run(struct supervise *sup, struct supervise_exit first,
                                    struct supervise_exit second, const int64_t *step)
{
    supervise_begin(sup, START_MS);
    gone(sup, first, 10);
    gone(sup, second, 20);
    return supervise_end(sup, step, START_MS + 20);
}

struct exit_case {
    const char *what;
    struct supervise_exit first, second;
    int restart_code;
    int told; /* a signal to `muster run`, before the exits */
    enum supervise_reason reason;
    bool restart;
    int exit_code;
    const char *text;
};

#define CODE(rank_, code_)               \
    {                                    \
        .rank = (rank_), .code = (code_) \
    }
#define DEATH(rank_, signo_)               \
    {                                      \
        .rank = (rank_), .signo = (signo_) \
    }

static const struct exit_case exit_cases[] = {
    {"both finish", CODE(0, 0), CODE(1, 0), 42, 0, SUPERVISE_BY_FINISH, false, 0, "finished"},
    {"both preempted", CODE(0, 42), CODE(1, 42), 42, 0, SUPERVISE_BY_PREEMPTION, true, 0,
     "preempted, restart code 42 from all 2 ranks"},
    {"one finished early, one preempted", CODE(1, 0), CODE(0, 42), 42, 0, SUPERVISE_BY_PREEMPTION,
     true, 0, "preempted, restart code 42 from 1 of 2 ranks"},
    {"a preemption's victim is no failure", CODE(0, 42), CODE(1, 1), 42, 0, SUPERVISE_BY_PREEMPTION,
     true, 0, "preempted, restart code 42 from 1 of 2 ranks"},
    {"a failure", CODE(1, 3), CODE(0, 0), 42, 0, SUPERVISE_BY_FAILURE, true, 0,
     "failed, rank 1 exited with code 3"},
    {"a failure whose peer leaves with the restart code is a failure", CODE(1, 3), CODE(0, 42), 42,
     0, SUPERVISE_BY_FAILURE, true, 0, "failed, rank 1 exited with code 3"},
    {"death by a signal", DEATH(0, 11), CODE(1, 0), 42, 0, SUPERVISE_BY_FAILURE, true, 0,
     "failed, rank 0 was killed by signal 11 (Segmentation fault)"},
    {"SIGTERM from elsewhere is a failure with 42", DEATH(0, 15), CODE(1, 0), 42, 0,
     SUPERVISE_BY_FAILURE, true, 0, "failed, rank 0 was killed by signal 15 (Terminated)"},
    {"SIGTERM's death is the restart code 143", DEATH(0, 15), CODE(1, 143), 143, 0,
     SUPERVISE_BY_PREEMPTION, true, 0, "preempted, restart code 143 from all 2 ranks"},
    {"42 is a failure when 75 is the restart code", CODE(0, 42), CODE(1, 75), 75, 0,
     SUPERVISE_BY_FAILURE, true, 0, "failed, rank 0 exited with code 42"},
    {"93 stops", CODE(0, 93), CODE(1, 0), 42, 0, SUPERVISE_BY_NO_RESTART, false, 93,
     "failed, rank 0 exited with code 93; code 93 asks not to be restarted"},
    {"93 stops also as the second to go", CODE(0, 42), CODE(1, 93), 42, 0, SUPERVISE_BY_NO_RESTART,
     false, 93, "preempted, restart code 42 from 1 of 2 ranks; code 93 asks not to be restarted"},
    {"what cannot start stops",
     {.rank = 0, .code = 127, .unstarted = true},
     DEATH(1, 9),
     42,
     0,
     SUPERVISE_BY_UNSTARTED,
     false,
     127,
     "failed, rank 0 could not be started"},
    {"told: the restart code is passed on", CODE(0, 42), CODE(1, 42), 42, SIGTERM,
     SUPERVISE_BY_SIGNAL, false, 42,
     "preempted, restart code 42 from all 2 ranks; signal 15 (Terminated) was forwarded to the "
     "ranks"},
    {"told: one rank without a handler dies first", DEATH(0, 15), CODE(1, 42), 42, SIGTERM,
     SUPERVISE_BY_SIGNAL, false, 42, NULL},
    {"told: SIGTERM before any handler", DEATH(0, 15), DEATH(1, 15), 42, SIGTERM,
     SUPERVISE_BY_SIGNAL, false, 42, NULL},
    {"told: killed meanwhile", DEATH(0, 9), DEATH(1, 15), 42, SIGTERM, SUPERVISE_BY_SIGNAL, false,
     137, NULL},
    {"told by ^C", DEATH(0, 2), DEATH(1, 2), 42, SIGINT, SUPERVISE_BY_SIGNAL, false, 130, NULL},
    {"told: a failure stays one", CODE(0, 5), CODE(1, 0), 42, SIGTERM, SUPERVISE_BY_SIGNAL, false,
     5, NULL},
    {"told: 93 wins", CODE(0, 42), CODE(1, 93), 42, SIGTERM, SUPERVISE_BY_NO_RESTART, false, 93,
     NULL},
    {"told, but finished", CODE(0, 0), CODE(1, 0), 42, SIGTERM, SUPERVISE_BY_FINISH, false, 0,
     "finished"},
    {"a scheduler's SIGUSR1 is this machine's notice", CODE(0, 42), CODE(1, 42), 42, SIGUSR1,
     SUPERVISE_BY_SIGNAL, false, 42, NULL},
    {"on record it was preempted, whatever the launcher says",
     {.rank = SUPERVISE_LAUNCHER, .code = 1, .preempted = true},
     CODE(1, 0),
     42,
     0,
     SUPERVISE_BY_PREEMPTION,
     true,
     0,
     "preempted, the launcher exited with code 1"},
    {"... also when it says nothing",
     {.rank = SUPERVISE_LAUNCHER, .preempted = true},
     CODE(1, 0),
     42,
     SIGTERM,
     SUPERVISE_BY_SIGNAL,
     false,
     42,
     NULL},
    {"a launcher's own failure", DEATH(SUPERVISE_LAUNCHER, 11), CODE(1, 0), 42, 0,
     SUPERVISE_BY_FAILURE, true, 0,
     "failed, the launcher was killed by signal 11 (Segmentation fault)"},
    {"SIGUSR1 does not make a failure an end", CODE(0, 5), CODE(1, 0), 42, SIGUSR1,
     SUPERVISE_BY_FAILURE, true, 0, NULL},
};

static void each_pair_of_exits_has_its_verdict(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof exit_cases / sizeof exit_cases[0]; i++) {
        const struct exit_case *c = &exit_cases[i];
        struct supervise_verdict verdict;
        struct supervise sup = fresh(2);
        char text[256];

        print_message("  %s\n", c->what);
        sup.policy.restart_code = c->restart_code;
        if (c->told != 0)
            assert_true(supervise_signal(&sup, c->told, START_MS + 5));
        gone(&sup, c->first, 10);
        gone(&sup, c->second, 20);
        verdict = supervise_end(&sup, NULL, START_MS + 20);
        assert_int_equal(verdict.reason, c->reason);
        assert_int_equal(verdict.restart, c->restart);
        assert_int_equal(verdict.exit_code, c->exit_code);
        supervise_describe(&sup, &verdict, text, sizeof text);
        if (c->text != NULL)
            assert_string_equal(text, c->text);
    }
}

static void preemptions_and_failures_are_counted_apart(void **state)
{
    struct supervise sup = fresh(2);
    int64_t step = 1;

    (void)state;
    run(&sup, code(0, 42), code(1, 42), &step);
    step++;
    run(&sup, code(0, 1), code(1, 42), &step);
    step++;
    run(&sup, code(0, 42), code(1, 1), &step);
    assert_int_equal(sup.preemption_count, 2);
    assert_int_equal(sup.failure_count, 1);
    assert_int_equal(sup.launch_count, 4); /* fresh() began one */
}

static void the_fourth_failure_ends_the_run_with_its_code(void **state)
{
    struct supervise_verdict verdict;
    struct supervise sup = fresh(2);
    int64_t step = 0;

    (void)state;
    for (int i = 0; i < 3; i++, step++)
        assert_true(run(&sup, code(0, 7), code(1, 0), &step).restart);
    verdict = run(&sup, code(0, 8), code(1, 0), &step);
    assert_false(verdict.restart);
    assert_int_equal(verdict.reason, SUPERVISE_BY_MAX_FAILURES);
    assert_int_equal(verdict.exit_code, 8);
}

static void no_failure_is_restarted_when_none_may_be(void **state)
{
    struct supervise sup = fresh(2);

    (void)state;
    sup.policy.max_failures = 0;
    assert_false(run(&sup, killed(0, 9), code(1, 0), NULL).restart);
}

static void preemptions_have_no_limit_unless_asked(void **state)
{
    struct supervise_verdict verdict;
    struct supervise sup = fresh(2);
    int64_t step = 0;

    (void)state;
    for (; step < 50; step++)
        assert_true(run(&sup, code(0, 42), code(1, 42), &step).restart);
    sup.policy.max_preemptions = 50;
    verdict = run(&sup, code(0, 42), code(1, 42), &step);
    assert_int_equal(verdict.reason, SUPERVISE_BY_MAX_PREEMPTIONS);
    assert_int_equal(verdict.exit_code, 42); /* who started us may still restart the job */
}

static void three_restarts_without_a_newer_checkpoint_are_enough(void **state)
{
    struct supervise_verdict verdict;
    struct supervise sup = fresh(2);
    int64_t step = 10;

    (void)state;
    assert_true(run(&sup, code(0, 42), code(1, 42), &step).restart); /* step 10 is new */
    for (int i = 0; i < 3; i++)
        assert_true(run(&sup, code(0, 42), code(1, 42), &step).restart);
    verdict = run(&sup, code(0, 42), code(1, 42), &step);
    assert_int_equal(verdict.reason, SUPERVISE_BY_STALL);
    assert_int_equal(verdict.exit_code, 42); /* taken away here: the outer launcher has elsewhere */
}

static void a_failure_among_the_idle_launches_is_no_reason_to_start_elsewhere(void **state)
{
    struct supervise_verdict verdict;
    struct supervise sup = fresh(2);
    int64_t step = 10;

    (void)state;
    run(&sup, code(0, 42), code(1, 42), &step);
    run(&sup, code(0, 42), code(1, 42), &step);
    run(&sup, code(0, 1), code(1, 42), &step);
    run(&sup, code(0, 42), code(1, 42), &step);
    verdict = run(&sup, code(0, 42), code(1, 42), &step);
    assert_int_equal(verdict.reason, SUPERVISE_BY_STALL);
    assert_int_equal(verdict.exit_code, 1);
}

static void a_job_that_never_saves_stalls_too(void **state)
{
    struct supervise sup = fresh(2);
    int64_t none = -1;

    (void)state;
    for (int i = 0; i < 3; i++)
        assert_true(run(&sup, code(0, 42), code(1, 42), &none).restart);
    assert_false(run(&sup, code(0, 42), code(1, 42), &none).restart);
}

static void a_newer_checkpoint_forgives_the_stall(void **state)
{
    struct supervise sup = fresh(2);
    int64_t step = 10;

    (void)state;
    for (int i = 0; i < 20; i++) {
        step += i % 3 == 0;
        assert_true(run(&sup, code(0, 42), code(1, 42), &step).restart);
    }
}

static void a_step_chosen_lower_by_an_operator_counts_from_there(void **state)
{
    struct supervise sup = fresh(2);
    int64_t step = 1000;

    (void)state;
    run(&sup, code(0, 42), code(1, 42), &step);
    step = 500;
    run(&sup, code(0, 42), code(1, 42), &step);
    assert_int_equal(sup.stall_count, 1);
    step = 501;
    run(&sup, code(0, 42), code(1, 42), &step);
    assert_int_equal(sup.stall_count, 0);
}

static void unknown_checkpoints_are_judged_by_the_launchs_length(void **state)
{
    struct supervise sup = fresh(1);

    (void)state;
    for (int i = 0; i < 20; i++) { /* a minute each: not a loop */
        supervise_begin(&sup, START_MS);
        gone(&sup, code(0, 42), 60000);
        assert_true(supervise_end(&sup, NULL, START_MS + 60000).restart);
    }
    for (int i = 0; i < 3; i++)
        assert_true(run(&sup, code(0, 42), code(0, 42), NULL).restart);
    assert_false(run(&sup, code(0, 42), code(0, 42), NULL).restart);
}

static void failures_wait_and_each_longer_than_the_last(void **state)
{
    struct supervise sup = fresh(2);
    int64_t step = 0;
    int64_t cap_ms = 1000;

    (void)state;
    sup.policy.max_failures = -1;
    sup.policy.max_stalls = 100;
    sup.step_known = true;
    for (int i = 0; i < 12; i++) {
        int64_t delay_ms = run(&sup, code(0, 1), code(1, 0), &step).delay_ms;

        assert_in_range(delay_ms, cap_ms * 3 / 4, cap_ms);
        cap_ms = cap_ms * 2 > 30000 ? 30000 : cap_ms * 2;
    }
    step++; /* progress: the next failure is a first one again */
    assert_in_range(run(&sup, code(0, 1), code(1, 0), &step).delay_ms, 0, 1000);
}

static void preemptions_wait_where_they_brought_no_newer_checkpoint(void **state)
{
    struct supervise sup = fresh(2);
    int64_t step = 5;

    (void)state;
    for (int round = 0; round < 2; round++, step++) {
        int64_t cap_ms = 1000;

        assert_int_equal(run(&sup, code(0, 42), code(1, 42), &step).delay_ms, 0);
        for (int i = 0; i < 3; i++, cap_ms *= 2)
            assert_in_range(run(&sup, code(0, 42), code(1, 42), &step).delay_ms, cap_ms * 3 / 4,
                            cap_ms);
    }
}

static void the_backoff_can_be_switched_off(void **state)
{
    struct supervise sup = fresh(2);

    (void)state;
    sup.policy.backoff_ms = 0;
    assert_int_equal(run(&sup, code(0, 1), code(1, 0), NULL).delay_ms, 0);
}

static void what_a_killed_shell_leaves_running_inherits_its_signal(void **state)
{
    struct supervise sup = fresh(1);
    struct supervise_exit by_term = killed(0, SIGTERM), by_usr1 = killed(0, SIGUSR1);
    struct supervise_exit plain = code(0, 1), restart = code(0, 42), done = code(0, 0);
    struct supervise_exit by_kill = killed(0, SIGKILL);

    (void)state;
    assert_int_equal(supervise_inherited(&sup, &by_term), 0); /* nobody was told to end */
    supervise_signal(&sup, SIGUSR1, START_MS + 5);
    assert_int_equal(supervise_inherited(&sup, &by_usr1), SIGUSR1);
    assert_int_equal(supervise_inherited(&sup, &plain), 0);
    supervise_signal(&sup, SIGTERM, START_MS + 6);
    assert_int_equal(supervise_inherited(&sup, &by_term), SIGTERM);
    assert_int_equal(supervise_inherited(&sup, &by_usr1), SIGUSR1);
    assert_int_equal(supervise_inherited(&sup, &plain), SIGTERM);
    assert_int_equal(supervise_inherited(&sup, &restart), 0);
    assert_int_equal(supervise_inherited(&sup, &done), 0);
    assert_int_equal(supervise_inherited(&sup, &by_kill), 0);
    sup.kill_now = true;
    assert_int_equal(supervise_inherited(&sup, &by_term), 0);
}

static void what_a_shell_leaves_after_the_order_to_end_inherits_it(void **state)
{
    struct supervise sup = fresh(2);
    struct supervise_exit by_term = killed(1, SIGTERM);

    (void)state;
    gone(&sup, code(0, 1), 100);
    assert_int_equal(supervise_due(&sup, START_MS + 10100), SUPERVISE_TERM);
    assert_int_equal(supervise_inherited(&sup, &by_term), SIGTERM);
    assert_int_equal(supervise_due(&sup, START_MS + 20100), SUPERVISE_KILL);
    assert_int_equal(supervise_inherited(&sup, &by_term), 0);
}

static enum supervise_order due(struct supervise *sup, int64_t at_ms)
{
    return supervise_due(sup, START_MS + at_ms);
}

static void after_a_failure_the_others_get_term_then_kill(void **state)
{
    struct supervise sup = fresh(3);

    (void)state;
    assert_int_equal(supervise_wait_ms(&sup, START_MS), -1);
    gone(&sup, code(1, 1), 100);
    assert_int_equal(supervise_wait_ms(&sup, START_MS + 100), 10000);
    assert_int_equal(due(&sup, 10099), SUPERVISE_WAIT);
    assert_int_equal(due(&sup, 10100), SUPERVISE_TERM);
    assert_int_equal(due(&sup, 10101), SUPERVISE_WAIT); /* each order once */
    gone(&sup, killed(0, 15), 10200);                   /* does not move the deadline */
    assert_int_equal(due(&sup, 20099), SUPERVISE_WAIT);
    assert_int_equal(due(&sup, 20100), SUPERVISE_KILL);
    assert_int_equal(due(&sup, 30099), SUPERVISE_WAIT);
    assert_int_equal(due(&sup, 30100), SUPERVISE_ABANDON);
    assert_int_equal(due(&sup, 99999), SUPERVISE_WAIT);
    assert_int_equal(supervise_end(&sup, NULL, START_MS + 30100).reason, SUPERVISE_BY_UNKILLABLE);
}

static void ranks_that_go_within_the_grace_are_sent_nothing(void **state)
{
    struct supervise sup = fresh(2);

    (void)state;
    gone(&sup, code(1, 1), 100);
    gone(&sup, code(0, 1), 200);
    assert_int_equal(due(&sup, 99999), SUPERVISE_WAIT);
    assert_int_equal(supervise_wait_ms(&sup, START_MS + 200), -1);
}

static void a_finished_rank_hurries_nobody(void **state)
{
    struct supervise sup = fresh(2);

    (void)state;
    gone(&sup, code(1, 0), 100);
    assert_int_equal(supervise_wait_ms(&sup, START_MS + 100), -1);
}

static void preempted_ranks_have_longer_to_leave(void **state)
{
    struct supervise sup = fresh(2);

    (void)state;
    gone(&sup, code(1, 42), 0);
    assert_int_equal(due(&sup, 119999), SUPERVISE_WAIT);
    assert_int_equal(due(&sup, 120000), SUPERVISE_TERM);
    assert_int_equal(due(&sup, 130000), SUPERVISE_KILL);
}

static void ranks_that_never_began_a_step_end_with_their_launch(void **state)
{
    struct supervise sup = fresh(2);

    (void)state;
    supervise_none_started(&sup, START_MS);
    assert_int_equal(due(&sup, 0), SUPERVISE_WAIT); /* nobody has left yet */
    gone(&sup, code(1, 42), 100);
    supervise_none_started(&sup, START_MS + 100);
    assert_int_equal(due(&sup, 100), SUPERVISE_TERM);
    assert_int_equal(due(&sup, 10099), SUPERVISE_WAIT);
    assert_int_equal(due(&sup, 10100), SUPERVISE_KILL);
}

static void those_that_were_told_to_end_have_the_grace_for_it(void **state)
{
    struct supervise sup = fresh(2);

    (void)state;
    assert_true(supervise_signal(&sup, SIGTERM, START_MS));
    gone(&sup, code(1, 42), 100);
    supervise_none_started(&sup, START_MS + 100);
    assert_int_equal(due(&sup, 10099), SUPERVISE_WAIT);
    assert_int_equal(due(&sup, 10100), SUPERVISE_KILL);
}

static void a_failure_is_followed_by_the_grace_also_among_ranks_that_leave(void **state)
{
    struct supervise sup = fresh(3);

    (void)state;
    gone(&sup, code(1, 42), 0);
    gone(&sup, code(2, 1), 1000);
    assert_int_equal(due(&sup, 10999), SUPERVISE_WAIT);
    assert_int_equal(due(&sup, 11000), SUPERVISE_TERM);
    assert_int_equal(sup.now.cause_kind, SUPERVISE_RESTART);
}

static void what_cannot_start_ends_the_others_at_once(void **state)
{
    struct supervise_exit exit = {.rank = 0, .code = 127, .unstarted = true};
    struct supervise sup = fresh(2);

    (void)state;
    gone(&sup, exit, 5);
    assert_int_equal(due(&sup, 5), SUPERVISE_KILL);
}

static void a_second_term_is_not_forwarded_and_changes_nothing(void **state)
{
    struct supervise sup = fresh(2);

    (void)state;
    assert_true(supervise_signal(&sup, SIGTERM, START_MS));
    assert_false(supervise_signal(&sup, SIGTERM, START_MS + 6));
    assert_false(supervise_signal(&sup, SIGTERM, START_MS + 60000));
    assert_int_equal(due(&sup, 60000), SUPERVISE_WAIT);
}

static void told_ranks_get_no_second_term_and_one_that_stays_is_killed(void **state)
{
    struct supervise sup = fresh(2);

    (void)state;
    supervise_signal(&sup, SIGTERM, START_MS);
    assert_int_equal(supervise_wait_ms(&sup, START_MS), 600000);
    gone(&sup, killed(0, 15), 100); /* no handler: its peer is saving meanwhile */
    assert_int_equal(due(&sup, 100 + 119999), SUPERVISE_WAIT);
    assert_int_equal(due(&sup, 100 + 120000), SUPERVISE_KILL);
}

static void ranks_that_ignore_the_signal_are_killed_at_the_stop_bound(void **state)
{
    struct supervise sup = fresh(2);

    (void)state;
    supervise_signal(&sup, SIGHUP, START_MS);
    assert_int_equal(due(&sup, 599999), SUPERVISE_WAIT);
    assert_int_equal(due(&sup, 600000), SUPERVISE_KILL);
}

static void a_stop_bound_shorter_than_the_grace_is_kept(void **state)
{
    struct supervise sup = fresh(2);

    (void)state;
    sup.policy.stop_ms = 100;
    supervise_signal(&sup, SIGTERM, START_MS);
    assert_int_equal(due(&sup, 100), SUPERVISE_KILL);
}

static void without_a_stop_bound_a_told_launch_may_take_its_time(void **state)
{
    struct supervise sup = fresh(2);

    (void)state;
    sup.policy.stop_ms = 0;
    supervise_signal(&sup, SIGTERM, START_MS);
    assert_int_equal(supervise_wait_ms(&sup, START_MS), -1);
}

static void a_signal_just_before_the_end_of_the_grace_gets_a_grace_of_its_own(void **state)
{
    struct supervise sup = fresh(2);

    (void)state;
    gone(&sup, code(0, 1), 0);
    supervise_signal(&sup, SIGTERM, START_MS + 9990);
    assert_int_equal(due(&sup, 10000), SUPERVISE_WAIT);
    assert_int_equal(due(&sup, 19990), SUPERVISE_KILL);
}

static void a_second_interrupt_kills_unless_it_is_the_firsts_echo(void **state)
{
    struct supervise sup = fresh(2);

    (void)state;
    assert_true(supervise_signal(&sup, SIGINT, START_MS));
    assert_true(supervise_signal(&sup, SIGTERM, START_MS + 1));
    assert_false(supervise_signal(&sup, SIGINT, START_MS + 6));
    assert_int_equal(due(&sup, 6), SUPERVISE_WAIT);
    assert_false(supervise_signal(&sup, SIGINT, START_MS + 900));
    assert_int_equal(supervise_wait_ms(&sup, START_MS + 900), 0);
    assert_int_equal(due(&sup, 900), SUPERVISE_KILL);
    assert_int_equal(due(&sup, 901), SUPERVISE_WAIT);
}

static void user_signals_are_forwarded_each_time(void **state)
{
    struct supervise sup = fresh(2);

    (void)state;
    assert_true(supervise_signal(&sup, SIGUSR1, START_MS));
    assert_true(supervise_signal(&sup, SIGUSR1, START_MS));
    assert_true(supervise_signal(&sup, SIGUSR2, START_MS));
    assert_false(supervise_signal(&sup, SIGCHLD, START_MS));
    assert_int_equal(supervise_wait_ms(&sup, START_MS), -1);
}

static void an_old_user_signal_is_forgotten(void **state)
{
    struct supervise sup = fresh(1);

    (void)state;
    supervise_signal(&sup, SIGUSR1, START_MS);
    gone(&sup, code(0, 42), 600001);
    assert_true(supervise_end(&sup, NULL, START_MS + 600001).restart);
}

static void a_failure_before_the_signal_still_asks_for_its_restart(void **state)
{
    struct supervise sup = fresh(2);

    (void)state;
    gone(&sup, code(0, 1), 0);
    supervise_signal(&sup, SIGTERM, START_MS + 5);
    gone(&sup, killed(1, 15), 10);
    assert_int_equal(supervise_end(&sup, NULL, START_MS + 10).exit_code, 42);
}

/* A rank that left because of another is not to blame for the end of the launch. */
static void the_failure_that_came_first_is_the_cause(void **state)
{
    struct supervise sup = fresh(2);
    struct supervise_exit other = code(1, 9), preempted = code(1, 42);
    struct supervise_verdict verdict;

    (void)state;
    sup.policy.max_failures = 0;
    gone(&sup, code(0, 1), 10);
    gone(&sup, other, 20);
    supervise_blame(&sup, &preempted); /* not a failure: nothing changes */
    assert_int_equal(sup.now.cause.rank, 0);
    supervise_blame(&sup, &other);
    verdict = supervise_end(&sup, NULL, START_MS + 30);
    assert_int_equal(verdict.exit_code, 9);
    assert_int_equal(sup.now.cause.rank, 1);
}

/* Nor can a failure be put in the place of a preemption: that one is restarted without limit. */
static void a_preemption_stays_one(void **state)
{
    struct supervise sup = fresh(2);
    struct supervise_exit other = code(1, 9);

    (void)state;
    gone(&sup, code(0, 42), 10);
    gone(&sup, other, 20);
    supervise_blame(&sup, &other);
    assert_true(supervise_end(&sup, NULL, START_MS + 30).reason == SUPERVISE_BY_PREEMPTION);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_pair_of_exits_has_its_verdict),
        cmocka_unit_test(preemptions_and_failures_are_counted_apart),
        cmocka_unit_test(the_fourth_failure_ends_the_run_with_its_code),
        cmocka_unit_test(no_failure_is_restarted_when_none_may_be),
        cmocka_unit_test(preemptions_have_no_limit_unless_asked),
        cmocka_unit_test(three_restarts_without_a_newer_checkpoint_are_enough),
        cmocka_unit_test(a_failure_among_the_idle_launches_is_no_reason_to_start_elsewhere),
        cmocka_unit_test(a_job_that_never_saves_stalls_too),
        cmocka_unit_test(a_newer_checkpoint_forgives_the_stall),
        cmocka_unit_test(a_step_chosen_lower_by_an_operator_counts_from_there),
        cmocka_unit_test(unknown_checkpoints_are_judged_by_the_launchs_length),
        cmocka_unit_test(failures_wait_and_each_longer_than_the_last),
        cmocka_unit_test(preemptions_wait_where_they_brought_no_newer_checkpoint),
        cmocka_unit_test(the_backoff_can_be_switched_off),
        cmocka_unit_test(what_a_killed_shell_leaves_running_inherits_its_signal),
        cmocka_unit_test(what_a_shell_leaves_after_the_order_to_end_inherits_it),
        cmocka_unit_test(after_a_failure_the_others_get_term_then_kill),
        cmocka_unit_test(ranks_that_go_within_the_grace_are_sent_nothing),
        cmocka_unit_test(a_finished_rank_hurries_nobody),
        cmocka_unit_test(preempted_ranks_have_longer_to_leave),
        cmocka_unit_test(ranks_that_never_began_a_step_end_with_their_launch),
        cmocka_unit_test(those_that_were_told_to_end_have_the_grace_for_it),
        cmocka_unit_test(a_failure_is_followed_by_the_grace_also_among_ranks_that_leave),
        cmocka_unit_test(what_cannot_start_ends_the_others_at_once),
        cmocka_unit_test(a_second_term_is_not_forwarded_and_changes_nothing),
        cmocka_unit_test(told_ranks_get_no_second_term_and_one_that_stays_is_killed),
        cmocka_unit_test(ranks_that_ignore_the_signal_are_killed_at_the_stop_bound),
        cmocka_unit_test(a_stop_bound_shorter_than_the_grace_is_kept),
        cmocka_unit_test(without_a_stop_bound_a_told_launch_may_take_its_time),
        cmocka_unit_test(a_signal_just_before_the_end_of_the_grace_gets_a_grace_of_its_own),
        cmocka_unit_test(a_second_interrupt_kills_unless_it_is_the_firsts_echo),
        cmocka_unit_test(user_signals_are_forwarded_each_time),
        cmocka_unit_test(an_old_user_signal_is_forgotten),
        cmocka_unit_test(the_failure_that_came_first_is_the_cause),
        cmocka_unit_test(a_preemption_stays_one),
        cmocka_unit_test(a_failure_before_the_signal_still_asks_for_its_restart),
    };

    return cmocka_run_group_tests_name("supervise", tests, NULL, NULL);
}
