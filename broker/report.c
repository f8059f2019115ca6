/* report - see report.h. */
#include "broker/report.h"

#include "broker/log.h"

#include <inttypes.h>

#define REPORT_EVERY_MS 10000

/* This and the next: true if there was something to say. */
static bool report_denied(const struct report *report, const struct loop_counters *loop,
                          const struct bus_counters *bus)
{
    uint64_t denied = loop->denied - report->loop.denied;
    uint64_t dropped = bus->dropped_keys - report->bus.dropped_keys;
    uint64_t topics = bus->dropped_topics - report->bus.dropped_topics;

    if (denied + dropped + topics == 0)
        return false;
    broker_log(LOG_LEVEL_WARNING,
               "refused messages: %" PRIu64 " that their key may not send, %" PRIu64
               " of keys that are gone, %" PRIu64 " subscriptions to other jobs",
               denied, dropped, topics);
    return true;
}

static bool report_dropped(struct report *report, const struct loop_counters *loop,
                           const struct bus_counters *bus)
{
    const struct loop_counters *then = &report->loop;
    uint64_t malformed = loop->malformed - then->malformed;
    uint64_t version = loop->version - then->version;
    uint64_t unexpected = loop->unexpected - then->unexpected;
    uint64_t shape = bus->dropped_shape + bus->dropped_identity - report->bus.dropped_shape -
                     report->bus.dropped_identity;
    uint64_t full = bus->full - report->bus.full;

    report->loop = *loop;
    report->bus = *bus;
    if (malformed + version + unexpected + shape + full == 0)
        return false;
    broker_log(LOG_LEVEL_WARNING,
               "dropped messages: %" PRIu64 " malformed, %" PRIu64 " of another version, %" PRIu64
               " unexpected, %" PRIu64 " not framed as ours; %" PRIu64
               " could not be sent to nodes "
               "that do not read",
               malformed, version, unexpected, shape, full);
    return true;
}

static bool report_closed(struct report *report)
{
    struct bus_guard_counters now;
    uint64_t hostile, full;

    bus_guard_counters(&now);
    hostile = now.hostile - report->guard.hostile;
    full = now.full - report->guard.full;
    report->guard = now;
    if (hostile > 0)
        broker_log(LOG_LEVEL_WARNING,
                   "closed connections: %" PRIu64
                   " that sent what no node of muster sends (a message in parts, many or long "
                   "topics, another protocol)",
                   hostile);
    if (full > 0)
        broker_log(LOG_LEVEL_WARNING,
                   "closed connections: %" PRIu64
                   " new ones, for the limit of open files (%zu) is reached; start musterd with a "
                   "higher one (ulimit -n, LimitNOFILE=)",
                   full, bus_guard_files());
    return hostile + full > 0;
}

/* Messages came, and none of their bytes was seen. */
static bool report_unguarded(const struct report *report)
{
    if (bus_guard_files() == 0 || report->guard.judged > 0 || report->bus.received == 0)
        return false;
    broker_log(
        LOG_LEVEL_WARNING,
        "this libzmq does not read through recv(), so what a peer sends takes memory without "
        "a bound; let in only peers that are trusted, and use libzmq 4.3");
    return true;
}

void report_say(struct report *report, const struct loop_counters *loop,
                const struct bus_counters *bus, int64_t now_boot_ms)
{
    bool said;

    if (now_boot_ms < report->next_boot_ms)
        return;
    said = report_denied(report, loop, bus);
    said |= report_dropped(report, loop, bus);
    said |= report_closed(report);
    said |= report_unguarded(report);
    if (said)
        report->next_boot_ms = now_boot_ms + REPORT_EVERY_MS;
}
