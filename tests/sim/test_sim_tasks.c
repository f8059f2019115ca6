/* Tasks in simulated worlds: each must keep what sim_tasks.h says. */
#include "tests/sim/sim_tasks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdlib.h>

#define SEEDS 9 /* the ninth: an error while the queue is full of bytes */

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

/* T4, where nothing else ends workers. */
static void who_ends_its_workers_is_failed_and_nobody_else(void **state)
{
    struct sim_tasks_stats stats = {0};

    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++)
        sim_tasks_run_poisoned(seed, &stats);
    sim_tasks_print(&stats);
    assert_true(stats.poisoned > 10 && stats.failed > 3 && stats.done > 100);
}

/* In one of a few worlds: in each of them the thing that it takes may not come about. */
static bool is_caught(enum sim_tasks_break how, const char *words)
{
    for (uint64_t seed = 1; seed <= 40; seed++)
        if (sim_tasks_fails(seed, how, words))
            return true;
    return false;
}

static void what_is_broken_is_caught(void **state)
{
    (void)state;
    assert_false(sim_tasks_fails(1, SIM_TASKS_SOUND, "not all tasks have ended"));
    assert_true(is_caught(SIM_TASKS_LOSE, "not all tasks have ended"));
    assert_true(is_caught(SIM_TASKS_TWICE, "ends twice"));
    assert_true(is_caught(SIM_TASKS_RUNS, "an error was raised and worker"));
    assert_true(is_caught(SIM_TASKS_STAYS, "not all tasks have ended"));
    assert_true(is_caught(SIM_TASKS_AGAIN, "is begun twice"));
    assert_true(is_caught(SIM_TASKS_MIXES, "and of another from byte"));
    assert_true(is_caught(SIM_TASKS_BLAMES, "has failed for what another did"));
    assert_true(is_caught(SIM_TASKS_MUTE, "a call named nobody and server"));
    assert_true(is_caught(SIM_TASKS_GRUDGES, "a call named a server that is not missing"));
    assert_true(is_caught(SIM_TASKS_SLEEPS, "all has ended and a call has not returned"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_task_ends_once_whatever_breaks),
        cmocka_unit_test(who_ends_its_workers_is_failed_and_nobody_else),
        cmocka_unit_test(what_is_broken_is_caught)};

    return cmocka_run_group_tests_name("sim_tasks", tests, NULL, NULL);
}
