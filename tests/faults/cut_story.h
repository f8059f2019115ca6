/* cut_story - what two ranks, `sharded`, do with one host's disk, and what of it a power cut may
 * not take: a directory is prepared, round 1 is saved and committed, round 2 is saved and aborted,
 * round 3 is saved and committed, round 1 is deleted, round 3 is moved to a folder. Owns: the steps
 * in their order, what was told to others behind each (struct cut_told), and the next launch, which
 * runs on what a power cut left. One step may be begun by a process that dies in it (struct
 * cut_death); the next process does it again, and the story ends soon after. Never: the record of
 * calls, and the states made of it (disk_log.h). */
#ifndef TESTS_FAULTS_CUT_STORY_H
#define TESTS_FAULTS_CUT_STORY_H

#include <muster/checkpoint.h>

#include "node/shard/dir.h"
#include "node/shard/shard.h"
#include "tests/faults/disk_log.h"
#include "tests/support/scratch.h"

#define CUT_ROUNDS 4 /* 1 to 3 */
#define CUT_FLOATS 100
#define CUT_AGAIN "again" /* the scene of the process that does a step again */

struct cut_told {
    bool prepared; /* HELLO told the directory's number */
    uint64_t number;
    struct cut_round_told {
        bool opened;
        bool saved[2]; /* SAVED; with both the broker may have committed */
        bool named;    /* MANIFEST_DONE */
        bool aborted;  /* the abort was journaled */
        bool removed;  /* what is aborted is gone */
        bool deleting; /* it may be gone */
        bool deleted;  /* DELETED */
    } rounds[CUT_ROUNDS];
};

struct cut_death {
    const char *step; /* NULL: nobody dies */
    uint64_t at;      /* in its n-th file call: that and all later ones fail */
    bool overtaken;   /* it lives: behind its n-th change another process does the whole step */
    const char *path; /* below the story's directory: see cut_story.fits; or NULL */
    bool gone;
};

struct cut_story {
    char dir[SCRATCH_PATH_MAX], root[SCRATCH_PATH_MAX];
    struct disk_log *log;
    struct cut_told told;
    struct cut_round {
        struct shard_files files[2];
        char dir[FS_PATH_MAX], path[FS_PATH_MAX];
        char *text; /* the manifest that the broker makes of its rows */
        size_t size;
    } rounds[CUT_ROUNDS];
    struct muster_state *state;
    int64_t number;
    float floats[CUT_FLOATS];
    struct cut_death death;
    bool died; /* or was overtaken; false: the step has fewer calls */
    bool fits; /* when it died the path was there, or gone */
    bool over; /* enough was told since */
    unsigned told_since;
    uint64_t seed;    /* of the step's random numbers: the same in each story */
    char wrong[1400]; /* "" = nothing */
};

/* Tells and records it in `dir`, which is empty. */
void cut_story_tell(struct cut_story *story, const char *dir, const struct cut_death *death);
/* The next launch on what is there now, given what was told (struct cut_told, NULL: nothing).
 * False: see wrong. */
bool cut_story_survived(void *story, const void *told);
void cut_story_end(struct cut_story *story); /* idempotent */

#endif
