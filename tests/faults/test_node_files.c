/* Each file call of a node's checkpoint code fails, one in each run: the result is a named error
 * and no torn file under a name that counts, no descriptor stays open, and what is done again
 * succeeds. */
#include "tests/faults/file_calls.h"
#include "tests/faults/node_story.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ROOM                                                                                \
    (FILE_CALL_OPEN | FILE_CALL_WRITE | FILE_CALL_SYNC | FILE_CALL_CLOSE | FILE_CALL_MAKE | \
     FILE_CALL_RENAME)
#define TRANSFER (FILE_CALL_WRITE | FILE_CALL_READ)
#define INTERRUPTED (TRANSFER | FILE_CALL_OPEN | FILE_CALL_SYNC | FILE_CALL_CLOSE | FILE_CALL_LIST)

static const struct sweep {
    const char *name;
    unsigned calls;
    int code;
    bool dies;     /* every later call fails too: what the disk holds when a process dies there */
    bool no_error; /* nothing may be noticed at all */
    bool to_trash; /* the checkpoint is moved to a folder in the end, else removed */
    uint64_t points_min;
} sweeps[] = {
    {"EIO", FILE_CALL_ANY, EIO, false, false, true, 275},
    {"ENOSPC", ROOM, ENOSPC, false, false, true, 155},
    {"EDQUOT", ROOM, EDQUOT, false, false, false, 151},
    {"EMFILE", FILE_CALL_OPEN, EMFILE, false, false, false, 49},
    {"short transfer", TRANSFER, FILE_CALL_SHORT, false, true, false, 35},
    {"interrupted", INTERRUPTED, EINTR, false, true, true, 200},
    {"death of the process", FILE_CALL_ANY, EIO, true, false, false, 293},
};

static bool wrong(const struct sweep *sweep, uint64_t at, const char *what)
{
    printf("    WRONG, %s of call %" PRIu64 ": %s\n", sweep->name, at, what);
    return false;
}

static bool tell(const struct sweep *sweep, uint64_t at, const char *dir, struct node_story *story,
                 uint64_t *ret_hits)
{
    bool good;

    node_story_begin(story, dir, file_calls_begin, file_calls_end);
    story->to_trash = sweep->to_trash;
    story->may_leave = (sweep->calls & FILE_CALL_REMOVE) != 0;
    file_calls_plan(sweep->calls, sweep->code, at, sweep->dies);
    good = node_story_tell(story, !sweep->dies);
    *ret_hits = file_calls_hits();
    if (good && sweep->dies) {
        file_calls_plan(FILE_CALL_ANY, 0, 0, false);
        good = node_story_resume(story);
    }
    return good;
}

/* True: the run met its fault. */
static bool run(const struct sweep *sweep, uint64_t at, bool *good, unsigned *failures)
{
    char dir[SCRATCH_PATH_MAX];
    struct node_story story;
    size_t descriptors = scratch_count("/proc/self/fd");
    uint64_t hits = 0;

    scratch_make(dir);
    *good = tell(sweep, at, dir, &story, &hits);
    if (!*good)
        wrong(sweep, at, story.wrong);
    if (scratch_count("/proc/self/fd") != descriptors)
        *good = wrong(sweep, at, "a descriptor stays open");
    if (sweep->no_error && story.failures > 0)
        *good = wrong(sweep, at, "it is noticed");
    *failures += story.failures;
    node_story_end(&story);
    scratch_remove(dir);
    return hits > 0;
}

static bool sweep_all(const struct sweep *sweep)
{
    uint64_t points = 0;
    unsigned failures = 0;
    bool all_good = true;
    bool good = true;

    while (run(sweep, points + 1, &good, &failures)) {
        points++;
        all_good = all_good && good;
    }
    printf("%-24s %5" PRIu64 " points, %u errors told (never below %" PRIu64 ")%s\n", sweep->name,
           points, failures, sweep->points_min, points < sweep->points_min ? ": FEWER" : "");
    fflush(stdout);
    return all_good && good && points >= sweep->points_min;
}

int main(void)
{
    bool good = true;

    if (access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 1); /* a thousand syncs of a real disk take minutes */
    for (size_t i = 0; i < sizeof sweeps / sizeof *sweeps; i++)
        good = sweep_all(&sweeps[i]) && good;
    return good ? 0 : 1;
}
