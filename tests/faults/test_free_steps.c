/* A step costs the training thread no allocation and no system call. */
#include "tests/faults/allocations.h"
#include "tests/support/scratch.h"

#include <muster/node.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#define WARM 100
#define STEPS 10000

/* Linux 5.11; what the kernel reads at each system call of the thread. */
static volatile char dispatch = 0;
static volatile sig_atomic_t calls, first_call;

struct fixture {
    char dir[SCRATCH_PATH_MAX];
    int64_t weight;
    muster_state_t *state;
    muster_node_t *node;
};

static int open_node(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct muster_node_options options = MUSTER_NODE_OPTIONS_INIT;
    struct muster_error err = {0};

    assert_non_null(f);
    scratch_make(f->dir);
    assert_int_equal(muster_state_create(&f->state, &err), MUSTER_OK);
    assert_int_equal(muster_state_add_i64(f->state, "weight", &f->weight, &err), MUSTER_OK);
    options.broker = "ipc:///tmp/muster-test-no-broker"; /* the gate is the same without one */
    options.offline_ok = true;
    options.connect_timeout_ms = 1;
    options.job = "free";
    options.rank = 0;
    options.world_size = 1;
    options.checkpoint_dir = f->dir;
    options.state = f->state;
    if (muster_node_open(&options, &f->node, &err) != MUSTER_OK)
        fail_msg("%s", err.text);
    *state = f;
    return 0;
}

static int close_node(void **state)
{
    struct fixture *f = *state;

    muster_node_close(&f->node, 0, NULL);
    muster_state_destroy(&f->state);
    scratch_remove(f->dir);
    free(f);
    return 0;
}

static int step(void *arg)
{
    struct fixture *f = arg;

    f->weight++;
    return 0;
}

static enum muster_status steps(struct fixture *f, int count, struct muster_error *err)
{
    enum muster_status status = MUSTER_OK;

    for (int i = 0; i < count && status == MUSTER_OK; i++)
        status = muster_node_run(f->node, step, f, err);
    return status;
}

static void a_step_allocates_nothing(void **state)
{
    struct fixture *f = *state;
    struct muster_error err = {0};
    void *volatile memory;

    assert_int_equal(steps(f, WARM, &err), MUSTER_OK);
    allocations_of_this_thread(true);
    allocations_plan(ALLOCATIONS_OWN, 0, false);
    allocations_begin();
    memory = malloc(1); /* one is counted */
    free(memory);
    assert_int_equal(steps(f, STEPS, &err), MUSTER_OK);
    allocations_end();
    allocations_of_this_thread(false);
    assert_int_equal(allocations_count(), 1);
    assert_int_equal(f->weight, WARM + STEPS);
}

/* The call is not made; from here on all are, since the return from here is one. */
static void on_call(int signo, siginfo_t *info, void *context)
{
    (void)signo, (void)context;
    dispatch = SYSCALL_DISPATCH_FILTER_ALLOW;
    first_call = info->si_syscall;
    calls++;
}

static bool watch_calls(bool on)
{
    return prctl(PR_SET_SYSCALL_USER_DISPATCH, on ? PR_SYS_DISPATCH_ON : PR_SYS_DISPATCH_OFF, 0, 0,
                 on ? &dispatch : NULL) == 0;
}

static void a_step_makes_no_system_call(void **state)
{
    struct fixture *f = *state;
    struct muster_error err = {0};
    struct sigaction action = {.sa_sigaction = on_call, .sa_flags = SA_SIGINFO};
    enum muster_status status;

    assert_int_equal(sigaction(SIGSYS, &action, NULL), 0);
    assert_int_equal(steps(f, WARM, &err), MUSTER_OK);
    if (!watch_calls(true)) {
        print_message("not held: this kernel does not tell a thread its system calls\n");
        skip();
    }
    dispatch = SYSCALL_DISPATCH_FILTER_BLOCK;
    (void)raise(0); /* one is seen */
    assert_int_equal(calls, 1);
    calls = 0;
    dispatch = SYSCALL_DISPATCH_FILTER_BLOCK;
    status = steps(f, STEPS, &err);
    dispatch = SYSCALL_DISPATCH_FILTER_ALLOW;
    assert_true(watch_calls(false));
    assert_int_equal(status, MUSTER_OK);
    if (calls > 0)
        fail_msg("a step made system call %d", (int)first_call);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_step_allocates_nothing, open_node, close_node),
        cmocka_unit_test_setup_teardown(a_step_makes_no_system_call, open_node, close_node),
    };

    allocations_prepare();
    return cmocka_run_group_tests_name("free_steps", tests, NULL, NULL);
}
