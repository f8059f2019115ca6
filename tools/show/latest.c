/* latest - see latest.h. */
#include "tools/show/latest.h"

#include "client/manager/place.h"
#include "client/query/query_link.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

enum { IN_PLACE_MS = 2000, LOOK_MS = 50 };

static bool latest_is_whole(const muster_client_t *client, const char *job,
                            const struct muster_checkpoint_row *row, char ret_path[FS_PATH_MAX])
{
    if (!row->in_place)
        return place_find(job, NULL, row, row->step - client_step_offset(client), ret_path);
    snprintf(ret_path, FS_PATH_MAX, "%s", row->path);
    return true;
}

static bool latest_is_newer(const struct muster_checkpoint_row *row,
                            const struct muster_checkpoint_row *than)
{
    return than == NULL || row->step > than->step ||
           (row->step == than->step && row->checkpoint > than->checkpoint);
}

static void latest_take(const muster_client_t *client, const char *job, struct latest *latest)
{
    const struct muster_checkpoint_row *rows = muster_rows_checkpoints(latest->rows);
    char path[FS_PATH_MAX];

    for (size_t i = 0; i < muster_rows_count(latest->rows); i++) {
        if (strcmp(rows[i].state, "committed") != 0)
            continue;
        if (latest_is_newer(&rows[i], latest->newest))
            latest->newest = &rows[i];
        if (latest_is_newer(&rows[i], latest->whole) &&
            latest_is_whole(client, job, &rows[i], path)) {
            latest->whole = &rows[i];
            memcpy(latest->path, path, sizeof path);
        }
    }
}

enum muster_status latest_find(muster_client_t *client, const char *job, struct latest *ret,
                               struct muster_error *err)
{
    enum muster_status status;

    *ret = (struct latest){.rows = NULL};
    for (int waited_ms = 0;; waited_ms += LOOK_MS) {
        status = muster_client_latest(client, job, &ret->rows, err);
        if (status != MUSTER_OK)
            return status;
        latest_take(client, job, ret);
        if (ret->newest == ret->whole)
            return MUSTER_OK;
        muster_rows_destroy(&ret->rows);
        *ret = (struct latest){.rows = NULL};
        if (waited_ms >= IN_PLACE_MS)
            break;
        poll(NULL, 0, LOOK_MS);
    }
    status = muster_client_checkpoints(client, job, 0, &ret->rows, err);
    if (status == MUSTER_OK)
        latest_take(client, job, ret);
    return status;
}
