/* A program that saves by itself: it is told that it is its turn, saves, and says so (R5.8). The
 * time that this takes is the save's. */
#include "client/node/node_private.h"
#include "node/agent/agent_state.h"
#include "tests/support/lone_node.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <string.h>

#define BYTES 1000

static _Atomic int64_t turns;    /* so often the program was told to save */
static _Atomic bool writes;      /* it is in a save that lasts */
static _Atomic bool goes_on;     /* ... and trains on without it */
static _Atomic bool says_why;    /* ... and tells why */
static _Atomic int64_t returned; /* boundaries that saved */
static uint64_t my_flags;        /* in the decision */

static bool boundary(int64_t done, bool ask, struct agent_ended *ret_ended)
{
    const struct agent_end end = {.done = done, .ask = ask};

    lone.run_status = node_end_step(lone.node, &end, ret_ended, &lone.error);
    return lone.run_status == MUSTER_OK;
}

static bool save_by_itself(int64_t done)
{
    struct agent_ended ended;

    atomic_fetch_add(&turns, 1);
    while (atomic_load(&writes))
        poll(NULL, 0, 1);
    if (atomic_load(&says_why))
        muster_node_save_fail(lone.node, 3, "CUDA out of memory");
    if (atomic_load(&goes_on))
        return true;
    if (!boundary(done, false, &ended))
        return false;
    atomic_fetch_add(&returned, ended.saves);
    return true;
}

static void *program(void *arg)
{
    struct agent_ended ended;

    (void)arg;
    lone.open_status = muster_node_open(&lone.options, &lone.node, &lone.error);
    for (int64_t done = 1; lone.open_status == MUSTER_OK && !atomic_load(&lone.stop); done++) {
        atomic_store(&lone.in_step, (int)done);
        poll(NULL, 0, 1);
        if (!boundary(done, true, &ended) || (ended.saves && !save_by_itself(done)))
            break;
    }
    lone.close_status = muster_node_close(&lone.node, 0, NULL);
    return NULL;
}

static int setup(void **state)
{
    atomic_store(&turns, 0);
    atomic_store(&returned, 0);
    atomic_store(&writes, true);
    atomic_store(&goes_on, false);
    atomic_store(&says_why, false);
    my_flags = MEMBER_FLAG_WRITER;
    return lone_setup(state);
}

static void start(void)
{
    assert_int_equal(pthread_create(&lone.thread, NULL, program, NULL), 0);
    lone_welcome_and_start();
    lone_await_steps(3);
}

static void say(enum wire_event_kind kind, uint64_t round, int64_t step)
{
    const struct wire_member me = {.incarnation = lone.incarnation, .flags = my_flags};

    lone_say((struct wire_event){.kind = kind,
                                 .round = round,
                                 .cause = CAUSE_OPERATOR,
                                 .step = step,
                                 .rank = -1,
                                 .members = {&me, 1}});
}

/* Returns S. The program has been told to save it, and the broker that it stands there. */
static int64_t come_to_its_turn(uint64_t round)
{
    int64_t step;

    say(EVENT_FREEZE, round, -1);
    step = lone_await(WIRE_REPORT)->u.report.begun + 1;
    say(EVENT_DECISION, round, step);
    assert_int_equal(lone_await(WIRE_AT_STEP)->u.at_step.round, round);
    return step;
}

static void await_turns(int64_t count)
{
    int64_t until_ms = lone_now_ms() + LONE_DEADLINE_MS;

    while (atomic_load(&turns) < count) {
        assert_true(lone_now_ms() < until_ms);
        poll(NULL, 0, 1);
    }
}

static void its_time_and_progress_are_those_of_the_save(void **state)
{
    int64_t since_ms, told_ms;

    (void)state;
    start();
    come_to_its_turn(1);
    await_turns(1);
    since_ms = lone_now_ms();
    muster_node_save_progress(lone.node, BYTES);
    lone_await(WIRE_HEARTBEAT);
    while (lone.heard.u.heartbeat.saving_bytes < BYTES)
        lone_await(WIRE_HEARTBEAT);
    assert_int_equal(lone.heard.u.heartbeat.saving_round, 1);
    told_ms = lone_now_ms() - since_ms;
    atomic_store(&writes, false);
    assert_true((int64_t)lone_await(WIRE_SAVED)->u.saved.save_ms >= told_ms);
    say(EVENT_ABORT, 1, -1); /* no manifest to be written */
    lone_await_leave();
    assert_int_equal(atomic_load(&turns), 1);
    assert_int_equal(atomic_load(&returned), 1);
}

static void a_program_that_goes_on_without_the_save_is_told_of(void **state)
{
    (void)state;
    start();
    come_to_its_turn(1);
    await_turns(1);
    atomic_store(&goes_on, true);
    atomic_store(&writes, false);
    assert_non_null(strstr(lone_await(WIRE_SAVE_FAILED)->u.save_failed.text, "went on without"));
    say(EVENT_ABORT, 1, -1);
    lone_await_leave();
    assert_int_equal(atomic_load(&returned), 0);
    assert_int_equal(lone.saves_told, 0);
}

static void why_a_programs_own_save_failed_is_told_once(void **state)
{
    (void)state;
    start();
    come_to_its_turn(1);
    await_turns(1);
    atomic_store(&goes_on, true);
    atomic_store(&says_why, true);
    atomic_store(&writes, false);
    assert_non_null(
        strstr(lone_await(WIRE_SAVE_FAILED)->u.save_failed.text, ": CUDA out of memory"));
    atomic_store(&says_why, false);
    say(EVENT_ABORT, 1, -1);
    come_to_its_turn(2);
    assert_non_null(strstr(lone_await(WIRE_SAVE_FAILED)->u.save_failed.text, "went on without"));
    say(EVENT_ABORT, 2, -1);
    lone_await_leave();
}

static void
a_save_whose_round_was_aborted_meanwhile_does_not_count_and_the_next_one_does(void **state)
{
    int64_t step;

    (void)state;
    start();
    step = come_to_its_turn(1);
    await_turns(1);
    say(EVENT_ABORT, 1, step);
    lone_await(WIRE_HEARTBEAT); /* the abort came before it */
    while (lone.heard.up.applied_seq < lone.seq)
        lone_await(WIRE_HEARTBEAT);
    atomic_store(&writes, false);
    come_to_its_turn(2);
    assert_int_equal(lone_await(WIRE_SAVED)->u.saved.round, 2);
    say(EVENT_ABORT, 2, -1);
    lone_await_leave();
    assert_int_equal(atomic_load(&turns), 2);
    assert_int_equal(atomic_load(&returned), 1);
    assert_int_equal(lone.saves_told, 1);
}

static void close_in_its_turn(void)
{
    start();
    come_to_its_turn(1);
    await_turns(1);
    atomic_store(&lone.stop, true);
    atomic_store(&goes_on, true);
    atomic_store(&writes, false);
}

static void a_program_that_closes_in_its_turn_has_its_state_saved(void **state)
{
    (void)state;
    close_in_its_turn();
    lone_await(WIRE_SAVED);
    say(EVENT_ABORT, 1, -1);
    lone_await_leave();
    assert_int_equal(lone.saves_told, 1);
}

static void try_again(void)
{
    lone_say((struct wire_event){.kind = EVENT_ABORT,
                                 .round = 1,
                                 .cause = CAUSE_OPERATOR,
                                 .flags = EVENT_FLAG_RETRY,
                                 .step = -1,
                                 .rank = -1});
    say(EVENT_FREEZE, 2, -1); /* the next attempt, at the step where it stands */
}

/* Its files may be torn: its state is not saved in their place. */
static void a_program_that_closes_behind_a_save_that_failed_has_nothing_saved(void **state)
{
    (void)state;
    atomic_store(&says_why, true);
    close_in_its_turn();
    assert_non_null(
        strstr(lone_await(WIRE_SAVE_FAILED)->u.save_failed.text, ": CUDA out of memory"));
    try_again();
    lone_await_leave();
    assert_int_equal(lone.reports_told, 1); /* to the first freeze alone */
    assert_int_equal(lone.saves_told, 0);
}

/* It does not await how that ends: the next attempt could choose it as writer. */
static void nor_has_one_that_was_to_write_nothing(void **state)
{
    (void)state;
    my_flags = 0;
    atomic_store(&says_why, true);
    close_in_its_turn();
    lone_await_leave();
    assert_int_equal(lone.reports_told, 1); /* to the first freeze alone */
    assert_int_equal(lone.saves_told, 0);
}

/* Where every rank takes part in what one of them writes. */
static void
a_rank_that_writes_nothing_stands_at_the_step_while_it_saves_with_the_others(void **state)
{
    (void)state;
    my_flags = 0;
    start();
    come_to_its_turn(1);
    assert_true(lone.heard.u.at_step.captured);
    await_turns(1);
    atomic_store(&writes, false);
    say(EVENT_ABORT, 1, -1);
    lone_await_leave();
    assert_int_equal(atomic_load(&turns), 1);
    assert_int_equal(atomic_load(&returned), 1);
    assert_int_equal(lone.saves_told, 0);
}

/* --- a program whose manager saves ------------------------------------------------------------ */

#define TOLD_MAX 4

static struct agent_ended told[TOLD_MAX]; /* of the steps that told of a round */
static int64_t told_at[TOLD_MAX];
static size_t told_count;

static void *managed_program(void *arg)
{
    struct agent_ended ended;

    lone.open_status = muster_node_open(&lone.options, &lone.node, &lone.error);
    for (int64_t done = 1; lone.open_status == MUSTER_OK && !atomic_load(&lone.stop); done++) {
        atomic_store(&lone.in_step, (int)done);
        lone_step_is_slow();
        if (!boundary(done, false, &ended))
            break;
        if (ended.round != 0 && told_count < TOLD_MAX) {
            told[told_count] = ended;
            told_at[told_count++] = done;
        }
    }
    lone.close_status = muster_node_close(&lone.node, 0, NULL);
    return arg;
}

/* A round of the step `ahead` of the one that the program is deep in, which the broker aborts. */
static int64_t abort_ahead(uint64_t round, int64_t ahead)
{
    int64_t step;

    say(EVENT_FREEZE, round, -1);
    step = lone_await(WIRE_REPORT)->u.report.begun + ahead;
    say(EVENT_DECISION, round, step);
    say(EVENT_ABORT, round, step);
    while (lone_await(WIRE_HEARTBEAT)->up.applied_seq < lone.seq)
        ;
    return step;
}

/* A host under load gave the training thread no time between the two events, and one rank of three
 * did not tell its program what the others had told theirs. Each step tells of its own round. */
static void a_save_that_was_aborted_in_the_step_before_it_is_told(void **state)
{
    int64_t step;

    (void)state;
    told_count = 0;
    assert_int_equal(pthread_create(&lone.thread, NULL, managed_program, NULL), 0);
    lone_welcome_and_start();
    lone_await_steps(3);
    lone_hold_in_step();
    step = abort_ahead(1, 0);
    assert_int_equal(abort_ahead(2, 2), step + 2);
    atomic_store(&lone.slow, false);
    lone_await_steps((int)step + 3);
    lone_await_leave();
    assert_int_equal(told_count, 2);
    for (size_t i = 0; i < told_count; i++) {
        assert_int_equal(told[i].round, i + 1);
        assert_int_equal(told_at[i], step + 2 * (int64_t)i);
        assert_false(told[i].saves);
        assert_false(told[i].committed);
    }
}

/* --- a program whose collective broke --------------------------------------------------------- */

static void *suspecting_program(void *arg)
{
    struct agent_ended ended;

    lone.open_status = muster_node_open(&lone.options, &lone.node, &lone.error);
    if (lone.open_status == MUSTER_OK && boundary(1, false, &ended)) {
        atomic_store(&lone.in_step, 1);
        lone.run_status = muster_node_fail_suspecting(lone.node, 3, "the collective broke",
                                                      INT64_C(10) * LONE_DEADLINE_MS, &lone.error);
    }
    lone.close_status = muster_node_close(&lone.node, 1, NULL);
    return arg;
}

static void who_suspects_another_waits_no_longer_than_for_its_error(void **state)
{
    (void)state;
    assert_int_equal(pthread_create(&lone.thread, NULL, suspecting_program, NULL), 0);
    lone_welcome_and_start();
    lone_await_steps(1);
    lone_say((struct wire_event){
        .kind = EVENT_PEER_ERROR, .rank = 1, .code = MUSTER_E_STEP, .text = "no memory"});
    lone_await(WIRE_LEAVE);
    lone_end();
    assert_int_equal(lone.run_status, MUSTER_E_PEER);
    assert_int_equal(lone.error.rank, 1);
}

/* A save that is served before the launch ends needs this rank's step to be over. */
static void who_suspects_another_does_not_hold_up_the_save_that_its_error_begins(void **state)
{
    (void)state;
    assert_int_equal(pthread_create(&lone.thread, NULL, suspecting_program, NULL), 0);
    lone_welcome_and_start();
    lone_await_steps(1);
    const struct wire_member me = {.rank = 0, .incarnation = lone.incarnation};
    lone_say((struct wire_event){.kind = EVENT_PEER_ERROR,
                                 .rank = 1,
                                 .code = MUSTER_E_STEP,
                                 .round = 1,
                                 .flags = EVENT_FLAG_ROUND_FOLLOWS,
                                 .text = "no memory"});
    lone_say((struct wire_event){.kind = EVENT_FREEZE,
                                 .round = 1,
                                 .cause = CAUSE_TERMINATION,
                                 .step = -1,
                                 .flags = EVENT_FLAG_ABORT,
                                 .members = {&me, 1}});
    assert_int_equal(lone_await(WIRE_REPORT)->u.report.begun, 1); /* told once its step is over */
    lone_say((struct wire_event){.kind = EVENT_ABORT, .round = 1, .rank = 1, .text = "no memory"});
    lone_await(WIRE_LEAVE);
    lone_end();
    assert_int_equal(lone.run_status, MUSTER_E_PEER);
    assert_int_equal(lone.error.rank, 1);
}

/* R8.4: it need not wait until the other rank could be lost. */
static void who_suspects_another_fails_once_all_others_were_heard(void **state)
{
    (void)state;
    lone.all_live = true;
    assert_int_equal(pthread_create(&lone.thread, NULL, suspecting_program, NULL), 0);
    lone_welcome_and_start();
    assert_string_equal(lone_await(WIRE_ERROR)->u.error.text, "the collective broke");
    lone_await(WIRE_LEAVE);
    lone_end();
    assert_int_equal(lone.run_status, MUSTER_E_STEP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(its_time_and_progress_are_those_of_the_save, setup,
                                        lone_teardown),
        cmocka_unit_test_setup_teardown(a_program_that_goes_on_without_the_save_is_told_of, setup,
                                        lone_teardown),
        cmocka_unit_test_setup_teardown(why_a_programs_own_save_failed_is_told_once, setup,
                                        lone_teardown),
        cmocka_unit_test_setup_teardown(
            a_save_whose_round_was_aborted_meanwhile_does_not_count_and_the_next_one_does, setup,
            lone_teardown),
        cmocka_unit_test_setup_teardown(
            a_rank_that_writes_nothing_stands_at_the_step_while_it_saves_with_the_others, setup,
            lone_teardown),
        cmocka_unit_test_setup_teardown(a_save_that_was_aborted_in_the_step_before_it_is_told,
                                        setup, lone_teardown),
        cmocka_unit_test_setup_teardown(who_suspects_another_waits_no_longer_than_for_its_error,
                                        setup, lone_teardown),
        cmocka_unit_test_setup_teardown(
            who_suspects_another_does_not_hold_up_the_save_that_its_error_begins, setup,
            lone_teardown),
        cmocka_unit_test_setup_teardown(who_suspects_another_fails_once_all_others_were_heard,
                                        setup, lone_teardown),
        cmocka_unit_test_setup_teardown(a_program_that_closes_in_its_turn_has_its_state_saved,
                                        setup, lone_teardown),
        cmocka_unit_test_setup_teardown(
            a_program_that_closes_behind_a_save_that_failed_has_nothing_saved, setup,
            lone_teardown),
        cmocka_unit_test_setup_teardown(nor_has_one_that_was_to_write_nothing, setup,
                                        lone_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
