/* prog_sql [--write] DATABASE QUERY - prints the rows of one query, columns separated by '|', for
 * the scripts beside it: what the broker wrote is asked of the file itself, not of the code under
 * test. Reads only, but with
 * --write: for tests that break a copy on purpose. */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUSY_MS 10000

static int complain(sqlite3 *db, const char *what)
{
    fprintf(stderr, "prog_sql: %s: %s\n", what, sqlite3_errmsg(db));
    sqlite3_close(db);
    return EXIT_FAILURE;
}

static void print_row(sqlite3_stmt *query)
{
    for (int i = 0; i < sqlite3_column_count(query); i++) {
        const unsigned char *text = sqlite3_column_text(query, i);

        printf("%s%s", i > 0 ? "|" : "", text != NULL ? (const char *)text : "");
    }
    putchar('\n');
}

int main(int argc, char **argv)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *query = NULL;
    int code, flags = SQLITE_OPEN_READONLY;

    if (argc == 4 && strcmp(argv[1], "--write") == 0) {
        flags = SQLITE_OPEN_READWRITE;
        argv++;
    } else if (argc != 3) {
        fprintf(stderr, "usage: prog_sql [--write] DATABASE QUERY\n");
        return 2;
    }
    if (sqlite3_open_v2(argv[1], &db, flags, NULL) != SQLITE_OK)
        return complain(db, argv[1]);
    sqlite3_busy_timeout(db, BUSY_MS);
    if (sqlite3_prepare_v2(db, argv[2], -1, &query, NULL) != SQLITE_OK)
        return complain(db, argv[2]);
    while ((code = sqlite3_step(query)) == SQLITE_ROW)
        print_row(query);
    sqlite3_finalize(query);
    if (code != SQLITE_DONE)
        return complain(db, argv[2]);
    sqlite3_close(db);
    return EXIT_SUCCESS;
}
