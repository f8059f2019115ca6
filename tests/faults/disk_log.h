/* disk_log - what a directory's file system was asked for, and what it may hold after a power cut.
 * Owns: a record of each change and each sync below one directory, as file_calls.h sees them, and
 * the states that POSIX allows when the power goes between two of them. Never: the product's code
 * paths; the caller runs those on each state.
 *
 * What may be forgotten:
 *   - the bytes of a file since its last fsync: all of them, or their second half, or all but the
 * size (zeros), or nothing;
 *   - each new, removed or replaced name since its directory's last fsync, one without the other,
 * in any order. What may not: a rename never loses its file. It is found under its old name or its
 * new one, a file maybe under both; surely under the new one when that directory was synced since,
 * and not under the old one when both were. ext4, XFS and Btrfs promise more, ext2 less: it may
 * lose what is renamed. */
#ifndef TESTS_FAULTS_DISK_LOG_H
#define TESTS_FAULTS_DISK_LOG_H

#include "tests/faults/file_calls.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct disk_log;

/* Records what happens below `dir` between file_calls_begin and file_calls_end; takes
 * file_calls_watch. */
struct disk_log *disk_log_create(const char *dir);
void disk_log_destroy(struct disk_log **log);
/* The watcher, for one that does something else, too. */
void disk_log_see(void *log, const struct file_calls_seen *call);

/* What the following calls are for: the name of a scene, borrowed; and what was promised behind
 * those so far. */
void disk_log_scene(struct disk_log *log, const char *scene);
void disk_log_told(struct disk_log *log, const void *told, size_t size);

/* An fsync that is taken for not made: the n-th (from 1; 0 = each) of this path in this scene. A
 * path is what follows `dir`; '*' at the end of either stands for anything. scene NULL: nothing is
 * dropped. */
struct disk_drop {
    const char *scene, *path;
    unsigned n;
};
/* How many syncs that are; they are dropped from now on, in place of those that were before. */
unsigned disk_log_drop(struct disk_log *log, const struct disk_drop *drop);
/* The i-th sync, as "scene: path"; false: there are fewer. */
bool disk_log_sync(const struct disk_log *log, size_t i, const char **ret_scene,
                   const char **ret_path);

/* States that were good already, of any log: the same tree with the same promises is not shown
 * again. */
struct disk_seen;
struct disk_seen *disk_seen_create(void);
void disk_seen_destroy(struct disk_seen **seen);

/* Puts each state into `dir`, which it empties before, and calls fn with what had been told by then
 * (NULL: nothing). False: fn returned false, and that state is still there, told by ret_text. Of
 * points that allow more than `states_max` states so many are taken: none and each of the changes
 * that may be lost, each alone, and a sample. */
typedef bool disk_state_fn(void *arg, const void *told);
bool disk_log_each(struct disk_log *log, struct disk_seen *seen, unsigned states_max,
                   disk_state_fn *fn, void *arg, char *ret_text, size_t text_size);

struct disk_counts {
    uint64_t calls, points, states; /* states: shown, each once */
};
struct disk_counts disk_log_counts(const struct disk_log *log);

#endif
