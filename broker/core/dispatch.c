/* dispatch - the one table of what processes tell the broker: which message, who may send it, and
 * which function handles it. The sender is the process that joined on that route; fields of the
 * message never name it. Never: a rule of any subject. The handlers of the subjects hold those. */
#include "broker/core/dispatch.h"

#include "broker/core/state/orders.h"
#include "schema/keys/keys.h"

#include <stdio.h>

#define RANKS (1U << ROLE_CHIEF | 1U << ROLE_WORKER)
#define MEMBERS (RANKS | 1U << ROLE_PS | 1U << ROLE_EVALUATOR)
#define TOOLS (1U << ROLE_TOOL)

struct said {
    const struct input *in;
    const struct wire_msg *m;
    struct job *job;   /* NULL: a tool names one that is not known */
    struct peer *peer; /* NULL: a tool */
};

enum answered {
    ACKED,       /* by ACK; a member's are numbered and taken in order */
    OTHERWISE,   /* by a message of its own, or not at all */
    WITHOUT_JOB, /* the same, and a tool need name no job that is known */
};

struct message {
    unsigned by; /* roles, as bits */
    struct answer (*take)(struct core *, const struct said *);
    enum answered answered;
    bool free; /* it persists nothing but lazy progress, whatever it says: see core_input_is_free */
};

static const struct answer dispatched = {MUSTER_OK, "", 0};

/* --- handlers, as the table needs them -------------------------------------------------------- */

#define DISPATCH_TAKES(name, call)                                            \
    static struct answer take_##name(struct core *core, const struct said *s) \
    {                                                                         \
        return call;                                                          \
    }

DISPATCH_TAKES(noop, ((void)core, (void)s, dispatched))
DISPATCH_TAKES(leave, roster_leave(core, s->peer, &s->m->u.leave))
DISPATCH_TAKES(error, roster_error(core, s->peer, &s->m->u.error))
DISPATCH_TAKES(at_step, save_at_step(core, s->peer, &s->m->u.at_step))
DISPATCH_TAKES(files, save_files(core, s->peer, &s->m->u.files))
DISPATCH_TAKES(saved, save_saved(core, s->peer, &s->m->u.saved))
DISPATCH_TAKES(save_failed, save_failed(core, s->peer, &s->m->u.save_failed))
DISPATCH_TAKES(past, save_past(core, s->peer, &s->m->u.past))
DISPATCH_TAKES(save_at, policy_save_at(core, s->peer, s->m->u.save_at.step))
DISPATCH_TAKES(save_wish, save_policy_wish(core, s->peer, s->m->u.save_wish.step))
DISPATCH_TAKES(save_now, round_save_now(core, s->job, s->m->u.save_now.id))
DISPATCH_TAKES(restored, restore_take_done(core, s->peer, &s->m->u.restored))
DISPATCH_TAKES(restore_failed, restore_take_failed(core, s->peer, &s->m->u.restore_failed))
DISPATCH_TAKES(manifest_done, registry_manifest_done(core, s->peer, &s->m->u.manifest_done))
DISPATCH_TAKES(policies, keep_policies_take(core, s->peer, &s->m->u.policies))
DISPATCH_TAKES(sweep, keep_sweep(core, s->peer, &s->m->u.sweep))
DISPATCH_TAKES(deleted, keep_deleted(core, s->peer, &s->m->u.deleted))
DISPATCH_TAKES(drop, keep_drop(core, s->job, &s->m->u.drop))
DISPATCH_TAKES(pin, pins_take(core, s->job, &s->m->u.pin))
DISPATCH_TAKES(unpin, pins_unpin(core, s->job, &s->m->u.unpin))
DISPATCH_TAKES(gone, gone_take(core, s->job, s->in))
DISPATCH_TAKES(forget, asleep_take(core, s->job, s->in->by))
DISPATCH_TAKES(cancel, notice_cancel(core, s->job, s->m->u.cancel.id,
                                     s->peer != NULL ? s->peer->incarnation : 0))

static struct answer dispatch_report(struct core *core, const struct said *s)
{
    round_report(core, s->peer, &s->m->u.report);
    job_settle(core, s->job);
    return dispatched;
}

/* The answer names the round that is opened for it. */
static struct answer dispatch_take_notice(struct core *core, const struct said *s)
{
    const struct wire_notice *m = &s->m->u.notice;
    int64_t rank = s->peer != NULL ? (int64_t)s->peer->rank : m->rank;
    struct answer answer =
        notice_take(core, s->job, m, rank, s->peer != NULL ? s->peer->incarnation : 0);

    if (answer.code != MUSTER_OK)
        return answer;
    job_settle(core, s->job);
    answer.value = notice_round(s->job, m->id);
    return answer;
}

static struct answer dispatch_heartbeat(struct core *core, const struct said *s)
{
    if (s->peer != NULL)
        roster_heartbeat(core, s->peer, &s->m->u.heartbeat);
    else /* a tool's ping */
        send_to(core, s->in->route, s->m->up.job, WIRE_ALIVE);
    return dispatched;
}

static struct answer dispatch_probe_get(struct core *core, const struct said *s)
{
    struct action *action = action_add(core, ACTION_PUBLISH);

    action->job = out_text(core, s->job->name);
    action->message.type = WIRE_PROBE;
    core_fill_down(core, s->job->name, &action->message.down);
    action->message.down.job = action->job;
    action->message.u.probe.nonce = s->m->u.probe_get.nonce;
    return dispatched;
}

static struct answer dispatch_events_get(struct core *core, const struct said *s)
{
    if (s->m->u.events_get.from_seq > s->job->seq)
        return dispatched;
    struct action *action = action_add(core, ACTION_SEND_EVENTS);

    s->peer->repeated = true; /* it found its gap at a heartbeat: no measure of the fan-out */
    action->route = s->peer->route;
    action->job = out_text(core, s->job->name);
    action->number = s->m->u.events_get.from_seq;
    action->count = EVENTS_PAGE_MAX;
    return dispatched;
}

static struct answer dispatch_manifest_get(struct core *core, const struct said *s)
{
    struct action *action = action_add(core, ACTION_SEND_MANIFEST);

    action->route = s->peer->route;
    action->job = out_text(core, s->job->name);
    action->number = s->m->u.manifest_get.checkpoint;
    action->count = s->m->u.manifest_get.offset;
    return dispatched;
}

static struct answer dispatch_query(struct core *core, const struct said *s)
{
    struct action *action = action_add(core, ACTION_SEND_ROWS);

    action->route = s->in->route;
    action->job = out_text(core, s->m->up.job);
    MUST(wire_copy(&action->message, s->m, &core->out->arena));
    return dispatched;
}

/* A job may begin with its hosts. */
static struct answer dispatch_host(struct core *core, const struct said *s)
{
    struct job *job = s->job;
    struct answer answer = hosts_refusal(core, s->in, job);

    if (answer.code == MUSTER_OK && job == NULL && (job = job_create(core, s->m->up.job)) == NULL)
        answer = (struct answer){MUSTER_E_BUSY, TOO_MANY_JOBS, 0};
    if (answer.code == MUSTER_OK)
        answer = hosts_take(core, job, s->in);
    send_ack(core, s->in->route, s->m->up.job, s->m->up.request, answer.code, answer.text,
             answer.value);
    return dispatched;
}

/* A large one is answered after its last file: see import_tick. */
static struct answer dispatch_import(struct core *core, const struct said *s)
{
    struct answer answer;

    if (!import_take(core, s->in, &answer))
        return dispatched;
    struct job *job = job_find(core, s->m->up.job);
    if (job != NULL)
        job_settle(core, job);
    send_ack(core, s->in->route, s->m->up.job, s->m->up.request, answer.code, answer.text,
             answer.value);
    return dispatched;
}

/* --- the table -------------------------------------------------------------------------------- */

/* Two kinds of message have a door of their own, since their senders have not joined a launch:
 * HELLO of a process that is not known yet (hello.c), and those of tasks (tasks.h). */
static const struct message messages[] = {
    [WIRE_LEAVE] = {MEMBERS, take_leave, ACKED, false},
    [WIRE_NOOP] = {MEMBERS, take_noop, ACKED, false},
    [WIRE_ERROR] = {MEMBERS, take_error, ACKED, false},
    [WIRE_RESTORED] = {MEMBERS, take_restored, ACKED, false},
    [WIRE_RESTORE_FAILED] = {MEMBERS, take_restore_failed, ACKED, false},
    [WIRE_NOTICE] = {MEMBERS | TOOLS, dispatch_take_notice, ACKED, false},
    [WIRE_CANCEL] = {MEMBERS | TOOLS, take_cancel, ACKED, false},
    [WIRE_PIN] = {MEMBERS | TOOLS, take_pin, ACKED, false},
    [WIRE_UNPIN] = {MEMBERS | TOOLS, take_unpin, ACKED, false},
    [WIRE_DROP] = {MEMBERS | TOOLS, take_drop, ACKED, false},

    [WIRE_REPORT] = {RANKS, dispatch_report, OTHERWISE, false},
    [WIRE_AT_STEP] = {RANKS, take_at_step, ACKED, false},
    [WIRE_FILES] = {RANKS, take_files, ACKED, false},
    [WIRE_SAVED] = {RANKS, take_saved, ACKED, false},
    [WIRE_SAVE_FAILED] = {RANKS, take_save_failed, ACKED, false},
    [WIRE_PAST] = {RANKS, take_past, ACKED, false},
    [WIRE_SAVE_AT] = {RANKS, take_save_at, ACKED, false},
    [WIRE_SAVE_WISH] = {RANKS, take_save_wish, ACKED, false},
    [WIRE_MANIFEST_DONE] = {RANKS, take_manifest_done, ACKED, false},
    [WIRE_SWEEP] = {RANKS, take_sweep, ACKED, false},
    [WIRE_DELETED] = {RANKS, take_deleted, ACKED, false},
    [WIRE_POLICIES] = {RANKS, take_policies, ACKED, false},

    [WIRE_SAVE_NOW] = {TOOLS, take_save_now, ACKED, false},
    [WIRE_GONE] = {TOOLS, take_gone, ACKED, false},
    [WIRE_FORGET] = {TOOLS, take_forget, ACKED, false},
    [WIRE_IMPORT] = {TOOLS, dispatch_import, WITHOUT_JOB, false},
    [WIRE_HOST] = {TOOLS, dispatch_host, WITHOUT_JOB, false},
    [WIRE_QUERY] = {TOOLS, dispatch_query, WITHOUT_JOB, true},

    [WIRE_HEARTBEAT] = {MEMBERS | TOOLS, dispatch_heartbeat, WITHOUT_JOB, true},
    [WIRE_PROBE_GET] = {MEMBERS, dispatch_probe_get, OTHERWISE, true},
    [WIRE_EVENTS_GET] = {MEMBERS, dispatch_events_get, OTHERWISE, true},
    [WIRE_MANIFEST_GET] = {MEMBERS, dispatch_manifest_get, OTHERWISE, true},
};

static const struct message *dispatch_find(unsigned type, enum wire_role role)
{
    const struct message *message = &messages[0];

    if (type < sizeof messages / sizeof messages[0] && (messages[type].by & 1U << role) != 0)
        message = &messages[type];
    return message; /* the first has no handler */
}

bool core_input_is_free(const struct wire_msg *message)
{
    return message->type == WIRE_RESULT_GET ||
           (message->type < sizeof messages / sizeof messages[0] && messages[message->type].free);
}

/* --- who says it ------------------------------------------------------------------------------ */

static struct answer dispatch_take(struct core *core, const struct said *s, enum wire_role role)
{
    const struct message *message = dispatch_find(s->m->type, role);

    if (message->take != NULL)
        return message->take(core, s);
    return (struct answer){MUSTER_E_PROTOCOL,
                           out_printf(core, "%s is not a message that a %s may send",
                                      wire_type_name(s->m->type), wire_role_name(role)),
                           0};
}

/* Strictly in number order: a duplicate is answered again, a number too high waits for its turn
 * (the node resends in order). The answer and the number are one row of the same transaction. */
static void dispatch_request(struct core *core, struct peer *peer, const struct said *s)
{
    uint64_t request = s->m->up.request;

    if (request <= peer->last_request) {
        bool last = request == peer->last_request;
        send_ack(core, peer->route, peer->job->name, request, last ? peer->last_code : MUSTER_OK,
                 "", last ? peer->last_value : 0);
        return;
    }
    if (request != peer->last_request + 1)
        return;
    struct answer answer = dispatch_take(core, s, peer->role);
    job_settle(core, peer->job);
    peer->last_request = request;
    peer->last_code = answer.code;
    peer->last_value = answer.value;
    persist_peer(core, peer);
    send_ack(core, peer->route, peer->job->name, request, answer.code, answer.text, answer.value);
}

static void dispatch_of_tool(struct core *core, const struct input *in)
{
    const struct wire_msg *m = in->message;
    const struct message *message = dispatch_find(m->type, ROLE_TOOL);
    const struct said said = {.in = in, .m = m, .job = job_find(core, m->up.job)};
    const size_t before = core->out->count;
    char words[ORDER_WORDS_MAX];
    bool told = in->by != NULL && said.job != NULL && order_words(said.job, m, words);
    struct answer answer;

    if (message->take != NULL && message->answered == WITHOUT_JOB) {
        message->take(core, &said);
        return;
    }
    if (said.job == NULL)
        answer = (struct answer){
            MUSTER_E_NOT_FOUND,
            out_printf(core, "no job '%s' is known here; `muster status` lists the jobs",
                       m->up.job),
            0};
    else
        answer = dispatch_take(core, &said, ROLE_TOOL);
    struct job *job = job_find(core, m->up.job); /* it may be forgotten now */
    if (job != NULL && told && answer.code == MUSTER_OK)
        order_journal(core, job, in->by, words, answer.value, before);
    if (job != NULL)
        job_settle(core, job);
    send_ack(core, in->route, m->up.job, m->up.request, answer.code, answer.text, answer.value);
}

static void dispatch_heard(struct core *core, struct peer *peer, const struct wire_msg *m)
{
    uint64_t applied = m->up.applied_seq < peer->job->seq ? m->up.applied_seq : peer->job->seq;

    peer->heard_boot_ms = core->now;
    peer->heard_unix_ms = core->now_unix;
    peer->pinged_boot_ms = 0;
    gone_heard(peer);
    if (applied <= peer->applied_seq)
        return;
    peer->applied_seq = applied;
    peer->progress_dirty = true;
    if (peer->applied_seq == peer->job->seq && !peer->repeated) {
        int64_t took = core->now - peer->job->emitted_boot_ms;
        peer->job->fan_out_ms = took > 1000 ? 1000 : took;
    }
}

static void dispatch_of_member(struct core *core, const struct input *in)
{
    const struct wire_msg *m = in->message;
    struct peer *peer = peer_find(core, m->up.incarnation);

    if (peer == NULL || !peer->mapped || peer->route != in->route ||
        strcmp(peer->job->name, m->up.job) != 0) {
        send_ack(core, in->route, m->up.job, m->up.request, MUSTER_E_HELLO, "", 0);
        return;
    }
    dispatch_heard(core, peer, m);
    if (!peer_is_live(peer)) {
        unsigned code = peer->state == NODE_LEFT ? MUSTER_OK : MUSTER_E_STALE;
        send_ack(core, in->route, m->up.job, m->up.request, code, "", 0);
        return;
    }
    const struct said said = {.in = in, .m = m, .job = peer->job, .peer = peer};
    const struct message *message = dispatch_find(m->type, peer->role);
    if (wire_is_request(m->type) && m->up.request > 0)
        dispatch_request(core, peer, &said);
    else if (message->take != NULL && message->answered != ACKED)
        message->take(core, &said); /* what is not in the table has no answer: dropped */
}

/* NULL: nothing of it is on record. */
static const struct job *dispatch_recorded(const struct core *core, const char *name)
{
    const struct job *job = job_find(core, name);

    return job != NULL && job_has_row(job) ? job : NULL;
}

static bool dispatch_may_begin_job(const struct core *core, const struct input *in)
{
    const enum wire_type type = in->message->type;

    return (type == WIRE_HELLO || type == WIRE_HOST || type == WIRE_IMPORT) &&
           key_is_bounded(in->key_jobs) && dispatch_recorded(core, in->message->up.job) == NULL;
}

void dispatch_message(struct core *core, const struct input *in)
{
    const struct wire_msg *m = in->message;
    const struct job *begun;
    bool may_begin = dispatch_may_begin_job(core, in);

    if (m->type == WIRE_HELLO)
        hello_take(core, in);
    else if (wire_is_task(m->type))
        tasks_message(core, in);
    else if (m->up.role == ROLE_TOOL)
        dispatch_of_tool(core, in);
    else
        dispatch_of_member(core, in);
    if (may_begin && (begun = dispatch_recorded(core, m->up.job)) != NULL)
        asleep_make_room(core, begun, in->key_jobs);
}
