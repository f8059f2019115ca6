/* keep - see keep.h. */
#include "schema/rules/keep.h"

#include "schema/manifest/metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct measured {
    double value;
    size_t index;
};

/* The worst first; of equals the older. */
static int keep_by_value(const void *a, const void *b)
{
    const struct measured *x = a, *y = b;

    if (x->value != y->value)
        return x->value < y->value ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

static bool keep_best(const struct keep_rule *rule, const struct keep_item *items, size_t count,
                      bool *keep)
{
    struct measured *measured = calloc(count + 1, sizeof *measured);
    size_t found = 0;

    if (measured == NULL)
        return false;
    for (size_t i = 0; i < count; i++) {
        double value;
        if (metrics_get(items[i].metrics, rule->metric, &value) && !isnan(value))
            measured[found++] = (struct measured){rule->greatest ? value : -value, i};
        else if (rule->unmeasured)
            keep[i] = true;
    }
    qsort(measured, found, sizeof *measured, keep_by_value);
    for (size_t i = 0; i < found; i++)
        if ((uint64_t)(found - i) <= (uint64_t)rule->number)
            keep[measured[i].index] = true;
    free(measured);
    return true;
}

static void keep_latest(const struct keep_rule *rule, size_t count, bool *keep)
{
    for (size_t i = 0; i < count; i++)
        if ((uint64_t)(count - i) <= (uint64_t)rule->number)
            keep[i] = true;
}

static void keep_every(const struct keep_rule *rule, const struct keep_item *items, size_t count,
                       bool *keep)
{
    for (size_t i = 0; i < count; i++)
        if ((items[i].step - rule->from) % rule->number == 0)
            keep[i] = true;
}

/* For each multiple of the number the nearest one; of two the newer. A checkpoint that was not the
 * nearest will never be, so a deletion changes nothing. */
static void keep_closest(const struct keep_rule *rule, const struct keep_item *items, size_t count,
                         bool *keep)
{
    int64_t last_multiple = 0, last_apart = 0;
    size_t nearest = count; /* of those of the last multiple */

    for (size_t i = 0; i < count; i++) {
        int64_t multiple = (items[i].step - rule->from) / rule->number;
        int64_t apart = (items[i].step - rule->from) % rule->number;

        if (apart < 0) { /* a step before `from` */
            multiple--;
            apart += rule->number;
        }
        if (apart >= rule->number - apart) {
            multiple++;
            apart = rule->number - apart;
        }
        if (nearest < count && multiple == last_multiple && apart > last_apart)
            continue;
        if (nearest < count && multiple == last_multiple)
            keep[nearest] = false;
        keep[i] = true;
        nearest = i;
        last_multiple = multiple;
        last_apart = apart;
    }
}

/* From the oldest on: each that is far enough from the last one that was so kept. A kept checkpoint
 * stays kept, because nothing that was kept by it before goes away. */
static void keep_spaced(const struct keep_rule *rule, const struct keep_item *items, size_t count,
                        bool *keep)
{
    int64_t last = 0;
    bool any = false;

    for (size_t i = 0; i < count; i++) {
        int64_t at = rule->kind == KEEP_NEAR ? items[i].step : items[i].committed_unix_ms;
        if (any && at - last < rule->number)
            continue;
        keep[i] = true;
        last = at;
        any = true;
    }
}

static void keep_steps(const struct keep_policies *policies, const struct keep_rule *rule,
                       const struct keep_item *items, size_t count, bool *keep)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < rule->steps_count; k++)
            if (items[i].step == policies->steps[rule->steps_first + k])
                keep[i] = true;
}

static void keep_last(const struct keep_rule *rule, const struct keep_item *items, size_t count,
                      bool *keep)
{
    for (size_t i = 0; i < count; i++)
        if (items[count - 1].committed_unix_ms - items[i].committed_unix_ms <= rule->number)
            keep[i] = true;
}

static bool keep_one(const struct keep_policies *policies, const struct keep_rule *rule,
                     const struct keep_item *items, size_t count, bool *keep)
{
    size_t newer = 0;
    bool good = true;

    if (rule->kind == KEEP_LATEST)
        keep_latest(rule, count, keep);
    else if (rule->kind == KEEP_EVERY)
        keep_every(rule, items, count, keep);
    else if (rule->kind == KEEP_CLOSEST)
        keep_closest(rule, items, count, keep);
    else if (rule->kind == KEEP_NEAR || rule->kind == KEEP_EVERY_MS)
        keep_spaced(rule, items, count, keep);
    else if (rule->kind == KEEP_BEST)
        good = keep_best(rule, items, count, keep);
    else if (rule->kind == KEEP_STEPS)
        keep_steps(policies, rule, items, count, keep);
    else if (rule->kind == KEEP_LAST_MS)
        keep_last(rule, items, count, keep);
    for (size_t i = count; i-- > 0 && rule->most > 0;)
        if (keep[i] && (int64_t)newer++ >= rule->most)
            keep[i] = false;
    return good;
}

bool keep_choose(const struct keep_policies *policies, const struct keep_item *items, size_t count,
                 bool *ret_keep)
{
    bool *keep = calloc(2 * count + 1, sizeof *keep); /* of all rules, and then of one */
    bool good = keep != NULL;

    for (size_t r = 0; good && r < policies->count; r++) {
        bool *one = keep + count;
        memset(one, 0, count * sizeof *one);
        good = keep_one(policies, &policies->rules[r], items, count, one);
        for (size_t i = 0; i < count; i++)
            keep[i] |= one[i];
    }
    for (size_t i = 0; good && i < count; i++)
        ret_keep[i] = keep[i] || policies->count == 0;
    free(keep);
    return good;
}
