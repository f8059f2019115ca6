/* What the agent's core drops and tells, over real sockets. */
#include "tests/support/lone_node.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <zmq.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char said[16384];

static void take_line(int level, const char *text, void *arg)
{
    size_t used;

    (void)level, (void)arg;
    pthread_mutex_lock(&mutex);
    used = strlen(said);
    snprintf(said + used, sizeof said - used, "%s\n", text);
    pthread_mutex_unlock(&mutex);
}

static int times_said(const char *text)
{
    int times = 0;

    pthread_mutex_lock(&mutex);
    for (const char *at = strstr(said, text); at != NULL; at = strstr(at + 1, text))
        times++;
    pthread_mutex_unlock(&mutex);
    return times;
}

static int setup(void **state)
{
    int failed = lone_setup(state);

    said[0] = '\0';
    lone.options.log = take_line;
    return failed;
}

static void send_raw(const void *bytes, size_t size)
{
    zmq_send(lone.router, lone.route, (size_t)lone.route_size, ZMQ_SNDMORE);
    assert_int_equal(zmq_send(lone.router, bytes, size, 0), size);
}

static void frames_that_are_no_brokers_are_dropped_and_told_once(void **state)
{
    struct wire_msg own = {.type = WIRE_LEAVE}; /* only a node sends it */
    uint8_t frame[WIRE_FRAME_MAX];
    size_t size;

    (void)state;
    lone_start();
    lone_welcome_and_start();
    lone_await_steps(1);
    size = wire_encode(&own, frame, sizeof frame);
    assert_int_not_equal(size, 0);
    send_raw("garbage", 7);
    send_raw("", 0);
    send_raw(frame, size);
    lone_await_leave(); /* the answer to LEAVE comes behind them */
    assert_int_equal(lone.close_status, MUSTER_OK);
    assert_int_equal(times_said("a frame that is no broker's message was dropped"), 1);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, setup, lone_teardown)
    const struct CMUnitTest tests[] = {
        T(frames_that_are_no_brokers_are_dropped_and_told_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
