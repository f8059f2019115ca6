/* db_fixture - databases with scripted rows, made from the project's own migrations.
 * Each function inserts one row with ordinary values and then sets what the test cares about:
 *     db_round(db, 1, "cause = 'termination', step = %d", 47);
 * Everything belongs to one job, "words", unless db->job is changed. Times: DB_T0 is the moment of
 * the story's first notice, DB_NOW the moment at which it is looked at (UTC). Any failure ends the
 * test program. */
#ifndef TESTS_SUPPORT_DB_FIXTURE_H
#define TESTS_SUPPORT_DB_FIXTURE_H

#include <sqlite3.h>
#include <stdint.h>
#include <sys/types.h>

#define DB_T0 1767614403000LL  /* 2026-01-05 12:00:03 */
#define DB_NOW 1767614463000LL /* a minute later */
#define DB_RANKS 4
#define DB_DIR "/ckpt"

struct db_fixture {
    sqlite3 *sqlite;
    const char *job;
};

/* Makes the file (which must not exist) with all tables. */
void db_open(struct db_fixture *db, const char *path);
void db_close(struct db_fixture *db);
/* The program musterd on DIRECTORY/muster.db at ipc://DIRECTORY/s, with its lines in DIRECTORY/log.
 * It can be asked already: who asks before is told at once that there is no broker. The caller ends
 * it. */
pid_t db_broker(const char *musterd, const char *directory);
void db_sql(struct db_fixture *db, const char *format, ...) __attribute__((format(printf, 2, 3)));

struct db_text {
    char text[1024];
};
struct db_text db_quoted(const char *text); /* as an SQL literal */

/* The functions below: set NULL = nothing. */
#define DB_ROW __attribute__((format(printf, 3, 4)))
void db_job(struct db_fixture *db, const char *set, ...) __attribute__((format(printf, 2, 3)));
void db_generation(struct db_fixture *db, int generation, const char *set, ...) DB_ROW;
/* Incarnation: generation * 100 + rank + 1; host h<rank>, pid 4000 + that. With its progress row */
void db_node(struct db_fixture *db, int generation, int rank, const char *set, ...)
    __attribute__((format(printf, 4, 5)));
void db_progress(struct db_fixture *db, int generation, int rank, const char *set, ...)
    __attribute__((format(printf, 4, 5)));
void db_notice(struct db_fixture *db, const char *id, const char *set, ...) DB_ROW;
void db_event(struct db_fixture *db, int seq, const char *set, ...) DB_ROW;
void db_round(struct db_fixture *db, int round, const char *set, ...) DB_ROW;
/* Of generation 1; as nobody has answered yet. */
void db_member(struct db_fixture *db, int round, int rank, const char *set, ...)
    __attribute__((format(printf, 4, 5)));
void db_checkpoint(struct db_fixture *db, int round, const char *set, ...) DB_ROW;
void db_shard(struct db_fixture *db, int round, int rank, const char *set, ...)
    __attribute__((format(printf, 4, 5)));

#endif
