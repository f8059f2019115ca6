#include "broker/bus_peers.h"

#include "broker/base/clock.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define GROUPS                                                                        \
    4096 /* addresses, and keys: two may share one, and then share what they may have \
          */
#define ROUTES 65536

struct slot {
    atomic_bool open;
    atomic_bool listens;
    bool ended;               /* with the mutex: its I/O thread is about to hear of it */
    uint16_t address;         /* this and `key`: groups */
    atomic_uint_fast16_t key; /* 0: it has not shown one yet */
    int64_t since_ms;         /* boot */
    int64_t refused_ms;       /* with the mutex; boot, since its key does not count; 0: it does */
    int64_t refused_last_ms;
    atomic_uint serial;         /* of the connections that had this descriptor */
    atomic_int_fast64_t unread; /* bytes of frames that came and were not taken */
    atomic_int_fast64_t unsent; /* bytes that are to be sent */
};

static struct {
    pthread_mutex_t mutex; /* opening, closing and ending: never beside one another */
    struct slot *slots;    /* by descriptor */
    size_t size, high;     /* no open one is at or above `high` */
    size_t open;
    uint32_t by_address[GROUPS], by_key[GROUPS];
    atomic_bool watching;
    int events_port;
    int64_t swept_ms;
    struct {
        uint64_t route;
        int fd;
        unsigned serial;
    } routes[ROUTES];                   /* of the newest message of each, by its last 16 bits */
    atomic_int_fast64_t unread, unsent; /* of all */
    atomic_uint_fast64_t over_address, over_key, silent, over_unread, over_unsent, over_revoked;
} peers = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void peers_count(atomic_uint_fast64_t *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

static struct slot *peers_slot_of(int fd)
{
    return atomic_load(&peers.watching) && fd >= 0 && (size_t)fd < peers.size ? &peers.slots[fd]
                                                                              : NULL;
}

/* FNV-1a. Never 0. */
static uint16_t peers_group_of(const void *data, size_t size)
{
    const uint8_t *bytes = data;
    uint32_t hash = 2166136261U;

    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * 16777619U;
    return (uint16_t)(1 + (hash ^ hash >> 16) % (GROUPS - 1));
}

static uint16_t peers_group_of_address(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET6)
        return peers_group_of(&((const struct sockaddr_in6 *)address)->sin6_addr,
                              sizeof(struct in6_addr));
    if (address->sa_family == AF_INET)
        return peers_group_of(&((const struct sockaddr_in *)address)->sin_addr,
                              sizeof(struct in_addr));
    return 1;
}

/* --- what is held ----------------------------------------------------------------------------- */

/* Takes at most what is there, so that a count is never below 0. */
static void peers_amount_less(atomic_int_fast64_t *of_one, atomic_int_fast64_t *of_all,
                              int64_t bytes)
{
    int_fast64_t have = atomic_load(of_one);
    int64_t less;

    do
        less = bytes < have ? bytes : have;
    while (!atomic_compare_exchange_weak(of_one, &have, have - less));
    atomic_fetch_sub(of_all, less);
}

static int64_t peers_amount_more(atomic_int_fast64_t *of_one, atomic_int_fast64_t *of_all,
                                 int64_t bytes)
{
    atomic_fetch_add(of_all, bytes);
    return atomic_fetch_add(of_one, bytes) + bytes;
}

static bool peers_amount_ok(int64_t bytes, const atomic_int_fast64_t *of_all, int64_t most)
{
    int64_t share = (PEERS_BUDGET_BYTES - atomic_load(of_all)) / PEERS_SHARES;

    return bytes <= PEERS_LEAST_BYTES || (bytes <= share && bytes <= most);
}

/* --- connections ------------------------------------------------------------------------------ */

bool bus_peers_start(size_t connections)
{
    peers.slots = calloc(connections, sizeof *peers.slots);
    peers.size = connections;
    return peers.slots != NULL;
}

void bus_peers_watch(int events_port)
{
    peers.events_port = events_port;
    atomic_store(&peers.watching, true);
}

static int peers_port_of_listener(int listener)
{
    struct sockaddr_storage own = {0};
    socklen_t size = sizeof own;

    if (getsockname(listener, (struct sockaddr *)&own, &size) != 0)
        return 0;
    if (own.ss_family == AF_INET6)
        return ntohs(((const struct sockaddr_in6 *)&own)->sin6_port);
    return own.ss_family == AF_INET ? ntohs(((const struct sockaddr_in *)&own)->sin_port) : 0;
}

/* A peer may hold as many as are still free, so it can never take the last one. */
static bool peers_share_ok(uint32_t held)
{
    return held <= peers.size - peers.open;
}

bool bus_peers_opened(int listener, int fd, const struct sockaddr *address)
{
    struct slot *slot = peers_slot_of(fd);
    uint16_t group;
    bool ok;

    if (slot == NULL)
        return true;
    group = peers_group_of_address(address);
    pthread_mutex_lock(&peers.mutex);
    ok = peers_share_ok(peers.by_address[group] + 1);
    if (ok) {
        slot->listens = peers_port_of_listener(listener) == peers.events_port;
        slot->address = group;
        slot->key = 0;
        slot->since_ms = clock_ms(CLOCK_BOOTTIME);
        slot->refused_ms = 0;
        slot->ended = false;
        slot->serial++;
        slot->open = true;
        peers.by_address[group]++;
        peers.open++;
        if ((size_t)fd >= peers.high)
            peers.high = (size_t)fd + 1;
    }
    pthread_mutex_unlock(&peers.mutex);
    if (!ok)
        peers_count(&peers.over_address);
    return ok;
}

void bus_peers_closed(int fd)
{
    struct slot *slot = peers_slot_of(fd);

    if (slot == NULL)
        return;
    pthread_mutex_lock(&peers.mutex);
    if (slot->open) {
        slot->open = false;
        peers.open--;
        peers.by_address[slot->address]--;
        if (slot->key != 0)
            peers.by_key[slot->key]--;
        peers_amount_less(&slot->unread, &peers.unread, INT64_MAX);
        peers_amount_less(&slot->unsent, &peers.unsent, INT64_MAX);
    }
    pthread_mutex_unlock(&peers.mutex);
}

/* With the mutex. Its I/O thread hears that the peer has ended, and closes it. */
static void peers_slot_end(int fd, atomic_uint_fast64_t *counter)
{
    if (!peers.slots[fd].open || peers.slots[fd].ended)
        return;
    peers.slots[fd].ended = true;
    shutdown(fd, SHUT_RDWR);
    peers_count(counter);
}

bool bus_peers_listens(int fd)
{
    const struct slot *slot = peers_slot_of(fd);

    return slot != NULL && slot->open && slot->listens;
}

/* --- bytes ------------------------------------------------------------------------------------ */

bool bus_peers_received(int fd, uint64_t cost)
{
    struct slot *slot = peers_slot_of(fd);

    if (slot == NULL || !slot->open || slot->listens)
        return true;
    if (peers_amount_ok(peers_amount_more(&slot->unread, &peers.unread, (int64_t)cost),
                        &peers.unread, PEERS_UNREAD_BYTES))
        return true;
    peers_count(&peers.over_unread);
    return false;
}

void bus_peers_sent(int fd, size_t bytes)
{
    struct slot *slot = peers_slot_of(fd);

    if (slot != NULL && slot->open)
        peers_amount_less(&slot->unsent, &peers.unsent, (int64_t)bytes);
}

/* The owner of the connection: known from its first message on. */
static void peers_slot_identify(struct slot *slot, int fd, const char *key)
{
    uint16_t group = peers_group_of(key, strlen(key));

    if (slot->key == group)
        return;
    pthread_mutex_lock(&peers.mutex);
    if (slot->open) {
        if (slot->key != 0) /* the descriptor of one that ended is another's now */
            peers.by_key[slot->key]--;
        slot->key = group;
        peers.by_key[group]++;
        if (!peers_share_ok(peers.by_key[group]))
            peers_slot_end(fd, &peers.over_key);
    }
    pthread_mutex_unlock(&peers.mutex);
}

void bus_peers_took(uint64_t route, int fd, size_t size, const char *key)
{
    struct slot *slot = peers_slot_of(fd);

    if (slot == NULL)
        return;
    peers_amount_less(&slot->unread, &peers.unread, (int64_t)(size + PEERS_FRAME_BYTES));
    if (key != NULL)
        peers_slot_identify(slot, fd, key);
    if (route != 0) {
        peers.routes[route % ROUTES].route = route;
        peers.routes[route % ROUTES].fd = fd;
        peers.routes[route % ROUTES].serial = slot->serial;
    }
}

/* -1: not known, or its connection has ended. */
static int peers_fd_of_route(uint64_t route)
{
    int fd = peers.routes[route % ROUTES].fd;
    const struct slot *slot =
        peers.routes[route % ROUTES].route == route ? peers_slot_of(fd) : NULL;

    return slot != NULL && slot->open && slot->serial == peers.routes[route % ROUTES].serial ? fd
                                                                                             : -1;
}

static void peers_slot_cut_off(int fd)
{
    pthread_mutex_lock(&peers.mutex);
    peers_slot_end(fd, &peers.over_unsent);
    pthread_mutex_unlock(&peers.mutex);
}

/* A key may become valid again in between: its next refusals then begin a time of their own. */
void bus_peers_refused(uint64_t route, int64_t now_boot_ms)
{
    struct slot *slot;
    int fd;

    pthread_mutex_lock(&peers.mutex);
    fd = peers_fd_of_route(route);
    slot = fd >= 0 ? &peers.slots[fd] : NULL;
    if (slot != NULL &&
        (slot->refused_ms == 0 || now_boot_ms - slot->refused_last_ms >= PEERS_REFUSED_MS))
        slot->refused_ms = now_boot_ms;
    if (slot != NULL && now_boot_ms - slot->refused_ms >= PEERS_REFUSED_MS)
        peers_slot_end(fd, &peers.over_revoked);
    if (slot != NULL)
        slot->refused_last_ms = now_boot_ms;
    pthread_mutex_unlock(&peers.mutex);
}

void bus_peers_unqueue(uint64_t route, size_t size, bool full)
{
    int fd = peers_fd_of_route(route);

    if (fd < 0)
        return;
    peers_amount_less(&peers.slots[fd].unsent, &peers.unsent, (int64_t)size);
    if (full)
        peers_slot_cut_off(fd);
}

bool bus_peers_queue(uint64_t route, size_t size)
{
    int fd = peers_fd_of_route(route);

    if (fd < 0 ||
        peers_amount_ok(peers_amount_more(&peers.slots[fd].unsent, &peers.unsent, (int64_t)size),
                        &peers.unsent, PEERS_UNSENT_BYTES))
        return true;
    peers_slot_cut_off(fd);
    return false;
}

void bus_peers_sweep(int64_t now_boot_ms)
{
    if (!atomic_load(&peers.watching) || now_boot_ms - peers.swept_ms < 1000)
        return;
    peers.swept_ms = now_boot_ms;
    pthread_mutex_lock(&peers.mutex);
    for (size_t fd = 0; fd < peers.high; fd++) {
        const struct slot *slot = &peers.slots[fd];

        if (slot->open && slot->key == 0 && now_boot_ms - slot->since_ms > PEERS_SILENT_MS)
            peers_slot_end((int)fd, &peers.silent);
    }
    pthread_mutex_unlock(&peers.mutex);
}

void bus_peers_counters(struct bus_peers_counters *ret_counters)
{
    *ret_counters = (struct bus_peers_counters){.address = atomic_load(&peers.over_address),
                                                .key = atomic_load(&peers.over_key),
                                                .silent = atomic_load(&peers.silent),
                                                .unread = atomic_load(&peers.over_unread),
                                                .unsent = atomic_load(&peers.over_unsent),
                                                .revoked = atomic_load(&peers.over_revoked)};
}
