/* sim - one world: its time, its chance, its story, its end. */
#include "tests/sim/sim_save.h"
#include "tests/sim/sim_world.h"

#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

/* --- chance ----------------------------------------------------------------------------------- */

uint64_t sim_next(uint64_t *state) /* splitmix64 */
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

uint64_t sim_random(struct sim *sim)
{
    return sim_next(&sim->random);
}

int64_t sim_range(struct sim *sim, int64_t low, int64_t high)
{
    return high <= low ? low : low + (int64_t)(sim_random(sim) % (uint64_t)(high - low + 1));
}

bool sim_chance(struct sim *sim, unsigned percent)
{
    return sim_random(sim) % 100 < percent;
}

int64_t side_range(struct sim *sim, int64_t low, int64_t high)
{
    return high <= low ? low : low + (int64_t)(sim_next(&sim->side) % (uint64_t)(high - low + 1));
}

int64_t frames_below(struct sim *sim, int64_t below)
{
    return (int64_t)(sim_next(&sim->frames) % (uint64_t)below);
}

int64_t relay_below(struct sim *sim, int64_t below)
{
    return (int64_t)(sim_next(&sim->relay_chance) % (uint64_t)below);
}

int64_t suspects_below(struct sim *sim, int64_t below)
{
    return (int64_t)(sim_next(&sim->suspects_chance) % (uint64_t)below);
}

bool side_chance(struct sim *sim, unsigned percent)
{
    return sim_next(&sim->side) % 100 < percent;
}

/* --- words ------------------------------------------------------------------------------------ */

static uint64_t word_hash(const char *text)
{
    uint64_t hash = UINT64_C(1469598103934665603);

    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
    return hash;
}

static void words_grow(struct sim *sim)
{
    size_t capacity = sim->words_capacity ? sim->words_capacity * 2 : 256;
    const char **words = calloc(capacity, sizeof *words);

    for (size_t i = 0; i < sim->words_capacity; i++) {
        if (sim->words[i] == NULL)
            continue;
        size_t at = word_hash(sim->words[i]) & (capacity - 1);
        while (words[at] != NULL)
            at = (at + 1) & (capacity - 1);
        words[at] = sim->words[i];
    }
    free(sim->words);
    sim->words = words;
    sim->words_capacity = capacity;
}

const char *sim_word(struct sim *sim, const char *text)
{
    if (text == NULL || text[0] == '\0')
        return "";
    if (sim->words_count * 2 >= sim->words_capacity)
        words_grow(sim);
    size_t at = word_hash(text) & (sim->words_capacity - 1);
    while (sim->words[at] != NULL && strcmp(sim->words[at], text) != 0)
        at = (at + 1) & (sim->words_capacity - 1);
    if (sim->words[at] == NULL) {
        sim->words[at] = arena_strdup(&sim->arena, text);
        sim->words_count++;
    }
    return sim->words[at];
}

/* --- time ------------------------------------------------------------------------------------- */

static bool before(const struct sim_event *a, const struct sim_event *b)
{
    return a->at_us != b->at_us ? a->at_us < b->at_us : a->order < b->order;
}

struct sim_event *sim_at(struct sim *sim, int64_t at_us, sim_event_fn *fn, struct sim_proc *proc)
{
    if (sim->queue_count == sim->queue_capacity) {
        sim->queue_capacity = sim->queue_capacity ? sim->queue_capacity * 2 : 1024;
        sim->queue = realloc(sim->queue, sim->queue_capacity * sizeof *sim->queue);
    }
    struct sim_event event = {.at_us = at_us > sim->now_us ? at_us : sim->now_us,
                              .order = ++sim->order,
                              .fn = fn,
                              .proc = proc};
    size_t at = sim->queue_count++;
    while (at > 0 && before(&event, &sim->queue[(at - 1) / 2])) {
        sim->queue[at] = sim->queue[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    sim->queue[at] = event;
    return &sim->queue[at];
}

struct sim_event *sim_after(struct sim *sim, int64_t delay_us, sim_event_fn *fn,
                            struct sim_proc *proc)
{
    return sim_at(sim, sim->now_us + delay_us, fn, proc);
}

static struct sim_event take_first(struct sim *sim)
{
    struct sim_event first = sim->queue[0];
    struct sim_event last = sim->queue[--sim->queue_count];
    size_t at = 0;

    for (;;) {
        size_t child = at * 2 + 1;
        if (child >= sim->queue_count)
            break;
        if (child + 1 < sim->queue_count && before(&sim->queue[child + 1], &sim->queue[child]))
            child++;
        if (!before(&sim->queue[child], &last))
            break;
        sim->queue[at] = sim->queue[child];
        at = child;
    }
    sim->queue[at] = last;
    return first;
}

bool sim_is_calm(const struct sim *sim)
{
    return sim->now_us >= sim->calm_us;
}

/* --- story ------------------------------------------------------------------------------------ */

void sim_tell(struct sim *sim, const char *format, ...)
{
    va_list args;

    fprintf(sim->options.story, "%10.3f ", (double)sim->now_us / 1e6);
    va_start(args, format);
    vfprintf(sim->options.story, format, args);
    va_end(args);
    fputc('\n', sim->options.story);
}

void sim_broken(struct sim *sim, const char *invariant, const char *format, ...)
{
    va_list args;

    if (sim->failed)
        return;
    sim->failed = true;
    snprintf(sim->failure->invariant, sizeof sim->failure->invariant, "%s", invariant);
    va_start(args, format);
    vsnprintf(sim->failure->text, sizeof sim->failure->text, format, args);
    va_end(args);
    sim->failure->at_ms = sim->now_us / 1000;
    SIM_TELL(sim, "VIOLATION %s: %s", invariant, sim->failure->text);
}

/* --- one world -------------------------------------------------------------------------------- */

static void defer(struct sim_proc *proc, const struct sim_event *event)
{
    proc->deferred = realloc(proc->deferred, (proc->deferred_count + 1) * sizeof *event);
    proc->deferred[proc->deferred_count++] = *event;
}

static void dispatch(struct sim *sim, struct sim_event *event)
{
    sim->now_us = event->at_us;
    sim->stats->events++;
    if (event->proc != NULL && event->proc->alive && event->proc->frozen) {
        defer(event->proc, event);
        return; /* its data stays owned */
    }
    if (event->proc == NULL || event->proc->alive)
        event->fn(sim, event);
    free(event->data);
}

static void world_free(struct sim *sim)
{
    for (size_t i = 0; i < sim->queue_count; i++)
        free(sim->queue[i].data);
    for (size_t i = 0; i < sim->procs_count; i++)
        proc_free(sim->procs[i]);
    broker_free(sim);
    sim_store_free(sim);
    disk_free(sim);
    copy_free(sim);
    for (size_t i = 0; i < sim->dirs_count; i++)
        free(sim->dirs[i].manifest);
    free(sim->readers);
    free(sim->drops);
    free(sim->notices);
    free(sim->procs);
    free(sim->routes);
    relays_end(sim);
    free(sim->shards);
    free(sim->dirs);
    free(sim->queue);
    free(sim->words);
    arena_free(&sim->arena);
    arena_free(&sim->frame);
}

/* The arguments that replay the world that runs, for who has to tell them when it cannot end. */
static char running[192];
static unsigned world_limit_s; /* of this process's own time; 0: none */

static void world_begins(const struct sim_options *options)
{
    sim_arguments(options, running, sizeof running);
    setitimer(ITIMER_PROF, &(struct itimerval){.it_value.tv_sec = (time_t)world_limit_s}, NULL);
}

static void world_ends(void)
{
    setitimer(ITIMER_PROF, &(struct itimerval){.it_value.tv_sec = 0}, NULL);
    running[0] = '\0';
}

bool sim_run(const struct sim_options *options, struct sim_stats *stats,
             struct sim_failure *ret_failure)
{
    struct sim *sim = calloc(1, sizeof *sim);
    bool ok;

    world_begins(options);
    sim->options = *options;
    sim->stats = stats;
    sim->failure = ret_failure;
    sim->random = options->seed * UINT64_C(0x2545f4914f6cdd1d) + 1;
    sim->broker = &sim->brokers[0];
    arena_init(&sim->arena, 0);
    arena_init(&sim->frame, 0);
    keeps_plan_world(sim);
    net_plan(sim);
    relays_plan(sim);
    stats->keeping += sim->keeps;
    plan_focus(sim);
    job_plan(sim);
    plan_faults(sim);
    sim_store_create(sim);
    if (options->shared)
        shared_world(sim);
    else
        broker_start(sim);
    for (size_t i = 0; i < sim->jobs_count; i++)
        job_launch(sim, &sim->jobs[i]);
    sim_after(sim, 1000000, check_second, NULL);
    if (sim->keeps)
        sim_after(sim, 1000000, reader_comes, NULL);
    while (sim->queue_count > 0 && !sim->over && !sim->failed) {
        struct sim_event event = take_first(sim);
        dispatch(sim, &event);
    }
    if (!sim->failed)
        check_over(sim);
    sim_truth_tell(sim);
    stats->seeds++;
    stats->faults_met += sim->faults_met;
    stats->simulated_ms += (uint64_t)(sim->now_us / 1000);
    ok = !sim->failed;
    world_free(sim);
    free(sim);
    world_ends();
    return ok;
}

/* --- replay ----------------------------------------------------------------------------------- */

void sim_arguments(const struct sim_options *options, char *text, size_t size)
{
    const struct {
        bool is_on;
        const char *word;
    } words[] = {
        {options->sqlite, " --sqlite"},
        {options->focused, " --focused"},
        {options->put_back, " --put-back"},
        {options->hasty, " --hasty"},
        {options->slow_disk, " --slow-disk"},
        {options->shared, " --shared"},
        {options->power_cuts, " --power-cuts"},
        {options->relays, " --relays"},
        {options->suspects, " --suspects"},
        {options->turns, " --turns"},
        {options->lasting, " --lasting"},
        {options->healthy, " --healthy"},
        {options->layout == LAYOUT_SHARDED, " --layout sharded"},
        {options->layout == LAYOUT_REPLICATED, " --layout replicated"},
        {options->async == 0, " --async 0"},
        {options->async == 1, " --async 1"},
        {options->keeps == SIM_WITH, " --keeps 1"},
        {options->keeps == SIM_WITHOUT, " --keeps 0"},
    };
    FILE *out = fmemopen(text, size, "w");

    if (out == NULL)
        return;
    fprintf(out, "--seed %llu", (unsigned long long)options->seed);
    if (options->nodes > 0)
        fprintf(out, " --nodes %u", options->nodes);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (words[i].is_on)
            fputs(words[i].word, out);
    if (options->mutation != MUTANT_NONE)
        fprintf(out, " --mutant %d", (int)options->mutation);
    fclose(out);
}

void sim_print_story(const struct sim_options *options, size_t lines, FILE *out)
{
    struct sim_options again = *options;
    struct sim_stats stats = {0};
    struct sim_failure failure;
    char *text = NULL;
    size_t size = 0;

    again.story = open_memstream(&text, &size);
    if (again.story == NULL)
        return;
    sim_run(&again, &stats, &failure);
    fclose(again.story);
    const char *from = text + size;
    while (from > text && lines > 0)
        if (*--from == '\n' && from + 1 < text + size)
            lines--;
    fputs(from > text ? from + 1 : text, out);
    free(text);
}

/* For a signal's handler: the world that runs, and how to run it again. */
static void tell_running(const char *what, int signo)
{
    char text[320];
    int size =
        snprintf(text, sizeof text, "%s (signal %d) in the world of:\n  ./tools/dev sim %s\n", what,
                 signo, running);

    if (size > 0 && write(STDERR_FILENO, text, (size_t)size) < 0)
        _exit(2);
}

static void on_abort(int signo)
{
    tell_running("a core ended the process", signo);
    signal(signo, SIG_DFL);
    raise(signo);
}

static void on_world_limit(int signo)
{
    tell_running("too much processor time went by", signo);
    _exit(1);
}

void sim_guard_aborts(void)
{
    signal(SIGABRT, on_abort);
    signal(SIGSEGV, on_abort);
}

void sim_limit_worlds(unsigned seconds)
{
    world_limit_s = seconds;
    signal(SIGPROF, on_world_limit);
}
