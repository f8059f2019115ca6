/* sim_check_keep - what is deleted, and what is not: I11, that what is deleted is told to nobody,
 * that it goes in the end. What the policies want is judged here once more, from their meaning and
 * not from schema/rules/keep.c. */
#include "tests/sim/sim_world.h"

#include <stdlib.h>
#include <string.h>

#define U(x) ((unsigned long long)(x))
#define ITEMS_MAX 8192
#define LATE_US ((START_GRACE_MS + 30000) * 1000LL)

/* --- what the policies want ------------------------------------------------------------------- */

struct item {
    uint64_t round;
    int64_t step, unix_ms;
    bool wanted;
};

static size_t committed(const struct sim *sim, const char *job, struct item *items)
{
    const struct sim_table *table = &sim->disk.tables[RECORD_CHECKPOINT];
    size_t count = 0;

    for (size_t i = 0; i < table->count && count < ITEMS_MAX; i++) {
        const struct record_checkpoint *row = &table->rows[i].record.u.checkpoint;
        size_t at = count;
        if (strcmp(row->job, job) != 0 || !disk_counts(sim, row))
            continue;
        for (; at > 0 && (items[at - 1].step > row->step ||
                          (items[at - 1].step == row->step && items[at - 1].round > row->round));
             at--)
            items[at] = items[at - 1];
        items[at] = (struct item){
            .round = row->round, .step = row->step, .unix_ms = row->committed_unix_ms};
        count++;
    }
    return count;
}

/* Of two alike, as of a step that was saved twice, the later is the better one. */
static size_t better_ones(const struct sim_rule *rule, const struct item *items, size_t count,
                          size_t than, double value)
{
    size_t better = 0;
    double other;

    for (size_t i = 0; i < count; i++)
        better += keeps_measure(items[i].step, &other) &&
                  (rule->greatest ? other > value : other < value);
    for (size_t i = than + 1; i < count; i++)
        better += items[i].step == items[than].step;
    return better;
}

/* To which multiple it belongs, and how far it is from it. */
static int64_t multiple_of(const struct sim_rule *rule, int64_t step, int64_t *ret_apart)
{
    int64_t best = 0;

    *ret_apart = INT64_MAX;
    for (int64_t at = 0; at - rule->number <= step; at += rule->number) {
        int64_t apart = llabs(step - rule->from - at);
        if (apart <= *ret_apart) {
            *ret_apart = apart;
            best = at;
        }
    }
    return best;
}

static bool is_of_multiples(const struct sim_rule *rule, const struct item *items, size_t count,
                            size_t i)
{
    int64_t apart, other;
    int64_t multiple = multiple_of(rule, items[i].step, &apart);

    if (rule->kind == RULE_EVERY)
        return (items[i].step - rule->from) % rule->number == 0;
    for (size_t k = 0; k < count; k++)
        if (multiple_of(rule, items[k].step, &other) == multiple &&
            (other < apart || (other == apart && k > i)))
            return false;
    return true;
}

static bool is_wanted(const struct sim_rule *rule, const struct item *items, size_t count, size_t i)
{
    double value;
    int64_t newer = 0;

    switch (rule->kind) {
    case RULE_LATEST:
        return count - i <= (size_t)rule->number;
    case RULE_EVERY:
    case RULE_CLOSEST:
        for (size_t k = i + 1; k < count; k++)
            newer += is_of_multiples(rule, items, count, k);
        return is_of_multiples(rule, items, count, i) && (rule->most == 0 || newer < rule->most);
    case RULE_STEPS:
        return items[i].step == rule->number || items[i].step == rule->from;
    case RULE_LAST_MS:
        return items[count - 1].unix_ms - items[i].unix_ms <= rule->number;
    case RULE_BEST:
        if (!keeps_measure(items[i].step, &value))
            return rule->unmeasured;
        return better_ones(rule, items, count, i, value) < (size_t)rule->number;
    default:
        return false; /* by want_spaced() */
    }
}

static void want_spaced(const struct sim_rule *rule, struct item *items, size_t count)
{
    const struct item *last = NULL;

    for (size_t i = 0; i < count; i++) {
        int64_t apart = last == NULL              ? INT64_MAX
                        : rule->kind == RULE_NEAR ? items[i].step - last->step
                                                  : items[i].unix_ms - last->unix_ms;
        if (apart < rule->number)
            continue;
        items[i].wanted = true;
        last = &items[i];
    }
}

static void judge(const struct sim_keeps *keeps, struct item *items, size_t count)
{
    for (unsigned r = 0; r < keeps->rules_count; r++) {
        const struct sim_rule *rule = &keeps->rules[r];
        if (rule->kind == RULE_NEAR || rule->kind == RULE_EVERY_MS)
            want_spaced(rule, items, count);
        for (size_t i = 0; i < count; i++)
            items[i].wanted |= is_wanted(rule, items, count, i);
    }
    for (size_t i = 0; i < count; i++)
        items[i].wanted |= keeps->rules_count == 0;
}

/* R12.2 */
static size_t judged(const struct sim *sim, const struct sim_job *job, struct item *items)
{
    size_t count = committed(sim, job->name, items);

    if (count < ITEMS_MAX)
        judge(&job->keeps, items, count);
    return count;
}

static bool is_wanted_of(const struct item *items, size_t count, uint64_t round)
{
    if (count == ITEMS_MAX)
        return true;
    for (size_t i = 0; i < count; i++)
        if (items[i].round == round)
            return items[i].wanted;
    return false;
}

static bool policies_want(struct sim *sim, const struct sim_job *job, uint64_t round)
{
    static struct item items[ITEMS_MAX];

    return is_wanted_of(items, judged(sim, job, items), round);
}

/* --- rows ------------------------------------------------------------------------------------- */

bool check_is_imported(const struct sim *sim, const char *job, uint64_t round)
{
    const struct record_round *row = disk_round(sim, job, round);

    return row != NULL && strcmp(row->reason, FOUND_ON_DISK) == 0;
}

static const struct record_checkpoint *newest_whole(const struct sim *sim, const char *job)
{
    const struct sim_table *table = &sim->disk.tables[RECORD_CHECKPOINT];
    const struct record_checkpoint *newest = NULL;

    for (size_t i = 0; i < table->count; i++) { /* an imported row of an earlier round comes late */
        const struct record_checkpoint *row = &table->rows[i].record.u.checkpoint;
        if ((newest == NULL || row->step > newest->step ||
             (row->step == newest->step && row->round > newest->round)) &&
            row->path[0] != '\0' && strcmp(row->job, job) == 0 && disk_counts(sim, row))
            newest = row;
    }
    return newest;
}

static bool is_pinned(const struct sim *sim, const char *job, uint64_t checkpoint)
{
    const struct sim_table *pins = &sim->disk.tables[RECORD_PIN];

    for (size_t i = 0; i < pins->count; i++)
        if (pins->rows[i].record.u.pin.checkpoint == checkpoint &&
            strcmp(pins->rows[i].record.u.pin.job, job) == 0)
            return true;
    return false;
}

/* A live process of this generation that has not restored yet. */
static const struct record_node *who_restores(const struct sim *sim, const char *job,
                                              uint64_t generation)
{
    const struct sim_table *nodes = &sim->disk.tables[RECORD_NODE];

    for (size_t i = 0; i < nodes->count; i++) {
        const struct record_node *node = &nodes->rows[i].record.u.node;
        if (node->generation == generation && node->state == NODE_JOINED &&
            strcmp(node->job, job) == 0)
            return node;
    }
    return NULL;
}

static const struct sim_drop *dropped(const struct sim *sim, unsigned job, uint64_t number,
                                      bool newest)
{
    for (size_t i = 0; i < sim->drops_count; i++)
        if (sim->drops[i].job == job && sim->drops[i].number == number &&
            (sim->drops[i].newest || !newest))
            return &sim->drops[i];
    return NULL;
}

/* --- the decision ----------------------------------------------------------------------------- */

static void check_readers(struct sim *sim, const struct sim_job *job,
                          const struct record_checkpoint *row)
{
    if (is_pinned(sim, job->name, row->round))
        sim_broken(sim, "I11", "checkpoint %llu is to be deleted, and it is pinned", U(row->round));
    for (size_t i = 0; i < sim->readers_count; i++) {
        const struct sim_reader *reader = &sim->readers[i];
        bool told_so =
            reader->starts == sim->broker->starts || reader->wall_offset_ms == sim->wall_offset_ms;
        if (reader->job == job->index && reader->number == row->round && told_so &&
            reader->held_until_us > sim->now_us + 2000)
            sim_broken(sim, "I11",
                       "checkpoint %llu is to be deleted, and %s was told that it is held for "
                       "%lld ms more",
                       U(row->round), reader->id,
                       (long long)(reader->held_until_us - sim->now_us) / 1000);
    }
}

/* R12.3 */
static void check_restorers(struct sim *sim, const struct record_checkpoint *row)
{
    const struct record_job *job = disk_job(sim, row->job);
    const struct record_generation *gen = disk_generation(sim, row->job, job->generation);

    if (gen->state == GENERATION_JOINING)
        sim_broken(sim, "I11", "checkpoint %llu is to be deleted while generation %llu joins",
                   U(row->round), U(gen->generation));
    const struct record_node *node = who_restores(sim, row->job, gen->generation);
    if (node != NULL && gen->resume_checkpoint == row->round && gen->state == GENERATION_RUNNING)
        sim_broken(sim, "I11",
                   "checkpoint %llu is to be deleted, and the %s has not restored it yet",
                   U(row->round), wire_role_name(node->role));
}

void check_deletion(struct sim *sim, const struct record_checkpoint *row)
{
    const struct sim_job *job = sim_job_named(sim, row->job);
    const struct record_checkpoint *newest = disk_newest(sim, row->job);
    const struct record_checkpoint *whole = newest_whole(sim, row->job);
    const struct record_job *current = disk_job(sim, row->job);
    bool asked = dropped(sim, job->index, row->round, false) != NULL;

    sim->stats->deletions++;
    sim->stats->deletions_asked += asked;
    if (!sim->keeps)
        sim_broken(sim, "I11", "checkpoint %llu is to be deleted, and nobody told policies",
                   U(row->round));
    check_readers(sim, job, row);
    check_restorers(sim, row);
    if (newest != NULL && newest->round == row->round &&
        job->keeps.final_generation != current->generation &&
        dropped(sim, job->index, row->round, true) == NULL)
        sim_broken(sim, "I11", "checkpoint %llu is to be deleted, and it is the newest",
                   U(row->round));
    if (whole != NULL && whole->round == row->round && newest->round != row->round)
        sim_broken(sim, "I11",
                   "checkpoint %llu is to be deleted, and it is the newest that is whole",
                   U(row->round));
    if (!asked && policies_want(sim, job, row->round))
        sim_broken(sim, "keep", "checkpoint %llu (step %lld) is to be deleted, and '%s' keeps it",
                   U(row->round), (long long)row->step, job->keeps.keep_text);
}

/* R12.5 */
static bool is_made_up_for(const struct sim *sim, const struct sim_job *job,
                           const struct record_checkpoint *row, bool closing)
{
    const struct record_checkpoint *whole = newest_whole(sim, job->name);

    return whole != NULL && whole->generation > row->generation &&
           (closing || whole->step >= row->step);
}

void check_left_behind(struct sim *sim, const struct record_checkpoint *row)
{
    const struct sim_job *job = sim_job_named(sim, row->job);
    bool closing = job->keeps.final_generation == disk_job(sim, row->job)->generation;

    sim->stats->deletions++;
    if (!sim->keeps || job->keeps.rules_count == 0)
        sim_broken(sim, "I11", "checkpoint %llu is to be deleted, and the job keeps all",
                   U(row->round));
    check_readers(sim, job, row);
    check_restorers(sim, row);
    if (!is_made_up_for(sim, job, row, closing))
        sim_broken(sim, "I11",
                   "checkpoint %llu (step %lld) was given up and is to be deleted, and no later "
                   "launch has saved as far",
                   U(row->round), (long long)row->step);
}

void check_deleted(struct sim *sim, const struct record_checkpoint *row)
{
    const struct sim_job *job = sim_job_named(sim, row->job);

    if (!is_of_lost_history(job, row->generation) &&
        !fs_dir(sim, job->index, row->generation, row->round)->out)
        sim_broken(sim, "I11", "checkpoint %llu is called deleted, and it is there", U(row->round));
}

/* --- what is said and done -------------------------------------------------------------------- */

void check_delete_sent(struct sim *sim, const struct wire_msg *message)
{
    const struct wire_delete *told = &message->u.delete;
    const struct record_checkpoint *row = disk_checkpoint(sim, message->down.job, told->checkpoint);
    const struct record_checkpoint *newest = disk_newest(sim, message->down.job);
    const struct record_checkpoint *whole = newest_whole(sim, message->down.job);

    if (row == NULL || row->state != CHECKPOINT_DELETING ||
        row->generation != told->round_generation)
        sim_broken(sim, "I3", "DELETE of checkpoint %llu is sent, and that is not written",
                   U(told->checkpoint));
    if (newest != NULL && newest->path[0] == '\0' && (whole == NULL || whole->step < told->step))
        sim_broken(sim, "I11",
                   "DELETE of checkpoint %llu is sent, and nothing as new has its manifest",
                   U(told->checkpoint));
}

/* Its launch is over, and nothing is there to be restored for it. */
static bool tells_the_end(const struct wire_snapshot *told)
{
    return (told->generation_state == GENERATION_ENDING ||
            told->generation_state == GENERATION_ENDED) &&
           told->resume_path[0] == '\0';
}

/* Who is about to restore is not told of what is deleted. */
void check_resume_sent(struct sim *sim, const struct wire_msg *message, const struct sim_proc *to)
{
    const struct record_node *node = disk_node_of(sim, to);
    const struct record_checkpoint *row =
        disk_checkpoint(sim, message->down.job, message->u.snapshot.resume_checkpoint);

    if (node == NULL || node->state != NODE_JOINED || row == NULL ||
        tells_the_end(&message->u.snapshot))
        return;
    if (row->state == CHECKPOINT_DELETING || row->state == CHECKPOINT_DELETED)
        sim_broken(sim, "I11", "rank %u is told to resume from checkpoint %llu, which is %s",
                   to->rank, U(row->round), wire_checkpoint_state_name(row->state));
}

static void check_nobody_reads(struct sim *sim, const struct sim_job *job,
                               const struct sim_dir *dir)
{
    for (size_t i = 0; i < sim->procs_count; i++) {
        const struct sim_proc *proc = sim->procs[i];
        const struct record_node *node = proc->alive && proc->job == job->index &&
                                                 proc->state == THREAD_RESTORING &&
                                                 proc->restoring == dir->round
                                             ? disk_node_of(sim, proc)
                                             : NULL;
        if (node != NULL && node->state == NODE_JOINED &&
            node->generation == disk_job(sim, job->name)->generation && !proc->lost_history)
            sim_broken(sim, "I11", "checkpoint %llu is taken away while rank %u restores it",
                       U(dir->round), proc->rank);
    }
}

/* Its program wanted a newer one deleted although that was the newest: then nothing is left to
 * protect this. */
static bool newer_was_given_up(const struct sim *sim, const struct sim_job *job, int64_t step)
{
    const struct sim_table *table = &sim->disk.tables[RECORD_CHECKPOINT];

    for (size_t i = 0; i < table->count; i++) {
        const struct record_checkpoint *row = &table->rows[i].record.u.checkpoint;
        if (strcmp(row->job, job->name) == 0 && row->step > step && row->path[0] != '\0' &&
            (row->state == CHECKPOINT_DELETING || row->state == CHECKPOINT_DELETED) &&
            dropped(sim, job->index, row->round, true) != NULL)
            return true;
    }
    return false;
}

/* A launch left something behind: the newest may be older than what goes. */
static bool went_back(const struct sim *sim, const struct sim_job *job)
{
    const struct sim_table *table = &sim->disk.tables[RECORD_CHECKPOINT];

    for (size_t i = 0; i < table->count; i++) {
        struct record_checkpoint row = table->rows[i].record.u.checkpoint;
        row.state = CHECKPOINT_COMMITTED;
        if (strcmp(row.job, job->name) == 0 && !disk_counts(sim, &row))
            return true;
    }
    return false;
}

void check_taken_out(struct sim *sim, const struct sim_job *job, const struct sim_dir *dir)
{
    const struct record_checkpoint *row = disk_checkpoint(sim, job->name, dir->round);
    const struct record_checkpoint *whole = newest_whole(sim, job->name);
    bool asked = row != NULL && newer_was_given_up(sim, job, row->step);

    if (is_of_lost_history(job, dir->generation))
        return; /* by the word of a broker that knew more */
    if (job->keeps.final_generation == disk_job(sim, job->name)->generation ||
        dropped(sim, job->index, dir->round, true) != NULL)
        asked = true; /* the job needs it no more, whatever was saved since */
    if (row == NULL || (row->state != CHECKPOINT_DELETING && row->state != CHECKPOINT_DELETED))
        sim_broken(sim, "I11", "checkpoint %llu is taken away, and it is %s", U(dir->round),
                   row ? wire_checkpoint_state_name(row->state) : "nowhere");
    check_nobody_reads(sim, job, dir);
    if (!asked && !went_back(sim, job) && disk_newest(sim, job->name) != NULL && row != NULL &&
        (whole == NULL || whole->step < row->step) && disk_newest(sim, job->name)->step > row->step)
        sim_broken(sim, "I11", "checkpoint %llu is taken away, and nothing as new has its manifest",
                   U(dir->round));
}

/* What has a final name is whole. */
void check_listing(struct sim *sim, const struct sim_job *job)
{
    for (size_t i = 0; i < sim->dirs_count && sim->keeps; i++) {
        const struct sim_dir *dir = &sim->dirs[i];
        if (dir->job != job->index || dir->path[0] == '\0')
            continue;
        const struct record_checkpoint *row = disk_checkpoint(sim, job->name, dir->round);
        if (row != NULL && row->state == CHECKPOINT_DELETED && row->generation == dir->generation &&
            !is_of_lost_history(job, dir->generation))
            sim_broken(sim, "I11", "'%s' lists, and was called deleted", dir->path);
        for (size_t s = 0; s < sim->shards_count; s++) {
            const struct sim_shard *shard = &sim->shards[s];
            const struct record_participant *part =
                shard->job == dir->job && shard->round == dir->round &&
                        shard->generation == dir->generation
                    ? disk_member(sim, job->name, shard->round, shard->incarnation)
                    : NULL;
            if (part != NULL && part->writer && shard->deleted &&
                !is_of_lost_history(job, dir->generation))
                sim_broken(sim, "I11", "'%s' lists, and rank %llu's shard is not in it", dir->path,
                           U(shard->rank));
        }
    }
}

/* --- in the end ------------------------------------------------------------------------------- */

/* What is the same for each checkpoint of a job: it is asked for all of them in each second. */
struct standing {
    const struct record_checkpoint *newest, *whole;
    bool restores; /* somebody */
    struct item items[ITEMS_MAX];
    size_t count;
};

static bool is_held(struct sim *sim, const struct sim_job *job, const struct record_checkpoint *row,
                    const struct standing *at)
{
    return row == at->newest || row == at->whole || at->restores || row->path[0] == '\0' ||
           is_pinned(sim, job->name, row->round);
}

/* To be deleted, and nothing is in its way. */
static bool is_to_go(struct sim *sim, const struct sim_job *job,
                     const struct record_checkpoint *row, const struct standing *at)
{
    if (row->state == CHECKPOINT_DELETING)
        return at->newest == NULL || at->newest->path[0] != '\0';
    if (row->state == CHECKPOINT_COMMITTED && !disk_counts(sim, row))
        return job->keeps.rules_count > 0 && is_made_up_for(sim, job, row, false) &&
               !is_pinned(sim, job->name, row->round) && !at->restores;
    return row->state == CHECKPOINT_COMMITTED && !is_held(sim, job, row, at) &&
           !is_wanted_of(at->items, at->count, row->round);
}

/* The round of the last one that is to go; *ret_still: the one that was late is. */
static uint64_t find_to_go(struct sim *sim, const struct sim_job *job,
                           const struct record_generation *gen, bool *ret_still)
{
    static struct standing at;
    const struct sim_table *table = &sim->disk.tables[RECORD_CHECKPOINT];
    uint64_t found = 0;

    at.newest = disk_newest(sim, job->name);
    at.whole = newest_whole(sim, job->name);
    at.restores = who_restores(sim, job->name, gen->generation) != NULL;
    at.count = judged(sim, job, at.items);
    for (size_t i = 0; i < table->count; i++) {
        const struct record_checkpoint *checkpoint = &table->rows[i].record.u.checkpoint;
        if (strcmp(checkpoint->job, job->name) != 0 || !is_to_go(sim, job, checkpoint, &at))
            continue;
        *ret_still |= checkpoint->round == job->keeps.late;
        found = checkpoint->round;
    }
    return found;
}

static bool has_policies(const struct sim *sim, const struct record_generation *gen)
{
    const struct sim_table *policies = &sim->disk.tables[RECORD_POLICY];

    for (size_t i = 0; i < policies->count; i++)
        if (policies->rows[i].record.u.policy.generation == gen->generation &&
            strcmp(policies->rows[i].record.u.policy.job, gen->job) == 0)
            return true;
    return false;
}

/* The lowest rank deletes; one that closes begins no deletion, and may wait long for a
 * termination's save. */
static bool hand_closes(const struct sim_job *job)
{
    for (unsigned rank = 0; rank < job->nodes; rank++)
        for (const struct sim_proc *proc = job->procs[rank]; proc != NULL; proc = proc->older)
            if (proc->alive)
                return proc->leaving;
    return false;
}

void check_converges(struct sim *sim, struct sim_job *job)
{
    const struct record_job *row = disk_job(sim, job->name);
    const struct record_generation *gen =
        row != NULL ? disk_generation(sim, job->name, row->generation) : NULL;
    bool runs = sim->keeps && gen != NULL && gen->state == GENERATION_RUNNING &&
                sim->broker->alive && has_policies(sim, gen) && !hand_closes(job);
    bool still = false;
    uint64_t found = runs ? find_to_go(sim, job, gen, &still) : 0;

    if (!still) {
        job->keeps.late = found;
        job->keeps.late_us = sim->now_us;
    } else if (sim->now_us - job->keeps.late_us > LATE_US)
        sim_broken(sim, "deletion", "checkpoint %llu of %s is to go for %lld s, and is there",
                   U(job->keeps.late), job->name,
                   (long long)((sim->now_us - job->keeps.late_us) / 1000000));
}

/* --- saves that the broker decides, imports --------------------------------------------------- */

void check_period(struct sim *sim, const struct record_round *row)
{
    const struct sim_job *job = sim_job_named(sim, row->job);
    const struct sim_keeps *keeps = &job->keeps;
    const struct record_generation *gen = disk_generation(sim, row->job, row->generation);

    if (!sim->keeps)
        sim_broken(sim, "period", "round %llu was asked for by no policy", U(row->round));
    if (keeps->interval_ms == 0 || sim->wall_offset_ms != 0 || gen == NULL)
        return;
    if (row->opened_unix_ms - keeps->save_begun_unix_ms < keeps->interval_ms)
        sim_broken(sim, "period", "round %llu is opened %lld ms after the last save, '%s'",
                   U(row->round), (long long)(row->opened_unix_ms - keeps->save_begun_unix_ms),
                   keeps->save_text);
}

void check_imported(struct sim *sim, const struct sim_job *job, const struct sim_dir *dir)
{
    const struct record_checkpoint *row = disk_checkpoint(sim, job->name, dir->round);

    if (row == NULL || row->generation != dir->generation || row->step != dir->step ||
        row->state != CHECKPOINT_COMMITTED)
        sim_broken(sim, "I12", "checkpoint %llu was imported, and it is not there", U(dir->round));
}
