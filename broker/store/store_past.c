/* store_past - what happened to the broker itself: its starts, and the times in which it could not
 * write. A row is written with the next batch, in its transaction. So a blocked disk is on record
 * as soon as the batch that waited for it is. */
#include "broker/store/store_internal.h"

#include <stdio.h>

#define PAST_ROWS 1000 /* the newest are kept */

static const char *const kinds[STORE_PAST_COUNT] = {
    [STORE_PAST_STARTED] = "broker started",
    [STORE_PAST_BLOCKED] = "broker blocked",
};

enum muster_status store_past_prepare(struct store *store, struct muster_error *err)
{
    enum muster_status status =
        store_prepare(store, "INSERT INTO broker_past (unix_ms, kind, text) VALUES (?1, ?2, ?3)",
                      &store->past_add, err);

    if (status == MUSTER_OK)
        status = store_prepare(store,
                               "DELETE FROM broker_past WHERE id <= (SELECT max(id) FROM"
                               " broker_past) - " STRING_OF(PAST_ROWS),
                               &store->past_drop, err);
    return status;
}

void store_note(struct store *store, enum store_past_kind kind, int64_t unix_ms, const char *text)
{
    struct store_past *past = &store->past[kind];

    past->wanted = true;
    past->unix_ms = unix_ms;
    snprintf(past->text, sizeof past->text, "%s", text);
}

enum muster_status store_past_write(struct store *store, struct muster_error *err)
{
    enum muster_status status = MUSTER_OK;

    for (size_t i = 0; i < STORE_PAST_COUNT && status == MUSTER_OK; i++) {
        const struct store_past *past = &store->past[i];

        if (!past->wanted)
            continue;
        sqlite3_bind_int64(store->past_add, 1, past->unix_ms);
        sqlite3_bind_text(store->past_add, 2, kinds[i], -1, SQLITE_STATIC);
        sqlite3_bind_text(store->past_add, 3, past->text, -1, SQLITE_STATIC);
        status = store_step(store, store->past_add, "tell what befell the broker", err);
        if (status == MUSTER_OK)
            status = store_step(store, store->past_drop, "forget what befell it long ago", err);
    }
    return status;
}

void store_past_written(struct store *store)
{
    for (size_t i = 0; i < STORE_PAST_COUNT; i++)
        store->past[i].wanted = false;
}
