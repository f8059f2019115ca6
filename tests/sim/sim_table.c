/* sim_table - rows of one kind, found by their key. A row is where it was added until one is removed; the
 * index is made when somebody looks, and made anew after a removal. */
#include "tests/sim/sim_world.h"

#include <stdlib.h>
#include <string.h>

static bool same(const char *a, const char *b)
{
    return a == b || strcmp(a, b) == 0;
}

/* Do two rows of one kind have one key? */
static bool same_key(const struct record *a, const struct record *b)
{
    switch (a->kind) {
    case RECORD_BROKER:
        return true;
    case RECORD_JOB:
        return same(a->u.job.job, b->u.job.job);
    case RECORD_GENERATION:
        return a->u.generation.generation == b->u.generation.generation &&
               same(a->u.generation.job, b->u.generation.job);
    case RECORD_NODE:
        return a->u.node.incarnation == b->u.node.incarnation;
    case RECORD_PROGRESS:
        return a->u.progress.incarnation == b->u.progress.incarnation;
    case RECORD_NOTICE:
        return a->u.notice.generation == b->u.notice.generation &&
               same(a->u.notice.id, b->u.notice.id) && same(a->u.notice.job, b->u.notice.job);
    case RECORD_EVENT:
        return a->u.event.seq == b->u.event.seq && same(a->u.event.job, b->u.event.job);
    case RECORD_ROUND:
        return a->u.round.round == b->u.round.round && same(a->u.round.job, b->u.round.job);
    case RECORD_PARTICIPANT:
        return a->u.participant.rank == b->u.participant.rank &&
               a->u.participant.round == b->u.participant.round &&
               same(a->u.participant.job, b->u.participant.job);
    case RECORD_CHECKPOINT:
        return a->u.checkpoint.round == b->u.checkpoint.round &&
               same(a->u.checkpoint.job, b->u.checkpoint.job);
    case RECORD_SHARD:
        return a->u.shard.rank == b->u.shard.rank && a->u.shard.round == b->u.shard.round &&
               same(a->u.shard.job, b->u.shard.job);
    case RECORD_FILE:
        return a->u.file.rank == b->u.file.rank && a->u.file.round == b->u.file.round &&
               same(a->u.file.path, b->u.file.path) && same(a->u.file.job, b->u.file.job);
    case RECORD_POLICY:
        return same(a->u.policy.job, b->u.policy.job);
    case RECORD_PIN:
        return a->u.pin.checkpoint == b->u.pin.checkpoint && same(a->u.pin.id, b->u.pin.id) &&
               same(a->u.pin.job, b->u.pin.job);
    case RECORD_CUSTOM:
        return a->u.custom.round == b->u.custom.round && same(a->u.custom.job, b->u.custom.job);
    default:
        return false;
    }
}

/* Of the numbers in its key: few rows have the same and differ in a word. */
static uint64_t hash_of(const struct record *r)
{
    uint64_t a = 0, b = 0;

    switch (r->kind) {
    case RECORD_GENERATION:
        a = r->u.generation.generation;
        break;
    case RECORD_NODE:
        a = r->u.node.incarnation;
        break;
    case RECORD_PROGRESS:
        a = r->u.progress.incarnation;
        break;
    case RECORD_EVENT:
        a = r->u.event.seq;
        break;
    case RECORD_ROUND:
        a = r->u.round.round;
        break;
    case RECORD_PARTICIPANT:
        a = r->u.participant.round;
        b = r->u.participant.rank;
        break;
    case RECORD_CHECKPOINT:
        a = r->u.checkpoint.round;
        break;
    case RECORD_SHARD:
        a = r->u.shard.round;
        b = r->u.shard.rank;
        break;
    case RECORD_FILE:
        a = r->u.file.round;
        b = r->u.file.rank;
        break;
    case RECORD_CUSTOM:
        a = r->u.custom.round;
        break;
    default:
        break; /* few */
    }
    return (a * 0x9e3779b97f4a7c15U + b * 0xc2b2ae3d27d4eb4fU) >> 16;
}

/* A heads[] entry and a next[] entry are an index plus 1. */
static void index_rows(struct sim_table *table)
{
    if (table->count > table->heads_count) {
        table->heads_count = table->capacity;
        free(table->heads);
        free(table->next);
        table->heads = malloc(table->heads_count * sizeof *table->heads);
        table->next = malloc(table->heads_count * sizeof *table->next);
        table->indexed = 0;
    }
    if (table->indexed == 0)
        memset(table->heads, 0, table->heads_count * sizeof *table->heads);
    for (; table->indexed < table->count; table->indexed++) {
        uint64_t at = hash_of(&table->rows[table->indexed].record) % table->heads_count;
        table->next[table->indexed] = table->heads[at];
        table->heads[at] = (uint32_t)table->indexed + 1;
    }
}

struct sim_row *table_find(const struct sim_table *looked_in, const struct record *key)
{
    struct sim_table *table =
        (struct sim_table *)looked_in; /* the index is no part of what it holds */

    if (table->count == 0)
        return NULL;
    index_rows(table);
    for (uint32_t i = table->heads[hash_of(key) % table->heads_count]; i > 0;
         i = table->next[i - 1])
        if (same_key(&table->rows[i - 1].record, key))
            return &table->rows[i - 1];
    return NULL;
}

struct sim_row *table_add(struct sim_table *table)
{
    if (table->count == table->capacity) {
        table->capacity = table->capacity ? table->capacity * 2 : 16;
        table->rows = realloc(table->rows, table->capacity * sizeof *table->rows);
    }
    struct sim_row *row = &table->rows[table->count++];
    memset(row, 0, sizeof *row);
    return row;
}

void table_remove(struct sim_table *table, struct sim_row *row)
{
    *row = table->rows[--table->count];
    table->indexed = 0;
}

void table_drop_first(struct sim_table *table, size_t count)
{
    memmove(table->rows, table->rows + count, (table->count - count) * sizeof *table->rows);
    table->count -= count;
    table->indexed = 0;
}

void table_clear(struct sim_table *table)
{
    table->count = table->indexed = 0;
}

void table_copy(struct sim_table *to, const struct sim_table *from)
{
    table_free(to);
    *to = (struct sim_table){.count = from->count, .capacity = from->count + 1};
    to->rows = malloc(to->capacity * sizeof *to->rows);
    if (from->count > 0)
        memcpy(to->rows, from->rows, from->count * sizeof *to->rows);
}

void table_free(struct sim_table *table)
{
    free(table->rows);
    free(table->heads);
    free(table->next);
    *table = (struct sim_table){0};
}
