/* A rank of `muster bench`: the plan that all processes share, and who may be a rank of it. */
#include "tests/support/scratch.h"
#include "tools/bench/bench.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static char dir[SCRATCH_PATH_MAX];
static struct bench_plan *plan;

static int setup(void **state)
{
    (void)state;
    scratch_make(dir);
    plan = bench_plan_map(scratch_path(dir, "plan"));
    setenv("MUSTER_RANK", "0", 1);
    setenv("MUSTER_WORLD_SIZE", "1", 1);
    return plan == NULL;
}

static int teardown(void **state)
{
    (void)state;
    munmap(plan, sizeof *plan);
    unsetenv("MUSTER_RESTART_COUNT");
    unsetenv("MUSTER_RANK");
    unsetenv("MUSTER_WORLD_SIZE");
    scratch_remove(dir);
    return 0;
}

static void what_one_process_notes_another_one_sees(void **state)
{
    struct bench_plan *other = bench_plan_map(scratch_path(dir, "plan"));

    (void)state;
    assert_non_null(other);
    plan->launches[BENCH_ROUNDS_MAX].ranks[BENCH_RANKS_MAX - 1].left_ms = 12.5;
    assert_true(other->launches[BENCH_ROUNDS_MAX].ranks[BENCH_RANKS_MAX - 1].left_ms == 12.5);
    munmap(other, sizeof *other);
    assert_null(bench_plan_map(scratch_path(dir, "nowhere/plan")));
}

static void is_no_rank(const char *launch, const char *rank, const char *world_size)
{
    char said[1024] = "";

    setenv("MUSTER_RESTART_COUNT", launch, 1);
    setenv("MUSTER_RANK", rank, 1);
    setenv("MUSTER_WORLD_SIZE", world_size, 1);
    tool_hear(said, sizeof said);
    assert_int_equal(bench_rank(scratch_path(dir, "plan")), TOOL_USAGE);
    tool_hear(NULL, 0);
    assert_string_equal(said, "MUSTER_BENCH_PLAN is for `muster bench` alone: unset it");
}

static void whoever_is_beyond_the_plan_is_no_rank_of_it(void **state)
{
    (void)state;
    plan->rounds = 2;
    is_no_rank("3", "0", "1");
    is_no_rank("-1", "0", "1");
    is_no_rank("0", "64", "65");
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(what_one_process_notes_another_one_sees),
        T(whoever_is_beyond_the_plan_is_no_rank_of_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
