/* The broker's core: jobs that have ended leave memory, come back by their rows, and are forgotten.
 */
#include "tests/unit/broker/core/core_keep_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

static const char *names[2048];

static const char *name_of(int n)
{
    static char text[2048][16];

    snprintf(text[n], sizeof text[n], "job-%d", n);
    names[n] = text[n];
    return text[n];
}

/* A job of one rank says HELLO; *f->nodes[0] is that rank from now on. */
static void launch(struct core_fixture *f, int n)
{
    f->job = name_of(n);
    f->world_size = 1;
    f->nodes[0] = (struct core_node){.role = ROLE_CHIEF,
                                     .incarnation = 100000 + f->starts * 4096 + (uint64_t)n,
                                     .route = 90000 + (uint64_t)n};
    core_hello(f, 0);
}

static void finish(struct core_fixture *f)
{
    core_leave(f, 0, LEAVE_FINISHED, 0);
    f->now += 2000;
    core_tick(f);
    f->now += 2000;
    core_tick(f);
}

static size_t rows_of(const struct core_fixture *f, const char *job)
{
    size_t count = 0;

    for (size_t i = 0; i < f->rows_count; i++)
        count += f->rows[i].kind != RECORD_NONE && f->rows[i].kind != RECORD_BROKER &&
                 strcmp(f->rows[i].u.job.job, job) == 0;
    return count;
}

static int setup(void **state)
{
    struct core_fixture *f = calloc(1, sizeof *f);

    core_fixture_open(f, 1, LAYOUT_REPLICATED);
    f->options.ended_held = -1;
    core_restart(f, false);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    core_fixture_close(*state);
    free(*state);
    return 0;
}

static unsigned refused(const struct core_fixture *f)
{
    for (size_t i = 0; i < f->out.count; i++)
        if (f->out.items[i].kind == ACTION_SEND && f->out.items[i].message.type == WIRE_REFUSED)
            return (unsigned)f->out.items[i].message.u.refused.code;
    return MUSTER_OK;
}

/* R14.1 */
static void ended_jobs_do_not_count_against_those_that_run(void **state)
{
    struct core_fixture *f = *state;

    for (int n = 0; n < CORE_JOBS_MAX + 10; n++) {
        launch(f, n);
        assert_int_equal(refused(f), MUSTER_OK);
        finish(f);
    }
    assert_int_equal(f->core->jobs_count, 0);
    assert_int_equal(f->core->peers_count, 0);
}

/* R14.2 */
static void beyond_the_bound_a_new_job_is_told_what_to_do(void **state)
{
    struct core_fixture *f = *state;

    for (int n = 0; n < CORE_JOBS_MAX; n++)
        launch(f, n);
    launch(f, CORE_JOBS_MAX);
    assert_int_equal(refused(f), MUSTER_E_BUSY);
    assert_int_equal(rows_of(f, f->job), 0);
    assert_non_null(strstr(f->out.items[0].message.u.refused.text, "start another musterd"));
    f->job = names[0];
    f->nodes[0] = (struct core_node){.role = ROLE_CHIEF,
                                     .incarnation = 100000 + f->starts * 4096,
                                     .route = 90000,
                                     .generation = 1};
    core_restored(f, 0, 0, 0);
    finish(f);
    launch(f, CORE_JOBS_MAX);
    assert_int_equal(refused(f), MUSTER_OK);
}

/* R14.1 */
static void a_job_comes_back_with_all_that_it_was(void **state)
{
    struct core_fixture *f = *state;

    launch(f, 1);
    core_restored(f, 0, 0, 0);
    core_commit_at(f, 5);
    uint64_t seq = core_last_seq(f->core, f->job);
    finish(f);
    assert_null(core_job(f));
    f->starts += 20; /* another incarnation */
    launch(f, 1);
    assert_int_equal(refused(f), MUSTER_OK);
    assert_int_equal(core_job(f)->gen.generation, 2);
    assert_int_equal(core_job(f)->gen.resume_step, 5);
    assert_true(core_job(f)->seq > seq);
    assert_true(core_job(f)->lineage.count <= 2); /* this start is there once */
    assert_true(lineage_holds(core_job(f), f->core->options.start_id, core_job(f)->seq));
}

/* R14.1 */
static void a_tools_order_wakes_a_job(void **state)
{
    struct core_fixture *f = *state;
    struct wire_msg pin = {.type = WIRE_PIN, .u.pin = {.id = "me"}};

    launch(f, 1);
    core_restored(f, 0, 0, 0);
    core_commit_at(f, 5);
    finish(f);
    core_tool(f, pin, 1);
    assert_int_equal(core_job(f)->keep.pins_count, 1);
}

/* R14.2 */
static void a_hello_that_opens_nothing_leaves_no_row(void **state)
{
    struct core_fixture *f = *state;

    for (int n = 0; n < 2000; n++) {
        f->job = name_of(n);
        f->nodes[0] = (struct core_node){
            .role = ROLE_EVALUATOR, .incarnation = 500000 + (uint64_t)n, .route = 90000};
        core_hello(f, 0);
        assert_int_equal(refused(f), MUSTER_E_ENDING);
        assert_int_equal(rows_of(f, f->job), 0);
    }
    assert_int_equal(f->core->jobs_count, 0);
}

/* R14.3 */
static void the_oldest_without_checkpoints_are_forgotten_first(void **state)
{
    struct core_fixture *f = *state;

    f->options.keep_jobs = 3;
    core_restart(f, false);
    launch(f, 0);
    core_restored(f, 0, 0, 0);
    core_commit_at(f, 5);
    finish(f);
    for (int n = 5; n > 0; n--) { /* not as their names are ordered */
        launch(f, n);
        finish(f);
    }
    assert_true(rows_of(f, "job-0") > 0);
    for (int n = 5; n > 2; n--)
        assert_int_equal(rows_of(f, names[n]), 0);
    assert_true(rows_of(f, "job-2") > 0);
    assert_true(rows_of(f, "job-1") > 0);
}

/* R14.3 */
static void what_is_pinned_is_not_forgotten(void **state)
{
    struct core_fixture *f = *state;
    struct wire_msg pin = {.type = WIRE_PIN, .u.pin = {.id = "me"}};

    f->options.keep_jobs = 1;
    core_restart(f, false);
    launch(f, 0);
    core_restored(f, 0, 0, 0);
    core_commit_at(f, 5);
    core_tool(f, pin, 1);
    finish(f);
    for (int n = 1; n < 4; n++) {
        launch(f, n);
        finish(f);
    }
    assert_true(rows_of(f, "job-0") > 0);
    assert_int_equal(rows_of(f, "job-2"), 0);
}

/* R14.3 */
static void the_old_are_forgotten_by_their_age(void **state)
{
    struct core_fixture *f = *state;

    f->options.keep_jobs_days = 2;
    core_restart(f, false);
    launch(f, 0);
    finish(f);
    f->now += 47LL * 3600 * 1000;
    core_tick(f);
    launch(f, 1);
    finish(f);
    assert_true(rows_of(f, "job-0") > 0);
    f->now += 2LL * 3600 * 1000;
    core_pass(f, 61000); /* it looks each minute that the loop was not away */
    assert_int_equal(rows_of(f, "job-0"), 0);
    assert_true(rows_of(f, "job-1") > 0);
}

static const struct wire_msg *ack_of(const struct core_fixture *f)
{
    for (size_t i = 0; i < f->out.count; i++)
        if (f->out.items[i].kind == ACTION_SEND && f->out.items[i].message.type == WIRE_ACK)
            return &f->out.items[i].message;
    fail_msg("no answer");
    return NULL;
}

/* Who ordered it, in the rows that it made; NULL: none. */
static const char *forgotten_by(const struct core_fixture *f)
{
    for (size_t i = 0; i < f->out.count; i++)
        if (f->out.items[i].kind == ACTION_PERSIST && f->out.items[i].record.kind == RECORD_FORGET)
            return f->out.items[i].record.u.forget.by;
    return NULL;
}

/* R14.4 */
static void an_order_forgets_a_job_that_is_over_and_no_other(void **state)
{
    struct core_fixture *f = *state;
    const struct wire_msg forget = {.type = WIRE_FORGET};

    f->by = "key ops";
    launch(f, 1);
    core_restored(f, 0, 0, 0);
    core_commit_at(f, 5);
    core_tool(f, forget, 1);
    assert_int_equal(ack_of(f)->u.ack.code, MUSTER_E_BUSY);
    assert_null(forgotten_by(f)); /* the log tells what was carried out */
    finish(f);
    core_tool(f, forget, 2);
    assert_int_equal(ack_of(f)->u.ack.code, MUSTER_OK);
    assert_int_equal(ack_of(f)->u.ack.value, 1);
    assert_non_null(strstr(ack_of(f)->u.ack.text, "muster import"));
    assert_string_equal(forgotten_by(f), "key ops");
    assert_int_equal(rows_of(f, f->job), 0);
    core_tool(f, forget, 3);
    assert_int_equal(ack_of(f)->u.ack.code, MUSTER_E_NOT_FOUND);
    f->starts += 20;
    launch(f, 1);
    assert_int_equal(core_job(f)->gen.generation, 1);
}

static void a_lease_keeps_a_job_awake_until_it_falls(void **state)
{
    struct core_fixture *f = *state;
    struct wire_msg pin = {.type = WIRE_PIN, .u.pin = {.id = "reader", .lease_ms = 60000}};

    launch(f, 1);
    core_restored(f, 0, 0, 0);
    core_commit_at(f, 5);
    core_tool(f, pin, 1);
    finish(f);
    assert_non_null(core_job(f));
    core_pass(f, 60000);
    core_tick(f);
    assert_null(core_job(f));
    for (size_t i = 0; i < f->rows_count; i++)
        if (f->rows[i].kind == RECORD_CHECKPOINT)
            assert_false(f->rows[i].u.checkpoint.pinned);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(ended_jobs_do_not_count_against_those_that_run),
        TEST(beyond_the_bound_a_new_job_is_told_what_to_do),
        TEST(a_job_comes_back_with_all_that_it_was),
        TEST(a_tools_order_wakes_a_job),
        TEST(a_hello_that_opens_nothing_leaves_no_row),
        TEST(the_oldest_without_checkpoints_are_forgotten_first),
        TEST(what_is_pinned_is_not_forgotten),
        TEST(the_old_are_forgotten_by_their_age),
        TEST(an_order_forgets_a_job_that_is_over_and_no_other),
        TEST(a_lease_keeps_a_job_awake_until_it_falls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
