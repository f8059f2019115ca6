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

static int joining(void **state)
{
    static struct member_fixture f;

    member_fixture_open(&f, 0, LAYOUT_REPLICATED);
    member_tick_at(&f, f.now);
    member_welcome(&f, true);
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

/* --- its database was restored: answers were given that it does not know ---------------------- */

static void put_back(struct member_fixture *f, uint64_t last_request)
{
    f->last_request = last_request;
    start_the_broker_again(f);
}

/* R10.4 */
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

/* R10.6 */
static void a_shard_that_was_told_to_a_lost_database_is_a_failed_one(void **state)
{
    struct member_fixture *f = *state;

    member_capture(f, CAUSE_OPERATOR);
    put_back(f, f->last_request - 1);
    assert_int_equal(member_sent_count(f, WIRE_SAVE_FAILED), 1);
    const struct wire_msg *told = member_sent(f, WIRE_SAVE_FAILED);
    assert_int_equal(told->up.request, f->last_request + 1);
    assert_int_equal(told->u.save_failed.round, 1);
    assert_int_equal(told->u.save_failed.step, 5);
    assert_int_equal(told->u.save_failed.code, MUSTER_E_SAVE);
}

/* The older one was waited for until a writer's time was over. */
static void all_that_may_be_open_there_are_given_up_and_the_oldest_first(void **state)
{
    struct member_fixture *f = *state;
    uint64_t given_up[8];
    size_t count = 0;

    for (uint64_t round = 1; round <= ROUNDS_ACTIVE_MAX + 1; round++)
        save(f, round);
    put_back(f, f->last_request - 1);
    for (size_t i = 0; i < f->out.count; i++) {
        const struct member_action *action = &f->out.items[i];

        if (action->kind != MEMBER_SEND || action->message.type != WIRE_SAVE_FAILED)
            continue;
        assert_true(count < 8);
        given_up[count++] = action->message.u.save_failed.round;
    }
    assert_int_equal(count, ROUNDS_ACTIVE_MAX);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(given_up[i], 2 + i);
}

static enum member_outcome_state outcome(const struct member_fixture *f, uint64_t round)
{
    for (size_t i = 0; i < MEMBER_OUTCOMES_MAX; i++)
        if (f->m->view.outcomes[i].round == round)
            return f->m->view.outcomes[i].state;
    return OUTCOME_NONE;
}

/* Others still write it, and a later one is named by HELLO: a snapshot tells of that
 * alone (R10.6). */
static void the_outcome_of_a_round_that_the_database_has_forgotten_is_unknown(void **state)
{
    struct member_fixture *f = *state;

    for (int known = 0; known < 2; known++) {
        member_capture(f, CAUSE_OPERATOR);
        put_back(f, f->last_request - 1);
        const struct wire_msg *told = member_sent(f, WIRE_SAVE_FAILED);
        uint64_t request = told->up.request;
        assert_int_equal(outcome(f, 1), OUTCOME_OPEN);
        member_ack(f, request, known > 0 ? MUSTER_OK : MUSTER_E_ABORTED);
        assert_int_equal(outcome(f, 1), known > 0 ? OUTCOME_OPEN : OUTCOME_UNKNOWN);
        assert_true(outcome_awaited(f->m) == (known > 0));
        member_fixture_close(f);
        member_fixture_running(f, 1, LAYOUT_SHARDED);
    }
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

/* A full disk was told as a failure that another round may mend. */
static void what_had_failed_fails_for_the_same_reason(void **state)
{
    struct member_fixture *f = *state;

    member_stand(f, 5);
    member_decision(f, 1, CAUSE_OPERATOR, 5, 2);
    member_arrive(f);
    member_feed(f, (struct member_input){.kind = MEMBER_SAVE_FAILED,
                                         .round = 1,
                                         .code = MUSTER_E_STORAGE,
                                         .text = "no room"});
    member_ack_all(f);
    put_back(f, f->last_request - 1);
    assert_int_equal(member_sent_count(f, WIRE_SAVE_FAILED), 1);
    assert_int_equal(member_sent(f, WIRE_SAVE_FAILED)->u.save_failed.code, MUSTER_E_STORAGE);
}

static void what_the_database_knows_is_not_said_again(void **state)
{
    struct member_fixture *f = *state;

    member_capture(f, CAUSE_OPERATOR);
    start_the_broker_again(f);
    assert_int_equal(member_sent_count(f, WIRE_SAVE_FAILED), 0);
    assert_int_equal(f->m->pending_count, 0);
}

/* R10.6 */
static void so_is_what_was_passed(void **state)
{
    struct member_fixture *f = *state;

    member_freeze(f, 1, CAUSE_OPERATOR, false);
    member_ack_all(f);
    member_stand(f, 9); /* it thawed, and went on */
    member_decision(f, 1, CAUSE_OPERATOR, 5, 2);
    assert_non_null(member_sent(f, WIRE_PAST));
    member_ack_all(f);
    put_back(f, f->last_request - 1);
    assert_int_equal(member_sent_count(f, WIRE_PAST), 1);
    assert_int_equal(member_sent(f, WIRE_PAST)->u.past.round, 1);
}

/* R10.6 */
static void and_where_it_stands(void **state)
{
    struct member_fixture *f = *state;

    member_stand(f, 5);
    member_freeze(f, 1, CAUSE_OPERATOR, false);
    member_ack_all(f);
    member_decision(f, 1, CAUSE_OPERATOR, 5, 2);
    member_arrive(f);
    member_ack_all(f);
    put_back(f, f->last_request - 1);
    assert_int_equal(member_sent_count(f, WIRE_AT_STEP), 1);
    assert_int_equal(member_sent(f, WIRE_AT_STEP)->u.at_step.step, 5);
    assert_false(member_sent(f, WIRE_AT_STEP)->u.at_step.captured);
}

/* R10.6 */
static void a_restore_is_told_again_while_the_launch_is_joining(void **state)
{
    struct member_fixture *f = *state;
    struct wire_snapshot s = member_snapshot_made(f);

    s.generation_state = GENERATION_JOINING;
    s.resume_checkpoint = 4;
    s.resume_step = 40;
    member_snapshot(f, s);
    member_feed(f, (struct member_input){.kind = MEMBER_RESTORED, .checkpoint = 4, .step = 40});
    member_ack_all(f);
    put_back(f, 0);
    assert_int_equal(member_sent_count(f, WIRE_RESTORED), 1);
    assert_int_equal(member_sent(f, WIRE_RESTORED)->u.restored.checkpoint, 4);
    assert_int_equal(member_sent(f, WIRE_RESTORED)->u.restored.step, 40);
}

#define J(test) cmocka_unit_test_setup_teardown(test, joining, member_tear_down)
#define T(test) cmocka_unit_test_setup_teardown(test, running, member_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_policy_save_that_was_taken_is_asked_for_again_after_a_start),
        T(one_that_was_not_answered_yet_is_only_repeated),
        T(a_manifest_that_nobody_can_give_does_not_keep_the_next_waiting),
        T(while_the_broker_is_away_no_manifest_is_given_up),
        T(hello_tells_whose_events_are_known),
        T(a_shard_that_was_told_to_a_lost_database_is_a_failed_one),
        T(all_that_may_be_open_there_are_given_up_and_the_oldest_first),
        T(the_outcome_of_a_round_that_the_database_has_forgotten_is_unknown),
        T(that_of_a_save_that_failed_too_late_is_still_to_be_heard),
        T(what_had_failed_fails_for_the_same_reason),
        T(what_the_database_knows_is_not_said_again),
        T(so_is_what_was_passed),
        T(and_where_it_stands),
        J(a_restore_is_told_again_while_the_launch_is_joining),
    };

    return cmocka_run_group_tests_name("member_again", tests, NULL, NULL);
}
