/* The node's core: what it tells of the rounds in which it captured its state. */
#include "tests/support/member_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#define W1 2u /* this node writes */

static const struct member_outcome *outcome(const struct member_fixture *f, uint64_t round)
{
    static const struct member_outcome none;

    for (size_t i = 0; i < MEMBER_OUTCOMES_MAX; i++)
        if (f->m->view.outcomes[i].round == round)
            return &f->m->view.outcomes[i];
    return &none;
}

static void capture_at_5(struct member_fixture *f)
{
    member_stand(f, 5);
    member_decision(f, 1, CAUSE_POLICY, 5, W1);
    member_arrive(f);
    member_ack_all(f);
}

static void a_commit_and_then_its_place_are_told(void **state)
{
    struct member_fixture *f = *state;
    struct wire_event event;

    assert_int_equal(outcome(f, 1)->state, OUTCOME_NONE);
    capture_at_5(f);
    assert_int_equal(outcome(f, 1)->state, OUTCOME_OPEN);
    assert_int_equal(outcome(f, 1)->step, 5);
    member_commit(f, 1, CAUSE_POLICY, 5, false);
    assert_int_equal(outcome(f, 1)->state, OUTCOME_COMMITTED);
    assert_false(outcome(f, 1)->in_place);
    event = member_event(f, EVENT_MANIFEST);
    event.round = event.checkpoint = 1;
    event.path = "/ck/4";
    member_tell(f, event);
    assert_true(outcome(f, 1)->in_place);
}

static struct wire_event abort_of_1(const struct member_fixture *f)
{
    struct wire_event event = member_event(f, EVENT_ABORT);

    event.round = 1;
    event.cause = CAUSE_POLICY;
    event.step = 5;
    event.rank = 2;
    event.code = MUSTER_E_SAVE;
    event.text = "save_fn returned 5";
    return event;
}

static void an_abort_names_rank_and_reason(void **state)
{
    struct member_fixture *f = *state;

    capture_at_5(f);
    member_tell(f, abort_of_1(f));
    assert_int_equal(outcome(f, 1)->state, OUTCOME_ABORTED);
    assert_int_equal(outcome(f, 1)->rank, 2);
    assert_int_equal(outcome(f, 1)->code, MUSTER_E_SAVE);
    assert_string_equal(outcome(f, 1)->text, "save_fn returned 5");
}

static void a_failed_save_is_said_with_what_it_costs(void **state)
{
    struct member_fixture *f = *state;
    struct wire_event event = abort_of_1(f);

    capture_at_5(f);
    event.rank = 1;
    member_tell(f, event);
    assert_int_equal(f->said_level, 1);
    assert_string_equal(f->said,
                        "step 5 was NOT saved: save_fn returned 5; if the job ends now, it "
                        "begins from the start and computes 5 steps again");
    assert_int_equal(member_seen(f)->saves_failed, 1);
    assert_string_equal(member_seen(f)->save_failed, "step 5: save_fn returned 5");
}

static void a_save_that_failed_elsewhere_or_is_tried_again_is_no_warning_here(void **state)
{
    struct member_fixture *f = *state;
    struct wire_event event = abort_of_1(f);

    capture_at_5(f);
    member_tell(f, event);
    assert_int_equal(f->said_level, 2); /* rank 2's log and rank 0's have it */
    event = abort_of_1(f);
    event.rank = 1;
    event.flags = EVENT_FLAG_RETRY;
    member_tell(f, event);
    assert_int_equal(f->said_level, 2);
    assert_int_equal(member_seen(f)->saves_failed, 1);
}

static void an_end_without_a_save_says_where_the_job_resumes(void **state)
{
    struct member_fixture *f = *state;
    struct wire_event event = member_event(f, EVENT_NOT_SAVED);

    capture_at_5(f);
    member_commit(f, 1, CAUSE_POLICY, 5, false);
    member_stand(f, 12);
    member_tick_at(f, f->now);
    event.text = "the disk is full";
    member_tell(f, event);
    assert_string_equal(member_seen(f)->end.text,
                        "NOT saved: the job is being terminated and no checkpoint was committed: "
                        "the disk is full; it resumes at step 5 and computes 7 steps again");
}

static void an_abort_on_the_way_to_the_save_step_is_told_too(void **state)
{
    struct member_fixture *f = *state;

    member_stand(f, 4);
    member_decision(f, 1, CAUSE_POLICY, 5, W1);
    assert_int_equal(outcome(f, 1)->state,
                     OUTCOME_NONE); /* nobody waits for what is not captured */
    member_tell(f, abort_of_1(f));
    assert_int_equal(outcome(f, 1)->state, OUTCOME_ABORTED);
    assert_int_equal(outcome(f, 1)->rank, 2);
    assert_int_equal(outcome(f, 1)->step, 5);
    assert_string_equal(outcome(f, 1)->text, "save_fn returned 5");
}

static void an_abort_before_a_step_was_decided_is_no_save_of_this_node(void **state)
{
    struct member_fixture *f = *state;

    member_stand(f, 4);
    member_freeze(f, 1, CAUSE_POLICY, false);
    member_tell(f, abort_of_1(f));
    assert_int_equal(outcome(f, 1)->state, OUTCOME_NONE);
}

static void a_snapshot_tells_of_an_abort_on_the_way(void **state)
{
    struct member_fixture *f = *state;
    struct wire_snapshot snapshot = {
        .named_round = 1, .named_state = ROUND_ABORTED, .named_cause = CAUSE_POLICY};

    member_stand(f, 4);
    member_decision(f, 1, CAUSE_POLICY, 5, W1);
    f->m->out = &f->out;
    outcome_snapshot(f->m, &snapshot);
    assert_int_equal(outcome(f, 1)->state, OUTCOME_ABORTED);
    assert_int_equal(outcome(f, 1)->step, 5);
}

static void a_round_without_this_node_is_nothing_to_tell(void **state)
{
    struct member_fixture *f = *state;

    member_commit(f, 7, CAUSE_POLICY, 5, false);
    assert_int_equal(outcome(f, 7)->state, OUTCOME_NONE);
}

/* The journal no longer reaches back: a snapshot tells the newest checkpoint and the named round */
static void a_snapshot_tells_what_was_not_heard(void **state)
{
    static const struct {
        uint64_t newest;
        int64_t newest_step;
        uint64_t named;
        enum wire_round_state named_state;
        enum wire_cause named_cause;
        enum member_outcome_state expected;
    } cases[] = {
        {1, 5, 0, ROUND_NONE, CAUSE_NONE, OUTCOME_COMMITTED},
        {0, -1, 1, ROUND_COMMITTED, CAUSE_POLICY, OUTCOME_COMMITTED},
        {0, -1, 1, ROUND_ABORTED, CAUSE_POLICY, OUTCOME_ABORTED},
        {0, -1, 1, ROUND_ABORTED, CAUSE_NONE, OUTCOME_UNKNOWN},
        {3, 4, 0, ROUND_NONE, CAUSE_NONE, OUTCOME_UNKNOWN}, /* a later round, an earlier step */
        {0, -1, 0, ROUND_NONE, CAUSE_NONE, OUTCOME_OPEN},
    };
    struct member_fixture *f = *state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct wire_snapshot snapshot;

        capture_at_5(f);
        snapshot = member_snapshot_made(f);
        snapshot.newest_checkpoint = cases[i].newest;
        snapshot.newest_step = cases[i].newest_step;
        snapshot.named_round = cases[i].named;
        snapshot.named_state = cases[i].named_state;
        snapshot.named_cause = cases[i].named_cause;
        snapshot.named_step = 5;
        f->m->out = &f->out;
        outcome_snapshot(f->m, &snapshot);
        f->m->out = NULL;
        if (outcome(f, 1)->state != cases[i].expected)
            fail_msg("case %zu: outcome %d", i, (int)outcome(f, 1)->state);
        member_fixture_close(f);
        member_fixture_running(f, 1, LAYOUT_REPLICATED);
    }
}

/* As many as the broker keeps active: one more makes room anyway. */
static void one_more_than_are_remembered_takes_the_place_of_an_older_one(void **state)
{
    struct member_fixture *f = *state;

    for (uint64_t round = 1; round <= MEMBER_OUTCOMES_MAX + 1; round++) {
        outcome_captured(f->m, round, (int64_t)round);
        outcome_saved(f->m, round);
    }
    assert_int_equal(outcome(f, MEMBER_OUTCOMES_MAX + 1)->state, OUTCOME_OPEN);
    f->m->view_changed = false; /* no input did this */
}

/* Its own checkpoint of that very step would be the newest. */
static void a_newer_checkpoint_of_the_same_step_is_another_rounds(void **state)
{
    struct member_fixture *f = *state;
    struct wire_snapshot snapshot;

    capture_at_5(f);
    snapshot = member_snapshot_made(f);
    snapshot.newest_checkpoint = 2;
    snapshot.newest_step = 5;
    f->m->out = &f->out;
    outcome_snapshot(f->m, &snapshot);
    f->m->out = NULL;
    assert_int_equal(outcome(f, 1)->state, OUTCOME_UNKNOWN);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, member_set_up, member_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_more_than_are_remembered_takes_the_place_of_an_older_one),
        TEST(a_newer_checkpoint_of_the_same_step_is_another_rounds),
        TEST(a_commit_and_then_its_place_are_told),
        TEST(an_abort_names_rank_and_reason),
        TEST(a_failed_save_is_said_with_what_it_costs),
        TEST(a_save_that_failed_elsewhere_or_is_tried_again_is_no_warning_here),
        TEST(an_end_without_a_save_says_where_the_job_resumes),
        TEST(an_abort_on_the_way_to_the_save_step_is_told_too),
        TEST(an_abort_before_a_step_was_decided_is_no_save_of_this_node),
        TEST(a_snapshot_tells_of_an_abort_on_the_way),
        TEST(a_round_without_this_node_is_nothing_to_tell),
        TEST(a_snapshot_tells_what_was_not_heard),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
