/* counts - see counts.h. */
#include "schema/rules/counts.h"

#include <string.h>

static bool counts_for(struct counts_launch launch, uint64_t generation, int64_t step)
{
    return launch.generation <= generation || launch.began_step >= step;
}

bool counts_among(const struct counts_launch *launches, size_t count, uint64_t generation,
                  int64_t step)
{
    for (size_t i = 0; i < count; i++)
        if (!counts_for(launches[i], generation, step))
            return false;
    return true;
}

int64_t counts_began(const struct manifest *m)
{
    return m->resumed_known ? m->resumed_step : m->step - 1;
}

struct counts_item counts_item_of(const struct manifest *m)
{
    return (struct counts_item){.job = m->job,
                                .generation = m->generation,
                                .step = m->step,
                                .began_step = counts_began(m),
                                .created_unix_ms = m->created_unix_ms};
}

bool counts_beside(const struct counts_item *items, size_t count, const struct counts_item *item)
{
    for (size_t i = 0; i < count; i++)
        if (!counts_for((struct counts_launch){items[i].generation, items[i].began_step},
                        item->generation, item->step) &&
            items[i].created_unix_ms >= item->created_unix_ms &&
            strcmp(items[i].job, item->job) == 0)
            return false;
    return true;
}

void counts_mark(struct counts_item *items, size_t count)
{
    for (size_t i = 0; i < count; i++)
        items[i].counts = counts_beside(items, count, &items[i]);
}
