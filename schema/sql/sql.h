/* sql - the database's migrations, embedded at build from schema/sql/NNNN_name.sql.
 * Invariant: sql_migrations[i].version == i + 1; each is applied in one transaction that ends by
 * setting user_version to it. The array is closed by a row with version 0, which the count leaves
 * out. */
#ifndef SCHEMA_SQL_H
#define SCHEMA_SQL_H

#include <stddef.h>

struct sql_migration {
    int version;
    const char *name; /* "0001_first", the file's name without .sql */
    const char *sql;  /* the whole file, may hold many statements */
};

extern const struct sql_migration sql_migrations[];
extern const size_t sql_migrations_count;

#endif
