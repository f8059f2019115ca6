/* sim_test - see sim_test.h. */
#include "tests/sim/sim_test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CLUSTERS_A_MINUTE 1000

static double seconds_of(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int by_number(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

uint64_t sim_median(uint64_t *numbers, size_t count)
{
    qsort(numbers, count, sizeof *numbers, by_number);
    return numbers[count / 2];
}

double sim_cpu_seconds(void)
{
    return seconds_of(CLOCK_PROCESS_CPUTIME_ID);
}

void sim_longest_note(struct sim_longest *longest, const struct sim_options *options,
                      double seconds)
{
    if (seconds <= longest->seconds)
        return;
    longest->seconds = seconds;
    sim_arguments(options, longest->arguments, sizeof longest->arguments);
}

bool sim_run_told(const struct sim_options *options, struct sim_stats *stats)
{
    struct sim_failure failure;
    char arguments[192];

    if (sim_run(options, stats, &failure))
        return true;
    sim_arguments(options, arguments, sizeof arguments);
    printf("seed %llu, at %lld ms: %s broken: %s\nreplay it: ./tools/dev sim %s\n"
           "and keep it as a line of tests/sim/regressions.txt\n",
           (unsigned long long)options->seed, (long long)failure.at_ms, failure.invariant,
           failure.text, arguments);
    fflush(stdout); /* before it runs again, which may take as long */
    sim_print_story(options, 60, stdout);
    fflush(stdout);
    return false;
}

void sim_run_worlds(struct sim_options (*world)(uint64_t seed), uint64_t count,
                    struct sim_stats *stats)
{
    for (uint64_t seed = 1; seed <= count; seed++) {
        struct sim_options options = world(seed);
        assert_true(sim_run_told(&options, stats));
    }
    sim_stats_print(stats, stdout);
}

static unsigned bugs_seen;

void sim_bug_seen(const struct sim_failure *failure, uint64_t seed)
{
    printf("seed %llu: %s broken: %s\n", (unsigned long long)seed, failure->invariant,
           failure->text);
    bugs_seen++;
}

int sim_bugs_end(int failed, unsigned bugs_min)
{
    printf("%u deliberate bugs were seen, %u at least were to be\n", bugs_seen, bugs_min);
    return failed == 0 && bugs_seen < bugs_min ? 1 : failed;
}

bool sim_find_failure(enum sim_mutation mutation, unsigned count, struct sim_failure *ret_failure)
{
    struct sim_stats stats = {0};

    for (unsigned seed = 1; seed <= count; seed++) {
        struct sim_options options = {.seed = seed, .async = -1, .mutation = mutation};
        if (!sim_run(&options, &stats, ret_failure)) {
            sim_bug_seen(ret_failure, seed);
            return true;
        }
    }
    return false;
}

bool sim_find_said(const struct sim_options *options, unsigned count, const char *invariant,
                   const char *words)
{
    struct sim_options each = *options;
    struct sim_stats stats = {0};
    struct sim_failure failure;

    for (each.seed = 1; each.seed <= count; each.seed++) {
        if (sim_run(&each, &stats, &failure) || strcmp(failure.invariant, invariant) != 0 ||
            strstr(failure.text, words) == NULL)
            continue;
        sim_bug_seen(&failure, each.seed);
        return true;
    }
    return false;
}

bool sim_find_broken(const struct sim_options *options, unsigned count, const char *invariant)
{
    return sim_find_said(options, count, invariant, "");
}

/* 1,000 clusters a minute on one core, with rows in memory: what makes a hundred thousand of them
 * no matter. One world in some ten thousand saves over a thousand times, and takes a minute alone:
 * the longest is left out. */
static void expect_speed(const struct sim_stats *stats, const struct sim_options *kind,
                         double cpu_seconds, const struct sim_longest *longest)
{
    printf("%.0f clusters a minute of this process's own time, the longest in %.1f s: %s\n",
           (double)stats->seeds * 60 / cpu_seconds, longest->seconds, longest->arguments);
    assert_true(stats->seeds > 1);
    if (!kind->sqlite)
        assert_true((double)(stats->seeds - 1) * 60 >=
                    CLUSTERS_A_MINUTE * (cpu_seconds - longest->seconds));
}

static void run_fresh(const struct sim_options *kind, const char *what, double cpu_seconds)
{
    struct sim_stats stats = {0};
    struct sim_longest longest = {0};
    double cpu = sim_cpu_seconds(), begun = seconds_of(CLOCK_MONOTONIC);
    uint64_t base = (uint64_t)time(NULL) * 1000 + (uint64_t)(getpid() % 1000);

    printf("fresh seeds from %llu%s\n", (unsigned long long)base, what);
    fflush(stdout);
    for (uint64_t seed = base; stats.seeds < 2 || /* the longest is left out of the speed */
                               (sim_cpu_seconds() - cpu < cpu_seconds &&
                                seconds_of(CLOCK_MONOTONIC) - begun < 3 * cpu_seconds);
         seed++) {
        struct sim_options options = *kind;
        options.seed = seed;
        options.lasting = seed % 4 == 1;
        options.slow_disk = seed % 5 == 2;
        options.power_cuts = seed % 3 == 1;
        options.suspects = seed % 6 == 2;
        options.turns = seed % 7 == 3;
        double before = sim_cpu_seconds();
        assert_true(sim_run_told(&options, &stats));
        sim_longest_note(&longest, &options, sim_cpu_seconds() - before);
    }
    sim_stats_print(&stats, stdout);
    expect_speed(&stats, kind, sim_cpu_seconds() - cpu, &longest);
}

static struct sim_fresh fresh;

static void fresh_seeds_break_nothing(void **state)
{
    (void)state;
    run_fresh(&(struct sim_options){.async = -1}, "", fresh.memory_s);
}

static void fresh_seeds_break_nothing_when_databases_are_put_back(void **state)
{
    (void)state;
    run_fresh(&(struct sim_options){.async = -1, .put_back = true},
              ", whose databases are restored from a copy", fresh.put_back_s);
}

static void fresh_seeds_break_nothing_on_the_real_store(void **state)
{
    (void)state;
    run_fresh(&(struct sim_options){.async = -1, .sqlite = true}, ", on the real store",
              fresh.store_s);
}

static void fresh_seeds_break_nothing_with_two_brokers(void **state)
{
    (void)state;
    run_fresh(&(struct sim_options){.async = -1, .shared = true}, ", with two brokers",
              fresh.shared_s);
}

int sim_fresh_main(const struct sim_fresh *cpu)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fresh_seeds_break_nothing),
        cmocka_unit_test(fresh_seeds_break_nothing_when_databases_are_put_back),
        cmocka_unit_test(fresh_seeds_break_nothing_on_the_real_store),
        cmocka_unit_test(fresh_seeds_break_nothing_with_two_brokers),
    };

    fresh = *cpu;
    sim_guard_aborts();
    sim_limit_worlds(SIM_WORLD_SECONDS);
    return cmocka_run_group_tests_name("fresh seeds", tests, NULL, NULL);
}
