#include "broker/relay_peers.h"

static uint16_t *relay_list_of(struct relay_peers *peers, uint64_t route)
{
    uint64_t hash = (route ^ route >> 29) * UINT64_C(0x9e3779b97f4a7c15);

    return &peers->lists[hash >> (64 - RELAY_PEERS_BITS)];
}

static void peer_forget(struct relay_peers *peers, size_t place)
{
    uint16_t *at = relay_list_of(peers, peers->peers[place].route);

    while (*at != place + 1)
        at = &peers->peers[*at - 1].next;
    *at = peers->peers[place].next;
}

/* A free place, or the place of the peer that has been silent for the longest. */
static size_t peer_place(struct relay_peers *peers)
{
    size_t oldest = 0;

    if (peers->count < RELAY_PEERS_MAX)
        return peers->count++;
    for (size_t i = 1; i < RELAY_PEERS_MAX; i++)
        if (peers->peers[i].used < peers->peers[oldest].used)
            oldest = i;
    peer_forget(peers, oldest);
    return oldest;
}

static uint32_t relay_number_of(const struct relay_peers *peers, size_t place)
{
    return peers->peers[place].turn << RELAY_PEERS_BITS | (uint32_t)place;
}

uint32_t relay_peers_number(struct relay_peers *peers, uint64_t route)
{
    uint16_t *list = relay_list_of(peers, route);
    struct relay_peer *peer;
    size_t place;

    for (uint16_t at = *list; at != 0; at = peers->peers[at - 1].next)
        if (peers->peers[at - 1].route == route) {
            peers->peers[at - 1].used = ++peers->words;
            return relay_number_of(peers, at - 1U);
        }
    place = peer_place(peers);
    peer = &peers->peers[place];
    peer->turn = peer->turn == RELAY_TURNS ? 1 : peer->turn + 1;
    peer->route = route;
    peer->used = ++peers->words;
    peer->next = *list; /* after the place was freed: it may have been in this list */
    *list = (uint16_t)(place + 1);
    return relay_number_of(peers, place);
}

bool relay_peers_route(const struct relay_peers *peers, uint32_t number, uint64_t *ret_route)
{
    const size_t place = number & (RELAY_PEERS_MAX - 1);

    if (place >= peers->count || relay_number_of(peers, place) != number)
        return false;
    *ret_route = peers->peers[place].route;
    return true;
}
