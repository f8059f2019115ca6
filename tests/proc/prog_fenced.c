/* prog_fenced ADDRESS - two brokers' ends of one log in the PostgreSQL database there, as they
 * never meet in a musterd that asks before it writes: each promise of fenced_log.h, broken off
 * where it hurts. */
#include "broker/store/shared.h"
#include "broker/store/store_internal.h"
#include "fenced/fenced_log.h"

#include <libpq-fe.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define LEASE_MS 60000

static const char *address;
static PGconn *other; /* the test's own hand */
static struct muster_error why;
static const struct postgres_use broker = {.option = "--shared"};

static void do_sql(const char *sql)
{
    PGresult *result = PQexec(other, sql);

    if (PQresultStatus(result) != PGRES_COMMAND_OK && PQresultStatus(result) != PGRES_TUPLES_OK)
        fail_msg("%s: %s", sql, PQerrorMessage(other));
    PQclear(result);
}

static long ask_sql(const char *sql)
{
    PGresult *result = PQexec(other, sql);
    long value = PQntuples(result) == 1 ? strtol(PQgetvalue(result, 0, 0), NULL, 10) : -1;

    PQclear(result);
    return value;
}

static void lease_ends(void)
{
    do_sql("UPDATE muster_lease SET ends = '-infinity'");
}

static void cut_its_connections(void)
{
    do_sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
           "AND application_name = 'musterd'");
}

struct two {
    struct fenced_log *a, *b;
    struct fenced_log_head head;
};

static int set_up(void **state)
{
    static struct two two;

    do_sql("DROP TABLE IF EXISTS muster_lease, muster_batch, muster_snapshot");
    two = (struct two){0};
    assert_int_equal(fenced_log_open(address, "a", &broker, &two.a, &why), MUSTER_OK);
    assert_int_equal(fenced_log_open(address, "b", &broker, &two.b, &why), MUSTER_OK);
    assert_int_equal(fenced_log_take(two.a, LEASE_MS, &two.head, &why), MUSTER_OK);
    *state = &two;
    return 0;
}

static int tear_down(void **state)
{
    struct two *two = *state;

    fenced_log_close(&two->a);
    fenced_log_close(&two->b);
    return 0;
}

static void one_has_the_lease_and_the_other_learns_who(void **state)
{
    struct two *two = *state;
    struct fenced_log_head head;

    assert_true(two->head.epoch > 0);
    assert_false(two->head.has_snapshot);
    assert_int_equal(fenced_log_take(two->b, LEASE_MS, &head, &why), MUSTER_E_LOCKED);
    assert_non_null(strstr(why.text, "a is the active broker"));
    fenced_log_release(two->b); /* it has none */
    assert_int_equal(fenced_log_take(two->b, LEASE_MS, &head, &why), MUSTER_E_LOCKED);
    fenced_log_release(two->a);
    assert_int_equal(fenced_log_take(two->b, LEASE_MS, &head, &why), MUSTER_OK);
    assert_true(head.epoch > two->head.epoch);
    assert_string_equal(head.id, two->head.id);
    assert_int_equal(fenced_log_renew(two->a, LEASE_MS, &why), MUSTER_E_LOCKED);
}

/* It asked nothing before: as after a SIGSTOP between its look at the lease and this statement. */
static void who_was_overtaken_adds_nothing(void **state)
{
    struct two *two = *state;
    struct fenced_log_head head;

    assert_int_equal(fenced_log_append(two->a, "one", 3, &why), MUSTER_OK);
    lease_ends();
    assert_int_equal(fenced_log_take(two->b, LEASE_MS, &head, &why), MUSTER_OK);
    assert_int_equal(head.seq, 1);
    assert_int_equal(fenced_log_append(two->a, "late", 4, &why), MUSTER_E_LOCKED);
    assert_int_equal(fenced_log_append(two->a, "late", 4, &why), MUSTER_E_LOCKED);
    assert_int_equal(fenced_log_snapshot_part(two->a, 1, 0, "old", 3, &why), MUSTER_OK);
    assert_int_equal(fenced_log_snapshot_end(two->a, 1, &why), MUSTER_E_LOCKED);
    assert_int_equal(ask_sql("SELECT count(*) FROM muster_batch"), 1);
    assert_int_equal(ask_sql("SELECT snapshot FROM muster_lease"), -1);
    assert_int_equal(fenced_log_append(two->b, "two", 3, &why), MUSTER_OK);
    assert_int_equal(ask_sql("SELECT count(*) FROM muster_batch b JOIN muster_lease l "
                             "ON b.epoch = l.epoch WHERE b.seq = 2"),
                     1);
}

/* Also if the restored log has come to the same batch since. */
static void who_had_the_lease_before_the_database_was_put_back_adds_nothing(void **state)
{
    struct two *two = *state;
    struct fenced_log_head head, later;

    assert_int_equal(fenced_log_append(two->a, "one", 3, &why), MUSTER_OK);
    do_sql("CREATE TEMP TABLE kept AS SELECT * FROM muster_lease");
    lease_ends();
    assert_int_equal(fenced_log_take(two->b, LEASE_MS, &head, &why), MUSTER_OK);
    assert_int_equal(fenced_log_append(two->b, "two", 3, &why), MUSTER_OK);
    do_sql(
        "DELETE FROM muster_lease; INSERT INTO muster_lease SELECT * FROM kept; DROP TABLE kept; "
        "DELETE FROM muster_batch WHERE seq > 1");
    lease_ends();
    assert_int_equal(fenced_log_take(two->a, LEASE_MS, &later, &why), MUSTER_OK);
    assert_true(later.epoch > head.epoch);
    assert_int_equal(fenced_log_append(two->a, "other", 5, &why), MUSTER_OK);
    assert_int_equal(fenced_log_append(two->b, "three", 5, &why), MUSTER_E_LOCKED);
    assert_int_equal(fenced_log_renew(two->b, LEASE_MS, &why), MUSTER_E_LOCKED);
    assert_int_equal(ask_sql("SELECT count(*) FROM muster_batch"), 2);
}

/* Whatever the role or server sets: an answer means that the batch is on the disk. */
static void the_session_waits_for_the_disk_and_for_no_statement_for_ever(void **state)
{
    struct two *two = *state;

    do_sql("ALTER ROLE muster SET synchronous_commit = off; ALTER ROLE muster SET "
           "statement_timeout = 0");
    do_sql("CREATE TABLE seen (one text, two text)");
    do_sql(
        "CREATE FUNCTION look() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO seen "
        "VALUES (current_setting(''synchronous_commit''), current_setting(''statement_timeout'')); "
        "RETURN NEW; END'");
    do_sql(
        "CREATE TRIGGER look BEFORE INSERT ON muster_batch FOR EACH ROW EXECUTE FUNCTION look()");
    cut_its_connections();
    fenced_log_renew(two->a, LEASE_MS, &why);
    assert_int_equal(fenced_log_append(two->a, "one", 3, &why), MUSTER_OK);
    assert_int_equal(ask_sql("SELECT count(*) FROM seen WHERE one = 'on' AND two = '3s'"), 1);
    do_sql("ALTER ROLE muster RESET ALL; DROP TABLE muster_batch, seen; DROP FUNCTION look()");
}

/* The take-over waits in the row's lock until that statement is over, or the other way round. */
static void a_fence_is_no_look_at_a_row_that_changes_meanwhile(void **state)
{
    struct two *two = *state;

    do_sql("BEGIN");
    do_sql("UPDATE muster_lease SET epoch = epoch + 1"); /* a take-over that is not committed yet */
    assert_int_equal(fenced_log_append(two->a, "late", 4, &why), MUSTER_E_STORAGE); /* it waits */
    do_sql("COMMIT");
    assert_int_equal(fenced_log_append(two->a, "late", 4, &why), MUSTER_E_LOCKED);
    assert_int_equal(ask_sql("SELECT count(*) FROM muster_batch"), 0);
}

static void a_connection_that_is_lost_loses_nothing(void **state)
{
    struct two *two = *state;

    assert_int_equal(fenced_log_append(two->a, "one", 3, &why), MUSTER_OK);
    cut_its_connections();
    assert_int_equal(fenced_log_append(two->a, "two", 3, &why), MUSTER_E_STORAGE);
    assert_int_equal(fenced_log_append(two->a, "two", 3, &why), MUSTER_OK);
    assert_int_equal(ask_sql("SELECT count(*) FROM muster_batch"), 2);
}

/* As of a broker that is told to end behind a failover: the next one does not wait for its end. */
static void a_lease_is_given_back_over_a_new_connection(void **state)
{
    struct two *two = *state;
    struct fenced_log_head head;

    cut_its_connections();
    fenced_log_release(two->a);
    assert_int_equal(fenced_log_take(two->b, LEASE_MS, &head, &why), MUSTER_OK);
}

/* A path of --listen has any bytes, and a text of the database has UTF-8 alone. */
static void an_owner_of_any_bytes_takes_the_lease(void **state)
{
    struct two *two = *state;
    struct fenced_log *log;
    struct fenced_log_head head;

    fenced_log_release(two->a);
    assert_int_equal(fenced_log_open(address, "ipc:///\xff\xc3/s", &broker, &log, &why), MUSTER_OK);
    assert_int_equal(fenced_log_take(log, LEASE_MS, &head, &why), MUSTER_OK);
    assert_int_equal(ask_sql("SELECT count(*) FROM muster_lease WHERE owner = 'ipc:///?"
                             "?/s'"),
                     1);
    fenced_log_close(&log);
}

static void who_reads_is_told_that_the_row_is_gone(void **state)
{
    struct two *two = *state;
    struct fenced_log_head head;

    assert_int_equal(fenced_log_head(two->b, &head, &why), MUSTER_OK);
    do_sql("DELETE FROM muster_lease");
    assert_int_equal(fenced_log_head(two->b, &head, &why), MUSTER_E_CORRUPT);
    assert_non_null(strstr(why.text, "has no row in its table muster_lease any more"));
}

/* pg_cancel_backend, once somebody waits for a replica. */
static void *cancel(void *arg)
{
    (void)arg;
    for (int i = 0; i < 1000; i++, do_sql("SELECT pg_sleep(0.01)"))
        if (ask_sql("SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE "
                    "wait_event = 'SyncRep'") > 0)
            break;
    return NULL;
}

/* The server says OK, and beside it that no replica may have the batch. */
static void a_batch_that_no_replica_has_is_in_doubt(void **state)
{
    struct two *two = *state;
    enum muster_status status = MUSTER_OK;
    pthread_t thread;

    do_sql("SET synchronous_commit = local");
    do_sql("ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
    do_sql("SELECT pg_reload_conf()");
    assert_int_equal(pthread_create(&thread, NULL, cancel, NULL), 0);
    for (int i = 0; i < 1000 && status == MUSTER_OK; i++) /* until the server has read it */
        status = fenced_log_append(two->a, "one", 3, &why);
    pthread_join(thread, NULL);
    do_sql("ALTER SYSTEM RESET synchronous_standby_names");
    do_sql("SELECT pg_reload_conf()");
    do_sql("RESET synchronous_commit");
    assert_int_equal(status, MUSTER_E_STORAGE);
    assert_non_null(strstr(why.text, "canceling wait for synchronous replication"));
    assert_int_equal(fenced_log_append(two->a, "one", 3, &why), MUSTER_E_IO);
}

static void a_batch_whose_answer_is_lost_is_not_written_again(void **state)
{
    struct two *two = *state;

    do_sql("BEGIN; LOCK TABLE muster_batch IN SHARE MODE"); /* the statement waits at its end */
    assert_int_equal(fenced_log_append(two->a, "one", 3, &why), MUSTER_E_STORAGE);
    do_sql("COMMIT");
    for (int i = 0; i < 200 && ask_sql("SELECT seq FROM muster_lease") == 0; i++)
        do_sql("SELECT pg_sleep(0.01)");
    if (ask_sql("SELECT seq FROM muster_lease") == 1) { /* or the server saw the client go */
        assert_int_equal(fenced_log_append(two->a, "one", 3, &why), MUSTER_E_IO);
        assert_non_null(strstr(why.text, "the answer to the last one was lost"));
        assert_int_equal(ask_sql("SELECT count(*) FROM muster_batch"), 1);
    }
}

static void a_log_that_was_put_back_is_seen(void **state)
{
    struct two *two = *state;

    assert_int_equal(fenced_log_append(two->a, "one", 3, &why), MUSTER_OK);
    do_sql("UPDATE muster_lease SET seq = 0; DELETE FROM muster_batch");
    assert_int_equal(fenced_log_append(two->a, "two", 3, &why), MUSTER_E_IO);
    assert_non_null(strstr(why.text, "restored to an earlier state"));
}

static void a_lease_by_a_clock_that_was_set_back_ends(void **state)
{
    struct two *two = *state;
    struct fenced_log_head head;

    do_sql("UPDATE muster_lease SET ends = clock_timestamp() + interval '1 day'");
    assert_int_equal(fenced_log_take(two->b, LEASE_MS, &head, &why), MUSTER_OK);
}

struct heard {
    char text[256];
};

static enum muster_status hear(void *arg, const void *data, size_t size, struct muster_error *err)
{
    struct heard *heard = arg;
    size_t length = strlen(heard->text);

    (void)err;
    snprintf(heard->text + length, sizeof heard->text - length, "%.*s ", (int)size,
             (const char *)data);
    return MUSTER_OK;
}

static void the_next_one_reads_the_newest_snapshot_and_what_follows(void **state)
{
    struct two *two = *state;
    struct fenced_log_head head;
    struct heard parts = {""}, batches = {""};

    assert_int_equal(fenced_log_append(two->a, "one", 3, &why), MUSTER_OK);
    assert_int_equal(fenced_log_snapshot_part(two->a, 1, 0, "who", 3, &why), MUSTER_OK);
    assert_int_equal(fenced_log_append(two->a, "two", 3, &why), MUSTER_OK);
    assert_int_equal(fenced_log_snapshot_part(two->a, 1, 1, "le", 2, &why), MUSTER_OK);
    assert_int_equal(fenced_log_snapshot_end(two->a, 1, &why), MUSTER_OK);
    assert_int_equal(fenced_log_append(two->a, "three", 5, &why), MUSTER_OK);
    assert_int_equal(fenced_log_snapshot_part(two->a, 3, 0, "half", 4, &why), MUSTER_OK);
    fenced_log_release(two->a);
    assert_int_equal(fenced_log_take(two->b, LEASE_MS, &head, &why), MUSTER_OK);
    assert_int_equal(fenced_log_read_snapshot(two->b, &head, hear, &parts, &why), MUSTER_OK);
    assert_string_equal(parts.text, "who le ");
    assert_int_equal(fenced_log_read_batches(two->b, &head, hear, &batches, &why), MUSTER_OK);
    assert_string_equal(batches.text, "two three ");
}

static void unlink_all(const char *path)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", ".mark", ".lock"};
    char name[80];

    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
        unlink(name);
    }
}

/* Of a large database the start works longer than a lease lasts: it is renewed meanwhile. */
static void a_start_that_takes_long_keeps_the_lease(void **state)
{
    struct two *two = *state;
    struct shared *shared;
    char directory[] = "/tmp/muster-fenced.XXXXXX", path[64];
    const struct shared_options shared_options = {
        .uri = address, .path = path, .owner = "c", .known = true};
    int renewals = 0;

    fenced_log_release(two->a);
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/muster.db", directory);
    assert_int_equal(shared_open(&shared_options, &shared, &why), MUSTER_OK);
    assert_int_equal(shared_take(shared, &why), MUSTER_OK);
    do_sql("CREATE TEMP TABLE was AS SELECT ends, epoch FROM muster_lease");
    for (int i = 0; i < 500 && renewals == 0; i++) {
        do_sql("SELECT pg_sleep(0.02)");
        renewals = (int)ask_sql("SELECT count(*) FROM muster_lease JOIN was USING (epoch) WHERE "
                                "muster_lease.ends > was.ends + interval '1 s'");
    }
    assert_int_equal(renewals, 1);
    shared_close(&shared);
    assert_int_equal(ask_sql("SELECT count(*) FROM muster_lease WHERE ends = '-infinity'"), 1);
    do_sql("DROP TABLE was");
    unlink_all(path);
    assert_int_equal(rmdir(directory), 0);
}

/* What is synced is the log; but before that the records may be in the file alone. */
static void a_copy_is_not_synced_with_each_batch(void **state)
{
    struct two *two = *state;
    struct shared *shared;
    struct store *store;
    struct store_options options = {.shared = NULL};
    char directory[] = "/tmp/muster-fenced.XXXXXX", path[64];
    const struct shared_options shared_options = {
        .uri = address, .path = path, .owner = "c", .known = true};
    const struct actions nothing = {.count = 0};
    int64_t synced = 0, marks = 0;

    fenced_log_release(two->a);
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/muster.db", directory);
    assert_int_equal(store_open(path, &options, &store, &why), MUSTER_OK);
    assert_int_equal(store_get_int(store, "PRAGMA synchronous", &synced, &why), MUSTER_OK);
    assert_int_equal(synced, 2);
    store_close(&store);
    assert_int_equal(shared_open(&shared_options, &shared, &why), MUSTER_OK);
    assert_int_equal(shared_take(shared, &why), MUSTER_OK);
    options.shared = shared;
    assert_int_equal(store_open(path, &options, &store, &why), MUSTER_OK);
    assert_int_equal(store_apply(store, &nothing, 0, &why), MUSTER_OK);
    assert_int_equal(store_get_int(store, "PRAGMA synchronous", &synced, &why), MUSTER_OK);
    assert_int_equal(synced, 1);
    assert_int_equal(
        store_get_int(store, "SELECT count(*) FROM meta WHERE key = 'shared'", &marks, &why),
        MUSTER_OK);
    assert_int_equal(marks, 1);
    store_close(&store);
    shared_close(&shared);
    unlink_all(path);
    assert_int_equal(rmdir(directory), 0);
}

#define T(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        T(one_has_the_lease_and_the_other_learns_who),
        T(who_was_overtaken_adds_nothing),
        T(who_had_the_lease_before_the_database_was_put_back_adds_nothing),
        T(the_session_waits_for_the_disk_and_for_no_statement_for_ever),
        T(a_fence_is_no_look_at_a_row_that_changes_meanwhile),
        T(a_connection_that_is_lost_loses_nothing),
        T(a_lease_is_given_back_over_a_new_connection),
        T(an_owner_of_any_bytes_takes_the_lease),
        T(who_reads_is_told_that_the_row_is_gone),
        T(a_batch_that_no_replica_has_is_in_doubt),
        T(a_batch_whose_answer_is_lost_is_not_written_again),
        T(a_log_that_was_put_back_is_seen),
        T(a_lease_by_a_clock_that_was_set_back_ends),
        T(a_copy_is_not_synced_with_each_batch),
        T(a_start_that_takes_long_keeps_the_lease),
        T(the_next_one_reads_the_newest_snapshot_and_what_follows),
    };

    if (argc != 2)
        return 2;
    address = argv[1];
    other = PQconnectdb(address);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    PQfinish(other);
    return failed;
}
