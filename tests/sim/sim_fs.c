/* sim_fs - the shared file system: what each shard holds, which directory was renamed to what. */
#include "tests/sim/sim_world.h"

#include <stdlib.h>
#include <string.h>

static size_t *head_of(struct sim *sim, uint64_t round, uint64_t incarnation)
{
    return &sim->shard_heads[(round * 31 + incarnation) % SIM_SHARD_HEADS];
}

/* A shard's name has its writer's incarnation in it. */
struct sim_shard *fs_shard_of(struct sim *sim, uint64_t job, uint64_t generation, uint64_t round,
                              uint64_t incarnation)
{
    for (size_t i = *head_of(sim, round, incarnation); i > 0; i = sim->shards[i - 1].older) {
        struct sim_shard *shard = &sim->shards[i - 1];
        if (shard->round == round && shard->incarnation == incarnation && shard->job == job &&
            shard->generation == generation)
            return shard;
    }
    return NULL;
}

struct sim_shard *fs_shard(struct sim *sim, const struct sim_proc *proc, uint64_t generation,
                           uint64_t round)
{
    return fs_shard_of(sim, proc->job, generation, round, proc->incarnation);
}

static struct sim_dir *dir_add(struct sim *sim, uint64_t job, uint64_t generation, uint64_t round)
{
    sim->dirs = realloc(sim->dirs, (sim->dirs_count + 1) * sizeof *sim->dirs);
    sim->dirs[sim->dirs_count] =
        (struct sim_dir){.job = job, .generation = generation, .round = round, .path = ""};
    return &sim->dirs[sim->dirs_count++];
}

/* Begins a shard: whole only when its save has ended. */
struct sim_shard *fs_shard_add(struct sim *sim, const struct sim_proc *proc, uint64_t generation,
                               uint64_t round)
{
    struct sim_shard *old = fs_shard(sim, proc, generation, round);

    if (old != NULL && !old->deleted)
        sim_broken(sim, "I6", "rank %u begins a shard of round %llu twice", proc->rank,
                   (unsigned long long)round);
    if (sim->keeps && fs_dir(sim, proc->job, generation, round)->out)
        dir_add(sim, proc->job, generation, round); /* a database that was restored uses it again */
    sim->shards = realloc(sim->shards, (sim->shards_count + 1) * sizeof *sim->shards);
    struct sim_shard *shard = &sim->shards[sim->shards_count++];
    size_t *head = head_of(sim, round, proc->incarnation);
    *shard = (struct sim_shard){.older = *head,
                                .job = proc->job,
                                .generation = generation,
                                .round = round,
                                .rank = proc->rank,
                                .incarnation = proc->incarnation,
                                .begun = proc->begun,
                                .done = proc->done};
    *head = sim->shards_count;
    return shard;
}

struct sim_dir *fs_dir(struct sim *sim, uint64_t job, uint64_t generation, uint64_t round)
{
    for (size_t i = sim->dirs_count; i-- > 0;) /* the newest life of that number */
        if (sim->dirs[i].round == round && sim->dirs[i].job == job &&
            sim->dirs[i].generation == generation)
            return &sim->dirs[i];
    return dir_add(sim, job, generation, round);
}

size_t fs_manifest_bytes(uint64_t round, uint8_t *buffer, size_t offset, size_t max,
                         size_t *ret_total)
{
    size_t total = round % 7 == 0 ? 100000 : 40 + (size_t)(round % 5) * 300;
    size_t size = offset < total ? total - offset : 0;

    *ret_total = total;
    if (size > max)
        size = max;
    for (size_t i = 0; i < size; i++)
        buffer[i] = (uint8_t)((offset + i) * 31 + round);
    return size;
}

/* --- what is not synced ----------------------------------------------------------------------- */

void fs_moves(struct sim *sim, const struct sim_proc *proc, struct sim_dir *dir)
{
    dir->was = dir->path;
    dir->mover = power_host(sim, proc->rank);
}

/* Those that were taken out of their place with it are gone for good, or there again. */
static void settle_shards(struct sim *sim, const struct sim_dir *dir, bool back)
{
    for (size_t i = 0; i < sim->shards_count; i++) {
        struct sim_shard *shard = &sim->shards[i];
        if (!shard->taken || shard->job != dir->job || shard->round != dir->round ||
            shard->generation != dir->generation)
            continue;
        shard->taken = false;
        shard->deleted = !back;
    }
}

static void settle_name(struct sim *sim, struct sim_dir *dir, bool back)
{
    if (dir->out)
        settle_shards(sim, dir, back);
    if (back) {
        *(dir->out ? &sim->stats->cut_deletions : &sim->stats->cut_names) += 1;
        SIM_TELL(sim, "POWER: '%s' of round %llu is '%s' again", dir->path,
                 (unsigned long long)dir->round, dir->was);
        dir->path = dir->was;
        dir->out = false;
    }
    dir->was = NULL;
}

void fs_sync_names(struct sim *sim, uint64_t job)
{
    for (size_t i = 0; i < sim->dirs_count; i++)
        if (sim->dirs[i].job == job && sim->dirs[i].was != NULL)
            settle_name(sim, &sim->dirs[i], false);
}

static bool is_used(const struct sim *sim, const char *path)
{
    bool used = false;

    for (size_t i = 0; i < sim->dirs_count && path[0] != '\0'; i++)
        used |= strcmp(sim->dirs[i].path, path) == 0;
    return used;
}

static void forget_shard(struct sim *sim, struct sim_shard *shard)
{
    enum { GONE, TORN, WHOLE };
    int64_t left = side_range(sim, GONE, WHOLE);

    shard->deleted = left == GONE;
    shard->complete = left == WHOLE;
    shard->synced = true;
    sim->unchecked = true;
    sim->stats->cut_shards += left != WHOLE;
    SIM_TELL(sim, "POWER: the shard of rank %llu of round %llu is %s",
             (unsigned long long)shard->rank, (unsigned long long)shard->round,
             left == GONE   ? "gone"
             : left == TORN ? "torn"
                            : "whole");
}

void fs_forget(struct sim *sim, unsigned host)
{
    for (size_t i = 0; i < sim->shards_count; i++) {
        struct sim_shard *shard = &sim->shards[i];
        if (!shard->synced && !shard->deleted && power_host(sim, shard->rank) == host)
            forget_shard(sim, shard);
    }
    for (size_t i = 0; i < sim->dirs_count; i++) {
        struct sim_dir *dir = &sim->dirs[i];
        if (dir->was != NULL && dir->mover == host)
            settle_name(sim, dir, side_chance(sim, 50) && !is_used(sim, dir->was));
    }
}

/* --- names ------------------------------------------------------------------------------------ */

static const char *final_name(struct sim *sim, const struct sim_job *job, uint64_t generation,
                              uint64_t round, int64_t step)
{
    char name[160];
    bool taken = false;

    snprintf(name, sizeof name, "/ck/%s/%lld", job->name, (long long)step);
    for (size_t i = 0; i < sim->dirs_count; i++)
        taken |= strcmp(sim->dirs[i].path, name) == 0;
    if (taken)
        snprintf(name, sizeof name, "/ck/%s/%lld.%llu-%llu", job->name, (long long)step,
                 (unsigned long long)generation, (unsigned long long)round);
    return sim_word(sim, name);
}

static void check_manifest(struct sim *sim, struct sim_proc *proc, uint64_t round,
                           const uint8_t *bytes, size_t size)
{
    size_t total;
    uint8_t *wanted;

    if (sim->store != NULL)
        return; /* rendered from the rows */
    fs_manifest_bytes(round, NULL, 0, 0, &total);
    wanted = malloc(total);
    fs_manifest_bytes(round, wanted, 0, total, &total);
    if (size != total || memcmp(wanted, bytes, size) != 0)
        sim_broken(sim, "manifest",
                   "rank %u got other manifest bytes for checkpoint %llu than sent", proc->rank,
                   (unsigned long long)round);
    free(wanted);
}

static void tell_manifest(struct sim *sim, struct sim_proc *proc, struct member_input *input)
{
    proc->manifests--;
    SIM_TELL(sim, "%s/%u manifest of %llu: %s", sim->jobs[proc->job].name, proc->slot,
             (unsigned long long)input->checkpoint, input->text);
    power_moment(sim, proc, POWER_NAMED);
    proc_feed(sim, proc, input);
    thread_look(sim, proc);
}

static void name_synced(struct sim *sim, struct sim_event *event)
{
    struct member_input input = {.kind = MEMBER_MANIFEST_WRITTEN,
                                 .checkpoint = (uint64_t)event->number,
                                 .text = (const char *)event->data};

    fs_sync_names(sim, event->proc->job);
    tell_manifest(sim, event->proc, &input);
}

/* As dir_commit_as(): renamed by an earlier try or not, the name is synced before it is told. */
static void sync_name(struct sim *sim, struct sim_proc *proc, struct member_input *input)
{
    struct sim_event *event;

    power_moment(sim, proc, POWER_RENAMED);
    if (!sim->options.power_cuts || sim->options.mutation == MUTANT_NAMED_UNSYNCED) {
        tell_manifest(sim, proc, input);
        return;
    }
    event = sim_after(sim, side_range(sim, 200, 40000), name_synced, proc);
    event->number = (int64_t)input->checkpoint;
    event->size = strlen(input->text) + 1;
    event->data = malloc(event->size);
    memcpy(event->data, input->text, event->size);
}

static void manifest_done(struct sim *sim, struct sim_event *event)
{
    struct sim_proc *proc = event->proc;
    struct sim_job *job = &sim->jobs[proc->job];
    uint64_t round = (uint64_t)event->number, generation = event->stamp;
    struct member_input input = {.kind = MEMBER_MANIFEST_WRITTEN, .checkpoint = round};
    struct sim_dir *dir = fs_dir(sim, proc->job, generation, round);

    if (!proc->view.started && import_is_gone(sim, proc, round))
        import_missing(sim, proc, round); /* the launch resumes from it: it was to be repaired */
    if (sim->fail_manifests > 0 || dir->out) {
        if (!dir->out)
            fault_met(sim, FAULT_MANIFEST_FAILS); /* else it could not be written anyway */
        sim->fail_manifests -= sim->fail_manifests > 0;
        input.kind = MEMBER_MANIFEST_FAILED;
        input.code = MUSTER_E_IO;
        input.text = dir->out ? "the shard file is not there" : "the disk said no";
        tell_manifest(sim, proc, &input);
        return;
    }
    if (dir->path[0] == '\0') {
        fs_moves(sim, proc, dir);
        dir->path = final_name(sim, job, generation, round, dir->step);
    } else if (dir->mover != power_host(sim, proc->rank)) {
        dir->was = NULL; /* what another host sees is no longer in the first one's memory alone */
    }
    input.text = dir->path;
    sync_name(sim, proc, &input);
}

/* Its writer was frozen meanwhile. */
static bool is_of_the_past(const struct sim *sim, const struct record_checkpoint *row)
{
    const struct record_job *job = disk_job(sim, row->job);

    return (row->state == CHECKPOINT_DELETING || row->state == CHECKPOINT_DELETED) &&
           row->generation < job->generation;
}

/* By a broker that has not heard yet that the log lost it. */
static bool is_told_late(const struct sim *sim, const struct sim_job *job, uint64_t generation)
{
    return sim->options.shared && sim->lost_history && is_of_lost_history(job, generation);
}

void fs_manifest(struct sim *sim, struct sim_proc *proc, uint64_t generation, uint64_t round,
                 int64_t step, const uint8_t *bytes, size_t size)
{
    struct sim_job *job = &sim->jobs[proc->job];
    const struct record_checkpoint *row = disk_checkpoint(sim, job->name, round);

    check_manifest(sim, proc, round, bytes, size);
    power_moment(sim, proc, POWER_COMMITTED);
    if (is_told_late(sim, job, generation))
        SIM_TELL(sim, "MANIFEST of a round that the log has lost");
    else if (row == NULL || (row->state != CHECKPOINT_COMMITTED && !is_of_the_past(sim, row)))
        sim_broken(sim, "I1", "a manifest is written for round %llu, which is not committed",
                   (unsigned long long)round);
    else if (row->generation != generation || row->step != step)
        sim_broken(sim, "I1", "the manifest of round %llu names generation %llu, step %lld",
                   (unsigned long long)round, (unsigned long long)generation, (long long)step);
    struct sim_dir *dir = fs_dir(sim, proc->job, generation, round);
    dir->step = step;
    import_keep_manifest(sim, dir, round, bytes, size);
    struct sim_event *event = sim_after(sim, sim_range(sim, 500, 60000), manifest_done, proc);
    event->number = (int64_t)round;
    event->stamp = generation;
}

void fs_discard(struct sim *sim, struct sim_proc *proc, uint64_t generation, uint64_t round)
{
    const struct sim_job *job = &sim->jobs[proc->job];
    struct sim_shard *shard = fs_shard(sim, proc, generation, round);
    const struct record_checkpoint *row = disk_checkpoint(sim, job->name, round);

    if (round == 0)
        return;
    if (proc->saving_round == round || proc->behind_round == round) {
        proc->discard_generation = generation;
        proc->discard_round = round;
        return;
    }
    /* one that was imported may have the number of a round that was aborted here, and other shards
     */
    const bool its = disk_has_shard(sim, job->name, round, proc->incarnation);
    if (row != NULL && row->state == CHECKPOINT_COMMITTED && its)
        sim_broken(sim, "I11", "rank %u deletes its shard of the committed checkpoint %llu",
                   proc->rank, (unsigned long long)round);
    const struct record_round *ended = disk_round(sim, job->name, round);
    const bool others = check_is_imported(sim, job->name, round) && !its;
    if (!proc->lost_history && !others && (ended == NULL || ended->state != ROUND_ABORTED))
        sim_broken(sim, "I11", "rank %u deletes its shard of round %llu, which was not aborted",
                   proc->rank, (unsigned long long)round);
    if (fs_dir(sim, proc->job, generation, round)->path[0] != '\0')
        return; /* it has its final name, by a history that is lost now: dir_remove_round does not
                   find it */
    if (shard != NULL && shard->incarnation == proc->incarnation)
        shard->deleted = sim->unchecked = true;
}

/* Is this shard one that its round decided on? What was told before the database was restored from
 * a copy is no row any more, and is on disk anyway. */
static bool is_decided(const struct sim *sim, const struct sim_job *job,
                       const struct sim_shard *shard)
{
    if (is_of_lost_history(job, shard->generation) &&
        disk_round(sim, job->name, shard->round) == NULL)
        return true;
    const struct record_participant *part =
        disk_member(sim, job->name, shard->round, shard->incarnation);

    if (check_is_imported(sim, job->name, shard->round))
        return disk_has_shard(sim, job->name, shard->round, shard->incarnation);
    return part != NULL && part->writer && part->rank == shard->rank;
}

const struct sim_shard *fs_restore(struct sim *sim, const struct sim_job *job, const char *path,
                                   uint64_t checkpoint, int rank, int64_t told_us)
{
    const struct record_checkpoint *row = disk_checkpoint(sim, job->name, checkpoint);
    bool before = row == NULL && sim->lost_history &&
                  (told_us < sim->lost_us || sim->options.shared); /* a broker may tell it late */
    enum wire_layout layout = row != NULL ? row->layout : job->layout;

    for (size_t i = 0; i < sim->dirs_count && (row != NULL || sim->lost_history); i++) {
        const struct sim_dir *dir = &sim->dirs[i];
        if (dir->job != job->index || dir->path[0] == '\0' || strcmp(dir->path, path) != 0)
            continue;
        for (size_t s = sim->shards_count; s-- > 0;) {
            const struct sim_shard *shard = &sim->shards[s];
            bool own = layout == LAYOUT_REPLICATED || rank < 0 || (int)shard->rank == rank;
            if (shard->job == job->index && shard->round == dir->round &&
                shard->generation == dir->generation && own && shard->complete && !shard->deleted &&
                (before || is_decided(sim, job, shard)))
                return shard;
        }
    }
    return NULL;
}
