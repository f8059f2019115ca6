/* latest - the newest committed checkpoint of a job that can be read: its directory has its
 * manifest and its final name. Readers of a broker and of a directory give the same one. */
#ifndef TOOLS_LATEST_H
#define TOOLS_LATEST_H

#include <muster/client.h>

#include "node/shard/fs.h"

struct latest {
    muster_rows_t *rows;                        /* owned; what follows points into it */
    const struct muster_checkpoint_row *newest; /* committed; NULL = none */
    const struct muster_checkpoint_row *whole;  /* ... and it can be read; NULL = none */
    char path[FS_PATH_MAX];                     /* where that is */
};

/* Waits at most 2 s until the newest one gets its name: the process that was to give it may have
 * left. Fills *ret in any case. */
enum muster_status latest_find(muster_client_t *client, const char *job, struct latest *ret,
                               struct muster_error *err);

#endif
