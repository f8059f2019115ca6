/* The fixed set of worlds of tasks: every seed of it in every build, and every message of tasks is
 * heard often. It is built without sanitizers and with -O2, as plain_fixed_set.c. */
#include "tests/sim/sim_often.h"
#include "tests/sim/sim_tasks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#define SEEDS 170

static void expect_messages(const struct sim_tasks_stats *s)
{
    for (unsigned type = WIRE_HELLO; type < WIRE_TYPE_MAX; type++)
        if (wire_is_task(type) &&
            strcmp(wire_type_name(type), wire_type_name(WIRE_NONE)) != 0) /* a number in use */
            sim_expect_often("message", wire_type_name(type), s->messages[type]);
}

static void expect_faults(const struct sim_tasks_stats *s)
{
    sim_expect_often("fault", "broker killed", s->broker_kills);
    sim_expect_often("fault", "worker killed", s->worker_kills);
    sim_expect_often("fault", "worker left", s->leaves);
    sim_expect_often("fault", "worker stopped", s->pauses);
    sim_expect_often("fault", "worker preempted with its node", s->preempted);
    sim_expect_often("end", "stale", s->stale);
    sim_expect_often("fault", "server killed", s->servers_killed);
    sim_expect_often("fault", "server preempted", s->servers_preempted);
    sim_expect_often("fault", "server failed", s->servers_failed);
    sim_expect_often("server", "back", s->servers_back);
    sim_expect_often("server", "named by schedule", s->unavailable_schedule);
    sim_expect_often("server", "named by join", s->unavailable_join);
    sim_expect_often("server", "named by done", s->unavailable_done);
    sim_expect_often("threads", "one waits for another", s->waits_beside);
    sim_expect_often("fault", "connection cut", s->cuts);
    sim_expect_often("fault", "frame lost", s->frames_lost);
    sim_expect_often("coordinator", "attached", s->attaches);
    sim_expect_often("coordinator", "error raised", s->raised);
}

static void the_fixed_worlds_lose_nothing_and_meet_everything(void **state)
{
    struct sim_tasks_stats stats = {0};

    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        sim_tasks_run(seed, &stats);
    sim_tasks_print(&stats);
    expect_messages(&stats);
    expect_faults(&stats);
    assert_int_equal(sim_rare(), 0);
    assert_true(stats.fresh > 10 && stats.timeouts > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fixed_worlds_lose_nothing_and_meet_everything)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
