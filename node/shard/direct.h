/* direct - a large new file's bytes, written past the page cache, two pieces at a time.
 * The kernel slows a process that has many written pages in the cache, by seconds per GiB, and
 * these pages push the data that the training reads out of the cache.
 * Owns: two threads with a buffer each. The file, its fsync and its removal are the caller's.
 * Always: if the file system refuses a piece, that is no error; the piece goes through the page
 * cache. */
#ifndef NODE_SHARD_DIRECT_H
#define NODE_SHARD_DIRECT_H

#include "node/shard/fs.h"

#define DIRECT_PIECE_BYTES ((size_t)4 << 20)
/* A smaller file stays in the page cache: it is written as fast, and a restart on the same host
 * reads it from there. */
#define DIRECT_MIN_BYTES ((uint64_t)256 << 20)

struct direct;

/* Is the file on a file system where this is known to be faster: ext4, XFS, or an overlay of
 * them? */
bool direct_gains(int fd);

/* The file is empty, or has only room. watcher is copied; its calls come from both threads, at
 * the same time. NULL: no memory, or no thread. */
struct direct *direct_begin(int fd, const struct fs_watcher *watcher);
/* Appends: copies, and blocks while both buffers are on their way to the disk. 0, or the errno of
 * any piece so far; ECANCELED from the watcher. */
int direct_put(struct direct *direct, const void *data, uint64_t size);
/* Blocks until all is written, and ends the threads. 0: the file has every byte; it still needs its
 * fsync. Else the errno of the first piece that failed. */
int direct_end(struct direct **direct);

#endif
