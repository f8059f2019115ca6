/* latest - the newest committed checkpoint of a job, once its directory has its manifest and its final name. */
#ifndef TOOLS_LATEST_H
#define TOOLS_LATEST_H

#include <muster/client.h>

/* Waits for the name for 2 s at most: who was to give it may have left (then the row's in_place is false). */
enum muster_status latest_in_place(muster_client_t *client, const char *job,
                                   muster_rows_t **ret_rows, struct muster_error *err);

#endif
