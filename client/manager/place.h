/* place - where a committed checkpoint lies, as its directory shows. A checkpoint gets its final
 * name before the broker hears of that, and the process that gave the name may have died in
 * between. Never: a guess. A checkpoint without its final name is nowhere for a reader. */
#ifndef CLIENT_PLACE_H
#define CLIENT_PLACE_H

#include "client/include/muster/client.h"
#include "node/shard/fs.h"

/* Of a row that is not in_place. directory: where the job's directory is for this process, NULL =
 * where the row says. steps_done: the row's step as a manifest counts it. */
bool place_find(const char *job, const char *directory, const struct muster_checkpoint_row *row,
                int64_t steps_done, char ret_path[FS_PATH_MAX]);

#endif
