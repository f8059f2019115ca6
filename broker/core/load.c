/* load - the core's state from the rows of the database, before INPUT_START.
 * Trusts nothing that could crash it: a row whose owner is unknown is left out. */
#include "broker/core/dispatch.h"

#include <stdio.h>

static void load_job(struct core *core, const struct record_job *row)
{
    struct job *job;

    asleep_remove(core, row->job);
    job = job_create(core, row->job);
    if (job == NULL)
        return;
    job->state_unix_ms = row->state_unix_ms;
    job->seq = row->seq;
    job->round = row->round;
    job->gen.generation = row->generation;
    job->gen.state = row->state;
    job->created_unix_ms = row->created_unix_ms;
    snprintf(job->save_now_id, sizeof job->save_now_id, "%s", row->save_now_id);
    job->save_now_round = row->save_now_round;
    job->step_p95_ms = row->step_p95_ms;
    plan_saves_read(&job->saves, row->saves);
    lineage_read(&job->lineage, row->lineage);
    job->save_p95_ms = (uint64_t)plan_saves_p95(&job->saves);
    snprintf(job->plan_row.text, sizeof job->plan_row.text, "%s", row->plan);
    job->plan_row.freeze_unix_ms = row->freeze_unix_ms;
    job->plan = job->plan_row;
    job->want_row = (struct want){row->want, row->want_attempt, row->want_aborted_steps};
    if (row->want == CAUSE_TERMINATION || row->want == CAUSE_OPERATOR || row->want == CAUSE_NOTICE)
        job->want = job->want_row;
}

static void load_generation(struct core *core, const struct record_generation *row)
{
    struct job *job = job_find(core, row->job);

    if (job == NULL || row->generation != job->gen.generation || row->world_size > WORLD_SIZE_MAX)
        return;
    struct generation *gen = &job->gen;
    gen->state = row->state;
    gen->world_size = row->world_size;
    gen->layout = row->layout;
    snprintf(gen->checkpoint_dir, sizeof gen->checkpoint_dir, "%s", row->checkpoint_dir);
    gen->resume_checkpoint = row->resume_checkpoint;
    gen->resume_step = row->resume_step;
    gen->resume_ready = row->resume_ready;
    gen->fallback = row->fallback;
    gen->end_status = row->end_status;
    snprintf(gen->end_text, sizeof gen->end_text, "%s", row->end_text);
    gen->error_rank = row->error_rank;
    gen->error_code = row->error_code;
    gen->error_text = row->error_rank >= 0 ? strdup(row->error_text) : NULL;
    MUST(row->error_rank < 0 || gen->error_text != NULL);
    gen->opened_unix_ms = row->opened_unix_ms;
    gen->started_unix_ms = row->started_unix_ms;
    gen->ended_unix_ms = row->ended_unix_ms;
    gen->ending_unix_ms = row->ending_unix_ms;
    job->trainers = calloc(gen->world_size + 1, sizeof(struct peer *));
    MUST(job->trainers != NULL);
}

static void load_launch(struct core *core, const struct record_launch *row)
{
    struct job *job = job_find(core, row->job);

    if (job != NULL)
        registry_load_launch(job, row);
}

static void load_node(struct core *core, const struct record_node *row)
{
    struct job *job = job_find(core, row->job);

    if (job == NULL || row->generation != job->gen.generation || job->trainers == NULL)
        return;
    if (role_is_trainer(row->role) && row->rank >= job->gen.world_size)
        return;
    struct peer *peer = peer_create(core, job, row->incarnation);
    if (peer == NULL)
        return; /* as many as may be: whoever is left out is told to leave */
    peer->role = row->role;
    peer->rank = row->rank;
    snprintf(peer->host, sizeof peer->host, "%s", row->host);
    peer->pid = row->pid;
    peer->state = row->state;
    peer->last_request = row->last_request;
    peer->last_code = row->last_code;
    peer->last_value = row->last_value;
    peer->leave_why = row->leave_why;
    peer->failed = row->leave_why == LEAVE_FAILED;
    peer->exit_code = row->exit_code;
    peer->joined_unix_ms = row->joined_unix_ms;
    peer->ended_unix_ms = row->ended_unix_ms;
    peer->begun = peer->done = job->gen.resume_step;
    peer->reads_any = !role_is_trainer(peer->role);
    if (role_is_trainer(peer->role) && peer_is_live(peer))
        job->trainers[peer->rank] = peer;
}

static void load_progress(struct core *core, const struct record_progress *row)
{
    struct peer *peer = peer_find(core, row->incarnation);

    if (peer == NULL || strcmp(peer->job->name, row->job) != 0)
        return;
    peer->begun = row->begun;
    peer->done = row->done;
    peer->phase = row->phase;
    peer->step_p95_ms = row->step_p95_ms;
    peer->heard_unix_ms = row->heard_unix_ms;
    strncpy(peer->sources, row->sources, sizeof peer->sources - 1);
}

static void load_notice(struct core *core, const struct record_notice *row)
{
    struct job *job = job_find(core, row->job);
    struct notice *notice;

    if (job == NULL || row->generation != job->gen.generation)
        return;
    if (!notice_make_room(job, false) && row->state == RECORD_NOTICE_CANCELLED)
        return;
    notice = calloc(1, sizeof *notice);
    MUST(notice != NULL);
    snprintf(notice->id, sizeof notice->id, "%s", row->id);
    snprintf(notice->source, sizeof notice->source, "%s", row->source);
    notice->generation = row->generation;
    notice->rank = row->rank;
    notice->incarnation = row->incarnation;
    notice->of_evaluator = notice_is_of_evaluator(core, row->incarnation);
    notice->kind = row->kind;
    notice->state = row->state;
    notice->cancellable = row->cancellable;
    notice->left_ms = row->left_ms;
    notice->deadline_boot_ms = row->other_boot ? 0 : row->deadline_boot_ms;
    notice->text = strdup(row->text);
    MUST(notice->text != NULL);
    notice->round = row->round;
    notice->received_unix_ms = row->received_unix_ms;
    notice->flags = row->flags;
    notice->next = job->notices;
    job->notices = notice;
}

static void load_fill_round(struct job *job, struct round *round, const struct record_round *row)
{
    memset(round, 0, sizeof *round);
    round->used = true;
    round->round = row->round;
    round->generation = row->generation;
    round->attempt = row->attempt;
    round->cause = row->cause;
    round->state = row->state;
    round->step = row->step;
    round->aborted_steps = row->aborted_steps;
    round->culprit_rank = row->culprit_rank;
    round->reason_code = row->reason_code;
    snprintf(round->reason, sizeof round->reason, "%s", row->reason);
    round->final = row->final;
    snprintf(round->plan, sizeof round->plan, "%s", row->plan);
    round->deadline_boot_ms = row->other_boot ? 0 : row->deadline_boot_ms;
    round->opened_boot_ms = row->other_boot ? BOOT_UNKNOWN : row->opened_boot_ms;
    round->opened_unix_ms = row->opened_unix_ms;
    round->decided_unix_ms = row->decided_unix_ms;
    round->captured_unix_ms = row->captured_unix_ms;
    round->ended_unix_ms = row->ended_unix_ms;
    round->margin_ms = row->margin_ms;
    if (round->generation == job->gen.generation && round->cause == CAUSE_POLICY &&
        round->step > job->policy_step)
        job->policy_step = round->step;
}

static void load_round(struct core *core, const struct record_round *row)
{
    struct job *job = job_find(core, row->job);
    bool active =
        row->state == ROUND_FREEZING || row->state == ROUND_DECIDED || row->state == ROUND_WRITING;

    if (job == NULL)
        return;
    save_policy_load_round(job, row);
    import_load_round(job, row);
    if (!active) {
        struct round ended;
        load_fill_round(job, &ended, row);
        round_remember(job, &ended);
        return;
    }
    for (size_t i = 0; i < ROUNDS_ACTIVE_MAX; i++) {
        if (job->rounds[i].used)
            continue;
        load_fill_round(job, &job->rounds[i], row);
        return;
    }
}

/* A rank's report, or its arrival at S, may be newer than the progress, which is only written now
 * and then. */
static void load_stands_at(struct peer *peer, int64_t begun, int64_t done)
{
    if (peer == NULL || peer->done >= done)
        return;
    peer->begun = begun;
    peer->done = done;
}

static void load_participant(struct core *core, const struct record_participant *row)
{
    struct job *job = job_find(core, row->job);
    struct round *round = job ? round_find(job, row->round) : NULL;
    struct participant *parts;

    if (round == NULL || round->count >= WORLD_SIZE_MAX)
        return;
    parts = realloc(round->parts, (round->count + 1) * sizeof *parts);
    MUST(parts != NULL);
    round->parts = parts;
    struct peer *peer = peer_find(core, row->incarnation);
    parts[round->count++] =
        (struct participant){.peer = peer != NULL && peer->job == job ? peer : NULL,
                             .rank = row->rank,
                             .incarnation = row->incarnation,
                             .writer = row->writer,
                             .begun = row->begun,
                             .done = row->done,
                             .reported_ms = row->reported_ms,
                             .at_step_ms = row->at_step_ms,
                             .captured_ms = row->captured_ms,
                             .saved_ms = row->saved_ms,
                             .save_ms = row->save_ms};
    load_stands_at(parts[round->count - 1].peer, row->begun, row->done);
    if (row->at_step_ms >= 0)
        load_stands_at(parts[round->count - 1].peer, round->step, round->step);
}

static void load_checkpoint(struct core *core, const struct record_checkpoint *row)
{
    struct job *job = job_find(core, row->job);

    if (job == NULL)
        return;
    if (row->state == CHECKPOINT_COMMITTED) {
        registry_take(job, row);
        return;
    }
    if (row->state == CHECKPOINT_DELETING) {
        keep_load(core, &(struct record){.kind = RECORD_CHECKPOINT, .u.checkpoint = *row});
        return;
    }
    struct round *round = round_find(job, row->round);
    if (round == NULL)
        return;
    round->checkpoint = *row;
    round->checkpoint.job = job->name;
    round->checkpoint.path = "";
    round->checkpoint.trash = "";
    free(round->metrics);
    round->metrics = strdup(row->metrics);
    MUST(round->metrics != NULL);
    round->checkpoint.metrics = round->metrics;
}

static void load_file(struct core *core, const struct record_file *row)
{
    struct job *job = job_find(core, row->job);
    struct round *round = job ? round_find(job, row->round) : NULL;

    for (size_t i = 0; round != NULL && i < round->count; i++)
        if (round->parts[i].rank == row->rank)
            round->parts[i].files_taken++;
}

void core_load(struct core *core, const struct record *row)
{
    switch (row->kind) {
    case RECORD_BROKER:
        core->epoch = row->u.broker.epoch;
        core->database = row->u.broker.database;
        core->older = row->u.broker.older;
        break;
    case RECORD_JOB:
        load_job(core, &row->u.job);
        break;
    case RECORD_JOB_ASLEEP:
        asleep_add(core, &row->u.job_asleep);
        break;
    case RECORD_GENERATION:
        load_generation(core, &row->u.generation);
        break;
    case RECORD_LAUNCH:
        load_launch(core, &row->u.launch);
        break;
    case RECORD_HOST:
        hosts_load(core, &row->u.host);
        break;
    case RECORD_NODE:
        load_node(core, &row->u.node);
        break;
    case RECORD_PROGRESS:
        load_progress(core, &row->u.progress);
        break;
    case RECORD_NOTICE:
        load_notice(core, &row->u.notice);
        break;
    case RECORD_ROUND:
        load_round(core, &row->u.round);
        break;
    case RECORD_PARTICIPANT:
        load_participant(core, &row->u.participant);
        break;
    case RECORD_CHECKPOINT:
        load_checkpoint(core, &row->u.checkpoint);
        break;
    case RECORD_FILE:
        load_file(core, &row->u.file);
        break;
    case RECORD_POLICY:
        keep_load(core, row);
        break;
    case RECORD_PIN:
        pins_load(core, &row->u.pin);
        break;
    case RECORD_HISTORY:
        save_policy_load(core, &row->u.history);
        break;
    default:
        tasks_load(core, row);
        break;
    }
}
