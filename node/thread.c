/* thread - see thread.h. */
#include "node/thread.h"

#include <errno.h>
#include <signal.h>

struct timespec thread_time_after(int64_t ms)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    time.tv_sec += ms / 1000;
    time.tv_nsec += ms % 1000 * 1000000L;
    if (time.tv_nsec >= 1000000000L) {
        time.tv_nsec -= 1000000000L;
        time.tv_sec++;
    }
    return time;
}

int thread_start(pthread_t *ret_thread, void *(*run)(void *arg), void *arg)
{
    sigset_t all, before;
    int code;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    code = pthread_create(ret_thread, NULL, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code;
}

#ifdef __SANITIZE_THREAD__
/* TSan of gcc 12 does not know pthread_clockjoin_np: all that a joined thread ever did looks like a
 * race there. */
static int thread_join_until(pthread_t thread, const struct timespec *until)
{
    const struct timespec nap = {.tv_nsec = 1000000};
    struct timespec now = thread_time_after(0);
    int code;

    while ((code = pthread_tryjoin_np(thread, NULL)) == EBUSY &&
           (now.tv_sec < until->tv_sec ||
            (now.tv_sec == until->tv_sec && now.tv_nsec < until->tv_nsec))) {
        nanosleep(&nap, NULL);
        now = thread_time_after(0);
    }
    return code;
}
#else
static int thread_join_until(pthread_t thread, const struct timespec *until)
{
    return pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, until);
}
#endif

bool thread_join(pthread_t thread, int64_t limit_ms)
{
    struct timespec until = thread_time_after(limit_ms); /* the wall clock may be set back */

    if (thread_join_until(thread, &until) == 0)
        return true;
    pthread_detach(thread); /* what is left of it goes with it, should it ever end */
    return false;
}
