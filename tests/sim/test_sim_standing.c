/* A notice that stands on every launch, as a notice file does: with time left each launch makes
 * progress. The control has the rule of before in place of the plan of the archive: what was not
 * measured freezes at once. */
#include "schema/rules/plan.h"

struct plan plan_make_truly(const struct plan_facts *facts);

#define plan_make plan_make_truly
#include "schema/rules/plan.c" /* NOLINT(bugprone-suspicious-include) */
#undef plan_make

#include "tests/sim/sim_test.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define SEEDS 80

static bool leaves_unmeasured;

struct plan plan_make(const struct plan_facts *facts)
{
    struct plan_facts as_known = *facts;

    as_known.at_once |= leaves_unmeasured && (facts->step_p95_ms <= 0 || facts->save_p95_ms <= 0);
    return plan_make_truly(&as_known);
}

static struct sim_grace grace_of(unsigned i)
{
    static const int64_t steps_ms[] = {5, 40, 200, 1000, 3000, 8000};
    static const int64_t saves_ms[] = {10, 300, 2000, 6000};
    static const int64_t lefts_ms[] = {20000, 45000, 90000, 300000};

    return (struct sim_grace){.step_ms = steps_ms[i % 6],
                              .save_ms = saves_ms[i / 6 % 4],
                              .jitter = i % 5 * 8,
                              .left_ms = lefts_ms[i / 24 % 4],
                              .stands = true};
}

static struct sim_options options_of(struct sim_grace *g, unsigned seed)
{
    return (struct sim_options){.seed = seed, .nodes = 1 + seed % 5, .async = 0, .grace = g};
}

/* R6.2 */
static void each_launch_under_a_standing_notice_makes_progress(void **state)
{
    struct sim_stats stats = {0};
    unsigned launches = 0, most = 0;

    (void)state;
    for (unsigned seed = 1; seed <= SEEDS; seed++) {
        struct sim_grace g = grace_of(seed);
        struct sim_options options = options_of(&g, seed);
        assert_true(sim_run_told(&options, &stats));
        launches += g.launches;
        most = g.launches > most ? g.launches : most;
    }
    printf("standing: %u worlds, %u launches with time to train, at most %u in one\n", SEEDS,
           launches, most);
    assert_true(launches >= SEEDS);
    assert_true(most <= 4);
}

static void leaving_before_anything_was_measured_is_seen(void **state)
{
    struct sim_failure failure = {0};
    struct sim_stats stats = {0};
    bool seen = false;

    (void)state;
    leaves_unmeasured = true;
    for (unsigned seed = 1; seed <= SEEDS && !seen; seed++) {
        struct sim_grace g = grace_of(seed);
        struct sim_options options = options_of(&g, seed);
        seen = !sim_run(&options, &stats, &failure) && strcmp(failure.invariant, "progress") == 0;
        if (seen)
            sim_bug_seen(&failure, seed);
    }
    leaves_unmeasured = false;
    assert_true(seen);
}

#define BUGS_MIN 1 /* that are seen: may grow, never fall */

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_launch_under_a_standing_notice_makes_progress),
        cmocka_unit_test(leaving_before_anything_was_measured_is_seen),
    };

    sim_guard_aborts();
    return sim_bugs_end(cmocka_run_group_tests(tests, NULL, NULL), BUGS_MIN);
}
