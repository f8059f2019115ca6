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

const char *query_sql(const char *name)
{
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++)
        if (strcmp(queries[i].name, name) == 0)
            return queries[i].sql;
    return NULL;
}
