/* store_sweep - see store_sweep.h. */
#include "tests/faults/store_sweep.h"

#include "tests/faults/allocations.h"
#include "tests/faults/story.h"
#include "tests/support/scratch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct machine {
    uint64_t seed;
    struct mem_vfs *disk;
    struct fault_vfs *faults;
};

static uint64_t next_random(void *arg)
{
    uint64_t *seed = arg;
    uint64_t z = (*seed += 0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

static void killed(struct story *story)
{
    struct machine *machine = story->arg;

    mem_vfs_kill(machine->disk); /* after a power cut there is nothing left to kill */
    store_close(&story->store);
    mem_vfs_up(machine->disk);
}

static bool alive(const struct story *story)
{
    const struct machine *machine = story->arg;

    return mem_vfs_is_up(machine->disk);
}

static enum fault no_fault(void *arg, enum fault_call call, const char *path)
{
    (void)arg;
    (void)call;
    (void)path;
    return FAULT_NONE;
}

static void mend(struct story *story)
{
    const struct machine *machine = story->arg;

    fault_vfs_choose(machine->faults, no_fault, NULL);
    allocations_pause(true);
}

static void look(struct story *story, bool begin)
{
    const struct machine *machine = story->arg;

    if (!begin && story->mended)
        return;
    fault_vfs_choose(machine->faults, begin ? no_fault : NULL, NULL);
    allocations_pause(begin);
}

static const struct story_hooks hooks = {
    .killed = killed, .alive = alive, .mend = mend, .look = look};

/* Whatever failed in the story, what was told in it outlives the power. */
static bool outlives_the_power(struct story *story)
{
    const struct machine *machine = story->arg;

    story->mended = true;
    mend(story);
    mem_vfs_power_cut(machine->disk, 0);
    store_close(&story->store);
    mem_vfs_up(machine->disk);
    if (store_open(story->path, &story->options, &story->store, &story->err) != MUSTER_OK)
        story_wrong(story, "after a power cut: %s", story->err.text);
    else
        story_verify(story);
    return story->wrong[0] == '\0';
}

/* A database without a row, that a start made; NULL: it is to be made by the story. Owned. */
struct image {
    void *content;
    size_t size;
};

static struct image make_image(const char *path)
{
    struct machine machine = {.seed = 1};
    const struct store_options options = {.allow_network_fs = true};
    struct image image = {NULL, 0};
    struct store *store = NULL;
    struct muster_error err;

    machine.disk = mem_vfs_create("disk", next_random, &machine.seed);
    machine.faults = fault_vfs_create(mem_vfs_sqlite(machine.disk), machine.disk);
    if (store_open(path, &options, &store, &err) != MUSTER_OK) {
        fprintf(stderr, "no database to begin with: %s\n", err.text);
        abort();
    }
    store_close(&store);
    const void *content = mem_vfs_content(machine.disk, path, &image.size);
    image.content = malloc(image.size);
    memcpy(image.content, content, image.size);
    fault_vfs_destroy(&machine.faults);
    mem_vfs_destroy(&machine.disk);
    return image;
}

/* One run. True: it met its fault. */
static bool tell(const struct store_sweep *sweep, const char *path, const struct image *image,
                 uint64_t at, struct store_sweep_result *result)
{
    struct machine machine = {.seed = at};
    struct story story;
    bool hit;

    machine.disk = mem_vfs_create("disk", next_random, &machine.seed);
    machine.faults = fault_vfs_create(mem_vfs_sqlite(machine.disk), machine.disk);
    if (image->content != NULL)
        mem_vfs_put(machine.disk, path, image->content, image->size);
    fault_vfs_keep(machine.faults, sweep->keep);
    if (sweep->memory)
        allocations_plan(ALLOCATIONS_SQLITE, at, sweep->sticky);
    else
        fault_vfs_plan(machine.faults, sweep->calls, sweep->fault, at, sweep->sticky);
    story_begin(&story, sweep->plot != NULL ? sweep->plot : &story_preempt, path, &hooks, &machine);
    if (sweep->settings != NULL)
        story.settings = sweep->settings;
    story.tell_first = sweep->tell_first;
    if (!story_tell(&story) || (sweep->then_cut && !outlives_the_power(&story))) {
        if (result->wrong == 0)
            snprintf(result->first, sizeof result->first, "call %" PRIu64 ": %s", at, story.wrong);
        result->wrong++;
    }
    hit = (sweep->memory ? allocations_hits() : fault_vfs_hits(machine.faults)) > 0;
    result->calls = sweep->memory ? allocations_count() : fault_vfs_calls(machine.faults);
    allocations_plan(0, 0, false);
    story_end(&story);
    fault_vfs_destroy(&machine.faults);
    mem_vfs_destroy(&machine.disk);
    return hit;
}

struct store_sweep_result store_sweep_run(const struct store_sweep *sweep)
{
    struct store_sweep_result result = {.points = 0};
    uint64_t stride = sweep->stride == 0 ? 1 : sweep->stride;
    char dir[SCRATCH_PATH_MAX];
    struct image image = {NULL, 0};
    const char *path;

    scratch_make(dir);
    path = scratch_path(dir, "muster.db"); /* only the lock file is really there */
    if (sweep->there)
        image = make_image(path);
    for (uint64_t at = sweep->from == 0 ? 1 : sweep->from; sweep->to == 0 || at <= sweep->to;
         at += stride) {
        if (!tell(sweep, path, &image, at, &result))
            break;
        result.points++;
    }
    free(image.content);
    scratch_remove(dir);
    return result;
}

/* How many points there would be: one run without a fault counts the calls. */
static struct store_sweep_result count_points(const struct store_sweep *sweep)
{
    const uint64_t stride = sweep->stride == 0 ? 1 : sweep->stride;
    struct store_sweep once = *sweep;
    struct store_sweep_result result;

    once.from = UINT64_MAX / 2;
    once.then_cut = false;
    result = store_sweep_run(&once);
    result.points = (result.calls + stride - 1) / stride;
    return result;
}

/* Prints a line; false when the run or its count is not what it must be. */
static bool report(const struct store_sweep *sweep, const struct store_sweep_result *result)
{
    bool fewer = result->points < sweep->points_min;
    bool unseen = sweep->must_fail && result->wrong == 0;
    bool wrong = !sweep->must_fail && result->wrong > 0;

    printf("%-44s %5" PRIu64 " points of %5" PRIu64 " calls (never below %" PRIu64 ")%s\n",
           sweep->name, result->points, result->calls, sweep->points_min, fewer ? ": FEWER" : "");
    if (unseen)
        printf("    NOT SEEN: this must go wrong, and nothing noticed\n");
    if (sweep->must_fail && !unseen)
        printf("    seen %" PRIu64 " times, as it must be; first: %s\n", result->wrong,
               result->first);
    if (wrong)
        printf("    WRONG %" PRIu64 " times; first: %s\n", result->wrong, result->first);
    fflush(stdout);
    return !fewer && !unseen && !wrong;
}

int store_sweep_all(const struct store_sweep *sweeps, size_t count)
{
    const bool only_counted = getenv("MUSTER_COUNT_SWEEPS") != NULL;
    uint64_t points = 0;
    bool good = true;

    if (access("/dev/shm", W_OK) == 0) /* the lock and the mark are synced in each run */
        setenv("TMPDIR", "/dev/shm", 1);
    for (size_t i = 0; i < count; i++) {
        if (only_counted && sweeps[i].must_fail)
            continue;
        struct store_sweep_result result =
            only_counted ? count_points(&sweeps[i]) : store_sweep_run(&sweeps[i]);
        good = report(&sweeps[i], &result) && good;
        points += sweeps[i].must_fail ? 0 : result.points;
    }
    printf("%" PRIu64 " points in all\n", points);
    return good ? 0 : 1;
}
