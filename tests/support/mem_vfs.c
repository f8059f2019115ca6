/* mem_vfs - the names, the files and the cut; see mem_vfs.h. SQLite's side is in mem_vfs_calls.c */
#include "tests/support/mem_vfs_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *must(void *memory)
{
    if (memory == NULL)
        abort(); /* a test cannot go on without */
    return memory;
}

/* --- bytes ------------------------------------------------------------------------------------ */

static void bytes_resize(struct mem_bytes *bytes, size_t size)
{
    if (size > bytes->capacity) {
        size_t capacity = bytes->capacity < 4096 ? 4096 : bytes->capacity * 2;

        bytes->capacity = capacity < size ? size : capacity;
        bytes->data = must(realloc(bytes->data, bytes->capacity));
    }
    if (size > bytes->size)
        memset(bytes->data + bytes->size, 0, size - bytes->size); /* a hole reads as zeros */
    bytes->size = size;
}

static void bytes_put(struct mem_bytes *bytes, const void *data, size_t size, size_t offset)
{
    if (offset + size > bytes->size)
        bytes_resize(bytes, offset + size);
    if (size > 0)
        memcpy(bytes->data + offset, data, size);
}

static void bytes_copy(struct mem_bytes *to, const struct mem_bytes *from)
{
    bytes_resize(to, from->size);
    if (from->size > 0)
        memcpy(to->data, from->data, from->size);
}

/* --- files ------------------------------------------------------------------------------------ */

struct mem_file *mem_file_create(void)
{
    struct mem_file *file = must(calloc(1, sizeof *file));

    file->references = 1;
    return file;
}

static void forget_changes(struct mem_file *file)
{
    for (size_t i = 0; i < file->changes_count; i++)
        free(file->changes[i].data);
    file->changes_count = 0;
}

void mem_file_release(struct mem_file *file)
{
    if (file == NULL || --file->references > 0)
        return;
    forget_changes(file);
    free(file->changes);
    free(file->live.data);
    free(file->synced.data);
    for (size_t i = 0; i < file->shm.regions_count; i++)
        free(file->shm.regions[i]);
    free(file->shm.regions);
    free(file);
}

static struct mem_change *change_add(struct mem_file *file)
{
    if (file->changes_count == file->changes_capacity) {
        file->changes_capacity = file->changes_capacity == 0 ? 16 : file->changes_capacity * 2;
        file->changes =
            must(realloc(file->changes, file->changes_capacity * sizeof *file->changes));
    }
    file->changes[file->changes_count] = (struct mem_change){.data = NULL};
    return &file->changes[file->changes_count++];
}

void mem_file_write(struct mem_file *file, const void *data, size_t size, size_t offset)
{
    struct mem_change *change = change_add(file);

    change->offset = offset;
    change->size = size;
    change->data = must(malloc(size + 1));
    memcpy(change->data, data, size);
    bytes_put(&file->live, data, size, offset);
}

void mem_file_truncate(struct mem_file *file, size_t size)
{
    struct mem_change *change = change_add(file);

    change->size = size;
    bytes_resize(&file->live, size);
}

static void put_change(struct mem_bytes *disk, const struct mem_change *change)
{
    if (change->data != NULL)
        bytes_put(disk, change->data, change->size, change->offset);
    else
        bytes_resize(disk, change->size);
}

/* Not what the file is for its readers: what an earlier sync failed to write is not there. */
void mem_file_sync(struct mem_file *file)
{
    for (size_t i = 0; i < file->changes_count; i++)
        put_change(&file->synced, &file->changes[i]);
    forget_changes(file);
}

/* --- names ------------------------------------------------------------------------------------ */

struct mem_name *mem_name_find(const struct mem_vfs *vfs, const char *path)
{
    for (size_t i = 0; i < vfs->names_count; i++)
        if (strcmp(vfs->names[i].path, path) == 0)
            return &vfs->names[i];
    return NULL;
}

struct mem_name *mem_name_make(struct mem_vfs *vfs, const char *path)
{
    struct mem_name *name = mem_name_find(vfs, path);

    if (name != NULL)
        return name;
    vfs->names = must(realloc(vfs->names, (vfs->names_count + 1) * sizeof *vfs->names));
    name = &vfs->names[vfs->names_count++];
    *name = (struct mem_name){.path = must(strdup(path))};
    return name;
}

void mem_name_point(struct mem_file **place, struct mem_file *file)
{
    struct mem_file *old = *place;

    if (file != NULL)
        file->references++;
    *place = file;
    mem_file_release(old);
}

static size_t directory_length(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash == NULL ? 0 : (size_t)(slash - path);
}

void mem_names_sync(struct mem_vfs *vfs, const char *path)
{
    size_t length = directory_length(path);

    for (size_t i = 0; i < vfs->names_count; i++) {
        struct mem_name *name = &vfs->names[i];

        if (directory_length(name->path) == length && strncmp(name->path, path, length) == 0)
            mem_name_point(&name->synced, name->live);
    }
}

/* --- kill and power cut ----------------------------------------------------------------------- */

static uint64_t random_below(struct mem_vfs *vfs, uint64_t bound)
{
    return vfs->random_fn(vfs->random_arg) % bound;
}

static bool chance(struct mem_vfs *vfs, unsigned percent)
{
    return random_below(vfs, 100) < percent;
}

/* A piece that the power cut met in the middle: some of the new bytes, or nobody knows what. */
static void put_torn(struct mem_vfs *vfs, struct mem_bytes *disk, const struct mem_change *change,
                     size_t from, size_t size)
{
    unsigned char garbage[MEM_VFS_SECTOR];
    size_t whole = (size_t)random_below(vfs, size);

    bytes_put(disk, change->data + from, whole, change->offset + from);
    if (chance(vfs, 50))
        return;
    for (size_t i = 0; i < size; i++)
        garbage[i] = (unsigned char)vfs->random_fn(vfs->random_arg);
    bytes_put(disk, garbage, size - whole, change->offset + from + whole);
}

static void put_by_chance(struct mem_vfs *vfs, struct mem_bytes *disk,
                          const struct mem_change *change, unsigned keep)
{
    for (size_t from = 0; from < change->size;) {
        size_t size = MEM_VFS_SECTOR - (change->offset + from) % MEM_VFS_SECTOR;

        if (size > change->size - from)
            size = change->size - from;
        if (chance(vfs, keep))
            bytes_put(disk, change->data + from, size, change->offset + from);
        else if (keep > 0 && chance(vfs, 20))
            put_torn(vfs, disk, change, from, size);
        from += size;
    }
}

/* What of a file is on the disk after the cut. */
static struct mem_file *survivor(struct mem_vfs *vfs, const struct mem_file *file, unsigned keep)
{
    struct mem_file *copy = mem_file_create();

    bytes_copy(&copy->live, &file->synced);
    for (size_t i = 0; i < file->changes_count; i++) {
        const struct mem_change *change = &file->changes[i];

        if (change->data != NULL)
            put_by_chance(vfs, &copy->live, change, keep);
        else if (chance(vfs, keep))
            bytes_resize(&copy->live, change->size);
    }
    bytes_copy(&copy->synced, &copy->live);
    return copy;
}

/* A change of size is in the file system's own journal: that is not lost. */
void mem_file_sync_failed(struct mem_vfs *vfs, struct mem_file *file)
{
    for (size_t i = 0; i < file->changes_count; i++)
        if (file->changes[i].data == NULL || chance(vfs, 50))
            put_change(&file->synced, &file->changes[i]);
    forget_changes(file);
}

void mem_vfs_power_cut(struct mem_vfs *vfs, unsigned keep)
{
    for (size_t i = 0; i < vfs->names_count; i++) {
        struct mem_name *name = &vfs->names[i];
        struct mem_file *file =
            name->live == name->synced || chance(vfs, keep) ? name->live : name->synced;
        struct mem_file *kept = file == NULL ? NULL : survivor(vfs, file, keep);

        mem_name_point(&name->live, kept);
        mem_name_point(&name->synced, kept);
        mem_file_release(kept);
    }
    vfs->life++;
    vfs->down = true;
}

/* The same file for those who come: what was not synced is still not. The old one stays as it is:
 * SQLite reads the shared memory of a dead connection until it is closed. */
static struct mem_file *twin(const struct mem_file *file)
{
    struct mem_file *copy = mem_file_create();

    bytes_copy(&copy->live, &file->live);
    bytes_copy(&copy->synced, &file->synced);
    for (size_t i = 0; i < file->changes_count; i++) {
        const struct mem_change *from = &file->changes[i];
        struct mem_change *to = change_add(copy);

        *to = *from;
        if (from->data == NULL)
            continue;
        to->data = must(malloc(from->size + 1));
        memcpy(to->data, from->data, from->size);
    }
    return copy;
}

void mem_vfs_kill(struct mem_vfs *vfs)
{
    for (size_t i = 0; i < vfs->names_count; i++) {
        struct mem_name *name = &vfs->names[i];
        bool one = name->live == name->synced;
        struct mem_file *live = name->live == NULL ? NULL : twin(name->live);
        struct mem_file *synced = one ? live : name->synced == NULL ? NULL : twin(name->synced);

        mem_name_point(&name->live, live);
        mem_name_point(&name->synced, synced);
        mem_file_release(live);
        if (!one)
            mem_file_release(synced);
    }
    vfs->life++;
    vfs->down = true;
}

void mem_vfs_up(struct mem_vfs *vfs)
{
    vfs->down = false;
}

bool mem_vfs_is_up(const struct mem_vfs *vfs)
{
    return !vfs->down;
}

/* --- size, looking in ------------------------------------------------------------------------- */

void mem_vfs_limit(struct mem_vfs *vfs, uint64_t bytes)
{
    vfs->limit_bytes = bytes;
}

uint64_t mem_vfs_bytes(const struct mem_vfs *vfs)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < vfs->names_count; i++)
        if (vfs->names[i].live != NULL)
            bytes += vfs->names[i].live->live.size;
    return bytes;
}

void mem_vfs_put(struct mem_vfs *vfs, const char *path, const void *content, size_t size)
{
    struct mem_name *name = mem_name_make(vfs, path);
    struct mem_file *file = mem_file_create();

    bytes_put(&file->live, content, size, 0);
    bytes_copy(&file->synced, &file->live);
    mem_name_point(&name->live, file);
    mem_name_point(&name->synced, file);
    mem_file_release(file);
}

const void *mem_vfs_content(const struct mem_vfs *vfs, const char *path, size_t *ret_size)
{
    const struct mem_name *name = mem_name_find(vfs, path);

    if (name == NULL || name->live == NULL)
        return NULL;
    *ret_size = name->live->live.size;
    return name->live->live.size > 0 ? name->live->live.data : (const unsigned char *)"";
}

void mem_vfs_export(const struct mem_vfs *vfs, const char *directory)
{
    char path[4096];

    for (size_t i = 0; i < vfs->names_count; i++) {
        const struct mem_name *name = &vfs->names[i];
        FILE *file;

        if (name->live == NULL)
            continue;
        snprintf(path, sizeof path, "%s/%s", directory,
                 name->path + directory_length(name->path) + 1);
        file = must(fopen(path, "wb"));
        fwrite(name->live->live.data, 1, name->live->live.size, file);
        fclose(file);
    }
}

/* --- life ------------------------------------------------------------------------------------- */

struct mem_vfs *mem_vfs_create(const char *name, mem_vfs_random_fn *random_fn, void *arg)
{
    struct mem_vfs *vfs = must(calloc(1, sizeof *vfs));

    vfs->name = must(strdup(name));
    vfs->random_fn = random_fn;
    vfs->random_arg = arg;
    vfs->limit_bytes = UINT64_MAX;
    mem_vfs_fill_calls(vfs);
    if (sqlite3_vfs_register(&vfs->sqlite, 0) != SQLITE_OK)
        abort();
    return vfs;
}

void mem_vfs_destroy(struct mem_vfs **vfs)
{
    if (*vfs == NULL)
        return;
    sqlite3_vfs_unregister(&(*vfs)->sqlite);
    for (size_t i = 0; i < (*vfs)->names_count; i++) {
        mem_file_release((*vfs)->names[i].live);
        mem_file_release((*vfs)->names[i].synced);
        free((*vfs)->names[i].path);
    }
    free((*vfs)->names);
    free((*vfs)->name);
    free(*vfs);
    *vfs = NULL;
}

sqlite3_vfs *mem_vfs_sqlite(struct mem_vfs *vfs)
{
    return &vfs->sqlite;
}
