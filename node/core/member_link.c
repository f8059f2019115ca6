/* member_link - the node's half of the reliable channel: HELLO, numbered requests resent until they
 * are answered, events without gaps, heartbeats, own notices. A frame of a lower broker epoch is
 * dropped; a new start id is greeted before anything is applied. */
#include "node/core/member_state.h"

#include <stdio.h>

struct wire_msg message_make(enum wire_type type)
{
    struct wire_msg message;

    memset(&message, 0, sizeof message);
    message.type = type;
    return message;
}

uint64_t link_step_p95(const struct member *m)
{
    return pace_p95(&m->pace);
}

static int64_t link_left_ms(const struct member *m, const struct own_notice *notice)
{
    int64_t left = notice->deadline_boot_ms - m->now;

    if (notice->deadline_boot_ms == 0)
        return -1;
    return left > 0 ? left : 0;
}

void message_send(struct member *m, const struct wire_msg *message, uint64_t request)
{
    struct member_action *action = member_add(m, MEMBER_SEND);

    action->message = *message;
    action->message.up = (struct wire_up){
        .request = request,
        .job = m->options.job,
        .role = m->options.role,
        .rank = m->options.rank,
        .incarnation = m->options.incarnation,
        .generation = m->generation,
        .broker_epoch = m->broker_epoch,
        .applied_seq = m->applied_seq,
    };
    for (size_t i = 0; message->type == WIRE_NOTICE && i < m->notices_count; i++)
        if (strcmp(m->notices[i].id, message->u.notice.id) == 0)
            action->message.u.notice.left_ms = link_left_ms(m, &m->notices[i]);
    m->ack_at = NEVER;
}

/* --- answers -------------------------------------------------------------------------------- */

/* A round may be over before all have come to its step, also because it is committed: its event
 * says. */
static void link_say_refused(struct member *m, enum wire_type type, const struct wire_ack *ack)
{
    if (ack->code == MUSTER_E_ABORTED && (type == WIRE_AT_STEP || type == WIRE_PAST))
        member_log(m, 3, "%s came when its round was over", wire_type_name(type));
    else
        member_log(m, 2, "%s was answered %s%s%s", wire_type_name(type),
                   muster_status_name((enum muster_status)ack->code), ack->text[0] ? ": " : "",
                   ack->text);
}

static void link_on_ack(struct member *m, const struct wire_ack *ack)
{
    if (ack->code == MUSTER_E_HELLO) {
        if (m->link != LINK_HELLO && m->link != LINK_OVER)
            link_rehello(m);
        return;
    }
    if (m->link != LINK_JOINED)
        return;
    if (ack->code == MUSTER_E_STORAGE)
        return; /* resent by its timer */
    if (ack->code == MUSTER_E_STALE) {
        link_rehello(m); /* the refusal says why */
        return;
    }
    if (!request_waits(m, ack->request))
        return;
    const struct wire_msg *told =
        &m->pending[ack->request - m->pending[0]->message.up.request]->message;
    if (ack->code != MUSTER_OK)
        link_say_refused(m, told->type, ack);
    ask_answered(m, ack);
    bool policy = m->policy_wait && ack->request == m->policy_request && ack->code != MUSTER_OK;
    bool restore = ack->code == MUSTER_E_RESTORE && !role_is_trainer(m->options.role);
    requests_pop(m, ack->request);
    if (restore) /* the event says so, too, if the job still has any */
        restore_refused(m, ack->text);
    if (policy && ack->code == MUSTER_E_EXISTS)
        outcome_on_disk(m, m->done); /* it was asked for where this node's thread waits */
    if (policy)
        policy_over(m);
}

/* --- HELLO ------------------------------------------------------------------------------------ */

static uint64_t link_age_ms(const struct member *m)
{
    int64_t since = m->options.started_boot_ms;

    return since > 0 && since < m->now ? (uint64_t)(m->now - since) : 0;
}

static void link_send_hello(struct member *m)
{
    struct wire_msg message = message_make(WIRE_HELLO);
    struct wire_notice_fact *facts =
        arena_alloc(&m->out->arena, (m->notices_count + 1) * sizeof *facts);
    size_t count = 0;

    for (size_t i = 0; facts != NULL && i < m->notices_count; i++)
        if (!m->notices[i].withdrawn)
            facts[count++] = (struct wire_notice_fact){.id = m->notices[i].id,
                                                       .kind = m->notices[i].kind,
                                                       .source = m->notices[i].source,
                                                       .left_ms = link_left_ms(m, &m->notices[i]),
                                                       .cancellable = m->notices[i].cancellable,
                                                       .text = m->notices[i].text,
                                                       .flags = m->notices[i].flags};
    message.u.hello = (struct wire_hello){
        .nonce = m->nonce,
        .world_size = m->options.world_size,
        .host = m->options.host,
        .pid = m->options.pid,
        .layout = m->options.layout,
        .checkpoint_dir = m->options.checkpoint_dir,
        .join_timeout_ms =
            m->options.join_timeout_default ? 0 : (uint64_t)m->options.join_timeout_ms,
        .begun = m->begun,
        .done = m->done,
        .phase = m->phase,
        .round = m->round,
        .reported = m->reported,
        .report_begun = m->reported_begun,
        .report_done = m->reported_done,
        .report_aborted = m->abort_mode,
        .saved_round = save_last(m)->round,
        .saved_ok = save_last(m)->round != 0 && save_last(m)->code == MUSTER_OK,
        .generation_seen = m->generation,
        .notices = {facts, count},
        .restore_fallback = m->options.restore_fallback,
        .history = m->history,
        .directory = m->options.directory,
        .age_ms = link_age_ms(m),
        .speaks = WIRE_SPEAKS,
        .answered = requests_answered(m),
    };
    message_send(m, &message, 0);
    m->hello_open = true;
    m->hello_at = m->now + m->hello_every;
    m->hello_every = m->hello_every * 2 > HEARTBEAT_MS ? HEARTBEAT_MS : m->hello_every * 2;
}

void link_rehello(struct member *m)
{
    link_move(m, LINK_HELLO);
    m->nonce++;
    m->hello_every = RESEND_MIN_MS;
    m->hello_at = m->now;
    m->gap_since = m->gap_asked_at = NEVER;
    m->snapshot_until = NEVER;
}

/* Messages to the connection before may be lost, and the broker would answer the next one E_HELLO.
 */
void link_connected(struct member *m)
{
    if (m->link != LINK_OVER && m->nonce != 0)
        link_rehello(m);
}

static void link_subscribe_job(struct member *m, const char *endpoint)
{
    member_add(m, MEMBER_SUBSCRIBE)->text = member_text(m, endpoint);
    m->probe_nonce = ++m->nonce;
    m->probe_until = m->now + HEARTBEAT_MS;
    struct wire_msg message = message_make(WIRE_PROBE_GET);
    message.u.probe_get.nonce = m->probe_nonce;
    message_send(m, &message, 0);
}

/* The broker's verdict first: it names who is missing. */
static int64_t link_join_wait_ms(const struct member *m)
{
    return m->options.join_timeout_ms + LOST_MS;
}

static void link_joined(struct member *m)
{
    link_move(m, LINK_JOINED);
    m->history = m->start_id;
    m->snapshot_until = NEVER;
    m->heartbeat_at = m->now;
    m->view.joined = true;
    m->view.refused.status = MUSTER_OK;
    m->view_changed = true;
    if (m->join_until == NEVER && !m->view.started)
        m->join_until = m->now + link_join_wait_ms(m);
    requests_send(m);
    if (m->pending_count > 0)
        m->resend_at = m->now + m->resend_every;
    if (m->report_at != NEVER)
        m->report_at = m->now;
    policy_again(m);
}

/* Its HELLO was repeated, and the launch that the first answer let it into is over: this node now
 * belongs to the next one. */
static bool link_let_in_anew(const struct member *m, const struct wire_welcome *welcome)
{
    return (m->link == LINK_SNAPSHOT || m->link == LINK_JOINED) && m->nonce - welcome->nonce <= 1 &&
           welcome->generation > m->generation && !m->view.started && m->view.mode != VIEW_END;
}

static void link_on_refused(struct member *m, const struct wire_refused *refused)
{
    enum muster_status code = refused->code > MUSTER_OK && refused->code < MUSTER_STATUS_COUNT
                                  ? (enum muster_status)refused->code
                                  : MUSTER_E_PROTOCOL;

    if (m->link != LINK_HELLO || refused->nonce != m->nonce)
        return;
    m->hello_open = false;
    m->view.refused.status = code;
    m->view.refused.rank = code == MUSTER_E_PEER ? -1 : (int)m->options.rank;
    m->view.refused.step = -1;
    snprintf(m->view.refused.text, sizeof m->view.refused.text, "%s",
             member_text(m, refused->text));
    m->view.refused_retry = refused->retry;
    m->view_changed = true;
    if (refused->retry)
        return; /* HELLO goes on */
    link_move(m, LINK_OVER);
    requests_pop(m, UINT64_MAX);
    if (!m->view.joined)
        return;
    outcomes_forget(m, refused->text);
    member_end(m, code, code == MUSTER_PREEMPTED, (int)m->options.rank, 0, -1, refused->text);
}

static void link_refuse_older(struct member *m)
{
    const struct wire_refused refused = {
        .nonce = m->nonce,
        .code = MUSTER_E_VERSION,
        .text = "the broker is an older musterd than this process' libmuster, and would not "
                "understand its part in rounds; start the musterd of this libmuster's release"};

    link_on_refused(m, &refused);
}

/* At the start alone: a launch that runs is worth more than to end it for how its broker was
 * started again. */
static bool link_signs_as_asked(struct member *m, const char *signer)
{
    static const char none[] =
        "the broker signs no manifests, and this process' key file (MUSTER_KEY_FILE) has a line "
        "\"signer\": start the broker with `musterd --sign`, or take that line out";
    static const char other[] =
        "the broker signs manifests with another key than the line \"signer\" of this process' "
        "key file (MUSTER_KEY_FILE) names: take a key file that this broker's `muster key add "
        "--sign` made";
    const bool as_asked = m->options.signer[0] == '\0' || strcmp(m->options.signer, signer) == 0;
    const struct wire_refused refused = {
        .nonce = m->nonce, .code = MUSTER_E_SIGNATURE, .text = signer[0] == '\0' ? none : other};

    if (!as_asked && !m->view.joined)
        link_on_refused(m, &refused);
    return as_asked || m->view.joined;
}

static void link_on_welcome(struct member *m, const struct wire_msg *message)
{
    const struct wire_welcome *welcome = &message->u.welcome;
    const char *signer = welcome->signer != NULL ? welcome->signer : "";

    if (link_let_in_anew(m, welcome)) {
        if (m->applied_seq > message->down.last_seq) {
            link_rehello(m); /* what came since, it took for another launch's */
            return;
        }
        m->generation = m->view.generation = welcome->generation;
        m->view_changed = true;
        requests_renumber(m, welcome->last_request);
        return; /* the snapshot tells the rest */
    }
    if (m->link != LINK_HELLO || welcome->nonce != m->nonce)
        return;
    if (welcome->speaks < WIRE_SPEAKS) {
        link_refuse_older(m);
        return;
    }
    if (!link_signs_as_asked(m, signer))
        return;
    m->view.broker_signs = signer[0] != '\0';
    m->view.database = welcome->database;
    m->hello_open = false;
    m->start_id = message->down.start_id;
    m->broker_epoch = message->down.broker_epoch;
    m->generation = m->view.generation = welcome->generation;
    m->view.broker_epoch = m->broker_epoch;
    m->view.broker_start = m->start_id;
    m->known_seq = message->down.last_seq;
    requests_renumber(m, welcome->last_request);
    link_subscribe_job(m, welcome->events_endpoint);
    if (welcome->snapshot_follows) {
        link_move(m, LINK_SNAPSHOT);
        m->snapshot_until = m->now + HEARTBEAT_MS;
    } else {
        link_joined(m);
    }
}

/* --- events and their gaps -------------------------------------------------------------------- */

static void link_ask_events(struct member *m)
{
    struct wire_msg message = message_make(WIRE_EVENTS_GET);

    message.u.events_get.from_seq = m->applied_seq + 1;
    message_send(m, &message, 0);
    m->gap_asked_at = m->now;
}

/* Any message before then carries it, too. */
static void link_ack_soon(struct member *m)
{
    if (m->ack_at == NEVER)
        m->ack_at = m->now + FLIGHT_MS;
}

static void link_watch_gap(struct member *m)
{
    if (m->known_seq <= m->applied_seq)
        m->gap_since = m->gap_asked_at = NEVER;
    else if (m->gap_since == NEVER)
        m->gap_since = m->now;
}

static void link_on_event(struct member *m, const struct wire_event *event)
{
    if (event->seq > m->known_seq)
        m->known_seq = event->seq;
    if (event->seq > m->applied_seq && event->seq - m->applied_seq == 1) { /* no number wraps */
        m->applied_seq = event->seq;
        link_ack_soon(m);
        m->gap_since = m->gap_asked_at = NEVER;
        events_apply(m, event);
    } else if (event->seq <= m->applied_seq) {
        link_ack_soon(m); /* it was repeated: my acknowledgement got lost */
    } else if (m->gap_asked_at == NEVER) {
        link_ask_events(m); /* a hole for sure */
    }
    link_watch_gap(m);
}

/* It answers a HELLO, or a heartbeat, from before this node heard of its round. So it tells nothing
 * of that round, though the round's end may be among the events that it stands for. They are asked
 * for; by then the broker knows by a heartbeat which round it is. */
static bool link_hides_a_round(const struct member *m, const struct wire_snapshot *snapshot)
{
    return m->round != 0 && snapshot->seq > m->applied_seq &&
           snapshot->generation == m->generation && snapshot->named_round < m->round &&
           snapshot->round != m->round;
}

static void link_on_snapshot(struct member *m, const struct wire_snapshot *snapshot)
{
    bool again = m->link == LINK_JOINED;

    if (m->link == LINK_SNAPSHOT)
        link_joined(m);
    if (m->link != LINK_JOINED || snapshot->seq < m->applied_seq)
        return;
    if (m->known_seq < snapshot->seq)
        m->known_seq = snapshot->seq;
    if (again && link_hides_a_round(m, snapshot)) {
        link_watch_gap(m);
        return;
    }
    m->applied_seq = snapshot->seq;
    link_ack_soon(m);
    events_snapshot(m, snapshot);
    link_watch_gap(m);
}

/* --- what the broker tells -------------------------------------------------------------------- */

#define LINK_TAKES(name, call)                                             \
    static void take_##name(struct member *m, const struct wire_msg *told) \
    {                                                                      \
        call;                                                              \
    }

LINK_TAKES(welcome, link_on_welcome(m, told))
LINK_TAKES(refused, link_on_refused(m, &told->u.refused))
LINK_TAKES(ack, link_on_ack(m, &told->u.ack))
LINK_TAKES(event, link_on_event(m, &told->u.event))
LINK_TAKES(snapshot, link_on_snapshot(m, &told->u.snapshot))
LINK_TAKES(ping, ((void)told, m->heartbeat_at = m->now))
LINK_TAKES(delete, delete_take(m, &told->u.delete))
LINK_TAKES(manifest_chunk, manifest_chunk(m, &told->u.manifest_chunk))

static void link_take_alive(struct member *m, const struct wire_msg *told)
{
    round_is_awaited(m, told->u.alive.awaited_round);
    notices_told(m, &told->u.alive);
    if (!told->u.alive.all_live || m->suspects_since == NEVER || m->view.all_live ||
        m->link != LINK_JOINED || m->applied_seq < told->down.last_seq)
        return; /* what is on its way may tell of one that is gone */
    m->view.all_live = true;
    m->view_changed = true;
}

static void link_take_probe(struct member *m, const struct wire_msg *told)
{
    if (m->probe_nonce != told->u.probe.nonce)
        return;
    m->probe_nonce = 0;
    if (m->known_seq > m->applied_seq && m->link == LINK_JOINED)
        link_ask_events(m);
}

static void link_take_hint(struct member *m, const struct wire_msg *told)
{
    if (m->view.termination_seen || !wire_notice_ends(told->u.hint.kind))
        return;
    m->view.termination_seen = true;
    m->view_changed = true;
}

enum link_when {
    LINK_WHEN_GREETED, /* from the broker that answered this node's HELLO, and from no past one */
    LINK_WHEN_JOINED,  /* ... once what it missed is known, too */
    LINK_WHEN_ANY,     /* it greets, or refuses to */
};

/* Which message may come when, and which function takes it. The sender is always a broker: a node
 * hears nobody else. */
static const struct {
    enum link_when when;
    void (*take)(struct member *, const struct wire_msg *);
} link_messages[] = {
    [WIRE_WELCOME] = {LINK_WHEN_ANY, take_welcome},
    [WIRE_REFUSED] = {LINK_WHEN_ANY, take_refused},
    [WIRE_ACK] = {LINK_WHEN_GREETED, take_ack},
    [WIRE_SNAPSHOT] = {LINK_WHEN_GREETED, take_snapshot},
    [WIRE_EVENT] = {LINK_WHEN_JOINED, take_event},
    [WIRE_PROBE] = {LINK_WHEN_GREETED, link_take_probe},
    [WIRE_PING] = {LINK_WHEN_GREETED, take_ping},
    [WIRE_ALIVE] = {LINK_WHEN_GREETED, link_take_alive},
    [WIRE_HINT] = {LINK_WHEN_GREETED, link_take_hint},
    [WIRE_DELETE] = {LINK_WHEN_GREETED, take_delete},
    [WIRE_MANIFEST_CHUNK] = {LINK_WHEN_GREETED, take_manifest_chunk},
};

/* A relay that mixes up its ranks gives events of one job to another: S would be another's. The
 * broker names no job where it refused a frame before it looked for one. */
static bool link_is_for_my_job(struct member *m, const struct wire_msg *message)
{
    const char *job = message->down.job;

    if (job[0] == '\0' || strcmp(job, m->options.job) == 0)
        return true;
    if (!m->strange_said)
        member_log(m, 1,
                   "dropped a message for job %s: a relay gave it to the wrong rank; restart the "
                   "relay, or remove it from MUSTER_BROKER",
                   job);
    m->strange_said = true;
    return false;
}

/* False: the frame is from a past broker, or from one that was not greeted yet. */
static bool link_from_my_broker(struct member *m, const struct wire_msg *message)
{
    if (message->type == WIRE_ACK && message->u.ack.code == MUSTER_E_HELLO)
        return true; /* it is believed nothing, and greeted */
    if (message->down.broker_epoch < m->broker_epoch)
        return false; /* also its WELCOME or refusal: another one has taken over from it */
    if (link_messages[message->type].when == LINK_WHEN_ANY)
        return true;
    if (m->link == LINK_HELLO)
        return false;
    if (message->down.start_id == m->start_id)
        return true;
    if (message->down.broker_epoch > m->broker_epoch)
        link_rehello(m);
    return false;
}

static bool link_is_in_table(enum wire_type type)
{
    return type < sizeof link_messages / sizeof link_messages[0] &&
           link_messages[type].take != NULL;
}

/* While this node greets, only the answer to its own HELLO shows that the broker hears it. */
static bool link_is_answered(const struct member *m, const struct wire_msg *message)
{
    if (m->link != LINK_HELLO)
        return true;
    if (message->type == WIRE_WELCOME)
        return message->u.welcome.nonce == m->nonce;
    return message->type == WIRE_REFUSED && message->u.refused.nonce == m->nonce;
}

static void link_heard(struct member *m)
{
    m->heard_at = m->now;
    if (m->unheard_said)
        member_log(m, 1, "the broker is heard again");
    if (m->view.unheard)
        m->view_changed = true;
    m->unheard_said = m->view.unheard = false;
    if (m->join_until != NEVER && m->options.join_timeout_default)
        m->join_until =
            m->now + link_join_wait_ms(m); /* its own option counts, which may be longer */
}

void link_frame(struct member *m, const struct wire_msg *message)
{
    if (m->link == LINK_OVER || !link_is_in_table(message->type) ||
        !link_is_for_my_job(m, message) || !link_from_my_broker(m, message))
        return;
    if (link_is_answered(m, message))
        link_heard(m);
    if (message->down.last_seq > m->known_seq && m->link == LINK_JOINED) {
        m->known_seq = message->down.last_seq;
        link_watch_gap(m);
    }
    if (link_messages[message->type].when != LINK_WHEN_JOINED || m->link == LINK_JOINED)
        link_messages[message->type].take(m, message);
}

/* --- time ------------------------------------------------------------------------------------- */

/* A rank that failed tells so itself, once its program comes to that; and the last words of a dead
 * one may be on their way, which are no sign of life. Both have LOST_MS. */
void link_suspects(struct member *m)
{
    m->suspects_since = m->now + LOST_MS;
    m->suspects_every = GONE_PING_MS;
    m->view.all_live = false;
    m->view_changed = true;
    if (m->heartbeat_at > m->suspects_since)
        m->heartbeat_at = m->suspects_since;
}

static void link_heartbeat(struct member *m)
{
    const bool asks = m->suspects_since <= m->now && !m->view.all_live;
    struct wire_msg message = message_make(WIRE_HEARTBEAT);

    message.u.heartbeat = (struct wire_heartbeat){
        .begun = m->begun,
        .done = m->done,
        .phase = m->phase,
        .round = m->round,
        .step_p95_ms = link_step_p95(m) > INT32_MAX ? INT32_MAX : link_step_p95(m),
        .phase_ms =
            m->now - m->phase_since > INT32_MAX ? INT32_MAX : (uint64_t)(m->now - m->phase_since),
        .sources = m->sources,
        .saving_round = m->saving_round,
        .saving_bytes = m->saving_bytes,
    };
    m->heartbeat_at = m->now + HEARTBEAT_MS;
    if (m->suspects_since > m->now && m->suspects_since < m->heartbeat_at)
        m->heartbeat_at = m->suspects_since;
    if (asks) {
        message.u.heartbeat.suspects = true;
        m->heartbeat_at = m->now + m->suspects_every;
        m->suspects_every =
            m->suspects_every * 2 > HEARTBEAT_MS ? HEARTBEAT_MS : m->suspects_every * 2;
    }
    message_send(m, &message, 0);
}

/* Closed before it was let in: it does not ask again. Its request may still be granted. */
static bool link_gave_up(const struct member *m)
{
    return m->closing && !m->view.joined;
}

void link_tick(struct member *m)
{
    if (m->link == LINK_OVER)
        return;
    if (m->link == LINK_HELLO) {
        if (m->nonce == 0)
            m->nonce = m->options.incarnation >> 1;
        if (m->now >= m->hello_at && !link_gave_up(m))
            link_send_hello(m);
        return;
    }
    if (m->link == LINK_SNAPSHOT) {
        if (m->now >= m->snapshot_until)
            link_rehello(m);
        return;
    }
    if (m->probe_nonce != 0 && m->now >= m->probe_until) {
        m->probe_nonce = 0; /* no echo: what WELCOME knew of is asked for nevertheless */
        link_watch_gap(m);
    }
    if (m->now >= m->heartbeat_at || m->now >= m->ack_at)
        link_heartbeat(m);
    if (m->pending_count > 0 && m->now >= m->resend_at) {
        requests_send(m);
        m->resend_every = m->resend_every * 2 > HEARTBEAT_MS ? HEARTBEAT_MS : m->resend_every * 2;
        m->resend_at = m->now + m->resend_every;
    }
    if (m->gap_since != NEVER && m->now - m->gap_since >= GAP_PATIENCE_MS &&
        (m->gap_asked_at == NEVER || m->now - m->gap_asked_at >= GAP_REPEAT_MS))
        link_ask_events(m);
}

static int64_t link_earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t link_wakeup(const struct member *m)
{
    int64_t at = NEVER;

    if (m->link == LINK_OVER)
        return NEVER;
    if (m->link == LINK_HELLO)
        return link_gave_up(m) ? NEVER : m->hello_at;
    if (m->link == LINK_SNAPSHOT)
        return m->snapshot_until;
    at = link_earlier(at, link_earlier(m->heartbeat_at, m->ack_at));
    if (m->probe_nonce != 0)
        at = link_earlier(at, m->probe_until);
    if (m->pending_count > 0)
        at = link_earlier(at, m->resend_at);
    if (m->gap_since != NEVER)
        at = link_earlier(at, m->gap_asked_at == NEVER ? m->gap_since + GAP_PATIENCE_MS
                                                       : m->gap_asked_at + GAP_REPEAT_MS);
    return at;
}

void member_set_sources(struct member *m, const char *json)
{
    snprintf(m->sources, sizeof m->sources, "%s", strlen(json) < sizeof m->sources ? json : "");
}

void member_set_saving(struct member *m, uint64_t round, uint64_t bytes)
{
    m->saving_round = round;
    m->saving_bytes = round > 0 ? bytes : 0;
}
