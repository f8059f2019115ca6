/* A worker whose start failed: nothing of it is left that takes tasks, and it can be started again.
 */
#include "client/tasks/worker_private.h"
#include "tests/proc/router_stage.h"
#include "tests/support/scratch.h"
#include "tests/support/storm.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PATIENCE_S 60

static struct {
    char dir[SCRATCH_PATH_MAX];
    char endpoint[SCRATCH_PATH_MAX + 32];
    struct router_stage stage;
    unsigned code; /* what a HELLO is answered */
} broker;

/* --- a broker that welcomes, and lets go ------------------------------------------------------ */

static bool answer_to(const struct wire_msg *asked, struct wire_msg *answer)
{
    answer->down.job = "train";
    answer->down.start_id = 7;
    if (asked->type == WIRE_WORK_HELLO) {
        answer->type = WIRE_WORK_WELCOME;
        answer->u.work_welcome =
            (struct wire_work_welcome){.nonce = asked->u.work_hello.nonce,
                                       .code = broker.code,
                                       .text = broker.code == MUSTER_OK ? "" : "it lives"};
    } else if (asked->type == WIRE_WORK_LEAVE) {
        answer->type = WIRE_WORK_LEFT;
        answer->u.work_left.nonce = asked->u.work_leave.nonce;
    }
    return answer->type != WIRE_NONE;
}

static void begin_broker(unsigned code)
{
    broker.code = code;
    router_stage_begin(&broker.stage, broker.endpoint, answer_to);
}

static void end_broker(void)
{
    router_stage_end(&broker.stage);
}

/* --- tests ------------------------------------------------------------------------------------ */

static int setup(void **state)
{
    (void)state;
    alarm(PATIENCE_S); /* a hang ends so */
    scratch_make(broker.dir);
    snprintf(broker.endpoint, sizeof broker.endpoint, "ipc://%s/broker", broker.dir);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    scratch_remove(broker.dir);
    alarm(0);
    return 0;
}

static muster_worker_t *open_worker(int64_t connect_timeout_ms)
{
    struct muster_worker_options options = MUSTER_WORKER_OPTIONS_INIT;
    muster_worker_t *worker = NULL;

    options.broker = broker.endpoint;
    options.job = "train";
    options.index = 0;
    options.slots = 2;
    options.connect_timeout_ms = connect_timeout_ms;
    assert_int_equal(muster_worker_open(&options, &worker, NULL), MUSTER_OK);
    return worker;
}

static int work(muster_task_t *task, void *arg)
{
    (void)task, (void)arg;
    return 0;
}

/* A thread that was joined is listed for a moment longer; one that is not is there until the alarm.
 */
static void await_threads(size_t count)
{
    while (scratch_count("/proc/self/task") > count)
        usleep(1000);
}

#ifdef __SANITIZE_THREAD__
static void *end_at_once(void *arg)
{
    return arg;
}

/* TSan begins one of its own with a program's first, and keeps it. */
static size_t count_threads(void)
{
    size_t own = scratch_count("/proc/self/task");
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, end_at_once, NULL), 0);
    pthread_join(thread, NULL);
    await_threads(own + 1);
    return own + 1;
}
#else
static size_t count_threads(void)
{
    return scratch_count("/proc/self/task");
}
#endif

/* A thread that is left says HELLO to whatever broker comes, and is given tasks that nobody runs */
static void no_thread_is_left_of_a_start_that_failed(void **state)
{
    size_t threads = count_threads();
    muster_worker_t *worker = open_worker(100);

    (void)state;
    assert_int_equal(muster_worker_start(worker, NULL), MUSTER_E_BROKER);
    await_threads(threads);
    assert_int_equal(muster_worker_serve(worker, NULL), MUSTER_E_BROKER); /* and not BUSY */
    await_threads(threads);
    muster_worker_close(&worker, NULL);
}

static void it_can_be_started_again(void **state)
{
    muster_worker_t *worker = open_worker(PATIENCE_S * 1000);

    (void)state;
    begin_broker(MUSTER_E_RANK_TAKEN);
    assert_int_equal(muster_worker_start(worker, NULL), MUSTER_E_RANK_TAKEN);
    end_broker();
    assert_int_equal(muster_worker_register(worker, "work", work, NULL, NULL), MUSTER_OK);
    begin_broker(MUSTER_OK);
    assert_int_equal(muster_worker_start(worker, NULL), MUSTER_OK);
    assert_int_equal(muster_worker_start(worker, NULL), MUSTER_E_BUSY);
    muster_worker_close(&worker, NULL);
    end_broker();
}

/* --- the end, by a signal --------------------------------------------------------------------- */

static muster_worker_t *served;

static void on_signal(int signo)
{
    (void)signo;
    muster_worker_stop(served);
}

/* Wherever it comes: in a call of ours, in the middle of another stop, and once the worker is
 * closed. */
static void a_signals_handler_ends_serve_at_any_moment(void **state)
{
    (void)state;
    begin_broker(MUSTER_OK);
    for (int i = 0; i < 10; i++) {
        struct muster_error err = {0};
        struct storm *storm;

        served = open_worker(PATIENCE_S * 1000);
        assert_int_equal(muster_worker_register(served, "work", work, NULL, NULL), MUSTER_OK);
        storm = storm_begin(on_signal);
        if (muster_worker_serve(served, &err) != MUSTER_OK)
            fail_msg("%s", err.text);
        muster_worker_close(&served, NULL);
        storm_end(&storm);
    }
    end_broker();
}

/* As if it had interrupted any call of ours. */
static void a_signals_handler_waits_for_nobody(void **state)
{
    (void)state;
    served = open_worker(100);
    pthread_mutex_lock(&served->mutex);
    errno = ERANGE;
    on_signal(SIGUSR1);
    assert_int_equal(errno, ERANGE);
    pthread_mutex_unlock(&served->mutex);
    assert_int_equal(muster_worker_start(served, NULL), MUSTER_OK); /* it is stopped already */
    muster_worker_close(&served, NULL);
}

/* One that a handler interrupted in the middle of its own stop, and that ends the program from
 * there: nobody returns. */
static void close_does_not_wait_for_a_stop_that_never_returns(void **state)
{
    muster_worker_t *worker = open_worker(100);
    muster_worker_t *stopped = worker;

    (void)state;
    atomic_fetch_add(&worker->stopping_now, 1);
    muster_worker_close(&worker, NULL);
    assert_null(worker);
    muster_worker_stop(stopped); /* should it return after all, it finds what it uses */
    assert_int_equal(atomic_load(&stopped->stopping_now), 1);
    assert_int_equal(close(stopped->wake_fd), 0);
    free(stopped);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(no_thread_is_left_of_a_start_that_failed, setup, teardown),
        cmocka_unit_test_setup_teardown(it_can_be_started_again, setup, teardown),
        cmocka_unit_test_setup_teardown(a_signals_handler_ends_serve_at_any_moment, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_signals_handler_waits_for_nobody, setup, teardown),
        cmocka_unit_test_setup_teardown(close_does_not_wait_for_a_stop_that_never_returns, setup,
                                        teardown),
    };

    return cmocka_run_group_tests_name("worker_start", tests, NULL, NULL);
}
