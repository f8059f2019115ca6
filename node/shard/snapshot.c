/* snapshot - see snapshot.h. */
#include "node/shard/snapshot.h"

#include "schema/error.h"

#include <stdlib.h>
#include <string.h>

#define COPY_BYTES ((size_t)256 << 20) /* at a time */
#define ALIGNMENT 64                   /* of each entry, as an allocator of its own would give it */

static uint64_t room_of(const struct state_item *item)
{
    return (item->size_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

void snapshot_clear(struct snapshot *snapshot)
{
    state_destroy(&snapshot->state);
    free(snapshot->memory);
    *snapshot = (struct snapshot){0};
}

static bool snapshot_make_room(struct snapshot *snapshot, const struct muster_state *source)
{
    uint64_t bytes = ALIGNMENT;

    for (size_t i = 0; i < source->count; i++)
        bytes += room_of(&source->items[i]);
    if (bytes <= snapshot->capacity_bytes)
        return true;
    free(snapshot->memory);
    snapshot->capacity_bytes = 0;
    snapshot->memory = bytes > SIZE_MAX / 2 ? NULL : aligned_alloc(ALIGNMENT, (size_t)bytes);
    if (snapshot->memory == NULL)
        return false;
    snapshot->capacity_bytes = bytes;
    return true;
}

/* A large tensor takes longer than a minute where its memory has to be fetched first. */
static void copy_watched(char *to, const char *from, size_t size, _Atomic uint64_t *copied_bytes)
{
    while (size > 0) {
        size_t part = size < COPY_BYTES ? size : COPY_BYTES;

        memcpy(to, from, part);
        if (copied_bytes != NULL)
            atomic_fetch_add(copied_bytes, part);
        to += part;
        from += part;
        size -= part;
    }
}

static enum muster_status copy_items(struct snapshot *snapshot, const struct muster_state *source,
                                     _Atomic uint64_t *copied_bytes, struct muster_error *err)
{
    enum muster_status status = MUSTER_OK;
    char *at = snapshot->memory;

    for (size_t i = 0; i < source->count && status == MUSTER_OK; i++) {
        struct state_item item = source->items[i];

        if (item.size_bytes > 0) {
            copy_watched(at, item.data, (size_t)item.size_bytes, copied_bytes);
            item.data = at;
        }
        at += room_of(&item);
        status = state_add(snapshot->state, &item, err);
    }
    return status;
}

enum muster_status snapshot_take(struct snapshot *snapshot, const struct muster_state *source,
                                 _Atomic uint64_t *copied_bytes, struct muster_error *err)
{
    enum muster_status status;

    state_destroy(&snapshot->state);
    status = state_create(&snapshot->state, err);
    if (status != MUSTER_OK)
        return status;
    status = snapshot_make_room(snapshot, source)
                 ? copy_items(snapshot, source, copied_bytes, err)
                 : error_set(err, MUSTER_E_NOMEM, "no memory for a copy of the state of %llu bytes",
                             (unsigned long long)source->size_bytes);
    if (status != MUSTER_OK)
        state_destroy(&snapshot->state);
    return status;
}
