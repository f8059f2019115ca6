/* clock - the time in milliseconds, by one of the system's clocks: CLOCK_BOOTTIME for deadlines of
 * a host, CLOCK_MONOTONIC for waits, CLOCK_REALTIME for what is written down. As node/clock.h,
 * which the broker does not include: it is linked without node. */
#ifndef BROKER_BASE_CLOCK_H
#define BROKER_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t clock_ms(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

#endif
