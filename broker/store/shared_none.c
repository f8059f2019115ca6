/* shared_none - shared.h in a musterd that is built without libpq (-DMUSTER_SHARED=OFF). */
#include "broker/store/shared.h"

#include "broker/store/shared_internal.h"
#include "schema/error.h"

enum muster_status shared_open(const struct shared_options *options, struct shared **ret_shared,
                               struct muster_error *err)
{
    (void)options;
    *ret_shared = NULL;
    return error_set(err, MUSTER_E_UNSUPPORTED,
                     "this musterd was built without --shared; Debian's package has it");
}

enum muster_status shared_take(struct shared *shared, struct muster_error *err)
{
    (void)shared;
    return error_set(err, MUSTER_E_UNSUPPORTED, "this musterd was built without --shared");
}

bool shared_is_empty(const struct shared *shared)
{
    (void)shared;
    return false;
}

enum muster_status shared_refuse_copy(const char *path, struct muster_error *err)
{
    (void)path;
    (void)err;
    return MUSTER_OK;
}

void shared_give_up(struct shared *shared)
{
    (void)shared;
}

void shared_close(struct shared **shared)
{
    *shared = NULL;
}

const char *shared_id(const struct shared *shared)
{
    (void)shared;
    return "";
}

bool shared_is_older(const struct shared *shared)
{
    (void)shared;
    return false;
}

const char *shared_aside(const struct shared *shared)
{
    (void)shared;
    return NULL;
}

const char *shared_name(const struct shared *shared)
{
    (void)shared;
    return "";
}

enum muster_status store_holds(struct store *store, struct muster_error *err)
{
    (void)store;
    (void)err;
    return MUSTER_OK;
}

struct store_lease store_lease(const struct store *store)
{
    (void)store;
    return (struct store_lease){.name = NULL};
}

bool store_snapshot_is_due(const struct store *store)
{
    (void)store;
    return false;
}

enum muster_status store_snapshot_work(struct store *store, struct muster_error *err)
{
    (void)store;
    (void)err;
    return MUSTER_OK;
}

enum muster_status shared_begin(struct store *store, struct muster_error *err)
{
    (void)store;
    (void)err;
    return MUSTER_OK;
}

enum muster_status shared_watch(struct store *store, struct muster_error *err)
{
    (void)store;
    (void)err;
    return MUSTER_OK;
}

enum muster_status shared_write(struct store *store, bool *ret_written, struct muster_error *err)
{
    (void)store;
    (void)err;
    *ret_written = false;
    return MUSTER_OK;
}

void shared_watch_end(struct store *store)
{
    (void)store;
}
