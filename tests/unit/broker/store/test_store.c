/* The broker's database, on real files. */
#include "broker/store/store.h"
#include "broker/store/store_internal.h"
#include "tests/unit/broker/store/store_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- rows ------------------------------------------------------------------------------------- */

struct loaded {
    int seen[RECORD_KIND_COUNT];
    enum record_kind order[64];
    size_t count;
};

static void compare_with_sample(void *arg, const struct record *row)
{
    struct loaded *loaded = arg;

    loaded->seen[row->kind]++;
    loaded->order[loaded->count++] = row->kind;
    if (row->kind == RECORD_HISTORY) { /* of the one generation, which did not finish */
        assert_int_equal(row->u.history.run_ms, 1);
        assert_int_equal(row->u.history.interruptions, 1);
        return;
    }
    assert_record_same(row, sample_of(row->kind));
}

static void every_kind_comes_back_as_it_was_written(void **state)
{
    static const enum record_kind order[] = {
        RECORD_BROKER,     RECORD_JOB,         RECORD_GENERATION, RECORD_LAUNCH,
        RECORD_HOST,       RECORD_NODE,        RECORD_PROGRESS,   RECORD_NOTICE,
        RECORD_ROUND,      RECORD_PARTICIPANT, RECORD_SHARD,      RECORD_FILE,
        RECORD_CHECKPOINT, RECORD_POLICY,      RECORD_PIN,        RECORD_HISTORY};
    struct fixture *f = *state;

    fixture_write_samples(f);
    fixture_write_samples(f); /* twice changes nothing */
    for (int opened = 0; opened < 2; opened++) {
        struct loaded loaded = {.count = 0};

        assert_int_equal(store_load(f->store, compare_with_sample, &loaded, &f->err), MUSTER_OK);
        assert_int_equal(loaded.count, sizeof order / sizeof *order);
        for (size_t i = 0; i < loaded.count; i++)
            assert_int_equal(loaded.order[i], order[i]); /* as core_load wants them */
        fixture_reopen(f);
    }
}

static void ignore_row(void *arg, const struct record *row)
{
    struct loaded *loaded = arg;

    loaded->seen[row->kind]++;
    if (row->kind == RECORD_BROKER)
        loaded->count += row->u.broker.epoch;
}

static void a_new_database_has_epoch_0_and_nothing_else(void **state)
{
    struct fixture *f = *state;
    struct loaded loaded = {.count = 0};

    assert_int_equal(store_load(f->store, ignore_row, &loaded, &f->err), MUSTER_OK);
    assert_int_equal(loaded.count, 0);
    assert_int_equal(loaded.seen[RECORD_BROKER], 1);
    assert_int_equal(loaded.seen[RECORD_JOB], 0);
}

static void a_row_written_again_is_replaced_whole(void **state)
{
    struct fixture *f = *state;
    struct record row = *sample_of(RECORD_GENERATION);

    fixture_write_samples(f);
    row.u.generation.state = GENERATION_ENDED;
    row.u.generation.end_text = "";
    row.u.generation.error_rank = -1;
    fixture_write(f, &row);
    assert_int_equal(fixture_look(f, "SELECT count(*) FROM generation"), 1);
    assert_int_equal(fixture_look(f, "SELECT count(*) FROM generation WHERE state = 'ended' AND "
                                     "end_text = '' AND error_rank = -1 AND world_size = 4096"),
                     1);
}

/* What is found on disk knows nothing of a launch but its number and its world. */
static void a_launch_that_was_found_on_disk_replaces_none_that_is_here(void **state)
{
    struct fixture *f = *state;
    struct record row = *sample_of(RECORD_GENERATION);

    fixture_write_samples(f);
    row.u.generation.end_text = FOUND_ON_DISK;
    row.u.generation.opened_unix_ms = 0;
    fixture_write(f, &row);
    assert_int_equal(fixture_look(f, "SELECT count(*) FROM generation WHERE opened_unix_ms = 204 "
                                     "AND end_text <> 'found on disk'"),
                     1);
    row.u.generation.generation = 1;
    fixture_write(f, &row);
    fixture_write(f, &row); /* one that was found is found again */
    assert_int_equal(fixture_look(f, "SELECT count(*) FROM generation"), 2);
}

/* A launch that a broker took over from a restored database does not know when it was opened. */
static void a_launch_that_was_found_on_disk_replaces_none_that_was_taken_over(void **state)
{
    struct fixture *f = *state;
    struct record row = *sample_of(RECORD_GENERATION);

    fixture_write_samples(f);
    row.u.generation.generation = 1;
    row.u.generation.opened_unix_ms = 0;
    row.u.generation.end_text = "";
    row.u.generation.resume_checkpoint = 7;
    fixture_write(f, &row);
    row.u.generation.end_text = FOUND_ON_DISK;
    row.u.generation.resume_checkpoint = 0;
    fixture_write(f, &row);
    assert_int_equal(fixture_look(f,
                                  "SELECT resume_checkpoint FROM generation WHERE generation = 1 "
                                  "AND end_text = ''"),
                     7);
}

/* The table's row again, for rounds 100, 101, ... of the same job, all committed. */
static void multiply(struct fixture *f, const char *table, int count)
{
    sqlite3_stmt *statement = NULL;
    char *ask = sqlite3_mprintf(
        "SELECT group_concat(CASE name WHEN 'round' THEN 'i' WHEN 'step' THEN 'i' WHEN 'state' THEN"
        " '''committed''' WHEN 'path' THEN 'CAST(i AS TEXT)' ELSE name END) FROM "
        "pragma_table_info(%Q)",
        table);
    char *fill;

    assert_int_equal(sqlite3_prepare_v2(f->store->db, ask, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    fill =
        sqlite3_mprintf("WITH RECURSIVE n (i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM n WHERE"
                        " i < %d) INSERT INTO %s SELECT %s FROM n, (SELECT * FROM %s LIMIT 1)",
                        99 + count, table, (const char *)sqlite3_column_text(statement, 0), table);
    sqlite3_finalize(statement);
    assert_int_equal(store_exec(f->store, fill, &f->err), MUSTER_OK);
    sqlite3_free(fill);
    sqlite3_free(ask);
}

static void only_what_a_start_needs_is_loaded(void **state)
{
    struct fixture *f = *state;
    struct loaded loaded = {.count = 0};
    struct record row = *sample_of(RECORD_GENERATION);

    fixture_write_samples(f);
    row.u.generation.generation = 2; /* an earlier one */
    fixture_write(f, &row);
    row = *sample_of(RECORD_NODE);
    row.u.node.incarnation = 1;
    row.u.node.generation = 2;
    fixture_write(f, &row);
    row = *sample_of(RECORD_NOTICE);
    row.u.notice.id = "served";
    row.u.notice.state = RECORD_NOTICE_SERVED;
    fixture_write(f, &row);
    row = *sample_of(RECORD_JOB);
    row.u.job.round = 100 + 2 * CORE_CHECKPOINTS_MAX;
    fixture_write(f, &row);
    multiply(f, "round", 2 * CORE_CHECKPOINTS_MAX);
    multiply(f, "checkpoint", 2 * CORE_CHECKPOINTS_MAX);
    row = *sample_of(RECORD_ROUND); /* an import that was cut short, long ago */
    row.u.round.round = 101;
    row.u.round.state = ROUND_ABORTED;
    row.u.round.reason = ROUND_FOUND_IN_PART;
    fixture_write(f, &row);
    row = *sample_of(RECORD_CHECKPOINT);
    row.u.checkpoint.round = 101;
    row.u.checkpoint.state = CHECKPOINT_FAILED;
    fixture_write(f, &row);
    row = *sample_of(RECORD_CHECKPOINT);
    row.u.checkpoint.round = 100 + 2 * CORE_CHECKPOINTS_MAX - 1;
    row.u.checkpoint.state = CHECKPOINT_WRITING;
    fixture_write(f, &row);
    assert_int_equal(store_load(f->store, ignore_row, &loaded, &f->err), MUSTER_OK);
    assert_int_equal(loaded.seen[RECORD_GENERATION], 1);
    assert_int_equal(loaded.seen[RECORD_NODE], 1);
    assert_int_equal(loaded.seen[RECORD_NOTICE], 2); /* the served one too: a node may repeat it */
    assert_int_equal(loaded.seen[RECORD_ROUND],
                     CORE_OUTCOMES_MAX + 2); /* ended ones, an open one */
    assert_int_equal(loaded.seen[RECORD_CHECKPOINT], 1 + CORE_CHECKPOINTS_MAX);
}

static void shards_that_are_gone_are_those_of_one_round(void **state)
{
    struct fixture *f = *state;
    const struct record gone = {
        .kind = RECORD_SHARDS_GONE,
        .u.shards_gone = {.job = SAMPLE_JOB, .round = SAMPLE_ROUND},
    };

    fixture_write_samples(f);
    multiply(f, "round", 1);
    multiply(f, "checkpoint", 1);
    multiply(f, "shard", 1);
    multiply(f, "shard_file", 1);
    fixture_write(f, &gone);
    fixture_write(f, &gone);
    assert_int_equal(fixture_look(f, "SELECT sum(round) FROM shard"), 100);
    assert_int_equal(fixture_look(f, "SELECT sum(round) FROM shard_file"), 100);
}

static void see_other_boot(void *arg, const struct record *row)
{
    struct loaded *loaded = arg;

    loaded->seen[row->kind]++;
    if (row->kind == RECORD_NOTICE)
        assert_true(row->u.notice.other_boot && row->u.notice.deadline_boot_ms == 0);
    if (row->kind == RECORD_ROUND)
        assert_true(row->u.round.other_boot && row->u.round.deadline_boot_ms == 0);
}

/* R1.9 */
static void deadlines_of_another_boot_are_not_handed_out(void **state)
{
    struct fixture *f = *state;
    struct loaded loaded = {.count = 0};

    fixture_write_samples(f);
    store_close(&f->store);
    fixture_change(f, "UPDATE notice SET boot_id = 'x'; UPDATE round SET boot_id = 'x'");
    fixture_reopen(f);
    assert_int_equal(store_load(f->store, see_other_boot, &loaded, &f->err), MUSTER_OK);
    assert_int_equal(loaded.seen[RECORD_NOTICE] + loaded.seen[RECORD_ROUND], 2);
}

static void a_word_that_no_row_may_hold_is_damage(void **state)
{
    struct fixture *f = *state;
    struct loaded loaded = {.count = 0};

    fixture_write_samples(f);
    store_close(&f->store);
    fixture_change(f, "UPDATE round SET cause = 'boredom'");
    fixture_reopen(f);
    assert_int_equal(store_load(f->store, ignore_row, &loaded, &f->err), MUSTER_E_CORRUPT);
    assert_non_null(strstr(f->err.text, "boredom"));
    assert_non_null(strstr(f->err.text, "cause"));
}

/* Each is what a file says that was edited, or put together from two (R9.8). */
static void rows_that_do_not_fit_together_are_damage(void **state)
{
    static const struct {
        const char *change;
        const char *finding;
    } rows[] = {
        {"UPDATE job SET job = 'other'", "names a job that is not there"},
        {"UPDATE event SET job = 'a'", "a row of event names a job that is not there"},
        {"INSERT INTO event SELECT 'zz', seq, generation, kind, round, rank, step, text, unix_ms, "
         "boot_id, deadline_boot_ms, body FROM event",
         "a row of event names a job that is not there"},
        {"DELETE FROM generation", "generation 3 of job words is not there"},
        {"DELETE FROM round", "names a round that is not there"},
        {"UPDATE job SET seq = 102", "has event 103, and its count says 102"},
        {"UPDATE job SET round = 1", "and its count says 1"},
        {"UPDATE job SET seq = -1; DELETE FROM event", "event -1"},
        {"UPDATE job SET lineage = '1f:0 2a:104'",
         "a start of the broker, number 2 of its lineage"},
        {"UPDATE job SET lineage = '1f:9 2a:7'", "number 2"},
        {"UPDATE job SET lineage = '1f:0 2a'", "number 2"},
        {"UPDATE job SET lineage = 'x:0'", "number 1"},
        {"UPDATE job SET lineage = ' '", "number 1"},
        {"UPDATE generation SET world_size = 16385", "has 16385 ranks"},
        {"UPDATE generation SET resume_step = -1", "resume step -1"},
        {"UPDATE node SET role = 'worker', rank = 16384", "rank 16384"},
        {"UPDATE progress SET begun = 9223372036854775807", "has begun 9223372036854775807"},
        {"INSERT INTO node SELECT job, 5, generation, 'chief', 0, host, pid, state, 0, 0, 0, '', "
         "0, 0,"
         " 0 FROM node; INSERT INTO node SELECT job, 6, generation, 'chief', 0, host, pid, state, "
         "0, 0,"
         " 0, '', 0, 0, 0 FROM node LIMIT 1",
         "rank 0 of job words is held by two nodes"},
        {"UPDATE round SET state = 'decided', step = -1", "is \"decided\" at step -1"},
        {"UPDATE round SET state = 'writing'", "its checkpoint is committed at step 801"},
        {"UPDATE checkpoint SET step = -1", "is at step -1"},
        {"UPDATE participant SET begun = -2", "has begun -2"},
    };
    struct fixture *f = *state;
    size_t size;
    char *whole;

    fixture_write_samples(f);
    store_close(&f->store);
    whole = scratch_read(f->db, &size);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct loaded loaded = {.count = 0};

        scratch_write(f->db, whole, size);
        fixture_change(f, rows[i].change);
        fixture_reopen(f);
        assert_int_equal(store_load(f->store, ignore_row, &loaded, &f->err), MUSTER_E_CORRUPT);
        if (strstr(f->err.text, rows[i].finding) == NULL)
            fail_msg("%s: %s", rows[i].change, f->err.text);
        assert_int_equal(loaded.count, 0);
        store_close(&f->store);
    }
    free(whole);
}

/* --- transactions ----------------------------------------------------------------------------- */

static void a_batch_that_breaks_a_rule_leaves_nothing(void **state)
{
    struct fixture *f = *state;
    struct record rows[] = {samples[0], *sample_of(RECORD_JOB), *sample_of(RECORD_SHARD)};

    assert_int_equal(fixture_apply(f, rows, 3), MUSTER_E_FAULT); /* a shard of no checkpoint */
    assert_non_null(strstr(f->err.text, "shard"));
    assert_int_equal(fixture_look(f, "SELECT count(*) FROM job"), 0);
    fixture_write_samples(f); /* and the store goes on */
}

static void an_event_number_is_never_used_twice(void **state)
{
    struct fixture *f = *state;
    struct record row = *sample_of(RECORD_EVENT);

    fixture_write_samples(f);
    row.u.event.body.text = "other";
    assert_int_equal(fixture_apply(f, &row, 1), MUSTER_E_FAULT);
    assert_non_null(strstr(f->err.text, "103"));
    assert_int_equal(fixture_look(f, "SELECT count(*) FROM event WHERE text = 'text'"), 1);
}

static void a_number_without_a_word_is_not_written(void **state)
{
    struct fixture *f = *state;
    struct record row = *sample_of(RECORD_JOB);

    row.u.job.state = (enum wire_generation_state)99;
    assert_int_equal(fixture_apply(f, &row, 1), MUSTER_E_FAULT);
}

/* R2.3 */
static void lazy_progress_is_written_at_most_once_a_second(void **state)
{
    struct fixture *f = *state;
    struct record row = *sample_of(RECORD_PROGRESS);
    struct actions nothing = {.count = 0};
    struct action item;
    struct actions batch;

    fixture_write_samples(f);
    row.u.progress.done = 5000;
    batch = batch_of(&row, 1, true, &item);
    assert_int_equal(store_apply(f->store, &batch, NOW + 1, &f->err), MUSTER_OK);
    assert_int_equal(fixture_look(f, "SELECT done FROM progress"), 400);
    assert_true(store_wakeup_boot_ms(f->store) == NOW + HEARTBEAT_MS);
    assert_int_equal(store_apply(f->store, &nothing, NOW + HEARTBEAT_MS - 1, &f->err), MUSTER_OK);
    assert_int_equal(fixture_look(f, "SELECT done FROM progress"), 400);
    assert_int_equal(store_apply(f->store, &nothing, NOW + HEARTBEAT_MS, &f->err), MUSTER_OK);
    assert_int_equal(fixture_look(f, "SELECT done FROM progress"), 5000);
    assert_true(store_wakeup_boot_ms(f->store) == INT64_MAX);
}

static void lazy_progress_rides_along_with_a_batch_that_matters(void **state)
{
    struct fixture *f = *state;
    struct record row = *sample_of(RECORD_PROGRESS);
    struct action item;
    struct actions batch;

    fixture_write_samples(f);
    row.u.progress.done = 5000;
    batch = batch_of(&row, 1, true, &item);
    assert_int_equal(store_apply(f->store, &batch, NOW + 1, &f->err), MUSTER_OK);
    fixture_write(f, sample_of(RECORD_BROKER));
    assert_int_equal(fixture_look(f, "SELECT done FROM progress"), 5000);
    assert_true(store_wakeup_boot_ms(f->store) == INT64_MAX);
}

static void held_progress_is_written_at_close_and_sync_is_full_again(void **state)
{
    struct fixture *f = *state;
    struct record row = *sample_of(RECORD_PROGRESS);
    struct actions nothing = {.count = 0};
    int64_t synchronous = 0;
    struct action item;
    struct actions batch;

    fixture_write_samples(f);
    row.u.progress.done = 5000;
    batch = batch_of(&row, 1, true, &item);
    assert_int_equal(store_apply(f->store, &batch, NOW + 1, &f->err), MUSTER_OK);
    assert_int_equal(store_apply(f->store, &nothing, NOW + 2 * HEARTBEAT_MS, &f->err), MUSTER_OK);
    assert_int_equal(store_get_int(f->store, "PRAGMA synchronous", &synchronous, NULL), MUSTER_OK);
    assert_int_equal(synchronous, 2);
    row.u.progress.done = 6000;
    batch = batch_of(&row, 1, true, &item);
    assert_int_equal(store_apply(f->store, &batch, NOW + 2 * HEARTBEAT_MS, &f->err), MUSTER_OK);
    store_close(&f->store);
    assert_int_equal(fixture_look(f, "SELECT done FROM progress"), 6000);
}

/* As when memory was out just then: the next batch that matters is synced anyway. */
static void commits_are_synced_again_before_the_next_batch(void **state)
{
    struct fixture *f = *state;
    int64_t synchronous = 0;

    assert_int_equal(store_exec(f->store, "PRAGMA synchronous=NORMAL", &f->err), MUSTER_OK);
    f->store->unsynced = true;
    fixture_write(f, sample_of(RECORD_BROKER));
    assert_int_equal(store_get_int(f->store, "PRAGMA synchronous", &synchronous, &f->err),
                     MUSTER_OK);
    assert_int_equal(synchronous, 2);
    assert_false(f->store->unsynced);
}

static int no_pragma(void *arg, int action, const char *a, const char *b, const char *c,
                     const char *d)
{
    (void)arg, (void)a, (void)b, (void)c, (void)d;
    return action == SQLITE_PRAGMA ? SQLITE_DENY : SQLITE_OK;
}

static void no_batch_is_written_where_commits_cannot_be_synced_again(void **state)
{
    struct fixture *f = *state;
    const struct record *row = sample_of(RECORD_JOB);

    f->store->unsynced = true;
    sqlite3_set_authorizer(f->store->db, no_pragma, NULL);
    assert_int_not_equal(fixture_apply(f, row, 1), MUSTER_OK);
    sqlite3_set_authorizer(f->store->db, NULL, NULL);
    assert_int_equal(fixture_look(f, "SELECT count(*) FROM job"), 0);
    assert_int_equal(fixture_apply(f, row, 1), MUSTER_OK);
    assert_int_equal(fixture_look(f, "SELECT count(*) FROM job"), 1);
}

static void a_full_disk_can_be_tried_again_and_leaves_nothing_half(void **state)
{
    static char text[TEXT_MAX + 1];
    struct fixture *f = *state;
    struct record rows[200];
    struct stat wal;
    enum muster_status status;
    char path[SCRATCH_PATH_MAX + 64];

    memset(text, 'x', TEXT_MAX);
    fixture_write_samples(f);
    for (uint64_t i = 0; i < 200; i++) {
        rows[i] = *sample_of(RECORD_EVENT);
        rows[i].u.event.seq = rows[i].u.event.body.seq = 200 + i;
        rows[i].u.event.body.text = text;
    }
    snprintf(path, sizeof path, "%s-wal", f->db);
    assert_int_equal(stat(path, &wal), 0);
    for (int tries = 0; tries < 3; tries++) {
        fixture_limit_file_size((rlim_t)wal.st_size + 100000);
        status = fixture_apply(f, rows, 200);
        fixture_limit_file_size(RLIM_INFINITY);
        assert_int_equal(status, MUSTER_E_STORAGE);
        assert_non_null(strstr(f->err.text, f->db));
        assert_int_equal(fixture_look(f, "SELECT count(*) FROM event"), 1);
    }
    assert_int_equal(fixture_apply(f, rows, 200), MUSTER_OK); /* the same batch, whole */
    assert_int_equal(fixture_look(f, "SELECT count(*) FROM event"), 201);
    fixture_reopen(f);
    assert_int_equal(fixture_look(f, "SELECT count(*) FROM event"), 201);
}

static void lazy_progress_on_a_full_disk_is_dropped_not_fatal(void **state)
{
    struct fixture *f = *state;
    struct record row = *sample_of(RECORD_PROGRESS);
    struct actions nothing = {.count = 0};
    struct action item;
    struct actions batch = batch_of(&row, 1, true, &item);
    struct stat wal;
    char path[SCRATCH_PATH_MAX + 64];

    fixture_write_samples(f);
    snprintf(path, sizeof path, "%s-wal", f->db);
    assert_int_equal(stat(path, &wal), 0);
    assert_int_equal(store_apply(f->store, &batch, NOW + 1, &f->err), MUSTER_OK);
    fixture_limit_file_size((rlim_t)wal.st_size);
    assert_int_equal(store_apply(f->store, &nothing, NOW + 5000, &f->err), MUSTER_OK);
    fixture_limit_file_size(RLIM_INFINITY);
    assert_true(store_wakeup_boot_ms(f->store) == INT64_MAX);
    fixture_write(f, sample_of(RECORD_BROKER));
}

/* --- the file --------------------------------------------------------------------------------- */

/* Tries to open, expects `status` and a text that has `named`, and the file as it was. */
static void refused(struct fixture *f, enum muster_status status, const char *named)
{
    size_t size_before;
    size_t size_after;
    char *before = scratch_read(f->db, &size_before);
    char *after;

    assert_null(f->store);
    assert_int_equal(store_open(f->db, &f->options, &f->store, &f->err), status);
    assert_null(f->store);
    if (strstr(f->err.text, named) == NULL || strstr(f->err.text, f->db) == NULL)
        fail_msg("\"%s\" does not name \"%s\" and the file", f->err.text, named);
    after = scratch_read(f->db, &size_after);
    assert_int_equal(size_before, size_after);
    assert_memory_equal(before, after, size_before);
    free(before);
    free(after);
}

static void a_second_broker_is_refused_with_the_pid_of_the_first(void **state)
{
    struct fixture *f = *state;
    struct store *second = NULL;
    char pid[32];
    const char *other_name = scratch_path(f->dir, "link");

    snprintf(pid, sizeof pid, "pid %ld", (long)getpid());
    assert_int_equal(store_open(f->db, &f->options, &second, &f->err), MUSTER_E_LOCKED);
    assert_non_null(strstr(f->err.text, pid));
    assert_int_equal(symlink(f->db, other_name), 0); /* another name, the same file */
    assert_int_equal(store_open(other_name, &f->options, &second, &f->err), MUSTER_E_LOCKED);
    assert_null(second);
    store_close(&f->store);
    assert_int_equal(store_open(other_name, &f->options, &f->store, &f->err), MUSTER_OK);
}

static void files_are_for_their_owner_alone_and_the_settings_hold(void **state)
{
    struct fixture *f = *state;
    struct stat info;
    int64_t value = 0;

    assert_int_equal(stat(scratch_path(f->dir, "state"), &info), 0);
    assert_int_equal(info.st_mode & 0777, 0700);
    assert_int_equal(store_get_int(f->store, "PRAGMA synchronous", &value, NULL), MUSTER_OK);
    assert_int_equal(value, 2);
    assert_int_equal(store_get_int(f->store, "PRAGMA foreign_keys", &value, NULL), MUSTER_OK);
    assert_int_equal(value, 1);
    assert_int_equal(store_get_int(f->store, "PRAGMA trusted_schema", &value, NULL), MUSTER_OK);
    assert_int_equal(value, 0);
    assert_int_equal(
        fixture_look(f, "SELECT count(*) FROM pragma_journal_mode WHERE journal_mode = 'wal'"), 1);
}

static void a_newer_schema_is_refused(void **state)
{
    struct fixture *f = *state;

    store_close(&f->store);
    fixture_change(f, "PRAGMA user_version = 9999");
    refused(f, MUSTER_E_SCHEMA, "9999");
}

/* R9.8 */
static void a_damaged_page_is_found_and_the_file_kept(void **state)
{
    struct fixture *f = *state;
    size_t size;
    char *bytes;

    fixture_write_samples(f);
    store_close(&f->store);
    bytes = scratch_read(f->db, &size);
    assert_true(size > 5 * 4096);
    memset(bytes + 4 * 4096, 0xa5, 4096);
    scratch_write(f->db, bytes, size);
    free(bytes);
    refused(f, MUSTER_E_CORRUPT, "nothing was recreated");
}

static void a_cut_file_is_found_and_kept(void **state)
{
    struct fixture *f = *state;

    fixture_write_samples(f);
    store_close(&f->store);
    scratch_cut(f->db, 3 * 4096);
    refused(f, MUSTER_E_CORRUPT, "nothing was recreated");
}

static void a_file_that_is_no_database_is_kept(void **state)
{
    struct fixture *f = *state;
    char text[2000];

    store_close(&f->store);
    memset(text, 'x', sizeof text);
    scratch_write(f->db, text, sizeof text);
    refused(f, MUSTER_E_CORRUPT, "not a SQLite database");
}

static void a_database_of_another_program_is_kept(void **state)
{
    struct fixture *f = *state;

    store_close(&f->store);
    fixture_change(f, "PRAGMA application_id = 77");
    refused(f, MUSTER_E_CORRUPT, "77");
    fixture_change(f, "PRAGMA application_id = 0");
    refused(f, MUSTER_E_CORRUPT, "not one of muster's");
}

static void network_file_systems_are_known_by_their_magic(void **state)
{
    (void)state;
    assert_string_equal(store_network_name(0x6969), "NFS");
    assert_string_equal(store_network_name(0xff534d42UL), "CIFS");
    assert_string_equal(store_network_name((unsigned long)(int)0xff534d42),
                        "CIFS"); /* signed f_type */
    assert_string_equal(store_network_name(0x0bd00bd0), "Lustre");
    assert_string_equal(store_network_name(0x65735546), "FUSE");
    assert_null(store_network_name(0xef53));     /* ext4 */
    assert_null(store_network_name(0x58465342)); /* xfs */
    assert_null(store_network_name(0x01021994)); /* tmpfs */
    assert_null(store_network_name(0x794c7630)); /* overlayfs */
}

/* --- migrations ------------------------------------------------------------------------------- */

static const struct sql_migration two[] = {
    {1, "0001_one", "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;"},
    {2, "0002_two",
     "ALTER TABLE meta ADD COLUMN more TEXT; INSERT INTO meta VALUES ('m', '2', '');"},
    {0, NULL, NULL}};
static const struct sql_migration one[] = {
    {1, "0001_one", "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;"},
    {0, NULL, NULL}};
static const struct sql_migration broken[] = {
    {1, "0001_one", "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;"},
    {2, "0002_two", "INSERT INTO meta VALUES ('half', 'x'); CREATE TABLE meta (again TEXT);"},
    {0, NULL, NULL}};

static enum muster_status migrate_to(struct fixture *f, const struct sql_migration *migrations)
{
    const struct store_options options = {.allow_network_fs = true, .migrations = migrations};
    struct store store = {.path = f->db, .lock_fd = -1};
    enum muster_status status = store_connect(&store, &options, &f->err);

    sqlite3_close(store.db);
    return status;
}

static void an_older_database_is_backed_up_and_migrated(void **state)
{
    struct fixture *f = *state;
    char backup[SCRATCH_PATH_MAX + 64];

    store_close(&f->store);
    snprintf(f->db, sizeof f->db, "%s", scratch_path(f->dir, "old.db"));
    snprintf(backup, sizeof backup, "%s.before-v2", f->db);
    assert_int_equal(migrate_to(f, one), MUSTER_OK);
    assert_false(scratch_exists(backup));
    assert_int_equal(migrate_to(f, two), MUSTER_OK);
    assert_true(scratch_exists(backup));
    assert_int_equal(fixture_look(f, "PRAGMA user_version"), 2);
    assert_int_equal(fixture_look(f, "SELECT value FROM meta WHERE key = 'm'"), 2);
    assert_int_equal(migrate_to(f, one), MUSTER_E_SCHEMA); /* the older program */
    strcat(f->db, ".before-v2");
    assert_int_equal(fixture_look(f, "PRAGMA user_version"), 1);
    assert_int_equal(fixture_look(f, "SELECT count(*) FROM meta"), 0);
}

static void keep_job(void *arg, const struct record *row)
{
    struct record_job *job = arg;

    if (row->kind != RECORD_JOB)
        return;
    *job = row->u.job;
    job->job = job->save_now_id = "";
}

static void a_database_of_the_first_schema_is_read_with_nothing_wanted(void **state)
{
    const struct sql_migration first[] = {sql_migrations[0], {0, NULL, NULL}};
    struct fixture *f = *state;
    struct record_job job = {.want = CAUSE_POLICY};

    store_close(&f->store);
    snprintf(f->db, sizeof f->db, "%s", scratch_path(f->dir, "old.db"));
    assert_int_equal(migrate_to(f, first), MUSTER_OK);
    fixture_change(f, "INSERT INTO job VALUES ('train', 'running', 1, 3, 0, 17, 'op-1', 5)");
    fixture_change(
        f, "INSERT INTO generation (job, generation, state, world_size, layout, checkpoint_dir,"
           " resume_checkpoint, resume_step, resume_ready, fallback, opened_unix_ms)"
           " VALUES ('train', 3, 'running', 2, 'replicated', '/ck', 0, 0, 1, 0, 5)");
    fixture_reopen(f);
    assert_int_equal(store_load(f->store, keep_job, &job, &f->err), MUSTER_OK);
    assert_int_equal(job.generation, 3);
    assert_int_equal(job.round, 17);
    assert_int_equal(job.save_now_round, 0);
    assert_int_equal(job.want, CAUSE_NONE);
    assert_int_equal(job.want_attempt, 0);
    assert_int_equal(fixture_look(f, "PRAGMA user_version"), sql_migrations_count);
    fixture_write_samples(f); /* and it holds what the present schema does */
}

static void a_migration_that_fails_changes_nothing(void **state)
{
    struct fixture *f = *state;

    store_close(&f->store);
    snprintf(f->db, sizeof f->db, "%s", scratch_path(f->dir, "old.db"));
    assert_int_equal(migrate_to(f, one), MUSTER_OK);
    assert_int_equal(migrate_to(f, broken), MUSTER_E_FAULT);
    assert_int_equal(fixture_look(f, "PRAGMA user_version"), 1);
    assert_int_equal(fixture_look(f, "SELECT count(*) FROM meta"), 0);
    assert_int_equal(migrate_to(f, two), MUSTER_OK);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_kind_comes_back_as_it_was_written),
        TEST(a_new_database_has_epoch_0_and_nothing_else),
        TEST(a_row_written_again_is_replaced_whole),
        TEST(a_launch_that_was_found_on_disk_replaces_none_that_is_here),
        TEST(a_launch_that_was_found_on_disk_replaces_none_that_was_taken_over),
        TEST(a_batch_that_breaks_a_rule_leaves_nothing),
        TEST(an_event_number_is_never_used_twice),
        TEST(a_number_without_a_word_is_not_written),
        TEST(lazy_progress_is_written_at_most_once_a_second),
        TEST(lazy_progress_rides_along_with_a_batch_that_matters),
    };
    /* They change or break the file itself, or look how it is synced. */
    const struct CMUnitTest tests_of_a_file[] = {
        TEST(only_what_a_start_needs_is_loaded),
        TEST(shards_that_are_gone_are_those_of_one_round),
        TEST(deadlines_of_another_boot_are_not_handed_out),
        TEST(a_word_that_no_row_may_hold_is_damage),
        TEST(rows_that_do_not_fit_together_are_damage),
        TEST(held_progress_is_written_at_close_and_sync_is_full_again),
        TEST(commits_are_synced_again_before_the_next_batch),
        TEST(no_batch_is_written_where_commits_cannot_be_synced_again),
        TEST(a_full_disk_can_be_tried_again_and_leaves_nothing_half),
        TEST(lazy_progress_on_a_full_disk_is_dropped_not_fatal),
        TEST(a_second_broker_is_refused_with_the_pid_of_the_first),
        TEST(files_are_for_their_owner_alone_and_the_settings_hold),
        TEST(a_newer_schema_is_refused),
        TEST(a_damaged_page_is_found_and_the_file_kept),
        TEST(a_cut_file_is_found_and_kept),
        TEST(a_file_that_is_no_database_is_kept),
        TEST(a_database_of_another_program_is_kept),
        TEST(network_file_systems_are_known_by_their_magic),
        TEST(an_older_database_is_backed_up_and_migrated),
        TEST(a_database_of_the_first_schema_is_read_with_nothing_wanted),
        TEST(a_migration_that_fails_changes_nothing),
    };
    int failed = cmocka_run_group_tests_name("store", tests, NULL, NULL);

    if (!fixture_is_shared())
        failed += cmocka_run_group_tests_name("store_file", tests_of_a_file, NULL, NULL);
    return failed;
}
