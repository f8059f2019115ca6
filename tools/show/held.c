/* held - see held.h. */
#include "tools/show/held.h"

#include "client/query/query_link.h"
#include "schema/rules/keep.h"
#include "tools/render.h"

#include <stdlib.h>
#include <string.h>

static bool held_counts(const struct muster_checkpoint_row *row)
{
    return strcmp(row->state, "committed") == 0;
}

/* As the broker's registry: by step, of equals by round. */
static int held_by_step(const void *a, const void *b)
{
    const struct muster_checkpoint_row *const *x = a, *const *y = b;

    if ((*x)->step != (*y)->step)
        return (*x)->step < (*y)->step ? -1 : 1;
    return ((*x)->checkpoint > (*y)->checkpoint) - ((*x)->checkpoint < (*y)->checkpoint);
}

/* Each rule by itself, where the broker asks for all of them together. */
static void held_choose(struct held *held, const struct muster_checkpoint_row **order,
                        struct keep_item *items, bool *keep, size_t count, int64_t offset)
{
    struct keep_policies one = held->policies;

    for (size_t i = 0; i < count; i++)
        items[i] = (struct keep_item){order[i]->step - offset, order[i]->committed_unix_ms,
                                      order[i]->metrics};
    one.count = 1;
    for (size_t rule = 0; rule < held->policies.count; rule++) {
        one.rules[0] = held->policies.rules[rule];
        held->known = held->known && keep_choose(&one, items, count, keep);
        for (size_t i = 0; held->known && i < count; i++)
            if (keep[i])
                held->wanted[order[i] - held->rows] |= 1u << rule;
    }
}

static void held_weigh(struct held *held, int64_t offset)
{
    const struct muster_checkpoint_row **order = calloc(held->count + 1, sizeof *order);
    struct keep_item *items = calloc(held->count + 1, sizeof *items);
    bool *keep = calloc(held->count + 1, sizeof *keep);
    size_t count = 0;

    held->wanted = calloc(held->count + 1, sizeof *held->wanted);
    if (order == NULL || items == NULL || keep == NULL || held->wanted == NULL) {
        held->known = false;
    } else {
        for (size_t i = 0; i < held->count; i++)
            if (held_counts(&held->rows[i]))
                order[count++] = &held->rows[i];
        qsort(order, count, sizeof *order, held_by_step);
        held_choose(held, order, items, keep, count, offset);
        if (count > 0)
            held->newest = (size_t)(order[count - 1] - held->rows);
    }
    free(order);
    free(items);
    free(keep);
}

struct held held_find(struct tool *tool, const muster_rows_t *rows)
{
    struct held held = {.rows = muster_rows_checkpoints(rows),
                        .count = muster_rows_count(rows),
                        .newest = muster_rows_count(rows)};
    muster_rows_t *policies = NULL;

    held.known = muster_client_policies(tool->client, tool->job, &policies, NULL) == MUSTER_OK;
    if (muster_rows_count(policies) > 0)
        held.known = keep_policies_parse(muster_rows_policies(policies)[0].keep, &held.policies,
                                         NULL) == MUSTER_OK;
    muster_rows_destroy(&policies);
    held_weigh(&held, client_step_offset(tool->client));
    return held;
}

void held_free(struct held *held)
{
    free(held->wanted);
    held->wanted = NULL;
}

/* --- words ------------------------------------------------------------------------------------ */

static void held_rule_text(const struct keep_rule *rule, char *text, size_t size)
{
    const struct shown number = render_number(rule->number), time = render_duration(rule->number);

    if (rule->kind == KEEP_LATEST)
        snprintf(text, size, "latest %s", number.text);
    else if (rule->kind == KEEP_EVERY)
        snprintf(text, size, "every %s steps", number.text);
    else if (rule->kind == KEEP_CLOSEST)
        snprintf(text, size, "closest to every %s steps", number.text);
    else if (rule->kind == KEEP_NEAR)
        snprintf(text, size, "%s steps apart", number.text);
    else if (rule->kind == KEEP_EVERY_MS)
        snprintf(text, size, "%s apart", time.text);
    else if (rule->kind == KEEP_LAST_MS)
        snprintf(text, size, "last %s", time.text);
    else if (rule->kind == KEEP_BEST)
        snprintf(text, size, "best %s by %s %s", number.text, rule->greatest ? "greatest" : "least",
                 rule->metric);
    else
        snprintf(text, size, "a given step");
}

static bool held_pin_at(const struct muster_checkpoint_row *row, size_t at, char *text, size_t size)
{
    const char *pins = row->pins;
    struct pin pin;

    if (row->pinned && pins[0] == '\0' && at == 0) { /* a broker that does not tell whose */
        snprintf(text, size, "a pin");
        return true;
    }
    for (size_t i = 0; render_next_pin(&pins, &pin); i++)
        if (i == at) {
            snprintf(text, size, "pin %.*s", pin.length, pin.id);
            return true;
        }
    return false;
}

bool held_by(const struct held *held, size_t row, size_t rank, char *text, size_t size)
{
    const bool counts = held_counts(&held->rows[row]);
    const bool all = counts && held->known && held->policies.count == 0;
    const unsigned wanted = counts && held->known ? held->wanted[row] : 0;
    size_t met = 0;

    for (size_t rule = 0; rule < held->policies.count; rule++) {
        if ((wanted & 1u << rule) == 0 || met++ != rank)
            continue;
        held_rule_text(&held->policies.rules[rule], text, size);
        return true;
    }
    for (size_t pin = 0; held_pin_at(&held->rows[row], pin, text, size); pin++)
        if (met++ == rank)
            return true;
    if (met == 0 && rank == 0 && (all || row == held->newest)) {
        snprintf(text, size, "%s", all ? "all kept" : "the newest");
        return true;
    }
    return false;
}

void held_text(const struct held *held, size_t row, char *text, size_t size)
{
    char one[320];
    size_t used = 0;

    snprintf(text, size, "-");
    for (size_t rank = 0; used < size && held_by(held, row, rank, one, sizeof one); rank++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", rank > 0 ? ", " : "", one);
}

json_t *held_json(const struct held *held, size_t row)
{
    json_t *array = json_array();
    char one[320];

    for (size_t rank = 0; held_by(held, row, rank, one, sizeof one); rank++)
        json_array_append_new(array, json_string(one));
    return array;
}
