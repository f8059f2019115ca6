/* The node's core: what it restores, and what is repaired for that. */
#include "tests/support/member_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static int joining(void **state)
{
    static struct member_fixture f;

    member_fixture_open(&f, 0, LAYOUT_REPLICATED);
    member_tick_at(&f, f.now);
    member_welcome(&f, true);
    *state = &f;
    return 0;
}

/* --- restoring -------------------------------------------------------------------------------- */

static void joined_to(struct member_fixture *f, bool repair)
{
    struct wire_snapshot s = member_snapshot_made(f);

    s.generation_state = GENERATION_JOINING;
    s.resume_ready = !repair;
    s.resume_repair = repair;
    s.resume_checkpoint = 4;
    s.resume_step = 40;
    s.resume_path = "/ckpt/step-40";
    member_snapshot(f, s);
}

static void an_older_choice_is_restored_instead(void **state)
{
    struct member_fixture *f = *state;
    struct wire_event event = member_event(f, EVENT_RESTORE_FAILED);

    joined_to(f, false);
    member_feed(f, (struct member_input){
                       .kind = MEMBER_RESTORE_FAILED, .checkpoint = 4, .step = 40, .text = "torn"});
    assert_member(f, "RESTORE_FAILED #1");
    event.flags = EVENT_FLAG_RETRY;
    event.checkpoint = 4;
    member_tell(f, event);
    event = member_event(f, EVENT_RESUME);
    event.checkpoint = 3;
    event.step = 30;
    event.path = "/ckpt/step-30";
    member_tell(f, event);
    assert_int_equal(member_seen(f)->resume_checkpoint, 3);
    assert_string_equal(member_seen(f)->resume_path, "/ckpt/step-30");
    assert_int_equal(member_seen(f)->mode, VIEW_WAIT);
}

static void evaluator_fails(struct member_fixture *f)
{
    f->m->options.role = ROLE_EVALUATOR;
    joined_to(f, false);
    member_feed(f, (struct member_input){
                       .kind = MEMBER_RESTORE_FAILED, .checkpoint = 4, .step = 40, .text = "torn"});
    assert_member(f, "RESTORE_FAILED #1");
}

/* A job that is over has no events any more: the answer is all that an evaluator hears. */
static void a_observer_that_cannot_restore_ends_with_the_answer(void **state)
{
    struct member_fixture *f = *state;
    struct wire_msg ack = member_down(f, WIRE_ACK);

    evaluator_fails(f);
    ack.u.ack = (struct wire_ack){.request = 1, .code = MUSTER_E_RESTORE, .text = "torn"};
    member_frame(f, ack);
    assert_int_equal(member_seen(f)->mode, VIEW_END);
    assert_int_equal(member_seen(f)->end.status, MUSTER_E_RESTORE);
}

static void and_also_if_the_answer_was_lost_with_the_broker(void **state)
{
    struct member_fixture *f = *state;

    evaluator_fails(f);
    f->start_id++;
    f->epoch++;
    f->last_request = 1; /* it took it */
    member_ack(f, 0, MUSTER_E_HELLO);
    member_welcome(f, false);
    assert_int_equal(member_seen(f)->mode, VIEW_END);
    assert_int_equal(member_seen(f)->end.status, MUSTER_E_RESTORE);
}

static void a_choice_that_cannot_be_repaired_is_a_failed_restore(void **state)
{
    struct member_fixture *f = *state;

    for (int fallback = 0; fallback < 2; fallback++) {
        if (fallback == 1)
            joined_to(f, false); /* a newer choice was announced before, and given up */
        joined_to(f, true);
        struct wire_msg message = member_down(f, WIRE_MANIFEST_CHUNK);
        message.u.manifest_chunk = (struct wire_manifest_chunk){
            .checkpoint = 4, .round_generation = 1, .step = 40, .total = 2};
        message.u.manifest_chunk.bytes.data = (const uint8_t *)"{}";
        message.u.manifest_chunk.bytes.size = 2;
        member_frame(f, message);
        assert_int_equal(member_did(f, MEMBER_WRITE_MANIFEST)->round, 4);
        member_feed(f, (struct member_input){.kind = MEMBER_MANIFEST_FAILED,
                                             .checkpoint = 4,
                                             .code = MUSTER_E_NOT_FOUND,
                                             .text = "gone"});
        assert_non_null(member_sent(f, WIRE_RESTORE_FAILED));
        assert_non_null(
            strstr(member_sent(f, WIRE_RESTORE_FAILED)->u.restore_failed.text,
                   "gone; if the broker's database was restored from an older copy, run "
                   "`muster import /"));
        assert_int_equal(member_sent(f, WIRE_RESTORE_FAILED)->u.restore_failed.checkpoint, 4);
        member_fixture_close(f);
        joining((void **)&f);
    }
}

/* Policy saves may follow each other faster than a slow disk takes manifests. */
static void no_manifest_is_lost_when_many_wait_for_a_slow_disk(void **state)
{
    struct member_fixture *f = *state;
    const uint64_t count = 12;

    for (uint64_t round = 1; round <= count; round++) {
        member_stand(f, (int64_t)round);
        member_decision(f, round, CAUSE_POLICY, (int64_t)round, 2);
        member_arrive(f);
        member_saved(f, round, 1);
        member_commit(f, round, CAUSE_POLICY, (int64_t)round, true);
        member_ack_all(f);
    }
    for (uint64_t round = 1; round <= count; round++) {
        struct wire_msg message = member_down(f, WIRE_MANIFEST_CHUNK);

        message.u.manifest_chunk = (struct wire_manifest_chunk){
            .checkpoint = round, .round_generation = 1, .step = (int64_t)round, .total = 2};
        message.u.manifest_chunk.bytes.data = (const uint8_t *)"{}";
        message.u.manifest_chunk.bytes.size = 2;
        member_frame(f, message);
        assert_non_null(member_did(f, MEMBER_WRITE_MANIFEST));
        assert_int_equal(member_did(f, MEMBER_WRITE_MANIFEST)->round, round);
        member_feed(f, (struct member_input){
                           .kind = MEMBER_MANIFEST_WRITTEN, .checkpoint = round, .text = "/c"});
        member_ack_all(f);
    }
}

/* After another rank's error a round may still be served, some long steps away. */
static void steps_that_return_do_not_end_the_process(void **state)
{
    struct member_fixture *f = *state;

    member_in_step(f, 5);
    member_freeze(f, 1, CAUSE_TERMINATION, false);
    member_decision(f, 1, CAUSE_TERMINATION, 8, 1);
    member_peer_error(f, 2, true);
    for (int64_t step = 5; step <= 8; step++) {
        member_in_step(f, step);
        member_pass(f, f->m->options.abort_timeout_ms / 2, true);
        assert_null(member_did(f, MEMBER_EXIT_PROCESS));
    }
}

#define T(test, setup) cmocka_unit_test_setup_teardown(test, setup, member_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(an_older_choice_is_restored_instead, joining),
        T(a_observer_that_cannot_restore_ends_with_the_answer, joining),
        T(and_also_if_the_answer_was_lost_with_the_broker, joining),
        T(a_choice_that_cannot_be_repaired_is_a_failed_restore, joining),
        T(no_manifest_is_lost_when_many_wait_for_a_slow_disk, member_set_up),
        T(steps_that_return_do_not_end_the_process, member_set_up),
    };

    return cmocka_run_group_tests_name("member_restore", tests, NULL, NULL);
}
