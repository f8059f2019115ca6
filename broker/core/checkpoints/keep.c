/* keep - which checkpoints are deleted, and the orders to the chief to delete them; see keep.h.
 * Invariant (I11): a checkpoint that is pinned, being restored or the newest is not deleted. The
 * newest may go when the chief said that the job is done with it. The newest that is whole
 * (manifest and final name) stays until a newer one is whole. */
#include "broker/core/checkpoints/keep.h"

#include "schema/room.h"
#include "schema/rules/keep.h"

#include <stdio.h>

static const struct answer ok = {MUSTER_OK, "", 0};

const struct job_policies *keep_policies_of(const struct job *job)
{
    const struct job_policies *policies = job->keep.policies;

    return policies != NULL && policies->generation == job->gen.generation ? policies : NULL;
}

static void keep_deletion_drop(struct job *job, size_t index)
{
    struct keep_state *keep = &job->keep;

    free(keep->deletions[index].path);
    free(keep->deletions[index].metrics);
    free(keep->deletions[index].trash);
    memmove(&keep->deletions[index], &keep->deletions[index + 1],
            (keep->deletions_count - index - 1) * sizeof keep->deletions[0]);
    keep->deletions_count--;
}

/* --- policies --------------------------------------------------------------------------------- */

static void keep_policies_set(struct job *job, uint64_t generation, const char *keep_text,
                              const char *save_text, const char *trash)
{
    struct job_policies *policies = calloc(1, sizeof *policies);

    MUST(policies != NULL);
    policies->generation = generation;
    policies->keep_text = strdup(keep_text);
    policies->save_text = strdup(save_text);
    MUST(policies->keep_text != NULL && policies->save_text != NULL);
    snprintf(policies->trash, sizeof policies->trash, "%s", trash);
    /* A database of ours holds none that do not parse; of one that does, nothing is deleted. */
    if (keep_policies_parse(keep_text, &policies->keep, NULL) != MUSTER_OK)
        policies->keep.count = 0;
    if (save_policies_parse(save_text, &policies->save, NULL) != MUSTER_OK)
        policies->save.count = 0;
    policies_free(job);
    job->keep.policies = policies;
    job->keep.changed = true;
}

static void keep_persist_policies(struct core *core, const struct job *job)
{
    const struct job_policies *policies = job->keep.policies;
    struct action *action = action_add(core, ACTION_PERSIST);

    action->record.kind = RECORD_POLICY;
    action->record.u.policy = (struct record_policy){.job = out_text(core, job->name),
                                                     .generation = policies->generation,
                                                     .keep = out_long(core, policies->keep_text),
                                                     .save = out_long(core, policies->save_text),
                                                     .trash = out_text(core, policies->trash)};
}

static bool keep_is_as_told(const struct job *job, const struct wire_policies *m)
{
    const struct job_policies *policies = keep_policies_of(job);

    return policies != NULL && strcmp(policies->keep_text, m->keep) == 0 &&
           strcmp(policies->save_text, m->save) == 0 && strcmp(policies->trash, m->trash) == 0;
}

struct answer keep_policies_take(struct core *core, struct peer *peer,
                                 const struct wire_policies *m)
{
    struct job *job = peer->job;
    struct keep_policies keep;
    struct save_policies save;
    struct muster_error err;

    if (peer->rank != 0)
        return (struct answer){MUSTER_E_ARGUMENT, "the chief tells the job's policies, nobody else",
                               0};
    if (keep_policies_parse(m->keep, &keep, &err) != MUSTER_OK ||
        save_policies_parse(m->save, &save, &err) != MUSTER_OK)
        return (struct answer){MUSTER_E_ARGUMENT, out_text(core, err.text), 0};
    if (m->trash[0] != '\0' && !policy_trash_ok(m->trash))
        return (struct answer){MUSTER_E_ARGUMENT,
                               "the trash folder is to be one name that begins with a letter", 0};
    if (keep_is_as_told(job, m))
        return ok; /* a node tells them again to each start of the broker */
    keep_policies_set(job, job->gen.generation, m->keep, m->save, m->trash);
    keep_persist_policies(core, job);
    job_timer(job, core->now); /* a save may be due by the new ones */
    return ok;
}

/* --- what goes -------------------------------------------------------------------------------- */

/* A process that has not restored yet reads what it was told to, or may be told to. */
bool keep_is_being_restored(const struct job *job, uint64_t checkpoint)
{
    if (job->gen.state == GENERATION_JOINING)
        return true; /* with fallback any of them may be next */
    for (size_t i = 0; i < job->peers_count; i++)
        if (job->peers[i]->state == NODE_JOINED &&
            (checkpoint == job->gen.resume_checkpoint || checkpoint == job->peers[i]->told_resume ||
             job->peers[i]->reads_any))
            return true;
    return false;
}

/* Why the checkpoint may not be deleted. NULL: it may be. */
static const char *keep_held_by(const struct job *job, const struct checkpoint *checkpoint,
                                bool newest_too)
{
    if (pins_hold(job, checkpoint->row.round))
        return "it is pinned";
    if (keep_is_being_restored(job, checkpoint->row.round))
        return "it is being restored";
    if (!newest_too && checkpoint == registry_newest(job))
        return "it is the newest";
    if (checkpoint == registry_newest_whole(job) && checkpoint != registry_newest(job))
        return "it is the newest that is whole: the manifest of the newest is being written";
    if (checkpoint->path[0] == '\0' && checkpoint->row.generation == job->gen.generation)
        return "its manifest is being written";
    return NULL;
}

static struct deletion *keep_deletion_add(struct job *job, const struct record_checkpoint *row,
                                          const char *trash)
{
    struct keep_state *keep = &job->keep;

    keep->deletions = room_for_one(keep->deletions, keep->deletions_count,
                                   &keep->deletions_capacity, 8, sizeof *keep->deletions);
    MUST(keep->deletions != NULL);
    struct deletion *deletion = &keep->deletions[keep->deletions_count++];
    *deletion = (struct deletion){.checkpoint = row->round,
                                  .generation = row->generation,
                                  .step = row->step,
                                  .path = strdup(row->path),
                                  .metrics = strdup(row->metrics),
                                  .trash = strdup(trash),
                                  .row = *row};
    MUST(deletion->path != NULL && deletion->metrics != NULL && deletion->trash != NULL);
    deletion->row.job = job->name;
    deletion->row.path = deletion->path;
    deletion->row.metrics = deletion->metrics;
    deletion->row.trash = deletion->trash;
    return deletion;
}

void keep_delete(struct core *core, struct job *job, const struct record_checkpoint *row)
{
    const struct job_policies *policies = keep_policies_of(job);
    struct deletion *deletion =
        keep_deletion_add(job, row, policies != NULL ? policies->trash : "");

    deletion->row.state = CHECKPOINT_DELETING;
    persist_checkpoint(core, &deletion->row);
    deletion->send_boot_ms = core->now;
    registry_drop(job, deletion->checkpoint);
    job_timer(job, core->now);
}

/* Work for a job goes on here after its end: the last manifest comes after the save that ended
 * it. */
static bool keep_has_started(const struct job *job)
{
    return job->gen.state == GENERATION_RUNNING ||
           (job->gen.state == GENERATION_ENDING && job->gen.started_unix_ms > 0);
}

enum others { OTHERS_FINISHED, OTHERS_TRAIN, OTHERS_FAILED };

static enum others keep_other_rank(const struct job *job, uint64_t rank)
{
    const struct peer *held = job->trainers[rank];

    if (held != NULL && peer_is_live(held))
        return OTHERS_TRAIN;
    return generation_rank_finished(job, rank) ? OTHERS_FINISHED : OTHERS_FAILED;
}

/* The chief is done. If a rank fails after that, or is to end, the job goes on from the newest: it
 * stays until all have finished. */
static enum others keep_others_of(const struct job *job)
{
    enum others others = OTHERS_FINISHED;

    for (uint64_t rank = 0; job->trainers != NULL && rank < job->gen.world_size; rank++) {
        enum others one =
            rank == job->keep.final_rank ? OTHERS_FINISHED : keep_other_rank(job, rank);
        if (one > others)
            others = one;
    }
    return others;
}

bool keep_is_over(const struct job *job)
{
    return job->keep.final && keep_others_of(job) == OTHERS_FINISHED;
}

/* Which checkpoints the policies want, as booleans beside job->checkpoints; owned. NULL: all, or no
 * memory. */
static bool *keep_wanted_of(const struct job *job)
{
    const struct job_policies *policies = keep_policies_of(job);
    size_t count = job->checkpoints_count;

    if (policies == NULL || policies->keep.count == 0 || count == 0)
        return NULL;
    struct keep_item *items = calloc(count, sizeof *items);
    bool *wanted = calloc(count, sizeof *wanted);
    bool good = items != NULL && wanted != NULL;
    for (size_t i = 0; good && i < count; i++)
        items[i] = (struct keep_item){job->checkpoints[i].row.step,
                                      job->checkpoints[i].row.committed_unix_ms,
                                      job->checkpoints[i].metrics};
    good = good && keep_choose(&policies->keep, items, count, wanted);
    free(items);
    if (good)
        return wanted;
    free(wanted);
    return NULL;
}

static bool keep_newest_is_unwanted(const struct job *job)
{
    const struct checkpoint *newest = registry_newest(job);
    bool *wanted = newest != NULL ? keep_wanted_of(job) : NULL;
    bool unwanted = wanted != NULL && !wanted[newest - job->checkpoints];

    free(wanted);
    return unwanted;
}

void keep_settle(struct core *core, struct job *job)
{
    if (!job->keep.changed || !keep_has_started(job))
        return;
    bool *wanted = keep_wanted_of(job);

    for (size_t i = job->checkpoints_count; wanted != NULL && i-- > 0;)
        /* from the end: a decision moves what comes after it */
        if (!wanted[i] && keep_held_by(job, &job->checkpoints[i], keep_is_over(job)) == NULL)
            keep_delete(core, job, &job->checkpoints[i].row);
    free(wanted); /* without memory nothing goes now: the next commit asks again */
    given_up_consider(core, job, keep_is_over(job));
    job->keep.changed = false;
}

/* Another process may be able to delete it, or the launch ends. */
static void keep_try_again(struct core *core, struct job *job)
{
    for (size_t i = 0; i < job->keep.deletions_count; i++)
        if (job->keep.deletions[i].failed && job->keep.deletions[i].send_boot_ms > core->now)
            job->keep.deletions[i].send_boot_ms = core->now;
    job_timer(job, core->now);
}

void keep_launched(struct core *core, struct job *job)
{
    job->keep.failure[0] = '\0';
    keep_try_again(core, job);
}

struct answer keep_sweep(struct core *core, struct peer *peer, const struct wire_sweep *m)
{
    struct job *job = peer->job;

    if (m->final && !job->keep.final)
        keep_try_again(core, job);
    if (m->final) {
        job->keep.final = true;
        job->keep.final_rank = peer->rank;
    }
    job->keep.changed = true;
    keep_settle(core, job); /* the answer counts what is left */
    uint64_t left = job->keep.deletions_count;
    left += m->final && keep_others_of(job) == OTHERS_TRAIN && keep_newest_is_unwanted(job);
    for (size_t i = 0; i < job->checkpoints_count; i++) /* what may go once its manifest is there */
        left += job->checkpoints[i].path[0] == '\0' && !job->checkpoints[i].given_up &&
                job->checkpoints[i].row.generation == job->gen.generation;
    return (struct answer){MUSTER_OK, left > 0 ? out_text(core, job->keep.failure) : "", left};
}

struct answer keep_drop(struct core *core, struct job *job, const struct wire_drop *m)
{
    struct checkpoint *checkpoint = registry_find(job, m->checkpoint);

    for (size_t i = 0; i < job->keep.deletions_count; i++)
        if (job->keep.deletions[i].checkpoint == m->checkpoint)
            return ok; /* it goes already */
    if (checkpoint == NULL)
        return (struct answer){MUSTER_E_NOT_FOUND,
                               out_printf(core, "job '%s' has no committed checkpoint %llu",
                                          job->name, (unsigned long long)m->checkpoint),
                               0};
    const char *why = keep_held_by(job, checkpoint, m->newest);
    const char *pinned = pins_told(core, job, m->checkpoint);
    if (why != NULL)
        return (struct answer){MUSTER_E_BUSY,
                               out_printf(core, "checkpoint %llu (step %lld) stays: %s",
                                          (unsigned long long)m->checkpoint,
                                          registry_shown(job, checkpoint->row.step),
                                          pinned != NULL ? pinned : why),
                               0};
    keep_delete(core, job, &checkpoint->row);
    return ok;
}

/* --- the chief's hand ------------------------------------------------------------------------- */

static struct peer *keep_hand_of(const struct job *job)
{
    for (uint64_t rank = 0; job->trainers != NULL && rank < job->gen.world_size; rank++)
        if (job->trainers[rank] != NULL && job->trainers[rank]->mapped &&
            job->trainers[rank]->state == NODE_RESTORED)
            return job->trainers[rank];
    return NULL;
}

static void keep_send_delete(struct core *core, struct job *job, const struct peer *hand,
                             struct deletion *deletion)
{
    struct wire_msg *message = send_to(core, hand->route, job->name, WIRE_DELETE);

    message->u.delete = (struct wire_delete){.checkpoint = deletion->checkpoint,
                                             .round_generation = deletion->generation,
                                             .step = deletion->step,
                                             .path = out_text(core, deletion->path),
                                             .trash = out_text(core, deletion->trash)};
    deletion->send_boot_ms = core->now + (2 * HEARTBEAT_MS);
}

/* Nothing whole would be left that is as new: the newest has no manifest yet. */
static bool keep_is_withheld(const struct job *job, const struct deletion *deletion)
{
    const struct checkpoint *newest = registry_newest(job);
    const struct checkpoint *whole = registry_newest_whole(job);

    return newest != NULL && newest != whole && (whole == NULL || whole->row.step < deletion->step);
}

void keep_tick(struct core *core, struct job *job)
{
    struct peer *hand = job->keep.deletions_count > 0 ? keep_hand_of(job) : NULL;

    pins_tick(core, job);
    for (size_t i = 0; hand != NULL && i < job->keep.deletions_count && i < DELETES_IN_FLIGHT_MAX;
         i++) {
        struct deletion *deletion = &job->keep.deletions[i];
        if (keep_is_withheld(job, deletion))
            continue; /* its MANIFEST_DONE sets the timer */
        if (core->now >= deletion->send_boot_ms)
            keep_send_delete(core, job, hand, deletion);
        job_timer(job, deletion->send_boot_ms);
    }
}

struct answer keep_deleted(struct core *core, struct peer *peer, const struct wire_deleted *m)
{
    struct job *job = peer->job;

    for (size_t i = 0; i < job->keep.deletions_count; i++) {
        struct deletion *deletion = &job->keep.deletions[i];
        if (deletion->checkpoint != m->checkpoint)
            continue;
        if (m->code != MUSTER_OK) { /* the others are not to wait behind it */
            struct deletion last = *deletion;
            memmove(deletion, deletion + 1, (job->keep.deletions_count - i - 1) * sizeof *deletion);
            last.send_boot_ms = core->now + START_GRACE_MS;
            last.failed = true;
            snprintf(job->keep.failure, sizeof job->keep.failure, "%s", m->text);
            job->keep.deletions[job->keep.deletions_count - 1] = last;
            /* the copy's strings did not move */
            break;
        }
        deletion->row.state = CHECKPOINT_DELETED;
        persist_checkpoint(core, &deletion->row);
        pins_forget(core, job, m->checkpoint);
        keep_deletion_drop(job, i);
        break;
    }
    job_timer(job, core->now); /* the next may go */
    return ok;
}

/* --- start ------------------------------------------------------------------------------------ */

void keep_load(struct core *core, const struct record *row)
{
    struct job *job;

    if (row->kind == RECORD_POLICY) {
        const struct record_policy *policy = &row->u.policy;
        job = job_find(core, policy->job);
        if (job != NULL)
            keep_policies_set(job, policy->generation, policy->keep, policy->save, policy->trash);
    } else if (row->kind == RECORD_CHECKPOINT) {
        job = job_find(core, row->u.checkpoint.job);
        if (job != NULL)
            keep_deletion_add(job, &row->u.checkpoint, row->u.checkpoint.trash);
    }
}

void keep_start(struct core *core, struct job *job)
{
    for (size_t i = 0; i < job->keep.deletions_count; i++)
        job->keep.deletions[i].send_boot_ms = core->now;
    pins_start(core, job);
}
