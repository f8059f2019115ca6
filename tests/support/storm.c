/* storm - see storm.h. */
#include "tests/support/storm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#define PAUSE_US 10

struct storm {
    struct sigaction before;
    pthread_t target, sender;
    unsigned pause_us;
    atomic_bool stop;
};

static void do_nothing(int signo)
{
    (void)signo;
}

static void *send_signals(void *arg)
{
    struct storm *storm = arg;

    while (!atomic_load(&storm->stop)) {
        pthread_kill(storm->target, SIGPROF);
        usleep(storm->pause_us);
    }
    return NULL;
}

static struct storm *begin(void (*handler)(int signo), unsigned pause_us)
{
    struct sigaction action = {.sa_handler = handler != NULL ? handler : do_nothing};
    static struct storm storm;

    storm.pause_us = pause_us;
    storm.target = pthread_self();
    atomic_store(&storm.stop, false);
    assert_int_equal(sigaction(SIGPROF, &action, &storm.before), 0);
    assert_int_equal(pthread_create(&storm.sender, NULL, send_signals, &storm), 0);
    return &storm;
}

struct storm *storm_begin(void (*handler)(int signo))
{
    return begin(handler, PAUSE_US);
}

void storm_from_environment(void)
{
    const char *pause_us = getenv("MUSTER_TEST_STORM");

    if (pause_us != NULL)
        begin(NULL, (unsigned)atoi(pause_us));
}

void storm_end(struct storm **storm)
{
    struct storm *s = *storm;

    *storm = NULL;
    atomic_store(&s->stop, true);
    assert_int_equal(pthread_join(s->sender, NULL), 0);
    assert_int_equal(sigaction(SIGPROF, &s->before, NULL), 0);
}
