/* dbread_shared - see dbread_shared.h.
 *
 * The first copy is the snapshot and the batches after it. Later only the newer batches are read,
 * or all of it again when a broker took over: it may have another schema, which is in no batch. */
#include "client/query/dbread_shared.h"

#include "client/query/query_place.h"
#include "fenced/changes.h"
#include "fenced/fenced_log.h"
#include "schema/error.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define TRIES 5         /* a snapshot comes with some megabytes of batches */
#define WAL_FLAGS_AT 18 /* of a database file: how it is written and read; 1 = without a WAL */

struct dbread_shared {
    struct fenced_log *log;
    struct fenced_log_head head; /* that the copy shows */
    sqlite3 *db;                 /* NULL: no copy */
};

struct image {
    unsigned char *data;
    size_t size, room;
};

static enum muster_status shared_no_memory(const struct dbread_shared *shared,
                                           struct muster_error *err)
{
    return error_set(err, MUSTER_E_NOMEM, "no memory for a copy of the shared database %s",
                     dbread_shared_name(shared));
}

static enum muster_status shared_image_part(void *arg, const void *data, size_t size,
                                            struct muster_error *err)
{
    struct image *image = arg;
    size_t room = image->room > 0 ? image->room : size;

    while (room - image->size < size)
        room *= 2;
    if (room > image->room) {
        unsigned char *larger = sqlite3_realloc64(image->data, room);

        if (larger == NULL)
            return error_set(err, MUSTER_E_NOMEM, "no memory for a copy of the shared database");
        image->data = larger;
        image->room = room;
    }
    memcpy(image->data + image->size, data, size);
    image->size += size;
    return MUSTER_OK;
}

/* Takes the image. */
static enum muster_status shared_load(struct dbread_shared *shared, struct image *image,
                                      struct muster_error *err)
{
    sqlite3_int64 most = INT64_MAX;
    int result;

    if (image->size <= WAL_FLAGS_AT + 1) {
        sqlite3_free(image->data);
        return error_set(err, MUSTER_E_CORRUPT,
                         "the shared database %s has no snapshot: somebody deleted it, or restored "
                         "only a part of the database; restore the whole of it",
                         dbread_shared_name(shared));
    }
    memset(image->data + WAL_FLAGS_AT, 1, 2);
    result =
        sqlite3_open_v2(":memory:", &shared->db,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_MEMORY, NULL);
    if (result != SQLITE_OK) {
        sqlite3_free(image->data);
        return shared_no_memory(shared, err);
    }
    result = sqlite3_deserialize(shared->db, "main", image->data, (sqlite3_int64)image->size,
                                 (sqlite3_int64)image->room,
                                 SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE);
    if (result != SQLITE_OK)
        return shared_no_memory(shared, err);
    sqlite3_file_control(shared->db, "main", SQLITE_FCNTL_SIZE_LIMIT, &most);
    return MUSTER_OK;
}

static enum muster_status shared_batch(void *arg, const void *data, size_t size,
                                       struct muster_error *err)
{
    return changes_apply(arg, data, size, err);
}

/* From what the copy shows to the head that is there now. */
static enum muster_status shared_go_on(struct dbread_shared *shared,
                                       const struct fenced_log_head *now, struct muster_error *err)
{
    struct fenced_log_head rest = *now;
    enum muster_status status = MUSTER_OK;
    int result;

    rest.snapshot_seq = shared->head.seq;
    if (now->seq == shared->head.seq)
        return MUSTER_OK;
    result = sqlite3_exec(shared->db, "BEGIN", NULL, NULL, NULL);
    if (result == SQLITE_OK)
        status = fenced_log_read_batches(shared->log, &rest, shared_batch, shared->db, err);
    if (result == SQLITE_OK && status == MUSTER_OK)
        result = sqlite3_exec(shared->db, "COMMIT", NULL, NULL, NULL);
    if (result != SQLITE_OK)
        status = error_set(err, MUSTER_E_CORRUPT,
                           "the snapshot in the shared database %s cannot be read: %s",
                           dbread_shared_name(shared), sqlite3_errmsg(shared->db));
    return status;
}

static void shared_drop(struct dbread_shared *shared)
{
    sqlite3_close(shared->db);
    shared->db = NULL;
}

static enum muster_status shared_copy(struct dbread_shared *shared,
                                      const struct fenced_log_head *now, struct muster_error *err)
{
    struct image image = {.data = NULL};
    enum muster_status status;

    if (!now->has_snapshot)
        return error_set(err, MUSTER_E_NOT_FOUND,
                         "the shared database %s has no records yet: start musterd --shared first",
                         dbread_shared_name(shared));
    status = fenced_log_read_snapshot(shared->log, now, shared_image_part, &image, err);
    if (status != MUSTER_OK) {
        sqlite3_free(image.data);
        return status;
    }
    status = shared_load(shared, &image, err);
    shared->head = *now;
    shared->head.seq = now->snapshot_seq;
    return status == MUSTER_OK ? shared_go_on(shared, now, err) : status;
}

static bool shared_is_same_snapshot(const struct fenced_log_head *a,
                                    const struct fenced_log_head *b)
{
    return a->snapshot_epoch == b->snapshot_epoch && a->snapshot_seq == b->snapshot_seq &&
           strcmp(a->id, b->id) == 0;
}

/* Do the batches that are there lead from the copy to the head? A log that was restored is shorter,
 * until a broker takes over. */
static bool shared_leads_on(const struct dbread_shared *shared, const struct fenced_log_head *now)
{
    return shared->db != NULL && strcmp(now->id, shared->head.id) == 0 &&
           now->snapshot_epoch == shared->head.snapshot_epoch &&
           now->snapshot_seq <= shared->head.seq && shared->head.seq <= now->seq;
}

enum muster_status dbread_shared_renew(struct dbread_shared *shared, void (*gone_fn)(void *arg),
                                       void *arg, sqlite3 **ret_db, struct muster_error *err)
{
    struct fenced_log_head now, after;
    enum muster_status status = fenced_log_head(shared->log, &now, err);

    for (int i = 0; i < TRIES && status == MUSTER_OK; i++) {
        struct muster_error why = {.status = MUSTER_OK};
        enum muster_status copied;

        if (shared_leads_on(shared, &now)) {
            copied = shared_go_on(shared, &now, &why);
        } else {
            gone_fn(arg);
            shared_drop(shared);
            copied = shared_copy(shared, &now, &why);
        }
        if (copied == MUSTER_OK)
            shared->head = now;
        else {
            gone_fn(arg);
            shared_drop(shared);
        }
        status = fenced_log_head(shared->log, &after, err);
        if (status == MUSTER_OK && shared_is_same_snapshot(&now, &after)) {
            if (copied != MUSTER_OK && err != NULL)
                *err = why;
            *ret_db = shared->db;
            return copied;
        }
        now = after;
    }
    return status != MUSTER_OK
               ? status
               : error_set(err, MUSTER_E_BUSY,
                           "the shared database %s changes faster than it can be read: try again",
                           dbread_shared_name(shared));
}

enum muster_status dbread_shared_open(const char *uri, int timeout_ms,
                                      struct dbread_shared **ret_shared, struct muster_error *err)
{
    const struct postgres_use use = {.option = query_place_db_word(), .read_ms = timeout_ms};
    struct dbread_shared *shared = calloc(1, sizeof *shared);
    enum muster_status status;

    if (shared == NULL)
        return error_set(err, MUSTER_E_NOMEM, "no memory for a copy of the shared database");
    status = fenced_log_open(uri, "", &use, &shared->log, err);
    if (status != MUSTER_OK) {
        dbread_shared_close(&shared);
        return status;
    }
    *ret_shared = shared;
    return MUSTER_OK;
}

void dbread_shared_close(struct dbread_shared **shared)
{
    if (*shared == NULL)
        return;
    shared_drop(*shared);
    fenced_log_close(&(*shared)->log);
    free(*shared);
    *shared = NULL;
}

const char *dbread_shared_name(const struct dbread_shared *shared)
{
    return fenced_log_name(shared->log);
}
