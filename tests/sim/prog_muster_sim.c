/* muster-sim - runs seeds of the simulator; `./tools/dev sim` builds and runs it without
 * sanitizers.
 *
 *   muster-sim --seed N                     replays one, its story on stdout, one line an event
 *   muster-sim --seeds A..B [--minutes M]   runs many; stops at the first that breaks an invariant,
 *                                           names it and how to replay it
 *   --focused                               nearly every world is one made for rare outcomes
 *   --put-back                              every world's database is restored from an older copy
 *   --hasty                                 what is on disk is imported then while the job runs
 *   --power-cuts                            hosts lose their power, and what was not synced
 *   --relays                                each host has a relay, and bundles travel
 *   --suspects                              collectives break, and ranks suspect one another
 *   --turns                                 programs save by themselves
 *   --lasting                               loops outlast the faults
 *   --healthy --nodes N --layout sharded|replicated --async 0|1 --keeps 0|1 --mutant N
 *                                           fix what a seed decides
 *   --sqlite                                broker/store is the broker's disk
 *   --keep-going                            counts failures and names each seed */
#include "tests/sim/sim_test.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

struct arguments {
    struct sim_options options;
    bool story, keep_going, chosen;
    unsigned long long first, last;
    double minutes;
};

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int usage(FILE *to)
{
    fputs("usage: muster-sim --seed N | --seeds A..B [--minutes M] [--focused] [--put-back] "
          "[--hasty] [--slow-disk] [--shared] [--power-cuts] [--relays] [--suspects] [--turns]\n"
          "                  [--lasting] [--healthy] [--nodes N] [--layout sharded|replicated] "
          "[--async 0|1] "
          "[--keeps 0|1] "
          "[--mutant N] "
          "[--sqlite] [--keep-going]\n",
          to);
    return to == stderr ? 2 : 0;
}

/* What a value has to be; NULL: there is no such argument. */
static const char *range_of(const char *name)
{
    static char mutants[64];
    static const struct {
        const char *name, *range;
    } ranges[] = {{"--seed", "a number from 0 to 18446744073709551614"},
                  {"--seeds", "A..B, two such numbers with A not above B"},
                  {"--minutes", "a number, not below 0"},
                  {"--nodes", "a number from 1 to 64"},
                  {"--layout", "sharded or replicated"},
                  {"--async", "0 or 1"},
                  {"--keeps", "0 or 1"},
                  {"--mutant", mutants}};

    snprintf(mutants, sizeof mutants, "a number from 0 to %d", MUTANT_COUNT - 1);
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
        if (strcmp(ranges[i].name, name) == 0)
            return ranges[i].range;
    return NULL;
}

/* Which word is wrong, and how. value: NULL if none is behind it. */
static bool wrong(const char *name, const char *value)
{
    const char *range = range_of(name);

    if (range == NULL)
        fprintf(stderr, "muster-sim: there is no argument \"%s\"\n", name);
    else if (value == NULL)
        fprintf(stderr, "muster-sim: %s needs %s\n", name, range);
    else
        fprintf(stderr, "muster-sim: %s is \"%s\"; give %s\n", name, value, range);
    return false;
}

static bool parse_number(const char *text, unsigned long long max, unsigned long long *ret_number)
{
    char *end;

    *ret_number = strtoull(text, &end, 10);
    return *text >= '0' && *text <= '9' && *end == '\0' && *ret_number <= max;
}

static bool parse_seeds(const char *text, struct arguments *args)
{
    const char *dots = strstr(text, "..");
    char first[24];

    if (dots == NULL || (size_t)(dots - text) >= sizeof first)
        return false;
    snprintf(first, sizeof first, "%.*s", (int)(dots - text), text);
    args->chosen = true;
    return parse_number(first, UINT64_MAX, &args->first) &&
           parse_number(dots + 2, UINT64_MAX - 1, &args->last) && args->last >= args->first;
}

static bool parse_seed(const char *text, struct arguments *args)
{
    args->story = args->chosen = true;
    if (!parse_number(text, UINT64_MAX - 1, &args->first))
        return false;
    args->last = args->first;
    return true;
}

static bool parse_minutes(const char *text, struct arguments *args)
{
    char *end;

    args->minutes = strtod(text, &end);
    return end != text && *end == '\0' && args->minutes >= 0;
}

static bool parse_layout(const char *text, struct arguments *args)
{
    bool sharded = strcmp(text, "sharded") == 0;

    args->options.layout = sharded ? LAYOUT_SHARDED : LAYOUT_REPLICATED;
    return sharded || strcmp(text, "replicated") == 0;
}

static bool parse_choice(const char *name, const char *value, struct arguments *args)
{
    unsigned long long number;

    if (strcmp(name, "--nodes") == 0) {
        args->options.nodes = (unsigned)atoi(value);
        return parse_number(value, 64, &number) && number > 0;
    }
    if (strcmp(name, "--keeps") == 0) {
        args->options.keeps = strcmp(value, "0") == 0 ? SIM_WITHOUT : SIM_WITH;
        return parse_number(value, 1, &number);
    }
    if (strcmp(name, "--async") == 0) {
        args->options.async = atoi(value);
        return parse_number(value, 1, &number);
    }
    if (strcmp(name, "--mutant") == 0) {
        args->options.mutation = (enum sim_mutation)atoi(value);
        return parse_number(value, MUTANT_COUNT - 1, &number);
    }
    return false;
}

static bool parse_value(const char *name, const char *value, struct arguments *args)
{
    if (strcmp(name, "--seed") == 0)
        return parse_seed(value, args);
    if (strcmp(name, "--seeds") == 0)
        return parse_seeds(value, args);
    if (strcmp(name, "--minutes") == 0)
        return parse_minutes(value, args);
    if (strcmp(name, "--layout") == 0)
        return parse_layout(value, args);
    return parse_choice(name, value, args);
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
        else if (strcmp(argv[i], "--hasty") == 0)
            args->options.hasty = true;
        else if (strcmp(argv[i], "--slow-disk") == 0)
            args->options.slow_disk = true;
        else if (strcmp(argv[i], "--shared") == 0)
            args->options.shared = true;
        else if (strcmp(argv[i], "--power-cuts") == 0)
            args->options.power_cuts = true;
        else if (strcmp(argv[i], "--relays") == 0)
            args->options.relays = true;
        else if (strcmp(argv[i], "--suspects") == 0)
            args->options.suspects = true;
        else if (strcmp(argv[i], "--turns") == 0)
            args->options.turns = true;
        else if (strcmp(argv[i], "--lasting") == 0)
            args->options.lasting = true;
        else if (strcmp(argv[i], "--sqlite") == 0)
            args->options.sqlite = true;
        else if (strcmp(argv[i], "--keep-going") == 0)
            args->keep_going = true;
        else if (i + 1 >= argc || !parse_value(argv[i], argv[i + 1], args))
            return wrong(argv[i], argv[i + 1]); /* NULL behind the last */
        else
            i++;
    }
    if (!args->chosen)
        fputs("muster-sim: say which seeds: --seed N or --seeds A..B\n", stderr);
    return args->chosen;
}

/* One world. False: it broke an invariant, which is told. */
static bool run_one(const struct arguments *args, const struct sim_options *options,
                    struct sim_stats *stats)
{
    struct sim_failure failure;
    char arguments[192];

    if (sim_run(options, stats, &failure))
        return true;
    if (!args->story && !args->keep_going)
        sim_print_story(options, 60, stdout);
    printf("seed %llu, at %lld ms: %s broken: %s\n", (unsigned long long)options->seed,
           (long long)failure.at_ms, failure.invariant, failure.text);
    sim_arguments(options, arguments, sizeof arguments);
    if (!args->story)
        printf("replay it: ./tools/dev sim %s\n", arguments);
    fflush(stdout);
    return false;
}

/* How many failed. */
static unsigned long long run_all(const struct arguments *args, struct sim_stats *stats,
                                  struct sim_longest *longest)
{
    struct sim_options options = args->options;
    double begun = now_s(), before = sim_cpu_seconds();
    unsigned long long failed = 0;

    options.story = args->story ? stdout : NULL;
    for (options.seed = args->first;
         options.seed <= args->last && now_s() - begun < args->minutes * 60; options.seed++) {
        failed += !run_one(args, &options, stats);
        double after = sim_cpu_seconds();
        sim_longest_note(longest, &options, after - before);
        before = after;
        if (failed > 0 && !args->keep_going)
            break;
    }
    return failed;
}

int main(int argc, char **argv)
{
    struct arguments args;
    struct sim_stats stats = {0};
    struct sim_longest longest = {0};

    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
        return usage(stdout);
    if (!parse(argc, argv, &args))
        return usage(stderr);
    sim_guard_aborts();
    if (!args.story)
        sim_limit_worlds(SIM_WORLD_SECONDS);
    double begun = now_s();
    unsigned long long failed = run_all(&args, &stats, &longest);
    sim_stats_print(&stats, stdout);
    if (!args.story)
        printf("the longest world took %.1f s: %s\n", longest.seconds, longest.arguments);
    printf("%.1f s, %llu of %llu seeds failed\n", now_s() - begun, failed,
           (unsigned long long)stats.seeds);
    return failed > 0;
}
