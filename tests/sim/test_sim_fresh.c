/* Seeds that nobody has run before, as many as fit into the time; the first is printed. One that fails is
 * kept as a line of regressions.txt. */
#include "tests/sim/sim_test.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <time.h>
#include <unistd.h>

#define MEMORY_S 35.0
#define SQLITE_S 15.0

static void run(uint64_t base, bool sqlite, double seconds)
{
    struct sim_stats stats = {0};
    double until = sim_cpu_s() + seconds;

    printf("fresh seeds from %llu%s\n", (unsigned long long)base,
           sqlite ? ", on the real store" : "");
    fflush(stdout);
    for (uint64_t seed = base; sim_cpu_s() < until; seed++) {
        struct sim_options options = {.seed = seed, .async = -1, .sqlite = sqlite};
        assert_true(sim_run_told(&options, &stats));
    }
    sim_stats_print(&stats, stdout);
}

static uint64_t base_now(void)
{
    return (uint64_t)time(NULL) * 1000 + (uint64_t)(getpid() % 1000);
}

static void fresh_seeds_break_nothing(void **state)
{
    (void)state;
    run(base_now(), false, MEMORY_S);
}

static void fresh_seeds_break_nothing_on_the_real_store(void **state)
{
    (void)state;
    run(base_now(), true, SQLITE_S);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fresh_seeds_break_nothing),
        cmocka_unit_test(fresh_seeds_break_nothing_on_the_real_store),
    };

    sim_guard_aborts();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
