/* fault_vfs - see fault_vfs.h. */
#include "tests/support/fault_vfs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct fault_vfs {
    sqlite3_vfs sqlite;
    sqlite3_vfs *below;
    sqlite3_vfs *before; /* the default until then */
    struct mem_vfs *disk;
    unsigned planned;
    enum fault fault;
    uint64_t at;
    bool sticky;
    uint64_t calls, hits;
    unsigned keep;
    fault_choose_fn *choose_fn;
    void *choose_arg;
};

struct handle {
    sqlite3_file base; /* first: SQLite's own part; below's handle follows this struct */
    struct fault_vfs *faults;
    const char *path; /* SQLite keeps a name for as long as its file is open */
    int last_errno;   /* of a call that was failed here */
};

static const char *const call_names[FAULT_CALL_KINDS] = {
    "open", "delete", "access", "read",    "write",    "truncate",
    "sync", "size",   "lock",   "shm map", "shm lock",
};
static const char *const fault_names[FAULT_KIND_COUNT] = {
    "none", "EIO",       "ENOSPC", "EDQUOT", "short write, EIO", "short write, ENOSPC",
    "busy", "power cut",
};

const char *fault_call_name(enum fault_call call)
{
    for (unsigned i = 0; i < FAULT_CALL_KINDS; i++)
        if ((unsigned)call == 1U << i)
            return call_names[i];
    return "several";
}

const char *fault_name(enum fault fault)
{
    return fault < FAULT_KIND_COUNT ? fault_names[fault] : "unknown";
}

/* --- the decision ----------------------------------------------------------------------------- */

static enum fault planned(struct fault_vfs *faults, enum fault_call call)
{
    if ((faults->planned & (unsigned)call) == 0)
        return FAULT_NONE;
    faults->calls++;
    if (faults->at == 0 || faults->calls < faults->at ||
        (faults->calls > faults->at && !faults->sticky))
        return FAULT_NONE;
    return faults->fault;
}

static enum fault choose(struct fault_vfs *faults, enum fault_call call, const char *path)
{
    enum fault fault = faults->choose_fn != NULL ? faults->choose_fn(faults->choose_arg, call, path)
                                                 : planned(faults, call);

    if (fault != FAULT_NONE)
        faults->hits++;
    if (fault == FAULT_CUT && faults->disk != NULL)
        mem_vfs_power_cut(faults->disk, faults->keep);
    return fault;
}

static struct handle *of(sqlite3_file *file)
{
    return (struct handle *)file;
}

static sqlite3_file *below(sqlite3_file *file)
{
    return (sqlite3_file *)(of(file) + 1);
}

static enum fault choose_at(sqlite3_file *file, enum fault_call call)
{
    return choose(of(file)->faults, call, of(file)->path);
}

/* --- methods of a file ------------------------------------------------------------------------ */

static int close_file(sqlite3_file *file)
{
    return below(file)->pMethods->xClose(below(file));
}

static int read_bytes(sqlite3_file *file, void *buffer, int size, sqlite3_int64 offset)
{
    if (choose_at(file, FAULT_CALL_READ) != FAULT_NONE)
        return SQLITE_IOERR_READ;
    return below(file)->pMethods->xRead(below(file), buffer, size, offset);
}

static int write_bytes(sqlite3_file *file, const void *data, int size, sqlite3_int64 offset)
{
    enum fault fault = choose_at(file, FAULT_CALL_WRITE);
    int result = SQLITE_IOERR_WRITE;

    of(file)->last_errno = EIO;
    switch (fault) {
    case FAULT_NONE:
        of(file)->last_errno = 0;
        return below(file)->pMethods->xWrite(below(file), data, size, offset);
    case FAULT_SHORT:
    case FAULT_SHORT_FULL:
        if (size > 1)
            below(file)->pMethods->xWrite(below(file), data, size / 2, offset);
        break;
    default:
        break;
    }
    if (fault == FAULT_QUOTA)
        of(file)->last_errno = EDQUOT;
    if (fault == FAULT_FULL || fault == FAULT_SHORT_FULL) {
        of(file)->last_errno = ENOSPC;
        result = SQLITE_FULL;
    }
    return result;
}

static int truncate_file(sqlite3_file *file, sqlite3_int64 size)
{
    if (choose_at(file, FAULT_CALL_TRUNCATE) != FAULT_NONE)
        return SQLITE_IOERR_TRUNCATE;
    return below(file)->pMethods->xTruncate(below(file), size);
}

static int sync_file(sqlite3_file *file, int flags)
{
    if (choose_at(file, FAULT_CALL_SYNC) == FAULT_NONE)
        return below(file)->pMethods->xSync(below(file), flags);
    if (of(file)->faults->disk != NULL)
        mem_vfs_sync_failed(below(file));
    return SQLITE_IOERR_FSYNC;
}

static int file_size(sqlite3_file *file, sqlite3_int64 *ret_size)
{
    if (choose_at(file, FAULT_CALL_SIZE) != FAULT_NONE)
        return SQLITE_IOERR_FSTAT;
    return below(file)->pMethods->xFileSize(below(file), ret_size);
}

static int lock_file(sqlite3_file *file, int level)
{
    enum fault fault = choose_at(file, FAULT_CALL_LOCK);

    if (fault != FAULT_NONE)
        return fault == FAULT_BUSY ? SQLITE_BUSY : SQLITE_IOERR_LOCK;
    return below(file)->pMethods->xLock(below(file), level);
}

static int unlock_file(sqlite3_file *file, int level)
{
    return below(file)->pMethods->xUnlock(below(file), level);
}

static int check_reserved(sqlite3_file *file, int *ret_reserved)
{
    if (choose_at(file, FAULT_CALL_LOCK) != FAULT_NONE)
        return SQLITE_IOERR_CHECKRESERVEDLOCK;
    return below(file)->pMethods->xCheckReservedLock(below(file), ret_reserved);
}

static int file_control(sqlite3_file *file, int op, void *arg)
{
    if (op == SQLITE_FCNTL_LAST_ERRNO && of(file)->last_errno != 0) {
        *(int *)arg = of(file)->last_errno;
        return SQLITE_OK;
    }
    return below(file)->pMethods->xFileControl(below(file), op, arg);
}

static int sector_size(sqlite3_file *file)
{
    return below(file)->pMethods->xSectorSize(below(file));
}

static int characteristics(sqlite3_file *file)
{
    return below(file)->pMethods->xDeviceCharacteristics(below(file));
}

static int shm_map(sqlite3_file *file, int region, int size, int extend, void volatile **ret_memory)
{
    *ret_memory = NULL;
    if (choose_at(file, FAULT_CALL_SHM_MAP) != FAULT_NONE)
        return SQLITE_IOERR_SHMMAP;
    return below(file)->pMethods->xShmMap(below(file), region, size, extend, ret_memory);
}

static int shm_lock(sqlite3_file *file, int first, int count, int flags)
{
    enum fault fault =
        flags & SQLITE_SHM_UNLOCK ? FAULT_NONE : choose_at(file, FAULT_CALL_SHM_LOCK);

    if (fault != FAULT_NONE)
        return fault == FAULT_BUSY ? SQLITE_BUSY : SQLITE_IOERR_SHMLOCK;
    return below(file)->pMethods->xShmLock(below(file), first, count, flags);
}

static void shm_barrier(sqlite3_file *file)
{
    below(file)->pMethods->xShmBarrier(below(file));
}

static int shm_unmap(sqlite3_file *file, int delete_it)
{
    return below(file)->pMethods->xShmUnmap(below(file), delete_it);
}

static const sqlite3_io_methods file_methods = {
    .iVersion = 2, /* no mapped reads: each read is a call */
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

/* --- methods of the file system --------------------------------------------------------------- */

static struct fault_vfs *faults_of(sqlite3_vfs *vfs)
{
    return vfs->pAppData;
}

static int open_file(sqlite3_vfs *vfs, const char *path, sqlite3_file *file, int flags,
                     int *ret_flags)
{
    struct fault_vfs *faults = faults_of(vfs);
    int result;

    memset(file, 0, (size_t)vfs->szOsFile); /* no methods: what did not open is not closed */
    if (choose(faults, FAULT_CALL_OPEN, path) != FAULT_NONE)
        return SQLITE_CANTOPEN;
    of(file)->faults = faults;
    of(file)->path = path;
    result = faults->below->xOpen(faults->below, path, below(file), flags, ret_flags);
    if (below(file)->pMethods != NULL)
        file->pMethods = &file_methods;
    return result;
}

static int delete_file(sqlite3_vfs *vfs, const char *path, int sync_directory)
{
    if (choose(faults_of(vfs), FAULT_CALL_DELETE, path) != FAULT_NONE)
        return SQLITE_IOERR_DELETE;
    return faults_of(vfs)->below->xDelete(faults_of(vfs)->below, path, sync_directory);
}

static int access_file(sqlite3_vfs *vfs, const char *path, int flags, int *ret_there)
{
    if (choose(faults_of(vfs), FAULT_CALL_ACCESS, path) != FAULT_NONE)
        return SQLITE_IOERR_ACCESS;
    return faults_of(vfs)->below->xAccess(faults_of(vfs)->below, path, flags, ret_there);
}

static int full_path(sqlite3_vfs *vfs, const char *path, int capacity, char *ret_path)
{
    return faults_of(vfs)->below->xFullPathname(faults_of(vfs)->below, path, capacity, ret_path);
}

static int random_bytes(sqlite3_vfs *vfs, int size, char *ret_bytes)
{
    return faults_of(vfs)->below->xRandomness(faults_of(vfs)->below, size, ret_bytes);
}

static int sleep_us(sqlite3_vfs *vfs, int us)
{
    (void)vfs;
    return us; /* the busy handler's patience passes at once */
}

static int julian_ms(sqlite3_vfs *vfs, sqlite3_int64 *ret_ms)
{
    return faults_of(vfs)->below->xCurrentTimeInt64(faults_of(vfs)->below, ret_ms);
}

static int last_error(sqlite3_vfs *vfs, int size, char *ret_text)
{
    return faults_of(vfs)->below->xGetLastError(faults_of(vfs)->below, size, ret_text);
}

/* --- plan and life ---------------------------------------------------------------------------- */

void fault_vfs_plan(struct fault_vfs *faults, unsigned calls, enum fault fault, uint64_t at,
                    bool sticky)
{
    faults->planned = calls;
    faults->fault = fault;
    faults->at = at;
    faults->sticky = sticky;
    faults->calls = 0;
    faults->hits = 0;
}

uint64_t fault_vfs_calls(const struct fault_vfs *faults)
{
    return faults->calls;
}

uint64_t fault_vfs_hits(const struct fault_vfs *faults)
{
    return faults->hits;
}

void fault_vfs_keep(struct fault_vfs *faults, unsigned percent)
{
    faults->keep = percent;
}

void fault_vfs_choose(struct fault_vfs *faults, fault_choose_fn *choose_fn, void *arg)
{
    faults->choose_fn = choose_fn;
    faults->choose_arg = arg;
}

struct fault_vfs *fault_vfs_create(sqlite3_vfs *below_vfs, struct mem_vfs *disk)
{
    struct fault_vfs *faults = calloc(1, sizeof *faults);

    if (faults == NULL)
        abort();
    faults->below = below_vfs;
    faults->before = sqlite3_vfs_find(NULL);
    faults->disk = disk;
    faults->keep = 50;
    faults->sqlite = (sqlite3_vfs){
        .iVersion = 2,
        .szOsFile = (int)sizeof(struct handle) + below_vfs->szOsFile,
        .mxPathname = below_vfs->mxPathname,
        .zName = "muster-faults",
        .pAppData = faults,
        .xOpen = open_file,
        .xDelete = delete_file,
        .xAccess = access_file,
        .xFullPathname = full_path,
        .xRandomness = random_bytes,
        .xSleep = sleep_us,
        .xGetLastError = last_error,
        .xCurrentTimeInt64 = julian_ms,
    };
    if (sqlite3_vfs_register(&faults->sqlite, 1) != SQLITE_OK)
        abort();
    return faults;
}

void fault_vfs_destroy(struct fault_vfs **faults)
{
    if (*faults == NULL)
        return;
    sqlite3_vfs_unregister(&(*faults)->sqlite);
    sqlite3_vfs_register((*faults)->before, 1);
    free(*faults);
    *faults = NULL;
}
