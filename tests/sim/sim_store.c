/* sim_store - broker/store as the simulated broker's disk, beside the rows in memory that the
 * checker reads: on a file system in memory whose calls fail when the seed wants it
 * (sim_store_faults.c). What the store hands out at a start is compared with the rows in memory. A
 * batch whose commit did not return may be in it or not; then and only then both will do. */
#include "tests/sim/sim_store.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- the disk --------------------------------------------------------------------------------- */

static uint64_t next_random(void *arg)
{
    return sim_random(arg);
}

/* Only the lock of the state directory is a real file. */
void sim_store_create(struct sim *sim)
{
    const char *root = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    struct sim_store *s;

    if (!sim->options.sqlite)
        return;
    s = sim->store = calloc(1, sizeof *sim->store);
    snprintf(s->dir, sizeof s->dir, "%s/muster-sim-XXXXXX", root);
    if (mkdtemp(s->dir) == NULL)
        sim_broken(sim, "store", "no directory for the lock of the database under %s", root);
    snprintf(s->path, sizeof s->path, "%s/muster.db", s->dir);
    snprintf(s->wal, sizeof s->wal, "%s-wal", s->path);
    s->disk = mem_vfs_create("muster-sim", next_random, sim);
    s->faults = fault_vfs_create(mem_vfs_sqlite(s->disk), s->disk);
    fault_vfs_choose(s->faults, store_fault_choose, sim);
    sqlite3_randomness(0, NULL); /* its own generator begins again, from this seed */
}

bool sim_store_is_dead(const struct sim *sim)
{
    return sim->store != NULL && (sim->store->failed || !mem_vfs_is_up(sim->store->disk));
}

bool sim_store_lost_power(const struct sim *sim)
{
    return sim->store != NULL && sim->store->lost_power;
}

void sim_store_die(struct sim *sim, bool reboots)
{
    struct sim_store *s = sim->store;

    if (s == NULL)
        return;
    if (mem_vfs_is_up(s->disk) && reboots)
        mem_vfs_power_cut(s->disk, store_fault_keeps(sim));
    else if (mem_vfs_is_up(s->disk))
        mem_vfs_kill(s->disk);
    store_close(&s->store); /* of the dead: writes nothing */
    mem_vfs_up(s->disk);
    s->failed = s->lost_power = false;
}

/* --- a start ---------------------------------------------------------------------------------- */

static bool may_fail(enum muster_status status)
{
    return status == MUSTER_E_IO || status == MUSTER_E_STORAGE;
}

/* What musterd does when its start is refused. */
static bool give_up_start(struct sim *sim, enum muster_status status, const char *what,
                          const struct muster_error *err)
{
    struct sim_store *s = sim->store;

    SIM_TELL(sim, "the database cannot be %s: %s", what, muster_status_name(status));
    if (!may_fail(status) || fault_vfs_hits(s->faults) == s->hits_seen)
        sim_broken(sim, "store", "it cannot be %s: %s", what, err->text);
    s->hits_seen = fault_vfs_hits(s->faults);
    store_discard(&s->store);
    sim_store_die(sim, s->lost_power);
    return false;
}

/* The first row that is not as it was read, if there is one. */
struct difference {
    char text[600];
};

static bool read_as_written(struct sim *sim, const struct sim_texts *found,
                            struct difference *ret_difference)
{
    struct sim_texts wanted = {0};
    const char *want = "", *have = "";
    bool same;

    disk_rows(sim, sim_texts_take, &wanted);
    sim_texts_sort(&wanted);
    same = sim_texts_same(&wanted, found, &want, &have);
    if (!same)
        snprintf(ret_difference->text, sizeof ret_difference->text, "written: %.280s; read: %.280s",
                 want, have);
    sim_texts_free(&wanted);
    return same;
}

/* What is read is what was written, with the batch whose commit did not return or without it. A
 * start that has read such a batch has made it durable before. */
static void resolve(struct sim *sim, struct sim_texts *found)
{
    struct sim_broker *b = sim->broker;
    struct difference difference;

    sim_texts_sort(found);
    bool same = read_as_written(sim, found, &difference);
    if (!same && b->in_doubt) {
        disk_apply_doubt(sim);
        same = read_as_written(sim, found, &difference);
        SIM_TELL(sim, "BROKER's last batch was written");
    }
    b->in_doubt = false;
    actions_clear(&b->doubt);
    if (!same)
        sim_broken(sim, "store", "%s", difference.text);
}

bool sim_store_start(struct sim *sim, struct core *core)
{
    struct sim_store *s = sim->store;
    struct sim_texts found = {.core = core};
    struct muster_error err = {0};
    struct store_options options = {.journal_events_max = sim->journal_max,
                                    .checkpoint_frames = (int)(4 << sim->options.seed % 9)};

    store_copy_restore(sim);
    enum muster_status status = store_open(s->path, &options, &s->store, &err);
    if (status != MUSTER_OK)
        return give_up_start(sim, status, "opened", &err);
    snprintf(s->store->boot_id, sizeof s->store->boot_id, "boot-%" PRIu64, sim->broker->boot);
    status = store_load(s->store, sim_texts_take, &found, &err);
    if (status == MUSTER_OK && !mem_vfs_is_up(s->disk))
        status = MUSTER_E_IO; /* it died in a call whose failure SQLite can do without */
    if (status == MUSTER_OK)
        resolve(sim, &found);
    sim_texts_free(&found);
    return status == MUSTER_OK || give_up_start(sim, status, "read", &err);
}

/* --- a batch ---------------------------------------------------------------------------------- */

enum muster_status sim_store_apply(struct sim *sim, const struct actions *batch)
{
    struct sim_store *s = sim->store;
    struct muster_error err = {0};

    if (sim->options.mutation == MUTANT_NO_SYNC)
        sqlite3_exec(s->store->db, "PRAGMA synchronous=OFF", NULL, NULL, NULL);
    enum muster_status status = store_apply(s->store, batch, broker_boot_ms(sim), &err);
    if (status != MUSTER_OK)
        SIM_TELL(sim, "BROKER's batch is not written: %s", muster_status_name(status));
    if (!mem_vfs_is_up(s->disk))
        return MUSTER_E_IO; /* dead, whatever it was told */
    if (status != MUSTER_OK && (!may_fail(status) || fault_vfs_hits(s->faults) == s->hits_seen))
        sim_broken(sim, "store", "a batch is not written: %s", err.text);
    s->hits_seen = fault_vfs_hits(s->faults);
    return status;
}

/* What the file beside the database tells of it. */
uint64_t sim_store_mark(const struct sim *sim)
{
    char path[128], line[64] = "";
    FILE *file;

    snprintf(path, sizeof path, "%s.mark", sim->store->path);
    file = fopen(path, "r");
    if (file == NULL)
        return 0;
    if (fgets(line, sizeof line, file) == NULL)
        line[0] = '\0';
    fclose(file);
    return strtoull(line, NULL, 10);
}

/* --- an operator's copy ----------------------------------------------------------------------- */

static void keep_file(struct sim_store *s, const char *path, struct sim_file *file)
{
    const void *bytes = mem_vfs_content(s->disk, path, &file->size);

    free(file->bytes);
    file->bytes = NULL;
    if (bytes == NULL)
        file->size = 0;
    if (file->size > 0) {
        file->bytes = malloc(file->size);
        memcpy(file->bytes, bytes, file->size);
    }
}

void sim_store_copy(struct sim *sim)
{
    struct sim_store *s = sim->store;

    keep_file(s, s->path, &s->copy);
    keep_file(s, s->wal, &s->copy_wal);
    s->copied = true;
}

void sim_store_put_back(struct sim *sim)
{
    sim->store->put_back = sim->store->copied;
}

/* With its mark: a directory that is gone. */
void sim_store_lose(struct sim *sim)
{
    struct sim_store *s = sim->store;
    char mark[128];

    s->copy.size = s->copy_wal.size = 0;
    s->put_back = true;
    snprintf(mark, sizeof mark, "%s.mark", s->path);
    unlink(mark);
}

static void put_file(struct sim_store *s, const char *path, const struct sim_file *file, int flags)
{
    sqlite3_vfs *vfs = mem_vfs_sqlite(s->disk);
    sqlite3_file *handle = calloc(1, (size_t)vfs->szOsFile);

    vfs->xDelete(vfs, path, 1);
    if (file->size > 0 &&
        vfs->xOpen(vfs, path, handle, flags | SQLITE_OPEN_CREATE | SQLITE_OPEN_READWRITE, NULL) ==
            SQLITE_OK) {
        handle->pMethods->xWrite(handle, file->bytes, (int)file->size, 0);
        handle->pMethods->xSync(handle, SQLITE_SYNC_FULL);
        handle->pMethods->xClose(handle);
    }
    free(handle);
}

void store_copy_restore(struct sim *sim)
{
    struct sim_store *s = sim->store;

    if (!s->put_back)
        return;
    put_file(s, s->path, &s->copy, SQLITE_OPEN_MAIN_DB);
    put_file(s, s->wal, &s->copy_wal, SQLITE_OPEN_WAL);
    s->put_back = s->copied = false;
}

/* --- events, manifests ------------------------------------------------------------------------ */

enum muster_status sim_store_events(struct sim *sim, const struct action *action,
                                    sim_store_event_fn *fn, void *arg)
{
    struct muster_error err = {0};
    enum muster_status status =
        store_send_events(sim->store->store, action->job, action->number, action->count,
                          broker_boot_ms(sim), fn, arg, &err);

    if (status == MUSTER_E_IO)
        sim->store->failed = true; /* musterd exits */
    else if (status != MUSTER_OK && status != MUSTER_E_NOT_FOUND && status != MUSTER_E_STORAGE)
        sim_broken(sim, "store", "events cannot be read: %s", err.text);
    return status;
}

bool sim_store_manifest(struct sim *sim, const struct action *action,
                        struct wire_manifest_chunk *ret_chunk)
{
    struct store_manifest chunk;
    struct muster_error err = {0};

    if (store_manifest(sim->store->store, action->job, action->number, action->count, &chunk,
                       &err) != MUSTER_OK)
        return false;
    *ret_chunk = (struct wire_manifest_chunk){.checkpoint = action->number,
                                              .round_generation = chunk.generation,
                                              .step = chunk.step,
                                              .offset = chunk.offset,
                                              .total = chunk.total,
                                              .bytes = {chunk.data, chunk.size}};
    return true;
}

static struct store_rows answer;

void sim_store_query(struct sim *sim, const struct action *action, struct wire_rows *ret_rows)
{
    const struct wire_query *asked = &action->message.u.query;
    const struct store_query query = {.name = asked->name,
                                      .job = action->job,
                                      .text = asked->text_arg,
                                      .number = asked->number_arg,
                                      .after = asked->after};
    static struct muster_error err;

    ret_rows->code = store_query(sim->store->store, &query, &answer, &err);
    if (ret_rows->code != MUSTER_OK) {
        ret_rows->text = err.text;
        return;
    }
    ret_rows->more = answer.more;
    ret_rows->columns = answer.columns;
    ret_rows->rows = answer.rows;
    ret_rows->cells.data = answer.cells;
    ret_rows->cells.size = answer.size;
}

void sim_store_free(struct sim *sim)
{
    struct sim_store *s = sim->store;
    char lock[160];

    if (s == NULL)
        return;
    memset(s->armed, 0, sizeof s->armed);
    store_close(&s->store);
    fault_vfs_destroy(&s->faults);
    mem_vfs_destroy(&s->disk);
    snprintf(lock, sizeof lock, "%s.lock", s->path);
    unlink(lock);
    rmdir(s->dir);
    free(s->copy.bytes);
    free(s->copy_wal.bytes);
    free(s);
}
