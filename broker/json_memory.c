/* json_memory - see json_memory.h. */
#include "broker/json_memory.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

static void *json_memory_allocate(size_t size)
{
    void *memory = malloc(size);

    if (memory != NULL)
        return memory;
    fputs("musterd: no memory to read or write JSON; it ends, and its next start goes on\n",
          stderr);
    abort();
}

void json_memory_prepare(void)
{
    json_set_alloc_funcs(json_memory_allocate, free);
}
