/* sim_disk - the broker's database as rows in memory, with the contract of broker/store: a batch is
 * written whole or not at all, what was written survives any crash, rows come back in core.h's
 * order. Foreign keys are those of schema/sql. */
#include "schema/rules/counts.h"
#include "tests/sim/sim_world.h"
#include "tests/support/record_copy.h"

#include <string.h>

static bool same(const char *a, const char *b)
{
    return a == b || strcmp(a, b) == 0;
}

/* --- lookups for the checker ------------------------------------------------------------------ */

#define LOOKUP(KIND, member, ...)                                          \
    struct record key = {.kind = KIND, .u.member = {__VA_ARGS__}};         \
    const struct sim_row *row = table_find(&sim->disk.tables[KIND], &key); \
    return row ? &row->record.u.member : NULL

const struct record_job *disk_job(const struct sim *sim, const char *job)
{
    LOOKUP(RECORD_JOB, job, .job = job);
}

const struct record_generation *disk_generation(const struct sim *sim, const char *job,
                                                uint64_t generation)
{
    LOOKUP(RECORD_GENERATION, generation, .job = job, .generation = generation);
}

const struct record_round *disk_round(const struct sim *sim, const char *job, uint64_t round)
{
    LOOKUP(RECORD_ROUND, round, .job = job, .round = round);
}

const struct record_node *disk_node(const struct sim *sim, const char *job, uint64_t incarnation)
{
    LOOKUP(RECORD_NODE, node, .job = job, .incarnation = incarnation);
}

const struct record_node *disk_node_of(const struct sim *sim, const struct sim_proc *proc)
{
    return disk_node(sim, sim->jobs[proc->job].name, proc->incarnation);
}

const struct record_checkpoint *disk_checkpoint(const struct sim *sim, const char *job,
                                                uint64_t round)
{
    LOOKUP(RECORD_CHECKPOINT, checkpoint, .job = job, .round = round);
}

/* Of whatever generation: here no id is used twice. */
const struct record_notice *disk_notice(const struct sim *sim, const char *job, const char *id)
{
    const struct sim_table *table = &sim->disk.tables[RECORD_NOTICE];

    for (size_t i = 0; i < table->count; i++) {
        const struct record_notice *row = &table->rows[i].record.u.notice;
        if (same(row->id, id) && same(row->job, job))
            return row;
    }
    return NULL;
}

const struct sim_row *disk_event(const struct sim *sim, const char *job, uint64_t seq)
{
    struct record key = {.kind = RECORD_EVENT, .u.event = {.job = job, .seq = seq}};

    return table_find(&sim->disk.tables[RECORD_EVENT], &key);
}

const struct record_participant *disk_member(const struct sim *sim, const char *job, uint64_t round,
                                             uint64_t incarnation)
{
    const struct sim_table *table = &sim->disk.tables[RECORD_PARTICIPANT];

    for (size_t i = table->count; i-- > 0;) {
        const struct record_participant *part = &table->rows[i].record.u.participant;
        if (part->round == round && part->incarnation == incarnation && same(part->job, job))
            return part;
    }
    return NULL;
}

/* The freeze of a round that is undecided names who is asked, or who is not. */
static const struct wire_event *freeze_of(const struct sim *sim, const char *job, uint64_t round)
{
    const struct sim_table *table = &sim->disk.tables[RECORD_EVENT];

    for (size_t i = table->count; i-- > 0;) {
        const struct record_event *row = &table->rows[i].record.u.event;
        if (row->body.kind == EVENT_FREEZE && row->body.round == round && same(row->job, job))
            return &row->body;
    }
    return NULL;
}

bool disk_asks(const struct sim *sim, const char *job, const struct record_round *round,
               const struct sim_proc *proc)
{
    const struct wire_event *freeze = freeze_of(sim, job, round->round);
    bool named = false;

    if (round->state != ROUND_FREEZING)
        return disk_member(sim, job, round->round, proc->incarnation) != NULL;
    if (freeze == NULL || !role_is_trainer(proc->role) ||
        proc->view.generation != round->generation)
        return false;
    for (size_t i = 0; i < freeze->members.count; i++)
        named |= freeze->members.items[i].incarnation == proc->incarnation;
    return named != ((freeze->flags & EVENT_FLAG_OTHERS) != 0);
}

bool disk_has_shard(const struct sim *sim, const char *job, uint64_t round, uint64_t incarnation)
{
    const struct sim_table *table = &sim->disk.tables[RECORD_SHARD];

    for (size_t i = 0; i < table->count; i++)
        if (table->rows[i].record.u.shard.round == round &&
            table->rows[i].record.u.shard.incarnation == incarnation &&
            same(table->rows[i].record.u.shard.job, job))
            return true;
    return false;
}

/* Asked of the rows of launches: the core has its own list of them. */
bool disk_counts(const struct sim *sim, const struct record_checkpoint *row)
{
    const struct sim_table *table = &sim->disk.tables[RECORD_LAUNCH];
    bool counts = row->state == CHECKPOINT_COMMITTED;

    for (size_t i = 0; i < table->count && counts; i++) {
        const struct record_launch *launch = &table->rows[i].record.u.launch;
        const struct counts_launch one = {launch->generation, launch->began_step};
        counts = !same(launch->job, row->job) || counts_among(&one, 1, row->generation, row->step);
    }
    return counts;
}

/* Greatest step among those that count; of one step the latest round: an import's rows come in any
 * order. The newest is among the last rows, and a world that saves a thousand times asks often. */
const struct record_checkpoint *disk_newest(const struct sim *sim, const char *job)
{
    const struct sim_table *table = &sim->disk.tables[RECORD_CHECKPOINT];
    const struct record_checkpoint *newest = NULL;

    for (size_t i = table->count; i-- > 0;) {
        const struct record_checkpoint *row = &table->rows[i].record.u.checkpoint;
        if ((newest == NULL || row->step > newest->step ||
             (row->step == newest->step && row->round > newest->round)) &&
            same(row->job, job) && disk_counts(sim, row))
            newest = row;
    }
    return newest;
}

/* --- writing ---------------------------------------------------------------------------------- */

static const char *keep_word(void *sim, const char *text)
{
    return sim_word(sim, text);
}

static void check_foreign_keys(struct sim *sim, const struct record *r)
{
    const char *missing = NULL;

    if (r->kind == RECORD_PARTICIPANT &&
        disk_round(sim, r->u.participant.job, r->u.participant.round) == NULL)
        missing = "participant without its round";
    if (r->kind == RECORD_CHECKPOINT &&
        disk_round(sim, r->u.checkpoint.job, r->u.checkpoint.round) == NULL)
        missing = "checkpoint without its round";
    if (r->kind == RECORD_SHARD && disk_checkpoint(sim, r->u.shard.job, r->u.shard.round) == NULL)
        missing = "shard without its checkpoint";
    if (r->kind == RECORD_FILE && disk_checkpoint(sim, r->u.file.job, r->u.file.round) == NULL)
        missing = "file without its checkpoint";
    if (r->kind == RECORD_CUSTOM &&
        disk_checkpoint(sim, r->u.custom.job, r->u.custom.round) == NULL)
        missing = "custom metadata without its checkpoint";
    if ((r->kind == RECORD_POLICY && disk_job(sim, r->u.policy.job) == NULL) ||
        (r->kind == RECORD_PIN && disk_job(sim, r->u.pin.job) == NULL) ||
        (r->kind == RECORD_LAUNCH && disk_job(sim, r->u.launch.job) == NULL) ||
        (r->kind == RECORD_NODE && disk_job(sim, r->u.node.job) == NULL) ||
        (r->kind == RECORD_GENERATION && disk_job(sim, r->u.generation.job) == NULL) ||
        (r->kind == RECORD_NOTICE && disk_job(sim, r->u.notice.job) == NULL) ||
        (r->kind == RECORD_EVENT && disk_job(sim, r->u.event.job) == NULL))
        missing = "row without its job";
    if (missing != NULL)
        sim_broken(sim, "rows", "a %s is written", missing);
}

static void encode_body(struct sim *sim, struct sim_row *row, const struct wire_event *body)
{
    struct wire_msg message = {.type = WIRE_EVENT, .u.event = *body};

    row->body_size = wire_encode(&message, sim->buffer, sizeof sim->buffer);
    row->body = arena_alloc(&sim->arena, row->body_size + 1);
    memcpy(row->body, sim->buffer, row->body_size);
    if (row->body_size == 0)
        sim_broken(sim, "wire", "event %llu cannot be encoded", (unsigned long long)body->seq);
}

static void unpin(struct sim *sim, const struct record *record)
{
    struct sim_table *table = &sim->disk.tables[RECORD_PIN];
    const struct record key = {.kind = RECORD_PIN, .u.pin = record->u.pin};
    struct sim_row *row = table_find(table, &key);

    if (row != NULL)
        table_remove(table, row);
}

static void shards_gone(struct sim *sim, const struct record_shards_gone *gone)
{
    struct sim_table *shards = &sim->disk.tables[RECORD_SHARD];
    struct sim_table *files = &sim->disk.tables[RECORD_FILE];

    for (size_t i = shards->count; i-- > 0;)
        if (shards->rows[i].record.u.shard.round == gone->round &&
            same(shards->rows[i].record.u.shard.job, gone->job))
            table_remove(shards, &shards->rows[i]);
    for (size_t i = files->count; i-- > 0;)
        if (files->rows[i].record.u.file.round == gone->round &&
            same(files->rows[i].record.u.file.job, gone->job))
            table_remove(files, &files->rows[i]);
}

/* Of a manifest: as broker/store/store_rows.c, it overwrites only another of a manifest. */
static bool knows_less(const struct sim *sim, const struct record_generation *row)
{
    const struct record_generation *old = disk_generation(sim, row->job, row->generation);

    return old != NULL && same(row->end_text, FOUND_ON_DISK) && !same(old->end_text, FOUND_ON_DISK);
}

/* May a committed checkpoint be another after this? */
static bool is_of_committed(const struct sim *sim, const struct record *record)
{
    const struct record_participant *part = &record->u.participant;
    const struct record_checkpoint *of =
        record->kind == RECORD_PARTICIPANT ? disk_checkpoint(sim, part->job, part->round) : NULL;

    return record->kind == RECORD_CHECKPOINT || (of != NULL && of->state == CHECKPOINT_COMMITTED);
}

static void write_row(struct sim *sim, const struct record *record)
{
    struct record copy;
    struct sim_table *table = &sim->disk.tables[record->kind];
    struct sim_row *row;

    if (record->kind == RECORD_SHARDS_GONE) {
        shards_gone(sim, &record->u.shards_gone);
        return;
    }
    if (record->kind == RECORD_UNPIN) {
        unpin(sim, record);
        return;
    }
    if (record->kind == RECORD_GENERATION && knows_less(sim, &record->u.generation))
        return;
    check_foreign_keys(sim, record);
    check_row(sim, record);
    sim->unchecked_rounds |= record->kind == RECORD_ROUND;
    sim->unchecked |= is_of_committed(sim, record);
    copy = record_copy(record, keep_word, sim);
    row = table_find(table, &copy);
    if (row == NULL)
        row = sim_table_add(table);
    row->record = copy;
    if (sim->options.mutation == MUTANT_LOSES_IMPORT && copy.kind == RECORD_CHECKPOINT &&
        check_is_imported(sim, copy.u.checkpoint.job, copy.u.checkpoint.round))
        row->record.u.checkpoint.state = CHECKPOINT_FAILED;
    row->boot = sim->broker->boot;
    if (copy.kind == RECORD_EVENT)
        encode_body(sim, row, &record->u.event.body);
}

static void write_held(struct sim *sim)
{
    for (size_t i = 0; i < sim->disk.held.count; i++)
        write_row(sim, &sim->disk.held.rows[i].record);
    table_clear(&sim->disk.held);
}

void disk_apply_some(struct sim *sim, const struct actions *batch, size_t count)
{
    bool only_lazy = true;

    for (size_t i = 0; i < count; i++)
        only_lazy &= batch->items[i].kind != ACTION_PERSIST || batch->items[i].lazy;
    if (!only_lazy)
        write_held(sim);
    for (size_t i = 0; i < count; i++) {
        const struct action *action = &batch->items[i];
        if (action->kind != ACTION_PERSIST)
            continue;
        if (only_lazy) { /* held: a crash loses them */
            struct record copy = record_copy(&action->record, keep_word, sim);
            struct sim_row *row = table_find(&sim->disk.held, &copy);
            if (row == NULL)
                row = sim_table_add(&sim->disk.held);
            row->record = copy;
        } else {
            write_row(sim, &action->record);
        }
    }
}

static void prune_journal(struct sim *sim)
{
    struct sim_table *table = &sim->disk.tables[RECORD_EVENT];

    if (sim->store != NULL || sim->journal_max == 0 || table->count <= 2 * sim->journal_max)
        return;
    table_drop_first(table, table->count - (size_t)sim->journal_max);
}

/* What broker/store/store_mark.c writes in the batch's transaction, and tells when that is
 * committed; 0 = nothing. */
static uint64_t ends_of(const struct sim *sim, const struct actions *batch)
{
    uint64_t ends =
        sim->disk.ends > sim->broker->ends_told ? sim->disk.ends : sim->broker->ends_told;
    bool start = false, more = false;

    for (size_t i = 0; i < batch->count; i++) {
        const struct record *row = &batch->items[i].record;
        if (batch->items[i].kind != ACTION_PERSIST)
            continue;
        start |= row->kind == RECORD_BROKER;
        more |= row->kind == RECORD_CHECKPOINT && (row->u.checkpoint.state == CHECKPOINT_FAILED ||
                                                   row->u.checkpoint.state == CHECKPOINT_DELETING ||
                                                   row->u.checkpoint.state == CHECKPOINT_DELETED);
    }
    return start || more ? ends + (more || ends == 0) : 0;
}

enum muster_status disk_apply(struct sim *sim, const struct actions *batch)
{
    uint64_t ends = ends_of(sim, batch);
    enum muster_status status = sim->store != NULL ? sim_store_apply(sim, batch) : MUSTER_OK;

    if (status != MUSTER_OK) { /* it may have come as far as the mark, and died then */
        sim->broker->doubt_ends = ends;
        if (ends > 0 && sim_store_mark(sim) == ends)
            sim->broker->ends_told = ends;
        return status;
    }
    prune_journal(sim);
    undo_keep(sim);
    sim->batches++;
    disk_apply_some(sim, batch, batch->count);
    if (ends > 0)
        sim->disk.ends = ends;
    if (ends > 0 && !sim->options.shared)
        sim->broker->ends_told = ends; /* before anybody hears of the batch */
    check_batch(sim);
    return MUSTER_OK;
}

/* At a start the database turned out to have it. */
void disk_apply_doubt(struct sim *sim)
{
    struct sim_broker *b = sim->broker;
    uint64_t boot = b->boot;

    b->boot = b->doubt_boot;
    disk_apply_some(sim, &b->doubt, b->doubt.count);
    if (b->doubt_ends > 0)
        sim->disk.ends = b->doubt_ends;
    b->boot = boot;
    check_batch(sim);
}

/* --- reading ---------------------------------------------------------------------------------- */

static bool is_active(const struct record_round *round)
{
    return round->state == ROUND_FREEZING || round->state == ROUND_DECIDED ||
           round->state == ROUND_WRITING;
}

static bool round_is_active(const struct sim *sim, const char *job, uint64_t number)
{
    const struct record_round *round = disk_round(sim, job, number);

    return round != NULL && is_active(round);
}

/* Is this row, of a job whose newest generation is `newest`, one that core_load wants? */
static bool wanted(const struct sim *sim, const struct record *r, const char *job, uint64_t newest)
{
    const struct record_node *node;

    switch (r->kind) {
    case RECORD_GENERATION:
        return same(r->u.generation.job, job) && r->u.generation.generation == newest;
    case RECORD_NODE:
        return same(r->u.node.job, job) && r->u.node.generation == newest;
    case RECORD_PROGRESS:
        node = same(r->u.progress.job, job) ? disk_node(sim, job, r->u.progress.incarnation) : NULL;
        return node != NULL && node->generation == newest;
    case RECORD_NOTICE:
        return same(r->u.notice.job, job) && r->u.notice.generation == newest;
    case RECORD_PARTICIPANT:
        return same(r->u.participant.job, job) && round_is_active(sim, job, r->u.participant.round);
    case RECORD_SHARD:
        return same(r->u.shard.job, job) && round_is_active(sim, job, r->u.shard.round);
    case RECORD_FILE:
        return same(r->u.file.job, job) && round_is_active(sim, job, r->u.file.round);
    case RECORD_CHECKPOINT:
        return same(r->u.checkpoint.job, job) && (r->u.checkpoint.state == CHECKPOINT_COMMITTED ||
                                                  r->u.checkpoint.state == CHECKPOINT_WRITING ||
                                                  r->u.checkpoint.state == CHECKPOINT_DELETING);
    case RECORD_LAUNCH:
        return same(r->u.launch.job, job);
    case RECORD_POLICY:
        return same(r->u.policy.job, job);
    case RECORD_PIN:
        return same(r->u.pin.job, job);
    default:
        return false;
    }
}

struct sink { /* of rows */
    sim_row_fn *fn;
    void *arg;
};

static void load_row(struct sim *sim, const struct sink *sink, const struct sim_row *row)
{
    struct record record = row->record;
    bool other = row->boot != sim->broker->boot;

    if (record.kind == RECORD_NOTICE && other) {
        record.u.notice.deadline_boot_ms = 0;
        record.u.notice.other_boot = true;
    }
    if (record.kind == RECORD_ROUND && other) {
        record.u.round.deadline_boot_ms = record.u.round.opened_boot_ms = 0;
        record.u.round.other_boot = true;
    }
    sink->fn(sink->arg, &record);
}

static void load_kind(struct sim *sim, const struct sink *sink, enum record_kind kind,
                      const struct record_job *job)
{
    const struct sim_table *table = &sim->disk.tables[kind];

    for (size_t i = 0; i < table->count; i++)
        if (wanted(sim, &table->rows[i].record, job->job, job->generation))
            load_row(sim, sink, &table->rows[i]);
}

/* Ascending rank whatever the order of writing. */
static void load_participants(struct sim *sim, const struct sink *sink,
                              const struct record_job *job)
{
    const struct sim_table *table = &sim->disk.tables[RECORD_PARTICIPANT];

    for (uint64_t rank = 0; rank < SIM_NODES_MAX; rank++)
        for (size_t i = 0; i < table->count; i++)
            if (table->rows[i].record.u.participant.rank == rank &&
                wanted(sim, &table->rows[i].record, job->job, job->generation))
                load_row(sim, sink, &table->rows[i]);
}

static void load_rounds(struct sim *sim, const struct sink *sink, const struct record_job *job)
{
    const struct sim_table *table = &sim->disk.tables[RECORD_ROUND];
    size_t ended = 0;

    for (size_t i = 0; i < table->count; i++)
        ended += same(table->rows[i].record.u.round.job, job->job) &&
                 !is_active(&table->rows[i].record.u.round);
    for (unsigned active = 0; active < 2; active++) {
        size_t skip = !active && ended > 64 ? ended - 64 : 0;
        for (size_t i = 0; i < table->count; i++) {
            const struct record_round *round = &table->rows[i].record.u.round;
            if (!same(round->job, job->job) || is_active(round) != (active == 1))
                continue;
            if (skip > 0)
                skip--;
            else
                load_row(sim, sink, &table->rows[i]);
        }
    }
}

/* As the view of broker/store/store_rows.c. */
static void load_history(struct sim *sim, const struct sink *sink, const struct record_job *job)
{
    const struct sim_table *table = &sim->disk.tables[RECORD_GENERATION];
    struct record record = {.kind = RECORD_HISTORY, .u.history = {.job = job->job}};
    bool any = false;

    for (size_t i = 0; i < table->count; i++) {
        const struct record_generation *row = &table->rows[i].record.u.generation;
        if (!same(row->job, job->job) || row->started_unix_ms <= 0 || row->ended_unix_ms <= 0)
            continue;
        if (row->ended_unix_ms > row->started_unix_ms)
            record.u.history.run_ms += row->ended_unix_ms - row->started_unix_ms;
        record.u.history.interruptions += row->end_status != MUSTER_OK;
        any = true;
    }
    if (any)
        sink->fn(sink->arg, &record);
}

static void load_job(struct sim *sim, const struct sink *sink, const struct record_job *job)
{
    static const enum record_kind before_rounds[] = {RECORD_GENERATION, RECORD_LAUNCH, RECORD_NODE,
                                                     RECORD_PROGRESS, RECORD_NOTICE};

    for (size_t k = 0; k < sizeof before_rounds / sizeof before_rounds[0]; k++)
        load_kind(sim, sink, before_rounds[k], job);
    load_rounds(sim, sink, job);
    load_participants(sim, sink, job);
    load_kind(sim, sink, RECORD_SHARD, job);
    load_kind(sim, sink, RECORD_FILE, job);
    load_kind(sim, sink, RECORD_CHECKPOINT, job);
    load_kind(sim, sink, RECORD_POLICY, job);
    load_kind(sim, sink, RECORD_PIN, job);
    load_history(sim, sink, job);
}

/* Hands out what core_load wants, in its order. */
void disk_rows(struct sim *sim, sim_row_fn *fn, void *arg)
{
    const struct sink to = {fn, arg}, *sink = &to;
    const struct sim_table *jobs = &sim->disk.tables[RECORD_JOB];
    struct record none = {.kind = RECORD_BROKER};

    table_clear(&sim->disk.held);
    if (sim->disk.tables[RECORD_BROKER].count > 0)
        none = sim->disk.tables[RECORD_BROKER].rows[0].record;
    none.u.broker.older = sim->disk.ends < sim->broker->ends_told;
    fn(arg, &none);
    for (size_t i = 0; i < jobs->count; i++)
        load_row(sim, sink, &jobs->rows[i]);
    for (size_t i = 0; i < jobs->count; i++)
        load_job(sim, sink, &jobs->rows[i].record.u.job);
}

struct reader {
    struct sim *sim;
    struct core *core;
};

/* Must-fail controls: a start that does not read all that is written. False: this row is left out.
 */
static bool misread(struct sim *sim, struct record *row)
{
    switch (sim->options.mutation) {
    case MUTANT_FORGETS_DECISION:
        if (row->kind == RECORD_ROUND && row->u.round.state == ROUND_DECIDED)
            row->u.round = (struct record_round){.job = row->u.round.job,
                                                 .round = row->u.round.round,
                                                 .generation = row->u.round.generation,
                                                 .attempt = row->u.round.attempt,
                                                 .cause = row->u.round.cause,
                                                 .state = ROUND_FREEZING,
                                                 .step = -1,
                                                 .culprit_rank = -1,
                                                 .reason = "",
                                                 .plan = row->u.round.plan,
                                                 .margin_ms = -1};
        return true;
    case MUTANT_FORGETS_ROUND:
        return row->kind != RECORD_ROUND || !is_active(&row->u.round);
    case MUTANT_FORGETS_CHECKPOINT:
        return row->kind != RECORD_CHECKPOINT || disk_newest(sim, row->u.checkpoint.job) == NULL ||
               disk_newest(sim, row->u.checkpoint.job)->round != row->u.checkpoint.round;
    case MUTANT_FORGETS_EPOCH:
        return row->kind != RECORD_BROKER;
    case MUTANT_FORGETS_DELETION:
        if (row->kind == RECORD_CHECKPOINT && row->u.checkpoint.state == CHECKPOINT_DELETING)
            row->u.checkpoint.state = CHECKPOINT_COMMITTED;
        return true;
    case MUTANT_FORGETS_PINS:
        return row->kind != RECORD_PIN;
    default:
        return true;
    }
}

static void give_to_core(void *arg, const struct record *row)
{
    const struct reader *reader = arg;
    struct record copy = *row;

    if (misread(reader->sim, &copy))
        core_load(reader->core, &copy);
}

void disk_load(struct sim *sim, struct core *core)
{
    struct reader reader = {sim, core};

    disk_rows(sim, give_to_core, &reader);
}

static void give_as_it_is(void *core, const struct record *row)
{
    core_load(core, row);
}

void disk_load_job(struct sim *sim, struct core *core, const char *name)
{
    const struct sink sink = {give_as_it_is, core};
    const struct record key = {.kind = RECORD_JOB, .u.job.job = name};
    const struct sim_row *row = table_find(&sim->disk.tables[RECORD_JOB], &key);

    if (row == NULL) {
        sim_broken(sim, "asleep", "job %s has no row", name);
        return;
    }
    load_row(sim, &sink, row);
    load_job(sim, &sink, &row->record.u.job);
}

void disk_free(struct sim *sim)
{
    for (unsigned i = 0; i < RECORD_KIND_COUNT; i++)
        table_free(&sim->disk.tables[i]);
    table_free(&sim->disk.held);
}
