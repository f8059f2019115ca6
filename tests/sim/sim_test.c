/* sim_test - see sim_test.h. */
#include "tests/sim/sim_test.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

double sim_cpu_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now); /* a busy machine runs no fewer seeds */
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

void sim_print_arguments(const struct sim_options *options)
{
    printf("--seed %llu", (unsigned long long)options->seed);
    if (options->sqlite)
        printf(" --sqlite");
    if (options->focused)
        printf(" --focused");
    if (options->healthy)
        printf(" --healthy");
    if (options->nodes > 0)
        printf(" --nodes %u", options->nodes);
    if (options->layout != LAYOUT_NONE)
        printf(" --layout %s", options->layout == LAYOUT_SHARDED ? "sharded" : "replicated");
    if (options->async >= 0)
        printf(" --async %d", options->async);
    if (options->mutation != MUTANT_NONE)
        printf(" --mutant %d", (int)options->mutation);
}

bool sim_run_told(const struct sim_options *options, struct sim_stats *stats)
{
    struct sim_failure failure;

    if (sim_run(options, stats, &failure))
        return true;
    sim_print_story(options, 60, stdout);
    printf("seed %llu, at %lld ms: %s broken: %s\nreplay it: prog_muster_sim ",
           (unsigned long long)options->seed, (long long)failure.at_ms, failure.invariant,
           failure.text);
    sim_print_arguments(options);
    printf("\nand keep it as a line of tests/sim/regressions.txt\n");
    fflush(stdout);
    return false;
}

bool sim_find_failure(enum sim_mutation mutation, unsigned count, struct sim_failure *ret_failure)
{
    struct sim_stats stats = {0};

    for (unsigned seed = 1; seed <= count; seed++) {
        struct sim_options options = {.seed = seed, .async = -1, .mutation = mutation};
        if (!sim_run(&options, &stats, ret_failure)) {
            printf("seed %u: %s broken: %s\n", seed, ret_failure->invariant, ret_failure->text);
            return true;
        }
    }
    return false;
}

bool sim_find_broken(const struct sim_options *options, unsigned count, const char *invariant)
{
    struct sim_options each = *options;
    struct sim_stats stats = {0};
    struct sim_failure failure;

    for (each.seed = 1; each.seed <= count; each.seed++) {
        if (sim_run(&each, &stats, &failure) || strcmp(failure.invariant, invariant) != 0)
            continue;
        printf("seed %llu: %s broken: %s\n", (unsigned long long)each.seed, failure.invariant,
               failure.text);
        return true;
    }
    return false;
}
