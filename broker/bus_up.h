/* bus_up - a relay's own connection to the broker above it: DEALER for bundles, SUB for events.
 * Owns: these two sockets, the list of addresses and which of them is tried, the topics.
 * Never: looks into a bundle, waits, sends again. The caller keeps a message that cannot go at
 * once. What always holds: both sockets are for the same address. A connection has at most
 * GUARD_TOPICS_MAX topics in its life, as the broker's door demands. One thread. */
#ifndef BROKER_BUS_UP_H
#define BROKER_BUS_UP_H

#include "schema/brokers.h"
#include "schema/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bus_up;

/* key_file: what `muster key` made; NULL: none is shown. Copies both. watch_fd: bus_up_fd is
 * readable when this is, too. MUSTER_E_ARGUMENT: an address cannot be understood. MUSTER_E_AUTH,
 * MUSTER_E_CORRUPT: the key. MUSTER_E_IO, MUSTER_E_NOMEM. */
enum muster_status bus_up_open(const struct brokers *brokers, const char *key_file, int watch_fd,
                               int64_t now_ms, struct bus_up **ret_up, struct muster_error *err);
void bus_up_close(struct bus_up **up); /* NULL-safe */

/* It becomes readable when something new comes. Only bus_up_is_ready shows what is there
 * already. */
int bus_up_fd(const struct bus_up *up);
bool bus_up_is_ready(const struct bus_up *up);

const char *bus_up_address(const struct bus_up *up); /* the one that is tried, or was reached */
bool bus_up_is_reached(const struct bus_up *up);

/* The broker answered, and publishes its events there. MUSTER_E_ARGUMENT: that is no address. */
enum muster_status bus_up_heard(struct bus_up *up, const char *events, int64_t now_ms,
                                struct muster_error *err);
/* If nothing was heard for too long, the broker counts as not reached, and the next address is
 * tried. The connection to a single address is kept; with a key file it is made again, because the
 * file may hold another key now. True: it was too long. A try that failed is repeated after the
 * same time. */
bool bus_up_tick(struct bus_up *up, int64_t now_ms, struct muster_error *err);

/* The topic of a job is listened to from now on, or need not be. False: there are too many, and it
 * waits until another one is not wanted any more. */
bool bus_up_topic(struct bus_up *up, const char *topic, bool wanted);

bool bus_up_send(struct bus_up *up, const uint8_t *bytes, size_t size);
/* One message, borrowed until the next call of these two. NULL: none is there. */
const uint8_t *bus_up_receive(struct bus_up *up, size_t *ret_size);
const uint8_t *bus_up_event(struct bus_up *up, char ret_topic[JOB_NAME_MAX + 1], size_t *ret_size);

#endif
