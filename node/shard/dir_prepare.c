/* dir_prepare - the root and its .muster: made, claimed for a job, numbered, and taken back; see
 * dir.h. */
#include "node/shard/dir.h"

#include "schema/error.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MAKE_TRIES 5
#define LOCK_TRIES 100
#define LOCK_PAUSE_MS 10
#define ROOT_MARKER "ROOT" /* in a .muster: muster made the directory around it, too */
#define TEMP_AGE_S 3600    /* no writer needs an hour between creating and naming a small file */

/* Proves that files can be created, filled and renamed here; *ret_now_s is the file system's own
 * clock, against which the age of its files can be told. */
static enum muster_status dir_prepare_probe(const char *root, const char *muster,
                                            int64_t *ret_now_s, struct muster_error *err)
{
    static const char text[] = "muster looks whether it can write here\n";
    char path[FS_PATH_MAX];
    uint64_t number = 0;
    struct stat st;
    enum muster_status status;

    if (faccessat(AT_FDCWD, root, W_OK | X_OK, AT_EACCESS) != 0)
        return fs_fail(err, MUSTER_E_IO, errno, "write in the checkpoint directory", root);
    status = fs_random_u64(&number, err);
    if (status == MUSTER_OK)
        status = fs_path(path, err, "%s/tmp-%016" PRIx64, muster, number);
    if (status == MUSTER_OK)
        status = fs_write_new(path, text, sizeof text - 1, err);
    if (status != MUSTER_OK)
        return status;
    *ret_now_s = lstat(path, &st) == 0 ? (int64_t)st.st_mtime : 0; /* 0: nothing looks old */
    if (unlink(path) != 0 && errno != ENOENT)
        return fs_fail(err, MUSTER_E_IO, errno, "remove", path);
    return MUSTER_OK;
}

/* Whether what was moved to "trash-<g>-<r>-<random>" is that round, or what a removal left of it. A
 * hand that froze before its rename may have moved another, and died before it could put that back.
 */
static bool prepare_is_trash(const char *name, const char *path)
{
    struct dir_claim claim;
    uint64_t generation, round;
    enum muster_status status;

    if (!dir_take_number(&name, "trash-", &generation) || !dir_take_number(&name, "-", &round) ||
        *name != '-')
        return true;
    status = dir_claim_read(path, &claim, NULL);
    return status == MUSTER_E_NOT_FOUND ||
           (status == MUSTER_OK && claim.generation == generation && claim.round == round);
}

/* Clears leftovers. Best effort: what stays does no harm, and the next start tries again. */
static void prepare_clear_leftovers(const char *muster, int64_t now_s)
{
    char path[FS_PATH_MAX];
    const struct dirent *entry;
    struct stat st;
    DIR *dir = fs_opendir(muster);

    if (dir == NULL)
        return;
    while ((entry = fs_readdir(dir)) != NULL) {
        bool trash = strncmp(entry->d_name, "trash-", 6) == 0;
        bool temp = strncmp(entry->d_name, "tmp-", 4) == 0;

        if ((!trash && !temp) || fs_path(path, NULL, "%s/%s", muster, entry->d_name) != MUSTER_OK)
            continue;
        if (trash && prepare_is_trash(entry->d_name, path))
            (void)fs_remove_tree(path, NULL);
        else if (temp && lstat(path, &st) == 0 && st.st_mtime < now_s - TEMP_AGE_S)
            (void)unlink(path);
    }
    closedir(dir);
}

/* True also if it is not there: another rank of the launch removed it. Names that begin with `temp`
 * (NULL = none) do not count. */
static bool prepare_has_only(const char *path, const char *name, const char *other,
                             const char *temp)
{
    DIR *dir = fs_opendir(path);
    const struct dirent *entry;
    bool only = dir != NULL || errno == ENOENT;

    while (dir != NULL && only && (entry = fs_readdir(dir)) != NULL)
        only = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
               strcmp(entry->d_name, name) == 0 || strcmp(entry->d_name, other) == 0 ||
               (temp != NULL && strncmp(entry->d_name, temp, strlen(temp)) == 0);
    if (dir != NULL) {
        only = only && errno == 0; /* what was not read may hold more */
        closedir(dir);
    }
    return only;
}

/* A claim alone, as a mistyped name leaves it behind, is in the way of nothing but the right name.
 * (Other ranks look just now whether they can write here.) */
static enum muster_status prepare_belongs_to_other(const char *root, const char *muster,
                                                   const char *owner, int length, const char *job,
                                                   struct muster_error *err)
{
    char free_it[FS_PATH_MAX + 256] = "";

    if (prepare_has_only(root, ".muster", ".muster", NULL) &&
        prepare_has_only(muster, "JOB", "NUMBER", "tmp-"))
        snprintf(
            free_it, sizeof free_it,
            ", or, if there is no such job (a mistyped name, say), remove %.600s: no checkpoint "
            "is in that directory",
            muster);
    return error_set(err, MUSTER_E_JOB,
                     "the checkpoint directory %.600s belongs to job \"%.*s\", this is job \"%s\"; "
                     "give this job its own directory%s",
                     root, length, owner, job, free_it);
}

static enum muster_status prepare_claim_for_job(const char *root, const char *muster,
                                                const char *job, struct muster_error *err)
{
    char path[FS_PATH_MAX];
    char text[DIR_OWNER_BYTES_MAX];
    char *found;
    size_t size, length;
    enum muster_status status = fs_path(path, err, "%s/JOB", muster);

    snprintf(text, sizeof text, "%s\n", job);
    if (status == MUSTER_OK)
        status = fs_claim(muster, path, text, strlen(text), err);
    if (status == MUSTER_OK)
        status = fs_read_small(path, DIR_OWNER_BYTES_MAX, &found, &size, err);
    if (status != MUSTER_OK)
        return status;
    length = strcspn(found, "\n");
    if (found[length] == '\0' || length != strlen(job) || strncmp(found, job, length) != 0) {
        if (found[length] == '\0')
            status =
                error_set(err, MUSTER_E_CORRUPT,
                          "%.600s does not hold a job's name; if the checkpoints there are this "
                          "job's, write \"%s\" and a newline into it",
                          path, job);
        else
            status = prepare_belongs_to_other(root, muster, found, (int)length, job, err);
    }
    free(found);
    return status;
}

/* In a file of its own: older libraries compare the whole of JOB. A directory that they made gets
 * one, too. */
static enum muster_status prepare_claim_number(const char *muster, struct muster_error *err)
{
    char path[FS_PATH_MAX], text[32];
    uint64_t number = 0;
    enum muster_status status = fs_path(path, err, "%s/NUMBER", muster);

    if (status == MUSTER_OK)
        status = fs_random_u64(&number, err);
    snprintf(text, sizeof text, "%016" PRIx64 "\n", number);
    if (status == MUSTER_OK)
        status = fs_claim(muster, path, text, strlen(text), err);
    return status;
}

static enum muster_status dir_prepare_make(const char *root, const char *muster,
                                           struct dir_made *ret_made, struct muster_error *err)
{
    size_t made;
    enum muster_status status = fs_make_dirs_counted(root, &made, err);

    ret_made->root |= made > 0; /* also by a call before: what went meanwhile may be there again */
    if (status != MUSTER_OK)
        return status;
    status = fs_make_dirs_counted(muster, &made, err);
    ret_made->muster |= made > 0;
    ret_made->root |= made > 1; /* whoever had made it took it back just now */
    return status;
}

static bool dir_prepare_is_same(int fd, const char *path)
{
    struct stat open_one, named;

    return fstat(fd, &open_one) == 0 && stat(path, &named) == 0 &&
           open_one.st_dev == named.st_dev && open_one.st_ino == named.st_ino;
}

/* Locks the directory, so that no rank takes it back while it is prepared. Returns a descriptor.
 * -1: the lock could not be had within a second, or there are no locks here, and then no rank takes
 * anything back. */
static int prepare_lock_root(const char *root, int operation)
{
    static const struct timespec pause = {.tv_nsec = LOCK_PAUSE_MS * 1000000};
    bool busy = true;

    for (int i = 0; i < LOCK_TRIES && busy; i++) {
        int fd = fs_open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);

        if (fd < 0)
            return -1;
        busy = flock(fd, operation | LOCK_NB) != 0;
        if (!busy && dir_prepare_is_same(fd, root))
            return fd;
        busy =
            !busy || errno == EWOULDBLOCK || errno == EINTR; /* it went, and may be there again */
        close(fd);
        if (busy)
            nanosleep(&pause, NULL);
    }
    return -1;
}

/* Until it is locked, another rank may remove a directory that was made: then this tries once
 * more. */
static enum muster_status prepare_make_locked(const char *root, const char *muster,
                                              struct dir_made *ret_made, int *ret_lock,
                                              struct muster_error *err)
{
    struct muster_error why = {.status = MUSTER_OK};
    enum muster_status status = MUSTER_OK;

    for (int i = 0; i < MAKE_TRIES && *ret_lock < 0; i++) {
        status = dir_prepare_make(root, muster, ret_made, &why);
        if (status == MUSTER_OK)
            *ret_lock = prepare_lock_root(root, LOCK_SH);
        else if (why.code != ENOENT)
            return error_pass(err, status, &why);
    }
    if (status != MUSTER_OK)
        return error_pass(err, status, &why);
    return fs_is_dir(muster) ? MUSTER_OK : dir_prepare_make(root, muster, ret_made, err);
}

enum muster_status dir_prepare(const char *root, const char *job, struct dir_made *ret_made,
                               struct muster_error *err)
{
    char muster[FS_PATH_MAX];
    struct dir_made made = {.number = 0};
    int64_t now_s = 0;
    int lock = -1;
    enum muster_status status = dir_muster_path(root, muster, err);

    if (status == MUSTER_OK && (*root == '\0' || strlen(root) > PATH_BYTES_MAX - DIR_NAME_SIZE))
        status = error_set(err, MUSTER_E_ARGUMENT,
                           "the checkpoint directory has %zu bytes; give a path of 1 to %d",
                           strlen(root), PATH_BYTES_MAX - DIR_NAME_SIZE);
    if (status == MUSTER_OK)
        status = prepare_make_locked(root, muster, &made, &lock, err);
    if (status == MUSTER_OK)
        status = dir_prepare_probe(root, muster, &now_s, err);
    if (status == MUSTER_OK) {
        prepare_clear_leftovers(muster, now_s);
        status = prepare_claim_for_job(root, muster, job, err);
    }
    if (status == MUSTER_OK)
        status = prepare_claim_number(muster, err);
    if (status == MUSTER_OK) /* also of a claim whose process died before this */
        status = fs_sync_dir(muster, err);
    made.number = dir_number(root);
    if (lock >= 0)
        close(lock);
    if (ret_made != NULL)
        *ret_made = made;
    return status;
}

uint64_t dir_number(const char *root)
{
    char path[FS_PATH_MAX];
    char *text;
    size_t size;
    uint64_t number;

    if (fs_path(path, NULL, "%s/.muster/NUMBER", root) != MUSTER_OK ||
        fs_read_small(path, DIR_OWNER_BYTES_MAX, &text, &size, NULL) != MUSTER_OK)
        return 0;
    number = strtoull(text, NULL, 16);
    free(text);
    return number;
}

static bool dir_prepare_is_gone(int removed)
{
    return removed == 0 || errno == ENOENT;
}

/* Whoever takes this .muster back takes its root back too. */
static void prepare_mark_root(const char *marker)
{
    int fd = fs_open(marker, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);

    if (fd >= 0)
        fs_close(fd);
}

/* With the lock. */
static void prepare_take_back(const char *root, const char *muster, const struct dir_made *made)
{
    char job[FS_PATH_MAX], number[FS_PATH_MAX], marker[FS_PATH_MAX];
    bool root_too = made->root;

    if (fs_path(job, NULL, "%s/JOB", muster) != MUSTER_OK ||
        fs_path(number, NULL, "%s/NUMBER", muster) != MUSTER_OK ||
        fs_path(marker, NULL, "%s/" ROOT_MARKER, muster) != MUSTER_OK)
        return;
    if (fs_is_dir(muster) && (made->number == 0 || dir_number(root) != made->number)) {
        if (made->root) /* another rank made it in our root, and will take it back */
            prepare_mark_root(marker);
        return;
    }
    root_too |= fs_exists(marker);
    if (fs_is_dir(muster) &&
        (!dir_prepare_is_gone(unlink(job)) || !dir_prepare_is_gone(unlink(number)) ||
         !dir_prepare_is_gone(unlink(marker)) || !dir_prepare_is_gone(rmdir(muster))))
        return;
    if (root_too)
        (void)rmdir(root);
}

void dir_take_back(const char *root, const struct dir_made *made)
{
    char muster[FS_PATH_MAX];
    int lock;

    if ((!made->root && !made->muster) || dir_muster_path(root, muster, NULL) != MUSTER_OK)
        return;
    lock =
        prepare_lock_root(root, LOCK_EX); /* another rank prepares it just now, or takes it back */
    if (lock < 0)
        return;
    if (prepare_has_only(root, ".muster", ".muster", NULL) &&
        prepare_has_only(muster, "JOB", "NUMBER", ROOT_MARKER))
        prepare_take_back(root, muster, made);
    close(lock);
}
