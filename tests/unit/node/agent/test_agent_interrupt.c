/* interrupted_fn over real sockets: a program that has to go, in each kind of wait. The bound is a
 * second. */
#include "tests/support/lone_node.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

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
        cmocka_unit_test_setup_teardown(ctrl_c_ends_a_question_that_no_broker_answers, setup,
                                        lone_teardown),
    };

    return cmocka_run_group_tests_name("agent_interrupt", tests, NULL, NULL);
}
