/* fs - files and directories, with errors that say what could not be done to what, and why.
 * Owns: nothing; every call opens and closes for itself unless it returns a descriptor.
 * Never: threads, fork; a signal's disposition: a write beyond the file size limit is an error
 * (EFBIG), its SIGXFSZ is held back and taken; no descriptor survives an exec (O_CLOEXEC). A write
 * that is reported as done was fsynced; a file that could not be written whole is gone. */
#ifndef NODE_SHARD_FS_H
#define NODE_SHARD_FS_H

#include "schema/status.h"

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define FS_PATH_MAX 4096 /* with the final NUL; as PATH_MAX */
#define FS_WRITEBACK_BYTES                                                          \
    ((uint64_t)16 << 20)          /* of which the disk is told, or asked, at a time \
                                   */
#define FS_CHUNK_BYTES (1U << 20) /* the size of one read or write of a large file */

/* Says "cannot <doing> <path>: <cause>; <what to do>", with code = the errno value. */
enum muster_status fs_fail(struct muster_error *err, enum muster_status status, int code,
                           const char *doing, const char *path);

/* A formatted path; E_ARGUMENT when it does not fit. */
enum muster_status fs_path(char ret_path[FS_PATH_MAX], struct muster_error *err, const char *format,
                           ...) __attribute__((format(printf, 3, 4)));

/* Each returns 0 or an errno value; fs_pread_all returns FS_END when the file ends first. */
#define FS_END (-1)
int fs_write_all(int fd, const void *data, size_t size);
int fs_pwrite_all(int fd, const void *data, size_t size, uint64_t offset);
int fs_allocate(int fd,
                uint64_t bytes); /* takes the room for a file at once, if the file system can */
int fs_pread_all(int fd, void *data, size_t size, uint64_t offset);

/* open, opendir, readdir, fsync and close, made again when a signal broke them off: file systems in
 * user space and across a network let it. A close that was broken off has closed; what counts was
 * synced before. */
int fs_open(const char *path, int flags, mode_t mode);
DIR *fs_opendir(const char *path);
const struct dirent *fs_readdir(DIR *dir); /* NULL: errno is 0 at the end */
int fs_fsync(int fd);
int fs_close(int fd);

/* Opens a regular file for reading; a symbolic link, device or directory is refused (E_CORRUPT). */
enum muster_status fs_open_regular(const char *path, int *ret_fd, uint64_t *ret_size_bytes,
                                   struct muster_error *err);

/* Reads a small regular file whole, with a NUL after it; returns owned, free with free().
 * E_NOT_FOUND: there is none. E_CORRUPT: over max_bytes or not a regular file. E_IO, E_NOMEM. */
enum muster_status fs_read_small(const char *path, size_t max_bytes, char **ret_text,
                                 size_t *ret_size, struct muster_error *err);

/* Creates a file that must not exist (E_EXISTS), writes and fsyncs it. On failure there is none. */
enum muster_status fs_write_new(const char *path, const void *data, size_t size,
                                struct muster_error *err);

/* Makes the names inside a directory durable. */
enum muster_status fs_sync_dir(const char *path, struct muster_error *err);

/* The listener for progress of long work; NULL: none. */
struct fs_watcher {
    bool (*went)(uint64_t bytes,
                 void *arg); /* each piece that is done; false: break off, ECANCELED */
    void *arg;
};

/* The disk's part of a file of so many bytes in pieces, so that who watches sees it go on; the
 * fsync is still to be done. 0, errno: what a piece's wait finds, whatever it is, the fsync would
 * not tell again. */
int fs_await_disk(int fd, uint64_t bytes, const struct fs_watcher *watcher);

/* Makes the content of one file durable. */
enum muster_status fs_sync_file(const char *path, const struct fs_watcher *watcher,
                                struct muster_error *err);

/* mkdir of path and of its missing parents. Each of these, and the deepest directory that was there
 * before, is made durable in its own parent: the process that made that one may have died before
 * its fsync. */
enum muster_status fs_make_dirs(const char *path, struct muster_error *err);
/* How many at the path's end this call itself made: of those that were there, or that another rank
 * made, none. */
enum muster_status fs_make_dirs_counted(const char *path, size_t *ret_made,
                                        struct muster_error *err);

bool fs_exists(const char *path); /* of whatever kind; a link is not followed */
/* The same, for callers that act on "not there": E_IO if it is not known. */
enum muster_status fs_look(const char *path, bool *ret_there, struct muster_error *err);
bool fs_is_dir(const char *path); /* a link is not followed */

/* A number for a name that nobody else uses; from the kernel, no random() stream is touched. */
enum muster_status fs_random_u64(uint64_t *ret_number, struct muster_error *err);

/* Gives `from` the name `to` unless that exists (E_EXISTS, which also covers a lost race). */
enum muster_status fs_rename_new(const char *from, const char *to, struct muster_error *err);

/* Makes `path` hold exactly these bytes, with one winner among concurrent callers and never a half
 * file: a temporary file in temp_dir (same file system), fsync, link. MUSTER_OK also if a file was
 * there first: the caller reads it, and syncs the directory in either case. */
enum muster_status fs_claim(const char *temp_dir, const char *path, const void *data, size_t size,
                            struct muster_error *err);

/* Replaces or creates `path` whole: temporary file in temp_dir, fsync, rename, fsync of dir. */
enum muster_status fs_replace(const char *temp_dir, const char *dir, const char *path,
                              const void *data, size_t size, struct muster_error *err);

/* The regular files under a directory, sorted by path; paths are relative to it. */
struct fs_list {
    char **paths;
    size_t count;
    size_t capacity;
};
#define FS_DEPTH_MAX 32

/* E_UNSUPPORTED: something that is neither a regular file nor a directory (a link, a socket), over
 * FILES_SHARD_MAX files, too deep. Every file and every directory, itself included, is fsynced. */
enum muster_status fs_walk(const char *dir, const struct fs_watcher *watcher,
                           struct fs_list *ret_list, struct muster_error *err);
void fs_list_clear(struct fs_list *list);

/* Removes a file or a whole tree; links are removed, not followed. It is no error if it is gone
 * already. */
enum muster_status fs_remove_tree(const char *path, struct muster_error *err);
/* The same, with a call between one file and the next: a large tree takes long. */
enum muster_status fs_remove_tree_with(const char *path, void (*between)(void *arg), void *arg,
                                       struct muster_error *err);

#endif
