/* `muster unpin` tells what is done, also when nobody answers the question that follows it. */
#include <muster/client.h>

#include "tests/support/db_fixture.h"
#include "tests/support/scratch.h"
#include "tools/tool.h"
#include "tools/verbs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

static struct db_fixture db;
static int questions;
static int unpins;

/* The broker is gone behind the first one. */
static enum muster_status once_only(muster_client_t *client, const char *job, int64_t checkpoint,
                                    muster_rows_t **ret_rows, struct muster_error *err)
{
    if (questions++ == 0)
        return muster_client_checkpoint(client, job, checkpoint, ret_rows, err);
    *err = (struct muster_error){.status = MUSTER_E_BROKER, .rank = -1};
    snprintf(err->text, sizeof err->text, "no broker answered within 1000 ms");
    return err->status;
}

static enum muster_status let_go(muster_client_t *client, const char *job, int64_t checkpoint,
                                 const char *id, struct muster_error *err)
{
    (void)client;
    (void)job;
    (void)checkpoint;
    (void)id;
    (void)err;
    unpins++;
    return MUSTER_OK;
}

static int ask_nobody(struct tool *tool)
{
    (void)tool;
    return TOOL_DONE;
}

#define muster_client_checkpoint once_only
#define muster_client_unpin let_go
#define tool_check_broker ask_nobody
#include "tools/cmd_pin.c" /* NOLINT(bugprone-suspicious-include) */

int cmd_run(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return -1;
}

static int setup(void **state)
{
    static char directory[SCRATCH_PATH_MAX];

    scratch_make(directory);
    db_open(&db, scratch_path(directory, "m.db"));
    db_job(&db, NULL);
    db_generation(&db, 1, NULL);
    db_round(&db, 1, "state = 'committed', step = 40");
    db_checkpoint(&db, 1, "step = 40, pinned = 1, committed_unix_ms = %lld", DB_T0);
    db_sql(&db, "INSERT INTO pin VALUES ('words', 1, 'ci', 0)");
    questions = unpins = 0;
    *state = directory;
    return 0;
}

static int teardown(void **state)
{
    db_close(&db);
    scratch_remove(*state);
    return 0;
}

/* What it printed; freed by the caller. */
static char *unpinned_by(const char *directory, const char *id)
{
    struct muster_error err = {.status = MUSTER_OK};
    struct tool tool = {.verb = "unpin",
                        .values[OPTION_ID] = id,
                        .args = {"1"},
                        .args_count = 1,
                        .timeout_ms = 1000,
                        .now_unix_ms = DB_NOW};
    char *output = NULL;
    size_t size = 0;

    assert_int_equal(muster_client_open(scratch_path(directory, "m.db"), 1000, &tool.client, &err),
                     MUSTER_OK);
    tool.out = open_memstream(&output, &size);
    assert_non_null(tool.out);
    assert_int_equal(cmd_unpin(&tool), TOOL_DONE);
    fclose(tool.out);
    muster_client_close(&tool.client, NULL);
    assert_int_equal(unpins, 1);
    assert_int_equal(questions, 2);
    return output;
}

static void a_pin_that_is_gone_is_told_without_a_broker(void **state)
{
    char *output = unpinned_by(*state, "ci");

    assert_string_equal(output, "Checkpoint 1 of job words is held no more by ci (who else holds "
                                "it is not known: MUSTER_E_BROKER: no broker answered within 1000 "
                                "ms).\n");
    free(output);
}

static void a_pin_that_was_never_there_is_not_called_gone(void **state)
{
    char *output = unpinned_by(*state, "me");

    assert_non_null(strstr(output, "Checkpoint 1 of job words is not held by me (who else"));
    free(output);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_pin_that_is_gone_is_told_without_a_broker),
        TEST(a_pin_that_was_never_there_is_not_called_gone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
