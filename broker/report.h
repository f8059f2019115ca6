/* report - logs what the broker threw away, and which connections it closed. Owns: what was logged
 * already. Always: at most one line for each kind in ten seconds. */
#ifndef BROKER_REPORT_H
#define BROKER_REPORT_H

#include "broker/bus.h"
#include "broker/bus_guard.h"
#include "broker/loop.h"

struct report { /* all zero: nothing was said */
    struct loop_counters loop;
    struct bus_counters bus;
    struct bus_guard_counters guard;
    int64_t next_boot_ms;
};

void report_say(struct report *report, const struct loop_counters *loop,
                const struct bus_counters *bus, int64_t now_boot_ms);

#endif
