/* The broker's core: ranks that come after their launch has ended as terminated. */
#include "tests/support/core_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

/* Rank 0 joined and was told to end; rank 1 is still starting. */
static int ended_while_joining(void **state)
{
    static struct core_fixture f;

    core_fixture_open(&f, 2, LAYOUT_REPLICATED);
    core_hello(&f, 0);
    core_notice(&f, 0, "n1", -1);
    assert_int_equal(core_job(&f)->gen.state, GENERATION_ENDING);
    *state = &f;
    return 0;
}

static void late(struct core_fixture *f, int n, uint64_t age_ms)
{
    f->nodes[n].age_ms = age_ms;
    core_hello(f, n);
}

#define REFUSED "1:refused MUSTER_PREEMPTED"

static void a_late_rank_leaves_with_its_launch_that_is_ending(void **state)
{
    struct core_fixture *f = *state;

    core_pass(f, 1500);
    late(f, 1, 3000);
    assert_answers(f, REFUSED);
    assert_false(core_sent(f, 101, WIRE_REFUSED)->u.refused.retry);
    assert_string_equal(core_sent(f, 101, WIRE_REFUSED)->u.refused.text,
                        "rank 1 came after its launch had ended (generation 1, terminated; nothing "
                        "new was to be saved)");
}

/* Rank 0 could not restore and left before rank 1 came, which would wait for it in vain (R3.8). */
static void a_rank_that_is_late_for_a_failed_restore_hears_of_that(void **state)
{
    struct core_fixture *f = *state;
    struct wire_msg failed;

    core_fixture_close(f);
    core_fixture_running(f, 2, LAYOUT_REPLICATED);
    core_commit_at(f, 7);
    core_leave(f, 0, LEAVE_FAILED, 1);
    core_leave(f, 1, LEAVE_ERROR, 1);
    assert_int_equal(core_job(f)->gen.state, GENERATION_ENDED);
    for (int n = 0; n < 2; n++) {
        f->nodes[n].incarnation += 100;
        f->nodes[n].generation = f->nodes[n].request = 0;
    }
    late(f, 0, 100);
    failed = core_msg(f, 0, WIRE_RESTORE_FAILED);
    failed.u.restore_failed = (struct wire_restore_failed){
        .checkpoint = core_job(f)->gen.resume_checkpoint, .step = 7, .text = "no such file"};
    core_say(f, 0, failed);
    core_leave(f, 0, LEAVE_ERROR, 1);
    assert_int_equal(core_job(f)->gen.state, GENERATION_ENDED);
    core_pass(f, 1500);
    late(f, 1, 3000);
    assert_answers(f, "1:refused MUSTER_E_RESTORE");
    assert_false(core_sent(f, 101, WIRE_REFUSED)->u.refused.retry);
    late(f, 1, 100); /* its supervisor starts it again */
    assert_int_equal(core_job(f)->gen.generation, 3);
}

/* Rank 0 failed in its set-up and told why, before rank 1 came (R3.8). */
static void a_rank_that_is_late_for_a_told_failure_hears_of_that(void **state)
{
    struct core_fixture *f = *state;
    struct wire_msg failed;

    core_fixture_close(f);
    core_fixture_open(f, 2, LAYOUT_REPLICATED);
    core_hello(f, 0);
    failed = core_msg(f, 0, WIRE_ERROR);
    failed.u.error = (struct wire_error){.code = 1, .text = "ValueError: no such file"};
    core_say(f, 0, failed);
    core_leave(f, 0, LEAVE_FAILED, 1);
    assert_int_equal(core_job(f)->gen.state, GENERATION_ENDED);
    core_pass(f, 1500);
    late(f, 1, 3000);
    assert_answers(f, "1:refused MUSTER_E_PEER");
    assert_false(core_sent(f, 101, WIRE_REFUSED)->u.refused.retry);
    assert_string_equal(core_sent(f, 101, WIRE_REFUSED)->u.refused.text,
                        "rank 1 came after its launch had ended (generation 1, rank 0 failed: "
                        "ValueError: no such file)");
    late(f, 1, 100); /* its supervisor starts it again */
    assert_int_equal(core_job(f)->gen.generation, 2);
}

/* R3.8 */
static void a_late_rank_opens_no_generation_when_the_others_have_left(void **state)
{
    struct core_fixture *f = *state;

    core_leave(f, 0, LEAVE_PREEMPTED, 42);
    assert_int_equal(core_job(f)->gen.state, GENERATION_ENDED);
    core_pass(f, 1500);
    late(f, 1, 1501);
    assert_core(f, REFUSED);
}

static void a_broker_that_starts_between_knows_when_the_launch_ended(void **state)
{
    struct core_fixture *f = *state;

    core_leave(f, 0, LEAVE_PREEMPTED, 42);
    core_restart(f, false);
    core_pass(f, 1500);
    late(f, 1, 3000);
    assert_core(f, REFUSED);
    core_restart(f, true);
    late(f, 1, 3000);
    assert_core(f, REFUSED);
}

static void a_rank_of_the_next_launch_opens_a_generation(void **state)
{
    struct core_fixture *f = *state;

    core_leave(f, 0, LEAVE_PREEMPTED, 42);
    core_pass(f, 1500);
    late(f, 1, 1500); /* it began in the very moment of that end */
    assert_int_equal(core_job(f)->gen.generation, 2);
}

static void a_rank_whose_age_is_not_known_opens_a_generation(void **state)
{
    struct core_fixture *f = *state;

    core_leave(f, 0, LEAVE_PREEMPTED, 42);
    late(f, 1, 0);
    assert_int_equal(core_job(f)->gen.generation, 2);
}

static void a_late_rank_joins_a_launch_that_others_have_opened_since(void **state)
{
    struct core_fixture *f = *state;

    core_leave(f, 0, LEAVE_PREEMPTED, 42);
    f->nodes[0].incarnation++;
    f->nodes[0].generation = 0;
    core_pass(f, 1500);
    late(f, 0, 100);
    assert_int_equal(core_job(f)->gen.generation, 2);
    late(f, 1, 3000);
    assert_non_null(core_sent(f, 101, WIRE_WELCOME));
}

/* Its supervisor starts it in a process that it keeps: who had joined came in time (R3.8). */
static void an_old_process_of_a_rank_that_had_joined_opens_a_generation(void **state)
{
    struct core_fixture *f = *state;

    core_leave(f, 0, LEAVE_PREEMPTED, 42);
    f->nodes[0].incarnation++;
    f->nodes[0].generation = 0;
    late(f, 0, 30000);
    assert_int_equal(core_job(f)->gen.generation, 2);
}

static void an_old_process_opens_the_generation_after_one_that_took_steps(void **state)
{
    struct core_fixture *f = *state;

    core_fixture_close(f);
    core_fixture_running(f, 2, LAYOUT_REPLICATED);
    core_notice(f, 0, "n1", -1);
    core_report(f, 0, 1, 0, 0);
    core_report(f, 1, 1, 0, 0);
    core_leave(f, 0, LEAVE_PREEMPTED, 42);
    core_leave(f, 1, LEAVE_PREEMPTED, 42);
    assert_int_equal(core_job(f)->gen.state, GENERATION_ENDED);
    f->nodes[2].incarnation = 77;
    f->nodes[2].rank = 1;
    late(f, 2, 30000);
    assert_int_equal(core_job(f)->gen.generation, 2);
}

/* The database was restored from a copy and never heard of rank 1, which had taken those steps, too
 * (R3.8). */
static void nobody_is_late_for_a_launch_that_took_steps(void **state)
{
    struct core_fixture *f = *state;

    core_fixture_close(f);
    core_fixture_open(f, 2, LAYOUT_REPLICATED);
    f->nodes[0].generation = 3;
    f->nodes[0].begun = f->nodes[0].done = 40;
    f->nodes[0].applied_seq = 12;
    core_hello(f, 0);
    core_notice(f, 0, "n1", 60000);
    core_pass(f, START_FREEZE_MS);
    core_report(f, 0, 1, 40, 40);
    core_save(f, 0, 1, 40);
    assert_int_equal(core_job(f)->gen.end_status, MUSTER_PREEMPTED);
    core_leave(f, 0, LEAVE_PREEMPTED, 42);
    core_pass(f, START_GRACE_MS);
    assert_int_equal(core_job(f)->gen.state, GENERATION_ENDED);
    late(f, 1, 90000);
    assert_int_equal(core_job(f)->gen.generation, 4);
}

#define T(name) cmocka_unit_test_setup_teardown(name, ended_while_joining, core_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_late_rank_leaves_with_its_launch_that_is_ending),
        T(a_rank_that_is_late_for_a_told_failure_hears_of_that),
        T(a_late_rank_opens_no_generation_when_the_others_have_left),
        T(a_rank_that_is_late_for_a_failed_restore_hears_of_that),
        T(a_broker_that_starts_between_knows_when_the_launch_ended),
        T(a_rank_of_the_next_launch_opens_a_generation),
        T(a_rank_whose_age_is_not_known_opens_a_generation),
        T(a_late_rank_joins_a_launch_that_others_have_opened_since),
        T(an_old_process_of_a_rank_that_had_joined_opens_a_generation),
        T(an_old_process_opens_the_generation_after_one_that_took_steps),
        T(nobody_is_late_for_a_launch_that_took_steps),
    };

    return cmocka_run_group_tests_name("core_late", tests, NULL, NULL);
}
