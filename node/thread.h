/* thread - how the node starts a thread of its own, and how long it waits for one.
 * A thread of the library's never runs the host's signal handlers, and one that does not end (in a
 * callback, on a disk) is left behind instead of being waited for for ever. */
#ifndef NODE_THREAD_H
#define NODE_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* pthread_create with all signals blocked in the thread. 0 or an errno. */
int thread_start(pthread_t *ret_thread, void *(*run)(void *arg), void *arg);
/* pthread_join, for at most limit_ms. False: it runs on, detached; it is joined no more. */
bool thread_join(pthread_t thread, int64_t limit_ms);
/* CLOCK_MONOTONIC in ms from now: the wall clock may be set back. */
struct timespec thread_time_after(int64_t ms);

#endif
