/* superseded - see superseded.h. */
#include "schema/rules/superseded.h"

#include <stdlib.h>
#include <string.h>

struct launch {
    const char *job;
    uint64_t generation;
    int64_t beyond;
    int64_t last_unix_ms; /* its last save */
};

struct superseded_item superseded_item_of(const struct manifest *m)
{
    return (struct superseded_item){.job = m->job,
                                    .generation = m->generation,
                                    .step = m->step,
                                    .beyond = m->resumed_known ? m->resumed_step : m->step - 1,
                                    .created_unix_ms = m->created_unix_ms};
}

static int by_launch(const void *a, const void *b)
{
    const struct launch *x = a, *y = b;
    int job = strcmp(x->job, y->job);

    return job != 0 ? job : (x->generation > y->generation) - (x->generation < y->generation);
}

/* One a launch; returns how many. */
static size_t join_launches(struct launch *launches, size_t count)
{
    size_t kept = 0;

    qsort(launches, count, sizeof *launches, by_launch);
    for (size_t i = 0; i < count; i++) {
        struct launch *last = kept > 0 ? &launches[kept - 1] : NULL;

        if (last == NULL || by_launch(last, &launches[i]) != 0) {
            launches[kept++] = launches[i];
            continue;
        }
        if (launches[i].beyond < last->beyond)
            last->beyond = launches[i].beyond;
        if (launches[i].last_unix_ms > last->last_unix_ms)
            last->last_unix_ms = launches[i].last_unix_ms;
    }
    return kept;
}

static bool is_given_up(const struct superseded_item *item, const struct launch *launches,
                        size_t count)
{
    for (size_t i = count; i-- > 0;)
        if (launches[i].generation > item->generation && launches[i].beyond < item->step &&
            launches[i].last_unix_ms >= item->created_unix_ms &&
            strcmp(launches[i].job, item->job) == 0)
            return true;
    return false;
}

/* Returned owned, free with free(); NULL: no memory, or there are none. */
static struct launch *launches_of(const struct superseded_item *items, size_t count,
                                  size_t *ret_count)
{
    struct launch *launches = count > 0 ? calloc(count, sizeof *launches) : NULL;

    if (launches == NULL)
        return NULL;
    for (size_t i = 0; i < count; i++)
        launches[i] = (struct launch){items[i].job, items[i].generation, items[i].beyond,
                                      items[i].created_unix_ms};
    *ret_count = join_launches(launches, count);
    return launches;
}

bool superseded_mark(struct superseded_item *items, size_t count)
{
    size_t launches_count = 0;
    struct launch *launches = launches_of(items, count, &launches_count);

    for (size_t i = 0; launches != NULL && i < count; i++)
        items[i].superseded = is_given_up(&items[i], launches, launches_count);
    free(launches);
    return launches != NULL || count == 0;
}

bool superseded_by(const struct superseded_item *items, size_t count,
                   const struct superseded_item *item)
{
    size_t launches_count = 0;
    struct launch *launches = launches_of(items, count, &launches_count);
    bool given_up = launches != NULL && is_given_up(item, launches, launches_count);

    free(launches);
    return given_up;
}
