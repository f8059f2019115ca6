/* A node without a broker: it saves at the boundary after a notice, leaves, and resumes. */
#include <muster/node.h>

#include "schema/limits.h"
#include "tests/support/scratch.h"
#include "tests/unit/node/local/alone_options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct fixture {
    char directory[SCRATCH_PATH_MAX];
    muster_state_t *state;
    int64_t weight;
    struct muster_node_options options;
    int exit_calls, exit_code, fail_at, save_calls, save_from;
    bool notice;
    int64_t call_arg_seen;
};

static struct fixture f;

static int setup(void **state)
{
    (void)state;
    f = (struct fixture){.weight = 0};
    scratch_make(f.directory);
    if (muster_state_create(&f.state, NULL) != MUSTER_OK ||
        muster_state_add_i64(f.state, "weight", &f.weight, NULL) != MUSTER_OK)
        return -1;
    f.options = alone_options(f.directory, f.state);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    muster_state_destroy(&f.state);
    scratch_remove(f.directory);
    return 0;
}

static muster_node_t *open_node(void)
{
    muster_node_t *node = NULL;
    struct muster_error err;

    if (muster_node_open(&f.options, &node, &err) != MUSTER_OK)
        fail_msg("%s", err.text);
    return node;
}

static int step(void *arg)
{
    (void)arg;
    if (f.fail_at != 0 && f.weight + 1 == f.fail_at)
        return 5;
    f.weight++;
    return 0;
}

static void run_to(muster_node_t *node, int64_t step_count)
{
    struct muster_error err;

    while (muster_node_total_run_calls(node) < step_count)
        if (muster_node_run(node, step, NULL, &err) != MUSTER_OK)
            fail_msg("%s", err.text);
}

static bool there_is(const char *name)
{
    return scratch_exists(scratch_path(f.directory, "%s", name));
}

static void notify(muster_node_t *node)
{
    assert_int_equal(muster_node_notify(node, MUSTER_NOTICE_USER, -1, "maintenance"), MUSTER_OK);
}

static void a_notice_saves_at_the_next_boundary_and_a_new_life_resumes_there(void **state)
{
    muster_node_t *node = open_node();
    struct muster_error err;
    int64_t epoch, batch, position;

    (void)state;
    muster_node_set_position(node, 3, 4, 500);
    run_to(node, 7);
    assert_false(muster_node_reached_preemption(node, 6));
    notify(node);
    assert_true(muster_node_reached_preemption(node, 6));
    assert_int_equal(muster_node_run(node, step, NULL, &err), MUSTER_PREEMPTED);
    assert_non_null(strstr(err.text, "maintenance"));
    assert_int_equal(err.step, 7);
    assert_int_equal(muster_node_run(node, step, NULL, NULL), MUSTER_PREEMPTED);
    assert_int_equal(f.weight, 7); /* nothing ran after the save */
    assert_true(there_is("7/manifest.json"));
    assert_int_equal(muster_node_close(&node, 0, NULL), MUSTER_PREEMPTED);

    f.weight = 0;
    node = open_node();
    assert_int_equal(muster_node_resumed_step(node), 7);
    assert_int_equal(muster_node_total_run_calls(node), 7);
    assert_int_equal(f.weight, 7);
    muster_node_position(node, &epoch, &batch, &position);
    assert_int_equal(epoch, 3);
    assert_int_equal(batch, 4);
    assert_int_equal(position, 500);
    notify(node); /* before the first step: there is nothing newer to save */
    assert_int_equal(muster_node_run(node, step, NULL, &err), MUSTER_PREEMPTED);
    assert_non_null(strstr(err.text, "needs no save"));
    muster_node_close(&node, 0, NULL);
}

static void exit_fn(int code, void *arg)
{
    (void)arg;
    f.exit_calls++;
    f.exit_code = code;
}

static void the_exit_policy_calls_exit_fn_once_with_the_restart_code(void **state)
{
    muster_node_t *node;

    (void)state;
    f.options.termination.on_preempted = MUSTER_PREEMPTED_EXIT;
    f.options.termination.exit_fn = exit_fn;
    f.options.termination.restart_code = 75;
    node = open_node();
    run_to(node, 1);
    notify(node);
    assert_int_equal(muster_node_run(node, step, NULL, NULL), MUSTER_PREEMPTED);
    assert_int_equal(muster_node_run(node, step, NULL, NULL), MUSTER_PREEMPTED);
    assert_int_equal(muster_node_close(&node, 0, NULL), MUSTER_PREEMPTED);
    assert_int_equal(f.exit_calls, 1);
    assert_int_equal(f.exit_code, 75);
}

static bool watcher(void *arg)
{
    (void)arg;
    return f.notice;
}

static void the_watcher_function_is_a_notice(void **state)
{
    muster_node_t *node;
    struct muster_error err;

    (void)state;
    f.options.termination.termination_watcher_fn = watcher;
    f.options.termination.watcher_period_ms = 1;
    f.notice = true;
    node = open_node();
    while (muster_node_run(node, step, NULL, &err) == MUSTER_OK)
        assert_true(f.weight < 1000000000);
    assert_int_equal(err.status, MUSTER_PREEMPTED);
    assert_non_null(strstr(err.text, "termination_watcher_fn"));
    muster_node_close(&node, 0, NULL);
}

static void the_policy_saves_at_each_multiple(void **state)
{
    muster_node_t *node;

    (void)state;
    f.options.save_every_steps = 3;
    node = open_node();
    run_to(node, 7);
    assert_true(there_is("3/manifest.json"));
    assert_true(there_is("6/manifest.json"));
    assert_false(there_is("7"));
    muster_node_close(&node, 0, NULL);
    assert_false(there_is("7")); /* closing saves nothing without a notice */
    f.weight = 0;
    node = open_node();
    assert_int_equal(f.weight, 6);
    run_to(node, 10); /* the save of step 9 happened before step 10 */
    assert_true(there_is("9/manifest.json"));
    muster_node_close(&node, 0, NULL);
}

static void a_failed_step_is_not_counted_and_ends_the_node(void **state)
{
    muster_node_t *node = open_node();
    struct muster_error err;

    (void)state;
    f.fail_at = 3;
    run_to(node, 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(muster_node_run(node, step, NULL, &err), MUSTER_E_STEP);
        assert_int_equal(err.code, 5);
    }
    assert_int_equal(muster_node_total_run_calls(node), 2);
    muster_node_close(&node, 1, NULL);
}

static void a_loop_of_its_own_that_failed_counts_no_further_step(void **state)
{
    muster_node_t *node = open_node();
    struct muster_error err;

    (void)state;
    for (int i = 0; i < 2; i++) {
        f.weight++;
        assert_int_equal(muster_node_save_if_preempted(node, NULL, NULL), MUSTER_OK);
    }
    assert_int_equal(muster_node_fail(node, 9, "bad batch"), MUSTER_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(muster_node_save_if_preempted(node, NULL, &err), MUSTER_E_STEP);
        assert_int_equal(err.code, 9);
        assert_int_equal(muster_node_total_run_calls(node), 2);
    }
    assert_int_equal(muster_node_close(&node, 1, NULL), MUSTER_OK);
}

static void a_loop_of_its_own_counts_by_save_if_preempted(void **state)
{
    muster_node_t *node = open_node();

    (void)state;
    for (int i = 1; i <= 4; i++) {
        f.weight++;
        assert_int_equal(muster_node_save_if_preempted(node, NULL, NULL), MUSTER_OK);
        assert_int_equal(muster_node_total_run_calls(node), i);
    }
    f.weight++;
    notify(node);
    assert_int_equal(muster_node_save_if_preempted(node, NULL, NULL), MUSTER_PREEMPTED);
    assert_true(there_is("5/manifest.json"));
    muster_node_close(&node, 0, NULL);
}

static void a_scope_is_one_step(void **state)
{
    muster_node_t *node = open_node();
    struct muster_error err;

    (void)state;
    assert_int_equal(muster_node_scope_leave(node, 0, &err), MUSTER_E_ARGUMENT);
    assert_int_equal(muster_node_scope_enter(node, NULL), MUSTER_OK);
    assert_int_equal(muster_node_run(node, step, NULL, &err), MUSTER_E_ARGUMENT);
    assert_int_equal(muster_node_scope_enter(node, &err), MUSTER_E_ARGUMENT);
    assert_int_equal(muster_node_total_run_calls(node), 0);
    assert_int_equal(muster_node_scope_leave(node, 0, &err), MUSTER_OK);
    assert_int_equal(muster_node_scope_leave(node, 0, &err), MUSTER_E_ARGUMENT);
    assert_int_equal(muster_node_scope_enter(node, NULL), MUSTER_OK);
    notify(node);
    f.weight = 77;
    assert_int_equal(muster_node_scope_leave(node, 0, &err), MUSTER_PREEMPTED);
    assert_int_equal(muster_node_total_run_calls(node), 2);
    assert_true(there_is("2/manifest.json"));
    muster_node_close(&node, 0, NULL);
}

static void inside_a_hold_no_boundary_is_passed(void **state)
{
    muster_node_t *node = open_node();
    struct muster_error err;

    (void)state;
    muster_node_hold(node);
    muster_node_hold(node);
    assert_int_equal(muster_node_run(node, step, NULL, &err), MUSTER_E_ARGUMENT);
    muster_node_release(node);
    assert_int_equal(muster_node_run(node, step, NULL, &err), MUSTER_E_ARGUMENT);
    assert_non_null(strstr(err.text, "hold"));
    muster_node_release(node);
    muster_node_release(node); /* one too many is nothing */
    assert_int_equal(muster_node_run(node, step, NULL, NULL), MUSTER_OK);
    muster_node_close(&node, 0, NULL);
}

static void who_closes_inside_a_hold_saves_nothing(void **state)
{
    muster_node_t *node = open_node();

    (void)state;
    run_to(node, 2);
    muster_node_hold(node); /* between two steps: what follows is to be saved whole or not at all */
    f.weight = 77;
    notify(node);
    muster_node_close(&node, 0, NULL);
    assert_false(there_is("2"));
}

static int save_fn(const struct muster_save_context *context)
{
    char path[4096];
    FILE *file;

    assert_int_equal(context->struct_size, sizeof *context);
    assert_true(MUSTER_HAS(context, snapshot));
    f.call_arg_seen = context->call_arg != NULL ? *(int64_t *)context->call_arg : 0;
    if (f.fail_at != 0)
        return f.fail_at;
    snprintf(path, sizeof path, "%s/mine", context->directory);
    file = fopen(path, "w");
    if (file == NULL)
        return 1;
    fprintf(file, "%lld\n", (long long)f.weight);
    return fclose(file);
}

static int restore_fn(const struct muster_restore_context *context)
{
    char path[4096];
    long long value = 0;
    FILE *file;

    assert_int_equal(context->struct_size, sizeof *context);
    assert_true(MUSTER_HAS(context, saved_world_size));
    snprintf(path, sizeof path, "%s/mine", context->directory);
    file = fopen(path, "r");
    if (file == NULL || fscanf(file, "%lld", &value) != 1)
        return 1;
    f.weight = value;
    return fclose(file);
}

static void the_programs_own_functions_save_and_restore(void **state)
{
    muster_node_t *node;
    struct muster_error err;
    int64_t arg = 4711;

    (void)state;
    f.options.state = NULL;
    f.options.termination.save_fn = save_fn;
    f.options.termination.restore_fn = restore_fn;
    node = open_node();
    run_to(node, 2);
    notify(node);
    assert_int_equal(muster_node_run(node, step, &arg, NULL), MUSTER_PREEMPTED);
    assert_int_equal(f.call_arg_seen, 4711);
    muster_node_close(&node, 0, NULL);
    f.weight = 0;
    node = open_node();
    assert_int_equal(f.weight, 2);

    run_to(node, 3);
    f.fail_at = 9; /* now its save fails: nothing that was committed is lost */
    notify(node);
    assert_int_equal(muster_node_run(node, step, NULL, &err), MUSTER_PREEMPTED);
    assert_non_null(strstr(err.text, "NOT saved"));
    assert_non_null(strstr(err.text, "save_fn returned 9"));
    muster_node_close(&node, 0, NULL);
    assert_true(there_is("2/manifest.json"));
    assert_false(there_is("3"));
}

static int restore_says_why(const struct muster_restore_context *context)
{
    return muster_node_save_fail(*(muster_node_t **)context->arg, 7, "no room for the weights");
}

static void a_restore_fn_that_fails_says_why(void **state)
{
    muster_node_t *node;
    struct muster_error err;

    (void)state;
    f.options.state = NULL;
    f.options.termination.save_fn = save_fn;
    f.options.termination.restore_fn = restore_says_why;
    f.options.restore_later = true;
    f.options.arg = &node;
    node = open_node();
    assert_int_equal(muster_node_restore(node, NULL), MUSTER_OK); /* nothing is saved yet */
    run_to(node, 2);
    notify(node);
    assert_int_equal(muster_node_run(node, step, NULL, NULL), MUSTER_PREEMPTED);
    muster_node_close(&node, 0, NULL);
    node = open_node();
    assert_int_equal(muster_node_restore(node, &err), MUSTER_E_RESTORE);
    assert_int_equal(err.code, 7);
    assert_non_null(strstr(err.text, "(MUSTER_E_RESTORE): no room for the weights; restore_fn "
                                     "failed with code 7 on "));
    muster_node_close(&node, 1, NULL);
}

static void a_damaged_checkpoint_is_an_error_or_with_fallback_the_older_is_taken(void **state)
{
    muster_node_t *node;
    struct muster_error err;
    char command[SCRATCH_PATH_MAX + 64];

    (void)state;
    f.options.save_every_steps = 2;
    node = open_node();
    run_to(node, 5);
    muster_node_close(&node, 0, NULL);
    snprintf(command, sizeof command, "for s in %s/4/*.safetensors; do echo x >>$s; done",
             f.directory);
    assert_int_equal(system(command), 0);
    assert_int_equal(muster_node_open(&f.options, &node, &err), MUSTER_E_RESTORE);
    assert_non_null(strstr(err.text, "/4"));
    assert_null(node);
    f.options.restore_fallback = true;
    node = open_node();
    assert_int_equal(muster_node_resumed_step(node), 2);
    muster_node_close(&node, 0, NULL);
    snprintf(command, sizeof command, "for s in %s/2/*.safetensors; do echo x >>$s; done",
             f.directory);
    assert_int_equal(system(command), 0);
    assert_int_equal(muster_node_open(&f.options, &node, &err), MUSTER_E_RESTORE);
    assert_non_null(strstr(err.text, "no older checkpoint is left"));
}

/* A manifest is put in its place whole: one that cannot be read is a checkpoint that was damaged,
 * not one that was never there. Names that no checkpoint of this job has are none of ours. */
static void a_damaged_manifest_is_an_error_or_with_fallback_the_older_is_taken(void **state)
{
    muster_node_t *node;
    struct muster_error err;

    (void)state;
    f.options.save_every_steps = 2;
    node = open_node();
    run_to(node, 5);
    muster_node_close(&node, 0, NULL);
    assert_int_equal(mkdir(scratch_path(f.directory, "9x"), 0777), 0);
    scratch_write(scratch_path(f.directory, "9x/manifest.json"), "{}", 2);
    assert_int_equal(mkdir(scratch_path(f.directory, "lost+found"), 0777), 0);
    node = open_node();
    assert_int_equal(muster_node_resumed_step(node), 4);
    muster_node_close(&node, 0, NULL);
    scratch_cut(scratch_path(f.directory, "4/manifest.json"), 100);
    assert_int_equal(muster_node_open(&f.options, &node, &err), MUSTER_E_RESTORE);
    assert_non_null(strstr(err.text, "/4/manifest.json"));
    assert_non_null(strstr(err.text, "fallback"));
    f.options.restore_fallback = true;
    node = open_node();
    assert_int_equal(muster_node_resumed_step(node), 2);
    run_to(node, 3);
    notify(node);
    assert_int_equal(muster_node_run(node, step, NULL, NULL), MUSTER_PREEMPTED);
    muster_node_close(&node, 0, NULL);
    assert_true(there_is("3/manifest.json"));
    f.options.restore_fallback = false; /* the next start is not asked: that launch gave 4 up */
    node = open_node();
    assert_int_equal(muster_node_resumed_step(node), 3);
    muster_node_close(&node, 0, NULL);
}

/* The only one of its launch: the next launch is another anyway, and gives it up. */
static void a_damaged_checkpoint_takes_its_launchs_number_with_it(void **state)
{
    muster_node_t *node;

    (void)state;
    f.options.save_every_steps = 2;
    node = open_node();
    run_to(node, 3);
    muster_node_close(&node, 0, NULL);
    node = open_node();
    run_to(node, 4);
    muster_node_close(&node, 0, NULL);
    scratch_cut(scratch_path(f.directory, "4/manifest.json"), 100);
    f.options.restore_fallback = true;
    node = open_node();
    assert_int_equal(muster_node_resumed_step(node), 2);
    run_to(node, 3);
    notify(node);
    assert_int_equal(muster_node_run(node, step, NULL, NULL), MUSTER_PREEMPTED);
    muster_node_close(&node, 0, NULL);
    f.options.restore_fallback = false;
    node = open_node();
    assert_int_equal(muster_node_resumed_step(node), 3);
    muster_node_close(&node, 0, NULL);
}

/* As root one may read everything: another user looks. */
static void a_manifest_that_may_not_be_read_is_an_error(void **state)
{
    muster_node_t *node;
    pid_t pid;
    int code;

    (void)state;
    f.options.save_every_steps = 2;
    node = open_node();
    run_to(node, 5);
    muster_node_close(&node, 0, NULL);
    assert_int_equal(chmod(scratch_path(f.directory, "4/manifest.json"), 0), 0);
    assert_int_equal(chmod(f.directory, 0777), 0);
    assert_int_equal(chmod(scratch_path(f.directory, ".muster"), 0777), 0);
    pid = fork();
    if (pid == 0) {
        struct muster_error err = {0};
        enum muster_status status;

        if (geteuid() == 0 && setuid(65534) != 0)
            _exit(2);
        status = muster_node_open(&f.options, &node, &err);
        _exit(status == MUSTER_E_RESTORE && strstr(err.text, "/4/manifest.json") != NULL ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &code, 0), pid);
    assert_int_equal(code, 0);
}

static void with_restore_later_the_first_step_waits_for_restore(void **state)
{
    muster_node_t *node;
    struct muster_error err;

    (void)state;
    f.options.restore_later = true;
    node = open_node();
    assert_int_equal(muster_node_run(node, step, NULL, &err), MUSTER_E_ARGUMENT);
    assert_non_null(strstr(err.text, "muster_node_restore"));
    assert_int_equal(muster_node_restore(node, NULL), MUSTER_OK);
    assert_int_equal(muster_node_restore(node, NULL), MUSTER_OK);
    assert_int_equal(muster_node_run(node, step, NULL, NULL), MUSTER_OK);
    muster_node_close(&node, 0, NULL);
}

static void wrong_options_are_named(void **state)
{
    struct muster_node_options good = f.options;
    muster_node_t *node = NULL;
    struct muster_error err;

    (void)state;
    assert_int_equal(muster_node_open(NULL, &node, &err), MUSTER_E_ARGUMENT);
    assert_int_equal(muster_node_open(&good, NULL, &err), MUSTER_E_ARGUMENT);
#define WRONG(field, value, expected, words)                                   \
    do {                                                                       \
        f.options = good;                                                      \
        f.options.field = value;                                               \
        assert_int_equal(muster_node_open(&f.options, &node, &err), expected); \
        assert_non_null(strstr(err.text, words));                              \
        assert_null(node);                                                     \
    } while (0)
    WRONG(struct_size, 8, MUSTER_E_ARGUMENT, "MUSTER_NODE_OPTIONS_INIT");
    WRONG(rank, 1, MUSTER_E_RANK, "rank 1 is not inside the world of 1");
    WRONG(rank, -1, MUSTER_E_ARGUMENT, "world_size without rank");
    WRONG(world_size, 0, MUSTER_E_ARGUMENT, "rank without world_size");
    WRONG(world_size, WORLD_SIZE_MAX + 1, MUSTER_E_WORLD_SIZE, "16384");
    WRONG(world_size, 2, MUSTER_E_BROKER, "world of 1");
    WRONG(job, "a/b", MUSTER_E_ARGUMENT, "a/b");
    WRONG(state, NULL, MUSTER_E_ARGUMENT, "nothing to save");
    WRONG(termination.save_fn, save_fn, MUSTER_E_ARGUMENT, "restore_fn");
    WRONG(termination.restart_code, 93, MUSTER_E_ARGUMENT, "not to restart");
    WRONG(termination.restart_code, 256, MUSTER_E_ARGUMENT, "restart_code");
    WRONG(termination.grace_period_ms, -2, MUSTER_E_ARGUMENT, "grace_period_ms");
    WRONG(connect_timeout_ms, -1, MUSTER_E_ARGUMENT, "connect_timeout_ms");
    WRONG(save_every_steps, -1, MUSTER_E_ARGUMENT, "save_every_steps");
    WRONG(broker, "nonsense", MUSTER_E_ARGUMENT, "nonsense");
    WRONG(checkpoint_dir, "/proc/none/such", MUSTER_E_IO, "/proc/none");
    WRONG(offline_ok, false, MUSTER_E_BROKER, "start one with `musterd`");
#undef WRONG
    f.options = good;
    node = open_node();
    muster_node_close(&node, 0, NULL);
    f.options.job = "another";
    assert_int_equal(muster_node_open(&f.options, &node, &err), MUSTER_E_JOB);
    assert_non_null(strstr(err.text, "local"));
    assert_int_equal(muster_node_close(NULL, 0, NULL), MUSTER_OK);
    assert_int_equal(muster_node_close(&node, 0, NULL), MUSTER_OK);
}

/* --- with grace ------------------------------------------------------------------------------- */

/* What a life before has measured. */
static void measured(void)
{
    static const char times[] = "step_p95_ms 1\nsaves_ms 1 2\n"; /* reserve: 5 + 2 + 1500 ms */
    const char *muster = scratch_path(f.directory, ".muster");

    assert_int_equal(mkdir(muster, 0700), 0);
    scratch_write(scratch_path(f.directory, ".muster/LOCAL"), times, sizeof times - 1);
}

static void a_notice_with_time_left_is_trained_through_until_one_asks_for_a_save_now(void **state)
{
    muster_node_t *node;
    struct muster_error err;

    (void)state;
    measured();
    node = open_node();
    run_to(node, 3);
    assert_int_equal(muster_node_notify(node, MUSTER_NOTICE_USER, 60000, "spot"), MUSTER_OK);
    assert_false(muster_node_reached_preemption(node, 2));
    run_to(node, 100);
    assert_false(there_is("3"));
    assert_int_equal(muster_node_notify(node, MUSTER_NOTICE_USER, 1000, "earlier"), MUSTER_OK);
    assert_int_equal(muster_node_run(node, step, NULL, &err), MUSTER_PREEMPTED);
    assert_non_null(strstr(err.text, "earlier"));
    assert_non_null(strstr(err.text, "its deadline"));
    assert_true(there_is("100/manifest.json"));
    muster_node_close(&node, 0, NULL);
}

static void who_finishes_before_the_planned_moment_leaves_nothing_to_save(void **state)
{
    muster_node_t *node;

    (void)state;
    measured();
    node = open_node();
    run_to(node, 3);
    assert_int_equal(muster_node_notify(node, MUSTER_NOTICE_USER, 60000, "spot"), MUSTER_OK);
    run_to(node, 5);
    assert_int_equal(muster_node_close(&node, 0, NULL), MUSTER_OK);
    assert_false(there_is("5"));
}

static void save_on_notice_saves_at_once_and_goes_on(void **state)
{
    muster_node_t *node;

    (void)state;
    measured();
    f.options.termination.save_on_notice = true;
    node = open_node();
    run_to(node, 3);
    assert_int_equal(muster_node_notify(node, MUSTER_NOTICE_USER, 60000, "spot"), MUSTER_OK);
    run_to(node, 6);
    assert_true(there_is("3/manifest.json"));
    assert_int_equal(muster_node_notify(node, MUSTER_NOTICE_USER, -1, "now"), MUSTER_OK);
    assert_int_equal(muster_node_run(node, step, NULL, NULL), MUSTER_PREEMPTED);
    assert_true(there_is("6/manifest.json"));
    muster_node_close(&node, 0, NULL);
}

static int failing_save(const struct muster_save_context *context)
{
    (void)context;
    return ++f.save_calls < f.save_from ? 5 : 0;
}

static int no_restore(const struct muster_restore_context *context)
{
    (void)context;
    return 0;
}

static void a_save_that_fails_is_tried_again_while_there_is_time(void **state)
{
    muster_node_t *node;
    struct muster_error err;

    (void)state;
    f.options.state = NULL;
    f.options.termination.save_fn = failing_save;
    f.options.termination.restore_fn = no_restore;
    f.save_from = 3;
    node = open_node();
    run_to(node, 3);
    notify(node);
    assert_int_equal(muster_node_run(node, step, NULL, &err), MUSTER_PREEMPTED);
    assert_non_null(strstr(err.text, "saved step 3"));
    assert_int_equal(f.save_calls, 3);
    muster_node_close(&node, 0, NULL);
}

static void who_has_finished_is_not_begun_again_for_a_save_that_failed(void **state)
{
    muster_node_t *node;

    (void)state;
    f.options.state = NULL;
    f.options.termination.save_fn = failing_save;
    f.options.termination.restore_fn = no_restore;
    f.save_from = 100;
    node = open_node();
    run_to(node, 3);
    notify(node);
    assert_int_equal(muster_node_close(&node, 0, NULL), MUSTER_OK);
    assert_int_equal(f.save_calls, 3);
    node = open_node();
    run_to(node, 3);
    notify(node);
    assert_int_equal(muster_node_run(node, step, NULL, NULL), MUSTER_PREEMPTED); /* it was told */
    assert_int_equal(muster_node_close(&node, 0, NULL), MUSTER_PREEMPTED);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_notice_saves_at_the_next_boundary_and_a_new_life_resumes_there),
        TEST(the_exit_policy_calls_exit_fn_once_with_the_restart_code),
        TEST(the_watcher_function_is_a_notice),
        TEST(the_policy_saves_at_each_multiple),
        TEST(a_failed_step_is_not_counted_and_ends_the_node),
        TEST(a_loop_of_its_own_that_failed_counts_no_further_step),
        TEST(a_loop_of_its_own_counts_by_save_if_preempted),
        TEST(a_scope_is_one_step),
        TEST(inside_a_hold_no_boundary_is_passed),
        TEST(who_closes_inside_a_hold_saves_nothing),
        TEST(the_programs_own_functions_save_and_restore),
        TEST(a_restore_fn_that_fails_says_why),
        TEST(a_damaged_checkpoint_is_an_error_or_with_fallback_the_older_is_taken),
        TEST(a_damaged_manifest_is_an_error_or_with_fallback_the_older_is_taken),
        TEST(a_damaged_checkpoint_takes_its_launchs_number_with_it),
        TEST(a_manifest_that_may_not_be_read_is_an_error),
        TEST(with_restore_later_the_first_step_waits_for_restore),
        TEST(wrong_options_are_named),
        TEST(a_notice_with_time_left_is_trained_through_until_one_asks_for_a_save_now),
        TEST(who_finishes_before_the_planned_moment_leaves_nothing_to_save),
        TEST(save_on_notice_saves_at_once_and_goes_on),
        TEST(a_save_that_fails_is_tried_again_while_there_is_time),
        TEST(who_has_finished_is_not_begun_again_for_a_save_that_failed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
