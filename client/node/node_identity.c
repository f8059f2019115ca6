/* node_identity - tells a program which rank its node would be, before it opens one. The rule is in
 * node/notice/identity.h. */
#include "node/notice/identity.h"
#include "schema/sized.h"

#include <muster/node.h>

#include <stdio.h>
#include <unistd.h>

enum muster_status muster_identity_read(struct muster_identity *ret_identity, size_t struct_size,
                                        struct muster_error *ret_error)
{
    struct muster_identity told = {.rank = 0};
    struct identity identity;
    enum muster_status status = identity_read((const char *const *)environ, &identity, ret_error);

    if (status != MUSTER_OK)
        return status;
    told.rank = identity.rank;
    told.world_size = identity.world_size;
    told.local_rank = identity.local_rank;
    told.local_size = identity.local_size;
    snprintf(told.job, sizeof told.job, "%s", identity.job);
    snprintf(told.launcher, sizeof told.launcher, "%s", identity.family);
    snprintf(told.note, sizeof told.note, "%s", identity.note);
    sized_give(ret_identity, struct_size, &told, sizeof told);
    return MUSTER_OK;
}
