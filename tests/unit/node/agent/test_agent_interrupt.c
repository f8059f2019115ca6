/* interrupted_fn over real sockets: a program that has to go, in each kind of wait. The bound is a
 * second. */
#include "tests/support/lone_node.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include <muster/client.h>

#define BOUND_MS 1000

static _Atomic int wanted; /* says yes once, as Ctrl-C does */
static _Atomic int asked;
static _Atomic(pthread_t) asked_on;

static bool interrupted(void *arg)
{
    (void)arg;
    atomic_store(&asked_on, pthread_self());
    atomic_fetch_add(&asked, 1);
    return atomic_exchange(&wanted, 0) != 0;
}

static int setup(void **state)
{
    int code = lone_setup(state);

    atomic_store(&wanted, 0);
    atomic_store(&asked, 0);
    lone.options.interrupted_fn = interrupted;
    return code;
}

static void await_question(void)
{
    const int before = atomic_load(&asked);
    const int64_t until_ms = lone_now_ms() + LONE_DEADLINE_MS;

    while (atomic_load(&asked) <= before + 1 && lone_now_ms() < until_ms)
        poll(NULL, 0, 1);
    assert_true(atomic_load(&asked) > before + 1);
}

static void ctrl_c_ends_an_open_that_no_broker_answers(void **state)
{
    int64_t began_ms;

    (void)state;
    lone.options.connect_timeout_ms = 60000;
    lone_start();
    await_question();
    began_ms = lone_now_ms();
    atomic_store(&wanted, 1);
    lone_end();
    assert_true(lone_now_ms() - began_ms < BOUND_MS);
    assert_int_equal(lone.open_status, MUSTER_E_INTERRUPTED);
    assert_non_null(strstr(lone.error.text, "interrupted"));
}

static void ctrl_c_ends_the_wait_for_other_ranks_and_they_are_told(void **state)
{
    int64_t began_ms;

    (void)state;
    lone_start();
    lone_welcome();
    lone_say((struct wire_event){.kind = EVENT_RESUME});
    lone_await(WIRE_RESTORED);
    await_question(); /* the first boundary waits for rank 1 */
    assert_true(pthread_equal(atomic_load(&asked_on), lone.thread));
    began_ms = lone_now_ms();
    atomic_store(&wanted, 1);
    lone_await(WIRE_ERROR);
    assert_non_null(strstr(lone.heard.u.error.text, "interrupted"));
    lone_await_leave();
    assert_true(lone_now_ms() - began_ms < BOUND_MS);
    assert_int_equal(lone.run_status, MUSTER_E_INTERRUPTED);
    assert_int_equal(atomic_load(&lone.in_step), 0);
}

#define BIG_BYTES ((size_t)96 << 20) /* its checksum takes longer than a program is not asked */

static int save_big_and_press_ctrl_c(const struct muster_save_context *context)
{
    int fd = open(scratch_path(context->directory, "model"), O_WRONLY | O_CREAT, 0600);
    int code = fd < 0 || ftruncate(fd, (off_t)BIG_BYTES) != 0 || close(fd) != 0;

    atomic_store(&wanted, 1);
    return code;
}

static int restore_nothing(const struct muster_restore_context *context)
{
    (void)context;
    return 0;
}

/* R8.5: an interrupt shortens the waits behind it. */
static void ctrl_c_in_close_does_not_break_off_the_last_save(void **state)
{
    int64_t step;

    (void)state;
    lone.options.termination.save_fn = save_big_and_press_ctrl_c;
    lone.options.termination.restore_fn = restore_nothing;
    lone.options.state = NULL;
    lone.signer = "k"; /* checksums that nobody can forge, which take their time */
    lone_start();
    lone_welcome_and_start();
    lone_await_steps(3);
    lone_hold_in_step();
    lone_say_with_member(EVENT_FREEZE, CAUSE_OPERATOR, -1, 0);
    step = lone_await(WIRE_REPORT)->u.report.begun;
    atomic_store(&lone.stop, true); /* that was its last step, and it closes */
    lone_say_with_member(EVENT_DECISION, CAUSE_OPERATOR, step, MEMBER_FLAG_WRITER);
    lone_await(WIRE_SAVED);
    assert_int_equal(lone.heard.u.saved.step, step);
    lone_end();
}

static void ctrl_c_ends_a_question_that_no_broker_answers(void **state)
{
    muster_client_t *client = NULL;
    muster_rows_t *rows = NULL;
    const int64_t began_ms = lone_now_ms();

    (void)state;
    assert_int_equal(muster_client_open(lone.command, 60000, &client, NULL), MUSTER_OK);
    muster_client_set_interrupted(client, interrupted, NULL);
    atomic_store(&wanted, 1);
    assert_int_equal(muster_client_jobs(client, NULL, &rows, NULL), MUSTER_E_INTERRUPTED);
    assert_true(lone_now_ms() - began_ms < BOUND_MS);
    assert_null(rows);
    muster_client_close(&client, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(ctrl_c_ends_an_open_that_no_broker_answers, setup,
                                        lone_teardown),
        cmocka_unit_test_setup_teardown(ctrl_c_ends_the_wait_for_other_ranks_and_they_are_told,
                                        setup, lone_teardown),
        cmocka_unit_test_setup_teardown(ctrl_c_in_close_does_not_break_off_the_last_save, setup,
                                        lone_teardown),
        cmocka_unit_test_setup_teardown(ctrl_c_ends_a_question_that_no_broker_answers, setup,
                                        lone_teardown),
    };

    return cmocka_run_group_tests_name("agent_interrupt", tests, NULL, NULL);
}
