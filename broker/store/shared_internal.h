/* shared_internal - what the store does with a shared database: store.c calls these around each
 * transaction. All of them do nothing where there is none. */
#ifndef BROKER_STORE_SHARED_INTERNAL_H
#define BROKER_STORE_SHARED_INTERNAL_H

#include "broker/store/store_internal.h"

/* After a start has read, migrated and checked the copy: the whole of it goes out. */
enum muster_status shared_begin(struct store *store, struct muster_error *err);
/* After BEGIN. */
enum muster_status shared_watch(struct store *store, struct muster_error *err);
/* Before COMMIT: what was changed goes into the log. ret_written: it is there, so a COMMIT that
 * fails leaves this copy behind it. */
enum muster_status shared_write(struct store *store, bool *ret_written, struct muster_error *err);
/* After COMMIT and ROLLBACK. */
void shared_watch_end(struct store *store);

#endif
