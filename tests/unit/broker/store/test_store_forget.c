/* Jobs that leave the broker's memory, and those whose rows go for good. */
#include "tests/unit/broker/store/store_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

static const char *const tables[] = {
    "shard_file",      "shard",       "checkpoint_custom",
    "checkpoint",      "participant", "round",
    "event",           "launch",      "host",
    "notice",          "node",        "progress",
    "generation",      "policy",      "pin",
    "generation_past", "job",
};
#define TABLES (sizeof tables / sizeof *tables)
#define OTHERS 3 /* task_queue, task_worker, job_garbage */

static int64_t rows_of(const struct fixture *f, const char *job)
{
    int64_t count = 0;
    char sql[160];

    for (size_t i = 0; i < TABLES; i++) {
        snprintf(sql, sizeof sql, "SELECT count(*) FROM %s WHERE job = '%s'", tables[i], job);
        count += fixture_look(f, sql);
    }
    return count;
}

static struct record forget(const char *job)
{
    return (struct record){.kind = RECORD_FORGET, .u.forget.job = job};
}

static void tidy_all(struct fixture *f)
{
    int64_t now = NOW;

    while (store_wakeup_boot_ms(f->store) != INT64_MAX)
        assert_int_equal(store_tidy(f->store, now += 10000, &f->err), MUSTER_OK);
}

/* The sample's event again and again, until the job has so many rows more. */
static void multiply(struct fixture *f, uint64_t rows)
{
    struct record events[256];
    struct record job = *sample_of(RECORD_JOB);
    size_t count = 0;

    for (uint64_t i = 0; i < rows; i++) {
        events[count] = *sample_of(RECORD_EVENT);
        events[count++].u.event.seq = 1000 + i;
        if (count < 256 && i + 1 < rows)
            continue;
        assert_int_equal(fixture_apply(f, events, count), MUSTER_OK);
        count = 0;
    }
    job.u.job.seq = rows + 1000;
    fixture_write(f, &job);
}

static void every_table_that_names_a_job_is_among_those_that_are_cleared(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(fixture_look(f,
                                  "SELECT count(*) FROM sqlite_master m, pragma_table_info(m.name)"
                                  " c WHERE m.type = 'table' AND c.name = 'job'"),
                     TABLES + OTHERS);
}

static void nothing_is_left_of_a_job_that_is_forgotten(void **state)
{
    struct fixture *f = *state;
    struct record other = *sample_of(RECORD_JOB), row = forget(SAMPLE_JOB);

    other.u.job.job = "other";
    fixture_write_samples(f);
    fixture_write(f, &other);
    assert_true(rows_of(f, SAMPLE_JOB) >= (int64_t)TABLES - 1); /* test_store_ended has the last */
    fixture_write(f, &row);
    assert_int_equal(rows_of(f, SAMPLE_JOB), 0);
    assert_int_equal(rows_of(f, "other"), 1);
    assert_int_equal(fixture_look(f, "SELECT count(*) FROM job_garbage"), 0);
}

static void a_long_job_goes_in_slices(void **state)
{
    struct fixture *f = *state;
    struct record row = forget(SAMPLE_JOB);
    int64_t all;

    fixture_write_samples(f);
    multiply(f, 9000);
    all = rows_of(f, SAMPLE_JOB);
    fixture_write(f, &row);
    assert_in_range(rows_of(f, SAMPLE_JOB), all - 5000, all - 1000);
    assert_int_equal(store_tidy(f->store, NOW, &f->err), MUSTER_OK);
    assert_in_range(rows_of(f, SAMPLE_JOB), 1, all - 5000);
    tidy_all(f);
    assert_int_equal(rows_of(f, SAMPLE_JOB), 0);
}

static void ignore_row(void *arg, const struct record *row)
{
    (void)arg;
    (void)row;
}

static void a_start_in_the_middle_of_it_finishes_it(void **state)
{
    struct fixture *f = *state;
    struct record row = forget(SAMPLE_JOB);

    fixture_write_samples(f);
    multiply(f, 9000);
    fixture_write(f, &row);
    assert_true(rows_of(f, SAMPLE_JOB) > 0);
    fixture_reopen(f);
    assert_int_equal(store_load(f->store, ignore_row, NULL, &f->err), MUSTER_OK);
    assert_int_equal(rows_of(f, SAMPLE_JOB), 0);
}

static void a_job_that_begins_anew_meanwhile_has_none_of_the_old_rows(void **state)
{
    struct fixture *f = *state;
    struct record row = forget(SAMPLE_JOB), anew = *sample_of(RECORD_JOB);

    fixture_write_samples(f);
    multiply(f, 9000);
    fixture_write(f, &row);
    anew.u.job.seq = 0;
    fixture_write(f, &anew);
    assert_int_equal(rows_of(f, SAMPLE_JOB), 1);
    tidy_all(f);
    assert_int_equal(rows_of(f, SAMPLE_JOB), 1);
}

/* --- asleep ----------------------------------------------------------------------------------- */

static void count_rows(void *arg, const struct record *row)
{
    int *counts = arg;

    counts[row->kind]++;
}

static void write_ended(struct fixture *f, int count)
{
    struct record rows[16];
    char names[16][32];

    for (int n = 0; n < count; n++) {
        int at = n % 16;
        rows[at] = *sample_of(RECORD_JOB);
        snprintf(names[at], sizeof names[at], "ended-%d", n);
        rows[at].u.job.job = names[at];
        rows[at].u.job.generation = 0;
        rows[at].u.job.state = GENERATION_ENDED;
        rows[at].u.job.state_unix_ms = 1000 + n;
        if (at == 15 || n == count - 1)
            assert_int_equal(fixture_apply(f, rows, (size_t)at + 1), MUSTER_OK);
    }
}

static void of_ended_jobs_a_start_reads_the_newest_and_the_names_of_the_others(void **state)
{
    struct fixture *f = *state;
    int counts[RECORD_KIND_COUNT] = {0};

    write_ended(f, CORE_ENDED_MAX + 100);
    fixture_change(f, "INSERT INTO pin VALUES ('ended-3', 1, 'reader', 5)");
    assert_int_equal(store_load(f->store, count_rows, counts, &f->err), MUSTER_OK);
    assert_int_equal(counts[RECORD_JOB], CORE_ENDED_MAX + 1); /* a lease is to fall */
    assert_int_equal(counts[RECORD_JOB_ASLEEP], 99);
}

static void one_job_is_read_whole_and_alone(void **state)
{
    struct fixture *f = *state;
    int counts[RECORD_KIND_COUNT] = {0}, none[RECORD_KIND_COUNT] = {0}, sum = 0;

    fixture_write_samples(f);
    write_ended(f, 3);
    assert_int_equal(store_load_job(f->store, SAMPLE_JOB, count_rows, counts, &f->err), MUSTER_OK);
    assert_int_equal(counts[RECORD_JOB], 1);
    assert_int_equal(counts[RECORD_GENERATION], 1);
    assert_int_equal(counts[RECORD_NODE], 1);
    assert_int_equal(counts[RECORD_BROKER], 0);
    assert_int_equal(store_load_job(f->store, "nobody", count_rows, none, &f->err), MUSTER_OK);
    for (size_t i = 0; i < RECORD_KIND_COUNT; i++)
        sum += none[i];
    assert_int_equal(sum, 0);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(every_table_that_names_a_job_is_among_those_that_are_cleared),
        TEST(nothing_is_left_of_a_job_that_is_forgotten),
        TEST(a_long_job_goes_in_slices),
        TEST(a_start_in_the_middle_of_it_finishes_it),
        TEST(a_job_that_begins_anew_meanwhile_has_none_of_the_old_rows),
        TEST(of_ended_jobs_a_start_reads_the_newest_and_the_names_of_the_others),
        TEST(one_job_is_read_whole_and_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
