/* own_allocations - each allocation of the broker's own code is refused once. A refusal in the core
 * may end the process (it is crash-only), so each run is a process of its own, on real files; the
 * next one goes on. */
#include "tests/faults/own_allocations.h"

#include "broker/json_memory.h"
#include "tests/faults/allocations.h"
#include "tests/faults/story.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/scratch.h"

#define EXIT_ENDED 75 /* the process ended by itself after an error */
#define RUNS_MAX 4

/* What the runs of one point share: the story itself, of which only what has no pointer counts. */
static struct story *shared;

static void killed(struct story *story)
{
    (void)story;
    _exit(EXIT_ENDED);
}

static bool alive(const struct story *story)
{
    (void)story;
    return true;
}

static void mend(struct story *story)
{
    (void)story;
    allocations_pause(true);
}

static void look(struct story *story, bool begin)
{
    if (begin || !story->mended)
        allocations_pause(begin);
}

static const struct story_hooks hooks = {
    .killed = killed, .alive = alive, .mend = mend, .look = look};

/* A life's memory goes with its process; what was told and what nodes know stays. */
static void carry_over(const struct story *before, struct story *mine)
{
    const char *path = mine->path;
    struct story next;

    story_end(mine);
    story_begin(&next, before->plot, path, &hooks, NULL);
    story_carry_over(&next, before);
    *mine = next;
}

/* How the process ended: 0, EXIT_ENDED, or a signal as a negative number. */
static int run(uint64_t at)
{
    const struct rlimit no_core = {0, 0};
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        bool good;

        setrlimit(RLIMIT_CORE, &no_core);
        allocations_plan(ALLOCATIONS_OWN, at, false);
        good = story_tell(shared);
        shared->retries = (unsigned)allocations_hits();
        _exit(good ? 0 : 1);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        abort();
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

/* True: the point was met. */
static bool tell(const struct story_plot *plot, uint64_t at, bool *good, unsigned *aborts)
{
    static struct story mine; /* whose memory is this process's */
    char dir[SCRATCH_PATH_MAX];
    char path[SCRATCH_PATH_MAX];
    bool hit = false;
    int how = EXIT_ENDED;

    scratch_make(dir);
    snprintf(path, sizeof path, "%s", scratch_path(dir, "muster.db"));
    story_begin(&mine, plot, path, &hooks, NULL);
    for (int i = 0; i < RUNS_MAX && (how == EXIT_ENDED || how == -SIGABRT); i++) {
        *shared = mine;
        how = run(i == 0 ? at : 0);
        hit = hit || how != 0 || shared->retries > 0;
        *aborts += how == -SIGABRT;
        if (how != 0)
            carry_over(shared, &mine);
    }
    if (how != 0) {
        printf("    WRONG, allocation %" PRIu64 ": it ended with %d: %s\n", at, how, shared->wrong);
        *good = false;
    }
    story_end(&mine);
    scratch_remove(dir);
    return hit;
}

struct sweep {
    const char *name;
    const struct story_plot *plot;
    uint64_t stride, points_min;
};

static const struct sweep few[] = {{"preempt", &story_preempt, 1, 105},
                                   {"keep", &story_keep, 13, 23},
                                   {"tasks", &story_tasks, 1, 29}};
static const struct sweep all[] = {{"keep", &story_keep, 1, 296}, {"tasks", &story_tasks, 1, 29}};

/* How many points. */
static uint64_t run_sweep(const struct sweep *sweep, bool *good)
{
    uint64_t points = 0;
    unsigned aborts = 0;

    for (uint64_t at = 1; tell(sweep->plot, at, good, &aborts); at += sweep->stride)
        points++;
    printf("%-8s %4" PRIu64 " points (never below %" PRIu64 "), %u of them ended the process\n",
           sweep->name, points, sweep->points_min, aborts);
    fflush(stdout);
    *good = *good && points >= sweep->points_min;
    return points;
}

int own_allocations_sweep(bool whole)
{
    const struct sweep *sweeps = whole ? all : few;
    size_t count = whole ? sizeof all / sizeof *all : sizeof few / sizeof *few;
    uint64_t points = 0;
    bool good = true;

    allocations_prepare();
    json_memory_prepare(); /* as musterd does */
    if (access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 1);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        abort();
    for (size_t i = 0; i < count; i++)
        points += run_sweep(&sweeps[i], &good);
    printf("%" PRIu64 " points in all\n", points);
    return good ? 0 : 1;
}
