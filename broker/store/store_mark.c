/* store_mark - tells when the database was restored from an older backup.
 *
 * When a checkpoint ends, nodes delete its files, and that cannot be undone. In a copy from before
 * that end the save is still open, and would be committed when its last writer is heard; or the
 * copy lists a checkpoint that was deleted. So such ends, and decisions to delete, are counted in
 * the database and, before anybody is told, in a file beside it (<db>.mark). A database whose count
 * is behind the file's is older than what was done with it. A database
 * in a copied directory may be older, too: the file there has another inode than the one it names.
 *
 *   transaction with the new count -> commit -> file written and synced -> only then the messages
 *
 * A crash before the file is written leaves it behind the database: nobody was told, nothing is
 * lost. */
#include "broker/store/store_internal.h"

#include "broker/base/dirs.h"
#include "schema/error.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Always as long, so that a full disk cannot refuse it once it is there. */
#define MARK_FORMAT "%020" PRIu64 " %020" PRIu64 "\n"
#define MARK_BYTES 42

static enum muster_status store_mark_failed(const struct store *store, const char *doing,
                                            struct muster_error *err)
{
    return error_set_code(err, errno == ENOSPC || errno == EDQUOT ? MUSTER_E_STORAGE : MUSTER_E_IO,
                          errno, "cannot %s %s.mark: %s; check the disk", doing, store->path,
                          strerror(errno));
}

static enum muster_status mark_read_count(struct store *store, struct muster_error *err)
{
    int64_t count = 0;
    enum muster_status status = store_get_int(
        store, "SELECT ifnull((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'ends'), 0)",
        &count, err);

    if (status == MUSTER_OK)
        store->ends = (uint64_t)count;
    return status;
}

/* A mark that cannot be read is of a former life in an unknown state: it counts as ahead. */
static void store_mark_compare(struct store *store, const char *text, ssize_t size)
{
    char *at = NULL;
    struct stat self;
    uint64_t inode;

    if (size == 0)
        return; /* the first start with this database */
    store->ends_told = strtoull(text, &at, 10);
    inode = strtoull(at, NULL, 10);
    store->older = size != MARK_BYTES || text[MARK_BYTES - 1] != '\n' ||
                   store->ends_told > store->ends || fstat(store->mark_fd, &self) != 0 ||
                   inode != (uint64_t)self.st_ino;
}

enum muster_status store_mark_open(struct store *store, struct muster_error *err)
{
    char path[PATH_MAX];
    char text[MARK_BYTES + 1] = "";
    enum muster_status status = mark_read_count(store, err);
    ssize_t size;

    if (status != MUSTER_OK)
        return status;
    if (snprintf(path, sizeof path, "%s.mark", store->path) >= (int)sizeof path)
        return error_set(err, MUSTER_E_ARGUMENT, "path %.60s... is too long; use a shorter one",
                         store->path);
    store->mark_fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    store->created_mark = store->mark_fd >= 0;
    if (store->mark_fd < 0 && errno == EEXIST)
        store->mark_fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (store->mark_fd < 0)
        return store_mark_failed(store, "open", err);
    size = pread(store->mark_fd, text, MARK_BYTES, 0);
    if (size < 0)
        return store_mark_failed(store, "read", err);
    store_mark_compare(store, text, size);
    return MUSTER_OK;
}

static bool mark_ends_a_checkpoint(const struct record *row)
{
    return row->kind == RECORD_CHECKPOINT && (row->u.checkpoint.state == CHECKPOINT_FAILED ||
                                              row->u.checkpoint.state == CHECKPOINT_DELETING ||
                                              row->u.checkpoint.state == CHECKPOINT_DELETED);
}

enum muster_status store_mark_count(struct store *store, const struct actions *actions,
                                    uint64_t *ret_ends, struct muster_error *err)
{
    uint64_t ends = store->ends > store->ends_told ? store->ends : store->ends_told;
    char text[24];
    bool start = false, more = false;

    *ret_ends = 0;
    for (size_t i = 0; i < actions->count; i++) {
        start |= actions->items[i].kind == ACTION_PERSIST &&
                 actions->items[i].record.kind == RECORD_BROKER;
        more |= actions->items[i].kind == ACTION_PERSIST &&
                mark_ends_a_checkpoint(&actions->items[i].record);
    }
    if (!start && !more)
        return MUSTER_OK;
    *ret_ends = ends + (more || ends == 0);
    snprintf(text, sizeof text, "%" PRIu64, *ret_ends);
    sqlite3_bind_text(store->mark_count, 1, text, -1, SQLITE_TRANSIENT);
    return store_step(store, store->mark_count, "count the checkpoints that ended", err);
}

static enum muster_status mark_name_is_durable(const struct store *store, struct muster_error *err)
{
    char directory[PATH_MAX];
    enum muster_status status = dirs_parent(store->path, directory, sizeof directory, err);

    return status == MUSTER_OK ? dirs_sync(directory, err) : status;
}

enum muster_status store_mark_tell(struct store *store, uint64_t ends, struct muster_error *err)
{
    char text[MARK_BYTES + 1];
    struct stat self;
    enum muster_status status = MUSTER_OK;

    if (ends == 0)
        return MUSTER_OK;
    store->ends = ends;
    if (fstat(store->mark_fd, &self) != 0)
        return store_mark_failed(store, "look at", err);
    snprintf(text, sizeof text, MARK_FORMAT, ends, (uint64_t)self.st_ino);
    if (pwrite(store->mark_fd, text, MARK_BYTES, 0) != MARK_BYTES || fsync(store->mark_fd) != 0)
        return store_mark_failed(store, "write", err);
    if (store->ends_told == 0)
        status = mark_name_is_durable(store, err);
    if (status == MUSTER_OK)
        store->ends_told = ends;
    return status;
}

bool store_is_older(const struct store *store)
{
    return store->older;
}
