/* hosts - those that form a job's launches by themselves: `muster run --nodes`. The rules are in
 * members/hosts.c. */
#ifndef BROKER_CORE_STATE_HOSTS_H
#define BROKER_CORE_STATE_HOSTS_H

#include "schema/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A host that is heard; after a start every host that the rows name, until it is silent. It waits
 * for the next launch, or is in the newest one: hosts_waits. */
struct host {
    uint64_t id; /* of that life of `muster run` */
    char name[HOST_MAX + 1];
    char address[HOST_MAX + 1];
    uint64_t port;
    uint64_t ranks;
    uint64_t min, max;
    uint64_t wait_ms;
    int64_t node_rank; /* the place that it asks for, -1 = any */
    uint64_t ended;    /* the newest launch that it has seen to its end, 0 = none */
    size_t place;      /* in the newest launch, HOSTS_MAX = none */
    int64_t came_boot_ms;
    int64_t heard_boot_ms;
};

struct host_place { /* in the newest launch */
    uint64_t id;
    char name[HOST_MAX + 1];
    uint64_t first_rank;
    uint64_t ranks;
    bool gone; /* its host left or was lost before the launch's end */
};

struct hosts {
    struct host *items;
    size_t count, capacity;
    uint64_t launch; /* the newest, 0 = none */
    struct host_place *places;
    size_t places_count;
};

#endif
