/* The broker's core: notices, who will be ended and until when. */
#include "tests/support/core_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

struct notice_case {
    const char *id;
    unsigned kind;
    int64_t left_ms, rank;
    const char *answer, *events;
};

static void a_notice_of_a_tool_is_checked_and_some_kinds_end_nothing(void **state)
{
    struct core_fixture *f = *state;
    static const struct notice_case table[] = {
        {"", NOTICE_USER, 1000, 0, "@500:ack #1 MUSTER_E_ARGUMENT", ""},
        {"a", NOTICE_USER, -2, 0, "@500:ack #1 MUSTER_E_ARGUMENT", ""},
        {"a", NOTICE_USER, INT64_MAX, 0, "@500:ack #1 MUSTER_E_ARGUMENT", ""},
        {"a", NOTICE_USER, 1000, 3, "@500:ack #1 MUSTER_E_RANK", ""},
        {"a", NOTICE_USER, 1000, -1, "@500:ack #1 MUSTER_E_RANK", ""},
        {"b", NOTICE_FREEZE, 60000, 1, "@500:ack #1 MUSTER_OK", "termination rank 1 retry"},
        {"c", NOTICE_MIGRATE, 60000, 1, "@500:ack #1 MUSTER_OK", "termination rank 1 retry"},
        {"d", NOTICE_KIND_COUNT + 7, -1, 1, "@500:ack #1 MUSTER_OK=1",
         "termination rank 1; freeze r1 termination m0,1,2"},
    };

    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct wire_msg m = {.type = WIRE_NOTICE};
        m.u.notice = (struct wire_notice){.id = table[i].id,
                                          .kind = table[i].kind,
                                          .source = "op",
                                          .left_ms = table[i].left_ms,
                                          .text = "",
                                          .rank = table[i].rank};
        core_tool(f, m, 1);
        assert_answers(f, table[i].answer);
        assert_events(f, table[i].events);
    }
}

/* R7.1 */
static void a_notice_without_a_deadline_gets_the_usual_thirty_seconds(void **state)
{
    struct core_fixture *f = *state;

    core_notice(f, 1, "n1", -1);
    assert_int_equal(core_row(f, RECORD_ROUND)->u.round.deadline_boot_ms,
                     f->now + GRACE_DEFAULT_MS);
}

static void the_earliest_of_several_notices_counts(void **state)
{
    struct core_fixture *f = *state;

    core_notice(f, 1, "n1", 60000);
    core_notice(f, 2, "n2", 20000);
    assert_events(f, "termination r1 rank 2"); /* it joined the open round */
    assert_answers(f, "2:ack #2 MUSTER_OK=1");
    assert_int_equal(core_row(f, RECORD_ROUND)->u.round.deadline_boot_ms, f->now + 20000);
    core_notice(f, 0, "n3", 50000);
    assert_int_equal(core_row(f, RECORD_ROUND)->u.round.deadline_boot_ms, f->now + 20000);
}

/* R7.3 */
static void a_cancelled_notice_is_no_cause_before_the_freeze(void **state)
{
    struct core_fixture *f = *state;

    core_restart(f, false); /* the freeze waits for the nodes to come back */
    core_hello(f, 1);
    core_notice(f, 1, "n1", 60000);
    assert_events(f, "termination rank 1");
    core_cancel(f, 1, "n1");
    assert_core(f, "+notice n1 cancelled; +job; +event 5; !5 notice cancelled rank 1; "
                   "+job; +node 1 restored #3; 1:ack #3 MUSTER_OK");
    core_hello(f, 0);
    core_hello(f, 2);
    core_pass(f, 2 * START_FREEZE_MS);
    assert_events(f, "");
    core_cancel(f, 1, "n1");
    assert_events(f, "");
}

static void a_cancel_after_the_freeze_does_not_stop_the_round(void **state)
{
    struct core_fixture *f = *state;

    core_notice(f, 1, "n1", 60000);
    core_cancel(f, 1, "n1");
    assert_events(f, "notice cancelled rank 1");
    core_report_all(f, 1, 4);
    assert_events(f, "decision r1 termination S4 m0w,1,2");
    core_save(f, 0, 1, 4);
    assert_events(f, "commit r1 termination S4 c1 rank 0");
}

static void a_notice_for_a_job_that_is_over_says_so(void **state)
{
    struct core_fixture *f = *state;
    struct wire_msg m = {.type = WIRE_NOTICE};

    for (int n = 0; n < 3; n++)
        core_leave(f, n, LEAVE_FINISHED, 0);
    m.u.notice = (struct wire_notice){
        .id = "n1", .kind = NOTICE_USER, .source = "op", .left_ms = -1, .text = "", .rank = 0};
    core_tool(f, m, 7);
    assert_answers(f, "@500:ack #7 MUSTER_E_NOT_FOUND");
    assert_string_equal(core_sent(f, 500, WIRE_ACK)->u.ack.text,
                        "job 'train' is not running (its last process left), so nobody is there to "
                        "be told; `muster status --job train` shows it");
}

static void tool_cancels(struct core_fixture *f, const char *id, uint64_t request)
{
    struct wire_msg cancel = {.type = WIRE_CANCEL, .u.cancel.id = id};

    core_tool(f, cancel, request);
}

static void a_notice_that_comes_back_too_late_keeps_the_round_that_was_opened_for_it(void **state)
{
    struct core_fixture *f = *state;

    core_notice(f, 1, "n1", 60000);
    assert_int_equal(core_row(f, RECORD_NOTICE)->u.notice.round, 1);
    core_cancel(f, 1, "n1"); /* the node's own: nothing is asked of it */
    assert_answers(f, "1:ack #3 MUSTER_OK=1");
    assert_int_equal(core_row(f, RECORD_NOTICE)->u.notice.state, RECORD_NOTICE_CANCELLED);
    assert_int_equal(core_row(f, RECORD_NOTICE)->u.notice.round, 1);
}

/* R7.3 */
static void a_tool_that_cancels_too_late_is_told_so_each_time_it_asks(void **state)
{
    struct core_fixture *f = *state;

    core_notice(f, 1, "n1", 60000);
    for (int i = 0; i < 2; i++) { /* a lost answer: the tool asks again */
        tool_cancels(f, "n1", 7);
        assert_answers(f, "@500:ack #7 MUSTER_E_ENDING=1");
        assert_non_null(strstr(core_sent(f, 500, WIRE_ACK)->u.ack.text, "round 1"));
        assert_non_null(strstr(core_sent(f, 500, WIRE_ACK)->u.ack.text, "muster why round 1"));
    }
    core_report_all(f, 1, 4);
    core_save(f, 0, 1, 4); /* the generation ends */
    tool_cancels(f, "n1", 8);
    assert_answers(f, "@500:ack #8 MUSTER_E_ENDING=1");
    assert_events(f, "");
}

static void a_served_notice_cannot_be_cancelled_and_the_tool_is_told_so(void **state)
{
    struct core_fixture *f = *state;

    core_notice(f, 1, "n1", 60000);
    core_report_all(f, 1, 4);
    core_save(f, 0, 1, 4);
    tool_cancels(f, "n1", 7);
    assert_answers(f, "@500:ack #7 MUSTER_E_ENDING=1");
    assert_int_equal(core_job(f)->notices->state, RECORD_NOTICE_SERVED);
}

/* R7.3 */
static void a_cancel_between_two_attempts_comes_in_time(void **state)
{
    struct core_fixture *f = *state;

    core_notice(f, 1, "n1", 60000);
    core_restart(f, false); /* the round is aborted; the next waits for the nodes to come back */
    core_hello(f, 1);
    tool_cancels(f, "n1", 7);
    assert_answers(f, "@500:ack #7 MUSTER_OK=1");
    core_hello(f, 0);
    core_hello(f, 2);
    core_pass(f, 2 * START_FREEZE_MS);
    assert_events(f, "");
    core_notice(f, 1, "n1", -1); /* what was withdrawn and comes again is another matter */
    assert_int_equal(core_row(f, RECORD_NOTICE)->u.notice.round, 2);
}

static void one_of_two_notices_may_be_cancelled(void **state)
{
    struct core_fixture *f = *state;

    core_restart(f, false);
    core_hello(f, 1);
    core_notice(f, 1, "n1", 30000);
    core_notice(f, 1, "n2", 90000);
    core_cancel(f, 1, "n1");
    core_hello(f, 0);
    core_hello(f, 2);
    assert_events(f, "freeze r1 termination m0,1,2");
    assert_int_equal(core_row(f, RECORD_ROUND)->u.round.deadline_boot_ms, f->now + 90000);
}

/* R7.2 */
static void a_notice_that_is_issued_anew_counts_again(void **state)
{
    struct core_fixture *f = *state;

    core_restart(f, false);
    core_hello(f, 1);
    core_notice(f, 1, "n1", 60000);
    core_cancel(f, 1, "n1");
    assert_int_equal(core_event(f, EVENT_NOTICE_CANCELLED)->incarnation, f->nodes[1].incarnation);
    assert_int_equal(notice_deadline(core_job(f)), 0);
    core_notice(f, 1, "n1", 90000);
    assert_events(f, "termination rank 1");
    assert_int_equal(core_row(f, RECORD_NOTICE)->u.notice.state, RECORD_NOTICE_ACTIVE);
    assert_int_equal(notice_deadline(core_job(f)), f->now + 90000);
    core_hello(f, 0);
    core_hello(f, 2);
    assert_events(f, "freeze r1 termination m0,1,2");
}

static void what_hello_repeats_of_a_withdrawn_notice_is_not_a_new_one(void **state)
{
    struct core_fixture *f = *state;
    struct wire_msg cancel = {.type = WIRE_CANCEL, .u.cancel.id = "n1"};
    struct wire_notice_fact fact = {
        .id = "n1", .kind = NOTICE_PREEMPT, .source = "s", .left_ms = 5000, .text = ""};

    core_restart(f, false);
    core_hello(f, 1);
    core_notice(f, 1, "n1", 60000);
    core_tool(f, cancel, 1); /* the node has not heard of it */
    assert_int_equal(core_event(f, EVENT_NOTICE_CANCELLED)->incarnation, 0);
    core_hello_telling(f, 1, &fact);
    assert_events(f, "");
    assert_false(notice_any_active(core_job(f)));
}

/* R7.2 */
static void an_earlier_deadline_of_a_known_notice_counts_and_a_later_one_does_not(void **state)
{
    struct core_fixture *f = *state;

    core_notice(f, 1, "n1", 60000);
    core_notice(f, 1, "n1", 90000);
    assert_events(f, "");
    core_notice(f, 1, "n1", -1);
    assert_events(f, "");
    core_notice(f, 2, "n1", 20000); /* it names several ranks */
    assert_events(f, "termination r1 rank 1");
    assert_int_equal(core_row(f, RECORD_NOTICE)->u.notice.rank, 1);
    assert_int_equal(core_row(f, RECORD_ROUND)->u.round.deadline_boot_ms, f->now + 20000);
    core_report_all(f, 1, 4);
    core_save(f, 0, 1, 4);
    core_notice(f, 1, "n1", 10);
    assert_events(f, ""); /* served */
}

/* R7.2 */
static void a_notice_that_ends_nothing_becomes_a_termination_when_its_kind_does(void **state)
{
    struct core_fixture *f = *state;
    struct wire_msg m = {.type = WIRE_NOTICE};

    m.u.notice = (struct wire_notice){
        .id = "a", .kind = NOTICE_MIGRATE, .source = "op", .left_ms = 60000, .text = "", .rank = 1};
    core_tool(f, m, 1);
    assert_events(f, "termination rank 1 retry");
    m.u.notice.kind = NOTICE_PREEMPT;
    m.u.notice.left_ms = 90000;
    m.u.notice.flags = NOTICE_FLAG_AT_ONCE;
    core_tool(f, m, 2);
    assert_events(f, "termination rank 1; freeze r1 termination m0,1,2");
    m.u.notice.kind = NOTICE_MIGRATE;
    m.u.notice.left_ms = 10;
    core_tool(f, m, 3);
    assert_events(f, "");
}

/* R7.5 */
static void notices_are_bounded_and_those_of_tools_leave_room_for_nodes(void **state)
{
    struct core_fixture *f = *state;
    char id[24];

    core_notice(f, 1, "n", 600000); /* joined by all that follow */
    for (int i = 0; i <= NOTICES_TOOLS_MAX; i++) {
        struct wire_msg m = {.type = WIRE_NOTICE};
        snprintf(id, sizeof id, "t%d", i);
        m.u.notice = (struct wire_notice){
            .id = id, .kind = NOTICE_MIGRATE, .source = "op", .left_ms = 60000, .text = ""};
        core_tool(f, m, (uint64_t)i + 1);
        assert_int_equal(core_sent(f, 500, WIRE_ACK)->u.ack.code,
                         i < NOTICES_TOOLS_MAX ? MUSTER_OK : MUSTER_E_BUSY);
    }
    assert_non_null(strstr(core_sent(f, 500, WIRE_ACK)->u.ack.text, "--cancel"));
    core_notice(f, 2, "mine", 300000);
    assert_events(f, "termination r1 rank 2");
    struct wire_msg cancel = {.type = WIRE_CANCEL, .u.cancel.id = "t0"};
    core_tool(f, cancel, 1000); /* a withdrawn one makes room */
    struct wire_msg again = {.type = WIRE_NOTICE};
    again.u.notice = (struct wire_notice){
        .id = "t0", .kind = NOTICE_MIGRATE, .source = "op", .left_ms = 60000, .text = ""};
    core_tool(f, again, 1001);
    assert_int_equal(core_sent(f, 500, WIRE_ACK)->u.ack.code, MUSTER_OK);
}

static void a_node_that_tells_without_end_is_answered_and_the_withdrawn_go_first(void **state)
{
    struct core_fixture *f = *state;
    struct job *job = core_job(f);
    size_t count = 0;

    core_notice(f, 1, "first", 600000);
    core_cancel(f, 1, "first");
    for (int i = 1; i < NOTICES_JOB_MAX; i++) { /* as 8191 messages would */
        struct notice *more = calloc(1, sizeof *more);
        assert_non_null(more);
        snprintf(more->id, sizeof more->id, "n%d", i);
        more->incarnation = f->nodes[1].incarnation;
        more->kind = NOTICE_MIGRATE;
        more->next = job->notices;
        job->notices = more;
    }
    core_notice(f, 1, "last", 60000);
    assert_answers(f, "1:ack #4 MUSTER_OK=1");
    core_notice(f, 1, "more", 60000);
    assert_answers(f, "1:ack #5 MUSTER_E_BUSY");
    for (const struct notice *at = job->notices; at != NULL; at = at->next) {
        assert_string_not_equal(at->id, "first");
        count++;
    }
    assert_int_equal(count, NOTICES_JOB_MAX);
}

/* Who misses the event, for it came below what the journal keeps, hears of it anyway. */
static void a_snapshot_tells_a_node_which_of_its_notices_an_operator_took_back(void **state)
{
    struct core_fixture *f = *state;
    const struct wire_snapshot *snapshot;

    core_restart(f, false); /* the freeze waits for the nodes to come back */
    core_hello(f, 1);
    core_hello(f, 2);
    core_notice(f, 1, "n1", 60000);
    core_notice(f, 1, "n2", 60000);
    core_notice(f, 2, "of rank 2", 60000);
    tool_cancels(f, "n1", 7);
    tool_cancels(f, "of rank 2", 8);
    core_cancel(f, 1, "n2"); /* its own: it knows, and may have issued it again */
    for (int start = 0; start < 2; start++) {
        core_restart(f, false);
        f->nodes[1].applied_seq = 0;
        core_hello(f, 1);
        snapshot = &core_sent(f, f->nodes[1].route, WIRE_SNAPSHOT)->u.snapshot;
        assert_int_equal(snapshot->withdrawn.count, 1);
        assert_string_equal(snapshot->withdrawn.items[0].id, "n1");
    }
    core_notice(f, 1, "n1", 60000); /* it counts again */
    f->nodes[1].applied_seq = 0;
    core_hello(f, 1);
    assert_int_equal(core_sent(f, f->nodes[1].route, WIRE_SNAPSHOT)->u.snapshot.withdrawn.count, 0);
}

static void a_start_does_not_forget_that_a_notice_was_withdrawn(void **state)
{
    struct core_fixture *f = *state;
    struct wire_msg cancel = {.type = WIRE_CANCEL, .u.cancel.id = "n1"};
    struct wire_notice_fact fact = {
        .id = "n1", .kind = NOTICE_PREEMPT, .source = "s", .left_ms = 5000, .text = ""};

    core_restart(f, false);
    core_hello(f, 1);
    core_notice(f, 1, "n1", 60000);
    core_tool(f, cancel, 1);
    core_restart(f, false);
    core_hello_telling(f, 1, &fact);
    assert_events(f, "");
    assert_false(notice_any_active(core_job(f)));
}

static struct wire_msg of_a_tool(const char *id, int64_t rank, int64_t left_ms, const char *text)
{
    struct wire_msg m = {.type = WIRE_NOTICE};

    m.u.notice = (struct wire_notice){.id = id,
                                      .kind = NOTICE_USER,
                                      .source = "op",
                                      .left_ms = left_ms,
                                      .text = text,
                                      .rank = rank};
    return m;
}

/* Its host may go: the others would make a save and leave for nothing (R7.4). */
static void a_rank_that_has_finished_is_not_ended_by_a_notice(void **state)
{
    struct core_fixture *f = *state;

    core_leave(f, 0, LEAVE_FINISHED, 0);
    core_tool(f, of_a_tool("op-1", 0, 60000, ""), 1);
    assert_answers(f, "@500:ack #1 MUSTER_E_NOT_FOUND");
    assert_events(f, "");
    core_restart(f, false);
    core_hello(f, 1);
    core_hello(f, 2);
    core_tool(f, of_a_tool("op-1", 0, -1, ""), 2);
    assert_answers(f, "@500:ack #2 MUSTER_E_NOT_FOUND");
    assert_events(f, "");
    assert_false(notice_any_active(core_job(f)));
    core_tool(f, of_a_tool("op-2", 1, -1, ""), 3);
    assert_true(notice_any_active(core_job(f)));
}

/* Nobody is left to withdraw what a tool told of it (R7.4). */
static void a_rank_that_finishes_takes_what_a_tool_told_of_it_along(void **state)
{
    struct core_fixture *f = *state;

    plan_saves_add(&core_job(f)->saves, 40);
    core_job(f)->step_p95_ms = 100;
    core_tool(f, of_a_tool("op-1", 0, 3600000, ""), 1);
    assert_events(f, "termination rank 0");
    core_leave(f, 1, LEAVE_FINISHED, 0);
    assert_true(notice_any_active(core_job(f)));
    core_leave(f, 0, LEAVE_FINISHED, 0);
    assert_events(f, "notice cancelled rank 0");
    assert_false(notice_any_active(core_job(f)));
}

/* It came and went before the others, and there is another life of it, on a host of its own. */
static void a_rank_that_came_back_is_told_of_its_end(void **state)
{
    struct core_fixture *f = *state;

    core_hello(f, 0);
    core_restored(f, 0, 0, 0);
    core_leave(f, 0, LEAVE_FINISHED, 0);
    core_tool(f, of_a_tool("op-1", 0, 3600000, ""), 1);
    assert_answers(f, "@500:ack #1 MUSTER_E_NOT_FOUND");
    f->nodes[0].incarnation += 1000;
    f->nodes[0].generation = 0;
    core_hello(f, 0);
    core_tool(f, of_a_tool("op-2", 0, 3600000, ""), 2);
    assert_answers(f, "@500:ack #2 MUSTER_OK");
    core_tick(f);
    assert_true(notice_any_active(core_job(f)));
}

/* The notice was lost on its way and is repeated, behind the LEAVE (R7.4). */
static void what_a_node_told_before_it_finished_is_answered_and_dropped(void **state)
{
    struct core_fixture *f = *state;

    core_notice(f, 0, "n1", 60000);
    core_leave(f, 0, LEAVE_FINISHED, 0);
    assert_false(notice_any_active(core_job(f)));
    core_notice(f, 0, "n1", 50000);
    core_notice(f, 0, "n2", 50000);
    assert_events(f, "");
    assert_false(notice_any_active(core_job(f)));
}

static void each_answer_to_a_heartbeat_says_which_end_comes_first(void **state)
{
    struct core_fixture *f = *state;
    const struct wire_alive *alive;

    core_heartbeat(f, 1);
    assert_int_equal(core_sent(f, f->nodes[1].route, WIRE_ALIVE)->u.alive.notice_kind, NOTICE_NONE);
    f->plans = true;
    core_job(f)->step_p95_ms = 100;
    plan_saves_add(&core_job(f)->saves, 40);
    core_notice(f, 0, "n1", 7200000);
    core_notice(f, 2, "n2", 3600000);
    core_heartbeat(f, 1);
    alive = &core_sent(f, f->nodes[1].route, WIRE_ALIVE)->u.alive;
    assert_int_equal(alive->notice_kind, NOTICE_PREEMPT);
    assert_int_equal(alive->notice_rank, 2);
    assert_int_equal(alive->notice_left_ms, 3600000);
    assert_in_range(alive->notice_save_ms, 3500000, 3600000);
    core_cancel(f, 2, "n2");
    core_heartbeat(f, 1);
    alive = &core_sent(f, f->nodes[1].route, WIRE_ALIVE)->u.alive;
    assert_int_equal(alive->notice_rank, 0);
    assert_int_equal(alive->notice_left_ms, 7200000);
}

/* Its last HELLO came late, with what it had told (R7.4, R2.6). */
static void what_a_rank_that_has_finished_tells_again_falls_in_the_same_input(void **state)
{
    struct core_fixture *f = *state;
    struct wire_notice_fact fact = {
        .id = "n1", .kind = NOTICE_PREEMPT, .source = "s", .left_ms = 50000, .text = ""};

    core_leave(f, 0, LEAVE_FINISHED, 0);
    core_error(f, 1, 43, "no memory");
    core_hello_telling(f, 0, &fact);
    assert_non_null(core_row(f, RECORD_NOTICE));
    assert_false(notice_any_active(core_job(f)));
}

static void an_operators_time_that_is_too_short_to_save_in_is_said_to_be_so(void **state)
{
    struct core_fixture *f = *state;
    const struct record_notice *row;

    core_tool(f, of_a_tool("op-1", 1, 1500, ""), 1);
    row = &core_row(f, RECORD_NOTICE)->u.notice;
    assert_int_equal(row->left_ms, -1);
    assert_string_equal(row->text, "(1.5 s were told: too short to save in)");
    core_tool(f, of_a_tool("op-2", 2, 0, "a new disk"), 2);
    assert_string_equal(core_row(f, RECORD_NOTICE)->u.notice.text,
                        "a new disk (0.0 s were told: too short to save in)");
    core_tool(f, of_a_tool("op-3", 2, LEAST_LEAD_MS, "a new disk"), 3);
    assert_string_equal(core_row(f, RECORD_NOTICE)->u.notice.text, "a new disk");
}

#define T(test, setup) cmocka_unit_test_setup_teardown(test, setup, core_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_notice_of_a_tool_is_checked_and_some_kinds_end_nothing, core_run_three),
        T(a_notice_without_a_deadline_gets_the_usual_thirty_seconds, core_run_three),
        T(the_earliest_of_several_notices_counts, core_run_three),
        T(a_cancelled_notice_is_no_cause_before_the_freeze, core_run_three),
        T(a_cancel_after_the_freeze_does_not_stop_the_round, core_run_three),
        T(a_notice_for_a_job_that_is_over_says_so, core_run_three),
        T(a_notice_that_comes_back_too_late_keeps_the_round_that_was_opened_for_it, core_run_three),
        T(a_tool_that_cancels_too_late_is_told_so_each_time_it_asks, core_run_three),
        T(a_served_notice_cannot_be_cancelled_and_the_tool_is_told_so, core_run_three),
        T(a_cancel_between_two_attempts_comes_in_time, core_run_three),
        T(one_of_two_notices_may_be_cancelled, core_run_three),
        T(a_notice_that_is_issued_anew_counts_again, core_run_three),
        T(what_hello_repeats_of_a_withdrawn_notice_is_not_a_new_one, core_run_three),
        T(an_earlier_deadline_of_a_known_notice_counts_and_a_later_one_does_not, core_run_three),
        T(a_notice_that_ends_nothing_becomes_a_termination_when_its_kind_does, core_run_three),
        T(notices_are_bounded_and_those_of_tools_leave_room_for_nodes, core_run_three),
        T(a_node_that_tells_without_end_is_answered_and_the_withdrawn_go_first, core_run_three),
        T(a_snapshot_tells_a_node_which_of_its_notices_an_operator_took_back, core_run_three),
        T(a_start_does_not_forget_that_a_notice_was_withdrawn, core_run_three),
        T(a_rank_that_has_finished_is_not_ended_by_a_notice, core_run_three),
        T(a_rank_that_finishes_takes_what_a_tool_told_of_it_along, core_run_three),
        T(a_rank_that_came_back_is_told_of_its_end, core_open_two),
        T(what_a_node_told_before_it_finished_is_answered_and_dropped, core_run_three),
        T(each_answer_to_a_heartbeat_says_which_end_comes_first, core_run_three),
        T(what_a_rank_that_has_finished_tells_again_falls_in_the_same_input, core_run_three),
        T(an_operators_time_that_is_too_short_to_save_in_is_said_to_be_so, core_run_three),
    };

    return cmocka_run_group_tests_name("core_notice", tests, NULL, NULL);
}
