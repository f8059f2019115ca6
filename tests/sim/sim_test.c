/* sim_test - see sim_test.h. */
#include "tests/sim/sim_test.h"

bool sim_run_told(const struct sim_options *options, struct sim_stats *stats)
{
    struct sim_failure failure;

    if (sim_run(options, stats, &failure))
        return true;
    sim_print_story(options, 60, stdout);
    printf("seed %llu (nodes %u, layout %d, async %d%s), at %lld ms: %s broken: %s\n",
           (unsigned long long)options->seed, options->nodes, (int)options->layout, options->async,
           options->healthy ? ", healthy" : "", (long long)failure.at_ms, failure.invariant,
           failure.text);
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
