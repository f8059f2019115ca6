/* room - makes room in an array, which grows by doubling. Pure. */
#ifndef SCHEMA_ROOM_H
#define SCHEMA_ROOM_H

#include <stddef.h>

/* An array with room for one more than `count` items of `size` bytes: `items` itself, or the same
 * moved to twice the room (to `first` items at first). NULL: no memory; items and *capacity are as
 * before. */
void *room_for_one(void *items, size_t count, size_t *capacity, size_t first, size_t size);

#endif
