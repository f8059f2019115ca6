/* dir_delete - a committed checkpoint's directory goes away.
 * Owns: the order of its steps: found and proven to be that checkpoint, out of its place by one
 * rename that is durable, proven again, then removed. So a crash at any point leaves either the
 * whole checkpoint or nothing that has its name; what was on its way out is cleared by dir_prepare.
 * Never: the decision. */
#ifndef NODE_SHARD_DIR_DELETE_H
#define NODE_SHARD_DIR_DELETE_H

#include "node/shard/dir.h"

struct dir_deletion { /* all borrowed for the call */
    const char *root;
    const char *job;
    uint64_t generation;
    uint64_t round;
    int64_t step;
    const char *path;  /* where it was last known to be, "" = not known */
    const char *trash; /* "" = it is removed; else a folder of root that it is moved to */
    void (*between)(
        void *arg); /* between one file of it and the next, once it is out of its place; or NULL */
    void *arg;
};

/* MUSTER_OK also when it is gone already. A directory of another job or round is never touched,
 * whatever its name. E_CORRUPT: neither its ROUND file nor its manifest tells what it is. E_IO:
 * path and cause; it may be in its place or on its way out, or another have taken its name
 * meanwhile. */
enum muster_status dir_delete_checkpoint(const struct dir_deletion *deletion,
                                         struct muster_error *err);

#endif
