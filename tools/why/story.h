/* story - a round with its further attempts, or a notice, told in sentences.
 * Owns: the rows of the story and its sentences.
 * Never: the clock, sockets, output. Every sentence comes from rows alone, so it is the same from a
 * broker and from the file of one that died. Reasons are the broker's own words, used as they are.
 */
#ifndef TOOLS_STORY_H
#define TOOLS_STORY_H

#include <muster/client.h>

struct story {
    /* filled by the caller, who owns all rows; NULL where there are none */
    const char *job;
    int64_t now_unix_ms;
    muster_rows_t *rounds;        /* the attempts of one cause, in order */
    muster_rows_t **participants; /* of each of them */
    muster_rows_t *notices;       /* of the generation; those that do not belong are left out */
    const char *notice_id;      /* the story of this notice; NULL: of the rounds, or of a failure if
                                   there are none */
    int64_t served_by;          /* the round that was over when this notice came; 0: none */
    muster_rows_t *incidents;   /* of the generation */
    muster_rows_t *generations; /* the story's, and those after it */
    muster_rows_t *nodes;       /* of the generation */
    muster_rows_t *before;      /* those before, and it, if it began no step */
    muster_rows_t *checkpoint;  /* the one that the last round made, if any */
    muster_rows_t *latest;      /* what the job resumes from, as things stand */
    muster_rows_t *job_row;     /* with the plan of the notices that stand */
    /* made by story_tell */
    char **lines; /* owned; "" separates paragraphs */
    size_t lines_count;
    bool fell_back_told;
    bool broken; /* out of memory: lines are missing */
};

void story_tell(struct story *story);

/* Does the event tell of something that went wrong by itself, without a round? */
bool story_is_failure(const struct muster_event_row *event);

/* Frees lines and rows. */
void story_free(struct story *story);

/* Does the notice belong to the story? (It caused, joined or was withdrawn during its rounds.) */
bool story_has_notice(const struct story *story, const struct muster_notice_row *notice);

#endif
