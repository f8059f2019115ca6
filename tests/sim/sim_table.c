/* sim_table - rows of one kind, found by their key. A row is where it was added until one is
 * removed; the index is made when somebody looks, and made again after a removal. */
#include "tests/sim/sim_world.h"
#include "tests/support/record_key.h"

#include <stdlib.h>
#include <string.h>

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
        uint64_t at = record_key_hash(&table->rows[table->indexed].record) % table->heads_count;
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
    for (uint32_t i = table->heads[record_key_hash(key) % table->heads_count]; i > 0;
         i = table->next[i - 1])
        if (record_same_key(&table->rows[i - 1].record, key))
            return &table->rows[i - 1];
    return NULL;
}

struct sim_row *sim_table_add(struct sim_table *table)
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
