/* What goes out of the broker's database while it runs: journal, manifest, queries. */
#include "broker/store/store_internal.h"
#include "schema/manifest/manifest.h"
#include "tests/support/signed_text.h"
#include "tests/unit/broker/store/store_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct collected {
    uint64_t seqs[EVENTS_PAGE_MAX];
    size_t count;
    int64_t left_ms;
};

static void collect(void *arg, const struct wire_event *event)
{
    struct collected *collected = arg;

    collected->seqs[collected->count++] = event->seq;
    collected->left_ms = event->left_ms;
}

static void compare_event(void *arg, const struct wire_event *event)
{
    assert_event_same(event, arg);
}

static void write_events(struct fixture *f, uint64_t from, uint64_t count, uint64_t round)
{
    static struct record rows[512];

    for (uint64_t i = 0; i < count; i++) {
        rows[i] = *sample_of(RECORD_EVENT);
        rows[i].u.event.seq = rows[i].u.event.body.seq = from + i;
        rows[i].u.event.body.round = round;
    }
    assert_int_equal(fixture_apply(f, rows, count), MUSTER_OK);
}

static void events_come_back_whole_and_in_pages(void **state)
{
    struct fixture *f = *state;
    struct wire_event expected = sample_of(RECORD_EVENT)->u.event.body;
    struct collected collected = {.count = 0};

    fixture_write_samples(f);
    assert_int_equal(
        store_send_events(f->store, SAMPLE_JOB, 103, 1, NOW, compare_event, &expected, &f->err),
        MUSTER_OK);
    write_events(f, 104, 400, 0);
    assert_int_equal(
        store_send_events(f->store, SAMPLE_JOB, 200, 1000, NOW, collect, &collected, &f->err),
        MUSTER_OK);
    assert_int_equal(collected.count, EVENTS_PAGE_MAX);
    for (size_t i = 0; i < collected.count; i++)
        assert_int_equal(collected.seqs[i], 200 + i);
}

static void what_the_journal_has_not_is_said_and_nothing_comes_across_a_gap(void **state)
{
    struct fixture *f = *state;
    struct collected collected = {.count = 0};

    fixture_write_samples(f);
    write_events(f, 110, 2, 0);
    assert_int_equal(
        store_send_events(f->store, SAMPLE_JOB, 102, 9, NOW, collect, &collected, &f->err),
        MUSTER_E_NOT_FOUND);
    assert_int_equal(
        store_send_events(f->store, SAMPLE_JOB, 112, 9, NOW, collect, &collected, &f->err),
        MUSTER_E_NOT_FOUND);
    assert_int_equal(collected.count, 0);
    assert_int_equal(
        store_send_events(f->store, SAMPLE_JOB, 103, 9, NOW, collect, &collected, &f->err),
        MUSTER_OK);
    assert_int_equal(collected.count, 1);
    assert_int_equal(store_job_seq(f->store, SAMPLE_JOB), 103);
    assert_int_equal(store_job_seq(f->store, "nobody"), 0);
}

static void time_left_is_counted_when_an_event_is_sent(void **state)
{
    static const struct {
        int64_t now;
        int64_t left;
    } cases[] = {{NOW, 30000}, {NOW + 10000, 20000}, {NOW + 30000, 0}, {NOW + 90000, 0}};
    struct fixture *f = *state;
    struct record row = *sample_of(RECORD_EVENT);
    struct collected collected = {.count = 0};

    fixture_write_samples(f);
    row.u.event.seq = row.u.event.body.seq = 104;
    row.u.event.deadline_boot_ms = NOW + 30000;
    fixture_write(f, &row);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        store_send_events(f->store, SAMPLE_JOB, 104, 1, cases[i].now, collect, &collected, &f->err);
        assert_true(collected.left_ms == cases[i].left);
    }
    store_close(&f->store);
    fixture_change(f, "UPDATE event SET boot_id = 'x'");
    fixture_reopen(f);
    store_send_events(f->store, SAMPLE_JOB, 104, 1, NOW, collect, &collected, &f->err);
    assert_true(collected.left_ms == -1);
}

/* R1.7 */
static void the_journal_keeps_its_newest_and_what_an_open_round_needs(void **state)
{
    struct fixture *f = *state;
    struct record round = *sample_of(RECORD_ROUND);

    f->options.journal_events_max = 256;
    fixture_reopen(f);
    fixture_write_samples(f);
    write_events(f, 104, 400, 0);
    write_events(f, 504, 400, SAMPLE_ROUND);                              /* which is writing */
    assert_int_equal(fixture_look(f, "SELECT min(seq) FROM event"), 103); /* also of that round */
    round.u.round.state = ROUND_COMMITTED;
    fixture_write(f, &round);
    write_events(f, 904, 300, 0);
    assert_true(fixture_look(f, "SELECT count(*) FROM event") < 256 + 64);
    assert_true(fixture_look(f, "SELECT count(*) FROM event") >= 256);
    assert_int_equal(fixture_look(f, "SELECT max(seq) - min(seq) + 1 - count(*) FROM event"), 0);
    round.u.round.round = 8;
    round.u.round.state = ROUND_FREEZING;
    fixture_write(f, &round);
    write_events(f, 1204, 1, 8);
    for (uint64_t from = 1205; from < 3205; from += 400)
        write_events(f, from, 400, 0);
    assert_int_equal(fixture_look(f, "SELECT min(seq) FROM event"), 1204);
}

/* One event, told so many days after the first. */
static void write_event_of_day(struct fixture *f, uint64_t seq, uint64_t round, int64_t day)
{
    struct record row = *sample_of(RECORD_EVENT);

    row.u.event.seq = row.u.event.body.seq = seq;
    row.u.event.body.round = round;
    row.u.event.unix_ms = day * 24 * 3600 * 1000;
    fixture_write(f, &row);
}

/* R1.7 */
static void the_journal_forgets_what_is_older_than_thirty_days(void **state)
{
    struct fixture *f = *state;
    struct record round = *sample_of(RECORD_ROUND);

    fixture_write_samples(f);
    round.u.round.state = ROUND_COMMITTED;
    fixture_write(f, &round);
    for (uint64_t seq = 104; seq < 128; seq++)
        write_event_of_day(f, seq, 0, (int64_t)seq - 104);
    write_event_of_day(f, 128, 0, 34); /* every 64th has a look */
    assert_int_equal(fixture_look(f, "SELECT min(seq) FROM event"), 108);
    assert_int_equal(fixture_look(f, "SELECT count(*) FROM event"), 21);
    round.u.round.state = ROUND_DECIDED;
    fixture_write(f, &round);
    write_event_of_day(f, 129, SAMPLE_ROUND, 35);
    for (uint64_t seq = 130; seq < 192; seq++)
        write_event_of_day(f, seq, 0, 35);
    write_event_of_day(f, 192, 0, 900); /* all are old, but the round goes on */
    assert_int_equal(fixture_look(f, "SELECT min(seq) FROM event"), 129);
    round.u.round.state = ROUND_COMMITTED;
    fixture_write(f, &round);
    for (uint64_t seq = 193; seq <= 256; seq++)
        write_event_of_day(f, seq, 0, 900);
    assert_int_equal(fixture_look(f, "SELECT min(seq) FROM event"), 192);
}

static void a_manifest_is_rendered_from_rows_in_chunks(void **state)
{
    struct fixture *f = *state;
    struct store_manifest chunk;
    struct manifest *manifest = NULL;
    struct record row;
    static char text[4 << 20];
    size_t size = 0;

    fixture_write_samples(f);
    row = *sample_of(RECORD_FILE);
    for (int i = 0; i < 1000; i++) {
        char path[64];

        snprintf(path, sizeof path, "part-%04d", i);
        row.u.file.path = path;
        fixture_write(f, &row);
    }
    do {
        assert_int_equal(store_manifest(f->store, SAMPLE_JOB, SAMPLE_ROUND, size, &chunk, &f->err),
                         MUSTER_OK);
        assert_true(chunk.size <= MANIFEST_CHUNK_MAX);
        memcpy(text + size, chunk.data, chunk.size);
        size += chunk.size;
    } while (size < chunk.total);
    assert_true(size > MANIFEST_CHUNK_MAX);
    assert_int_equal(manifest_parse(text, size, &manifest, &f->err), MUSTER_OK);
    assert_int_equal(manifest->step, 801);
    assert_int_equal(manifest->shard_count, 1);
    assert_true(manifest->shards[0].incarnation == SAMPLE_INCARNATION);
    assert_int_equal(manifest->shards[0].file_count, 1001);
    manifest_destroy(&manifest);
    assert_int_equal(
        store_manifest(f->store, SAMPLE_JOB, SAMPLE_ROUND, chunk.total + 1, &chunk, &f->err),
        MUSTER_E_NOT_FOUND);
}

/* 131,072 files took the only thread for seconds, in which no other job was answered. */
static void a_large_manifest_is_made_in_slices(void **state)
{
    struct fixture *f = *state;
    char sql[512];
    struct store_manifest chunk;
    struct manifest *manifest = NULL;
    size_t size = 0;
    int slices = 1;
    char *text;

    fixture_write_samples(f);
    snprintf(sql, sizeof sql,
             "WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < %d) "
             "INSERT INTO shard_file SELECT job, round, i %% 4 = 0, printf('part-%%06d', i), bytes,"
             "  checksum FROM n, (SELECT * FROM shard_file LIMIT 1)", /* rank 0 told no shard */
             2 * STORE_MANIFEST_SLICE);
    store_close(&f->store);
    fixture_change(f, sql);
    fixture_reopen(f);
    assert_false(store_manifest_is_due(f->store));
    assert_int_equal(store_manifest(f->store, SAMPLE_JOB, SAMPLE_ROUND, 0, &chunk, &f->err),
                     MUSTER_E_BUSY);
    for (; store_manifest_is_due(f->store); slices++)
        assert_int_equal(store_manifest_work(f->store, &f->err), MUSTER_OK);
    assert_int_equal(slices, 3);
    assert_int_equal(store_manifest(f->store, SAMPLE_JOB, SAMPLE_ROUND, 0, &chunk, &f->err),
                     MUSTER_OK);
    text = malloc(chunk.total);
    while (size < chunk.total) {
        assert_int_equal(store_manifest(f->store, SAMPLE_JOB, SAMPLE_ROUND, size, &chunk, &f->err),
                         MUSTER_OK);
        memcpy(text + size, chunk.data, chunk.size);
        size += chunk.size;
    }
    assert_int_equal(manifest_parse(text, size, &manifest, &f->err), MUSTER_OK);
    assert_int_equal(manifest->shard_count, 1);
    assert_int_equal(manifest->shards[0].file_count, STORE_MANIFEST_SLICE / 2 + 2);
    manifest_destroy(&manifest);
    free(text);
}

/* Made in slices or at once, it is signed as a whole; and not at all if one file's checksum is
 * weak. */
static void a_manifest_is_signed_if_all_its_files_have_strong_checksums(void **state)
{
    struct fixture *f = *state;
    const struct sign_key key = signed_key(1);
    struct store_manifest chunk;
    struct manifest *manifest = NULL;
    char sql[512];

    fixture_write_samples(f);
    snprintf(sql, sizeof sql,
             "WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 300) "
             "INSERT INTO shard_file SELECT job, round, rank, printf('part-%%06d', i), bytes, "
             "checksum FROM n, (SELECT * FROM shard_file LIMIT 1); "
             "UPDATE shard_file SET checksum = '" STRONG_SUM "'");
    store_close(&f->store);
    fixture_change(f, sql);
    f->options.sign = &key;
    for (int strong = 1; strong >= 0; strong--) {
        size_t size = 0;
        char *text;

        fixture_reopen(f);
        assert_int_equal(store_manifest(f->store, SAMPLE_JOB, SAMPLE_ROUND, 0, &chunk, &f->err),
                         MUSTER_OK);
        text = malloc(chunk.total);
        while (size < chunk.total) {
            assert_int_equal(
                store_manifest(f->store, SAMPLE_JOB, SAMPLE_ROUND, size, &chunk, &f->err),
                MUSTER_OK);
            memcpy(text + size, chunk.data, chunk.size);
            size += chunk.size;
        }
        assert_int_equal(manifest_parse(text, size, &manifest, &f->err), MUSTER_OK);
        assert_int_equal(manifest_check_signer(manifest, key.public_text, &f->err),
                         strong == 1 ? MUSTER_OK : MUSTER_E_SIGNATURE);
        assert_true((manifest->signer != NULL) == (strong == 1));
        manifest_destroy(&manifest);
        free(text);
        store_close(&f->store);
        fixture_change(f, "UPDATE shard_file SET checksum = "
                          "'xxh3-128:00112233445566778899aabbccddeeff' WHERE path = 'part-000007'");
    }
    fixture_reopen(f);
}

static void rows_that_make_no_manifest_are_looked_at_once(void **state)
{
    struct fixture *f = *state;
    struct store_manifest chunk;
    struct record row;

    fixture_write_samples(f);
    row = *sample_of(RECORD_FILE);
    row.u.file.path = "../away";
    fixture_write(f, &row);
    assert_int_equal(store_manifest(f->store, SAMPLE_JOB, SAMPLE_ROUND, 0, &chunk, &f->err),
                     MUSTER_E_ARGUMENT);
    assert_false(store_manifest_is_due(f->store));
    memset(&f->err, 0, sizeof f->err);
    assert_int_equal(store_manifest(f->store, SAMPLE_JOB, SAMPLE_ROUND, 0, &chunk, &f->err),
                     MUSTER_E_ARGUMENT);
    assert_non_null(strstr(f->err.text, "leaves the directory"));
}

static void only_committed_checkpoints_have_a_manifest(void **state)
{
    struct fixture *f = *state;
    struct store_manifest chunk;
    struct record row = *sample_of(RECORD_CHECKPOINT);

    fixture_write_samples(f);
    row.u.checkpoint.state = CHECKPOINT_WRITING;
    fixture_write(f, &row);
    assert_int_equal(store_manifest(f->store, SAMPLE_JOB, SAMPLE_ROUND, 0, &chunk, &f->err),
                     MUSTER_E_NOT_FOUND);
    assert_int_equal(store_manifest(f->store, SAMPLE_JOB, 99, 0, &chunk, &f->err),
                     MUSTER_E_NOT_FOUND);
    assert_int_equal(store_manifest(f->store, SAMPLE_JOB, 0, 0, &chunk, &f->err),
                     MUSTER_E_NOT_FOUND);
}

static void queries_are_answered_by_name_and_in_pages(void **state)
{
    struct fixture *f = *state;
    static struct store_rows rows;
    struct store_query query = {.name = "events", .job = SAMPLE_JOB, .text = ""};
    uint64_t seen = 0;

    fixture_write_samples(f);
    write_events(f, 104, 449, 0);
    do {
        query.after = (int64_t)seen;
        assert_int_equal(store_query(f->store, &query, &rows, &f->err), MUSTER_OK);
        assert_true(rows.size <= ROWS_BYTES_MAX && rows.columns > 0);
        seen += rows.rows;
    } while (rows.more);
    assert_int_equal(seen, 450);
    query.name = "events; DROP TABLE event";
    assert_int_equal(store_query(f->store, &query, &rows, &f->err), MUSTER_E_NOT_FOUND);
}

/* Of TASKS tasks, WORKERS workers. */
static void write_tasks(struct fixture *f, int tasks, int workers)
{
    char sql[1024];

    snprintf(
        sql, sizeof sql,
        "INSERT INTO task_queue VALUES (1, 'job', 'q', 7, %d, 0, 0, 262144, 3, 0, 0, 0, 0, '', 0, "
        "0, 0, 0);"
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)"
        " INSERT INTO task (id, state, attempt, losses, worker, worker_index, timeout_ms,"
        " scheduled_unix_ms, fn, uses, args) SELECT (1 << 40) + i, 'leased', 1, 0, 1000 + i %% %d,"
        " i %% %d, 0, 0, 'f', x'', x'' FROM n;"
        "WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < %d - 1)"
        " INSERT INTO task_worker SELECT 'job', i, 1000 + i, 0, 'h', 1, 1, 1, 'live', 0 FROM n",
        tasks, tasks, workers, workers, workers);
    assert_int_equal(sqlite3_exec(f->store->db, sql, NULL, NULL, NULL), SQLITE_OK);
}

/* A job's question has rows of no other job, whatever stands in it. FOREIGN has a queue, beside
 * those of JOB, and the rows of SAMPLE_JOB. */
static void a_question_gets_no_row_of_another_job(void **state)
{
    static const char *const names[] = {
#define QUERY(name, columns, sql) #name,
#include "schema/sql/queries.def"
#undef QUERY
    };
    static const int64_t queue = INT64_C(1) << 40;
    const int64_t numbers[] = {
        0,     1,      2,         3,          7,         -1,        INT64_MAX,     INT64_MIN,
        queue, -queue, queue + 1, -queue + 1, queue - 1, 2 * queue, 1 - 2 * queue, 3 * queue + 1};
    static const char *const texts[] = {"", "leased", "queued", "commit", SAMPLE_JOB, "job", "%"};
    static struct store_rows rows;
    struct fixture *f = *state;
    size_t asked = 0;

    fixture_write_samples(f);
    write_tasks(f, 50, 2);
    assert_int_equal(
        sqlite3_exec(f->store->db,
                     "INSERT INTO task_queue VALUES (2, 'foreign', 'own', 7, 0, 0, 0, 262144, 3, 0,"
                     " 0, 0, 0, '', 0, 0, 0, 0)",
                     NULL, NULL, NULL),
        SQLITE_OK);
    for (size_t n = 0; n < sizeof names / sizeof *names; n++)
        for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
            for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
                const struct store_query query = {
                    .name = names[n], .job = "foreign", .text = texts[t], .number = numbers[i]};
                bool own = strcmp(names[n], "task_queues") == 0;

                assert_int_equal(store_query(f->store, &query, &rows, &f->err), MUSTER_OK);
                asked++;
                if (rows.rows != (own ? 1 : 0))
                    fail_msg("query %s of job foreign, number %lld, text \"%s\": %llu rows",
                             names[n], (long long)numbers[i], texts[t],
                             (unsigned long long)rows.rows);
            }
    assert_true(asked > 1000);
}

/* Each broker query about tasks costs some looks a task, whatever the number of workers. */
static void lists_of_tasks_cost_by_the_task(void **state)
{
    static const char *const names[] = {"tasks", "tasks_after", "task_workers", "task_queues"};
    struct fixture *f = *state;
    static struct store_rows rows;

    write_tasks(f, 2000, 64);
    f->store->query_looks_max = 200; /* 100 steps a task */
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct store_query query = {.name = names[i], .job = "job", .text = ""};

        assert_int_equal(store_query(f->store, &query, &rows, &f->err), MUSTER_OK);
        assert_in_range(rows.rows, 1, 200);
    }
}

static void a_query_that_holds_the_nodes_up_is_broken_off(void **state)
{
    struct fixture *f = *state;
    static struct store_rows rows;
    struct store_query query = {.name = "task_queues", .job = "job", .text = ""};

    write_tasks(f, 2000, 2);
    f->store->query_looks_max = 1;
    assert_int_equal(store_query(f->store, &query, &rows, &f->err), MUSTER_E_UNSUPPORTED);
    assert_non_null(strstr(f->err.text, "--db"));
    f->store->query_looks_max = QUERY_LOOKS_MAX;
    assert_int_equal(store_query(f->store, &query, &rows, &f->err), MUSTER_OK);
    assert_int_equal(rows.rows, 1);
}

static void a_page_of_long_rows_is_cut_where_it_is_full(void **state)
{
    static char text[TEXT_MAX + 1];
    struct fixture *f = *state;
    static struct store_rows rows;
    struct store_query query = {.name = "events", .job = SAMPLE_JOB, .text = ""};
    struct record event = *sample_of(RECORD_EVENT);

    memset(text, 'y', TEXT_MAX);
    fixture_write_samples(f);
    event.u.event.body.text = text;
    for (uint64_t seq = 104; seq < 124; seq++) {
        event.u.event.seq = event.u.event.body.seq = seq;
        fixture_write(f, &event);
    }
    assert_int_equal(store_query(f->store, &query, &rows, &f->err), MUSTER_OK);
    assert_true(rows.more);
    assert_in_range(rows.rows, 10, 15);
    query.after = (int64_t)rows.rows;
    assert_int_equal(store_query(f->store, &query, &rows, &f->err), MUSTER_OK);
    assert_false(rows.more);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(events_come_back_whole_and_in_pages),
        TEST(what_the_journal_has_not_is_said_and_nothing_comes_across_a_gap),
        TEST(the_journal_keeps_its_newest_and_what_an_open_round_needs),
        TEST(the_journal_forgets_what_is_older_than_thirty_days),
        TEST(a_manifest_is_rendered_from_rows_in_chunks),
        TEST(rows_that_make_no_manifest_are_looked_at_once),
        TEST(only_committed_checkpoints_have_a_manifest),
        TEST(queries_are_answered_by_name_and_in_pages),
        TEST(a_page_of_long_rows_is_cut_where_it_is_full),
    };
    /* They change the file itself. */
    const struct CMUnitTest tests_of_a_file[] = {
        TEST(time_left_is_counted_when_an_event_is_sent),
        TEST(a_large_manifest_is_made_in_slices),
        TEST(a_manifest_is_signed_if_all_its_files_have_strong_checksums),
        TEST(a_question_gets_no_row_of_another_job),
        TEST(lists_of_tasks_cost_by_the_task),
        TEST(a_query_that_holds_the_nodes_up_is_broken_off),
    };
    int failed = cmocka_run_group_tests_name("store_read", tests, NULL, NULL);

    if (!fixture_is_shared())
        failed += cmocka_run_group_tests_name("store_read_file", tests_of_a_file, NULL, NULL);
    return failed;
}
