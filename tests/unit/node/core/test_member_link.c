/* The node's core: HELLO, requests, gaps, snapshots, heartbeats, notices. PROTOCOL.md R1, R3. */
#include "tests/support/member_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static int fresh(void **state)
{
    static struct member_fixture f;

    member_fixture_open(&f, 1, LAYOUT_REPLICATED);
    *state = &f;
    return 0;
}

/* --- joining ---------------------------------------------------------------------------------- */

static void hello_is_repeated_at_doubling_times_until_it_is_answered(void **state)
{
    struct member_fixture *f = *state;
    int64_t waits[] = {200, 400, 800, 1000, 1000};

    member_tick_at(f, f->now);
    assert_member(f, "HELLO");
    for (size_t i = 0; i < sizeof waits / sizeof waits[0]; i++) {
        assert_int_equal(member_wakeup_boot_ms(f->m), f->now + waits[i]);
        member_tick_at(f, f->now + waits[i] - 1);
        assert_member(f, "");
        member_tick_at(f, f->now + 1);
        assert_member(f, "HELLO");
    }
}

static void joining_subscribes_asks_for_the_echo_and_waits_for_the_snapshot(void **state)
{
    struct member_fixture *f = *state;

    member_tick_at(f, f->now);
    const struct wire_msg *hello = member_sent(f, WIRE_HELLO);
    assert_int_equal(hello->up.generation, 0);
    assert_int_equal(hello->up.incarnation, MEMBER_INCARNATION);
    assert_int_equal(hello->u.hello.world_size, 3);
    member_welcome(f, true);
    assert_member(f, "subscribe ipc:///e; PROBE_GET");
    assert_false(member_seen(f)->joined);
    struct wire_snapshot s = member_snapshot_made(f);
    s.generation_state = GENERATION_JOINING;
    s.resume_checkpoint = 4;
    s.resume_step = 40;
    s.resume_path = "/ckpt/step-40";
    member_snapshot(f, s);
    assert_member(f, "HEARTBEAT; view wait");
    assert_true(member_seen(f)->joined);
    assert_true(member_seen(f)->resume_known);
    assert_int_equal(member_seen(f)->resume_checkpoint, 4);
    assert_int_equal(member_seen(f)->resume_step, 40);
    assert_string_equal(member_seen(f)->resume_path, "/ckpt/step-40");
    assert_int_equal(member_seen(f)->generation, 2);
    member_stand(f, 40);
    member_feed(f, (struct member_input){.kind = MEMBER_RESTORED, .checkpoint = 4, .step = 40});
    assert_member(f, "RESTORED #1");
    member_tell(f, member_event(f, EVENT_STARTED));
    assert_member(f, "view open");
}

static void a_welcome_whose_snapshot_does_not_come_is_asked_for_again(void **state)
{
    struct member_fixture *f = *state;

    member_tick_at(f, f->now);
    member_welcome(f, true);
    uint64_t nonce = f->m->nonce;
    member_tick_at(f, f->now + HEARTBEAT_MS - 1);
    assert_member(f, "");
    member_tick_at(f, f->now + 1);
    member_tick_at(f, f->now);
    assert_true(f->m->nonce != nonce);
    member_welcome(f, false); /* this time the journal tells all */
    assert_true(member_seen(f)->joined);
}

/* Else the broker is reached with the next heartbeat only, up to a second later. */
static void a_new_connection_is_greeted_at_once(void **state)
{
    struct member_fixture *f = *state;
    uint64_t nonce;

    member_feed(f, (struct member_input){.kind = MEMBER_CONNECTED});
    assert_member(f, "HELLO");
    nonce = member_sent(f, WIRE_HELLO)->u.hello.nonce;
    member_feed(f,
                (struct member_input){.kind = MEMBER_CONNECTED}); /* while it waits for an answer */
    assert_member(f, "HELLO");
    assert_int_not_equal(member_sent(f, WIRE_HELLO)->u.hello.nonce, nonce);
    member_welcome(f, false);
    assert_int_equal(member_seen(f)->mode, VIEW_OPEN);
}

static void an_answer_to_another_hello_is_not_taken(void **state)
{
    struct member_fixture *f = *state;

    member_tick_at(f, f->now);
    struct wire_msg welcome = member_down(f, WIRE_WELCOME);
    welcome.u.welcome.nonce = f->m->nonce + 1;
    member_frame(f, welcome);
    assert_member(f, "");
    struct wire_msg refused = member_down(f, WIRE_REFUSED);
    refused.u.refused =
        (struct wire_refused){.nonce = f->m->nonce + 1, .code = MUSTER_E_RANK, .text = ""};
    member_frame(f, refused);
    assert_int_equal(member_seen(f)->refused.status, MUSTER_OK);
}

static void a_refusal_is_final_or_asked_again_as_it_says(void **state)
{
    struct member_fixture *f = *state;

    member_tick_at(f, f->now);
    struct wire_msg refused = member_down(f, WIRE_REFUSED);
    refused.u.refused = (struct wire_refused){.nonce = f->m->nonce,
                                              .code = MUSTER_E_RANK_TAKEN,
                                              .text = "held by process 7",
                                              .retry = true};
    member_frame(f, refused);
    assert_true(member_seen(f)->refused_retry);
    assert_int_equal(member_seen(f)->refused.status, MUSTER_E_RANK_TAKEN);
    member_tick_at(f, f->now + 200);
    assert_member(f, "HELLO");
    refused.u.refused.code = MUSTER_E_WORLD_SIZE;
    refused.u.refused.retry = false;
    member_frame(f, refused);
    assert_false(member_seen(f)->refused_retry);
    assert_int_equal(member_wakeup_boot_ms(f->m), NEVER);
    member_tick_at(f, f->now + 60000);
    assert_member(f, "");
}

/* Told to end while it joins: the broker may have let it in already (R3.13). */
static void who_closes_while_it_is_let_in_says_leave(void **state)
{
    struct member_fixture *f = *state;

    member_tick_at(f, f->now);
    assert_member(f, "HELLO");
    member_close(f, LEAVE_PREEMPTED);
    assert_false(member_seen(f)->left);
    member_welcome(f, true);
    struct wire_snapshot s = member_snapshot_made(f);
    s.generation_state = GENERATION_JOINING;
    member_snapshot(f, s);
    assert_int_equal(member_sent(f, WIRE_LEAVE)->u.leave.why, LEAVE_PREEMPTED);
    assert_false(member_seen(f)->left);
    member_ack_all(f);
    assert_true(member_seen(f)->left);
}

/* R3.13 */
static void who_closes_before_it_is_let_in_asks_no_further_and_waits_a_second_at_most(void **state)
{
    struct member_fixture *f = *state;

    member_tick_at(f, f->now);
    member_close(f, LEAVE_PREEMPTED);
    member_pass(f, HEARTBEAT_MS - 1, false);
    assert_int_equal(member_sent_count(f, WIRE_HELLO), 0);
    assert_false(member_seen(f)->left);
    member_pass(f, 1, false);
    assert_true(member_seen(f)->left);
}

static void who_closes_after_a_refusal_leaves_at_once(void **state)
{
    struct member_fixture *f = *state;
    struct wire_msg refused = member_down(f, WIRE_REFUSED);

    member_tick_at(f, f->now);
    refused.u.refused = (struct wire_refused){.nonce = f->m->nonce,
                                              .code = MUSTER_E_RANK_TAKEN,
                                              .text = "held by process 7",
                                              .retry = true};
    member_frame(f, refused);
    member_close(f, LEAVE_PREEMPTED);
    assert_true(member_seen(f)->left);
    assert_null(member_sent(f, WIRE_HELLO));
}

static void without_the_brokers_verdict_joining_ends_by_itself_a_little_later(void **state)
{
    struct member_fixture *f = *state;

    member_tick_at(f, f->now);
    member_welcome(f, true);
    struct wire_snapshot s = member_snapshot_made(f);
    s.generation_state = GENERATION_JOINING;
    member_snapshot(f, s);
    int64_t joined_at = f->now;
    member_pass(f, 60000 + LOST_MS - 1, true);
    assert_int_equal(member_seen(f)->mode, VIEW_WAIT);
    member_pass(f, 1, true);
    assert_int_equal(f->now, joined_at + 60000 + LOST_MS);
    assert_int_equal(member_seen(f)->end.status, MUSTER_E_JOIN);
}

/* The broker's option may be longer than any that this node knows of: as long as it speaks, its
 * verdict counts. */
static void who_asked_for_no_join_timeout_waits_for_the_brokers(void **state)
{
    struct member_fixture *f = *state;

    f->m->options.join_timeout_default = true;
    member_tick_at(f, f->now);
    member_welcome(f, true);
    struct wire_snapshot s = member_snapshot_made(f);
    s.generation_state = GENERATION_JOINING;
    member_snapshot(f, s);
    member_pass(f, 5 * 60000, true);
    assert_int_equal(member_seen(f)->mode, VIEW_WAIT);
    member_pass(f, 60000 + LOST_MS + HEARTBEAT_MS, false); /* it is gone */
    assert_int_equal(member_seen(f)->end.status, MUSTER_E_JOIN);
}

/* --- requests --------------------------------------------------------------------------------- */

/* R1.1 */
static void a_request_is_resent_at_doubling_times_until_it_is_answered(void **state)
{
    struct member_fixture *f = *state;
    int64_t waits[] = {200, 400, 800, 1000, 1000};

    member_notice(f, "n1", 60000);
    assert_member(f, "NOTICE #2; view open");
    for (size_t i = 0; i < sizeof waits / sizeof waits[0]; i++) {
        member_pass(f, waits[i] - 1, true);
        assert_int_equal(member_sent_count(f, WIRE_NOTICE), 0);
        member_pass(f, 1, true);
        assert_int_equal(member_sent_count(f, WIRE_NOTICE), 1);
        assert_int_equal(member_sent(f, WIRE_NOTICE)->up.request, 2);
    }
    /* the time left is that of the sending */
    assert_int_equal(member_sent(f, WIRE_NOTICE)->u.notice.left_ms, 60000 - 3400);
    member_ack(f, 2, MUSTER_OK);
    member_pass(f, 5000, true);
    assert_int_equal(member_sent_count(f, WIRE_NOTICE), 0);
}

static void an_answer_counts_for_all_before_it_and_a_full_disk_is_no_answer(void **state)
{
    struct member_fixture *f = *state;

    member_notice(f, "n1", 60000);
    member_notice(f, "n2", 60000);
    member_notice(f, "n3", 60000);
    member_ack(f, 2, MUSTER_E_STORAGE);
    assert_int_equal(f->m->pending_count, 3);
    member_ack(f, 3, MUSTER_OK);
    assert_int_equal(f->m->pending_count, 1);
    assert_int_equal(f->m->pending[0]->message.up.request, 4);
    member_ack(f, 9, MUSTER_OK); /* of nothing that is waited for */
    assert_int_equal(f->m->pending_count, 1);
    member_ack(f, 4, MUSTER_E_PROTOCOL); /* an answer too: it is told, and not sent again */
    assert_member(f, "log");
    assert_int_equal(f->m->pending_count, 0);
}

/* R1.4 */
static void after_hello_all_that_waits_is_sent_again_in_order(void **state)
{
    struct member_fixture *f = *state;

    member_notice(f, "n1", 60000);
    member_notice(f, "n2", 60000);
    member_ack(f, 0, MUSTER_E_HELLO);
    assert_member(f, "HELLO");
    const struct wire_msg *hello = member_sent(f, WIRE_HELLO);
    assert_int_equal(hello->u.hello.notices.count, 2);
    assert_string_equal(hello->u.hello.notices.items[1].id, "n2");
    assert_int_equal(hello->up.generation, 2);
    assert_int_equal(hello->up.applied_seq, 11);
    member_notice(f, "n3", 60000);
    assert_member(f, "view open"); /* kept until the broker knows this connection */
    member_welcome(f, false);
    assert_member(
        f, "subscribe ipc:///e; PROBE_GET; NOTICE #2; NOTICE #3; NOTICE #4; HEARTBEAT; view open");
}

static void a_broker_that_took_more_than_was_answered_is_not_asked_again(void **state)
{
    struct member_fixture *f = *state;

    member_notice(f, "n1", 60000);
    member_notice(f, "n2", 60000);
    member_ack(f, 0, MUSTER_E_HELLO);
    f->last_request = 2;
    member_welcome(f, false);
    assert_int_equal(member_sent_count(f, WIRE_NOTICE), 1);
    assert_int_equal(member_sent(f, WIRE_NOTICE)->up.request, 3);
}

static void a_broker_that_forgot_is_told_anew_from_its_number(void **state)
{
    struct member_fixture *f = *state;

    member_notice(f, "n1", 60000);
    member_ack_all(f);
    member_notice(f, "n2", 60000); /* 3 */
    member_ack(f, 0, MUSTER_E_HELLO);
    f->last_request = 0;
    member_welcome(f, true);
    struct wire_snapshot s = member_snapshot_made(f);
    member_snapshot(f, s);
    assert_int_equal(member_sent(f, WIRE_NOTICE)->up.request, 1);
    member_notice(f, "n3", 60000);
    assert_int_equal(member_sent(f, WIRE_NOTICE)->up.request, 2);
}

static void a_welcome_that_claims_the_largest_request_leaves_numbers_alone(void **state)
{
    struct member_fixture *f = *state;

    member_notice(f, "n1", 60000);
    member_ack(f, 0, MUSTER_E_HELLO);
    f->last_request = UINT64_MAX;
    member_welcome(f, false);
    member_notice(f, "n2", 60000);
    assert_int_equal(member_sent(f, WIRE_NOTICE)->up.request, 3);
}

/* R1.3 */
static void being_stale_is_the_end_and_says_why(void **state)
{
    struct member_fixture *f = *state;

    member_ack(f, 0, MUSTER_E_STALE);
    assert_member(f, "HELLO"); /* the refusal has the reason */
    struct wire_msg refused = member_down(f, WIRE_REFUSED);
    refused.u.refused = (struct wire_refused){
        .nonce = f->m->nonce, .code = MUSTER_E_STALE, .text = "rank 1 was taken over"};
    member_frame(f, refused);
    assert_member(f, "close; view end MUSTER_E_STALE; on_error MUSTER_E_STALE");
    assert_int_equal(member_seen(f)->end.status, MUSTER_E_STALE);
    assert_string_equal(member_seen(f)->end.text, "rank 1 was taken over");
    assert_true(f->gate_closed);
    member_saved(f, 1, 1); /* it never saves */
    assert_member(f, "");
    member_close(f, LEAVE_ERROR);
    assert_true(member_seen(f)->left);
}

/* --- which broker ----------------------------------------------------------------------------- */

/* R1.8 */
static void frames_of_a_past_broker_change_nothing(void **state)
{
    struct member_fixture *f = *state;

    f->epoch = 2;
    member_freeze(f, 1, CAUSE_OPERATOR, false);
    assert_member(f, "");
    f->epoch = 3;
    f->start_id = 999; /* the same epoch, and not the one that was greeted */
    f->seq = 10;
    member_freeze(f, 1, CAUSE_OPERATOR, false);
    assert_int_equal(member_seen(f)->mode, VIEW_OPEN);
    assert_int_equal(f->m->applied_seq, 11);
}

/* R1.8 */
static void a_new_broker_is_greeted_before_anything_of_it_is_applied(void **state)
{
    struct member_fixture *f = *state;

    f->epoch = 4;
    f->start_id = 502;
    member_freeze(f, 1, CAUSE_OPERATOR, false);
    assert_member(f, "HELLO");
    assert_int_equal(f->m->applied_seq, 11);
    member_freeze(f, 2, CAUSE_OPERATOR, false);
    assert_member(f, "");
    member_welcome(f, false);
    assert_int_equal(member_seen(f)->broker_epoch, 4);
    member_pass(f, HEARTBEAT_MS + GAP_PATIENCE_MS, true);
    assert_int_equal(member_sent(f, WIRE_EVENTS_GET)->u.events_get.from_seq, 12);
}

/* --- events and gaps -------------------------------------------------------------------------- */

/* R1.5, R1.7 */
static void what_comes_after_a_hole_waits_for_what_is_missing(void **state)
{
    struct member_fixture *f = *state;
    struct wire_event freeze = member_event(f, EVENT_FREEZE);

    f->seq++; /* one is lost on the way */
    member_freeze(f, 1, CAUSE_OPERATOR, false);
    assert_member(f, "EVENTS_GET 12");
    assert_int_equal(member_seen(f)->mode, VIEW_OPEN);
    member_pass(f, GAP_REPEAT_MS - 1, false);
    assert_int_equal(member_sent_count(f, WIRE_EVENTS_GET), 0);
    member_pass(f, 1, false); /* the answer may be lost too */
    assert_int_equal(member_sent_count(f, WIRE_EVENTS_GET), 1);
    f->seq = 11;
    member_tell(f, member_event(f, EVENT_STUCK));
    assert_int_equal(f->m->applied_seq, 12);
    assert_int_equal(member_seen(f)->mode, VIEW_OPEN);
    freeze.round = 1;
    freeze.cause = CAUSE_OPERATOR;
    freeze.members.items = f->members;
    freeze.members.count = 3;
    member_tell(f, freeze);
    assert_int_equal(f->m->applied_seq, 13);
    assert_int_equal(member_seen(f)->mode, VIEW_WAIT);
    member_pass(f, 1000, true);
    assert_int_equal(member_sent_count(f, WIRE_EVENTS_GET), 0);
}

static void an_event_is_applied_once_and_its_repeat_is_acknowledged(void **state)
{
    struct member_fixture *f = *state;

    member_freeze(f, 1, CAUSE_OPERATOR, false);
    assert_int_equal(member_sent_count(f, WIRE_REPORT), 1);
    f->seq--;
    member_freeze(f, 1, CAUSE_OPERATOR, false);
    assert_member(f, "");
    member_pass(f, FLIGHT_MS, true);
    assert_member(f, "HEARTBEAT");
    assert_int_equal(member_sent(f, WIRE_HEARTBEAT)->up.applied_seq, 12);
}

/* R1.6 */
static void what_is_said_soon_acknowledges_too(void **state)
{
    struct member_fixture *f = *state;

    member_tell(f, member_event(f, EVENT_STUCK));
    member_freeze(f, 1, CAUSE_OPERATOR, false);
    assert_int_equal(member_sent(f, WIRE_REPORT)->up.applied_seq, f->seq);
    member_pass(f, FLIGHT_MS, true);
    assert_member(f, "");
    member_abort(f, 1, true);
    member_pass(f, FLIGHT_MS - 1, true);
    assert_member(f, "");
    member_pass(f, 1, true);
    assert_member(f, "HEARTBEAT");
}

static void no_event_follows_the_largest_number(void **state)
{
    struct member_fixture *f = *state;
    struct wire_snapshot s;
    struct wire_event event;

    f->seq = UINT64_MAX;
    s = member_snapshot_made(f);
    member_snapshot(f, s);
    assert_int_equal(f->m->applied_seq, UINT64_MAX);
    event = member_event(f, EVENT_STARTED);
    member_tell(f, event); /* its number is 0 */
    assert_int_equal(f->seq, 0);
    assert_int_equal(f->m->applied_seq, UINT64_MAX);
}

/* R1.5 */
static void a_heartbeats_answer_shows_what_was_lost_without_a_successor(void **state)
{
    struct member_fixture *f = *state;

    f->seq = 14; /* three events were published, none came */
    member_alive(f);
    assert_member(f, ""); /* they may be on their way */
    member_pass(f, GAP_PATIENCE_MS, false);
    assert_member(f, "EVENTS_GET 12");
}

static void a_node_whose_subscription_is_deaf_repairs_from_the_welcome(void **state)
{
    struct member_fixture *f = *state;

    member_ack(f, 0, MUSTER_E_HELLO);
    f->seq = 15;
    member_welcome(f, false);
    assert_int_equal(member_sent_count(f, WIRE_EVENTS_GET), 0);
    struct wire_msg probe = member_down(f, WIRE_PROBE);
    probe.u.probe.nonce = f->m->probe_nonce;
    member_frame(f, probe);
    assert_member(f, "EVENTS_GET 12"); /* the echo: the subscription works from here on */
    member_ack(f, 0, MUSTER_E_HELLO);
    member_welcome(f, false);
    member_pass(f, HEARTBEAT_MS + GAP_PATIENCE_MS, false); /* no echo comes */
    assert_int_equal(member_sent(f, WIRE_EVENTS_GET)->u.events_get.from_seq, 12);
}

static void heartbeats_tell_where_the_node_stands_and_a_ping_is_answered_at_once(void **state)
{
    struct member_fixture *f = *state;

    member_in_step(f, 8);
    member_pass(f, 1000, true);
    assert_member(f, "HEARTBEAT");
    const struct wire_heartbeat *beat = &member_sent(f, WIRE_HEARTBEAT)->u.heartbeat;
    assert_int_equal(beat->begun, 8);
    assert_int_equal(beat->done, 7);
    assert_int_equal(beat->phase, PHASE_STEPPING);
    f->now += 10;
    member_frame(f, member_down(f, WIRE_PING));
    assert_member(f, "HEARTBEAT");
    member_pass(f, 2500, false); /* also to a broker that does not answer */
    assert_int_equal(member_sent_count(f, WIRE_HEARTBEAT), 2);
}

static void step_times_are_measured_without_a_clock_on_the_hot_path(void **state)
{
    struct member_fixture *f = *state;

    member_stand(f, 1);
    member_tick_at(f, f->now + 100);
    for (int i = 1; i <= 10; i++) {
        member_stand(f, 1 + 4 * i);
        member_tick_at(f, f->now + 1000);
    }
    assert_int_equal(member_sent(f, WIRE_HEARTBEAT)->u.heartbeat.step_p95_ms, 250);
}

static void heartbeats_tell_how_far_a_save_came(void **state)
{
    struct member_fixture *f = *state;
    const struct wire_msg *beat;

    member_set_saving(f->m, 3, 4096);
    member_tick_at(f, f->now + HEARTBEAT_MS);
    beat = member_sent(f, WIRE_HEARTBEAT);
    assert_int_equal(beat->u.heartbeat.saving_round, 3);
    assert_int_equal(beat->u.heartbeat.saving_bytes, 4096);
    member_set_saving(f->m, 0, 4096);
    member_tick_at(f, f->now + HEARTBEAT_MS);
    assert_int_equal(member_sent(f, WIRE_HEARTBEAT)->u.heartbeat.saving_bytes, 0);
}

/* The wait for the others after a restore was taken for a step of some milliseconds: the way to S
 * of a job with long steps was then over after a minute. */
static void what_comes_before_the_first_step_is_no_step(void **state)
{
    struct member_fixture *f = *state;

    member_tick_at(f, f->now);
    member_welcome(f, true);
    struct wire_snapshot s = member_snapshot_made(f);
    s.generation_state = GENERATION_JOINING;
    member_snapshot(f, s);
    f->begun = f->done = 40;
    member_feed(f, (struct member_input){.kind = MEMBER_RESTORED, .checkpoint = 4, .step = 40});
    member_ack_all(f);
    f->now += 30000; /* the others come */
    member_tell(f, member_event(f, EVENT_STARTED));
    member_in_step(f, 41);
    member_tick_at(f, f->now + HEARTBEAT_MS);
    assert_int_equal(member_sent(f, WIRE_HEARTBEAT)->u.heartbeat.step_p95_ms, 0);
    member_in_step(f, 42);
    member_tick_at(f, f->now + 9000);
    assert_int_equal(member_sent(f, WIRE_HEARTBEAT)->u.heartbeat.step_p95_ms, 9000);
}

/* --- snapshots -------------------------------------------------------------------------------- */

struct snapshot_case {
    const char *what;
    enum wire_round_state state;
    bool member, writer, taken;
    const char *text;
};

static void a_snapshot_puts_the_node_where_the_open_round_stands(void **state)
{
    struct member_fixture *f = *state;
    static const struct snapshot_case table[] = {
        {"freezing", ROUND_FREEZING, true, false, false, "close; view wait; REPORT r6 5/5"},
        {"reported", ROUND_FREEZING, true, false, true, "view open"},
        {"not a member", ROUND_FREEZING, false, false, false, "view open"},
        {"decided", ROUND_DECIDED, true, false, false, "close; view wait; view step_to 9"},
        {"decided, writer", ROUND_DECIDED, true, true, false, "close; view wait; view step_to 9"},
        {"decided, saved", ROUND_DECIDED, true, true, true, "view open"},
    };

    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct wire_snapshot s = member_snapshot_made(f);
        s.seq = f->seq = 30;
        s.round = 6;
        s.round_state = table[i].state;
        s.round_cause = CAUSE_TERMINATION;
        s.round_step = table[i].state == ROUND_DECIDED ? 9 : -1;
        s.member = table[i].member;
        s.writer = table[i].writer;
        s.taken = table[i].taken;
        member_stand(f, 5);
        member_snapshot(f, s);
        if (strcmp(member_text_of(f), table[i].text) != 0)
            fail_msg("%s: %s", table[i].what, member_text_of(f));
        assert_int_equal(f->m->applied_seq, 30);
        assert_int_equal(f->m->writer, table[i].writer && !table[i].taken);
        member_fixture_close(f);
        member_fixture_running(f, 1, LAYOUT_REPLICATED);
    }
}

struct outcome_case {
    const char *what;
    enum wire_round_state state;
    enum wire_cause cause;
    enum wire_generation_state generation;
    enum muster_status end;
    const char *text;
};

/* R1.7 */
static void a_snapshot_tells_the_outcome_of_the_round_that_was_missed(void **state)
{
    struct member_fixture *f = *state;
    static const struct outcome_case table[] = {
        {"committed", ROUND_COMMITTED, CAUSE_OPERATOR, GENERATION_RUNNING, MUSTER_OK, "view open"},
        {"aborted", ROUND_ABORTED, CAUSE_OPERATOR, GENERATION_RUNNING, MUSTER_OK,
         "discard r1; view open"},
        {"unknown there", ROUND_ABORTED, CAUSE_NONE, GENERATION_RUNNING, MUSTER_OK,
         "view open"}, /* its shards are kept */
        {"unchanged", ROUND_UNCHANGED, CAUSE_OPERATOR, GENERATION_RUNNING, MUSTER_OK, "view open"},
        {"written behind", ROUND_WRITING, CAUSE_OPERATOR, GENERATION_RUNNING, MUSTER_OK,
         "view step_to 5"},
        {"termination committed", ROUND_COMMITTED, CAUSE_TERMINATION, GENERATION_ENDING,
         MUSTER_PREEMPTED, "close; view wait"},
        {"termination unchanged", ROUND_UNCHANGED, CAUSE_TERMINATION, GENERATION_ENDING,
         MUSTER_PREEMPTED, "close; view end MUSTER_PREEMPTED restart"},
        {"not saved", ROUND_ABORTED, CAUSE_TERMINATION, GENERATION_ENDING, MUSTER_E_NOT_SAVED,
         "discard r1; close; view end MUSTER_PREEMPTED restart"},
        {"peer", ROUND_ABORTED, CAUSE_OPERATOR, GENERATION_ENDING, MUSTER_E_PEER,
         "discard r1; close; view end MUSTER_E_PEER"},
    };

    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct wire_snapshot s = member_snapshot_made(f);
        member_stand(f, 5);
        member_freeze(f, 1, CAUSE_OPERATOR, false);
        member_decision(f, 1, CAUSE_OPERATOR, 5, 2);
        member_ack_all(f);
        s.seq = f->seq = 30;
        s.named_round = 1;
        s.named_state = table[i].state;
        s.named_cause = table[i].cause;
        s.named_step = 5;
        s.generation_state = table[i].generation;
        s.end_status = table[i].end;
        s.end_text = "end";
        member_snapshot(f, s);
        if (strcmp(member_text_of(f), table[i].text) != 0)
            fail_msg("%s: %s", table[i].what, member_text_of(f));
        member_fixture_close(f);
        member_fixture_running(f, 1, LAYOUT_REPLICATED);
    }
}

/* HELLO was repeated; the first answer told of round 1, and the second is of before. */
static void a_snapshot_that_does_not_name_the_round_hides_no_end_of_it(void **state)
{
    struct member_fixture *f = *state;
    struct wire_snapshot s;

    member_capture(f, CAUSE_OPERATOR);
    member_ack_all(f);
    s = member_snapshot_made(f);
    s.seq = f->seq + 1; /* the abort */
    member_snapshot(f, s);
    member_pass(f, 3000, true);
    assert_non_null(member_sent(f, WIRE_EVENTS_GET));
    assert_int_equal(member_sent(f, WIRE_EVENTS_GET)->u.events_get.from_seq, s.seq);
    member_abort(f, 1, false);
    member_close(f, LEAVE_FINISHED);
    assert_non_null(member_sent(f, WIRE_LEAVE));
}

static void an_old_snapshot_or_one_of_another_generation_changes_nothing(void **state)
{
    struct member_fixture *f = *state;
    struct wire_snapshot s = member_snapshot_made(f);

    s.seq = 10; /* 11 were applied */
    s.generation_state = GENERATION_ENDING;
    s.end_status = MUSTER_E_PEER;
    member_snapshot(f, s);
    assert_int_equal(member_seen(f)->mode, VIEW_OPEN);
    s.seq = 40;
    s.generation = 3;
    member_snapshot(f, s);
    assert_int_equal(member_seen(f)->mode, VIEW_OPEN);
}

static void a_snapshot_asks_to_repair_the_choice(void **state)
{
    struct member_fixture *f = *state;

    member_tick_at(f, f->now);
    member_welcome(f, true);
    struct wire_snapshot s = member_snapshot_made(f);
    s.generation_state = GENERATION_JOINING;
    s.resume_ready = false;
    s.resume_repair = true;
    s.resume_checkpoint = 4;
    member_snapshot(f, s);
    assert_member(f, "MANIFEST_GET c4+0; HEARTBEAT; view wait");
    assert_false(member_seen(f)->resume_known);
}

#define T(test, setup) cmocka_unit_test_setup_teardown(test, setup, member_tear_down)

static void a_broker_that_is_older_than_the_library_is_refused_in_one_sentence(void **state)
{
    struct member_fixture *f = *state;
    struct wire_msg message = member_down(f, WIRE_WELCOME);

    member_feed(f, (struct member_input){.kind = MEMBER_CONNECTED});
    message.u.welcome = (struct wire_welcome){.speaks = WIRE_SPEAKS - 1,
                                              .nonce = f->m->nonce,
                                              .generation = f->generation,
                                              .world_size = 3,
                                              .events_endpoint = "ipc:///e"};
    member_frame(f, message);
    assert_int_equal(member_seen(f)->refused.status, MUSTER_E_VERSION);
    assert_false(member_seen(f)->refused_retry);
    assert_non_null(strstr(member_seen(f)->refused.text, "older musterd"));
    assert_int_equal(member_seen(f)->end.status, MUSTER_E_VERSION);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(hello_is_repeated_at_doubling_times_until_it_is_answered, fresh),
        T(joining_subscribes_asks_for_the_echo_and_waits_for_the_snapshot, fresh),
        T(a_welcome_whose_snapshot_does_not_come_is_asked_for_again, fresh),
        T(a_new_connection_is_greeted_at_once, member_set_up),
        T(an_answer_to_another_hello_is_not_taken, fresh),
        T(a_refusal_is_final_or_asked_again_as_it_says, fresh),
        T(who_closes_while_it_is_let_in_says_leave, fresh),
        T(who_closes_before_it_is_let_in_asks_no_further_and_waits_a_second_at_most, fresh),
        T(who_closes_after_a_refusal_leaves_at_once, fresh),
        T(without_the_brokers_verdict_joining_ends_by_itself_a_little_later, fresh),
        T(who_asked_for_no_join_timeout_waits_for_the_brokers, fresh),
        T(a_request_is_resent_at_doubling_times_until_it_is_answered, member_set_up),
        T(an_answer_counts_for_all_before_it_and_a_full_disk_is_no_answer, member_set_up),
        T(after_hello_all_that_waits_is_sent_again_in_order, member_set_up),
        T(a_broker_that_took_more_than_was_answered_is_not_asked_again, member_set_up),
        T(a_broker_that_forgot_is_told_anew_from_its_number, member_set_up),
        T(a_welcome_that_claims_the_largest_request_leaves_numbers_alone, member_set_up),
        T(no_event_follows_the_largest_number, member_set_up),
        T(being_stale_is_the_end_and_says_why, member_set_up),
        T(a_broker_that_is_older_than_the_library_is_refused_in_one_sentence, member_set_up),
        T(frames_of_a_past_broker_change_nothing, member_set_up),
        T(a_new_broker_is_greeted_before_anything_of_it_is_applied, member_set_up),
        T(what_comes_after_a_hole_waits_for_what_is_missing, member_set_up),
        T(an_event_is_applied_once_and_its_repeat_is_acknowledged, member_set_up),
        T(what_is_said_soon_acknowledges_too, member_set_up),
        T(a_heartbeats_answer_shows_what_was_lost_without_a_successor, member_set_up),
        T(a_node_whose_subscription_is_deaf_repairs_from_the_welcome, member_set_up),
        T(heartbeats_tell_where_the_node_stands_and_a_ping_is_answered_at_once, member_set_up),
        T(step_times_are_measured_without_a_clock_on_the_hot_path, member_set_up),
        T(heartbeats_tell_how_far_a_save_came, member_set_up),
        T(what_comes_before_the_first_step_is_no_step, fresh),
        T(a_snapshot_puts_the_node_where_the_open_round_stands, member_set_up),
        T(a_snapshot_tells_the_outcome_of_the_round_that_was_missed, member_set_up),
        T(a_snapshot_that_does_not_name_the_round_hides_no_end_of_it, member_set_up),
        T(an_old_snapshot_or_one_of_another_generation_changes_nothing, member_set_up),
        T(a_snapshot_asks_to_repair_the_choice, fresh),
    };

    return cmocka_run_group_tests_name("member_link", tests, NULL, NULL);
}
