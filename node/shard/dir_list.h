/* dir_list - the checkpoints of a directory, by their manifests alone, and which of them no longer
 * count. Owns: the search for them. A directory without a manifest is no checkpoint. One with a
 * damaged manifest is listed as damaged. If a directory cannot be read just now, that is an error,
 * because the list might lack a checkpoint. */
#ifndef NODE_SHARD_DIR_LIST_H
#define NODE_SHARD_DIR_LIST_H

#include "node/shard/dir.h"
#include "schema/arena.h"
#include "schema/rules/counts.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dir_item {
    const char *path, *metrics;
    uint64_t round;
    uint64_t database; /* as the manifest tells it */
    int64_t epoch, step_in_epoch, data_position, bytes;
};
/* There is a manifest that this muster cannot read, or may not read: only the directory's name may
 * tell its step. */
struct dir_damaged {
    const char *path, *name;    /* the name is the path's end */
    uint64_t generation, round; /* by its ROUND file; UINT64_MAX: that does not say it */
    int64_t created_unix_ms;    /* by its files' times */
};
/* In no order. The strings are the arena's. */
struct dir_list {
    struct dir_item *items;
    struct counts_item *launches; /* of each of them */
    struct dir_damaged *damaged;
    size_t count, capacity, launches_capacity, damaged_count, damaged_capacity;
};

/* Lists the checkpoints of one job; NULL: of any job. On success the list is the caller's:
 * dir_list_free. E_NOT_FOUND: there is no such directory. E_IO, E_NOMEM. */
enum muster_status dir_list_read(const char *root, const char *job, struct arena *arena,
                                 struct dir_list *ret_list, struct muster_error *err);
/* The same, and before them those that were committed and never got their name (.muster/<g>-<r>):
 * one that gets it meanwhile may be on the list twice, and is on it once at least. */
enum muster_status dir_list_read_all(const char *root, const char *job, struct arena *arena,
                                     struct dir_list *ret_list, struct muster_error *err);
/* As dir_list_read, for a caller that looks for newer ones. It lists those of more steps than
 * `above`, and those whose name tells no step, also those that were committed and never got their
 * name (.muster/<g>-<r>). One that cannot be read counts as damaged, so E_IO is only of the
 * directory itself. If any has more steps, all others that can be read are listed, too, for what
 * their launches gave up. Else no file of theirs is looked at. */
enum muster_status dir_list_read_above(const char *root, const char *job,
                                       const struct dir_names *names, int64_t above,
                                       struct arena *arena, struct dir_list *ret_list,
                                       struct muster_error *err);
/* Whether a damaged one of the job counts: by its name it is of a step, and no launch gave it up */
bool dir_list_counts(const struct dir_list *list, const struct dir_damaged *damaged,
                     const char *job, const struct dir_names *names, int64_t *ret_step);
void dir_list_free(
    struct dir_list *list); /* NULL-safe for its arrays; the arena stays the caller's */

#endif
