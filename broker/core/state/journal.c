/* journal - what the core decided, as actions: rows, events with their numbers, answers.
 * Owns: the order of actions; the job's seq. An event's row and its publication stand in one batch,
 * so it is in the database before anybody hears it. */
#include "broker/core/state/state.h"

#include "schema/room.h"

#include <stdarg.h>
#include <stdio.h>

struct action *action_add(struct core *core, enum action_kind kind)
{
    struct actions *out = core->out;

    out->items = room_for_one(out->items, out->count, &out->capacity, 64, sizeof *out->items);
    MUST(out->items != NULL);
    struct action *action = &out->items[out->count++];
    memset(action, 0, sizeof *action);
    action->kind = kind;
    action->job = "";
    return action;
}

char *out_text(struct core *core, const char *text)
{
    /* it may end on the wire: never let a cut character keep a whole message from being encoded */
    char *copy = wire_text_fit(&core->out->arena, text, TEXT_MAX);

    MUST(copy != NULL);
    return copy;
}

char *out_long(struct core *core, const char *text)
{
    char *copy = arena_strdup(&core->out->arena, text);

    MUST(copy != NULL);
    return copy;
}

char *out_printf(struct core *core, const char *format, ...)
{
    char text[1024];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return out_text(core, text);
}

static struct record *journal_persist(struct core *core, enum record_kind kind)
{
    struct action *action = action_add(core, ACTION_PERSIST);

    action->record.kind = kind;
    return &action->record;
}

void persist_broker(struct core *core)
{
    journal_persist(core, RECORD_BROKER)->u.broker =
        (struct record_broker){.epoch = core->epoch, .database = core->database};
}

void persist_job(struct core *core, struct job *job)
{
    struct record *row = journal_persist(core, RECORD_JOB);

    char saves[PLAN_SAVES_TEXT];

    job->want_row = job->want;
    job->plan_row = job->plan;
    plan_saves_write(&job->saves, saves);
    row->u.job = (struct record_job){
        .job = out_text(core, job->name),
        .state = job->gen.state,
        .state_unix_ms = job->state_unix_ms,
        .generation = job->gen.generation,
        .seq = job->seq,
        .round = job->round,
        .save_now_id = out_text(core, job->save_now_id),
        .created_unix_ms = job->created_unix_ms,
        .save_now_round = job->save_now_round,
        .want = job->want.cause,
        .want_attempt = job->want.attempt,
        .want_aborted_steps = job->want.aborted_steps,
        .step_p95_ms = job->step_p95_ms,
        .save_p95_ms = plan_saves_p95(&job->saves),
        .saves = out_text(core, saves),
        .freeze_unix_ms = job->plan.freeze_unix_ms,
        .plan = out_text(core, job->plan.text),
        .lineage = out_text(core, job->lineage.text),
    };
}

void persist_want(struct core *core, struct job *job)
{
    const struct want *now = &job->want, *row = &job->want_row;

    if (now->cause != row->cause || now->attempt != row->attempt ||
        now->aborted_steps != row->aborted_steps ||
        job->plan.freeze_unix_ms != job->plan_row.freeze_unix_ms ||
        strcmp(job->plan.text, job->plan_row.text) != 0)
        persist_job(core, job);
}

void persist_generation(struct core *core, const struct job *job)
{
    const struct generation *gen = &job->gen;
    struct record *row = journal_persist(core, RECORD_GENERATION);

    row->u.generation = (struct record_generation){
        .job = out_text(core, job->name),
        .generation = gen->generation,
        .state = gen->state,
        .world_size = gen->world_size,
        .layout = gen->layout,
        .checkpoint_dir = out_text(core, gen->checkpoint_dir),
        .resume_checkpoint = gen->resume_checkpoint,
        .resume_step = gen->resume_step,
        .resume_ready = gen->resume_ready,
        .fallback = gen->fallback,
        .end_status = gen->end_status,
        .end_text = out_text(core, gen->end_text),
        .error_rank = gen->error_rank,
        .error_code = gen->error_code,
        .error_text = out_text(core, gen->error_text),
        .opened_unix_ms = gen->opened_unix_ms,
        .started_unix_ms = gen->started_unix_ms,
        .ended_unix_ms = gen->ended_unix_ms,
        .ending_unix_ms = gen->ending_unix_ms,
    };
}

void persist_peer(struct core *core, const struct peer *peer)
{
    struct record *row = journal_persist(core, RECORD_NODE);

    row->u.node = (struct record_node){
        .job = out_text(core, peer->job->name),
        .incarnation = peer->incarnation,
        .generation = peer->job->gen.generation,
        .role = peer->role,
        .rank = peer->rank,
        .host = out_text(core, peer->host),
        .pid = peer->pid,
        .state = peer->state,
        .last_request = peer->last_request,
        .last_code = peer->last_code,
        .last_value = peer->last_value,
        .leave_why = peer->leave_why,
        .exit_code = peer->exit_code,
        .joined_unix_ms = peer->joined_unix_ms,
        .ended_unix_ms = peer->ended_unix_ms,
    };
}

void persist_progress(struct core *core, struct peer *peer)
{
    struct action *action = action_add(core, ACTION_PERSIST);

    action->lazy = true;
    action->record.kind = RECORD_PROGRESS;
    action->record.u.progress = (struct record_progress){
        .job = out_text(core, peer->job->name),
        .incarnation = peer->incarnation,
        .begun = peer->begun,
        .done = peer->done,
        .phase = peer->phase,
        .step_p95_ms = peer->step_p95_ms,
        .applied_seq = peer->applied_seq,
        .heard_unix_ms = peer->heard_unix_ms,
        .sources = out_text(core, peer->sources),
    };
    peer->progress_dirty = false;
}

void persist_notice(struct core *core, const struct job *job, const struct notice *notice)
{
    struct record *row = journal_persist(core, RECORD_NOTICE);

    row->u.notice = (struct record_notice){
        .job = out_text(core, job->name),
        .generation = notice->generation,
        .id = out_text(core, notice->id),
        .rank = notice->rank,
        .incarnation = notice->incarnation,
        .kind = notice->kind,
        .source = out_text(core, notice->source),
        .state = notice->state,
        .cancellable = notice->cancellable,
        .left_ms = notice->left_ms,
        .deadline_boot_ms = notice->deadline_boot_ms,
        .text = out_text(core, notice->text),
        .round = notice->round,
        .received_unix_ms = notice->received_unix_ms,
        .flags = notice->flags,
    };
}

void persist_round(struct core *core, const struct job *job, const struct round *round)
{
    struct record *row = journal_persist(core, RECORD_ROUND);

    row->u.round = (struct record_round){
        .job = out_text(core, job->name),
        .round = round->round,
        .generation = round->generation,
        .attempt = round->attempt,
        .cause = round->cause,
        .state = round->state,
        .step = round->step,
        .aborted_steps = round->aborted_steps,
        .culprit_rank = round->culprit_rank,
        .reason_code = round->reason_code,
        .reason = out_text(core, round->reason),
        .final = round->final,
        .deadline_boot_ms = round->deadline_boot_ms,
        .opened_boot_ms = round->opened_boot_ms,
        .opened_unix_ms = round->opened_unix_ms,
        .decided_unix_ms = round->decided_unix_ms,
        .captured_unix_ms = round->captured_unix_ms,
        .ended_unix_ms = round->ended_unix_ms,
        .margin_ms = round->margin_ms,
        .plan = out_text(core, round->plan),
    };
}

void persist_participant(struct core *core, const struct job *job, const struct round *round,
                         const struct participant *part)
{
    struct record *row = journal_persist(core, RECORD_PARTICIPANT);

    row->u.participant = (struct record_participant){
        .job = out_text(core, job->name),
        .round = round->round,
        .rank = part->rank,
        .incarnation = part->incarnation,
        .writer = part->writer,
        .begun = part->begun,
        .done = part->done,
        .reported_ms = part->reported_ms,
        .at_step_ms = part->at_step_ms,
        .captured_ms = part->captured_ms,
        .saved_ms = part->saved_ms,
        .save_ms = part->save_ms,
        .failed = "",
    };
}

void persist_checkpoint(struct core *core, const struct record_checkpoint *row)
{
    struct record *record = journal_persist(core, RECORD_CHECKPOINT);

    record->u.checkpoint = *row;
    record->u.checkpoint.job = out_text(core, row->job);
    record->u.checkpoint.path = out_text(core, row->path);
    record->u.checkpoint.metrics = out_long(core, row->metrics);
    record->u.checkpoint.trash = row->trash != NULL ? out_text(core, row->trash) : "";
}

struct wire_event event_make(const struct job *job, enum wire_event_kind kind)
{
    return (struct wire_event){
        .kind = kind, .generation = job->gen.generation, .rank = -1, .step = -1, .left_ms = -1};
}

/* Members are copied too: the round that lent them may be gone before the batch is written. */
static void journal_own_event(struct core *core, struct wire_event *event)
{
    event->text = out_text(core, event->text);
    event->path = out_text(core, event->path);
    if (event->members.count > 0) {
        size_t size = event->members.count * sizeof *event->members.items;
        struct wire_member *copy = arena_alloc(&core->out->arena, size);
        MUST(copy != NULL);
        memcpy(copy, event->members.items, size);
        event->members.items = copy;
    }
}

void event_emit(struct core *core, struct job *job, struct wire_event event,
                int64_t deadline_boot_ms)
{
    event.seq = ++job->seq;
    journal_own_event(core, &event);
    persist_job(core, job);

    struct record *row = journal_persist(core, RECORD_EVENT);
    row->u.event = (struct record_event){
        .job = out_text(core, job->name),
        .seq = event.seq,
        .generation = event.generation,
        .unix_ms = core->now_unix,
        .deadline_boot_ms = deadline_boot_ms,
        .body = event,
    };

    struct action *publish = action_add(core, ACTION_PUBLISH);
    publish->job = out_text(core, job->name);
    publish->deadline_boot_ms = deadline_boot_ms;
    publish->message.type = WIRE_EVENT;
    publish->message.u.event = event;
    core_fill_down(core, job->name, &publish->message.down);
    publish->message.down.job = publish->job;

    job->emitted_boot_ms = core->now;
    for (size_t i = 0; i < job->peers_count; i++) {
        struct peer *peer = job->peers[i];
        int64_t first = job->fan_out_ms * 3;
        if (peer->applied_seq + 1 < event.seq)
            continue; /* behind already: a burst of events must not put its repeat off */
        peer->repeat_every_ms = first > REPEAT_MIN_MS ? first : REPEAT_MIN_MS;
        if (peer->repeat_every_ms > HEARTBEAT_MS)
            peer->repeat_every_ms = HEARTBEAT_MS;
        peer->repeated = false;
        peer->repeat_boot_ms = core->now + peer->repeat_every_ms;
    }
    job_timer(job, core->now + REPEAT_MIN_MS);
}

struct wire_msg *send_to(struct core *core, uint64_t route, const char *job, enum wire_type type)
{
    struct action *action = action_add(core, ACTION_SEND);

    action->route = route;
    action->job = out_text(core, job);
    action->message.type = type;
    core_fill_down(core, job, &action->message.down);
    action->message.down.job = action->job;
    return &action->message;
}

void send_ack(struct core *core, uint64_t route, const char *job, uint64_t request, unsigned code,
              const char *text, uint64_t value)
{
    struct wire_msg *message = send_to(core, route, job, WIRE_ACK);

    message->u.ack = (struct wire_ack){
        .request = request, .code = code, .text = out_text(core, text), .value = value};
}
