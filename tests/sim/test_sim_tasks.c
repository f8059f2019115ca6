/* Tasks in simulated worlds: each must keep what sim_tasks.h says. */
#include "tests/sim/sim_tasks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdlib.h>

#define SEEDS 8

static void every_task_ends_once_whatever_breaks(void **state)
{
    const char *from = getenv("SIM_TASKS_FROM"), *count = getenv("SIM_TASKS_COUNT");
    uint64_t first = from != NULL ? strtoull(from, NULL, 10) : 1;
    uint64_t seeds = count != NULL ? strtoull(count, NULL, 10) : SEEDS;
    struct sim_tasks_stats stats = {0};

    (void)state;
    for (uint64_t seed = first; seed < first + seeds; seed++)
        sim_tasks_run(seed, &stats);
    sim_tasks_print(&stats);
    assert_true(seeds < SEEDS || (stats.broker_kills > 0 && stats.worker_kills > 0 &&
                                  stats.pauses > 0 && stats.attaches > 0 && stats.raised > 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_task_ends_once_whatever_breaks)};

    return cmocka_run_group_tests_name("sim_tasks", tests, NULL, NULL);
}
