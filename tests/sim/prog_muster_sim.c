/* muster-sim - runs seeds of the simulator.
 *   muster-sim --seed N                     replays one, its story on stdout, one line an event
 *   muster-sim --seeds A..B [--minutes M]   runs many; stops at the first that breaks an invariant
 *   --focused                               nearly every world is one made for rare outcomes
 *   --put-back                              every world's database is put back to an older copy
 *   --healthy --nodes N --layout sharded|replicated --async 0|1 --keeps 0|1 --mutant N
 *                                           fix what a seed decides
 *   --sqlite                                broker/store is the broker's disk
 *   --keep-going                            counts failures and names each seed */
#include "tests/sim/sim.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

struct arguments {
    struct sim_options options;
    bool story, keep_going;
    unsigned long long first, last;
    double minutes;
};

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int usage(void)
{
    fputs(
        "usage: muster-sim --seed N | --seeds A..B [--minutes M] [--focused] [--put-back] "
        "[--healthy] "
        "[--nodes N]\n"
        "                  [--layout sharded|replicated] [--async 0|1] [--keeps 0|1] [--mutant N] "
        "[--sqlite] [--keep-going]\n",
        stderr);
    return 2;
}

static bool parse_seeds(const char *text, struct arguments *args)
{
    char *end;

    args->first = strtoull(text, &end, 10);
    if (strncmp(end, "..", 2) != 0)
        return false;
    args->last = strtoull(end + 2, &end, 10);
    return *end == '\0' && args->last >= args->first;
}

static bool parse_value(const char *name, const char *value, struct arguments *args)
{
    if (strcmp(name, "--seed") == 0) {
        args->first = args->last = strtoull(value, NULL, 10);
        args->story = true;
    } else if (strcmp(name, "--seeds") == 0)
        return parse_seeds(value, args);
    else if (strcmp(name, "--minutes") == 0)
        args->minutes = strtod(value, NULL);
    else if (strcmp(name, "--nodes") == 0)
        args->options.nodes = (unsigned)atoi(value);
    else if (strcmp(name, "--layout") == 0)
        args->options.layout = strcmp(value, "sharded") == 0 ? LAYOUT_SHARDED : LAYOUT_REPLICATED;
    else if (strcmp(name, "--keeps") == 0)
        args->options.keeps = strcmp(value, "0") == 0 ? SIM_WITHOUT : SIM_WITH;
    else if (strcmp(name, "--async") == 0)
        args->options.async = atoi(value);
    else if (strcmp(name, "--mutant") == 0)
        args->options.mutation = (enum sim_mutation)atoi(value);
    else
        return false;
    return true;
}

static bool parse(int argc, char **argv, struct arguments *args)
{
    *args = (struct arguments){.options.async = -1, .minutes = 1e9};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--healthy") == 0)
            args->options.healthy = true;
        else if (strcmp(argv[i], "--focused") == 0)
            args->options.focused = true;
        else if (strcmp(argv[i], "--put-back") == 0)
            args->options.put_back = true;
        else if (strcmp(argv[i], "--sqlite") == 0)
            args->options.sqlite = true;
        else if (strcmp(argv[i], "--keep-going") == 0)
            args->keep_going = true;
        else if (i + 1 >= argc || !parse_value(argv[i], argv[i + 1], args))
            return false;
        else
            i++;
    }
    return argc > 1;
}

int main(int argc, char **argv)
{
    struct arguments args;
    struct sim_stats stats = {0};
    struct sim_failure failure;
    unsigned long long failed = 0;

    if (!parse(argc, argv, &args))
        return usage();
    sim_guard_aborts();
    double begun = now_s();
    for (unsigned long long seed = args.first;
         seed <= args.last && now_s() - begun < args.minutes * 60; seed++) {
        args.options.seed = seed;
        args.options.story = args.story ? stdout : NULL;
        if (sim_run(&args.options, &stats, &failure))
            continue;
        failed++;
        if (!args.story && !args.keep_going)
            sim_print_story(&args.options, 60, stdout);
        printf("seed %llu, at %lld ms: %s broken: %s\n", seed, (long long)failure.at_ms,
               failure.invariant, failure.text);
        if (!args.keep_going)
            break;
    }
    sim_stats_print(&stats, stdout);
    printf("%.1f s, %llu of %llu seeds failed\n", now_s() - begun, failed,
           (unsigned long long)stats.seeds);
    return failed > 0;
}
