/* node_story - what a node does with the disk, from dir_prepare to a restore, while calls fail
 * under it: two ranks, `sharded`, rank 0 with the default save, rank 1 with files of its own; then
 * an aborted round, and the checkpoint is deleted. Owns: the steps in their order, what a node does
 * after each failure (the round is aborted and a new one made; a commit, a restore, a removal is
 * tried again), and what must be true on the disk meanwhile. The caller makes calls fail: between
 * `begin` and `end` only the product's own calls happen. */
#ifndef TESTS_FAULTS_NODE_STORY_H
#define TESTS_FAULTS_NODE_STORY_H

#include <muster/checkpoint.h>

#include "node/shard/dir.h"
#include "node/shard/shard.h"
#include "tests/support/scratch.h"

#define NODE_STORY_STATUSES 64

struct node_story {
    char dir[SCRATCH_PATH_MAX];
    char root[SCRATCH_PATH_MAX];
    void (*begin)(void);
    void (*end)(void);
    bool saved;     /* the broker has committed; the directory may not have its name yet */
    bool deleting;  /* the broker has decided that the checkpoint goes */
    bool to_trash;  /* to a folder: asked for by the caller */
    bool may_leave; /* removals may fail too: what could not be written need not be gone */
    uint64_t round;
    uint64_t committed; /* the round of the checkpoint */
    int64_t number;     /* rank 0's state */
    struct muster_state *state;
    struct shard_files files[2];
    char round_dir[FS_PATH_MAX];
    char path[FS_PATH_MAX]; /* of the checkpoint */
    unsigned failures;      /* steps that ended in an error */
    unsigned statuses[NODE_STORY_STATUSES];
    char wrong[1200]; /* "" = nothing */
};

/* In `dir`, which holds what an earlier story left. */
void node_story_begin(struct node_story *story, const char *dir, void (*begin)(void),
                      void (*end)(void));
/* All of it. patient: steps that fail are done again; else the story ends with the first failure,
 * as if the process had died. False: see wrong. */
bool node_story_tell(struct node_story *story, bool patient);
/* The next generation, where an impatient story died: a committed round is put in place and
 * restored. */
bool node_story_resume(struct node_story *story);
void node_story_end(struct node_story *story);

#endif
