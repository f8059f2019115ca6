/* core_fixture_text - what the core did, as lines that a test can read. See core_fixture.h. */
#include "tests/support/core_fixture.h"

#include "tests/support/text_line.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

static const char *notice_state(enum record_notice_state state)
{
    return state == RECORD_NOTICE_ACTIVE      ? "active"
           : state == RECORD_NOTICE_CANCELLED ? "cancelled"
                                              : "served";
}

/* A rank's life that hears the event: does it take it for its own? As node/core/member_events.c. */
static bool takes_part(const struct peer *peer, const struct wire_event *event, bool *ret_writer)
{
    const struct wire_member *named = NULL;

    for (size_t i = 0; i < event->members.count; i++)
        if (event->members.items[i].incarnation == peer->incarnation)
            named = &event->members.items[i];
    *ret_writer = named != NULL && (named->flags & MEMBER_FLAG_WRITER);
    if (!(event->flags & EVENT_FLAG_OTHERS))
        return named != NULL;
    *ret_writer = event->kind == EVENT_DECISION &&
                  (event->incarnation == 0 || event->incarnation == peer->incarnation);
    return named == NULL;
}

static void put_members(struct line *line, const struct job *job, const struct wire_event *event)
{
    const char *before = " m";

    for (uint64_t rank = 0; job != NULL && rank < job->gen.world_size; rank++)
        for (size_t i = 0; i < job->peers_count; i++) {
            bool writer;

            if (job->peers[i]->rank != rank || !role_is_trainer(job->peers[i]->role) ||
                !takes_part(job->peers[i], event, &writer))
                continue;
            line_put(line, "%s%llu%s", before, (unsigned long long)rank, writer ? "w" : "");
            before = ",";
        }
}

static void put_event(struct line *line, const struct job *job, const struct wire_event *event)
{
    line_put(line, "%s", wire_event_kind_name((unsigned)event->kind));
    if (event->round > 0)
        line_put(line, " r%llu", (unsigned long long)event->round);
    if (event->cause != CAUSE_NONE)
        line_put(line, " %s", wire_cause_name((unsigned)event->cause));
    if (event->step >= 0)
        line_put(line, " S%lld", (long long)event->step);
    if (event->checkpoint > 0)
        line_put(line, " c%llu", (unsigned long long)event->checkpoint);
    if (event->rank >= 0)
        line_put(line, " rank %lld", (long long)event->rank);
    if (event->code > 0 && event->kind != EVENT_TERMINATION)
        line_put(line, " %s", muster_status_name((enum muster_status)event->code));
    if (event->flags & EVENT_FLAG_ABORT)
        line_put(line, " abort");
    if (event->flags & EVENT_FLAG_RETRY)
        line_put(line, " retry");
    if (event->flags & EVENT_FLAG_ROUND_FOLLOWS)
        line_put(line, " follows");
    if (event->kind == EVENT_FREEZE || event->kind == EVENT_DECISION)
        put_members(line, job, event);
}

/* A row of a round, or of what it saved. */
static void put_save_row(struct line *line, const struct record *row)
{
    switch (row->kind) {
    case RECORD_ROUND:
        line_put(line, "+round %llu %s", (unsigned long long)row->u.round.round,
                 wire_round_state_name(row->u.round.state));
        break;
    case RECORD_PARTICIPANT:
        line_put(line, "+part %llu.%llu", (unsigned long long)row->u.participant.round,
                 (unsigned long long)row->u.participant.rank);
        break;
    case RECORD_CHECKPOINT:
        line_put(line, "+checkpoint %llu %s", (unsigned long long)row->u.checkpoint.round,
                 wire_checkpoint_state_name(row->u.checkpoint.state));
        break;
    case RECORD_SHARD:
        line_put(line, "+shard %llu.%llu", (unsigned long long)row->u.shard.round,
                 (unsigned long long)row->u.shard.rank);
        break;
    case RECORD_FILE:
        line_put(line, "+file %s", row->u.file.path);
        break;
    case RECORD_SHARDS_GONE:
        line_put(line, "-shards %llu", (unsigned long long)row->u.shards_gone.round);
        break;
    case RECORD_PIN:
    case RECORD_UNPIN:
        line_put(line, "%cpin %llu %s", row->kind == RECORD_PIN ? '+' : '-',
                 (unsigned long long)row->u.pin.checkpoint, row->u.pin.id);
        break;
    default:
        fail();
    }
}

static void put_row(struct line *line, const struct record *row)
{
    switch (row->kind) {
    case RECORD_BROKER:
        line_put(line, "+broker %llu", (unsigned long long)row->u.broker.epoch);
        break;
    case RECORD_JOB:
        line_put(line, "+job");
        break;
    case RECORD_GENERATION:
        line_put(line, "+generation %s", wire_generation_state_name(row->u.generation.state));
        break;
    case RECORD_NODE:
        line_put(line, "+node %llu %s #%llu", (unsigned long long)row->u.node.rank,
                 wire_node_state_name(row->u.node.state),
                 (unsigned long long)row->u.node.last_request);
        break;
    case RECORD_PROGRESS:
        line_put(line, "+progress");
        break;
    case RECORD_NOTICE:
        line_put(line, "+notice %s %s", row->u.notice.id, notice_state(row->u.notice.state));
        break;
    case RECORD_EVENT:
        line_put(line, "+event %llu", (unsigned long long)row->u.event.seq);
        break;
    case RECORD_LAUNCH:
        line_put(line, "+launch %llu >%lld", (unsigned long long)row->u.launch.generation,
                 (long long)row->u.launch.began_step);
        break;
    case RECORD_HOST:
        line_put(line, "+host %s %llu %d", row->u.host.name, (unsigned long long)row->u.host.launch,
                 (int)row->u.host.state);
        break;
    case RECORD_POLICY:
        line_put(line, "+policy '%s' '%s'", row->u.policy.keep, row->u.policy.save);
        break;
    case RECORD_FORGET:
        line_put(line, "-job %s", row->u.forget.job);
        break;
    case RECORD_CUSTOM:
        line_put(line, "+custom %s", row->u.custom.custom);
        break;
    default:
        put_save_row(line, row);
    }
}

static void put_sent(struct line *line, const struct action *action)
{
    const struct wire_msg *message = &action->message;

    if (action->route >= 100 && action->route < 100 + CORE_NODES)
        line_put(line, "%llu:", (unsigned long long)action->route - 100);
    else
        line_put(line, "@%llu:", (unsigned long long)action->route);
    switch (message->type) {
    case WIRE_ACK:
        line_put(line, "ack #%llu %s", (unsigned long long)message->u.ack.request,
                 muster_status_name((enum muster_status)message->u.ack.code));
        if (message->u.ack.value > 0)
            line_put(line, "=%llu", (unsigned long long)message->u.ack.value);
        break;
    case WIRE_REFUSED:
        line_put(line, "refused %s%s",
                 muster_status_name((enum muster_status)message->u.refused.code),
                 message->u.refused.retry ? " retry" : "");
        break;
    case WIRE_DELETE:
        line_put(line, "delete %llu", (unsigned long long)message->u.delete.checkpoint);
        break;
    case WIRE_WELCOME:
        line_put(line, "welcome g%llu", (unsigned long long)message->u.welcome.generation);
        break;
    default:
        line_put(line, "%s", wire_type_name(message->type));
    }
}

static void put_action(struct line *line, const struct job *job, const struct action *action,
                       bool numbers)
{
    switch (action->kind) {
    case ACTION_PERSIST:
        put_row(line, &action->record);
        break;
    case ACTION_PUBLISH:
        if (action->message.type != WIRE_EVENT) {
            line_put(line, "!probe");
            break;
        }
        if (numbers)
            line_put(line, "!%llu ", (unsigned long long)action->message.u.event.seq);
        put_event(line, job, &action->message.u.event);
        break;
    case ACTION_HINT:
        line_put(line, "hint %s", action->message.u.hint.id);
        break;
    case ACTION_SEND:
        put_sent(line, action);
        break;
    case ACTION_SEND_EVENTS:
        line_put(line, "%llu:events %llu", (unsigned long long)action->route - 100,
                 (unsigned long long)action->number);
        break;
    case ACTION_SEND_MANIFEST:
        line_put(line, "%llu:manifest %llu+%llu", (unsigned long long)action->route - 100,
                 (unsigned long long)action->number, (unsigned long long)action->count);
        break;
    case ACTION_SEND_ROWS:
        line_put(line, "@%llu:rows", (unsigned long long)action->route);
        break;
    default:
        fail();
    }
}

enum which { ALL, EVENTS, ANSWERS };

static const char *text_of(struct core_fixture *f, enum which which)
{
    struct line line = {f->text, 0, sizeof f->text};

    f->text[0] = '\0';
    for (size_t i = 0; i < f->out.count; i++) {
        const struct action *action = &f->out.items[i];
        bool event = action->kind == ACTION_PUBLISH && action->message.type == WIRE_EVENT;
        bool answer = action->kind != ACTION_PERSIST && action->kind != ACTION_PUBLISH &&
                      action->kind != ACTION_HINT;
        if ((which == EVENTS && !event) || (which == ANSWERS && !answer))
            continue;
        if (line.used > 0)
            line_put(&line, "; ");
        put_action(&line, job_find(f->core, f->job), action, which == ALL);
    }
    return f->text;
}

const char *core_text(struct core_fixture *f)
{
    return text_of(f, ALL);
}

const char *core_events(struct core_fixture *f)
{
    return text_of(f, EVENTS);
}

const char *core_answers(struct core_fixture *f)
{
    return text_of(f, ANSWERS);
}

const struct wire_msg *core_sent(const struct core_fixture *f, uint64_t route, enum wire_type type)
{
    for (size_t i = 0; i < f->out.count; i++)
        if (f->out.items[i].kind == ACTION_SEND && f->out.items[i].route == route &&
            f->out.items[i].message.type == type)
            return &f->out.items[i].message;
    return NULL;
}

const struct wire_event *core_event(const struct core_fixture *f, enum wire_event_kind kind)
{
    for (size_t i = 0; i < f->out.count; i++)
        if (f->out.items[i].kind == ACTION_PUBLISH && f->out.items[i].message.type == WIRE_EVENT &&
            f->out.items[i].message.u.event.kind == kind)
            return &f->out.items[i].message.u.event;
    return NULL;
}

const struct record *core_row(const struct core_fixture *f, enum record_kind kind)
{
    const struct record *last = NULL;

    for (size_t i = 0; i < f->out.count; i++)
        if (f->out.items[i].kind == ACTION_PERSIST && f->out.items[i].record.kind == kind)
            last = &f->out.items[i].record;
    return last;
}

size_t core_count_rows(const struct core_fixture *f, enum record_kind kind)
{
    size_t rows = 0;

    for (size_t i = 0; i < f->rows_count; i++)
        rows += f->rows[i].kind == kind;
    return rows;
}
