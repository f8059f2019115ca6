/* A power cut of the host that the checkpoints are on, at each point of what ranks do with its
 * disk: each state that the file system may be left in (disk_log.h) is given to the next launch,
 * which must find all that was told. Each fsync is needed: without it something is lost, or there
 * is a line here that says why it is made. */
#include "tests/faults/cut_story.h"
#include "tests/faults/file_calls.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STATES_MAX 64 /* a point */
#define DEATHS_MAX 80 /* a step */
#define MUSTER_DIR "/a/checkpoints/.muster"

static struct disk_seen *seen; /* of all tests: a state that was good once is not tried again */

struct fixture {
    char dir[SCRATCH_PATH_MAX];
    struct cut_story story;
    char text[4096]; /* what was forgotten */
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    scratch_make(f->dir);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    cut_story_end(&f->story);
    scratch_remove(f->dir);
    free(f);
    return 0;
}

static int make_seen(void **state)
{
    (void)state;
    seen = disk_seen_create();
    return 0;
}

static int drop_seen(void **state)
{
    (void)state;
    disk_seen_destroy(&seen);
    return 0;
}

static void tell(struct fixture *f, const struct cut_death *death)
{
    scratch_remove(f->dir);
    scratch_make(f->dir);
    cut_story_tell(&f->story, f->dir, death);
    assert_string_equal(f->story.wrong, "");
}

static bool survives(struct fixture *f)
{
    return disk_log_each(f->story.log, seen, STATES_MAX, cut_story_survived, &f->story, f->text,
                         sizeof f->text);
}

static void must_survive(struct fixture *f)
{
    if (!survives(f))
        fail_msg("%s\n%s", f->story.wrong, f->text);
}

static void nothing_that_was_told_is_lost_by_a_power_cut(void **state)
{
    struct fixture *f = *state;
    struct disk_counts counts;

    tell(f, NULL);
    must_survive(f);
    counts = disk_log_counts(f->story.log);
    print_message("    %" PRIu64 " calls, %" PRIu64 " points, %" PRIu64 " states\n", counts.calls,
                  counts.points, counts.states);
    assert_true(counts.states > 300);
    cut_story_end(&f->story);
}

static const char *const steps[] = {"prepare", "open",   "commit",
                                    "remove",  "delete", "move to a folder"};

static void die_at_each_call(struct fixture *f, const char *step, bool overtaken)
{
    struct cut_death death = {.step = step, .overtaken = overtaken};
    uint64_t states = 0;
    bool died;

    do {
        assert_true(++death.at < DEATHS_MAX);
        tell(f, &death);
        must_survive(f);
        died = f->story.died;
        states += disk_log_counts(f->story.log).states;
        cut_story_end(&f->story);
    } while (died);
    print_message("    %s: %" PRIu64 " points, %" PRIu64 " states\n", step, death.at - 1, states);
    assert_true(death.at > (overtaken ? 4 : 10));
}

static void nor_if_a_process_died_in_the_step_before(void **state)
{
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        die_at_each_call(*state, steps[i], false);
}

/* Two ranks that repair one round, say; both are told that it is done. */
static void nor_if_two_processes_do_a_step_at_once(void **state)
{
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        die_at_each_call(*state, steps[i], true);
}

/* --- each sync -------------------------------------------------------------------------------- */

static bool is_lost_without(struct fixture *f, const struct disk_drop *drop)
{
    bool lost;

    assert_true(disk_log_drop(f->story.log, drop) > 0);
    lost = !survives(f);
    disk_log_drop(f->story.log, &(struct disk_drop){NULL, NULL, 0});
    return lost;
}

/* A sync that another one makes up for, in this story. */
static const struct made_up_for {
    struct disk_drop sync, together; /* together.scene NULL: nothing depends on it */
} made_up_for[] = {
    /* dir_prepare proves that the disk takes bytes, and keeps none of them */
    {{"prepare", MUSTER_DIR "/tmp-*", 1}, {NULL, NULL, 0}},
    /* made for the directory, and once more for .muster in it */
    {{"prepare", "/a", 0}, {"prepare", "/a", 0}},
    {{"prepare", "/a/checkpoints", 0}, {"prepare", "/a/checkpoints", 0}},
    /* both ranks open the round: either may be alone */
    {{"open", MUSTER_DIR, 0}, {"open*", MUSTER_DIR, 0}},
    {{"open by rank 1", MUSTER_DIR, 0}, {"open*", MUSTER_DIR, 0}},
    {{"open", MUSTER_DIR "/1-*", 0}, {"open*", MUSTER_DIR "/1-*", 0}},
    {{"open by rank 1", MUSTER_DIR "/1-*", 0}, {"open*", MUSTER_DIR "/1-*", 0}},
    /* fs_make_dirs for the folder looks after what is above it, too */
    {{"move to a folder", "/a", 0}, {NULL, NULL, 0}},
    /* the folder's name, which the rename's sync of the same directory has */
    {{"move to a folder", "/a/checkpoints", 1}, {"move to a folder", "/a/checkpoints", 0}},
};

static bool fits(const char *pattern, const char *text)
{
    const size_t length = strlen(pattern);

    return pattern[length - 1] == '*' ? strncmp(pattern, text, length - 1) == 0
                                      : strcmp(pattern, text) == 0;
}

/* Which of that path in that scene, from 1. */
static unsigned number_of(const struct disk_log *log, size_t sync)
{
    const char *scene, *path, *other_scene, *other_path;
    unsigned n = 1;

    assert_true(disk_log_sync(log, sync, &scene, &path));
    for (size_t i = 0; i < sync && disk_log_sync(log, i, &other_scene, &other_path); i++)
        n += strcmp(scene, other_scene) == 0 && strcmp(path, other_path) == 0;
    return n;
}

/* What is to be dropped instead of one sync alone; false: nothing depends on it. */
static bool instead_of(struct disk_drop *drop)
{
    for (size_t i = 0; i < sizeof made_up_for / sizeof *made_up_for; i++) {
        const struct disk_drop *sync = &made_up_for[i].sync;

        if (!fits(sync->scene, drop->scene) || !fits(sync->path, drop->path) ||
            (sync->n != 0 && sync->n != drop->n))
            continue;
        *drop = made_up_for[i].together;
        return drop->scene != NULL;
    }
    return true;
}

static void without_any_one_sync_something_is_lost(void **state)
{
    struct fixture *f = *state;
    const char *scene, *path;
    size_t i;

    tell(f, NULL);
    must_survive(f);
    for (i = 0; disk_log_sync(f->story.log, i, &scene, &path); i++) {
        struct disk_drop drop = {scene, path, number_of(f->story.log, i)};

        if (instead_of(&drop) && !is_lost_without(f, &drop))
            fail_msg("nothing is lost without the sync of \"%s\" in \"%s\" (number %u)", path,
                     scene, drop.n);
    }
    print_message("    %zu syncs\n", i);
    assert_true(i > 50);
    cut_story_end(&f->story);
}

/* Those that only a process makes that finds what another one left, who died behind a name and
 * before its sync. */
static const struct again {
    struct cut_death death;
    struct disk_drop sync;
} again[] = {
    {{.step = "prepare", .path = "a"}, {CUT_AGAIN, "", 0}},
    {{.step = "prepare", .path = "a/checkpoints"}, {CUT_AGAIN, "/a", 0}},
    {{.step = "prepare", .path = "a/checkpoints/.muster"}, {CUT_AGAIN, "/a/checkpoints", 0}},
    {{.step = "prepare", .path = "a/checkpoints/.muster/NUMBER"}, {CUT_AGAIN, MUSTER_DIR, 0}},
    {{.step = "open", .path = "a/checkpoints/.muster/1-1"}, {CUT_AGAIN, MUSTER_DIR, 0}},
    {{.step = "open", .path = "a/checkpoints/.muster/1-1/ROUND"},
     {CUT_AGAIN, MUSTER_DIR "/1-1", 0}},
    {{.step = "commit", .path = "a/checkpoints/.muster/1-1/manifest.json"},
     {CUT_AGAIN, MUSTER_DIR "/1-1", 0}},
    {{.step = "commit", .path = "a/checkpoints/12"}, {CUT_AGAIN, "/a/checkpoints", 0}},
    {{.step = "commit", .path = "a/checkpoints/12"}, {CUT_AGAIN, MUSTER_DIR, 0}},
    {{.step = "delete", .path = "a/checkpoints/12", .gone = true},
     {CUT_AGAIN, "/a/checkpoints", 0}},
    {{.step = "delete", .path = "a/checkpoints/12", .gone = true}, {CUT_AGAIN, MUSTER_DIR, 0}},
    {{.step = "move to a folder", .path = "a/checkpoints/36", .gone = true},
     {CUT_AGAIN, "/a/checkpoints", 0}},
    {{.step = "move to a folder", .path = "a/checkpoints/36", .gone = true},
     {CUT_AGAIN, "/a/checkpoints/old", 0}},
};

static void without_the_sync_of_what_a_dead_process_left_something_is_lost(void **state)
{
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof again / sizeof *again; i++) {
        struct cut_death death = again[i].death;

        while (assert_true(++death.at < DEATHS_MAX), tell(f, &death), !f->story.fits)
            cut_story_end(&f->story);
        if (!is_lost_without(f, &again[i].sync))
            fail_msg("nothing is lost without the sync of \"%s\" behind a death in \"%s\" with "
                     "\"%s\"",
                     again[i].sync.path, death.step, death.path);
        cut_story_end(&f->story);
    }
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(nothing_that_was_told_is_lost_by_a_power_cut),
        TEST(nor_if_a_process_died_in_the_step_before),
        TEST(nor_if_two_processes_do_a_step_at_once),
        TEST(without_any_one_sync_something_is_lost),
        TEST(without_the_sync_of_what_a_dead_process_left_something_is_lost),
    };

    if (access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 1);
    return cmocka_run_group_tests(tests, make_seen, drop_seen);
}
