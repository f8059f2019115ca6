/* room - see room.h. */
#include "schema/room.h"

#include <stdint.h>
#include <stdlib.h>

void *room_for_one(void *items, size_t count, size_t *capacity, size_t first, size_t size)
{
    size_t wanted = *capacity > 0 ? *capacity * 2 : first;
    void *moved;

    if (count < *capacity)
        return items;
    if (*capacity > SIZE_MAX / 2 / size)
        return NULL;
    moved = realloc(items, wanted * size);
    if (moved != NULL)
        *capacity = wanted;
    return moved;
}
