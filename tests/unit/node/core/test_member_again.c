/* The node's core: what a start of the broker, or a database that was restored, has forgotten. */
#include "tests/support/member_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static int running(void **state)
{
    static struct member_fixture f;

    member_fixture_running(&f, 1, LAYOUT_SHARDED);
    *state = &f;
    return 0;
}

static void start_the_broker_again(struct member_fixture *f)
{
    f->start_id++;
    f->epoch++;
    member_alive(f); /* the first frame of it */
    member_welcome(f, false);
}

/* Taken while another round was open, it was in no row (R5.17). */
static void a_policy_save_that_was_taken_is_asked_for_again_after_a_start(void **state)
{
    struct member_fixture *f = *state;

    member_stand(f, 50);
    member_policy(f);
    member_ack_all(f);
    start_the_broker_again(f);
    assert_int_equal(member_sent_count(f, WIRE_SAVE_AT), 1);
    assert_int_equal(member_sent(f, WIRE_SAVE_AT)->u.save_at.step, 50);
    member_ack_all(f);
    member_decision(f, 1, CAUSE_POLICY, 50, 2);
    member_arrive(f);
    assert_int_equal(member_seen(f)->mode, VIEW_CAPTURE);
}

static void one_that_was_not_answered_yet_is_only_repeated(void **state)
{
    struct member_fixture *f = *state;

    member_stand(f, 50);
    member_policy(f);
    start_the_broker_again(f);
    assert_int_equal(f->m->pending_count, 1);
}

static void save(struct member_fixture *f, uint64_t round)
{
    member_stand(f, (int64_t)round);
    member_decision(f, round, CAUSE_POLICY, (int64_t)round, 2);
    member_arrive(f);
    member_saved(f, round, 1);
    member_commit(f, round, CAUSE_POLICY, (int64_t)round, true);
    member_ack_all(f);
}

/* The broker's database was restored and knows nothing of checkpoint 1. */
static void a_manifest_that_nobody_can_give_does_not_keep_the_next_waiting(void **state)
{
    struct member_fixture *f = *state;

    save(f, 1);
    save(f, 2);
    member_pass(f, ENDING_MS - 1, true);
    assert_int_equal(f->m->manifest, 1);
    member_pass(f, 1000, true);
    assert_int_equal(f->m->manifest, 2);
    assert_non_null(member_sent(f, WIRE_MANIFEST_GET));
    assert_int_equal(member_sent(f, WIRE_MANIFEST_GET)->u.manifest_get.checkpoint, 2);
    member_pass(f, 2 * ENDING_MS, true);
    assert_int_equal(f->m->manifest, 0);
}

static void while_the_broker_is_away_no_manifest_is_given_up(void **state)
{
    struct member_fixture *f = *state;

    save(f, 1);
    f->start_id++;
    f->epoch++;
    member_alive(f);
    member_pass(f, 5 * ENDING_MS, false);
    assert_int_equal(f->m->manifest, 1);
    member_welcome(f, false);
    member_pass(f, ENDING_MS / 2, true);
    assert_int_equal(f->m->manifest, 1);
}

/* --- what its database has to know -------------------------------------------------------------
 */

/* R10.3 */
static void hello_tells_whose_events_are_known(void **state)
{
    struct member_fixture *f = *state;
    const uint64_t before = f->start_id;

    f->start_id++;
    f->epoch++;
    member_alive(f);
    assert_int_equal(member_sent(f, WIRE_HELLO)->u.hello.history, before);
    member_welcome(f, true); /* until its snapshot comes nothing else is known */
    member_tick_at(f, f->now + HEARTBEAT_MS);
    member_tick_at(f, f->now);
    assert_int_equal(member_sent(f, WIRE_HELLO)->u.hello.history, before);
    member_welcome(f, true);
    member_snapshot(f, member_snapshot_made(f));
    f->start_id++;
    f->epoch++;
    member_alive(f);
    assert_int_equal(member_sent(f, WIRE_HELLO)->u.hello.history, before + 1);
}

static enum member_outcome_state outcome(const struct member_fixture *f, uint64_t round)
{
    for (size_t i = 0; i < MEMBER_OUTCOMES_MAX; i++)
        if (f->m->view.outcomes[i].round == round)
            return f->m->view.outcomes[i].state;
    return OUTCOME_NONE;
}

/* Its ABORT is on its way, and says why. */
static void that_of_a_save_that_failed_too_late_is_still_to_be_heard(void **state)
{
    struct member_fixture *f = *state;

    member_stand(f, 5);
    member_decision(f, 1, CAUSE_OPERATOR, 5, 2);
    member_arrive(f);
    member_ack_all(f);
    member_save_failed(f, 1, MUSTER_E_SAVE);
    member_ack(f, member_sent(f, WIRE_SAVE_FAILED)->up.request, MUSTER_E_ABORTED);
    assert_int_equal(outcome(f, 1), OUTCOME_OPEN);
}

/* R10.2 */
static void hello_tells_what_was_answered(void **state)
{
    struct member_fixture *f = *state;
    const uint64_t answered = f->last_request;

    member_policy(f); /* and this is not */
    f->start_id++;
    f->epoch++;
    member_alive(f);
    assert_int_equal(member_sent(f, WIRE_HELLO)->u.hello.answered, answered);
}

/* R10.2: its broker's database was restored from an older copy. */
static void one_that_is_refused_as_preempted_leaves_with_the_restart_code(void **state)
{
    struct member_fixture *f = *state;
    struct wire_msg refused;

    member_capture(f, CAUSE_OPERATOR);
    assert_int_equal(outcome(f, 1), OUTCOME_OPEN);
    f->start_id++;
    f->epoch++;
    member_alive(f);
    refused = member_down(f, WIRE_REFUSED);
    refused.u.refused.nonce = member_sent(f, WIRE_HELLO)->u.hello.nonce;
    refused.u.refused.code = MUSTER_PREEMPTED;
    refused.u.refused.text = "it was restored";
    member_frame(f, refused);
    assert_int_equal(member_seen(f)->mode, VIEW_END);
    assert_int_equal(member_seen(f)->end.status, MUSTER_PREEMPTED);
    assert_true(member_seen(f)->leave_restart);
    assert_int_equal(outcome(f, 1), OUTCOME_UNKNOWN); /* nobody waits for it */
}

static void what_the_database_knows_is_not_said_again(void **state)
{
    struct member_fixture *f = *state;

    member_capture(f, CAUSE_OPERATOR);
    start_the_broker_again(f);
    assert_int_equal(member_sent_count(f, WIRE_SAVE_FAILED), 0);
    assert_int_equal(f->m->pending_count, 0);
}

static int greeting(void **state)
{
    static struct member_fixture f;

    member_fixture_open(&f, 1, LAYOUT_REPLICATED);
    *state = &f;
    return 0;
}

/* The answer to its HELLO that lets it into the next launch comes behind an event of that launch,
 * which it took for another's: `started` would be lost. */
static void a_node_that_is_let_in_late_asks_for_all_that_came_since(void **state)
{
    struct member_fixture *f = *state;
    struct wire_msg welcome;

    member_tick_at(f, f->now);
    member_welcome(f, true);
    struct wire_snapshot s = member_snapshot_made(f);
    s.generation_state = GENERATION_JOINING;
    member_snapshot(f, s);
    f->generation = 3;
    welcome = member_down(f, WIRE_WELCOME);
    welcome.u.welcome = (struct wire_welcome){.speaks = WIRE_SPEAKS,
                                              .nonce = f->m->nonce,
                                              .generation = 3,
                                              .world_size = 3,
                                              .events_endpoint = "ipc:///e"};
    member_tell(f, member_event(f, EVENT_STARTED));
    assert_false(member_seen(f)->started);
    member_frame(f, welcome);
    assert_non_null(member_sent(f, WIRE_HELLO));
    assert_int_equal(member_sent(f, WIRE_HELLO)->up.generation, 2); /* so it gets a snapshot */
    assert_int_equal(f->m->generation, 2);
}

#define T(test) cmocka_unit_test_setup_teardown(test, running, member_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_policy_save_that_was_taken_is_asked_for_again_after_a_start),
        T(one_that_was_not_answered_yet_is_only_repeated),
        T(a_manifest_that_nobody_can_give_does_not_keep_the_next_waiting),
        T(while_the_broker_is_away_no_manifest_is_given_up),
        T(hello_tells_whose_events_are_known),
        T(hello_tells_what_was_answered),
        T(one_that_is_refused_as_preempted_leaves_with_the_restart_code),
        T(that_of_a_save_that_failed_too_late_is_still_to_be_heard),
        T(what_the_database_knows_is_not_said_again),
        cmocka_unit_test_setup_teardown(a_node_that_is_let_in_late_asks_for_all_that_came_since,
                                        greeting, member_tear_down),
    };

    return cmocka_run_group_tests_name("member_again", tests, NULL, NULL);
}
