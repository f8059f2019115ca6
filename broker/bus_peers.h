/* bus_peers - what each connection of a broker with keys holds, and the end of those that hold too
 * much: connections, messages that the broker has not read, bytes that the peer has not read. Owns:
 * one slot for each descriptor; the counters of what it ended.
 * Never: reads a byte of a message, waits, logs.
 *
 * One rule holds for all: an address, a key and a connection may hold no more than what is still
 * free, or a share of that. So a peer that takes all it can leaves half to the others, and nobody
 * has to configure how many nodes a job has.
 * libzmq's I/O threads call the functions that are marked so; the loop calls all others. */
#ifndef BROKER_BUS_PEERS_H
#define BROKER_BUS_PEERS_H

#include "schema/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define PEERS_BUDGET_BYTES (512 << 20) /* of all connections: unread by us, and unread by them */
#define PEERS_SHARES 16                /* a connection has at most this part of what is free ... */
#define PEERS_UNREAD_BYTES (8 << 20)   /* ... or this: 100 frames of 64 KiB, a read of libzmq */
#define PEERS_UNSENT_BYTES (4 << 20)
#define PEERS_LEAST_BYTES (256 << 10) /* and may always have this much */
#define PEERS_SILENT_MS 10000         /* a node says HELLO at once, a listener its topic */
#define PEERS_REFUSED_MS 10000        /* for this long all peers of a connection are told why */
#define PEERS_FRAME_BYTES 1024        /* what libzmq takes for a frame, however short */

/* connections: descriptors of these are below it. False: no memory. */
bool bus_peers_start(size_t connections);
/* From now on connections are bounded: the broker has keys. events_port: where listeners come. */
void bus_peers_watch(int events_port);

/* Of I/O threads. opened: false = its address has its share of connections, close it. received:
 * false = what it has sent and nobody has read is too much, close it. */
bool bus_peers_opened(int listener, int fd, const struct sockaddr *address);
void bus_peers_closed(int fd);
bool bus_peers_received(int fd, uint64_t cost); /* bytes, and PEERS_FRAME_BYTES a frame */
void bus_peers_sent(int fd, size_t bytes);
bool bus_peers_listens(int fd); /* it is a listener's: it may say topics, and nothing else */

/* One part of a message that came over fd by `route` (0: of a listener). key: of its connection. */
void bus_peers_took(uint64_t route, int fd, size_t size, const char *key);
/* Before a message is sent to that route. False: its peer does not read, and is cut off. */
bool bus_peers_queue(uint64_t route, size_t size);
/* A message came by that route with a key that is no longer valid. Its peer is told so for
 * PEERS_REFUSED_MS, and then cut off. */
void bus_peers_refused(uint64_t route, int64_t now_boot_ms);
/* It could not be sent. full: because the peer has as many unread messages as it may; the peer is
 * cut off. */
void bus_peers_unqueue(uint64_t route, size_t size, bool full);
/* With all messages read: ends the connections that never said anything. */
void bus_peers_sweep(int64_t now_boot_ms);

struct bus_peers_counters {
    uint64_t address; /* connections closed: beyond the share of their address */
    uint64_t key;     /* ... of their key */
    uint64_t silent;  /* ... for they said nothing */
    uint64_t unread;  /* ... for they send what cannot be read: messages without an end */
    uint64_t unsent;  /* ... for they do not read */
    uint64_t revoked; /* ... for their key does not count any more */
};
void bus_peers_counters(struct bus_peers_counters *ret_counters);

#endif
