/* latest - see latest.h. */
#include "tools/latest.h"

#include <poll.h>

enum { IN_PLACE_MS = 2000, LOOK_MS = 50 };

/* Behind a commit the manifest is written and the directory renamed: who copies it wants that one. */
enum muster_status latest_in_place(muster_client_t *client, const char *job,
                                   muster_rows_t **ret_rows, struct muster_error *err)
{
    const struct muster_checkpoint_row *checkpoint;
    enum muster_status status;

    for (int waited_ms = 0;; waited_ms += LOOK_MS) {
        status = muster_client_latest(client, job, ret_rows, err);
        if (status != MUSTER_OK)
            return status;
        checkpoint = muster_rows_checkpoints(*ret_rows);
        if (checkpoint == NULL || checkpoint->in_place || waited_ms >= IN_PLACE_MS)
            return MUSTER_OK;
        muster_rows_destroy(ret_rows);
        poll(NULL, 0, LOOK_MS);
    }
}
