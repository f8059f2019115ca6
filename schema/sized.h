/* sized - copies a structure out to a program that may have been built with another version of
 * muster.
 * Owns: the way out; client/node/options_take.h is the way in.
 * Holds: no byte beyond the program's struct_size is written, and bytes beyond the library's own
 * structure are 0. */
#ifndef SCHEMA_SIZED_H
#define SCHEMA_SIZED_H

#include <stddef.h>
#include <string.h>

/* Copies own, of own_size bytes, to ret, of struct_size bytes. ret may be NULL. */
static inline void sized_give(void *ret, size_t struct_size, const void *own, size_t own_size)
{
    if (ret == NULL)
        return;
    memset(ret, 0, struct_size);
    memcpy(ret, own, struct_size < own_size ? struct_size : own_size);
}

#endif
