/* What changes while `muster why` gathers a story is in all of it, or in none. */
#include <muster/client.h>

#include "tests/cli/stories.h"
#include "tests/support/scratch.h"
#include "tools/verbs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

/* The round is committed behind the tool's back, when it has read that it is open. */
static struct db_fixture *writer;
static int changes_left;

static enum muster_status moving_latest(muster_client_t *client, const char *job,
                                        muster_rows_t **ret_rows, struct muster_error *err)
{
    if (changes_left > 0) {
        changes_left--;
        db_sql(writer, "BEGIN; UPDATE round SET state = 'committed', step = 47 WHERE round = 4");
        db_checkpoint(writer, 4, "step = 47, committed_unix_ms = %lld", DB_T0 + 900);
        db_sql(writer, "UPDATE job SET seq = seq + 1; COMMIT");
    }
    return muster_client_latest(client, job, ret_rows, err);
}

#define muster_client_latest moving_latest
#include "tools/why/cmd_why.c" /* NOLINT(bugprone-suspicious-include) */

int cmd_run(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return -1;
}

static void story_is_of_one_moment(void **state)
{
    char directory[SCRATCH_PATH_MAX];
    struct muster_error err = {.status = MUSTER_OK};
    struct tool tool = {.verb = "why", .timeout_ms = 1000, .now_unix_ms = DB_NOW};
    struct db_fixture db;
    char *output = NULL;
    size_t size = 0;

    (void)state;
    scratch_make(directory);
    db_open(&db, scratch_path(directory, "m.db"));
    make_periodic(&db);
    db_round(&db, 4, "cause = 'operator'");
    for (int rank = 0; rank < DB_RANKS; rank++)
        db_member(&db, 4, rank, NULL);
    writer = &db;
    changes_left = 1;
    assert_int_equal(muster_client_open(scratch_path(directory, "m.db"), 1000, &tool.client, &err),
                     MUSTER_OK);
    tool.out = open_memstream(&output, &size);
    assert_non_null(tool.out);
    assert_int_equal(cmd_why(&tool), TOOL_DONE);
    fclose(tool.out);
    assert_int_equal(changes_left, 0);
    assert_non_null(strstr(output, "saved at step 47"));
    assert_non_null(strstr(output, "newest committed checkpoint is step 47"));
    assert_null(strstr(output, "It is still"));
    free(output);
    muster_client_close(&tool.client, NULL);
    db_close(&db);
    scratch_remove(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(story_is_of_one_moment)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
