/* Tasks in many simulated worlds; SIM_TASKS_FROM and SIM_TASKS_COUNT choose others. */
#include "tests/sim/sim_tasks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

static void every_task_ends_once_in_many_worlds(void **state)
{
    const char *from = getenv("SIM_TASKS_FROM"), *count = getenv("SIM_TASKS_COUNT");
    uint64_t first = from != NULL ? strtoull(from, NULL, 10) : 1000;
    uint64_t seeds = count != NULL ? strtoull(count, NULL, 10) : 400;
    struct sim_tasks_stats stats = {0};

    (void)state;
    for (uint64_t seed = first; seed < first + seeds; seed++)
        sim_tasks_run(seed, &stats);
    sim_tasks_print(&stats);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_task_ends_once_in_many_worlds)};

    return cmocka_run_group_tests_name("slow_sim_tasks", tests, NULL, NULL);
}
