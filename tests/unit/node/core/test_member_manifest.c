/* The node's core: the manifests that it writes. */
#include "tests/support/member_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

/* --- the manifest ----------------------------------------------------------------------------- */

static void chunk(struct member_fixture *f, uint64_t offset, uint64_t size, uint64_t total)
{
    static uint8_t bytes[MANIFEST_CHUNK_MAX];
    struct wire_msg message = member_down(f, WIRE_MANIFEST_CHUNK);

    for (uint64_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(offset + i);
    message.u.manifest_chunk = (struct wire_manifest_chunk){
        .checkpoint = 1, .round_generation = 2, .step = 5, .offset = offset, .total = total};
    message.u.manifest_chunk.bytes.data = bytes;
    message.u.manifest_chunk.bytes.size = size;
    member_frame(f, message);
}

static void the_manifest_is_fetched_in_chunks_each_asked_for_until_it_comes(void **state)
{
    struct member_fixture *f = *state;

    member_capture(f, CAUSE_TERMINATION);
    member_commit(f, 1, CAUSE_TERMINATION, 5, true);
    assert_member(f, "MANIFEST_GET c1+0; close; view wait");
    member_pass(f, 2 * RESEND_MIN_MS, true);
    assert_int_equal(member_sent_count(f, WIRE_MANIFEST_GET), 2);
    chunk(f, 0, 40000, 70000);
    assert_member(f, "MANIFEST_GET c1+40000");
    chunk(f, 0, 40000, 70000); /* a repeat */
    assert_member(f, "");
    chunk(f, 100, 100, 70000); /* from the middle */
    assert_member(f, "");
    chunk(f, 40000, 40000, 70000); /* more than there is */
    assert_member(f, "");
    chunk(f, 40000, 30000, 80000); /* another total */
    assert_member(f, "");
    chunk(f, 40000, 30000, 70000);
    assert_member(f, "manifest r1 S5 70000 bytes");
    const struct member_action *write = member_did(f, MEMBER_WRITE_MANIFEST);
    assert_int_equal(write->generation, 2);
    for (size_t i = 0; i < write->bytes_count; i++)
        assert_int_equal(write->bytes[i], (uint8_t)i);
    chunk(f, 70000, 0, 70000);
    assert_member(f, "");
    member_pass(f, 3000, true); /* it writes: nobody hurries it */
    assert_int_equal(member_sent_count(f, WIRE_MANIFEST_GET), 0);
    assert_int_equal(member_seen(f)->mode, VIEW_WAIT);
    member_feed(f, (struct member_input){
                       .kind = MEMBER_MANIFEST_WRITTEN, .checkpoint = 1, .text = "/ckpt/step-5"});
    assert_string_equal(member_sent(f, WIRE_MANIFEST_DONE)->u.manifest_done.path, "/ckpt/step-5");
    member_pass(f, MANIFEST_WAIT_MS, true); /* its event is lost: it leaves anyway */
    assert_int_equal(member_seen(f)->mode, VIEW_END);
}

static void a_manifest_that_does_not_come_holds_nobody_longer_than_ten_seconds(void **state)
{
    struct member_fixture *f = *state;

    member_capture(f, CAUSE_TERMINATION);
    member_commit(f, 1, CAUSE_TERMINATION, 5, true);
    member_close(f, LEAVE_PREEMPTED);
    member_pass(f, ENDING_MS - 1, true);
    assert_int_equal(member_seen(f)->mode, VIEW_WAIT);
    member_pass(f, 1, true);
    assert_int_equal(member_seen(f)->mode, VIEW_END);
    assert_non_null(member_sent(f, WIRE_LEAVE));
}

static void a_second_manifest_waits_for_the_first(void **state)
{
    struct member_fixture *f = *state;

    member_capture(f, CAUSE_OPERATOR);
    member_commit(f, 1, CAUSE_OPERATOR, 5, true);
    member_commit(f, 2, CAUSE_OPERATOR, 6, true);
    assert_int_equal(member_sent_count(f, WIRE_MANIFEST_GET), 0);
    chunk(f, 0, 100, 100);
    assert_int_equal(member_did(f, MEMBER_WRITE_MANIFEST)->round, 1);
    member_feed(f, (struct member_input){
                       .kind = MEMBER_MANIFEST_WRITTEN, .checkpoint = 1, .text = "/ckpt/step-5"});
    assert_int_equal(member_sent(f, WIRE_MANIFEST_GET)->u.manifest_get.checkpoint, 2);
}

static void close_with_two_waiting(struct member_fixture *f)
{
    member_capture(f, CAUSE_OPERATOR);
    member_commit(f, 1, CAUSE_OPERATOR, 5, true);
    member_commit(f, 2, CAUSE_OPERATOR, 6, true);
    member_close(f, LEAVE_FINISHED);
}

/* R8.5 */
static void a_silent_broker_is_waited_for_once_however_many_manifests_wait(void **state)
{
    struct member_fixture *f = *state;

    close_with_two_waiting(f);
    member_pass(f, LOST_MS - 1100, false); /* its last answer may be a heartbeat old */
    assert_false(member_seen(f)->left);
    member_pass(f, 1200, false);
    assert_true(member_seen(f)->left);
}

/* The next launch repairs it; a file system that hangs must not hold the launch until then (R8.5).
 */
static void who_closes_waits_ten_seconds_for_a_manifest_that_hangs_on_its_disk(void **state)
{
    struct member_fixture *f = *state;

    member_capture(f, CAUSE_OPERATOR);
    member_commit(f, 1, CAUSE_OPERATOR, 5, true);
    chunk(f, 0, 100, 100);
    assert_non_null(member_did(f, MEMBER_WRITE_MANIFEST));
    member_close(f, LEAVE_FINISHED);
    member_pass(f, ENDING_MS - 1, true);
    assert_null(member_sent(f, WIRE_LEAVE));
    member_pass(f, 1, true);
    assert_non_null(member_sent(f, WIRE_LEAVE));
}

/* Of thousands of files, over a slow network: each part that comes counts (R8.5). */
static void who_closes_waits_for_a_manifest_as_long_as_parts_of_it_come(void **state)
{
    struct member_fixture *f = *state;

    member_capture(f, CAUSE_OPERATOR);
    member_commit(f, 1, CAUSE_OPERATOR, 5, true);
    member_close(f, LEAVE_FINISHED);
    for (uint64_t part = 0; part < 4; part++) {
        member_pass(f, ENDING_MS / 2, true);
        assert_int_equal(f->m->leave_request, 0);
        chunk(f, part * 1000, 1000, 5000);
    }
    member_pass(f, ENDING_MS - 100, true);
    assert_int_equal(f->m->leave_request, 0);
    member_pass(f, 200, true); /* the last one does not come */
    assert_true(f->m->leave_request > 0);
}

/* Its broker was away, came back when it was about to leave, and committed before its snapshot was
 * made (R5.12). */
static void a_commit_that_a_snapshot_tells_of_is_written_down_by_who_saved(void **state)
{
    struct member_fixture *f = *state;
    struct wire_snapshot s = member_snapshot_made(f);

    for (int named = 0; named < 2; named++) {
        member_capture(f, CAUSE_OPERATOR);
        member_ack(f, 0, MUSTER_E_HELLO);
        member_close(f, LEAVE_FINISHED);
        member_welcome(f, true);
        s.seq = f->seq = 30;
        s.newest_checkpoint = 1;
        s.newest_step = 5;
        s.named_round = named == 1 ? 1 : 0;
        s.named_state = named == 1 ? ROUND_COMMITTED : ROUND_NONE;
        s.named_cause = named == 1 ? CAUSE_OPERATOR : CAUSE_NONE;
        s.named_step = named == 1 ? 5 : -1;
        member_snapshot(f, s);
        assert_int_equal(member_sent(f, WIRE_MANIFEST_GET)->u.manifest_get.checkpoint, 1);
        chunk(f, 0, 1000, 1000);
        assert_non_null(member_did(f, MEMBER_WRITE_MANIFEST));
        assert_int_equal(f->m->leave_request, 0);
        member_fixture_close(f);
        member_fixture_running(f, 1, LAYOUT_REPLICATED);
    }
}

/* R8.5: and to a broker that comes back without it, it is said again. */
static void a_leave_without_an_answer_is_said_to_the_next_start_of_the_broker(void **state)
{
    struct member_fixture *f = *state;

    member_close(f, LEAVE_FINISHED);
    member_pass(f, LOST_MS - HEARTBEAT_MS, false);
    f->start_id++;
    f->epoch++;
    member_ack(f, 0, MUSTER_E_HELLO);
    member_welcome(f, false);
    assert_int_equal(member_sent_count(f, WIRE_LEAVE), 1);
    assert_false(member_seen(f)->left);
    member_ack_all(f);
    assert_true(member_seen(f)->left);
}

/* ... but not if that had taken it. */
static void a_leave_that_was_taken_is_not_said_again(void **state)
{
    struct member_fixture *f = *state;

    member_close(f, LEAVE_FINISHED);
    f->last_request = f->m->leave_request;
    member_ack(f, 0, MUSTER_E_HELLO);
    member_welcome(f, false);
    assert_int_equal(member_sent_count(f, WIRE_LEAVE), 0);
    assert_true(member_seen(f)->left);
}

/* Four rounds of steps that it does not come to came and went, and its save was the oldest of five.
 */
static void rounds_that_come_to_nothing_hide_no_save(void **state)
{
    struct member_fixture *f = *state;

    member_capture(f, CAUSE_OPERATOR);
    for (uint64_t round = 2; round < 2 + MEMBER_OUTCOMES_MAX; round++)
        outcome_captured(f->m, round, 10 + (int64_t)round);
    assert_true(outcome_awaited(f->m));
    member_commit(f, 1, CAUSE_OPERATOR, 5, true);
    assert_int_equal(member_sent(f, WIRE_MANIFEST_GET)->u.manifest_get.checkpoint, 1);
}

/* The broker dies of this very LEAVE, or is begun again each second by something else (R8.5). */
static void a_leave_is_not_said_again_for_ever(void **state)
{
    struct member_fixture *f = *state;
    int64_t from = f->now;

    member_close(f, LEAVE_FINISHED);
    while (!member_seen(f)->left && f->now - from < 60000) {
        member_pass(f, HEARTBEAT_MS - 300, false);
        f->start_id++;
        f->epoch++;
        member_ack(f, 0, MUSTER_E_HELLO);
        member_welcome(f, false);
    }
    assert_true(member_seen(f)->left);
    assert_in_range(f->now - from, ENDING_MS, ENDING_MS + HEARTBEAT_MS);
}

/* ... and a broker whose disk is full for a while says so; it would have taken this process for
 * lost (R8.5). */
static void a_leave_waits_for_a_broker_whose_disk_is_full(void **state)
{
    struct member_fixture *f = *state;
    int64_t from = f->now;

    member_close(f, LEAVE_FINISHED);
    while (!member_seen(f)->left && f->now - from < 60000) {
        member_pass(f, HEARTBEAT_MS / 2, false);
        if (f->now - from < ENDING_MS / 2)
            assert_false(member_seen(f)->left);
        member_ack(f, f->m->leave_request, MUSTER_E_STORAGE);
    }
    assert_in_range(f->now - from, ENDING_MS, ENDING_MS + HEARTBEAT_MS);
}

/* A notice that comes meanwhile says when this process is killed: it is gone before (R8.5). */
static void a_deadline_that_comes_late_ends_the_wait_for_a_full_disk(void **state)
{
    struct member_fixture *f = *state;

    member_close(f, LEAVE_FINISHED);
    member_ack(f, f->m->leave_request, MUSTER_E_STORAGE);
    member_notice(f, "n", LEAST_LEAD_MS);
    member_pass(f, LEAST_LEAD_MS - MARGIN_MS - 100, true);
    assert_false(member_seen(f)->left);
    member_pass(f, 100, true);
    assert_true(member_seen(f)->left);
}

/* Its own number is answered, when it is on disk: the broker that waits for room there answers a
 * heartbeat at once. */
static void a_heartbeats_answer_is_none_to_a_leave_that_waits_for_its_own(void **state)
{
    struct member_fixture *f = *state;

    member_close(f, LEAVE_FINISHED);
    assert_true(f->m->leave_request > 0);
    member_ack(f, f->m->leave_request, MUSTER_E_STORAGE);
    member_ack(f, 0, MUSTER_OK);
    assert_false(member_seen(f)->left);
    member_ack_all(f);
    assert_true(member_seen(f)->left);
}

/* In a sharded one that is the lowest rank's; and nothing is written where nothing was new. */
static void a_snapshot_of_what_others_write_down_asks_for_no_manifest(void **state)
{
    struct member_fixture *f = *state;
    struct wire_snapshot s;

    member_capture(f, CAUSE_OPERATOR);
    s = member_snapshot_made(f);
    s.seq = f->seq = 30;
    s.named_round = 1;
    s.named_state = ROUND_UNCHANGED;
    s.named_cause = CAUSE_OPERATOR;
    s.named_step = s.newest_step = 5;
    member_snapshot(f, s);
    assert_null(member_sent(f, WIRE_MANIFEST_GET));
    member_fixture_close(f);
    member_fixture_running(f, 1, LAYOUT_SHARDED);
    member_capture(f, CAUSE_OPERATOR);
    s.newest_checkpoint = 1;
    s.named_state = ROUND_COMMITTED;
    s.seq = f->seq = 30;
    member_snapshot(f, s);
    assert_null(member_sent(f, WIRE_MANIFEST_GET));
}

/* ... and one without bytes does not. */
static void a_part_of_no_bytes_makes_nobody_wait(void **state)
{
    struct member_fixture *f = *state;

    member_capture(f, CAUSE_OPERATOR);
    member_commit(f, 1, CAUSE_OPERATOR, 5, true);
    member_close(f, LEAVE_FINISHED);
    for (int i = 0; i < 3; i++) {
        member_pass(f, ENDING_MS / 2 - 100, true);
        chunk(f, i == 0 ? 0 : 1000, i == 0 ? 1000 : 0, 5000);
    }
    assert_int_equal(f->m->leave_request, 0);
    member_pass(f, ENDING_MS / 2, true);
    assert_true(f->m->leave_request > 0);
}

static void a_deadline_does_not_wait_for_a_manifest(void **state)
{
    struct member_fixture *f = *state;

    member_notice(f, "n", 5000);
    close_with_two_waiting(f);
    member_ack_all(f);
    member_pass(f, 5000 - MARGIN_MS - 100, true);
    assert_int_equal(f->m->leave_request, 0);
    member_pass(f, 200, true);
    assert_true(f->m->leave_request > 0);
}

static void a_manifest_that_cannot_be_written_is_left_to_the_next_launch(void **state)
{
    struct member_fixture *f = *state;

    member_capture(f, CAUSE_OPERATOR);
    member_commit(f, 1, CAUSE_OPERATOR, 5, true);
    assert_int_equal(member_seen(f)->mode, VIEW_OPEN); /* beside the training */
    chunk(f, 0, 100, 100);
    member_feed(f, (struct member_input){
                       .kind = MEMBER_MANIFEST_FAILED, .checkpoint = 1, .text = "disk full"});
    assert_string_equal(member_sent(f, WIRE_MANIFEST_DONE)->u.manifest_done.path, "");
    assert_member(f, "log; MANIFEST_DONE #5");
    member_pass(f, 5000, true);
    assert_int_equal(member_sent_count(f, WIRE_MANIFEST_GET), 0);
}

#define T(test) cmocka_unit_test_setup_teardown(test, member_set_up, member_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(the_manifest_is_fetched_in_chunks_each_asked_for_until_it_comes),
        T(a_manifest_that_does_not_come_holds_nobody_longer_than_ten_seconds),
        T(a_silent_broker_is_waited_for_once_however_many_manifests_wait),
        T(who_closes_waits_ten_seconds_for_a_manifest_that_hangs_on_its_disk),
        T(who_closes_waits_for_a_manifest_as_long_as_parts_of_it_come),
        T(a_commit_that_a_snapshot_tells_of_is_written_down_by_who_saved),
        T(a_leave_without_an_answer_is_said_to_the_next_start_of_the_broker),
        T(a_leave_that_was_taken_is_not_said_again),
        T(rounds_that_come_to_nothing_hide_no_save),
        T(a_leave_is_not_said_again_for_ever),
        T(a_heartbeats_answer_is_none_to_a_leave_that_waits_for_its_own),
        T(a_leave_waits_for_a_broker_whose_disk_is_full),
        T(a_snapshot_of_what_others_write_down_asks_for_no_manifest),
        T(a_part_of_no_bytes_makes_nobody_wait),
        T(a_deadline_does_not_wait_for_a_manifest),
        T(a_deadline_that_comes_late_ends_the_wait_for_a_full_disk),
        T(a_second_manifest_waits_for_the_first),
        T(a_manifest_that_cannot_be_written_is_left_to_the_next_launch),
    };

    return cmocka_run_group_tests_name("member_manifest", tests, NULL, NULL);
}
