/* file_calls - the file calls of our own code, counted, and one of them failed.
 * Works at link time (-Wl,--wrap=...): every call that muster's objects make goes through here,
 * those of libraries (SQLite, libc itself) do not. Counts only between begin and end; the test's
 * own calls are never failed. One thread. */
#ifndef TESTS_FAULTS_FILE_CALLS_H
#define TESTS_FAULTS_FILE_CALLS_H

#include <stdbool.h>
#include <stdint.h>

enum file_call {                            /* bits */
                 FILE_CALL_OPEN = 1 << 0,   /* open, fopen */
                 FILE_CALL_WRITE = 1 << 1,  /* write, pwrite, ftruncate */
                 FILE_CALL_READ = 1 << 2,   /* pread */
                 FILE_CALL_SYNC = 1 << 3,   /* fsync */
                 FILE_CALL_CLOSE = 1 << 4,  /* close: the descriptor is gone anyway */
                 FILE_CALL_MAKE = 1 << 5,   /* mkdir, link */
                 FILE_CALL_RENAME = 1 << 6, /* rename, renameat2 */
                 FILE_CALL_REMOVE = 1 << 7, /* unlink, rmdir */
                 FILE_CALL_LOOK =
                     1 << 8, /* stat, lstat, fstat, access, faccessat, statfs, realpath */
                 FILE_CALL_LIST = 1 << 9,   /* opendir, readdir */
                 FILE_CALL_OTHER = 1 << 10, /* getrandom, flock */
};
#define FILE_CALL_ANY ((1u << 11) - 1u)
#define FILE_CALL_SHORT                                                      \
    (-1) /* instead of an errno value: half of a write or read, and no error \
          */

/* The at-th of these calls from the next begin on fails with this errno, with `sticky` every one
 * after it too: as if the process had died there, for what is on the disk. 0 = none; they are only
 * counted. */
void file_calls_plan(unsigned calls, int code, uint64_t at, bool sticky);
void file_calls_begin(void);
void file_calls_end(void);
uint64_t file_calls_count(void); /* of those planned for */
uint64_t file_calls_hits(void);

/* Told of each call that changed or synced something, with the path that it was about. The
 * watcher's own file calls are neither counted nor failed. */
struct file_calls_seen {
    const char
        *name; /* "open" (with O_CREAT alone), "write", "fsync", "mkdir", "link", "rename", ... */
    const char *path; /* of a descriptor: its name now */
    const char *from; /* link, rename, renameat2: the other name; else "" */
};
typedef void file_calls_seen_fn(void *arg, const struct file_calls_seen *seen);
void file_calls_watch(file_calls_seen_fn *seen_fn, void *arg);
/* From the next begin on getrandom gives the same numbers in each run that begins with this seed;
 * 0: the kernel's. */
void file_calls_random(uint64_t seed);

#endif
