/* The broker's core: how a freeze and a decision say who takes part, and when what members report
 * comes on record. PROTOCOL.md R5.3, R5.6. */
#include "tests/support/core_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static void finish(struct core_fixture *f, int n)
{
    core_leave(f, n, LEAVE_FINISHED, 0);
}

static size_t rows_of_parts(const struct core_fixture *f)
{
    size_t count = 0;

    for (size_t i = 0; i < f->out.count; i++)
        count += f->out.items[i].kind == ACTION_PERSIST &&
                 f->out.items[i].record.kind == RECORD_PARTICIPANT;
    return count;
}

/* --- who takes part --------------------------------------------------------------------------- */

/* R5.6 */
static void an_event_has_no_names_when_all_ranks_take_part(void **state)
{
    struct core_fixture *f = *state;

    core_save_now(f, "a");
    const struct wire_event *event = core_event(f, EVENT_FREEZE);
    assert_int_equal(event->members.count, 0);
    assert_int_equal(event->flags, EVENT_FLAG_OTHERS);
    for (int n = 0; n < 4; n++)
        core_report(f, n, 1, 5, 5);
    event = core_event(f, EVENT_DECISION);
    assert_int_equal(event->members.count, 0);
    assert_int_equal(event->flags, EVENT_FLAG_OTHERS);
    assert_true(event->incarnation == f->nodes[0].incarnation); /* it writes */
    struct wire_member members[4];
    for (int n = 0; n < 4; n++)
        members[n] = (struct wire_member){(uint64_t)n, f->nodes[n].incarnation, 0};
    assert_true(event->nonce == wire_round_nonce(members, 4));
}

/* R5.6 */
static void who_takes_no_part_is_named(void **state)
{
    struct core_fixture *f = *state;

    finish(f, 0);
    core_save_now(f, "a");
    const struct wire_event *event = core_event(f, EVENT_FREEZE);
    assert_int_equal(event->members.count, 1);
    assert_true(event->members.items[0].incarnation == f->nodes[0].incarnation);
    for (int n = 1; n < 4; n++)
        core_report(f, n, 1, 5, 5);
    event = core_event(f, EVENT_DECISION);
    assert_int_equal(event->members.count, 1);
    assert_true(event->incarnation == f->nodes[1].incarnation);
}

/* R5.6 */
static void members_are_named_where_they_are_fewer(void **state)
{
    struct core_fixture *f = *state;

    for (int n = 1; n < 4; n++)
        finish(f, n);
    core_save_now(f, "a");
    core_report(f, 0, 1, 5, 5);
    const struct wire_event *event = core_event(f, EVENT_DECISION);
    assert_int_equal(event->flags, 0);
    assert_int_equal(event->members.count, 1);
    assert_true(event->members.items[0].incarnation == f->nodes[0].incarnation);
    assert_int_equal(event->members.items[0].flags, MEMBER_FLAG_WRITER);
}

/* R5.6 */
static void a_former_life_of_a_rank_is_named(void **state)
{
    struct core_fixture *f = *state;

    core_fixture_close(f);
    core_fixture_open(f, 4, LAYOUT_REPLICATED);
    for (int n = 0; n < 4; n++)
        core_hello(f, n);
    uint64_t former = f->nodes[2].incarnation;
    f->nodes[2].silent = true;
    core_pass(f, LOST_MS + HEARTBEAT_MS);
    f->nodes[2] = (struct core_node){
        .role = ROLE_WORKER, .rank = 2, .incarnation = former + 1000, .route = 102};
    core_hello(f, 2);
    for (int n = 0; n < 4; n++)
        core_restored(f, n, 0, 0);
    core_save_now(f, "a");
    const struct wire_event *event = core_event(f, EVENT_FREEZE);
    assert_non_null(event);
    assert_int_equal(event->members.count, 1);
    assert_true(event->members.items[0].incarnation == former);
}

/* R5.6 */
static void in_a_sharded_job_no_writer_is_named_for_each_member_is_one(void **state)
{
    struct core_fixture *f = *state;

    core_save_now(f, "a");
    for (int n = 0; n < 4; n++)
        core_report(f, n, 1, 5, 5);
    assert_events(f, "decision r1 operator S5 m0w,1w,2w,3w");
    assert_true(core_event(f, EVENT_DECISION)->incarnation == 0);
}

/* R5.6: events that it asks for later may be of before it came. */
static void who_is_let_in_while_a_launch_runs_gets_a_snapshot(void **state)
{
    struct core_fixture *f = *state;

    f->nodes[5].role = ROLE_EVALUATOR;
    f->nodes[5].rank = 0;
    core_save_now(f, "a");
    core_hello(f, 5);
    assert_true(core_sent(f, f->nodes[5].route, WIRE_WELCOME)->u.welcome.snapshot_follows);
}

/* --- what comes on record when ---------------------------------------------------------------- */

/* R5.3 */
static void reports_come_on_record_with_the_decision(void **state)
{
    struct core_fixture *f = *state;

    core_save_now(f, "a");
    assert_int_equal(rows_of_parts(f), 0);
    for (int n = 0; n < 3; n++) {
        core_report(f, n, 1, 5, 5);
        assert_core(f, "");
    }
    core_report(f, 3, 1, 6, 5);
    assert_core(f, "+round 1 decided; +checkpoint 1 writing; +part 1.0; +part 1.1; +part 1.2; "
                   "+part 1.3; +job; +event 5; !5 decision r1 operator S6 m0w,1,2,3");
    assert_int_equal(core_row(f, RECORD_PARTICIPANT)->u.participant.begun, 6);
}

/* R5.3 */
static void reports_come_on_record_with_the_abort_that_names_who_is_missing(void **state)
{
    struct core_fixture *f = *state;

    core_save_now(f, "a");
    core_report(f, 0, 1, 5, 5);
    core_pass(f, FREEZE_MS);
    assert_int_equal(core_event(f, EVENT_ABORT)->rank, 1);
    assert_int_equal(rows_of_parts(f), 4);
    for (size_t i = 0; i < f->out.count; i++) {
        const struct record *row = &f->out.items[i].record;
        if (f->out.items[i].kind == ACTION_PERSIST && row->kind == RECORD_PARTICIPANT)
            assert_int_equal(row->u.participant.reported_ms >= 0, row->u.participant.rank == 0);
    }
}

/* --- who speaks otherwise --------------------------------------------------------------------- */

static void a_process_with_an_older_library_is_refused_in_one_sentence(void **state)
{
    struct core_fixture *f = *state;
    struct wire_msg hello = core_msg(f, 0, WIRE_HELLO);

    hello.up.incarnation = 7777;
    hello.u.hello = (struct wire_hello){.speaks = WIRE_SPEAKS - 1,
                                        .world_size = 4,
                                        .host = "host",
                                        .layout = LAYOUT_REPLICATED,
                                        .checkpoint_dir = "/ckpt"};
    core_feed(f, 300, &hello);
    assert_core(f, "@300:refused MUSTER_E_VERSION");
    assert_non_null(
        strstr(core_sent(f, 300, WIRE_REFUSED)->u.refused.text, "libmuster of this musterd"));
}

int main(void)
{
#define T(name, setup) cmocka_unit_test_setup_teardown(name, setup, core_close)
    const struct CMUnitTest tests[] = {
        T(an_event_has_no_names_when_all_ranks_take_part, core_run_four),
        T(who_takes_no_part_is_named, core_run_four),
        T(members_are_named_where_they_are_fewer, core_run_four),
        T(a_former_life_of_a_rank_is_named, core_run_four),
        T(in_a_sharded_job_no_writer_is_named_for_each_member_is_one, core_run_four_sharded),
        T(who_is_let_in_while_a_launch_runs_gets_a_snapshot, core_run_four),
        T(reports_come_on_record_with_the_decision, core_run_four),
        T(reports_come_on_record_with_the_abort_that_names_who_is_missing, core_run_four),
        T(a_process_with_an_older_library_is_refused_in_one_sentence, core_run_four),
    };

    return cmocka_run_group_tests_name("core_membership", tests, NULL, NULL);
}
