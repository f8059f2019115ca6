/* member - create, dispatch, the view, time. See member.h for the contract. */
#include "node/core/member_state.h"

#include "schema/error.h"
#include "schema/room.h"

#include <stdarg.h>
#include <stdio.h>

void member_actions_init(struct member_actions *actions)
{
    memset(actions, 0, sizeof *actions);
    arena_init(&actions->arena, 0);
}

void member_actions_clear(struct member_actions *actions)
{
    actions->count = 0;
    arena_reset(&actions->arena);
}

void member_actions_free(struct member_actions *actions)
{
    free(actions->items);
    arena_free(&actions->arena);
    memset(actions, 0, sizeof *actions);
}

struct member_action *member_add(struct member *m, enum member_action_kind kind)
{
    struct member_actions *out = m->out;

    struct member_action *items =
        room_for_one(out->items, out->count, &out->capacity, 16, sizeof *items);
    if (items == NULL) { /* what is sent is repeated by its timers; a closing, a view are not */
        bool repeated = kind == MEMBER_SEND || kind == MEMBER_LOG || kind == MEMBER_DELETE;
        m->starved = m->starved || !repeated;
        m->lost = (struct member_action){.text = ""};
        return &m->lost;
    }
    out->items = items;
    struct member_action *action = &out->items[out->count++];
    memset(action, 0, sizeof *action);
    action->kind = kind;
    action->text = "";
    action->trash = "";
    return action;
}

char *member_text(struct member *m, const char *text)
{
    static char empty[1];
    char *copy = wire_text_fit(&m->out->arena, text, TEXT_MAX);

    if (copy == NULL)
        return empty;
    error_clean(copy); /* it becomes an error's, or a line of the log */
    return copy;
}

void member_log(struct member *m, int level, const char *format, ...)
{
    struct member_action *action = member_add(m, MEMBER_LOG);
    char text[1024];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    action->text = member_text(m, text);
    action->level = level;
}

static char *member_own(const char *text)
{
    return strdup(text ? text : "");
}

void member_destroy(struct member **member)
{
    struct member *m = *member;

    if (m == NULL)
        return;
    for (size_t i = 0; i < m->pending_count; i++) {
        arena_free(&m->pending[i]->arena);
        free(m->pending[i]);
    }
    free((char *)m->options.job);
    free((char *)m->options.host);
    free((char *)m->options.checkpoint_dir);
    free((char *)m->options.signer);
    free(m->manifest_bytes);
    free(m);
    *member = NULL;
}

struct member *member_create(const struct member_options *options)
{
    struct member *m = calloc(1, sizeof *m);

    if (m == NULL)
        return NULL;
    m->options = *options;
    m->options.job = member_own(options->job);
    m->options.host = member_own(options->host);
    m->options.checkpoint_dir = member_own(options->checkpoint_dir);
    m->options.signer = member_own(options->signer);
    m->view.mode = VIEW_WAIT;
    m->hello_every = RESEND_MIN_MS;
    m->next_request = 1;
    m->ack_at = m->gap_since = m->gap_asked_at = NEVER;
    m->thaw_at = m->give_up_at = m->policy_until = NEVER;
    m->manifest_ask_at = m->manifest_until = NEVER;
    m->report_at = NEVER;
    m->error_until = m->exit_at = NEVER;
    m->join_until = m->snapshot_until = m->resend_at = NEVER;
    m->heartbeat_at = NEVER;
    m->suspects_since = NEVER;
    m->phase = PHASE_JOINING;
    if (m->options.job == NULL || m->options.host == NULL || m->options.checkpoint_dir == NULL ||
        m->options.signer == NULL)
        member_destroy(&m);
    return m;
}

const struct member_view *member_get_view(const struct member *m)
{
    return &m->view;
}

bool member_end_is_committed(const struct member *m)
{
    return m->part == PART_COMMITTED;
}

enum wire_phase member_phase(const struct member *m)
{
    return m->phase;
}

/* --- the view --------------------------------------------------------------------------------- */

static void member_step_measured(struct member *m, int64_t from_at, int64_t steps)
{
    pace_add(&m->pace, steps, m->now - from_at);
}

/* Time that the thread waited at a closed gate counts for no step. The next step begins with the
 * opening. The last one before ended with the closing, if the thread stands there, and else ends
 * when it arrives. */
static void member_watch_hold(struct member *m, enum view_mode mode)
{
    bool open = m->view.mode == VIEW_OPEN;

    if (open == (mode == VIEW_OPEN))
        return;
    if (open && m->step_from_at > 0 && m->begun == m->done && m->done >= m->last_begun)
        member_step_measured(m, m->step_from_at, m->done - m->last_begun + 1);
    m->held_from_at = open && m->begun > m->done ? m->step_from_at : 0;
    m->held_begun = m->last_begun;
    m->step_from_at = 0;
    if (open || !m->stepped)
        return; /* before the first step a program may do anything */
    m->last_begun = m->begun + 1;
    m->step_from_at = m->now;
}

void view_set(struct member *m, enum view_mode mode)
{
    if (m->view.mode == VIEW_END)
        return; /* for ever */
    member_watch_hold(m, mode);
    m->view.mode = mode;
    m->view.round = m->round;
    m->view.step = m->step;
    m->view.writer = m->writer;
    m->view.round_nonce = m->round_nonce;
    m->view.termination = m->cause == CAUSE_TERMINATION && m->part != PART_NONE;
    m->view_changed = true;
}

void close_gate(struct member *m, enum gate_use use)
{
    m->gate_use = use;
    member_add(m, MEMBER_CLOSE_GATE);
}

void view_open_or_end(struct member *m)
{
    if (m->view.mode == VIEW_END)
        return;
    if (m->error.status != MUSTER_OK && m->error_until == NEVER) {
        member_end(m, m->error.status, false, m->error.rank, m->error.code, m->error.step,
                   m->error.text);
        return;
    }
    bool wait = m->error.status != MUSTER_OK || !m->view.started || m->policy_wait || m->closing;
    view_set(m, wait ? VIEW_WAIT : VIEW_OPEN);
}

/* Latches the end: every later boundary returns this. The gate is closed for good. */
void member_end(struct member *m, enum muster_status status, bool restart, int rank, int code,
                int64_t step, const char *text)
{
    if (m->view.mode == VIEW_END)
        return;
    close_gate(m, GATE_NO_USE);
    part_move(m, PART_NONE);
    m->policy_wait = false;
    m->thaw_at = m->give_up_at = m->policy_until = m->manifest_until = m->error_until = NEVER;
    m->view.end.status = status;
    m->view.end.rank = rank;
    m->view.end.code = code;
    m->view.end.step = step;
    char *fit = member_text(m, text);
    snprintf(m->view.end.text, sizeof m->view.end.text, "%s", fit);
    m->view.leave_restart = restart;
    view_set(m, VIEW_END);
}

static enum wire_phase member_phase_now(const struct member *m)
{
    if (m->view.mode == VIEW_END)
        return PHASE_ENDED;
    if (!m->view.started)
        return m->view.resume_known ? PHASE_RESTORING : PHASE_JOINING;
    if (error_in_save(m))
        return PHASE_SAVING; /* whatever the round asks */
    if (m->in_hold)
        return PHASE_HOLD_SCOPE;
    switch (m->part) {
    case PART_FROZEN:
        return m->begun > m->done ? PHASE_STEPPING : PHASE_FROZEN;
    case PART_TO_STEP:
        return PHASE_TO_STEP;
    case PART_CAPTURING:
        return PHASE_SAVING;
    case PART_CAPTURED:
    case PART_COMMITTED:
        return m->view.mode == VIEW_WAIT ? PHASE_HOLDING : PHASE_STEPPING;
    default:
        return m->closing ? PHASE_CLOSING : PHASE_STEPPING;
    }
}

static void member_set_phase(struct member *m)
{
    enum wire_phase phase = member_phase_now(m);

    if (phase == m->phase)
        return;
    m->phase = phase;
    m->phase_since = m->now;
}

static void member_watch_steps(struct member *m)
{
    int64_t steps = m->begun - m->last_begun;

    if (steps == 0 || (steps == -1 && m->view.mode == VIEW_OPEN)) /* not begun since it may */
        return;
    if (steps > 0 && m->step_from_at > 0 && m->view.mode == VIEW_OPEN)
        member_step_measured(m, m->step_from_at, steps);
    /* what a restore set is no step, and what ends with the first step's beginning is none */
    m->step_from_at = m->view.mode == VIEW_OPEN ? m->now : 0;
    m->stepped |= steps > 0 && m->view.mode == VIEW_OPEN;
    m->last_begun = m->begun;
    m->last_begun_at = m->now;
}

/* At a closed gate for the first time: it has not waited before. A job that saves after each step
 * would measure none otherwise. */
static void member_watch_arrival(struct member *m)
{
    if (m->held_from_at > 0 && m->begun == m->done && m->begun >= m->held_begun)
        member_step_measured(m, m->held_from_at, m->begun - m->held_begun + 1);
    m->held_from_at = 0;
}

/* --- dispatch --------------------------------------------------------------------------------- */

static void member_on_restored(struct member *m, const struct member_input *in, bool ok)
{
    struct wire_msg message = message_make(ok ? WIRE_RESTORED : WIRE_RESTORE_FAILED);

    if (ok) {
        m->restored = true;
        message.u.restored = (struct wire_restored){.checkpoint = in->checkpoint, .step = in->step};
    } else {
        message.u.restore_failed = (struct wire_restore_failed){.checkpoint = in->checkpoint,
                                                                .step = in->step,
                                                                .text = member_text(m, in->text),
                                                                .final = in->final,
                                                                .imports = in->imports};
    }
    request_put(m, &message);
}

static void member_on_close(struct member *m, const struct member_input *in)
{
    if (m->closing)
        return;
    m->closing = true;
    m->why = in->why;
    m->exit_code = in->code;
    m->unfit = in->broken;
    m->stays_until = m->now + (m->view.joined ? GIVE_UP_MS : m->hello_open ? HEARTBEAT_MS : 0);
    if (m->view.mode != VIEW_END)
        close_gate(m, GATE_NO_USE);
    if (m->view.mode == VIEW_OPEN)
        view_set(m, VIEW_WAIT); /* a later view must not open it again */
    round_arrived(m);           /* a boundary too: the step that it ends may be the one to save */
}

static void member_dispatch(struct member *m, const struct member_input *in)
{
    switch (in->kind) {
    case MEMBER_FRAME:
        link_frame(m, in->message);
        break;
    case MEMBER_CONNECTED:
        link_connected(m);
        break;
    case MEMBER_GATE_CLOSED:
        round_gate_closed(m);
        break;
    case MEMBER_ARRIVED:
        member_watch_arrival(m);
        round_arrived(m);
        break;
    case MEMBER_SUSPECTS:
        link_suspects(m);
        break;
    case MEMBER_CAPTURED:
        round_captured(m, in);
        break;
    case MEMBER_SAVED:
        round_saved(m, in);
        break;
    case MEMBER_SAVE_FAILED:
        round_save_failed(m, in);
        break;
    case MEMBER_POLICY_SAVE:
        round_policy(m, in->step);
        break;
    case MEMBER_STEP_FAILED:
        step_failed(m, in);
        break;
    case MEMBER_NOTICE:
        notice_put(m, in);
        break;
    case MEMBER_NOTICE_CANCELLED:
        notice_drop(m, in->id);
        break;
    case MEMBER_RESTORED:
    case MEMBER_RESTORE_FAILED:
        member_on_restored(m, in, in->kind == MEMBER_RESTORED);
        break;
    case MEMBER_MANIFEST_WRITTEN:
    case MEMBER_MANIFEST_FAILED:
        manifest_done(m, in, in->kind == MEMBER_MANIFEST_WRITTEN);
        break;
    case MEMBER_ASK:
        ask_put(m, in);
        break;
    case MEMBER_DELETED:
        delete_done(m, in);
        break;
    case MEMBER_CLOSE:
        member_on_close(m, in);
        break;
    default: /* a tick, or nothing known */
        break;
    }
}

void member_step(struct member *m, const struct member_input *in, struct member_actions *out)
{
    hearing_look(m, in->now_boot_ms);
    m->now = in->now_boot_ms;
    m->begun = in->begun;
    m->done = in->done;
    m->in_hold = in->in_hold;
    m->out = out;
    member_watch_steps(m);
    if (m->phase_since == 0)
        m->phase_since = m->now;
    member_dispatch(m, in);
    notices_say(m);
    if (in->kind !=
        MEMBER_GATE_CLOSED) { /* between the question and its answer nothing else happens */
        link_tick(m);
        part_tick(m);
        unheard_tick(m);
    }
    member_leave(m);
    member_set_phase(m);
    notices_announce(m);
    if (m->view_changed) {
        member_add(m, MEMBER_VIEW);
        m->view_changed = false;
    }
    m->out = NULL;
}

bool member_is_starved(const struct member *m)
{
    return m->starved;
}

int64_t member_wakeup_boot_ms(const struct member *m)
{
    int64_t a = link_wakeup(m), b = round_wakeup(m), c = leave_wakeup(m);

    a = a < b ? a : b;
    return a < c ? a : c;
}

int64_t member_heard_boot_ms(const struct member *m)
{
    return m->heard_at;
}
