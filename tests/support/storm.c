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
#include <unistd.h>

#define PAUSE_US 10

struct storm {
    struct sigaction before;
    pthread_t target, sender;
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
        pthread_kill(storm->target, SIGUSR1);
        usleep(PAUSE_US);
    }
    return NULL;
}

struct storm *storm_begin(void (*handler)(int signo))
{
    struct sigaction action = {.sa_handler = handler != NULL ? handler : do_nothing};
    static struct storm storm;

    storm.target = pthread_self();
    atomic_store(&storm.stop, false);
    assert_int_equal(sigaction(SIGUSR1, &action, &storm.before), 0);
    assert_int_equal(pthread_create(&storm.sender, NULL, send_signals, &storm), 0);
    return &storm;
}

void storm_end(struct storm **storm)
{
    struct storm *s = *storm;

    *storm = NULL;
    atomic_store(&s->stop, true);
    assert_int_equal(pthread_join(s->sender, NULL), 0);
    assert_int_equal(sigaction(SIGUSR1, &s->before, NULL), 0);
}
