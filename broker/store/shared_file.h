/* shared_file - what lies at the path of a broker's copy before a take-over writes over it.
 * Owns: nothing. Looks at the file, and moves away one that cannot be read.
 * Never: asks the shared database, or decides what a file may become. */
#ifndef BROKER_STORE_SHARED_FILE_H
#define BROKER_STORE_SHARED_FILE_H

#include "schema/status.h"

#include <sqlite3.h>
#include <stdbool.h>

#define SHARED_META_MAX 128

struct shared_file {
    int result; /* SQLITE_OK; SQLITE_EMPTY and others: it holds nothing that can be read */
    char copy_of[SHARED_META_MAX]; /* of which shared database; "": none */
    char seeded[SHARED_META_MAX];  /* it filled one: the row that says so */
    bool has_records;
};

void shared_file_look(const char *path, struct shared_file *ret_file);

/* The value of a row of meta; "": there is none. */
int shared_file_meta(sqlite3 *db, const char *key, char ret_value[SHARED_META_MAX]);

/* Keeps the file under another name, for people to look at. The caller frees *ret_name. */
enum muster_status shared_file_move_aside(const char *path, char **ret_name,
                                          struct muster_error *err);

/* path, and a suffix of SQLite's or our own. */
void shared_file_unlink(const char *path, const char *suffix);

#endif
