/* A planned grace, over many worlds of different step and save times, jitter and growth: the final
 * save ends before the deadline, and what lies before the reserve was trained. */
#include "schema/limits.h"
#include "tests/sim/sim_test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SEEDS 60

static const int64_t steps_ms[] = {5, 40, 200, 1000, 3000, 8000};
static const int64_t saves_ms[] = {10, 300, 2000, 6000};

struct tally {
    unsigned worlds, committed, late, idle;
    int64_t least_percent; /* of the grace before the reserve that was trained */
    int64_t least_margin_ms;
};

static struct sim_grace grace_of(unsigned i)
{
    struct sim_grace g = {.step_ms = steps_ms[i % 6], .save_ms = saves_ms[i / 6 % 4]};

    g.jitter = i % 5 * 8;
    /* more than the reserve by some steps and 20 s: what is measured is a heartbeat off */
    g.notice_ms = 20000 + 12 * g.step_ms + 6 * g.save_ms;
    g.left_ms = 8 * g.save_ms + 12 * g.step_ms + 24000 + (int64_t)(i % 7) * 9000;
    return g;
}

/* What the plan must leave for the times that the world really has. A step after a save waits for
 * the writer: one of many is none of the 95th percentile, one of few is; and meanwhile the writer
 * is a step behind. */
static int64_t reserve_ms(const struct sim_grace *g)
{
    int64_t step = g->step_ms * (100 + g->jitter) / 100;
    int64_t save = g->save_ms * (100 + g->jitter) / 100;
    bool saves_often = g->notice_ms / g->step_ms / 5 < 20;

    if (saves_often)
        step += save;
    return (5 * save + 1) / 2 + (saves_often ? 3 : 2) * step + FREEZE_MS + MARGIN_MS +
           PLAN_SPARE_MS;
}

static void run(struct sim_grace *g, unsigned seed)
{
    struct sim_stats stats = {0};
    struct sim_options options = {
        .seed = seed, .healthy = true, .nodes = 1 + seed % 9, .async = 0, .grace = g};

    if (g->slow_times > 0 || g->broker_down_ms > 0)
        options.healthy = false;
    assert_true(sim_run_told(&options, &stats));
}

static void judge(const struct sim_grace *g, unsigned seed, struct tally *tally)
{
    int64_t deadline_ms = g->notice_ms + g->left_ms;
    int64_t trained = 100 * (g->frozen_ms - g->notice_ms) / (g->left_ms - reserve_ms(g));
    int64_t margin = deadline_ms - g->committed_ms;

    tally->worlds++;
    if (g->committed_ms < 0 || g->committed_ms >= deadline_ms)
        fail_msg("seed %u: step %d ms, save %d ms: frozen %d ms before the deadline, not committed",
                 seed, (int)g->step_ms, (int)g->save_ms, (int)(deadline_ms - g->frozen_ms));
    if (trained < 80)
        fail_msg(
            "seed %u: step %d ms, save %d ms, left %d ms: only %d %% of the grace was trained: %s",
            seed, (int)g->step_ms, (int)g->save_ms, (int)g->left_ms, (int)trained, g->plan);
    tally->committed++;
    if (tally->worlds == 1 || trained < tally->least_percent)
        tally->least_percent = trained;
    if (tally->worlds == 1 || margin < tally->least_margin_ms)
        tally->least_margin_ms = margin;
}

static void tell(const char *what, const struct tally *tally)
{
    printf("%s: %u worlds, %u committed; least trained %d %%, least margin %d ms\n", what,
           tally->worlds, tally->committed, (int)tally->least_percent, (int)tally->least_margin_ms);
}

static void the_last_save_ends_in_time_and_the_grace_is_trained(void **state)
{
    struct tally tally = {0};

    (void)state;
    for (unsigned seed = 1; seed <= SEEDS; seed++) {
        struct sim_grace g = grace_of(seed);
        run(&g, seed);
        judge(&g, seed, &tally);
    }
    tell("planned", &tally);
}

static void saves_that_grow_end_in_time(void **state)
{
    struct tally tally = {0};

    (void)state;
    for (unsigned seed = 1; seed <= SEEDS; seed++) {
        struct sim_grace g = grace_of(seed);
        g.jitter = 5;
        g.growth = 10 + seed % 3 * 10; /* the last takes up to 1.3 times the one before */
        g.left_ms += 8 * g.save_ms;
        run(&g, seed);
        tally.worlds++;
        if (g.committed_ms < 0)
            fail_msg("seed %u: step %d ms, save %d ms, growth %u %%: not committed", seed,
                     (int)g.step_ms, (int)g.save_ms, g.growth);
        tally.committed++;
    }
    tell("growing saves", &tally);
}

static void a_step_three_times_as_long_ends_in_time_or_is_named(void **state)
{
    struct tally tally = {0};

    (void)state;
    for (unsigned seed = 1; seed <= SEEDS; seed++) {
        struct sim_grace g = grace_of(seed);
        g.jitter = 5;
        g.slow_times = 3 + seed % 3 * 3;
        run(&g, seed);
        tally.worlds++;
        tally.committed += g.committed_ms >= 0;
        /* 3 steps and a save fit into 2 steps, 2.5 saves and 2.5 s */
        if (g.committed_ms < 0 && g.slow_times == 3 && g.step_ms < 3 * g.save_ms / 2 + 2000)
            fail_msg("seed %u: step %d ms, save %d ms: not committed", seed, (int)g.step_ms,
                     (int)g.save_ms);
        if (g.committed_ms < 0 && (g.not_saved_ms < 0 || g.named_rank < 0))
            fail_msg("seed %u: step %d ms, save %d ms: not committed, and nobody is named", seed,
                     (int)g.step_ms, (int)g.save_ms);
    }
    tell("slow step", &tally);
    assert_true(tally.committed < tally.worlds); /* both were met */
}

static void a_broker_that_is_away_at_the_planned_moment_costs_no_save(void **state)
{
    struct tally tally = {0};

    (void)state;
    for (unsigned seed = 1; seed <= SEEDS; seed++) {
        struct sim_grace g = grace_of(seed);
        g.jitter = 5;
        g.broker_down_ms = 300 + seed % 3 * 200;
        run(&g, seed);
        tally.worlds++;
        if (g.committed_ms < 0)
            fail_msg("seed %u: step %d ms, save %d ms: not committed", seed, (int)g.step_ms,
                     (int)g.save_ms);
        tally.committed++;
    }
    tell("broker away", &tally);
}

/* The others save at once, what all of them have done. */
static void a_writer_that_dies_in_another_save_costs_no_step(void **state)
{
    struct sim_stats stats = {0};

    (void)state;
    for (unsigned seed = 1; seed <= SEEDS; seed++) {
        const struct sim_options options = {
            .seed = seed,
            .async = -1,
            .lasting = true,
            .world = "a writer that dies in another save while a notice stands"};
        assert_true(sim_run_told(&options, &stats));
    }
    printf("a writer that dies: %d terminations at once\n", (int)stats.plans[PLANNED_NO_MORE]);
    assert_true(stats.plans[PLANNED_NO_MORE] >= SEEDS / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_save_ends_in_time_and_the_grace_is_trained),
        cmocka_unit_test(saves_that_grow_end_in_time),
        cmocka_unit_test(a_step_three_times_as_long_ends_in_time_or_is_named),
        cmocka_unit_test(a_broker_that_is_away_at_the_planned_moment_costs_no_save),
        cmocka_unit_test(a_writer_that_dies_in_another_save_costs_no_step),
    };

    sim_guard_aborts();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
