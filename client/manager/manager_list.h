/* manager_list - which checkpoints there are, as a manager's caller may see them: asked of a
 * broker, or read from the manifests of a directory. Owns: the list and its strings, the connection
 * to the broker. Never: a decision; a checkpoint that is not committed, or is superseded, in the
 * list.
 */
#ifndef CLIENT_MANAGER_LIST_H
#define CLIENT_MANAGER_LIST_H

#include <muster/manager.h>

#include "schema/arena.h"

struct query_link;

struct manager_source { /* texts are borrowed */
    const char *broker; /* NULL: the directory's manifests are read */
    const char *job;    /* NULL, with a directory: of whatever job */
    const char
        *directory; /* beside a broker: where the checkpoints are now, if its paths lead nowhere */
    int timeout_ms;
    bool readable_only;             /* what has no manifest yet cannot be read: it is not listed */
    struct query_link *link;        /* opened with the first question */
    bool (*interrupted)(void *arg); /* NULL = none; asked while an answer is waited for */
    void *interrupted_arg;
    bool broken_off; /* it said yes in the newest question or wait */
};

struct manager_unlisted { /* a checkpoint that does not count */
    int64_t step;         /* index */
    const char *state;    /* writing, failed, superseded, deleted */
};

struct manager_list {
    struct muster_checkpoint_info *items; /* by step, one a step */
    size_t count;
    struct manager_unlisted *unlisted; /* of a directory only what is superseded */
    size_t unlisted_count;
    size_t hidden; /* committed, but left out by readable_only */
    uint64_t
        unplaced; /* the newest whose manifest and final name are not there yet, 0 = none ... */
    uint64_t unplaced_generation; /* ... and its launch */
    struct arena arena;           /* holds all of it */
};

void manager_list_init(struct manager_list *list);
void manager_list_free(struct manager_list *list);
/* Reads again; on failure the list is empty. Blocks at most the timeout for a broker's answer, or
 * for the disk. Statuses of muster_client_checkpoints, or E_NOT_FOUND, E_IO of the directory. */
enum muster_status manager_list_read(struct manager_list *list, struct manager_source *source,
                                     struct muster_error *err);
/* The same, but of a broker only the newest is asked for. */
enum muster_status manager_list_read_newest(struct manager_list *list,
                                            struct manager_source *source,
                                            struct muster_error *err);
const struct muster_checkpoint_info *manager_list_find(const struct manager_list *list,
                                                       int64_t step);
const struct muster_checkpoint_info *manager_list_newest(const struct manager_list *list);
/* Why ranks of this generation could not restore what they were told to: the last text, "" if all
 * could. */
enum muster_status manager_source_restore_failed(struct manager_source *source, uint64_t generation,
                                                 char ret_text[MUSTER_ERROR_TEXT_MAX],
                                                 struct muster_error *err);
/* Opens the link for a question or an order, if it is not open. */
enum muster_status manager_source_open(struct manager_source *source, struct muster_error *err);
/* Is a wait to be broken off? For query_link_set_over; arg is the source. */
bool manager_source_is_over(const void *arg);
/* The status that the caller gets for one that ended with this status: E_INTERRUPTED if it was
 * broken off. */
enum muster_status manager_source_told(const struct manager_source *source,
                                       enum muster_status status, struct muster_error *err);
void manager_source_close(struct manager_source *source);

#endif
