/* shared - see shared.h.
 *
 *   BEGIN -> rows -> what they changed is appended to the log, behind the fence -> COMMIT -> told
 *
 * SQLite's session extension says what a transaction changed, and applies it to another copy. It
 * compares the rows before, so it finds a copy that is not the same. The copy itself need not
 * survive anything: each take-over makes it from the snapshot and the batches after it. So its
 * commits are not synced, but for the row that shows that it is a copy. */
#define SQLITE_ENABLE_SESSION 1
#define SQLITE_ENABLE_PREUPDATE_HOOK 1
#include "broker/store/shared.h"

#include "broker/base/clock.h"
#include "broker/base/dirs.h"
#include "broker/base/failpoint.h"
#include "broker/store/shared_file.h"
#include "broker/store/shared_internal.h"
#include "fenced/changes.h"
#include "fenced/fenced_log.h"
#include "schema/error.h"
#include "schema/sql/sql.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PART_BYTES ((size_t)128 << 10) /* a slow link takes it, too, while a question waits */
#define SNAPSHOT_LEAST_BYTES ((uint64_t)4 << 20) /* of batches, or as many as the database has */
#define RETRY_MS 500
#define KEEPER_LOOK_MS 250
#define KEEPER_MOST_MS 120000 /* a start that hangs on its disk gives up the lease then */
#define LOCK_WAIT_MS 3000     /* as long as a killed musterd takes to be gone */

/* Renews the lease on a thread of its own while the start reads and checks the copy. With a large
 * copy that takes longer than a lease, and two brokers would take it from each other for ever. It
 * alone asks the shared database while it runs. */
struct keeper {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wakes;
    bool runs, stop;
};

struct shared {
    struct fenced_log *log;
    struct keeper keeper;
    char *path;
    char *aside;
    int lock_fd; /* of path, until the store takes it */
    bool created_lock;
    char id[SHARED_META_MAX];
    char seeded[SHARED_META_MAX]; /* of a file without a copy's mark, to be written over */
    bool taken;
    bool empty;      /* when it was taken: tables without records */
    bool away;       /* the shared database did not answer this standby */
    int64_t from_ms; /* before that this standby does not take the lease */
    bool in_doubt;   /* the lease may be another's by now */
    struct muster_error doubt;
    int64_t renewed_ms; /* our boot time, before the renewal was sent */
    int64_t renew_at_ms;
    sqlite3_session *session; /* of the transaction */
    uint64_t batch_bytes;     /* since the last snapshot */
    bool sweeps;              /* what a snapshot stands for is not all deleted */
    uint8_t *image;           /* of a snapshot that is being written */
    size_t image_size, image_sent;
    uint64_t image_seq;
    void (*alive_fn)(void *arg);
    void *alive_arg;
};

/* A file with this row is a copy, and may be written over. Each has its own: it is not in the log.
 */
#define MARK_SQL_MAX 256
static void shared_mark_sql(const struct shared *shared, char ret_sql[MARK_SQL_MAX])
{
    sqlite3_snprintf(MARK_SQL_MAX, ret_sql,
                     "INSERT INTO meta (key, value) VALUES ('shared', %Q) "
                     "ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                     shared->id);
}

/* --- the copy that a take-over makes ---------------------------------------------------------- */

struct copy {
    struct shared *shared;
    const char *path;
    int fd;
    sqlite3 *db;
};

/* Between two steps of a copy, which may take longer than a lease. */
static enum muster_status shared_keep(struct shared *shared, struct muster_error *err)
{
    int64_t now_ms = clock_ms(CLOCK_BOOTTIME);
    enum muster_status status;

    if (now_ms < shared->renew_at_ms)
        return MUSTER_OK;
    status = fenced_log_renew(shared->log, SHARED_LEASE_MS, err);
    if (status == MUSTER_OK) {
        shared->renewed_ms = now_ms;
        shared->renew_at_ms = now_ms + SHARED_RENEW_MS;
    }
    return status;
}

static void shared_is_alive(const struct shared *shared)
{
    if (shared->alive_fn != NULL)
        shared->alive_fn(shared->alive_arg);
}

/* After each step of a take-over. */
static enum muster_status shared_progress(struct shared *shared, struct muster_error *err)
{
    shared_is_alive(shared);
    return shared_keep(shared, err);
}

static void *shared_keeper_run(void *arg)
{
    struct shared *shared = arg;
    struct keeper *keeper = &shared->keeper;
    int64_t until_ms = clock_ms(CLOCK_BOOTTIME) + KEEPER_MOST_MS;
    enum muster_status status = MUSTER_OK;

    pthread_mutex_lock(&keeper->lock);
    while (!keeper->stop && clock_ms(CLOCK_BOOTTIME) < until_ms &&
           (status == MUSTER_OK || status == MUSTER_E_STORAGE)) {
        int64_t at_ms = clock_ms(CLOCK_MONOTONIC) + KEEPER_LOOK_MS;
        struct timespec at = {.tv_sec = at_ms / 1000, .tv_nsec = at_ms % 1000 * 1000000};

        pthread_cond_timedwait(&keeper->wakes, &keeper->lock, &at);
        if (keeper->stop)
            break;
        pthread_mutex_unlock(&keeper->lock);
        status = shared_progress(shared, NULL);
        pthread_mutex_lock(&keeper->lock);
    }
    pthread_mutex_unlock(&keeper->lock);
    return NULL;
}

static void shared_keeper_init(struct keeper *keeper)
{
    pthread_condattr_t attributes;

    pthread_mutex_init(&keeper->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC); /* the wall clock may jump */
    pthread_cond_init(&keeper->wakes, &attributes);
    pthread_condattr_destroy(&attributes);
}

/* Without a thread the lease ends by its time, which is only slower. */
static void shared_keeper_start(struct shared *shared)
{
    if (shared->keeper.runs)
        return;
    shared->keeper.stop = false;
    shared->keeper.runs =
        pthread_create(&shared->keeper.thread, NULL, shared_keeper_run, shared) == 0;
}

/* Whoever asks the shared database next calls it. Returns at once if it does not run. */
static void shared_keeper_stop(struct shared *shared)
{
    struct keeper *keeper = &shared->keeper;

    if (!keeper->runs)
        return;
    pthread_mutex_lock(&keeper->lock);
    keeper->stop = true;
    pthread_cond_signal(&keeper->wakes);
    pthread_mutex_unlock(&keeper->lock);
    pthread_join(keeper->thread, NULL);
    keeper->runs = false;
}

static enum muster_status shared_copy_failed(const struct copy *copy, const char *doing,
                                             struct muster_error *err)
{
    return error_set_code(err, errno == ENOSPC || errno == EDQUOT ? MUSTER_E_STORAGE : MUSTER_E_IO,
                          errno, "cannot %s %s: %s; check the disk", doing, copy->path,
                          strerror(errno));
}

static enum muster_status shared_copy_part(void *arg, const void *data, size_t size,
                                           struct muster_error *err)
{
    const struct copy *copy = arg;
    const uint8_t *at = data;

    while (size > 0) {
        ssize_t wrote = write(copy->fd, at, size);

        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return shared_copy_failed(copy, "write", err);
        at += wrote;
        size -= (size_t)wrote;
    }
    return shared_progress(copy->shared, err);
}

static enum muster_status shared_copy_batch(void *arg, const void *data, size_t size,
                                            struct muster_error *err)
{
    const struct copy *copy = arg;
    enum muster_status status = changes_apply(copy->db, data, size, err);

    return status == MUSTER_OK ? shared_progress(copy->shared, err) : status;
}

static enum muster_status shared_is_own(const struct shared *shared, struct muster_error *err)
{
    return error_set(err, MUSTER_E_ARGUMENT,
                     "database %s has records of its own, and the shared database %s has others: "
                     "the file would be overwritten; name another file with --db, or with --shared "
                     "an empty database, which then gets the records of this one",
                     shared->path, fenced_log_name(shared->log));
}

/* A file without a copy's mark filled this log if both have the same row 'seeded'. */
static enum muster_status shared_copy_is_of_seed(const struct shared *shared,
                                                 const struct copy *copy, struct muster_error *err)
{
    char seeded[SHARED_META_MAX];

    if (shared->seeded[0] == '\0')
        return MUSTER_OK;
    shared_file_meta(copy->db, "seeded", seeded);
    return strcmp(seeded, shared->seeded) == 0 ? MUSTER_OK : shared_is_own(shared, err);
}

static enum muster_status shared_copy_batches(struct shared *shared, struct copy *copy,
                                              const struct fenced_log_head *head,
                                              struct muster_error *err)
{
    int result = sqlite3_open_v2(copy->path, &copy->db, SQLITE_OPEN_READWRITE, NULL);
    enum muster_status status = MUSTER_OK;
    char sql[MARK_SQL_MAX];

    shared_mark_sql(shared, sql);
    if (result == SQLITE_OK)
        result = sqlite3_exec(copy->db, "PRAGMA synchronous=OFF; BEGIN", NULL, NULL, NULL);
    if (result == SQLITE_OK)
        status = fenced_log_read_batches(shared->log, head, shared_copy_batch, copy, err);
    if (result == SQLITE_OK && status == MUSTER_OK)
        status = shared_copy_is_of_seed(shared, copy, err);
    shared_keeper_start(shared); /* what follows is the disk's, and may take long */
    if (result == SQLITE_OK &&
        status == MUSTER_OK) /* from its first moment it is known as a copy */
        result = sqlite3_exec(copy->db, sql, NULL, NULL, NULL);
    if (result == SQLITE_OK && status == MUSTER_OK)
        result =
            sqlite3_exec(copy->db, "COMMIT; PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL, NULL);
    if (result != SQLITE_OK)
        status = error_set(err, result == SQLITE_FULL ? MUSTER_E_STORAGE : MUSTER_E_IO,
                           "cannot write the copy %s: %s; check the disk", copy->path,
                           sqlite3_errmsg(copy->db));
    sqlite3_close(copy->db);
    return status;
}

static enum muster_status shared_move_aside(struct shared *shared, const char *why,
                                            struct muster_error *err)
{
    char *name = NULL;
    enum muster_status status = shared_file_move_aside(shared->path, &name, err);

    if (status != MUSTER_OK)
        return status;
    sqlite3_free(shared->aside);
    shared->aside = sqlite3_mprintf(
        "database %s has no records that can be read (%s): it is %s now, and the records of the "
        "shared database %s take its place",
        shared->path, why, name, fenced_log_name(shared->log));
    free(name);
    return MUSTER_OK;
}

static bool shared_is_unreadable(const struct shared_file *file)
{
    return file->result == SQLITE_EMPTY || file->result == SQLITE_NOTADB ||
           file->result == SQLITE_CORRUPT;
}

/* Else, as when the disk is full, it may be read later. */
static enum muster_status shared_was_read(const struct shared *shared,
                                          const struct shared_file *file, struct muster_error *err)
{
    return file->result == SQLITE_OK || shared_is_unreadable(file)
               ? MUSTER_OK
               : error_set(err, MUSTER_E_STORAGE, "cannot look at the copy %s: %s; check the disk",
                           shared->path, sqlite3_errstr(file->result));
}

/* Records that are nowhere else are not written over. */
static enum muster_status shared_is_copy(struct shared *shared, struct muster_error *err)
{
    struct shared_file file;

    shared->seeded[0] = '\0';
    if (access(shared->path, F_OK) != 0)
        return MUSTER_OK;
    shared_file_look(shared->path, &file);
    if (shared_is_unreadable(&file))
        return shared_move_aside(shared, sqlite3_errstr(file.result), err);
    if (file.result != SQLITE_OK)
        return shared_was_read(shared, &file, err);
    if (strcmp(file.copy_of, shared->id) == 0 || !file.has_records)
        return MUSTER_OK;
    memcpy(shared->seeded, file.seeded, sizeof shared->seeded);
    return file.seeded[0] != '\0' ? MUSTER_OK : shared_is_own(shared, err);
}

/* Syncs the copy before it gets its name: after a power cut a broker finds the copy before, or this
 * one. */
static enum muster_status shared_copy_name(const struct copy *copy, struct muster_error *err)
{
    char directory[PATH_MAX];
    int fd = open(copy->path, O_RDONLY | O_CLOEXEC);
    bool synced = fd >= 0 && fsync(fd) == 0;
    enum muster_status status = synced ? MUSTER_OK : shared_copy_failed(copy, "sync", err);

    if (fd >= 0)
        close(fd);
    failpoint_pass(FAILPOINT_COPY_SYNCED);
    shared_keeper_stop(copy->shared);
    if (status == MUSTER_OK)
        status = shared_keep(copy->shared, err);
    if (status != MUSTER_OK)
        return status;
    shared_keeper_start(copy->shared);
    shared_file_unlink(copy->shared->path, "-wal"); /* of the copy before */
    shared_file_unlink(copy->shared->path, "-shm");
    if (rename(copy->path, copy->shared->path) != 0)
        return shared_copy_failed(copy, "rename", err);
    status = dirs_parent(copy->shared->path, directory, sizeof directory, err);
    return status == MUSTER_OK ? dirs_sync(directory, err) : status;
}

/* The .mark beside it stays: it shows that the shared database was restored to an earlier state. */
static enum muster_status shared_copy(struct shared *shared, const struct fenced_log_head *head,
                                      struct muster_error *err)
{
    char part[PATH_MAX];
    struct copy copy = {.shared = shared, .path = part, .fd = -1};
    enum muster_status status = shared_is_copy(shared, err);

    if (status != MUSTER_OK)
        return status;
    if (snprintf(part, sizeof part, "%s.part", shared->path) >= PATH_MAX - 8)
        return error_set(err, MUSTER_E_ARGUMENT, "path %.60s... is too long; use a shorter one",
                         shared->path);
    shared_file_unlink(part, "-wal");
    shared_file_unlink(part, "-shm");
    copy.fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (copy.fd < 0)
        return shared_copy_failed(&copy, "create", err);
    status = fenced_log_read_snapshot(shared->log, head, shared_copy_part, &copy, err);
    close(copy.fd);
    if (status == MUSTER_OK)
        status = shared_copy_batches(shared, &copy, head, err);
    shared_file_unlink(part, "-wal");
    shared_file_unlink(part, "-shm");
    if (status == MUSTER_OK)
        status = shared_copy_name(&copy, err);
    if (status == MUSTER_OK)
        failpoint_pass(FAILPOINT_COPY_NAMED);
    else
        unlink(part);
    return status;
}

/* --- the lease -------------------------------------------------------------------------------- */

/* No other musterd works with the file while it may be written over. */
static enum muster_status shared_lock(struct shared *shared, struct muster_error *err)
{
    enum muster_status status = dirs_make_parent(shared->path, err);

    if (status == MUSTER_OK)
        status = store_real_path(&shared->path, err);
    return status == MUSTER_OK ? store_lock(shared->path, LOCK_WAIT_MS, &shared->lock_fd,
                                            &shared->created_lock, err)
                               : status;
}

static void shared_unlock(struct shared *shared, bool discard)
{
    if (shared->lock_fd < 0)
        return;
    if (discard && shared->created_lock)
        shared_file_unlink(shared->path, ".lock");
    close(shared->lock_fd);
    shared->lock_fd = -1;
}

enum muster_status shared_take(struct shared *shared, struct muster_error *err)
{
    struct fenced_log_head head;
    int64_t before_ms = clock_ms(CLOCK_BOOTTIME);
    enum muster_status status = MUSTER_OK;

    if (shared->away || before_ms < shared->from_ms)
        status = fenced_log_look(shared->log, err);
    if (shared->away && status != MUSTER_E_STORAGE) {
        shared->away = false;
        shared->from_ms = before_ms + SHARED_FIRST_MS;
    }
    if (status == MUSTER_OK && before_ms < shared->from_ms) {
        if (err != NULL)
            *err = shared->doubt; /* the active one may be back in this time */
        return MUSTER_E_STORAGE;
    }
    if (status == MUSTER_OK)
        status = fenced_log_take(shared->log, SHARED_LEASE_MS, &head, err);
    if (status == MUSTER_E_STORAGE && err != NULL)
        shared->doubt = *err;
    shared->away |= status == MUSTER_E_STORAGE;
    if (status != MUSTER_OK)
        return status;
    shared->taken = true;
    shared->renewed_ms = before_ms;
    shared->renew_at_ms = before_ms + SHARED_RENEW_MS;
    snprintf(shared->id, sizeof shared->id, "%s", head.id);
    shared->empty = !head.has_snapshot;
    if (head.has_snapshot)
        status = shared_copy(shared, &head, err);
    if (status != MUSTER_OK) {
        shared_keeper_stop(shared);
        fenced_log_release(shared->log);
        return status;
    }
    shared_unlock(shared, false); /* the store takes it */
    shared_keeper_start(shared);
    return status;
}

/* Once a pass, before anything is taken. A broker that slept learns here that it is not active any
 * more. A broker that cannot ask is in doubt until it learns whose the lease is. */
enum muster_status store_holds(struct store *store, struct muster_error *err)
{
    struct shared *shared = store->shared;
    enum muster_status status;
    int64_t silent_ms;

    if (shared == NULL)
        return MUSTER_OK;
    shared_keeper_stop(shared);
    if (clock_ms(CLOCK_BOOTTIME) >= shared->renew_at_ms) {
        status = shared_keep(shared, &shared->doubt);
        if (status != MUSTER_E_STORAGE && status != MUSTER_OK && err != NULL)
            *err = shared->doubt;
        if (status != MUSTER_E_STORAGE) {
            shared->in_doubt = false;
            return status;
        }
        silent_ms = clock_ms(CLOCK_BOOTTIME) - shared->renewed_ms;
        shared->renew_at_ms = clock_ms(CLOCK_BOOTTIME) + RETRY_MS;
        shared->in_doubt = silent_ms >= SHARED_LEASE_MS - SHARED_MARGIN_MS;
        if (silent_ms >= SHARED_DOUBT_MS)
            return error_set(err, MUSTER_E_LOCKED,
                             "the lease in the shared database %s could not be renewed for %" PRId64
                             " ms: another broker may be active",
                             fenced_log_name(shared->log), silent_ms);
    }
    if (shared->in_doubt && err != NULL)
        *err = shared->doubt;
    return shared->in_doubt ? MUSTER_E_STORAGE : MUSTER_OK;
}

struct store_lease store_lease(const struct store *store)
{
    const struct shared *shared = store->shared;
    int64_t left_ms;

    if (shared == NULL)
        return (struct store_lease){.name = NULL};
    left_ms = shared->renewed_ms + SHARED_LEASE_MS - clock_ms(CLOCK_BOOTTIME);
    return (struct store_lease){fenced_log_name(shared->log), left_ms < 0 ? 0 : left_ms};
}

/* --- transactions ----------------------------------------------------------------------------- */

static enum muster_status shared_failed(struct store *store, int result, const char *doing,
                                        struct muster_error *err)
{
    return result == SQLITE_OK ? MUSTER_OK : store_failed(store, result, doing, err);
}

enum muster_status shared_watch(struct store *store, struct muster_error *err)
{
    struct shared *shared = store->shared;
    int result;

    if (shared == NULL)
        return MUSTER_OK;
    result = sqlite3session_create(store->db, "main", &shared->session);
    if (result == SQLITE_OK)
        result = sqlite3session_attach(shared->session, NULL);
    return shared_failed(store, result, "watch a transaction", err);
}

void shared_watch_end(struct store *store)
{
    if (store->shared == NULL || store->shared->session == NULL)
        return;
    sqlite3session_delete(store->shared->session);
    store->shared->session = NULL;
}

enum muster_status shared_write(struct store *store, bool *ret_written, struct muster_error *err)
{
    struct shared *shared = store->shared;
    void *changes = NULL;
    int size = 0;
    enum muster_status status;

    *ret_written = false;
    if (shared == NULL)
        return MUSTER_OK;
    shared_keeper_stop(shared);
    status = shared_failed(store, sqlite3session_changeset(shared->session, &size, &changes),
                           "collect what a transaction changed", err);
    if (status == MUSTER_OK && size > 0)
        status = fenced_log_append(shared->log, changes, (size_t)size, err);
    *ret_written = status == MUSTER_OK && size > 0;
    if (*ret_written)
        shared->batch_bytes += (uint64_t)size;
    sqlite3_free(changes);
    return status;
}

/* --- snapshots -------------------------------------------------------------------------------- */

static enum muster_status shared_snapshot_take(struct store *store, struct muster_error *err)
{
    struct shared *shared = store->shared;
    sqlite3_int64 size = 0;

    shared->batch_bytes = 0;
    shared->image = sqlite3_serialize(store->db, "main", &size, 0);
    if (shared->image == NULL)
        return error_set(err, MUSTER_E_STORAGE, "no memory for a snapshot of database %s",
                         store->path);
    shared->image_size = (size_t)size;
    shared->image_sent = 0;
    shared->image_seq = fenced_log_seq(shared->log);
    return MUSTER_OK;
}

static void shared_snapshot_drop(struct shared *shared)
{
    sqlite3_free(shared->image);
    shared->image = NULL;
}

static enum muster_status shared_snapshot_part(struct shared *shared, struct muster_error *err)
{
    size_t left = shared->image_size - shared->image_sent;
    size_t size = left < PART_BYTES ? left : PART_BYTES;
    enum muster_status status =
        fenced_log_snapshot_part(shared->log, shared->image_seq, shared->image_sent / PART_BYTES,
                                 shared->image + shared->image_sent, size, err);

    if (status == MUSTER_OK)
        shared->image_sent += size;
    if (status != MUSTER_OK || shared->image_sent < shared->image_size)
        return status;
    status = fenced_log_snapshot_end(shared->log, shared->image_seq, err);
    if (status == MUSTER_OK) {
        shared_snapshot_drop(shared);
        shared->sweeps = true;
    }
    return status;
}

/* The last check before each COMMIT: a change that the log would not get is rolled back. */
static int shared_is_unwatched(void *arg)
{
    const struct shared *shared = arg;

    return shared->session == NULL;
}

/* A broker that runs alone writes records of its own from here on. */
static enum muster_status shared_mark_forget(struct store *store, struct muster_error *err)
{
    int64_t marks = 0;
    enum muster_status status = store_get_int(
        store, "SELECT count(*) FROM meta WHERE key IN ('shared', 'seeded')", &marks, err);

    return status == MUSTER_OK && marks > 0
               ? store_exec(store, "DELETE FROM meta WHERE key IN ('shared', 'seeded')", err)
               : status;
}

/* Before these records go out: a row that each copy of them has, so a broker that dies before it
 * hears that they are there knows them again. */
static enum muster_status shared_seed(struct store *store, struct muster_error *err)
{
    char sql[MARK_SQL_MAX];

    sqlite3_snprintf(MARK_SQL_MAX, sql,
                     "INSERT INTO meta (key, value) SELECT 'seeded', '%q:' || hex(randomblob(16)) "
                     "WHERE NOT EXISTS (SELECT 1 FROM meta WHERE key = 'seeded')",
                     store->shared->id);
    return store_exec(store, sql, err);
}

enum muster_status shared_begin(struct store *store, struct muster_error *err)
{
    struct shared *shared = store->shared;
    char sql[MARK_SQL_MAX];
    enum muster_status status;

    if (shared == NULL)
        return shared_mark_forget(store, err);
    shared_keeper_stop(shared);
    status = shared_seed(store, err);
    if (status == MUSTER_OK)
        status = shared_snapshot_take(store, err);
    while (status == MUSTER_OK && shared->image != NULL) {
        status = shared_snapshot_part(shared, err);
        shared_is_alive(shared);
        if (status == MUSTER_OK)
            status = store_holds(store, err);
    }
    shared_snapshot_drop(shared);
    shared_mark_sql(shared, sql); /* only now: until then these records may be nowhere else */
    if (status == MUSTER_OK)
        status = store_exec(store, sql, err);
    if (status == MUSTER_OK)
        status = store_unsync(store, err); /* ... but for this row: see shared_mark_sql */
    if (status == MUSTER_OK) {
        sqlite3_commit_hook(store->db, shared_is_unwatched, shared);
        fenced_log_is_known(shared->log);
        shared_keeper_start(shared); /* the core reads it all */
    }
    return status;
}

bool store_snapshot_is_due(const struct store *store)
{
    const struct shared *shared = store->shared;

    return shared != NULL && (shared->image != NULL || shared->sweeps ||
                              (shared->batch_bytes > SNAPSHOT_LEAST_BYTES &&
                               shared->batch_bytes > shared->image_size));
}

enum muster_status store_snapshot_work(struct store *store, struct muster_error *err)
{
    enum muster_status status = MUSTER_OK;

    if (!store_snapshot_is_due(store))
        return MUSTER_OK;
    if (store->shared->sweeps) {
        status = fenced_log_sweep(store->shared->log, &store->shared->sweeps, err);
        if (status == MUSTER_E_STORAGE) /* the next snapshot's sweep takes it along */
            store->shared->sweeps = false;
        return status == MUSTER_E_STORAGE ? MUSTER_OK : status;
    }
    if (store->shared->image == NULL)
        status = shared_snapshot_take(store, err);
    if (status == MUSTER_OK && shared_keep(store->shared, NULL) != MUSTER_OK)
        return MUSTER_OK; /* the next pass finds out more */
    if (status == MUSTER_OK)
        status = shared_snapshot_part(store->shared, err);
    if (status != MUSTER_E_STORAGE)
        return status;
    shared_snapshot_drop(store->shared); /* the log only grows until the next one */
    return MUSTER_OK;
}

/* --- life ------------------------------------------------------------------------------------- */

/* Which shared database this broker was with: the program before this one, or its file, knows it.
 */
static enum muster_status shared_expect(struct shared *shared, const char *id,
                                        struct muster_error *err)
{
    struct shared_file file = {.copy_of = ""};

    if (id == NULL && access(shared->path, F_OK) == 0)
        shared_file_look(shared->path, &file);
    if (id != NULL || file.copy_of[0] != '\0')
        fenced_log_expect(shared->log, id != NULL ? id : file.copy_of);
    return shared_was_read(shared, &file, err);
}

enum muster_status shared_open(const struct shared_options *options, struct shared **ret_shared,
                               struct muster_error *err)
{
    const struct postgres_use use = {.option = "--shared", .known = options->known};
    struct shared *shared = calloc(1, sizeof *shared);
    enum muster_status status;

    if (shared == NULL || (shared->path = strdup(options->path)) == NULL) {
        free(shared);
        return error_set(err, MUSTER_E_NOMEM, "no memory for the shared database");
    }
    shared->lock_fd = -1;
    shared_keeper_init(&shared->keeper);
    shared->alive_fn = options->alive_fn;
    shared->alive_arg = options->arg;
    status = fenced_log_open(options->uri, options->owner, &use, &shared->log, err);
    if (status == MUSTER_OK)
        status = shared_lock(shared, err);
    if (status != MUSTER_OK) {
        shared_close(&shared);
        return status;
    }
    fenced_log_knows(shared->log, (int64_t)sql_migrations_count);
    status = shared_expect(shared, options->id, err);
    if (status != MUSTER_OK)
        shared_close(&shared);
    *ret_shared = shared;
    return status;
}

enum muster_status shared_refuse_copy(const char *path, struct muster_error *err)
{
    struct shared_file file = {.copy_of = ""};

    if (access(path, F_OK) == 0)
        shared_file_look(path, &file);
    return file.copy_of[0] == '\0' && file.seeded[0] == '\0'
               ? MUSTER_OK
               : error_set(err, MUSTER_E_ARGUMENT,
                           "database %s is a copy of a shared database: give its address with "
                           "--shared, and all its brokers use what is made there",
                           path);
}

bool shared_is_empty(const struct shared *shared)
{
    return shared->empty;
}

void shared_give_up(struct shared *shared)
{
    shared_file_unlink(shared->path, ".part");
    shared_file_unlink(shared->path, ".part-wal");
    shared_file_unlink(shared->path, ".part-shm");
    fenced_log_release(shared->log);
}

void shared_close(struct shared **shared)
{
    if (*shared == NULL)
        return;
    shared_keeper_stop(*shared);
    pthread_cond_destroy(&(*shared)->keeper.wakes);
    pthread_mutex_destroy(&(*shared)->keeper.lock);
    if ((*shared)->taken)
        fenced_log_release((*shared)->log);
    fenced_log_close(&(*shared)->log);
    shared_unlock(*shared, true);
    shared_snapshot_drop(*shared);
    sqlite3_free((*shared)->aside);
    free((*shared)->path);
    free(*shared);
    *shared = NULL;
}

const char *shared_name(const struct shared *shared)
{
    return fenced_log_name(shared->log);
}

const char *shared_id(const struct shared *shared)
{
    return fenced_log_id(shared->log);
}

bool shared_is_older(const struct shared *shared)
{
    return fenced_log_is_older(shared->log);
}

const char *shared_aside(const struct shared *shared)
{
    return shared->aside;
}
