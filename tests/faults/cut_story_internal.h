/* cut_story_internal - shared by cut_story.c and cut_story_after.c alone. */
#ifndef TESTS_FAULTS_CUT_STORY_INTERNAL_H
#define TESTS_FAULTS_CUT_STORY_INTERNAL_H

#include "tests/faults/cut_story.h"

#define CUT_JOB "words"
#define CUT_NONCE 0xfeedu
#define CUT_FOLDER "old" /* where round 3 is moved */

int64_t cut_story_step(uint64_t round);
enum muster_status cut_story_delete(struct cut_story *story, uint64_t round,
                                    struct muster_error *err);
/* The first thing that is wrong is kept; err may be NULL. */
void cut_story_wrong(struct cut_story *story, const char *what, uint64_t round,
                     const struct muster_error *err);

#endif
