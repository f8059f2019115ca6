/* The broker's core: a supervisor's report that a process ended. A death that is one is known in a
 * tenth of a second; a report that is false, late or of another life changes nothing. */
#include "tests/support/core_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static void tell_gone(struct core_fixture *f, uint64_t rank, uint64_t incarnation)
{
    struct wire_msg message = {.type = WIRE_GONE};

    message.u.gone = (struct wire_gone){.rank = rank, .incarnation = incarnation, .signo = 9};
    core_tool(f, message, 1);
}

static void later(struct core_fixture *f, int64_t ms)
{
    f->now += ms;
    core_tick(f);
}

static uint64_t answer_of(struct core_fixture *f)
{
    for (size_t i = 0; i < f->out.count; i++)
        if (f->out.items[i].kind == ACTION_SEND && f->out.items[i].message.type == WIRE_ACK)
            return f->out.items[i].message.u.ack.value;
    fail_msg("no ACK in: %s", core_text(f));
    return 0;
}

/* R8.4 */
static void a_death_is_known_after_one_ping_in_vain(void **state)
{
    struct core_fixture *f = *state;

    tell_gone(f, 1, f->nodes[1].incarnation);
    assert_int_equal(answer_of(f), 1);
    later(f, FLIGHT_MS - 1);
    assert_answers(f, "");
    later(f, 1);
    assert_answers(f, "1:PING");
    assert_int_equal(core_wakeup_boot_ms(f->core), f->now + GONE_PING_MS);
    later(f, GONE_PING_MS - 1);
    assert_events(f, "");
    later(f, 1);
    assert_events(f, "node lost S0 rank 1 MUSTER_E_PEER");
    assert_string_equal(
        core_event(f, EVENT_NODE_LOST)->text,
        "rank 1 (process 4001 on host) was lost at step 0 or later: its supervisor saw "
        "it killed by signal 9; it was last heard 0.1 s ago");
}

/* R8.4 */
static void who_answers_the_ping_lives(void **state)
{
    struct core_fixture *f = *state;

    tell_gone(f, 1, f->nodes[1].incarnation);
    later(f, FLIGHT_MS);
    later(f, GONE_PING_MS - 1);
    core_heartbeat(f, 1);
    for (int i = 0; i < 10; i++) {
        later(f, GONE_PING_MS);
        assert_events(f, "");
    }
    tell_gone(f, 1, f->nodes[1].incarnation); /* a later report is looked into again */
    assert_int_equal(answer_of(f), 1);
}

/* What was in the network when the process died does not speak for its life. */
static void its_last_words_are_taken_and_prove_nothing(void **state)
{
    struct core_fixture *f = *state;

    tell_gone(f, 1, f->nodes[1].incarnation);
    core_error(f, 1, 7, "its own last words");
    assert_events(f, "peer error S7 rank 1 MUSTER_E_STEP");
    later(f, FLIGHT_MS);
    assert_answers(f, "1:PING");
}

static void another_life_of_the_rank_is_not_meant(void **state)
{
    struct core_fixture *f = *state;

    tell_gone(f, 1, f->nodes[1].incarnation + 1);
    assert_int_equal(answer_of(f), 0);
    tell_gone(f, 2, f->nodes[1].incarnation); /* rank and incarnation contradict each other */
    assert_int_equal(answer_of(f), 0);
    core_pass(f, 2000);
    assert_events(f, "");
}

static void who_left_is_not_lost_too(void **state)
{
    struct core_fixture *f = *state;

    tell_gone(f, 1, f->nodes[1].incarnation);
    core_leave(f, 1, LEAVE_FINISHED, 0); /* it was on its way */
    core_clear(f);
    later(f, FLIGHT_MS);
    later(f, GONE_PING_MS);
    assert_events(f, "");
    tell_gone(f, 1, f->nodes[1].incarnation);
    assert_int_equal(answer_of(f), 0);
}

static void a_job_that_is_not_known_is_refused(void **state)
{
    struct core_fixture *f = *state;

    f->job = "unknown";
    tell_gone(f, 1, f->nodes[1].incarnation);
    f->job = "train";
    for (size_t i = 0; i < f->out.count; i++)
        if (f->out.items[i].message.type == WIRE_ACK)
            assert_int_equal(f->out.items[i].message.u.ack.code, MUSTER_E_NOT_FOUND);
}

static bool suspects(struct core_fixture *f, int node)
{
    struct wire_msg beat = core_msg(f, node, WIRE_HEARTBEAT);

    beat.u.heartbeat.suspects = true;
    core_feed(f, 100 + (uint64_t)node, &beat);
    return core_sent(f, 100 + (uint64_t)node, WIRE_ALIVE)->u.alive.all_live;
}

/* R8.4 */
static void who_suspects_another_is_told_once_each_was_heard_since(void **state)
{
    struct core_fixture *f = *state;

    core_heartbeat(f, 1);
    assert_false(suspects(f, 0)); /* rank 1 may have said that before */
    assert_answers(f, "1:PING; 2:PING; 0:ALIVE");
    later(f, 10);
    core_heartbeat(f, 1);
    assert_false(suspects(f, 0));
    assert_answers(f, "0:ALIVE");
    later(f, 1);
    core_heartbeat(f, 2);
    assert_true(suspects(f, 0));
    core_heartbeat(f, 0); /* no longer */
    later(f, 10);
    assert_false(suspects(f, 0));
    assert_answers(f, "1:PING; 2:PING; 0:ALIVE");
}

/* R8.4 */
static void who_suspects_another_is_never_told_that_a_silent_rank_lives(void **state)
{
    struct core_fixture *f = *state;

    f->nodes[2].silent = true;
    for (int64_t ms = 0; ms < LOST_MS - 500; ms += 500) {
        assert_false(suspects(f, 0));
        core_pass(f, 500);
    }
    core_pass(f, 1000);
    assert_events(f, "node lost S0 rank 2 MUSTER_E_PEER");
}

/* Those whose loss ends nobody are not waited for. */
static void who_suspects_another_waits_for_no_rank_that_left(void **state)
{
    struct core_fixture *f = *state;

    core_leave(f, 2, LEAVE_FINISHED, 0);
    assert_false(suspects(f, 0));
    assert_answers(f, "1:PING; 0:ALIVE");
    later(f, 1);
    core_heartbeat(f, 1);
    assert_true(suspects(f, 0));
}

/* A new start has heard nobody; those who come back were heard. */
static void who_suspects_another_is_told_of_nobody_that_has_not_come_back(void **state)
{
    struct core_fixture *f = *state;

    core_restart(f, false);
    core_hello(f, 0);
    core_hello(f, 1);
    assert_false(suspects(f, 0));
    later(f, 1);
    core_heartbeat(f, 1);
    assert_false(suspects(f, 0));
    later(f, 1);
    core_hello(f, 2);
    assert_true(suspects(f, 0));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, core_run_three, core_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_death_is_known_after_one_ping_in_vain),
        TEST(who_answers_the_ping_lives),
        TEST(its_last_words_are_taken_and_prove_nothing),
        TEST(another_life_of_the_rank_is_not_meant),
        TEST(who_left_is_not_lost_too),
        TEST(a_job_that_is_not_known_is_refused),
        TEST(who_suspects_another_is_told_once_each_was_heard_since),
        TEST(who_suspects_another_is_never_told_that_a_silent_rank_lives),
        TEST(who_suspects_another_waits_for_no_rank_that_left),
        TEST(who_suspects_another_is_told_of_nobody_that_has_not_come_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
