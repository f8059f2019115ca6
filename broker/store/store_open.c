/* store_open - the lock, the checks of the file, and its migrations.
 * The order: file system, lock, connection, the file's owner, its version, its soundness, settings,
 * migrations. Nothing is written to a file that is not known to be ours and sound. */
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
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define APPLICATION_ID 0x6d757374 /* "must" */
#define BUSY_TIMEOUT_MS 5000
#define LOCK_LOOK_MS 10

/* --- file systems ----------------------------------------------------------------------------- */

static const struct {
    unsigned long magic;
    const char *name;
} network_file_systems[] = {
    {0x00006969, "NFS"},      {0x0000517b, "SMB"},
    {0xff534d42, "CIFS"},     {0xfe534d42, "SMB2"},
    {0x0bd00bd0, "Lustre"},   {0x19830326, "BeeGFS"},
    {0x65735546, "FUSE"},     {0x01021997, "9p"},
    {0x00c36400, "Ceph"},     {0x47504653, "GPFS"},
    {0x5346414f, "AFS"},      {0x6b414653, "kAFS"},
    {0x73757245, "Coda"},     {0x0000564c, "NCP"},
    {0x01161970, "GFS2"},     {0x7461636f, "OCFS2"},
    {0xaad7aaea, "PanFS"},    {0x786f4256, "vboxsf"},
    {0x20030528, "OrangeFS"}, {0xbacbacbc, "vmhgfs"},
    {0x7c7c6673, "prl_fs"},   {0, NULL},
};

const char *store_network_name(unsigned long magic)
{
    for (size_t i = 0; network_file_systems[i].name != NULL; i++) {
        if ((magic & 0xffffffffUL) == network_file_systems[i].magic)
            return network_file_systems[i].name;
    }
    return NULL;
}

enum muster_status store_refuse_network(const char *path, struct muster_error *err)
{
    char directory[PATH_MAX];
    struct statfs info;
    const char *name;
    enum muster_status status = dirs_parent(path, directory, sizeof directory, err);

    if (status != MUSTER_OK)
        return status;
    if (statfs(directory, &info) != 0)
        return error_set_code(err, MUSTER_E_IO, errno, "cannot ask for the file system of %s: %s",
                              directory, strerror(errno));
    name = store_network_name((unsigned long)info.f_type);
    if (name != NULL)
        return error_set(err, MUSTER_E_UNSUPPORTED,
                         "database %s would be on a network file system (%s), where SQLite's "
                         "locks and shared memory are not safe; put it on a local disk with "
                         "--db, or give --allow-network-fs if only this host ever uses it",
                         path, name);
    return MUSTER_OK;
}

/* Two names of one file must find one lock file. */
enum muster_status store_real_path(char **path, struct muster_error *err)
{
    char directory[PATH_MAX];
    char whole[2 * PATH_MAX];
    const char *slash = strrchr(*path, '/');
    char *real = realpath(*path, NULL);
    enum muster_status status;

    if (real == NULL) { /* not there yet: then its directory is */
        status = dirs_parent(*path, directory, sizeof directory, err);
        if (status != MUSTER_OK)
            return status;
        real = realpath(directory, NULL);
        if (real == NULL)
            return error_set_code(err, MUSTER_E_IO, errno, "cannot find directory %s: %s",
                                  directory, strerror(errno));
        snprintf(whole, sizeof whole, "%s/%s", strcmp(real, "/") == 0 ? "" : real,
                 slash == NULL ? *path : slash + 1);
        free(real);
        real = strdup(whole);
        if (real == NULL)
            return error_set(err, MUSTER_E_NOMEM, "no memory to open database %s", *path);
    }
    free(*path);
    *path = real;
    return MUSTER_OK;
}

/* --- lock ------------------------------------------------------------------------------------- */

static enum muster_status store_open_held_by_another(const char *path, int fd,
                                                     struct muster_error *err)
{
    char text[32] = "";
    ssize_t size = pread(fd, text, sizeof text - 1, 0);
    long pid = size > 0 ? strtol(text, NULL, 10) : 0;

    if (pid <= 0)
        return error_set(err, MUSTER_E_LOCKED,
                         "database %s is in use by another musterd that is just starting; stop it, "
                         "or choose another file with --db",
                         path);
    return error_set_code(err, MUSTER_E_LOCKED, (int)pid,
                          "database %s is in use by musterd with pid %ld; stop that one, or choose "
                          "another file with --db",
                          path, pid);
}

/* -1 with errno. ret_created: no lock file was there before. */
static int open_lock(const char *lock, bool *ret_created)
{
    const int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW;
    int fd = open(lock, flags | O_EXCL, 0600);

    *ret_created = fd >= 0;
    return fd < 0 && errno == EEXIST ? open(lock, flags, 0600) : fd;
}

/* A broker that was refused removes the lock file that it created: a lock on that is worth nothing.
 */
static bool store_open_has_its_name(const char *lock, int fd)
{
    struct stat held, named;

    return fstat(fd, &held) == 0 && lstat(lock, &named) == 0 && held.st_dev == named.st_dev &&
           held.st_ino == named.st_ino;
}

/* the text is for people and for the next one's message; the lock itself is the kernel's */
static enum muster_status store_open_write_pid(const char *lock, int fd, struct muster_error *err)
{
    char space[64] = "", pid[128];
    /* a pid is one of its space (a container's, say), and who reads it may be in another */
    ssize_t space_length = readlink("/proc/self/ns/pid", space, sizeof space - 1);
    int length = snprintf(pid, sizeof pid, "%ld %.*s\n", (long)getpid(),
                          space_length > 0 ? (int)space_length : 0, space);

    if (ftruncate(fd, 0) == 0 && pwrite(fd, pid, (size_t)length, 0) == length)
        return MUSTER_OK;
    return error_set_code(err, errno == ENOSPC ? MUSTER_E_STORAGE : MUSTER_E_IO, errno,
                          "cannot write lock file %s: %s; free disk space, or choose another "
                          "place for the database with --db",
                          lock, strerror(errno));
}

static bool store_open_lock_within(int fd, int64_t wait_ms)
{
    const struct timespec pause = {.tv_nsec = LOCK_LOOK_MS * 1000000};

    while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK || wait_ms <= 0)
            return false;
        nanosleep(&pause, NULL);
        wait_ms -= LOCK_LOOK_MS;
    }
    return true;
}

enum muster_status store_lock(const char *path, int64_t wait_ms, int *ret_fd, bool *ret_created,
                              struct muster_error *err)
{
    char lock[PATH_MAX];
    bool created = false;
    enum muster_status status;
    int fd = -1;

    if (snprintf(lock, sizeof lock, "%s.lock", path) >= (int)sizeof lock)
        return error_set(err, MUSTER_E_ARGUMENT, "path %.60s... is too long; use a shorter one",
                         path);
    do {
        if (fd >= 0)
            close(fd);
        fd = open_lock(lock, &created);
        if (fd < 0)
            return error_set_code(err, MUSTER_E_IO, errno,
                                  "cannot open lock file %s: %s; choose a place for the database "
                                  "where files can be made with --db",
                                  lock, strerror(errno));
        if (!store_open_lock_within(fd, wait_ms)) {
            status = errno == EWOULDBLOCK
                         ? store_open_held_by_another(path, fd, err)
                         : error_set_code(err, MUSTER_E_IO, errno, "cannot lock %s: %s", lock,
                                          strerror(errno));
            close(fd);
            return status;
        }
    } while (!store_open_has_its_name(lock, fd));
    status = store_open_write_pid(lock, fd, err);
    if (status != MUSTER_OK) {
        if (created)
            unlink(lock);
        close(fd);
        return status;
    }
    *ret_fd = fd;
    *ret_created = created;
    return MUSTER_OK;
}

/* --- whose file, which version, sound? -------------------------------------------------------- */

static enum muster_status store_open_identify(struct store *store, int64_t *ret_version,
                                              struct muster_error *err)
{
    int64_t application = 0;
    int64_t objects = 0;
    enum muster_status status = store_get_int(store, "PRAGMA application_id", &application, err);

    if (status == MUSTER_OK)
        status = store_get_int(store, "PRAGMA user_version", ret_version, err);
    if (status == MUSTER_OK)
        status = store_get_int(store, "SELECT count(*) FROM sqlite_schema", &objects, err);
    if (status != MUSTER_OK)
        return status;
    if (application == APPLICATION_ID)
        return MUSTER_OK;
    if (application == 0 && *ret_version == 0 && objects == 0)
        return MUSTER_OK; /* an empty file: ours from now on */
    return error_set(err, MUSTER_E_CORRUPT,
                     "file %s is a database, but not one of muster's (application id %" PRId64
                     "); it was left as it is: choose another file with --db",
                     store->path, application);
}

/* The result for which a page could not be had, of a row of store_open_quick_check: to it that is a
 * damaged page. 0 = none. */
static int store_open_unread_by(const char *row)
{
    static const char words[] = "error code=";
    const char *at = strstr(row, words);
    long result = at == NULL ? SQLITE_OK : strtol(at + sizeof words - 1, NULL, 10);

    return (result & 0xff) == SQLITE_CORRUPT ? SQLITE_OK : (int)result;
}

/* The return code of store_open_quick_check does not tell: its rows do. finding: the first, if it
 * is not well.
 */
static enum muster_status store_open_run_quick_check(struct store *store, char *finding,
                                                     size_t size, struct muster_error *err)
{
    sqlite3_stmt *statement = NULL;
    int rows = 0;
    bool ok = true;
    int unread = SQLITE_OK;
    int result;
    enum muster_status status = store_prepare(store, "PRAGMA quick_check", &statement, err);

    if (status != MUSTER_OK)
        return status;
    while ((result = sqlite3_step(statement)) == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(statement, 0);

        if (rows == 0)
            snprintf(finding, size, "%s", text == NULL ? "no text" : text);
        rows++;
        ok = ok && text != NULL && strcmp(text, "ok") == 0;
        if (text != NULL && unread == SQLITE_OK)
            unread = store_open_unread_by(text);
    }
    sqlite3_finalize(statement);
    if (result != SQLITE_DONE)
        return store_failed(store, result, "check the file", err);
    if (unread != SQLITE_OK)
        return error_set(
            err, MUSTER_E_IO,
            "cannot check database %s: a page of it cannot be read (%s); check the disk",
            store->path, sqlite3_errstr(unread));
    return rows == 1 && ok ? MUSTER_OK : store_damaged(store, finding, err);
}

/* A finding that a second look does not repeat is no damage. */
static enum muster_status store_open_quick_check(struct store *store, struct muster_error *err)
{
    char finding[256] = "quick_check gave no answer";
    enum muster_status status = store_open_run_quick_check(store, finding, sizeof finding, err);

    return status == MUSTER_E_CORRUPT || status == MUSTER_E_IO
               ? store_open_run_quick_check(store, finding, sizeof finding, err)
               : status;
}

/* --- connection ------------------------------------------------------------------------------- */

void store_alone_in_process(void)
{
    sqlite3_config(SQLITE_CONFIG_SINGLETHREAD);
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

static enum muster_status open_connection(struct store *store, struct muster_error *err)
{
    int result =
        sqlite3_open_v2(store->path, &store->db,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);

    if (store->db == NULL)
        return error_set(err, MUSTER_E_NOMEM, "no memory to open database %s", store->path);
    if (result == SQLITE_OK)
        result = sqlite3_extended_result_codes(store->db, 1);
    if (result == SQLITE_OK)
        result = sqlite3_busy_timeout(store->db, BUSY_TIMEOUT_MS);
    if (result == SQLITE_OK)
        result = sqlite3_db_config(store->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    if (result == SQLITE_OK)
        result = sqlite3_db_config(store->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    if (result == SQLITE_OK)
        result = sqlite3_db_config(store->db, SQLITE_DBCONFIG_ENABLE_FKEY, 1, NULL);
    return result == SQLITE_OK ? MUSTER_OK : store_failed(store, result, "open the file", err);
}

/* --- migrations ------------------------------------------------------------------------------- */

/* SQLite does not sync what VACUUM INTO writes. Nothing else has this file open, so closing it
 * takes nobody's locks away. */
static enum muster_status store_open_sync_copy(const char *part, struct muster_error *err)
{
    int fd = open(part, O_RDONLY | O_CLOEXEC);
    int code = fd < 0 || fsync(fd) != 0 ? errno : 0;

    if (fd >= 0)
        close(fd);
    if (code == 0)
        return MUSTER_OK;
    return error_set_code(err, code == ENOSPC ? MUSTER_E_STORAGE : MUSTER_E_IO, code,
                          "cannot make durable (fsync) %s: %s; check the disk", part,
                          strerror(code));
}

/* Gives the copy its name, for good. */
static enum muster_status store_open_name_copy(const char *part, const char *target,
                                               struct muster_error *err)
{
    char directory[PATH_MAX];
    enum muster_status status = store_open_sync_copy(part, err);

    if (status == MUSTER_OK)
        status = dirs_parent(target, directory, sizeof directory, err);
    if (status == MUSTER_OK && rename(part, target) != 0)
        status = error_set_code(err, MUSTER_E_IO, errno, "cannot rename %s to %s: %s", part, target,
                                strerror(errno));
    if (status == MUSTER_OK)
        status = dirs_sync(directory, err);
    return status;
}

/* A whole copy beside the file, complete and on the disk before it gets its name. */
static enum muster_status store_open_back_up(struct store *store, int version,
                                             struct muster_error *err)
{
    char target[PATH_MAX];
    char part[PATH_MAX];
    sqlite3_stmt *statement = NULL;
    enum muster_status status;
    int result;

    if (snprintf(target, sizeof target, "%s.before-v%d", store->path, version) >=
            (int)sizeof target ||
        snprintf(part, sizeof part, "%s.part", store->path) >= (int)sizeof part)
        return error_set(err, MUSTER_E_ARGUMENT, "path %.60s... is too long; use a shorter one",
                         store->path);
    unlink(part); /* of a backup that was interrupted */
    status = store_prepare(store, "VACUUM INTO ?1", &statement, err);
    if (status != MUSTER_OK)
        return status;
    sqlite3_bind_text(statement, 1, part, -1, SQLITE_STATIC);
    result = sqlite3_step(statement);
    if (result != SQLITE_DONE)
        status = store_failed(store, result, "back up before a migration", err);
    sqlite3_finalize(statement);
    if (status == MUSTER_OK)
        status = store_open_name_copy(part, target, err);
    if (status != MUSTER_OK)
        unlink(part);
    return status;
}

/* From first to last in one transaction. */
static enum muster_status store_open_migrate_all(struct store *store,
                                                 const struct sql_migration *first,
                                                 const struct sql_migration *last,
                                                 struct muster_error *err)
{
    char close_sql[96];
    enum muster_status status = store_exec(store, "BEGIN IMMEDIATE", err);

    if (status != MUSTER_OK)
        return status;
    snprintf(close_sql, sizeof close_sql,
             "PRAGMA application_id=%d; PRAGMA user_version=%d; COMMIT", APPLICATION_ID,
             last->version);
    for (const struct sql_migration *at = first; at <= last && status == MUSTER_OK; at++)
        status = store_exec(store, at->sql, err);
    if (status == MUSTER_OK)
        status = store_exec(store, close_sql, err);
    if (status != MUSTER_OK && sqlite3_get_autocommit(store->db) == 0)
        store_exec(store, "ROLLBACK", NULL);
    return status;
}

static enum muster_status store_open_migrate(struct store *store,
                                             const struct sql_migration *migrations,
                                             int64_t version, struct muster_error *err)
{
    const struct sql_migration *last;
    enum muster_status status = MUSTER_OK;

    while (migrations->version != 0 && migrations->version <= version)
        migrations++;
    if (migrations->version == 0)
        return MUSTER_OK;
    for (last = migrations; last[1].version != 0;)
        last++;
    if (version ==
        0) /* a new file is whole or empty: nothing to lose, and never half of a schema */
        return store_open_migrate_all(store, migrations, last, err);
    status = store_open_back_up(store, migrations->version, err);
    for (; migrations <= last && status == MUSTER_OK; migrations++)
        status = store_open_migrate_all(store, migrations, migrations, err);
    return status;
}

static int64_t store_open_newest_version(const struct sql_migration *migrations)
{
    int64_t newest = 0;

    for (; migrations->version != 0; migrations++)
        newest = migrations->version;
    return newest;
}

enum muster_status store_connect(struct store *store, const struct store_options *options,
                                 struct muster_error *err)
{
    const struct sql_migration *migrations =
        options->migrations != NULL ? options->migrations : sql_migrations;
    int64_t version = 0;
    enum muster_status status = open_connection(store, err);

    if (status == MUSTER_OK)
        status = store_open_identify(store, &version, err);
    if (status == MUSTER_OK && version > store_open_newest_version(migrations))
        status = error_set(err, MUSTER_E_SCHEMA,
                           "database %s has schema version %" PRId64 ", this musterd knows up to "
                           "%" PRId64 "; it was left as it is: use the newer musterd",
                           store->path, version, store_open_newest_version(migrations));
    if (status == MUSTER_OK)
        status = store_open_quick_check(store, err);
    if (status == MUSTER_OK)
        status = store_log_begin(store, err);
    if (status == MUSTER_OK)
        status = store_open_migrate(store, migrations, version, err);
    return status;
}
