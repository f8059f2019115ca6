/* no_core - the core's part in a test of the loops that has none: empty figures, and real batches.
 * Defines; for one file of a program. */
#ifndef TESTS_UNIT_BROKER_NO_CORE_H
#define TESTS_UNIT_BROKER_NO_CORE_H

#include "broker/core/contract/core.h"

#include <stdlib.h>

struct core_counts core_count(const struct core *unused)
{
    (void)unused;
    return (struct core_counts){0};
}

void core_jobs(const struct core *unused, void (*take)(void *arg, const struct core_job *job),
               void *arg)
{
    (void)unused;
    (void)take;
    (void)arg;
}

bool core_step_offset(const struct core *unused, const char *job, int64_t *ret_offset)
{
    (void)unused;
    (void)job;
    (void)ret_offset;
    return false;
}

void actions_init(struct actions *actions)
{
    *actions = (struct actions){0};
    arena_init(&actions->arena, 0);
}

void actions_clear(struct actions *actions)
{
    actions->count = 0;
    arena_reset(&actions->arena);
}

void actions_free(struct actions *actions)
{
    free(actions->items);
    arena_free(&actions->arena);
}

#endif
