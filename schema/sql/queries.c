#include "schema/sql/queries.h"

#include "schema/rules/counts.h"

#include <string.h>

/* ISO C promises 4,095 characters a string; gcc and clang take any number. */
#pragma GCC diagnostic ignored "-Woverlength-strings"

static const struct {
    const char *name;
    const char *sql;
} queries[] = {
#define QUERY(name, columns, sql) {#name, sql},
#include "schema/sql/queries.def"
#undef QUERY
};

#define QUERIES_COUNT (sizeof queries / sizeof queries[0])

const char *query_sql(const char *name)
{
    for (size_t i = 0; i < QUERIES_COUNT; i++)
        if (strcmp(queries[i].name, name) == 0)
            return queries[i].sql;
    return NULL;
}

const char *query_name(size_t index)
{
    return index < QUERIES_COUNT ? queries[index].name : NULL;
}
