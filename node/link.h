/* link - the two sockets between a node and its broker: DEALER for commands, SUB for events.
 * Owns: its ZeroMQ context and sockets, reconnecting, socket options. The only file of node/ with
 * zmq.h.
 * Never: decodes a frame, waits but in link_wait, resends; never ZMQ_HEARTBEAT_* (libzmq 4.3 can
 * abort the process on it), never ZMQ_CONFLATE. Never libzmq's own reconnecting: its jitter comes
 * from rand(), which in glibc is the host's random() stream. A message that does not fit in a queue
 * is dropped, so a sender must be ready to send it again.
 * Threads: link_open anywhere, then everything, link_close too, on one thread. Not in a forked
 * child. */
#ifndef NODE_LINK_H
#define NODE_LINK_H

#include "schema/limits.h"
#include "schema/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct link;

/* Starts to connect the DEALER; a broker need not be there. job is copied: the topic is job + NUL.
 * brokers (schema/brokers.h) are tried in turn: the link stays with one as long as link_heard is
 * called at least every LOST_MS. Both sockets are always for the same one.
 * E_ARGUMENT: the list or its first address cannot be understood. E_IO: too few free descriptors
 * (libzmq would abort the process when it meets the limit). E_NOMEM. */
enum muster_status link_open(const char *brokers, const char *job, struct link **ret_link,
                             struct muster_error *err);
/* Frames that were sent get up to 200 ms to leave. NULL-safe. */
void link_close(struct link **link);

/* Connects a SUB to the events endpoint, in place of a former one; of the same it keeps the
 * connection. To be said to each broker that is greeted: another address ends the SUB. An endpoint
 * without a host
 * ("tcp://0.0.0.0:7701", a host of star) is at the host of the command endpoint. */
enum muster_status link_subscribe(struct link *link, const char *endpoint,
                                  struct muster_error *err);

/* Is a broker connected, as far as was heard in link_wait? */
bool link_is_up(const struct link *link);

/* How many connections to a broker there were: on a new one the broker does not know this node. */
uint64_t link_connections(const struct link *link);

/* The broker there is the right one: the link stays with it. */
void link_heard(struct link *link);

/* False: dropped, no broker is connected or the queue is full. */
bool link_send(struct link *link, const void *frame, size_t size);

/* The next frame, borrowed until the next call on this link; NULL: nothing is there. Messages of
 * another shape (parts, topic) are skipped. */
const uint8_t *link_receive(struct link *link, size_t *ret_size);

/* Waits until a frame can be received, wake_fd is readable, or timeout_ms passed. It also tries
 * broken connections again, after RECONNECT_MS with jitter. True: wake_fd is readable. */
bool link_wait(struct link *link, int wake_fd, int64_t timeout_ms);

#endif
