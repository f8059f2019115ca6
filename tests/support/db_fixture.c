#include "tests/support/db_fixture.h"

#include "schema/sql/sql.h"
#include "tests/support/scratch.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void run(struct db_fixture *db, const char *sql)
{
    char *text = NULL;

    if (sqlite3_exec(db->sqlite, sql, NULL, NULL, &text) == SQLITE_OK)
        return;
    fprintf(stderr, "fixture: %s in: %s\n", text, sql);
    abort();
}

void db_open(struct db_fixture *db, const char *path)
{
    *db = (struct db_fixture){.job = "words"};
    if (sqlite3_open(path, &db->sqlite) != SQLITE_OK)
        abort();
    run(db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; PRAGMA foreign_keys = ON");
    for (size_t i = 0; i < sql_migrations_count; i++) {
        run(db, sql_migrations[i].sql);
        db_sql(db, "PRAGMA user_version = %d", sql_migrations[i].version);
    }
    db_sql(db, "PRAGMA application_id = %d", 0x6d757374); /* "must": musterd opens no other file */
}

void db_close(struct db_fixture *db)
{
    if (sqlite3_close(db->sqlite) != SQLITE_OK)
        abort();
    db->sqlite = NULL;
}

pid_t db_broker(const char *musterd, const char *directory)
{
    const char *db = scratch_path(directory, "muster.db"), *log = scratch_path(directory, "log");
    const char *listen = scratch_path("ipc:/", "%s/s", directory);
    const char *port = scratch_path(directory, "port");
    pid_t broker = fork();

    if (broker == 0) {
        if (freopen(log, "w", stderr) == NULL)
            _exit(98);
        execl(musterd, "musterd", "--db", db, "--listen", listen, "--allow-network-fs",
              "--port-file", port, (char *)NULL);
        _exit(99);
    }
    while (!scratch_exists(port)) {
        if (broker < 0 || waitpid(broker, NULL, WNOHANG) != 0) {
            fprintf(stderr, "fixture: musterd did not start: see %s\n", log);
            abort();
        }
        poll(NULL, 0, 5);
    }
    unlink(port); /* it may be started once more */
    return broker;
}

void db_sql(struct db_fixture *db, const char *format, ...)
{
    va_list list;
    char *sql;

    va_start(list, format);
    sql = sqlite3_vmprintf(format, list);
    va_end(list);
    if (sql == NULL)
        abort();
    run(db, sql);
    sqlite3_free(sql);
}

struct db_text db_quoted(const char *text)
{
    struct db_text quoted;

    sqlite3_snprintf((int)sizeof quoted.text, quoted.text, "%Q", text);
    return quoted;
}

/* Sets what the test asks for in the row just inserted. */
static void set_last(struct db_fixture *db, const char *table, const char *where, const char *set,
                     va_list list)
{
    char *assignments = set == NULL ? NULL : sqlite3_vmprintf(set, list);

    if (set != NULL && assignments == NULL)
        abort();
    if (assignments != NULL)
        db_sql(db, "UPDATE %s SET %s WHERE job = '%s' AND %s", table, assignments, db->job, where);
    sqlite3_free(assignments);
}

/* The rest of each function below: `where` finds the row again. */
#define SET_LAST(table, ...)                        \
    do {                                            \
        char where[256];                            \
        va_list list;                               \
        snprintf(where, sizeof where, __VA_ARGS__); \
        va_start(list, set);                        \
        set_last(db, table, where, set, list);      \
        va_end(list);                               \
    } while (0)

void db_job(struct db_fixture *db, const char *set, ...)
{
    db_sql(db,
           "INSERT INTO job (job, state, state_unix_ms, generation, seq, round, created_unix_ms)"
           " VALUES ('%s', 'running', %lld, 1, 0, 0, %lld)",
           db->job, DB_T0 - 60000, DB_T0 - 120000);
    SET_LAST("job", "1");
}

void db_generation(struct db_fixture *db, int generation, const char *set, ...)
{
    db_sql(
        db,
        "INSERT INTO generation (job, generation, state, world_size, layout, checkpoint_dir,"
        " resume_checkpoint, resume_step, resume_ready, fallback, opened_unix_ms, started_unix_ms)"
        " VALUES ('%s', %d, 'running', %d, 'sharded', '%s', 0, 0, 1, 0, %lld, %lld)",
        db->job, generation, DB_RANKS, DB_DIR, DB_T0 - 61000, DB_T0 - 60000);
    SET_LAST("generation", "generation = %d", generation);
}

void db_node(struct db_fixture *db, int generation, int rank, const char *set, ...)
{
    int incarnation = generation * 100 + rank + 1;

    db_sql(db,
           "INSERT INTO node (job, incarnation, generation, role, rank, host, pid, state,"
           " last_request, last_code, leave_why, joined_unix_ms)"
           " VALUES ('%s', %d, %d, '%s', %d, 'h%d', %d, 'restored', 0, 0, 'none', %lld)",
           db->job, incarnation, generation, rank == 0 ? "chief" : "worker", rank, rank,
           4000 + incarnation, DB_T0 - 60500);
    db_sql(db,
           "INSERT INTO progress (job, incarnation, begun, done, phase, step_p95_ms, applied_seq,"
           " heard_unix_ms) VALUES ('%s', %d, 46, 46, 'stepping', 250, 0, %lld)",
           db->job, incarnation, DB_NOW - 800);
    SET_LAST("node", "incarnation = %d", incarnation);
}

void db_progress(struct db_fixture *db, int generation, int rank, const char *set, ...)
{
    SET_LAST("progress", "incarnation = %d", generation * 100 + rank + 1);
}

void db_notice(struct db_fixture *db, const char *id, const char *set, ...)
{
    db_sql(db,
           "INSERT INTO notice (job, generation, id, rank, incarnation, kind, source, state,"
           " cancellable, left_ms, boot_id, deadline_boot_ms, text, round, received_unix_ms)"
           " VALUES ('%s', 1, '%s', 2, 103, 'signal', 'signal', 'active', 0, 30000, 'boot',"
           " 130000, '', 0, %lld)",
           db->job, id, DB_T0);
    SET_LAST("notice", "id = '%s'", id);
}

void db_event(struct db_fixture *db, int seq, const char *set, ...)
{
    db_sql(db,
           "INSERT INTO event (job, seq, generation, kind, round, rank, step, text, unix_ms,"
           " boot_id, deadline_boot_ms, body) VALUES ('%s', %d, 1, 'started', 0, -1, -1, '', %lld,"
           " 'boot', 0, x'')",
           db->job, seq, DB_T0 + seq);
    SET_LAST("event", "seq = %d", seq);
    db_sql(db, "UPDATE job SET seq = max(seq, %d) WHERE job = '%s'", seq, db->job);
}

void db_round(struct db_fixture *db, int round, const char *set, ...)
{
    db_sql(
        db,
        "INSERT INTO round (job, round, generation, attempt, cause, state, step, aborted_steps,"
        " boot_id, deadline_boot_ms, opened_boot_ms, opened_unix_ms)"
        " VALUES ('%s', %d, 1, 1, 'termination', 'freezing', -1, 0, 'boot', 130000, 100005, %lld)",
        db->job, round, DB_T0 + 5);
    SET_LAST("round", "round = %d", round);
    db_sql(db, "UPDATE job SET round = max(round, %d) WHERE job = '%s'", round, db->job);
}

void db_member(struct db_fixture *db, int round, int rank, const char *set, ...)
{
    db_sql(
        db,
        "INSERT INTO participant (job, round, rank, incarnation, writer, begun, done, reported_ms,"
        " at_step_ms, captured_ms, saved_ms, save_ms)"
        " VALUES ('%s', %d, %d, %d, 0, -1, -1, -1, -1, -1, -1, 0)",
        db->job, round, rank, 100 + rank + 1);
    SET_LAST("participant", "round = %d AND rank = %d", round, rank);
}

void db_checkpoint(struct db_fixture *db, int round, const char *set, ...)
{
    db_sql(db,
           "INSERT INTO checkpoint (job, round, generation, step, state, cause, layout, world_size,"
           " shards_required, bytes, path, epoch, step_in_epoch, data_position)"
           " VALUES ('%s', %d, 1, 0, 'committed', 'termination', 'sharded', %d, %d, 0, '', -1, -1,"
           " -1)",
           db->job, round, DB_RANKS, DB_RANKS);
    SET_LAST("checkpoint", "round = %d", round);
}

void db_shard(struct db_fixture *db, int round, int rank, const char *set, ...)
{
    db_sql(db,
           "INSERT INTO shard (job, round, rank, incarnation, files, bytes, save_ms, blocked_ms,"
           " saved_unix_ms) VALUES ('%s', %d, %d, %d, 1, 300000, 250, 250, %lld)",
           db->job, round, rank, 100 + rank + 1, DB_T0 + 800);
    SET_LAST("shard", "round = %d AND rank = %d", round, rank);
}
