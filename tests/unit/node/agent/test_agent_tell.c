/* What is said to the user's log before the process ends. */
#include "node/agent/agent_tell.h"
#include "node/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#define LONG_MS 10000
#define SHORT_MS 20

static atomic_int said;
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER; /* held: a line does not return */

static void slow(int level, const char *text, void *arg)
{
    (void)level, (void)text, (void)arg;
    poll(NULL, 0, 2);
    atomic_fetch_add(&said, 1);
}

static void gated(int level, const char *text, void *arg)
{
    (void)level, (void)text, (void)arg;
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
}

static void ends_here(int level, const char *text, void *arg)
{
    (void)level, (void)text;
    tell_drain(*(struct tell **)arg, LONG_MS); /* the line that ends the process waits for itself */
    atomic_fetch_add(&said, 1);
}

static struct tell *start(void (*log)(int, const char *, void *), void *arg)
{
    const struct tell_hooks hooks = {.log = log, .arg = arg};
    struct tell *tell;

    atomic_store(&said, 0);
    assert_int_equal(tell_start(&hooks, &tell, NULL), MUSTER_OK);
    return tell;
}

static void who_drains_has_said_all(void **state)
{
    struct tell *tell = start(slow, NULL);
    const int64_t began_ms = clock_ms(CLOCK_MONOTONIC);

    (void)state;
    for (int i = 0; i < 5; i++)
        tell_log(tell, 1, "line");
    tell_drain(tell, LONG_MS);
    assert_int_equal(atomic_load(&said), 5);
    tell_drain(tell, LONG_MS); /* nothing waits */
    assert_true(clock_ms(CLOCK_MONOTONIC) - began_ms < LONG_MS);
    assert_true(tell_stop(&tell, LONG_MS));
    tell_drain(NULL, LONG_MS);
}

static void a_line_that_does_not_return_is_not_waited_for(void **state)
{
    struct tell *tell = start(gated, NULL);

    (void)state;
    pthread_mutex_lock(&gate);
    tell_log(tell, 1, "line");
    tell_drain(tell, SHORT_MS);
    pthread_mutex_unlock(&gate);
    assert_true(tell_stop(&tell, LONG_MS));
}

static void a_callback_that_ends_the_process_does_not_wait_for_itself(void **state)
{
    struct tell *tell;

    (void)state;
    tell = start(ends_here, &tell);
    tell_log(tell, 1, "line");
    tell_drain(tell, LONG_MS / 2);
    assert_int_equal(atomic_load(&said), 1);
    assert_true(tell_stop(&tell, LONG_MS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_drains_has_said_all),
        cmocka_unit_test(a_line_that_does_not_return_is_not_waited_for),
        cmocka_unit_test(a_callback_that_ends_the_process_does_not_wait_for_itself),
    };

    return cmocka_run_group_tests_name("agent_tell", tests, NULL, NULL);
}
