/* mem_vfs_calls - the methods that SQLite calls; see mem_vfs.h. */
#include "tests/support/mem_vfs_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_BYTES 4096

struct handle {
    sqlite3_file base; /* first: SQLite's own part */
    struct mem_vfs *vfs;
    struct mem_file *file;
    uint64_t life;
    char *path;      /* NULL: a file without a name */
    bool sync_names; /* a new journal: its first xSync syncs the directory */
    bool delete_on_close;
    int lock;
    int last_errno;
    bool shm_used;
    unsigned shm_shared, shm_exclusive; /* slots held, as bits */
};

static struct handle *of(sqlite3_file *file)
{
    return (struct handle *)file;
}

/* Of a process that was killed, or on a machine without power. */
static bool is_dead(sqlite3_file *file)
{
    return of(file)->life != of(file)->vfs->life;
}

/* --- bytes ------------------------------------------------------------------------------------ */

static int read_bytes(sqlite3_file *file, void *buffer, int size, sqlite3_int64 offset)
{
    const struct mem_bytes *live = &of(file)->file->live;
    size_t from = (size_t)offset;
    size_t there = from < live->size ? live->size - from : 0;

    if (is_dead(file))
        return SQLITE_IOERR_READ;
    if (there > (size_t)size)
        there = (size_t)size;
    if (there > 0)
        memcpy(buffer, live->data + from, there);
    memset((char *)buffer + there, 0, (size_t)size - there); /* as SQLite demands */
    return there == (size_t)size ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
}

static int write_bytes(sqlite3_file *file, const void *data, int size, sqlite3_int64 offset)
{
    struct handle *handle = of(file);
    uint64_t end = (uint64_t)offset + (uint64_t)size;
    uint64_t had = handle->file->live.size;

    if (is_dead(file))
        return SQLITE_IOERR_WRITE;
    if (end > had && mem_vfs_bytes(handle->vfs) + (end - had) > handle->vfs->limit_bytes) {
        handle->last_errno = ENOSPC;
        return SQLITE_FULL;
    }
    mem_file_write(handle->file, data, (size_t)size, (size_t)offset);
    return SQLITE_OK;
}

static int truncate_file(sqlite3_file *file, sqlite3_int64 size)
{
    if (is_dead(file))
        return SQLITE_IOERR_TRUNCATE;
    mem_file_truncate(of(file)->file, (size_t)size);
    return SQLITE_OK;
}

static int sync_file(sqlite3_file *file, int flags)
{
    struct handle *handle = of(file);

    if (is_dead(file))
        return SQLITE_IOERR_FSYNC;
    (void)flags;
    mem_file_sync(handle->file);
    if (handle->sync_names)
        mem_names_sync(handle->vfs, handle->path);
    handle->sync_names = false;
    return SQLITE_OK;
}

void mem_vfs_sync_failed(sqlite3_file *file)
{
    if (!is_dead(file))
        mem_file_sync_failed(of(file)->vfs, of(file)->file);
}

static int file_size(sqlite3_file *file, sqlite3_int64 *ret_size)
{
    if (is_dead(file))
        return SQLITE_IOERR_FSTAT;
    *ret_size = (sqlite3_int64)of(file)->file->live.size;
    return SQLITE_OK;
}

/* --- locks of the database file --------------------------------------------------------------- */

static bool others_from(const struct handle *handle, int level)
{
    for (int at = level; at <= SQLITE_LOCK_EXCLUSIVE; at++)
        if (handle->file->locks[at] > (handle->lock == at ? 1U : 0U))
            return true;
    return false;
}

static void set_lock(struct handle *handle, int level)
{
    if (handle->lock > SQLITE_LOCK_NONE)
        handle->file->locks[handle->lock]--;
    if (level > SQLITE_LOCK_NONE)
        handle->file->locks[level]++;
    handle->lock = level;
}

static int lock_file(sqlite3_file *file, int level)
{
    struct handle *handle = of(file);

    if (is_dead(file))
        return SQLITE_IOERR_LOCK;
    if (handle->lock >= level)
        return SQLITE_OK;
    if (level == SQLITE_LOCK_SHARED && others_from(handle, SQLITE_LOCK_PENDING))
        return SQLITE_BUSY;
    if (level == SQLITE_LOCK_RESERVED && others_from(handle, SQLITE_LOCK_RESERVED))
        return SQLITE_BUSY;
    if (level == SQLITE_LOCK_EXCLUSIVE && others_from(handle, SQLITE_LOCK_SHARED)) {
        if (!others_from(handle, SQLITE_LOCK_RESERVED))
            set_lock(handle, SQLITE_LOCK_PENDING);
        return SQLITE_BUSY;
    }
    set_lock(handle, level);
    return SQLITE_OK;
}

static int unlock_file(sqlite3_file *file, int level)
{
    if (of(file)->lock > level)
        set_lock(of(file), level);
    return SQLITE_OK;
}

static int check_reserved(sqlite3_file *file, int *ret_reserved)
{
    if (is_dead(file))
        return SQLITE_IOERR_CHECKRESERVEDLOCK;
    *ret_reserved =
        of(file)->lock >= SQLITE_LOCK_RESERVED || others_from(of(file), SQLITE_LOCK_RESERVED);
    return SQLITE_OK;
}

/* --- shared memory ---------------------------------------------------------------------------- */

static int shm_map(sqlite3_file *file, int region, int size, int extend, void volatile **ret_memory)
{
    struct handle *handle = of(file);
    struct mem_shm *shm = &handle->file->shm;

    if (is_dead(file))
        return SQLITE_IOERR_SHMMAP;
    *ret_memory = NULL;
    shm->users += handle->shm_used ? 0 : 1;
    handle->shm_used = true;
    if ((size_t)region >= shm->regions_count && !extend)
        return SQLITE_OK;
    while ((size_t)region >= shm->regions_count) {
        unsigned char **regions = realloc(shm->regions, (shm->regions_count + 1) * sizeof *regions);

        if (regions == NULL)
            return SQLITE_NOMEM;
        shm->regions = regions;
        regions[shm->regions_count] = calloc(1, (size_t)size);
        if (regions[shm->regions_count] == NULL)
            return SQLITE_NOMEM;
        shm->regions_count++;
    }
    *ret_memory = shm->regions[region];
    return SQLITE_OK;
}

static void shm_unlock(struct handle *handle, unsigned slots)
{
    for (unsigned slot = 0; slot < MEM_SHM_SLOTS; slot++) {
        unsigned bit = slots & 1U << slot;

        if (bit & handle->shm_shared)
            handle->file->shm.shared[slot]--;
        if (bit & handle->shm_exclusive)
            handle->file->shm.exclusive[slot] = false;
    }
    handle->shm_shared &= ~slots;
    handle->shm_exclusive &= ~slots;
}

static bool shm_is_free(const struct handle *handle, unsigned slot, bool exclusive)
{
    const struct mem_shm *shm = &handle->file->shm;
    unsigned own = handle->shm_shared >> slot & 1U;

    return !shm->exclusive[slot] && (!exclusive || shm->shared[slot] == own);
}

static int shm_lock(sqlite3_file *file, int first, int count, int flags)
{
    struct handle *handle = of(file);
    unsigned slots = ((1U << count) - 1U) << first;
    bool exclusive = (flags & SQLITE_SHM_EXCLUSIVE) != 0;

    if (flags & SQLITE_SHM_UNLOCK) {
        shm_unlock(handle, slots);
        return SQLITE_OK;
    }
    if (is_dead(file))
        return SQLITE_IOERR_SHMLOCK;
    for (int slot = first; slot < first + count; slot++) {
        if ((handle->shm_shared | handle->shm_exclusive) & 1U << slot)
            continue;
        if (!shm_is_free(handle, (unsigned)slot, exclusive))
            return SQLITE_BUSY;
    }
    for (int slot = first; slot < first + count; slot++) {
        if ((handle->shm_shared | handle->shm_exclusive) & 1U << slot)
            continue;
        handle->file->shm.shared[slot] += exclusive ? 0 : 1;
        handle->file->shm.exclusive[slot] = exclusive;
    }
    *(exclusive ? &handle->shm_exclusive : &handle->shm_shared) |= slots;
    return SQLITE_OK;
}

static void shm_barrier(sqlite3_file *file)
{
    (void)file; /* one thread */
}

static int shm_unmap(sqlite3_file *file, int delete_it)
{
    struct handle *handle = of(file);
    struct mem_shm *shm = &handle->file->shm;

    (void)delete_it;
    if (!handle->shm_used)
        return SQLITE_OK;
    shm_unlock(handle, (1U << MEM_SHM_SLOTS) - 1U);
    handle->shm_used = false;
    if (--shm->users > 0)
        return SQLITE_OK;
    for (size_t i = 0; i < shm->regions_count; i++)
        free(shm->regions[i]);
    shm->regions_count = 0;
    return SQLITE_OK;
}

/* --- other methods of a file ------------------------------------------------------------------ */

static int file_control(sqlite3_file *file, int op, void *arg)
{
    if (op != SQLITE_FCNTL_LAST_ERRNO)
        return SQLITE_NOTFOUND;
    *(int *)arg = of(file)->last_errno;
    return SQLITE_OK;
}

static int sector_size(sqlite3_file *file)
{
    (void)file;
    return 4096;
}

static int characteristics(sqlite3_file *file)
{
    (void)file;
    return SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

static int close_file(sqlite3_file *file)
{
    struct handle *handle = of(file);
    struct mem_name *name = handle->path == NULL ? NULL : mem_name_find(handle->vfs, handle->path);

    shm_unmap(file, 0);
    set_lock(handle, SQLITE_LOCK_NONE);
    if (handle->delete_on_close && name != NULL && name->live == handle->file)
        mem_name_point(&name->live, NULL);
    mem_file_release(handle->file);
    free(handle->path);
    return SQLITE_OK;
}

static const sqlite3_io_methods file_methods = {
    .iVersion = 2,
    .xClose = close_file,
    .xRead = read_bytes,
    .xWrite = write_bytes,
    .xTruncate = truncate_file,
    .xSync = sync_file,
    .xFileSize = file_size,
    .xLock = lock_file,
    .xUnlock = unlock_file,
    .xCheckReservedLock = check_reserved,
    .xFileControl = file_control,
    .xSectorSize = sector_size,
    .xDeviceCharacteristics = characteristics,
    .xShmMap = shm_map,
    .xShmLock = shm_lock,
    .xShmBarrier = shm_barrier,
    .xShmUnmap = shm_unmap,
};

/* --- the file system -------------------------------------------------------------------------- */

static struct mem_vfs *vfs_of(sqlite3_vfs *vfs)
{
    return vfs->pAppData;
}

static int open_file(sqlite3_vfs *sqlite, const char *path, sqlite3_file *file, int flags,
                     int *ret_flags)
{
    const int journals = SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_WAL | SQLITE_OPEN_SUPER_JOURNAL;
    struct mem_vfs *vfs = vfs_of(sqlite);
    struct handle *handle = of(file);
    struct mem_name *name = path == NULL ? NULL : mem_name_find(vfs, path);
    bool there = name != NULL && name->live != NULL;

    memset(handle, 0, sizeof *handle); /* no methods: SQLite must not close what did not open */
    if (vfs->down)
        return SQLITE_CANTOPEN;
    if (path != NULL &&
        ((!there && !(flags & SQLITE_OPEN_CREATE)) || (there && flags & SQLITE_OPEN_EXCLUSIVE)))
        return SQLITE_CANTOPEN;
    handle->vfs = vfs;
    handle->life = vfs->life;
    handle->path = path == NULL ? NULL : strdup(path);
    handle->delete_on_close = (flags & SQLITE_OPEN_DELETEONCLOSE) != 0;
    if (there) {
        mem_name_point(&handle->file, name->live);
    } else {
        handle->file = mem_file_create();
        if (path != NULL)
            mem_name_point(&mem_name_make(vfs, path)->live, handle->file);
    }
    /* also of one that is there: who made it may have died before its first sync */
    handle->sync_names =
        path != NULL && (flags & journals) != 0 && (flags & SQLITE_OPEN_CREATE) != 0;
    if (ret_flags != NULL)
        *ret_flags = flags;
    handle->base.pMethods = &file_methods;
    return SQLITE_OK;
}

static int delete_file(sqlite3_vfs *sqlite, const char *path, int sync_directory)
{
    struct mem_vfs *vfs = vfs_of(sqlite);
    struct mem_name *name = mem_name_find(vfs, path);

    if (vfs->down)
        return SQLITE_IOERR_DELETE;
    if (name == NULL || name->live == NULL)
        return SQLITE_IOERR_DELETE_NOENT;
    mem_name_point(&name->live, NULL);
    if (sync_directory)
        mem_names_sync(vfs, path);
    return SQLITE_OK;
}

static int access_file(sqlite3_vfs *sqlite, const char *path, int flags, int *ret_there)
{
    const struct mem_name *name = mem_name_find(vfs_of(sqlite), path);

    if (vfs_of(sqlite)->down)
        return SQLITE_IOERR_ACCESS;
    *ret_there = name != NULL && name->live != NULL;
    if (*ret_there && flags == SQLITE_ACCESS_EXISTS)
        *ret_there = name->live->live.size > 0; /* as SQLite's unix VFS: an empty journal is none */
    return SQLITE_OK;
}

static int full_path(sqlite3_vfs *sqlite, const char *path, int capacity, char *ret_path)
{
    (void)sqlite;
    return snprintf(ret_path, (size_t)capacity, "%s%s", path[0] == '/' ? "" : "/", path) < capacity
               ? SQLITE_OK
               : SQLITE_CANTOPEN;
}

static int random_bytes(sqlite3_vfs *sqlite, int size, char *ret_bytes)
{
    struct mem_vfs *vfs = vfs_of(sqlite);

    for (int i = 0; i < size; i++)
        ret_bytes[i] = (char)vfs->random_fn(vfs->random_arg);
    return size;
}

static int sleep_us(sqlite3_vfs *sqlite, int us)
{
    (void)sqlite;
    return us;
}

static int julian_ms(sqlite3_vfs *sqlite, sqlite3_int64 *ret_ms)
{
    (void)sqlite;
    *ret_ms = INT64_C(212000000000000); /* nothing of ours asks SQLite for the time */
    return SQLITE_OK;
}

static int last_error(sqlite3_vfs *sqlite, int size, char *ret_text)
{
    (void)sqlite;
    if (size > 0)
        ret_text[0] = '\0';
    return 0;
}

void mem_vfs_fill_calls(struct mem_vfs *vfs)
{
    vfs->sqlite = (sqlite3_vfs){
        .iVersion = 2,
        .szOsFile = sizeof(struct handle),
        .mxPathname = PATH_BYTES,
        .zName = vfs->name,
        .pAppData = vfs,
        .xOpen = open_file,
        .xDelete = delete_file,
        .xAccess = access_file,
        .xFullPathname = full_path,
        .xRandomness = random_bytes,
        .xSleep = sleep_us,
        .xGetLastError = last_error,
        .xCurrentTimeInt64 = julian_ms,
    };
}
