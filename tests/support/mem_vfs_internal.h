/* mem_vfs_internal - what mem_vfs.c (names, files, the cut) and mem_vfs_calls.c (SQLite's side)
 * share. */
#ifndef TESTS_SUPPORT_MEM_VFS_INTERNAL_H
#define TESTS_SUPPORT_MEM_VFS_INTERNAL_H

#include "tests/support/mem_vfs.h"

struct mem_bytes {
    unsigned char *data;
    size_t size, capacity;
};

struct mem_change { /* since the last sync */
    size_t offset, size;
    unsigned char *data; /* NULL: the file was made `size` bytes long */
};

#define MEM_SHM_SLOTS 8 /* SQLITE_SHM_NLOCK */

struct mem_shm {
    unsigned char **regions;
    size_t regions_count;
    unsigned users;
    unsigned shared[MEM_SHM_SLOTS]; /* holders */
    bool exclusive[MEM_SHM_SLOTS];
};

struct mem_file {
    unsigned references; /* names and handles */
    struct mem_bytes live, synced;
    struct mem_change *changes;
    size_t changes_count, changes_capacity;
    unsigned locks[SQLITE_LOCK_EXCLUSIVE + 1]; /* handles at each level */
    struct mem_shm shm;
};

struct mem_name {
    char *path;
    struct mem_file *live, *synced; /* NULL: there is no such name */
};

struct mem_vfs {
    sqlite3_vfs sqlite;
    char *name;
    mem_vfs_random_fn *random_fn;
    void *random_arg;
    uint64_t limit_bytes;
    uint64_t life; /* handles of an earlier one are dead */
    bool down;     /* nobody is there: until mem_vfs_up() nothing opens */
    struct mem_name *names;
    size_t names_count;
};

struct mem_file *mem_file_create(void); /* with one reference */
void mem_file_release(struct mem_file *file);
void mem_file_write(struct mem_file *file, const void *data, size_t size, size_t offset);
void mem_file_truncate(struct mem_file *file, size_t size);
void mem_file_sync(struct mem_file *file);
void mem_file_sync_failed(struct mem_vfs *vfs, struct mem_file *file);

struct mem_name *mem_name_find(const struct mem_vfs *vfs, const char *path);
struct mem_name *mem_name_make(struct mem_vfs *vfs, const char *path);
void mem_name_point(struct mem_file **place, struct mem_file *file);
void mem_names_sync(struct mem_vfs *vfs, const char *path); /* of the directory that path is in */

void mem_vfs_fill_calls(struct mem_vfs *vfs);

#endif
