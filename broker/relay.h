/* relay - one connection for all ranks of a host: they speak to it as to a broker, and it bundles
 * what they say. `musterd --relay`.
 * Owns: the numbers of the peers below, at most two bundles on their way up, the counters.
 * Never: decides, stores, answers for the broker, looks into a frame but for a WELCOME's endpoint
 * and a refused version. It may end at any moment: those below connect again and say HELLO.
 * What always holds: what goes up over the relay's connection has the relay's key and no other.
 * While a bundle cannot leave, nobody below is read, so what they say waits in their own queues.
 */
#ifndef BROKER_RELAY_H
#define BROKER_RELAY_H

#include "broker/bus.h"
#include "schema/brokers.h"

#include <stdbool.h>

struct relay;

struct relay_options {
    const char *listen;            /* as bus_options, but without keys: this host alone */
    const struct brokers *brokers; /* above */
    const char *key_file;          /* NULL: none */
    int signal_fd;                 /* readable when a signal means "stop"; -1: none */
};

struct relay_counters {
    uint64_t up, bundles_up; /* frames, and in how many bundles */
    uint64_t down, bundles_down;
    uint64_t events;
    uint64_t unknown; /* frames for a number that is nobody's any more */
    uint64_t late;    /* frames up that were dropped: no broker took them */
    uint64_t topics;  /* refused: too many jobs at once */
};

/* May a relay to these brokers listen at that address? Opens nothing. */
enum muster_status relay_check(const char *listen, const struct brokers *brokers,
                               struct muster_error *err);

/* MUSTER_E_ARGUMENT: an address is wrong, or its own. Statuses of bus_open and bus_up_open. */
enum muster_status relay_open(const struct relay_options *options, struct relay **ret_relay,
                              struct muster_error *err);
void relay_close(struct relay **relay); /* NULL-safe */

struct bus *relay_bus(struct relay *relay); /* for its endpoints */
const struct relay_counters *relay_counters(const struct relay *relay);

/* One pass: waits at most timeout_ms. *ret_stop: a signal came. A failure is final.
 * MUSTER_E_VERSION: the broker knows no bundles, or others. MUSTER_E_ARGUMENT: it met itself. */
enum muster_status relay_pass(struct relay *relay, int64_t timeout_ms, bool *ret_stop,
                              struct muster_error *err);
/* Passes until a signal comes. */
enum muster_status relay_run(struct relay *relay, struct muster_error *err);

#endif
