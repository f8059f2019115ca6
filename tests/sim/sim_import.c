/* sim_import - an operator whose broker has lost its database, or got an older one back: he stops
 * the job, gives the broker the manifests of what is on disk, as `muster import` does, in the order
 * of their rounds, and launches it again. With what he gave a broker that knew nothing, the job
 * goes on from the newest that there is. */
#include "schema/manifest/manifest.h"
#include "tests/sim/sim_world.h"

#include <stdlib.h>
#include <string.h>

#define LOOK_US 200000
#define ANSWER_US 1000000
#define PATIENCE_US 90000000 /* a generation ends by then, whoever was in it */
#define PART_MAX 1024        /* small: the most of them are in parts */

/* --- manifests -------------------------------------------------------------------------------- */

static bool is_of(const struct record_shard *row, const struct record_checkpoint *checkpoint)
{
    return row->round == checkpoint->round && strcmp(row->job, checkpoint->job) == 0;
}

/* Those of one round, rank by rank. */
static void collect_files(struct sim *sim, const struct record_checkpoint *of,
                          const struct manifest *manifest, struct manifest_shard *shards,
                          struct wire_file *files)
{
    const struct sim_table *table = &sim->disk.tables[RECORD_FILE];
    const struct record_file **rows = calloc(table->count + 1, sizeof(const struct record_file *));
    size_t count = 0;

    for (size_t i = 0; i < table->count; i++)
        if (table->rows[i].record.u.file.round == of->round &&
            strcmp(table->rows[i].record.u.file.job, of->job) == 0)
            rows[count++] = &table->rows[i].record.u.file;
    for (size_t i = 0; i < manifest->shard_count; i++) {
        shards[i].files = files;
        for (size_t k = 0; k < count; k++)
            if (rows[k]->rank == shards[i].rank)
                files[shards[i].file_count++] =
                    (struct wire_file){rows[k]->path, rows[k]->bytes, rows[k]->checksum};
        files += shards[i].file_count;
    }
    free(rows);
}

static void render(struct sim *sim, struct sim_dir *dir, const struct record_checkpoint *row)
{
    const struct sim_table *table = &sim->disk.tables[RECORD_SHARD];
    struct manifest_shard *shards = calloc(table->count + 1, sizeof *shards);
    struct wire_file *files = calloc(sim->disk.tables[RECORD_FILE].count + 1, sizeof *files);
    struct manifest manifest = {.job = row->job,
                                .generation = row->generation,
                                .round = row->round,
                                .step = row->step,
                                .layout = row->layout,
                                .world_size = row->world_size,
                                .epoch = row->epoch,
                                .step_in_epoch = row->step_in_epoch,
                                .data_position = row->data_position,
                                .total_run_calls = row->step,
                                .created_unix_ms = row->committed_unix_ms,
                                .cause = wire_cause_name(row->cause),
                                .metrics = row->metrics,
                                .shards = shards};
    const struct record_generation *launch = disk_generation(sim, row->job, row->generation);
    struct muster_error err;

    manifest.resumed_known =
        launch != NULL && launch->opened_unix_ms > 0 && launch->resume_step <= row->step;
    manifest.resumed_step = manifest.resumed_known ? launch->resume_step : 0;

    for (size_t i = 0; i < table->count; i++) {
        const struct record_shard *shard = &table->rows[i].record.u.shard;
        if (!is_of(shard, row))
            continue;
        shards[manifest.shard_count++] =
            (struct manifest_shard){.rank = shard->rank, .incarnation = shard->incarnation};
    }
    collect_files(sim, row, &manifest, shards, files);
    if (manifest_render(&manifest, &dir->manifest, &dir->manifest_size, &err) != MUSTER_OK)
        sim_broken(sim, "manifest", "that of checkpoint %llu cannot be written: %s",
                   (unsigned long long)row->round, err.text);
    free(shards);
    free(files);
}

/* With SQLite as the disk the bytes are the broker's own. */
void import_keep_manifest(struct sim *sim, struct sim_dir *dir, uint64_t round,
                          const uint8_t *bytes, size_t size)
{
    const struct record_checkpoint *row = disk_checkpoint(sim, sim->jobs[dir->job].name, round);

    if (!sim->keeps || row == NULL)
        return;
    free(dir->manifest);
    dir->manifest = NULL;
    if (sim->store == NULL) {
        render(sim, dir, row);
        return;
    }
    dir->manifest = malloc(size);
    dir->manifest_size = size;
    memcpy(dir->manifest, bytes, size);
}

/* --- one after another ------------------------------------------------------------------------ */

/* What the database decided: to keep it, to leave it behind, or to delete it. One whose number is
 * another's there no import takes: a person moves it away. */
static bool is_on_record(struct sim *sim, const struct sim_job *job, const struct sim_dir *dir)
{
    const struct record_checkpoint *row = disk_checkpoint(sim, job->name, dir->round);

    return row != NULL && (row->generation != dir->generation || row->step != dir->step ||
                           row->state != CHECKPOINT_FAILED);
}

/* The next by its round; NULL: all were told. A rank asks first, and leaves out what is known: its
 * agent may end it before it came to the last one. */
static const struct sim_dir *next_dir(struct sim *sim, const struct sim_job *job)
{
    const struct sim_dir *found = NULL;

    for (size_t i = 0; i < sim->dirs_count; i++) {
        const struct sim_dir *dir = &sim->dirs[i];
        if (dir->job == job->index && !dir->out && dir->path[0] != '\0' && dir->manifest != NULL &&
            (int64_t)dir->round > job->keeps.last_round &&
            !(job->keeps.importer != NULL && is_on_record(sim, job, dir)) &&
            (found == NULL || dir->round < found->round))
            found = dir;
    }
    return found;
}

static void send_part(struct sim *sim, struct sim_job *job)
{
    struct sim_keeps *keeps = &job->keeps;
    const struct sim_dir *dir = &sim->dirs[keeps->dir];
    struct wire_msg message = tool_message(sim, WIRE_IMPORT, job);
    size_t left = dir->manifest_size - keeps->offset;

    message.up.request |= OF_IMPORT;
    message.u.import =
        (struct wire_import){.path = dir->path,
                             .offset = keeps->offset,
                             .total = dir->manifest_size,
                             .bytes = {(const uint8_t *)dir->manifest + keeps->offset,
                                       left < PART_MAX ? left : PART_MAX}};
    keeps->request = message.up.request;
    keeps->asked_us = sim->now_us;
    tool_say(sim, &message);
}

/* One that a launch did not find, and nothing in its place: nobody can restore it. An older copy of
 * the database may hold pins for good that were taken back since: nobody does it again but who is
 * told that they hold it. */
static void give_up_missing(struct sim *sim, struct sim_job *job)
{
    struct wire_msg message;

    readers_let_go(sim, job, job->keeps.missing);
    message = tool_message(sim, WIRE_DROP, job);
    message.u.drop = (struct wire_drop){.checkpoint = job->keeps.missing, .newest = true};
    drop_said(sim, job->index, job->keeps.missing, true);
    tool_say(sim, &message);
}

static void launch(struct sim *sim, struct sim_job *job)
{
    struct sim_keeps *keeps = &job->keeps;

    if (keeps->hasty) { /* nobody was stopped */
        struct sim_proc *importer = keeps->importer;
        keeps->stopped = false;
        keeps->importer = NULL;
        if (importer != NULL && importer->alive)
            thread_imported(sim, importer);
        return;
    }
    SIM_TELL(sim, "OPERATOR launches %s again", job->name);
    if (keeps->missing > 0 && keeps->missing_times > 1 && sim->broker->alive)
        give_up_missing(sim, job);
    job->fallback |= keeps->missing > 0;
    keeps->missing = 0;
    keeps->stopped = false;
    job_launch(sim, job);
}

static struct sim_job *stopped_first(struct sim *sim)
{
    for (size_t i = 0; i < sim->jobs_count; i++)
        if (sim->jobs[i].keeps.stopped)
            return &sim->jobs[i];
    return NULL;
}

static void operator_works(struct sim *sim, struct sim_job *job)
{
    struct sim_keeps *keeps = &job->keeps;

    if (!sim->broker->alive || (keeps->request > 0 && sim->now_us - keeps->asked_us < ANSWER_US))
        return;
    const struct sim_dir *dir = next_dir(sim, job);
    bool died = keeps->importer != NULL && !keeps->importer->alive;
    if (dir == NULL || died || sim->now_us - keeps->stopped_us > PATIENCE_US) {
        launch(sim, job);
        return;
    }
    keeps->dir = (size_t)(dir - sim->dirs);
    keeps->offset = 0;
    send_part(sim, job);
}

/* It has all addresses: an older log may have made an earlier broker the active one again. */
static void operator_looks(struct sim *sim, struct sim_event *event)
{
    struct sim_job *job = stopped_first(sim); /* the broker takes one manifest at a time */
    struct sim_broker *newest = sim->broker;

    (void)event;
    if (job == NULL)
        return;
    sim_after(sim, LOOK_US, operator_looks, NULL);
    for (unsigned i = 0; i < SIM_BROKERS && !sim->broker->alive; i++)
        broker_turn(sim, i);
    operator_works(sim, job);
    sim->broker = newest;
}

/* --- answers ---------------------------------------------------------------------------------- */

static void part_taken(struct sim *sim, struct sim_job *job, uint64_t value)
{
    struct sim_keeps *keeps = &job->keeps;
    const struct sim_dir *dir = &sim->dirs[keeps->dir];
    size_t left = dir->manifest_size - keeps->offset;

    if (left > PART_MAX) {
        keeps->offset += PART_MAX;
        send_part(sim, job);
        return;
    }
    sim->stats->imports += value;
    check_imported(sim, job, dir);
    keeps->last_round = (int64_t)dir->round;
}

void import_hear(struct sim *sim, const struct wire_msg *message)
{
    const struct wire_ack *ack = &message->u.ack;
    struct sim_job *job = stopped_first(sim);

    if (message->type != WIRE_ACK || job == NULL || job->keeps.request != ack->request ||
        ack->request == 0)
        return;
    job->keeps.request = 0;
    if (ack->code == MUSTER_OK)
        part_taken(sim, job, ack->value);
    else if (ack->code == MUSTER_E_EXISTS) {
        job->keeps.last_round = (int64_t)sim->dirs[job->keeps.dir].round;
        sim->dirs[job->keeps.dir].refused = true;
    } else if (ack->code != MUSTER_E_BUSY && ack->code != MUSTER_E_STORAGE &&
               ack->code != MUSTER_E_ARGUMENT) /* it died in the middle: from the first part */
        sim_broken(sim, "answers", "the import of checkpoint %llu is answered: %s",
                   (unsigned long long)sim->dirs[job->keeps.dir].round, ack->text);
}

/* --- the operator ----------------------------------------------------------------------------- */

static void stop(struct sim *sim, struct sim_job *job, bool hasty)
{
    bool first = stopped_first(sim) == NULL;

    if (job->finished || job->keeps.stopped)
        return;
    SIM_TELL(sim, "OPERATOR %s %s", hasty ? "imports into" : "stops", job->name);
    job->keeps.stopped = true;
    job->keeps.hasty = hasty;
    job->keeps.stopped_us = sim->now_us;
    job->keeps.request = 0;
    job->keeps.last_round = -1;
    for (size_t i = 0; i < sim->procs_count && !hasty; i++)
        if (sim->procs[i]->job == job->index && sim->procs[i]->alive)
            proc_end(sim, sim->procs[i], END_KILLED, "stopped by the operator");
    if (first)
        sim_after(sim, LOOK_US, operator_looks, NULL);
}

/* An older copy of the database lists what was deleted since. */
bool import_is_gone(struct sim *sim, const struct sim_proc *proc, uint64_t checkpoint)
{
    const struct record_checkpoint *row =
        disk_checkpoint(sim, sim->jobs[proc->job].name, checkpoint);

    return sim->keeps && row != NULL &&
           is_of_lost_history(&sim->jobs[proc->job], row->generation) &&
           fs_dir(sim, proc->job, row->generation, checkpoint)->out;
}

/* Told by a rank that restores it, or by the one that repairs it first: their launch ends for it */
void import_missing(struct sim *sim, const struct sim_proc *proc, uint64_t checkpoint)
{
    struct sim_keeps *keeps = &sim->jobs[proc->job].keeps;

    keeps->missing_times += keeps->missing == 0;
    keeps->missing = checkpoint;
}

bool import_first(struct sim *sim, struct sim_job *job)
{
    if (job->keeps.missing > 0)
        stop(sim, job, false);
    return job->keeps.stopped && !job->keeps.hasty;
}

/* Of all jobs, while their processes look for the broker. */
void import_hastily(struct sim *sim)
{
    for (size_t i = 0; i < sim->jobs_count && sim->options.hasty && sim->keeps; i++)
        stop(sim, &sim->jobs[i], true);
}

void import_lose_database(struct sim *sim)
{
    for (size_t i = 0; i < sim->jobs_count && !sim->options.hasty; i++)
        stop(sim, &sim->jobs[i], false);
    sim->lose_database = true;
    if (!sim->broker->alive)
        return;
    sim->broker->down_us = side_range(sim, 100000, 3000000);
    broker_crash(sim, "its database is lost");
}

/* --- rank 0 ----------------------------------------------------------------------------------- */

bool import_is_newer(struct sim *sim, const struct sim_job *job, int64_t step)
{
    for (size_t i = 0; i < sim->dirs_count && sim->keeps; i++) {
        const struct sim_dir *dir = &sim->dirs[i];
        if (dir->job == job->index && dir->step > step && dir->path[0] != '\0' && !dir->out &&
            !dir->refused && dir->manifest != NULL && !is_on_record(sim, job, dir))
            return true;
    }
    return false;
}

bool import_by_rank(struct sim *sim, struct sim_proc *proc)
{
    struct sim_job *job = &sim->jobs[proc->job];

    if (job->keeps.stopped || job->finished)
        return false;
    stop(sim, job, true);
    job->keeps.importer = proc;
    sim->stats->imports_by_rank++;
    return true;
}
