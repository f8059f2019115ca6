/* A start whose disk fails in one call, and goes on or does not: what is acknowledged after it must
 * survive the next power cut. The disk is one in memory; the lock and the mark are real files. */
#include "broker/store/store.h"
#include "tests/support/fault_vfs.h"
#include "tests/support/scratch.h"
#include "tests/unit/broker/store/store_samples.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define NOW 1000000 /* boot ms */
#define LARGE 200   /* events */

struct machine {
    uint64_t seed;
    char dir[SCRATCH_PATH_MAX];
    char db[SCRATCH_PATH_MAX];
    struct mem_vfs *disk;
    struct fault_vfs *faults;
    struct store *store;
    struct store_options options;
    struct muster_error err;
};

static uint64_t next_random(void *arg)
{
    uint64_t *seed = arg;

    return *seed += 0x9e3779b97f4a7c15;
}

static void machine_begin(struct machine *m)
{
    *m = (struct machine){.options.allow_network_fs = true};
    scratch_make(m->dir);
    snprintf(m->db, sizeof m->db, "%s", scratch_path(m->dir, "muster.db"));
    m->disk = mem_vfs_create("disk", next_random, &m->seed);
    m->faults = fault_vfs_create(mem_vfs_sqlite(m->disk), m->disk);
}

static void machine_end(struct machine *m)
{
    store_close(&m->store);
    fault_vfs_destroy(&m->faults);
    mem_vfs_destroy(&m->disk);
    scratch_remove(m->dir);
}

static enum muster_status start(struct machine *m)
{
    return store_open(m->db, &m->options, &m->store, &m->err);
}

/* The disk keeps nothing that it was not told to sync, no name and no byte. */
static void power_goes_and_comes(struct machine *m)
{
    mem_vfs_power_cut(m->disk, 0);
    store_close(&m->store); /* of the dead: writes nothing */
    mem_vfs_up(m->disk);
}

static void write_samples(struct machine *m)
{
    struct action items[512];
    struct actions batch = batch_of(samples, samples_count, false, items);

    if (store_apply(m->store, &batch, NOW, &m->err) != MUSTER_OK)
        fail_msg("%s", m->err.text);
}

/* The at-th of these calls of the start fails; a start that was refused is made again. False: it
 * has fewer. */
static bool acknowledged_after_a_start_survives(unsigned calls, uint64_t at)
{
    struct machine m;
    uint64_t seq;
    bool hit;

    machine_begin(&m);
    fault_vfs_plan(m.faults, calls, FAULT_IO, at, false);
    if (start(&m) != MUSTER_OK)
        assert_int_equal(start(&m), MUSTER_OK);
    hit = fault_vfs_hits(m.faults) > 0;
    fault_vfs_plan(m.faults, calls, FAULT_NONE, 0, false);
    write_samples(&m);
    seq = store_job_seq(m.store, SAMPLE_JOB);
    assert_true(seq > 0);
    power_goes_and_comes(&m);
    if (start(&m) != MUSTER_OK)
        fail_msg("call %llu failed, and after a power cut: %s", (unsigned long long)at, m.err.text);
    if (store_job_seq(m.store, SAMPLE_JOB) != seq)
        fail_msg(
            "call %llu of the start failed, and a power cut took what was acknowledged after it",
            (unsigned long long)at);
    machine_end(&m);
    return hit;
}

/* Found by six simulated clusters: the file was not in the log's mode, and the connection went on.
 */
static void no_sync_of_a_first_start_may_fail_unnoticed(void **state)
{
    const unsigned calls = FAULT_CALL_SYNC | FAULT_CALL_DELETE | FAULT_CALL_OPEN;
    uint64_t at = 1;

    (void)state;
    while (acknowledged_after_a_start_survives(calls, at))
        at++;
    assert_true(at > 8); /* it has more than eight of them */
}

static enum muster_status write_event(struct machine *m, uint64_t seq)
{
    struct record rows[] = {sample_of(RECORD_JOB)[0], sample_of(RECORD_EVENT)[0]};
    struct action items[2];
    struct actions batch;

    rows[0].u.job.seq = rows[1].u.event.seq = rows[1].u.event.body.seq = seq;
    batch = batch_of(rows, 2, false, items);
    return store_apply(m->store, &batch, NOW, &m->err);
}

/* The sample's row again would change no page. */
static struct actions batch_of_progress(struct record *ret_moved, struct action *ret_item)
{
    *ret_moved = *sample_of(RECORD_PROGRESS);
    ret_moved->u.progress.done++;
    return batch_of(ret_moved, 1, true, ret_item);
}

static void fail_a_sync_and_start(struct machine *m)
{
    fault_vfs_plan(m->faults, FAULT_CALL_SYNC, FAULT_IO, 1, false);
    assert_int_equal(write_event(m, store_job_seq(m->store, SAMPLE_JOB) + 1),
                     MUSTER_E_IO); /* musterd exits */
    mem_vfs_kill(m->disk);
    store_close(&m->store);
    mem_vfs_up(m->disk);
    assert_int_equal(start(m), MUSTER_OK);
}

/* The next start reads what the disk did not take, and so does everybody until the power goes. */
static void what_a_failed_sync_gave_up_takes_nothing_later_along(void **state)
{
    struct machine m;
    uint64_t seq;

    (void)state;
    machine_begin(&m);
    assert_int_equal(start(&m), MUSTER_OK);
    write_samples(&m);
    seq = store_job_seq(m.store, SAMPLE_JOB);
    for (int round = 0; round < 8; round++) {
        fail_a_sync_and_start(&m);
        seq = store_job_seq(m.store, SAMPLE_JOB) + 1;
        assert_int_equal(write_event(&m, seq), MUSTER_OK);
        power_goes_and_comes(&m);
        assert_int_equal(start(&m), MUSTER_OK);
        assert_int_equal(store_job_seq(m.store, SAMPLE_JOB), seq);
    }
    machine_end(&m);
}

/* Of progress, which is committed without a sync: the log's new header, then the checkpoint's
 * two (R2.5). */
static void a_checkpoint_whose_sync_fails_ends_the_broker(void **state)
{
    (void)state;
    for (uint64_t at = 1; at <= 3; at++) {
        struct machine m;
        struct action item;
        struct record moved;
        struct actions batch = batch_of_progress(&moved, &item);

        machine_begin(&m);
        m.options.checkpoint_frames = 1;
        assert_int_equal(start(&m), MUSTER_OK);
        write_samples(&m);
        fault_vfs_plan(m.faults, FAULT_CALL_SYNC, FAULT_IO, at, false);
        assert_int_equal(store_apply(m.store, &batch, NOW + 60000, &m.err), MUSTER_E_IO);
        assert_int_equal(fault_vfs_hits(m.faults), 1);
        machine_end(&m);
    }
}

/* A batch whose commit did not return, which the next start told of: before that start wrote
 * anything itself. */
static void what_a_start_has_read_survives(void **state)
{
    struct machine m;
    uint64_t seq;

    (void)state;
    machine_begin(&m);
    assert_int_equal(start(&m), MUSTER_OK);
    write_samples(&m);
    for (int round = 0; round < 8; round++) {
        fail_a_sync_and_start(&m);
        seq = store_job_seq(m.store, SAMPLE_JOB);
        power_goes_and_comes(&m);
        assert_int_equal(start(&m), MUSTER_OK);
        assert_int_equal(store_job_seq(m.store, SAMPLE_JOB), seq);
    }
    machine_end(&m);
}

static void ignore_row(void *arg, const struct record *row)
{
    (void)arg;
    (void)row;
}

/* A batch of many pages, whose sync fails: that of its frames, not that of the log's header. */
static void lose_a_large_batch(struct machine *m, uint64_t seq, uint64_t sync)
{
    static struct action items[1 + LARGE];
    struct record rows[1 + LARGE];
    struct actions batch;

    rows[0] = *sample_of(RECORD_JOB);
    rows[0].u.job.seq = seq + LARGE;
    for (uint64_t i = 1; i <= LARGE; i++) {
        rows[i] = *sample_of(RECORD_EVENT);
        rows[i].u.event.seq = rows[i].u.event.body.seq = seq + i;
    }
    batch = batch_of(rows, 1 + LARGE, false, items);
    fault_vfs_plan(m->faults, FAULT_CALL_SYNC, FAULT_IO, sync, false);
    assert_int_equal(store_apply(m->store, &batch, NOW, &m->err), MUSTER_E_IO);
    assert_int_equal(fault_vfs_hits(m->faults), 1);
    mem_vfs_kill(m->disk);
    store_close(&m->store);
    mem_vfs_up(m->disk);
}

/* The power goes in the at-th change that the start makes. False: it has fewer. */
static bool what_was_acknowledged_is_there(bool empty_log, uint64_t at, uint64_t seed)
{
    struct machine m;
    uint64_t seq;
    bool hit;

    machine_begin(&m);
    m.seed = seed;
    assert_int_equal(start(&m), MUSTER_OK);
    write_samples(&m);
    seq = store_job_seq(m.store, SAMPLE_JOB);
    store_close(&m.store); /* all of it is in the file */
    assert_int_equal(start(&m), MUSTER_OK);
    if (!empty_log)
        assert_int_equal(write_event(&m, ++seq), MUSTER_OK);
    lose_a_large_batch(&m, seq, empty_log ? 2 : 1);
    fault_vfs_plan(m.faults, FAULT_CALL_WRITE | FAULT_CALL_TRUNCATE | FAULT_CALL_SYNC, FAULT_CUT,
                   at, false);
    (void)start(&m);
    hit = fault_vfs_hits(m.faults) > 0;
    store_close(&m.store);
    mem_vfs_up(m.disk);
    fault_vfs_plan(m.faults, FAULT_CALL_SYNC, FAULT_NONE, 0, false);
    if (start(&m) != MUSTER_OK || store_load(m.store, ignore_row, NULL, &m.err) != MUSTER_OK)
        fail_msg("power cut at change %llu of a start (seed %llu): %s", (unsigned long long)at,
                 (unsigned long long)seed, m.err.text);
    assert_int_equal(store_job_seq(m.store, SAMPLE_JOB), seq);
    machine_end(&m);
    return hit;
}

/* A start copied the log into the file, and what the disk had not taken of it, too. The power went
 * meanwhile: pages from behind the hole were in the file, and no log made them whole. */
static void what_no_sync_acknowledged_is_never_copied(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        uint64_t at = 1, copied = 1;

        while (what_was_acknowledged_is_there(true, at, seed))
            at++;
        while (what_was_acknowledged_is_there(false, copied, seed))
            copied++;
        assert_true(copied > at && at > 1);
    }
}

/* Found by two simulated clusters. From the at-th read of a start on the disk hands out nothing. */
static void what_cannot_be_read_is_not_called_damaged(void **state)
{
    struct machine m;
    enum muster_status status = MUSTER_E_IO;
    uint64_t at = 0;

    (void)state;
    machine_begin(&m);
    assert_int_equal(start(&m), MUSTER_OK);
    write_samples(&m);
    store_close(&m.store);
    while (status != MUSTER_OK) {
        fault_vfs_plan(m.faults, FAULT_CALL_READ, FAULT_IO, ++at, true);
        status = start(&m);
        if (fault_vfs_hits(m.faults) > 0 && status != MUSTER_E_IO)
            fail_msg("no read from the %llu. on is %s: %s", (unsigned long long)at,
                     muster_status_name(status), m.err.text);
    }
    assert_true(at > 20);
    machine_end(&m);
}

/* --- beside a reader, on real files ----------------------------------------------------------- */

static int64_t look(sqlite3 *reader, const char *sql)
{
    sqlite3_stmt *statement;
    int64_t value;

    if (sqlite3_prepare_v2(reader, sql, -1, &statement, NULL) != SQLITE_OK ||
        sqlite3_step(statement) != SQLITE_ROW)
        fail_msg("%s: %s (%d)", sql, sqlite3_errmsg(reader), sqlite3_extended_errcode(reader));
    value = sqlite3_column_int64(statement, 0);
    assert_int_equal(sqlite3_finalize(statement), SQLITE_OK);
    return value;
}

static sqlite3 *reader_open(const struct machine *m)
{
    sqlite3 *reader;

    assert_int_equal(sqlite3_open_v2(m->db, &reader, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    sqlite3_extended_result_codes(reader, 1);
    assert_int_equal(look(reader, "SELECT count(*) FROM job"), 1);
    return reader;
}

static off_t log_size(const struct machine *m)
{
    char log[SCRATCH_PATH_MAX + 8];
    struct stat file;

    snprintf(log, sizeof log, "%s-wal", m->db);
    assert_int_equal(stat(log, &file), 0);
    return file.st_size;
}

/* Progress that no sync acknowledged is the last that the reader sees; the batch after it fails.
 * Both are cut off, but not while they are read. */
static void fail_behind_progress(struct machine *m, sqlite3 *reader, bool transaction)
{
    struct action item;
    struct record moved;
    struct actions batch = batch_of_progress(&moved, &item);
    off_t synced = log_size(m);

    assert_int_equal(store_apply(m->store, &batch, NOW + 60000, &m->err), MUSTER_OK);
    assert_true(log_size(m) > synced);
    if (transaction)
        assert_int_equal(sqlite3_exec(reader, "BEGIN", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(look(reader, "SELECT count(*) FROM job"), 1);
    fault_vfs_plan(m->faults, FAULT_CALL_SYNC, FAULT_IO, 1, false);
    assert_int_equal(write_event(m, store_job_seq(m->store, SAMPLE_JOB) + 1), MUSTER_E_IO);
    assert_int_equal(fault_vfs_hits(m->faults), 1);
    store_close(&m->store);
    if (transaction)
        assert_true(log_size(m) > synced);
    else
        assert_int_equal(log_size(m), synced);
}

static void begin_on_real_files(struct machine *m, int checkpoint_frames)
{
    *m = (struct machine){
        .options = {.allow_network_fs = true, .checkpoint_frames = checkpoint_frames}};
    scratch_make(m->dir);
    snprintf(m->db, sizeof m->db, "%s", scratch_path(m->dir, "muster.db"));
    m->faults = fault_vfs_create(sqlite3_vfs_find(NULL), NULL);
    assert_int_equal(start(m), MUSTER_OK);
    write_samples(m);
}

/* Progress begins the log again, and the checkpoint behind it cannot sync that (R2.5). */
static void what_a_checkpoint_could_not_sync_is_cut_off(void **state)
{
    struct machine m;
    struct action item;
    struct record moved;
    struct actions batch = batch_of_progress(&moved, &item);

    (void)state;
    begin_on_real_files(&m, 1);
    fault_vfs_plan(m.faults, FAULT_CALL_SYNC, FAULT_IO, 2, false); /* the first: its new header */
    assert_int_equal(store_apply(m.store, &batch, NOW + 60000, &m.err), MUSTER_E_IO);
    assert_int_equal(fault_vfs_hits(m.faults), 1);
    store_close(&m.store);
    assert_int_equal(log_size(&m), 0);
    fault_vfs_destroy(&m.faults);
    scratch_remove(m.dir);
}

static void a_failed_sync_beside_a_reader(bool transaction, bool reads_between)
{
    struct machine m;
    sqlite3 *reader;
    uint64_t seq;

    begin_on_real_files(&m, 0);
    seq = store_job_seq(m.store, SAMPLE_JOB);
    reader = reader_open(&m);
    fail_behind_progress(&m, reader, transaction);
    if (reads_between)
        assert_int_equal(look(reader, "SELECT seq FROM job"), (int64_t)seq);
    if (start(&m) != MUSTER_OK)
        fail_msg("beside a reader: %s", m.err.text);
    seq = store_job_seq(m.store, SAMPLE_JOB);
    assert_int_equal(write_event(&m, ++seq), MUSTER_OK);
    if (transaction) { /* still of before */
        assert_true(look(reader, "SELECT seq FROM job") < (int64_t)seq);
        assert_int_equal(sqlite3_exec(reader, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    }
    assert_int_equal(look(reader, "SELECT seq FROM job"), (int64_t)seq);
    assert_int_equal(
        look(reader, "SELECT count(*) FROM pragma_quick_check WHERE quick_check = 'ok'"), 1);
    store_close(&m.store);
    assert_int_equal(sqlite3_close(reader), SQLITE_OK);
    fault_vfs_destroy(&m.faults);
    scratch_remove(m.dir);
}

/* The log was shorter than the index said that the reader kept alive: nobody could read any more,
 * and no broker start. */
static void a_broker_starts_again_beside_a_reader(void **state)
{
    (void)state;
    a_failed_sync_beside_a_reader(false, false);
    a_failed_sync_beside_a_reader(false, true);
    a_failed_sync_beside_a_reader(true, false);
    a_failed_sync_beside_a_reader(true, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_sync_of_a_first_start_may_fail_unnoticed),
        cmocka_unit_test(a_checkpoint_whose_sync_fails_ends_the_broker),
        cmocka_unit_test(what_a_checkpoint_could_not_sync_is_cut_off),
        cmocka_unit_test(what_a_start_has_read_survives),
        cmocka_unit_test(what_no_sync_acknowledged_is_never_copied),
        cmocka_unit_test(what_a_failed_sync_gave_up_takes_nothing_later_along),
        cmocka_unit_test(what_cannot_be_read_is_not_called_damaged),
        cmocka_unit_test(a_broker_starts_again_beside_a_reader),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
