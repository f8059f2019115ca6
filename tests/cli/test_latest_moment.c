/* A path that `muster latest` gives is not gone a moment later. */
#include <muster/client.h>

#include "tests/cli/stories.h"
#include "tests/support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

/* The manifest is written behind the tool's back, when it has read that there is none. */
static struct db_fixture *writer;
static int looks;

static enum muster_status moving_latest(muster_client_t *client, const char *job,
                                        muster_rows_t **ret_rows, struct muster_error *err)
{
    enum muster_status status = muster_client_latest(client, job, ret_rows, err);

    if (looks++ == 0)
        db_sql(writer, "UPDATE checkpoint SET path = '47' WHERE round = 4");
    return status;
}

#define muster_client_latest moving_latest
#include "tools/show/latest.c" /* NOLINT(bugprone-suspicious-include) */

static void the_path_is_the_final_one(void **state)
{
    char directory[SCRATCH_PATH_MAX];
    struct muster_error err = {.status = MUSTER_OK};
    muster_client_t *client = NULL;
    struct latest latest;
    struct db_fixture db;

    (void)state;
    scratch_make(directory);
    db_open(&db, scratch_path(directory, "m.db"));
    make_periodic(&db);
    db_round(&db, 4, "state = 'committed', cause = 'operator', step = 47");
    db_checkpoint(&db, 4, "step = 47, path = '', committed_unix_ms = %lld", DB_T0 + 900);
    writer = &db;
    assert_int_equal(muster_client_open(scratch_path(directory, "m.db"), 1000, &client, &err),
                     MUSTER_OK);
    assert_int_equal(latest_find(client, db.job, &latest, &err), MUSTER_OK);
    assert_int_equal(looks, 2);
    assert_int_equal(latest.whole->step, 47);
    assert_null(strstr(latest.path, ".muster"));
    muster_rows_destroy(&latest.rows);
    muster_client_close(&client, NULL);
    db_close(&db);
    scratch_remove(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_path_is_the_final_one)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
