/* snapshot - see snapshot.h. */
#include "node/shard/snapshot.h"

#include "node/thread.h"
#include "schema/error.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define COPY_BYTES ((size_t)16 << 20) /* at a time, before it is told */
#define LINE 64
#define HUGE_PAGE ((uint64_t)2 << 20)
#define HUGE_PAGES_FROM (16 * HUGE_PAGE)    /* less is not worth what it rounds up */
#define LANES_MAX 8                         /* more do not copy faster */
#define LANE_BYTES_MIN ((uint64_t)16 << 20) /* a thread's start is worth it */
#define ALIGNMENT 64 /* of each entry, as an allocator of its own would give it */

static uint64_t snapshot_room_of(const struct state_item *item)
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
    uint64_t bytes = ALIGNMENT, unit;

    for (size_t i = 0; i < source->count; i++)
        bytes += snapshot_room_of(&source->items[i]);
    if (bytes <= snapshot->capacity_bytes)
        return true;
    unit = bytes >= HUGE_PAGES_FROM ? HUGE_PAGE : ALIGNMENT;
    bytes = (bytes + unit - 1) / unit * unit;
    free(snapshot->memory);
    snapshot->capacity_bytes = 0;
    snapshot->memory = bytes > SIZE_MAX / 2 ? NULL : aligned_alloc(unit, (size_t)bytes);
    if (snapshot->memory == NULL)
        return false;
    if (unit == HUGE_PAGE) /* else the first copy waits for a page fault each 4 KiB */
        madvise(snapshot->memory, (size_t)bytes, MADV_HUGEPAGE);
    snapshot->capacity_bytes = bytes;
    return true;
}

/* One of the threads that copy: the bytes of the state from `from` up to `to`, counted over all its
 * entries. */
struct lane {
    char *memory;
    const struct muster_state *source;
    uint64_t from, to;
    _Atomic uint64_t *copied_bytes;
    struct interrupt
        *interrupt; /* of the thread that asked for the copy; others only look at stop */
    atomic_bool *stop;
    pthread_t thread;
    bool started;
};

/* Past the caches, where the machine can: nobody reads the copy soon, and a line that is written
 * whole need not be read before. */
static void snapshot_copy_streamed(char *to, const char *from, size_t size)
{
#ifdef __SSE2__
    size_t head = (size_t)(-(uintptr_t)to % LINE);

    if (size >= 2 * LINE) {
        memcpy(to, from, head);
        to += head, from += head, size -= head;
        for (; size >= LINE; to += LINE, from += LINE, size -= LINE)
            for (size_t at = 0; at < LINE; at += sizeof(__m128i))
                _mm_stream_si128((__m128i *)(void *)(to + at),
                                 _mm_loadu_si128((const __m128i *)(const void *)(from + at)));
        _mm_sfence(); /* before another thread is told */
    }
#endif
    memcpy(to, from, size);
}

static void snapshot_copy_watched(const struct lane *lane, char *to, const char *from, size_t size)
{
    while (size > 0 && !atomic_load(lane->stop)) {
        size_t part = size < COPY_BYTES ? size : COPY_BYTES;

        snapshot_copy_streamed(to, from, part);
        if (lane->copied_bytes != NULL)
            atomic_fetch_add(lane->copied_bytes, part);
        if (interrupt_look(lane->interrupt))
            atomic_store(lane->stop, true);
        to += part;
        from += part;
        size -= part;
    }
}

static void *snapshot_copy_lane(void *arg)
{
    const struct lane *lane = arg;
    char *to = lane->memory;
    uint64_t at = 0; /* of this entry's first byte */

    for (size_t i = 0; i < lane->source->count && at < lane->to; i++) {
        const struct state_item *item = &lane->source->items[i];
        uint64_t first = lane->from > at ? lane->from - at : 0;
        uint64_t end = lane->to - at < item->size_bytes ? lane->to - at : item->size_bytes;

        if (first < end)
            snapshot_copy_watched(lane, to + first, (const char *)item->data + first,
                                  (size_t)(end - first));
        at += item->size_bytes;
        to += snapshot_room_of(item);
    }
    return NULL;
}

static size_t snapshot_lanes_for(uint64_t bytes)
{
    cpu_set_t cpus;
    size_t most = sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? (size_t)CPU_COUNT(&cpus) : 1;

    if (most > LANES_MAX)
        most = LANES_MAX;
    if (most > bytes / LANE_BYTES_MIN)
        most = (size_t)(bytes / LANE_BYTES_MIN);
    return most > 0 ? most : 1;
}

/* One core does not fill the memory's bandwidth, and training waits. This thread copies the parts
 * that no other thread could be had for. False: it was broken off. */
static bool snapshot_copy_all(const struct snapshot *snapshot, const struct muster_state *source,
                              _Atomic uint64_t *copied_bytes, struct interrupt *interrupt)
{
    atomic_bool stop = false;
    struct lane lanes[LANES_MAX];
    const uint64_t bytes = source->size_bytes;
    const size_t count = snapshot_lanes_for(bytes);

    for (size_t i = count; i-- > 0;) { /* the first is this thread's */
        lanes[i] = (struct lane){.memory = snapshot->memory,
                                 .source = source,
                                 .from = bytes / count * i,
                                 .to = i + 1 < count ? bytes / count * (i + 1) : bytes,
                                 .copied_bytes = copied_bytes,
                                 .stop = &stop};
        lanes[i].started =
            i > 0 && thread_start(&lanes[i].thread, snapshot_copy_lane, &lanes[i]) == 0;
        if (lanes[i].started)
            continue;
        lanes[i].interrupt = interrupt;
        snapshot_copy_lane(&lanes[i]);
    }
    for (size_t i = 1; i < count; i++)
        if (lanes[i].started)
            pthread_join(lanes[i].thread, NULL);
    return !atomic_load(&stop);
}

/* The state that the copies belong to. */
static enum muster_status snapshot_list_items(struct snapshot *snapshot,
                                              const struct muster_state *source,
                                              struct muster_error *err)
{
    enum muster_status status = MUSTER_OK;
    char *at = snapshot->memory;

    for (size_t i = 0; i < source->count && status == MUSTER_OK; i++) {
        struct state_item item = source->items[i];

        if (item.size_bytes > 0)
            item.data = at;
        at += snapshot_room_of(&item);
        status = state_add(snapshot->state, &item, err);
    }
    return status;
}

enum muster_status snapshot_take(struct snapshot *snapshot, const struct muster_state *source,
                                 _Atomic uint64_t *copied_bytes, struct interrupt *interrupt,
                                 struct muster_error *err)
{
    enum muster_status status;

    state_destroy(&snapshot->state);
    status = state_create(&snapshot->state, err);
    if (status != MUSTER_OK)
        return status;
    status = snapshot_make_room(snapshot, source)
                 ? snapshot_list_items(snapshot, source, err)
                 : error_set(err, MUSTER_E_NOMEM, "no memory for a copy of the state of %llu bytes",
                             (unsigned long long)source->size_bytes);
    if (status == MUSTER_OK && !snapshot_copy_all(snapshot, source, copied_bytes, interrupt))
        status = error_set(err, MUSTER_E_INTERRUPTED,
                           "the program was interrupted while its state was copied");
    if (status != MUSTER_OK)
        state_destroy(&snapshot->state);
    return status;
}
