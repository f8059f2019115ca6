/* arena - see arena.h. Chunks in a list, newest first; only the newest is handed out from.
 * Never: a lock, a global. Invariant: used_bytes <= limit_bytes whenever there is a limit.
 * Under AddressSanitizer what was not handed out is poisoned and allocations keep a gap, so that an
 * overrun and a use after arena_reset are found as they would be with malloc. */
#include "schema/arena.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#define ARENA_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ARENA_ASAN 1
#endif
#endif

#ifdef ARENA_ASAN
#include <sanitizer/asan_interface.h>
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized" /* poisoning reads nothing */
#endif
#define GAP_BYTES 16u
#define POISON(at, size) __asan_poison_memory_region((at), (size))
#define UNPOISON(at, size) __asan_unpoison_memory_region((at), (size))
#else
#define GAP_BYTES 0u
#define POISON(at, size) ((void)(at), (void)(size))
#define UNPOISON(at, size) ((void)(at), (void)(size))
#endif

#define ALIGN_BYTES _Alignof(max_align_t)
#define CHUNK_MIN_BYTES 4096u
#define CHUNK_MAX_BYTES (1u << 20) /* also the largest that a reset keeps */

struct arena_chunk {
    struct arena_chunk *older;
    size_t capacity_bytes;
    size_t used_bytes;
    _Alignas(max_align_t) unsigned char bytes[];
};

void arena_init(struct arena *arena, size_t limit_bytes)
{
    *arena = (struct arena){.limit_bytes = limit_bytes};
}

/* A chunk twice as large as the one before, but at least `needed` bytes. */
static struct arena_chunk *arena_chunk_add(struct arena *arena, size_t needed)
{
    size_t capacity = CHUNK_MIN_BYTES;
    struct arena_chunk *chunk;

    if (arena->chunks != NULL && arena->chunks->capacity_bytes < CHUNK_MAX_BYTES / 2)
        capacity = arena->chunks->capacity_bytes * 2;
    else if (arena->chunks != NULL)
        capacity = CHUNK_MAX_BYTES;
    if (capacity < needed)
        capacity = needed;
    chunk = malloc(sizeof *chunk + capacity);
    if (chunk == NULL)
        return NULL;
    chunk->older = arena->chunks;
    chunk->capacity_bytes = capacity;
    chunk->used_bytes = 0;
    POISON(chunk->bytes, capacity);
    arena->chunks = chunk;
    return chunk;
}

/* Under ASan the last bytes of a rounded size stay poisoned, but count as used. */
static void *arena_take(struct arena *arena, size_t size)
{
    struct arena_chunk *chunk = arena->chunks;
    size_t rounded;
    unsigned char *at;

    if (size > SIZE_MAX / 2)
        return NULL;
    rounded = (size + (size == 0) + ALIGN_BYTES - 1) & ~(ALIGN_BYTES - 1);
    if (arena->limit_bytes != 0 && rounded > arena->limit_bytes - arena->used_bytes)
        return NULL;
    if (chunk == NULL || chunk->capacity_bytes - chunk->used_bytes < rounded + GAP_BYTES)
        chunk = arena_chunk_add(arena, rounded + GAP_BYTES);
    if (chunk == NULL)
        return NULL;
    at = chunk->bytes + chunk->used_bytes;
    chunk->used_bytes += rounded + GAP_BYTES;
    arena->used_bytes += rounded;
    UNPOISON(at, size);
    return at;
}

void *arena_alloc(struct arena *arena, size_t size)
{
    void *at = arena_take(arena, size);

    if (at != NULL && size > 0)
        memset(at, 0, size);
    return at;
}

char *arena_strdup(struct arena *arena, const char *text)
{
    return arena_strndup(arena, text, SIZE_MAX / 4);
}

char *arena_strndup(struct arena *arena, const char *text, size_t size)
{
    size_t length = text == NULL ? 0 : strnlen(text, size);
    char *copy = arena_take(arena, length + 1);

    if (copy == NULL)
        return NULL;
    if (length > 0)
        memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

char *arena_printf(struct arena *arena, const char *format, ...)
{
    va_list args;
    char *text;
    int length;

    va_start(args, format);
    length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0)
        return NULL;
    text = arena_take(arena, (size_t)length + 1);
    if (text == NULL)
        return NULL;
    va_start(args, format);
    vsnprintf(text, (size_t)length + 1, format, args);
    va_end(args);
    return text;
}

static void arena_chunk_free(struct arena_chunk *chunk)
{
    UNPOISON(chunk->bytes, chunk->capacity_bytes);
    free(chunk);
}

/* The largest chunk that is not oversized is kept, so that a loop which resets once a pass soon
 * stops calling malloc. */
void arena_reset(struct arena *arena)
{
    struct arena_chunk *kept = NULL;

    while (arena->chunks != NULL) {
        struct arena_chunk *chunk = arena->chunks;
        bool better = chunk->capacity_bytes <= CHUNK_MAX_BYTES &&
                      (kept == NULL || chunk->capacity_bytes > kept->capacity_bytes);

        arena->chunks = chunk->older;
        if (better && kept != NULL)
            arena_chunk_free(kept);
        if (better)
            kept = chunk;
        else
            arena_chunk_free(chunk);
    }
    if (kept != NULL) {
        kept->older = NULL;
        kept->used_bytes = 0;
        POISON(kept->bytes, kept->capacity_bytes);
    }
    arena->chunks = kept;
    arena->used_bytes = 0;
}

void arena_free(struct arena *arena)
{
    while (arena->chunks != NULL) {
        struct arena_chunk *chunk = arena->chunks;

        arena->chunks = chunk->older;
        arena_chunk_free(chunk);
    }
    arena->used_bytes = 0;
}
