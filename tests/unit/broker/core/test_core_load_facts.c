/* The broker's core: what the next start knows of checkpoints, rounds, errors and launches, and
 * which rows it leaves out. RECOVERY.md R9. */
#include "tests/support/core_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static void checkpoints_survive_and_the_outcome_of_rounds_is_known(void **state)
{
    struct core_fixture *f = *state;

    core_commit_at(f, 10);
    core_save_now(f, "b");
    core_leave(f, 2, LEAVE_FAILED, 1); /* aborts it */
    core_restart(f, false);
    assert_int_equal(registry_newest(core_job(f))->row.step, 10);
    f->nodes[1].round = 1;
    f->nodes[1].applied_seq = 0;
    core_hello(f, 1);
    assert_int_equal(core_sent(f, 101, WIRE_SNAPSHOT)->u.snapshot.named_state, ROUND_COMMITTED);
    f->nodes[1].round = 2;
    core_hello(f, 1);
    assert_int_equal(core_sent(f, 101, WIRE_SNAPSHOT)->u.snapshot.named_state, ROUND_ABORTED);
    assert_int_equal(core_sent(f, 101, WIRE_SNAPSHOT)->u.snapshot.named_cause, CAUSE_OPERATOR);
}

static void an_ending_generation_waits_its_ten_seconds_anew(void **state)
{
    struct core_fixture *f = *state;

    core_error(f, 1, 5, "bad");
    core_pass(f, ENDING_MS - 1);
    core_restart(f, false);
    f->nodes[4] = f->nodes[1];
    f->nodes[4].incarnation = 80;
    f->nodes[4].generation = 0;
    core_pass(f, ENDING_MS - 1);
    core_hello(f, 4);
    assert_answers(f, "1:refused MUSTER_E_ENDING retry");
    core_pass(f, 1);
    core_hello(f, 4);
    assert_answers(f, "1:welcome g2; 1:SNAPSHOT");
}

/* Its processes have said so and live on: at the next boundary they would leave. */
static void all_that_failed_are_known_after_a_start(void **state)
{
    struct core_fixture *f = *state;

    core_notice(f, 0, "n1", 60000);
    core_error(f, 1, 5, "bad");
    core_error(f, 2, 5, "bad too");
    core_restart(f, false);
    assert_true(core_job(f)->trainers[1]->failed);
    assert_true(core_job(f)->trainers[2]->failed);
    assert_false(core_job(f)->trainers[0]->failed);
}

static void a_job_that_was_joining_goes_on_joining(void **state)
{
    struct core_fixture *f = *state;

    core_hello(f, 0);
    core_hello(f, 1);
    core_restored(f, 0, 0, 0);
    core_restart(f, false);
    core_hello(f, 0);
    core_hello(f, 1);
    core_hello(f, 2);
    core_restored(f, 1, 0, 0);
    core_restored(f, 2, 0, 0);
    assert_events(f, "started");
}

static void rows_that_do_not_fit_are_left_out(void **state)
{
    struct core_fixture *f = *state;
    struct record rows[] = {
        {.kind = RECORD_GENERATION,
         .u.generation = {.job = "nobody",
                          .generation = 1,
                          .checkpoint_dir = "",
                          .end_text = "",
                          .error_text = ""}},
        {.kind = RECORD_NODE,
         .u.node = {.job = "train", .incarnation = 66, .generation = 9, .host = ""}},
        {.kind = RECORD_NODE,
         .u.node = {.job = "train",
                    .incarnation = 67,
                    .generation = 1,
                    .role = ROLE_WORKER,
                    .rank = 3,
                    .host = "",
                    .state = NODE_RESTORED}},
        {.kind = RECORD_PROGRESS, .u.progress = {.job = "train", .incarnation = 68}},
        {.kind = RECORD_NOTICE,
         .u.notice = {.job = "train", .generation = 9, .id = "x", .source = "", .text = ""}},
        {.kind = RECORD_PARTICIPANT, .u.participant = {.job = "train", .round = 99}},
        {.kind = RECORD_FILE, .u.file = {.job = "train", .round = 99, .path = ""}},
        {.kind = RECORD_CHECKPOINT,
         .u.checkpoint =
             {.job = "train", .round = 99, .state = CHECKPOINT_WRITING, .path = "", .metrics = ""}},
        {.kind = RECORD_EVENT},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        core_load(f->core, &rows[i]);
    assert_null(peer_find(f->core, 66));
    assert_null(peer_find(f->core, 67));
    assert_null(core_job(f)->notices);
}

#define T(test, setup) cmocka_unit_test_setup_teardown(test, setup, core_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(checkpoints_survive_and_the_outcome_of_rounds_is_known, core_run_three),
        T(an_ending_generation_waits_its_ten_seconds_anew, core_run_three),
        T(all_that_failed_are_known_after_a_start, core_run_three),
        T(a_job_that_was_joining_goes_on_joining, core_open_three),
        T(rows_that_do_not_fit_are_left_out, core_run_three),
    };

    return cmocka_run_group_tests_name("core_load_facts", tests, NULL, NULL);
}
