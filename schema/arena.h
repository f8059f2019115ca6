/* arena - bump allocation that is freed all at once, with a limit.
 * Owns: the memory of one batch, one frame or one pending request. */
#ifndef SCHEMA_ARENA_H
#define SCHEMA_ARENA_H

#include <stddef.h>

struct arena_chunk;
struct arena {
    struct arena_chunk *chunks; /* newest first */
    size_t used_bytes;          /* handed out, padding included */
    size_t limit_bytes;         /* 0 = none */
};

/* It allocates nothing before the first arena_alloc. */
void arena_init(struct arena *arena, size_t limit_bytes);
/* Aligned for any object, zeroed. NULL when the limit is reached or memory is out. */
void *arena_alloc(struct arena *arena, size_t size);
char *arena_strdup(struct arena *arena, const char *text); /* NULL gives "" */
char *arena_strndup(struct arena *arena, const char *text, size_t size);
char *arena_printf(struct arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void arena_reset(struct arena *arena); /* everything is gone; one chunk may be kept */
void arena_free(struct arena *arena);  /* back to arena_init's state */

#endif
