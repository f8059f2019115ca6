/* Readers that wait for the next checkpoint of a job, over a database that somebody else writes. */
#include "tests/support/db_fixture.h"
#include "tests/support/scratch.h"

#include <muster/client.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

struct fixture {
    char dir[SCRATCH_PATH_MAX];
    char path[SCRATCH_PATH_MAX + 16];
    struct db_fixture db;
    muster_client_t *client;
};

static int open_all(void **state)
{
    static struct fixture f;

    scratch_make(f.dir);
    snprintf(f.path, sizeof f.path, "%s/muster.db", f.dir);
    db_open(&f.db, f.path);
    db_job(&f.db, NULL);
    db_generation(&f.db, 1, NULL);
    assert_int_equal(muster_client_open(f.path, 5000, &f.client, NULL), MUSTER_OK);
    *state = &f;
    return 0;
}

static int close_all(void **state)
{
    struct fixture *f = *state;

    muster_client_close(&f->client, NULL);
    db_close(&f->db);
    scratch_remove(f->dir);
    return 0;
}

static void add(struct fixture *f, int round, const char *checkpoint_state)
{
    db_round(&f->db, round, "state = 'committed', step = %d", round * 10);
    db_checkpoint(&f->db, round, "step = %d, state = '%s'", round * 10, checkpoint_state);
}

static int64_t wait_for(struct fixture *f, int64_t after, int64_t timeout_ms)
{
    muster_rows_t *rows = NULL;
    struct muster_error err;
    enum muster_status status =
        muster_client_wait_checkpoint(f->client, "words", after, timeout_ms, &rows, &err);

    if (status == MUSTER_E_TIMEOUT)
        return 0;
    assert_int_equal(status, MUSTER_OK);
    int64_t found = muster_rows_checkpoints(rows)[0].checkpoint;
    muster_rows_destroy(&rows);
    return found;
}

static void one_that_is_there_is_given_at_once(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(wait_for(f, 0, 0), 0);
    add(f, 1, "committed");
    add(f, 2, "committed");
    add(f, 3, "deleting"); /* nobody is told of that one */
    assert_int_equal(wait_for(f, 0, 0), 2);
    assert_int_equal(wait_for(f, 1, 0), 2);
    assert_int_equal(wait_for(f, 2, 0), 0);
}

static void *add_later(void *arg)
{
    usleep(300000); /* the reader waits by then; if it does not, it finds the row at once */
    add(arg, 7, "committed");
    return NULL;
}

static void one_that_comes_ends_the_wait(void **state)
{
    struct fixture *f = *state;
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, add_later, f), 0);
    assert_int_equal(wait_for(f, 0, 30000), 7);
    pthread_join(thread, NULL);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, open_all, close_all)
    const struct CMUnitTest tests[] = {
        TEST(one_that_is_there_is_given_at_once),
        TEST(one_that_comes_ends_the_wait),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
