/* What a launcher's `muster run` takes from the broker's record for the end of its ranks. */
#include "tests/support/db_fixture.h"
#include "tests/support/scratch.h"
#include "tools/tool.h"
#include "tools/verbs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* muster.c names it; nothing here calls it. */
int cmd_run(int argc, char **argv)
{
    (void)argv;
    return argc;
}

/* The end of a job of two ranks and an evaluator, who is of rank 1 as well. */
static struct tool_end end_of(const char *job, const char *ranks, const char *evaluator)
{
    char directory[SCRATCH_PATH_MAX];
    struct db_fixture db;
    struct tool_end end;
    const char *path;

    scratch_make(directory);
    path = scratch_path(directory, "jobs.db");
    db_open(&db, path);
    db_job(&db, "state = '%s'", job);
    db_generation(&db, 1, "state = '%s'", job);
    for (int rank = 0; rank < 2; rank++)
        db_node(&db, 1, rank, "leave_why = '%s'", ranks);
    db_node(&db, 1, 2, "role = 'evaluator', rank = 1, leave_why = '%s'", evaluator);
    db_close(&db);
    assert_true(tool_job_end(path, "words", &end));
    scratch_remove(directory);
    return end;
}

static void what_an_evaluator_left_as_tells_nothing_of_the_ranks(void **state)
{
    (void)state;
    assert_true(end_of("ended", "finished", "preempted").finished);
    assert_false(end_of("ended", "preempted", "finished").finished);
    assert_false(end_of("running", "none", "preempted").preempted);
    assert_true(end_of("running", "preempted", "none").preempted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_an_evaluator_left_as_tells_nothing_of_the_ranks)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
