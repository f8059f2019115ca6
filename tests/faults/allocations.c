/* allocations - see allocations.h. */
#include "tests/faults/allocations.h"

#include "broker/core/contract/core.h"
#include "broker/store/store.h"

#include <jansson.h>
#include <msgpack.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static struct {
    unsigned whose;
    uint64_t at;
    bool sticky, paused;
    _Atomic uint64_t count, hits;
    unsigned depth; /* of product calls */
    bool others;    /* threads than `mine` */
    bool alone;     /* `mine`, and no other */
    pthread_t mine;
} plan;

void allocations_plan(unsigned whose, uint64_t at, bool sticky)
{
    plan.whose = whose;
    plan.at = at;
    plan.sticky = sticky;
    plan.paused = false;
    plan.count = 0;
    plan.hits = 0;
}

void allocations_pause(bool pause)
{
    plan.paused = pause;
}

uint64_t allocations_count(void)
{
    return plan.count;
}

uint64_t allocations_hits(void)
{
    return plan.hits;
}

void allocations_begin(void)
{
    plan.depth++;
}

void allocations_end(void)
{
    plan.depth--;
}

void allocations_of_others(bool on)
{
    plan.mine = pthread_self();
    plan.others = on;
}

void allocations_of_this_thread(bool on)
{
    plan.mine = pthread_self();
    plan.alone = on;
}

static bool counts(void)
{
    const bool is_mine = pthread_equal(plan.mine, pthread_self());

    if (plan.others)
        return !is_mine;
    return plan.depth > 0 && (is_mine || !plan.alone);
}

static bool refused(unsigned whose)
{
    uint64_t count;

    if (plan.paused || (plan.whose & whose) == 0 || !counts())
        return false;
    count = ++plan.count;
    if (plan.at == 0 || count < plan.at || (count > plan.at && !plan.sticky))
        return false;
    plan.hits++;
    return true;
}

/* --- our own ---------------------------------------------------------------------------------- */

#define WRAP(type, failed, name, parameters, arguments)                       \
    type __real_##name parameters;                                            \
    type __wrap_##name parameters;                                            \
    type __wrap_##name parameters                                             \
    {                                                                         \
        return refused(ALLOCATIONS_OWN) ? (failed) : __real_##name arguments; \
    }

WRAP(void *, NULL, malloc, (size_t size), (size))
WRAP(void *, NULL, calloc, (size_t count, size_t size), (count, size))
WRAP(void *, NULL, realloc, (void *memory, size_t size), (memory, size))
WRAP(void *, NULL, aligned_alloc, (size_t alignment, size_t size), (alignment, size))
WRAP(char *, NULL, strdup, (const char *text), (text))
WRAP(XXH3_state_t *, NULL, XXH3_createState, (void), ())
WRAP(bool, false, msgpack_zone_init, (msgpack_zone * zone, size_t size), (zone, size))
WRAP(msgpack_unpack_return, MSGPACK_UNPACK_NOMEM_ERROR, msgpack_unpack,
     (const char *data, size_t size, size_t *offset, msgpack_zone *zone, msgpack_object *result),
     (data, size, offset, zone, result))

static void *json_allocate(size_t size)
{
    return refused(ALLOCATIONS_OWN) ? NULL : __real_malloc(size);
}

/* --- SQLite's --------------------------------------------------------------------------------- */

static sqlite3_mem_methods sqlite_own;

static void *sqlite_allocate(int size)
{
    return refused(ALLOCATIONS_SQLITE) ? NULL : sqlite_own.xMalloc(size);
}

static void *sqlite_reallocate(void *memory, int size)
{
    return refused(ALLOCATIONS_SQLITE) ? NULL : sqlite_own.xRealloc(memory, size);
}

void allocations_prepare(void)
{
    sqlite3_mem_methods methods;

    json_set_alloc_funcs(json_allocate, free);
    if (sqlite3_config(SQLITE_CONFIG_GETMALLOC, &sqlite_own) != SQLITE_OK)
        abort();
    methods = sqlite_own;
    methods.xMalloc = sqlite_allocate;
    methods.xRealloc = sqlite_reallocate;
    if (sqlite3_config(SQLITE_CONFIG_MALLOC, &methods) != SQLITE_OK ||
        sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0) != SQLITE_OK ||
        sqlite3_initialize() != SQLITE_OK)
        abort();
}

/* --- calls of the product --------------------------------------------------------------------- */

#define INSIDE(type, name, parameters, arguments) \
    type __real_##name parameters;                \
    type __wrap_##name parameters;                \
    type __wrap_##name parameters                 \
    {                                             \
        type result;                              \
                                                  \
        allocations_begin();                      \
        result = __real_##name arguments;         \
        allocations_end();                        \
        return result;                            \
    }
#define INSIDE_VOID(name, parameters, arguments) \
    void __real_##name parameters;               \
    void __wrap_##name parameters;               \
    void __wrap_##name parameters                \
    {                                            \
        allocations_begin();                     \
        __real_##name arguments;                 \
        allocations_end();                       \
    }

INSIDE(struct core *, core_create, (const struct core_options *options), (options))
INSIDE_VOID(core_load, (struct core * core, const struct record *row), (core, row))
INSIDE_VOID(core_step, (struct core * core, const struct input *input, struct actions *out),
            (core, input, out))
INSIDE(enum muster_status, store_open,
       (const char *path, const struct store_options *options, struct store **ret_store,
        struct muster_error *err),
       (path, options, ret_store, err))
INSIDE_VOID(store_close, (struct store * *store), (store))
INSIDE_VOID(store_discard, (struct store * *store), (store))
INSIDE(enum muster_status, store_load,
       (struct store * store, store_row_fn *row_fn, void *arg, struct muster_error *err),
       (store, row_fn, arg, err))
INSIDE(enum muster_status, store_apply,
       (struct store * store, const struct actions *actions, int64_t now_boot_ms,
        struct muster_error *err),
       (store, actions, now_boot_ms, err))
INSIDE(enum muster_status, store_send_events,
       (struct store * store, const char *job, uint64_t from_seq, uint64_t max, int64_t now_boot_ms,
        store_event_fn *event_fn, void *arg, struct muster_error *err),
       (store, job, from_seq, max, now_boot_ms, event_fn, arg, err))
INSIDE(enum muster_status, store_manifest,
       (struct store * store, const char *job, uint64_t round, uint64_t offset,
        struct store_manifest *ret_manifest, struct muster_error *err),
       (store, job, round, offset, ret_manifest, err))
