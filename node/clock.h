/* clock - the time in milliseconds, by one of the system's clocks: CLOCK_BOOTTIME for deadlines of
 * a host, CLOCK_MONOTONIC for waits, CLOCK_REALTIME for what is written down. Async-signal-safe. No
 * file of its own, for client/query* is linked without node. */
#ifndef NODE_CLOCK_H
#define NODE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t clock_ms(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

#endif
