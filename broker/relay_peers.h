/* relay_peers - the numbers that a relay gives to its peers.
 * Owns: one number upward for each route of the bus below, until its place is needed.
 * What always holds: a number stands for one route in the relay's life until its place was taken
 * RELAY_TURNS times. A peer that lost its place gets another number, under which the broker does
 * not know it. The broker then asks it for HELLO, as after any new connection. */
#ifndef BROKER_RELAY_PEERS_H
#define BROKER_RELAY_PEERS_H

#include "schema/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RELAY_PEERS_BITS 14
#define RELAY_PEERS_MAX (1 << RELAY_PEERS_BITS)
_Static_assert(RELAY_PEERS_MAX >= WORLD_SIZE_MAX, "no rank of a launch loses its place to another");
#define RELAY_TURNS ((UINT32_C(1) << (32 - RELAY_PEERS_BITS)) - 1)

struct relay_peer {
    uint64_t route; /* 0: free */
    uint64_t used;  /* which word it last said */
    uint32_t turn;  /* how often this place was taken */
    uint16_t next;  /* in its list, + 1; 0: the last */
};

struct relay_peers { /* all zero: none */
    struct relay_peer peers[RELAY_PEERS_MAX];
    uint16_t lists[RELAY_PEERS_MAX]; /* by route: place + 1 */
    size_t count;
    uint64_t words;
};

/* The number of the peer that speaks by this route; never 0 or 1. */
uint32_t relay_peers_number(struct relay_peers *peers, uint64_t route);
/* The owner of that number. False: it has none, or no longer has one. */
bool relay_peers_route(const struct relay_peers *peers, uint32_t number, uint64_t *ret_route);

#endif
