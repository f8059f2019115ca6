/* The node's core: its own notices. */
#include "tests/support/member_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

/* --- notices ---------------------------------------------------------------------------------- */

static void a_notice_is_told_at_once_and_again_in_every_hello_until_it_is_cancelled(void **state)
{
    struct member_fixture *f = *state;

    member_in_step(f, 8); /* whatever the training thread does */
    member_notice(f, "n1", -1);
    assert_member(f, "NOTICE #2; view open");
    const struct wire_notice *told = &member_sent(f, WIRE_NOTICE)->u.notice;
    assert_int_equal(told->left_ms, GRACE_DEFAULT_MS);
    assert_int_equal(told->rank, 1);
    assert_true(member_seen(f)->termination_seen);
    member_notice(f, "n1", 60000);
    assert_member(f, ""); /* known, and nothing postpones it */
    f->now += 1000;
    member_ack(f, 0, MUSTER_E_HELLO);
    assert_int_equal(member_sent(f, WIRE_HELLO)->u.hello.notices.items[0].left_ms, 29000);
    member_welcome(f, false);
    member_feed(f, (struct member_input){.kind = MEMBER_NOTICE_CANCELLED, .id = "n1"});
    assert_non_null(member_sent(f, WIRE_CANCEL));
    member_ack(f, 0, MUSTER_E_HELLO);
    assert_int_equal(member_sent(f, WIRE_HELLO)->u.hello.notices.count, 0);
    member_feed(f, (struct member_input){.kind = MEMBER_NOTICE_CANCELLED, .id = "n1"});
    assert_member(f, "");
}

static void a_notice_that_somebody_else_cancelled_is_forgotten(void **state)
{
    struct member_fixture *f = *state;
    struct wire_event event = member_event(f, EVENT_NOTICE_CANCELLED);

    member_notice(f, "n1", 5000);
    member_ack_all(f);
    event.text = "n1";
    member_tell(f, event);
    member_pass(f, 6000, true);
    assert_int_equal(member_seen(f)->mode, VIEW_OPEN); /* its deadline is none any more */
}

/* The event is among those that a snapshot stands for. */
static void a_notice_that_was_cancelled_unheard_is_forgotten_by_the_snapshot(void **state)
{
    struct member_fixture *f = *state;
    static const struct wire_notice_id ids[] = {{"n1"}, {"n2"}, {"of another life"}};
    struct wire_snapshot snapshot;

    member_notice(f, "n1", 5000);
    member_ack_all(f);
    member_notice(f, "n2", 9000); /* issued again: the broker has not taken it yet */
    f->seq += 3;
    snapshot = member_snapshot_made(f);
    snapshot.withdrawn.items = ids;
    snapshot.withdrawn.count = 3;
    member_snapshot(f, snapshot);
    assert_int_equal(notice_own_deadline(f->m), f->now + 9000);
    member_ack_all(f);
    member_pass(f, 6000, true);
    assert_int_equal(member_seen(f)->mode, VIEW_OPEN);
}

static void of_a_time_that_has_passed_people_are_told_so(void **state)
{
    struct member_fixture *f = *state;
    struct member_input in = {.kind = MEMBER_NOTICE,
                              .id = "n1",
                              .notice_kind = NOTICE_TERMINATE,
                              .left_ms = 0,
                              .text = "+3"};

    member_feed(f, in);
    assert_string_equal(member_sent(f, WIRE_NOTICE)->u.notice.text,
                        "+3 (that has passed, or is too short to save in)");
    assert_int_equal(member_sent(f, WIRE_NOTICE)->u.notice.left_ms, GRACE_DEFAULT_MS);
}

static void a_known_notice_counts_again_when_its_deadline_is_earlier(void **state)
{
    struct member_fixture *f = *state;

    member_notice(f, "n1", 60000);
    member_ack_all(f);
    f->now += 10000;
    member_notice(f, "n1", 50000); /* the same moment */
    member_notice(f, "n1", -1);    /* says nothing of when */
    assert_int_equal(f->m->pending_count, 0);
    member_notice(f, "n1", 20000);
    assert_int_equal(member_sent(f, WIRE_NOTICE)->u.notice.left_ms, 20000);
    assert_int_equal(notice_own_deadline(f->m), f->now + 20000);
    assert_int_equal(f->m->notices_count, 1);
    member_ack_all(f);
    member_pass(f, 20000 - MARGIN_MS - 1, true);
    assert_int_equal(member_seen(f)->mode, VIEW_OPEN);
    member_pass(f, 1, true);
    assert_int_equal(member_seen(f)->mode, VIEW_END);
}

static void tell_end(struct member_fixture *f, unsigned kind, int64_t rank, int64_t left_ms)
{
    struct wire_msg alive = member_down(f, WIRE_ALIVE);

    alive.u.alive.notice_kind = kind;
    alive.u.alive.notice_rank = rank;
    alive.u.alive.notice_left_ms = left_ms;
    alive.u.alive.notice_save_ms = left_ms < 0 ? -1 : left_ms - 5000;
    member_frame(f, alive);
}

static void the_end_that_comes_first_is_announced_whoever_told_it(void **state)
{
    struct member_fixture *f = *state;
    const struct member_announced *announced = &member_seen(f)->announced;

    assert_int_equal(announced->kind, NOTICE_NONE);
    tell_end(f, NOTICE_STOP, 2, 60000);
    announced = &member_seen(f)->announced;
    assert_int_equal(announced->kind, NOTICE_STOP);
    assert_int_equal(announced->rank, 2);
    assert_int_equal(announced->deadline_boot_ms, f->now + 60000);
    assert_int_equal(announced->save_boot_ms, f->now + 55000);
    member_notice(f, "n1", 30000); /* its own is known at once */
    announced = &member_seen(f)->announced;
    assert_int_equal(announced->rank, f->m->options.rank);
    assert_int_equal(announced->deadline_boot_ms, f->now + 30000);
    member_feed(f, (struct member_input){.kind = MEMBER_NOTICE_CANCELLED, .id = "n1"});
    assert_int_equal(member_seen(f)->announced.rank, 2);
    tell_end(f, NOTICE_NONE, 0, 0);
    assert_int_equal(member_seen(f)->announced.kind, NOTICE_NONE);
}

static void a_notice_that_ends_nothing_may_become_one_that_does(void **state)
{
    struct member_fixture *f = *state;
    struct member_input in = {.kind = MEMBER_NOTICE, .id = "n1", .left_ms = 5000, .text = ""};

    in.notice_kind = NOTICE_MIGRATE;
    member_feed(f, in);
    assert_int_equal(notice_own_deadline(f->m), NEVER);
    in.notice_kind = NOTICE_PREEMPT;
    in.left_ms = 9000; /* later, but now it matters */
    member_feed(f, in);
    assert_int_equal(member_sent(f, WIRE_NOTICE)->u.notice.kind, NOTICE_PREEMPT);
    assert_int_equal(notice_own_deadline(f->m), f->now + 9000);
    in.notice_kind = NOTICE_MIGRATE;
    member_feed(f, in);
    assert_member(f, "");
    assert_int_equal(notice_own_deadline(f->m), f->now + 9000);
}

/* The event of the own CANCEL may come after the same notice was issued again. */
static void a_notice_issued_anew_outlives_the_event_of_its_own_withdrawal(void **state)
{
    struct member_fixture *f = *state;
    struct wire_event event = member_event(f, EVENT_NOTICE_CANCELLED);

    member_notice(f, "n1", 60000);
    member_feed(f, (struct member_input){.kind = MEMBER_NOTICE_CANCELLED, .id = "n1"});
    member_notice(f, "n1", 8000);
    assert_int_equal(member_sent(f, WIRE_NOTICE)->u.notice.left_ms, 8000);
    event.text = "n1";
    event.incarnation = MEMBER_INCARNATION;
    member_tell(f, event);
    assert_int_equal(notice_own_deadline(f->m), f->now + 8000);
    event = member_event(f, EVENT_NOTICE_CANCELLED);
    event.text = "n1"; /* a tool's */
    member_tell(f, event);
    assert_int_equal(notice_own_deadline(f->m), NEVER);
}

static void the_earliest_deadline_is_never_the_one_without_a_place(void **state)
{
    struct member_fixture *f = *state;
    char id[16];

    for (int i = 0; i < NOTICES_NODE_MAX; i++) {
        snprintf(id, sizeof id, "n%d", i);
        member_notice(f, id, 60000 + i);
    }
    member_notice(f, "late", 70000);
    assert_member(f, "log");
    member_notice(f, "early", 5000);
    assert_string_equal(member_sent(f, WIRE_NOTICE)->u.notice.id, "early");
    assert_int_equal(notice_own_deadline(f->m), f->now + 5000);
    assert_int_equal(f->m->notices_count, NOTICES_NODE_MAX);
}

static void only_eight_notices_are_kept_and_a_huge_time_left_is_no_trouble(void **state)
{
    struct member_fixture *f = *state;
    char id[16];

    member_notice(f, "big", INT64_MAX);
    assert_non_null(member_sent(f, WIRE_NOTICE));
    for (int i = 0; i < NOTICES_NODE_MAX - 1; i++) {
        snprintf(id, sizeof id, "n%d", i);
        member_notice(f, id, 60000);
        assert_non_null(member_sent(f, WIRE_NOTICE));
    }
    member_notice(f, "more", INT64_MAX);
    assert_member(f, "log");
}

/* A broker that cannot write, or that is stopped, for many policy saves: what they left behind in
 * the queue must not cost the job its termination (R1.10). */
static void saves_that_were_given_up_leave_room_for_a_notice(void **state)
{
    struct member_fixture *f = *state;

    for (int64_t step = 1; step <= 2 * PENDING_MAX; step++) {
        member_stand(f, step);
        member_policy(f);
        member_pass(f, THAW_MS, false);
        assert_int_equal(member_seen(f)->mode, VIEW_OPEN);
    }
    member_notice(f, "n", 60000);
    assert_non_null(member_sent(f, WIRE_NOTICE));
}

static void withdraw(struct member_fixture *f, const char *id)
{
    member_feed(f, (struct member_input){.kind = MEMBER_NOTICE_CANCELLED, .id = id});
}

/* A file that comes and goes while the broker does not answer: a shard's files still find room, and
 * what counts in the end is told (R1.10). */
static void notices_that_come_and_go_leave_room_for_a_shard(void **state)
{
    struct member_fixture *f = *state;

    for (int withdrawn = 0; withdrawn < 2; withdrawn++) {
        for (int i = 0; i < PENDING_MAX; i++) {
            member_notice(f, "n", 60000);
            if (withdrawn || i < PENDING_MAX - 1)
                withdraw(f, "n");
        }
        assert_in_range(f->m->pending_count, 1,
                        PENDING_MAX - FILES_SHARD_MAX / FILES_FRAME_MAX - 6);
        member_ack_all(f); /* there is room again: one message tells how it stands */
        assert_int_equal(member_sent_count(f, WIRE_NOTICE), withdrawn ? 0 : 1);
        assert_int_equal(member_sent_count(f, WIRE_CANCEL), withdrawn ? 1 : 0);
        assert_int_equal(f->m->notices_count, withdrawn ? 0 : 1);
    }
}

/* R2.2 */
static void a_hint_only_shows(void **state)
{
    struct member_fixture *f = *state;
    struct wire_msg hint = member_down(f, WIRE_HINT);

    hint.u.hint = (struct wire_hint){.id = "n", .kind = NOTICE_MIGRATE, .rank = 0, .left_ms = 1};
    member_frame(f, hint);
    assert_member(f, "");
    hint.u.hint.kind = NOTICE_PREEMPT;
    member_frame(f, hint);
    assert_member(f, "view open");
    assert_true(member_seen(f)->termination_seen);
}

/* Its supervisor tells people why a launch ended, from these words alone. */
static void who_leaves_without_a_save_says_by_what_and_what_is_on_disk(void **state)
{
    struct member_fixture *f = *state;
    struct wire_event unchanged = member_event(f, EVENT_UNCHANGED);

    member_notice(f, "n", -1);
    unchanged.round = 1;
    unchanged.cause = CAUSE_TERMINATION;
    unchanged.step = 0;
    member_tell(f, unchanged);
    assert_string_equal(member_seen(f)->end.text,
                        "told to end by test: spot; no step was done, so there is nothing to save");
}

static void another_ranks_notice_is_no_word_of_this_one(void **state)
{
    struct member_fixture *f = *state;
    struct wire_event unchanged = member_event(f, EVENT_UNCHANGED);

    unchanged.round = 1;
    unchanged.cause = CAUSE_TERMINATION;
    unchanged.step = 4;
    member_tell(f, unchanged);
    assert_string_equal(member_seen(f)->end.text,
                        "the job is being terminated; step 4 is on disk already");
}

#define T(test, setup) cmocka_unit_test_setup_teardown(test, setup, member_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_notice_is_told_at_once_and_again_in_every_hello_until_it_is_cancelled, member_set_up),
        T(a_notice_that_somebody_else_cancelled_is_forgotten, member_set_up),
        T(of_a_time_that_has_passed_people_are_told_so, member_set_up),
        T(a_notice_that_was_cancelled_unheard_is_forgotten_by_the_snapshot, member_set_up),
        T(a_known_notice_counts_again_when_its_deadline_is_earlier, member_set_up),
        T(the_end_that_comes_first_is_announced_whoever_told_it, member_set_up),
        T(a_notice_that_ends_nothing_may_become_one_that_does, member_set_up),
        T(a_notice_issued_anew_outlives_the_event_of_its_own_withdrawal, member_set_up),
        T(the_earliest_deadline_is_never_the_one_without_a_place, member_set_up),
        T(only_eight_notices_are_kept_and_a_huge_time_left_is_no_trouble, member_set_up),
        T(saves_that_were_given_up_leave_room_for_a_notice, member_set_up),
        T(notices_that_come_and_go_leave_room_for_a_shard, member_set_up),
        T(a_hint_only_shows, member_set_up),
        T(who_leaves_without_a_save_says_by_what_and_what_is_on_disk, member_set_up),
        T(another_ranks_notice_is_no_word_of_this_one, member_set_up),
    };

    return cmocka_run_group_tests_name("member_notice", tests, NULL, NULL);
}
