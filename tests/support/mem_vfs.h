/* mem_vfs - an SQLite file system in memory that loses at a power cut what a disk may lose.
 * Owns: names and files; of each file what it holds, what of that is surely on the disk, and every
 * write since the last sync; the same of each name since its directory was last synced.
 * Never: a real file, a clock, a sleep (xSleep returns at once). One thread.
 *
 * What a file system may do, and this one does:
 *   - a write is seen at once by every reader and is on the disk for sure after xSync of its file;
 *   - before that each piece of MEM_VFS_SECTOR bytes of it, and each change of size, gets there or
 * not, in any order; some pieces arrive as garbage. Bytes next to a write are never touched: that
 * is SQLITE_IOCAP_POWERSAFE_OVERWRITE, what SQLite expects of every disk unless told otherwise;
 *   - a sync that failed wrote some of them and gives up the others: they are read until the power
 * goes, and no later sync writes them, as Linux marks a page that could not be written as clean;
 *   - a name that was made or deleted is so for sure after the directory was synced: by xDelete
 * with syncDir, or by the first xSync of a journal or WAL that was opened to be created if it is
 * not there, as SQLite's own unix VFS does it;
 *   - shared memory (-shm) is gone with the last process that had it open.
 *
 * Connections that were open at a cut or a kill are dead: every call of theirs ends in
 * SQLITE_IOERR, nothing they do is seen by anybody, and no lock of theirs is met. Nothing can be
 * opened, deleted or looked for until mem_vfs_up(): close the dead connections before that. */
#ifndef TESTS_SUPPORT_MEM_VFS_H
#define TESTS_SUPPORT_MEM_VFS_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MEM_VFS_SECTOR 512u

struct mem_vfs;

/* All chance comes from here: the same numbers, the same cut. */
typedef uint64_t mem_vfs_random_fn(void *arg);

/* Registers a VFS of this name (copied), not as the default. Aborts when memory is out. */
struct mem_vfs *mem_vfs_create(const char *name, mem_vfs_random_fn *random_fn, void *arg);

/* No connection may be open any more. NULL-safe, nulls. */
void mem_vfs_destroy(struct mem_vfs **vfs);

sqlite3_vfs *mem_vfs_sqlite(struct mem_vfs *vfs);

/* SIGKILL of every process that has a file open: what was written stays, locks and shared memory
 * go. */
void mem_vfs_kill(struct mem_vfs *vfs);

/* The power goes and comes back. What was not synced is kept, lost or torn by chance; `keep` of a
 * hundred pieces are kept, so 0 is the disk that wrote nothing ahead and 100 the one that wrote
 * all. */
void mem_vfs_power_cut(struct mem_vfs *vfs, unsigned keep);

/* SQLite is about to be told that the sync of this file failed. */
void mem_vfs_sync_failed(sqlite3_file *file);

/* The next process may come. */
void mem_vfs_up(struct mem_vfs *vfs);
bool mem_vfs_is_up(const struct mem_vfs *vfs);

/* Writes that would make the files together larger end in SQLITE_FULL. Default: no limit. */
void mem_vfs_limit(struct mem_vfs *vfs, uint64_t bytes);
uint64_t mem_vfs_bytes(const struct mem_vfs *vfs);

/* For looking in from outside. Borrowed until the next change; NULL: there is no such file. */
const void *mem_vfs_content(const struct mem_vfs *vfs, const char *path, size_t *ret_size);
/* A file that is there, and on the disk for sure, before anybody comes. */
void mem_vfs_put(struct mem_vfs *vfs, const char *path, const void *content, size_t size);
/* Copies every file into a real directory, under its last name part: for `sqlite3` by hand. */
void mem_vfs_export(const struct mem_vfs *vfs, const char *directory);

#endif
