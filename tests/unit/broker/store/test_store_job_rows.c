/* The row of a job, which a batch may write many times: the last is what the database has. */
#include "broker/store/store_internal.h"
#include "tests/unit/broker/store/store_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#define SEQ_OF(job) "SELECT seq FROM job WHERE job = '" job "'"

static struct record job_row(const char *job, uint64_t seq)
{
    struct record row = *sample_of(RECORD_JOB);

    row.u.job.job = job;
    row.u.job.seq = seq;
    return row;
}

static struct record event_row(const char *job, uint64_t seq)
{
    struct record row = *sample_of(RECORD_EVENT);

    row.u.event.job = job;
    row.u.event.seq = row.u.event.body.seq = seq;
    return row;
}

/* Returns how many rows the batch wrote. */
static int write_all(struct fixture *f, const struct record *rows, size_t count)
{
    int before = sqlite3_total_changes(f->store->db);

    assert_int_equal(fixture_apply(f, rows, count), MUSTER_OK);
    return sqlite3_total_changes(f->store->db) - before;
}

static void a_new_job_is_written_once_and_before_what_refers_to_it(void **state)
{
    struct fixture *f = *state;
    const struct record rows[] = {job_row("a", 1),   event_row("a", 1), job_row("a", 2),
                                  event_row("a", 2), job_row("a", 3),   event_row("a", 3)};

    assert_int_equal(write_all(f, rows, 6), 4);
    assert_int_equal(fixture_look(f, SEQ_OF("a")), 3);
    assert_int_equal(write_all(f, rows, 1), 1);
    assert_int_equal(fixture_look(f, SEQ_OF("a")), 1);
}

static void each_of_two_jobs_has_its_last_row(void **state)
{
    struct fixture *f = *state;
    const struct record rows[] = {job_row("a", 1), job_row("b", 11), job_row("a", 2),
                                  job_row("b", 12), job_row("a", 3)};

    write_all(f, rows, 5);
    assert_int_equal(fixture_look(f, SEQ_OF("a")), 3);
    assert_int_equal(fixture_look(f, SEQ_OF("b")), 12);
}

static void a_job_that_is_forgotten_between_begins_anew(void **state)
{
    struct fixture *f = *state;
    const struct record rows[] = {job_row("a", 8),
                                  event_row("a", 8),
                                  {.kind = RECORD_FORGET, .u.forget.job = "a"},
                                  job_row("a", 1),
                                  event_row("a", 1)};

    write_all(f, rows, 3);
    assert_int_equal(fixture_look(f, "SELECT count(*) FROM job"), 0);
    write_all(f, rows, 5);
    assert_int_equal(fixture_look(f, SEQ_OF("a")), 1);
    assert_int_equal(fixture_look(f, "SELECT count(*) FROM event"), 1);
}

static void the_last_row_counts_however_far_behind_it_is(void **state)
{
    enum { ROWS = 202 };
    struct fixture *f = *state;
    struct record rows[ROWS];

    for (uint64_t i = 0; i < ROWS; i += 2) {
        rows[i] = job_row("a", i + 1);
        rows[i + 1] = event_row("a", i + 1);
    }
    assert_in_range(write_all(f, rows, ROWS), ROWS / 2, ROWS / 2 + 10);
    assert_int_equal(fixture_look(f, SEQ_OF("a")), ROWS - 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_new_job_is_written_once_and_before_what_refers_to_it),
        TEST(each_of_two_jobs_has_its_last_row),
        TEST(a_job_that_is_forgotten_between_begins_anew),
        TEST(the_last_row_counts_however_far_behind_it_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
