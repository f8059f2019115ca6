#include "tests/support/member_fixture.h"

#include "tests/support/text_line.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* --- the core and its driver ------------------------------------------------------------------ */

void member_fixture_open(struct member_fixture *f, uint64_t rank, enum wire_layout layout)
{
    struct member_options options = {.job = "train",
                                     .role = rank == 0 ? ROLE_CHIEF : ROLE_WORKER,
                                     .rank = rank,
                                     .world_size = 3,
                                     .incarnation = MEMBER_INCARNATION,
                                     .host = "host",
                                     .pid = 4000,
                                     .layout = layout,
                                     .checkpoint_dir = "/ckpt",
                                     .join_timeout_ms = 60000,
                                     .abort_timeout_ms = 20000,
                                     .grace_period_ms = -1};

    memset(f, 0, sizeof *f);
    f->now = MEMBER_START_MS;
    f->gate_closed = true;
    f->start_id = 501;
    f->epoch = 3;
    f->generation = 2;
    f->seq = 10;
    f->rank = rank;
    for (uint64_t n = 0; n < 3; n++)
        f->members[n] = (struct wire_member){n, n == rank ? MEMBER_INCARNATION : 90 + n, 0};
    member_actions_init(&f->out);
    f->m = member_create(&options);
    assert_non_null(f->m);
}

void member_fixture_close(struct member_fixture *f)
{
    member_destroy(&f->m);
    member_actions_free(&f->out);
}

int member_set_up(void **state)
{
    static struct member_fixture f;

    member_fixture_running(&f, 1, LAYOUT_REPLICATED);
    *state = &f;
    return 0;
}

int member_tear_down(void **state)
{
    member_fixture_close(*state);
    return 0;
}

void member_anew(struct member_fixture *f)
{
    member_fixture_close(f);
    member_fixture_running(f, 1, LAYOUT_REPLICATED);
}

/* The driver's part of member.h's contract. Returns whether the gate was asked to be closed. */
static bool carry_out(struct member_fixture *f, size_t first)
{
    bool close = false;

    for (size_t i = first; i < f->out.count; i++) {
        if (f->out.items[i].kind == MEMBER_CLOSE_GATE)
            close = f->gate_closed = true;
        if (f->out.items[i].kind == MEMBER_LOG) {
            f->said_level = f->out.items[i].level;
            snprintf(f->said, sizeof f->said, "%s", f->out.items[i].text);
        }
        if (f->out.items[i].kind != MEMBER_VIEW)
            continue;
        assert_true(f->views_count < sizeof f->views / sizeof f->views[0]);
        f->views[f->views_count].mode = member_seen(f)->mode;
        f->views[f->views_count].step = member_seen(f)->step;
        f->views[f->views_count].status = member_seen(f)->end.status;
        f->views[f->views_count++].restart = member_seen(f)->leave_restart;
        if (member_seen(f)->mode == VIEW_OPEN) {
            f->gate_closed = false;
            f->was_open = true;
        } else {
            assert_true(f->gate_closed); /* the core closed it before */
        }
    }
    return close;
}

/* What is due before the next wake-up would be done late: a tick before it finds nothing to do.
 * That no broker is heard is for people, and comes with the next heartbeat. */
static void check_wakeup(struct member_fixture *f)
{
    struct member_input early = {.kind = MEMBER_TICK,
                                 .now_boot_ms = f->now,
                                 .begun = f->fed_begun,
                                 .done = f->fed_done,
                                 .in_hold = f->fed_in_hold};
    bool unheard = f->m->view.unheard;
    size_t first = f->out.count;

    if (f->now >= member_wakeup_boot_ms(f->m) || f->m->view_changed) /* by the test itself */
        return;
    member_step(f->m, &early, &f->out);
    for (size_t i = first; i < f->out.count && f->m->view.unheard == unheard; i++)
        assert_int_equal(f->out.items[i].kind, MEMBER_LOG);
}

static void step(struct member_fixture *f, struct member_input input)
{
    check_wakeup(f);
    size_t first = f->out.count;

    f->fed_begun = f->begun;
    f->fed_done = f->done;
    f->fed_in_hold = f->in_hold;
    input.now_boot_ms = f->now;
    input.begun = f->begun;
    input.done = f->done;
    input.in_hold = f->in_hold;
    member_step(f->m, &input, &f->out);
    assert_false(member_moved_wrong(f->m));
    for (int i = 0; carry_out(f, first); i++) {
        struct member_input closed = {
            .kind = MEMBER_GATE_CLOSED, .now_boot_ms = f->now, .begun = f->begun, .done = f->done};
        assert_true(i < 4);
        first = f->out.count;
        member_step(f->m, &closed, &f->out);
    }
}

static void clear(struct member_fixture *f)
{
    member_actions_clear(&f->out);
    f->views_count = 0;
}

void member_feed(struct member_fixture *f, struct member_input input)
{
    clear(f);
    step(f, input);
}

void member_tick_at(struct member_fixture *f, int64_t now)
{
    f->now = now;
    member_feed(f, (struct member_input){.kind = MEMBER_TICK});
}

void member_pass(struct member_fixture *f, int64_t ms, bool broker)
{
    int64_t until = f->now + ms;

    clear(f);
    while (f->now < until) {
        int64_t at = member_wakeup_boot_ms(f->m);
        size_t first = f->out.count;
        assert_true(at > f->now); /* a wakeup that is due was served: no busy loop */
        f->now = at < until ? at : until;
        step(f, (struct member_input){.kind = MEMBER_TICK});
        for (size_t i = first; broker && i < f->out.count; i++)
            if (f->out.items[i].kind == MEMBER_SEND &&
                f->out.items[i].message.type == WIRE_HEARTBEAT) {
                struct wire_msg alive = member_down(f, WIRE_ALIVE);
                alive.u.alive.awaited_round = f->awaited;
                step(f, (struct member_input){.kind = MEMBER_FRAME, .message = &alive});
                break;
            }
    }
}

const struct member_view *member_seen(const struct member_fixture *f)
{
    return member_get_view(f->m);
}

/* --- the broker ------------------------------------------------------------------------------- */

struct wire_msg member_down(const struct member_fixture *f, enum wire_type type)
{
    struct wire_msg message;

    memset(&message, 0, sizeof message);
    message.type = type;
    message.down = (struct wire_down){.start_id = f->start_id,
                                      .broker_epoch = f->epoch,
                                      .job = "train",
                                      .generation = f->generation,
                                      .last_seq = f->seq};
    return message;
}

void member_frame(struct member_fixture *f, struct wire_msg message)
{
    member_feed(f, (struct member_input){.kind = MEMBER_FRAME, .message = &message});
}

void member_welcome(struct member_fixture *f, bool snapshot)
{
    struct wire_msg message = member_down(f, WIRE_WELCOME);

    message.u.welcome = (struct wire_welcome){.speaks = WIRE_SPEAKS,
                                              .nonce = f->m->nonce,
                                              .generation = f->generation,
                                              .world_size = 3,
                                              .events_endpoint = "ipc:///e",
                                              .heartbeat_ms = HEARTBEAT_MS,
                                              .last_request = f->last_request,
                                              .snapshot_follows = snapshot};
    member_frame(f, message);
}

struct wire_snapshot member_snapshot_made(const struct member_fixture *f)
{
    return (struct wire_snapshot){.seq = f->seq,
                                  .generation = f->generation,
                                  .generation_state = GENERATION_RUNNING,
                                  .resume_ready = true,
                                  .resume_path = "",
                                  .round_step = -1,
                                  .named_step = -1,
                                  .error_rank = -1,
                                  .error_text = "",
                                  .end_text = "",
                                  .left_ms = -1};
}

void member_snapshot(struct member_fixture *f, struct wire_snapshot snapshot)
{
    struct wire_msg message = member_down(f, WIRE_SNAPSHOT);

    message.u.snapshot = snapshot;
    member_frame(f, message);
}

struct wire_event member_event(const struct member_fixture *f, enum wire_event_kind kind)
{
    return (struct wire_event){.kind = kind,
                               .generation = f->generation,
                               .rank = -1,
                               .step = -1,
                               .left_ms = -1,
                               .text = "",
                               .path = ""};
}

void member_tell(struct member_fixture *f, struct wire_event event)
{
    event.seq = ++f->seq;
    struct wire_msg message = member_down(f, WIRE_EVENT);
    message.u.event = event;
    member_frame(f, message);
}

static void ack(struct member_fixture *f, uint64_t request, unsigned code)
{
    struct wire_msg message = member_down(f, WIRE_ACK);

    if (code == MUSTER_OK && request > f->last_request)
        f->last_request = request;
    message.u.ack = (struct wire_ack){.request = request, .code = code, .text = ""};
    step(f, (struct member_input){.kind = MEMBER_FRAME, .message = &message});
}

void member_ack(struct member_fixture *f, uint64_t request, unsigned code)
{
    clear(f);
    ack(f, request, code);
}

void member_ack_all(struct member_fixture *f)
{
    clear(f);
    while (f->m->pending_count > 0)
        ack(f, f->m->pending[0]->message.up.request, MUSTER_OK);
}

void member_alive(struct member_fixture *f)
{
    member_frame(f, member_down(f, WIRE_ALIVE));
}

void member_freeze(struct member_fixture *f, uint64_t round, enum wire_cause cause, bool abort_mode)
{
    struct wire_event event = member_event(f, EVENT_FREEZE);

    event.round = round;
    event.cause = cause;
    event.flags = abort_mode ? EVENT_FLAG_ABORT : 0;
    event.members.items = f->members;
    event.members.count = 3;
    member_tell(f, event);
}

void member_decision(struct member_fixture *f, uint64_t round, enum wire_cause cause, int64_t at,
                     unsigned writers)
{
    struct wire_event event = member_event(f, EVENT_DECISION);

    event.round = round;
    event.cause = cause;
    event.step = at;
    for (unsigned n = 0; n < 3; n++)
        f->members[n].flags = writers & (1u << n) ? MEMBER_FLAG_WRITER : 0;
    event.members.items = f->members;
    event.members.count = 3;
    member_tell(f, event);
}

void member_commit(struct member_fixture *f, uint64_t round, enum wire_cause cause, int64_t at,
                   bool manifest)
{
    struct wire_event event = member_event(f, EVENT_COMMIT);

    event.round = event.checkpoint = round;
    event.cause = cause;
    event.step = at;
    event.rank = manifest ? (int64_t)f->rank : 0;
    event.incarnation = manifest ? MEMBER_INCARNATION : 1;
    member_tell(f, event);
}

void member_abort(struct member_fixture *f, uint64_t round, bool retry)
{
    struct wire_event event = member_event(f, EVENT_ABORT);

    event.round = round;
    event.flags = retry ? EVENT_FLAG_RETRY : 0;
    member_tell(f, event);
}

static void peer_error(struct member_fixture *f, int64_t rank, uint64_t flags, uint64_t round)
{
    struct wire_event event = member_event(f, EVENT_PEER_ERROR);

    event.rank = rank;
    event.code = MUSTER_E_STEP;
    event.left_ms = 3;
    event.step = 7;
    event.text = "loss is NaN";
    event.flags = flags;
    event.round = round;
    member_tell(f, event);
}

void member_peer_error(struct member_fixture *f, int64_t rank, bool follows)
{
    peer_error(f, rank, follows ? EVENT_FLAG_ROUND_FOLLOWS : 0, 0);
}

void member_peer_error_before(struct member_fixture *f, int64_t rank, uint64_t round)
{
    peer_error(f, rank, EVENT_FLAG_ROUND_FOLLOWS, round);
}

/* --- the training thread ---------------------------------------------------------------------- */

void member_stand(struct member_fixture *f, int64_t at)
{
    f->begun = f->done = at;
}

void member_in_step(struct member_fixture *f, int64_t at)
{
    f->begun = at;
    f->done = at - 1;
}

void member_capture(struct member_fixture *f, enum wire_cause cause)
{
    member_stand(f, 5);
    member_freeze(f, 1, cause, false);
    member_ack_all(f);
    member_decision(f, 1, cause, 5, 2);
    member_arrive(f);
    member_saved(f, 1, 1);
    member_ack_all(f);
}

void member_arrive(struct member_fixture *f)
{
    f->begun = f->done;
    member_feed(f, (struct member_input){.kind = MEMBER_ARRIVED});
}

void member_saved(struct member_fixture *f, uint64_t round, size_t files)
{
    static struct wire_file told[FILES_SHARD_MAX];

    for (size_t i = 0; i < files; i++)
        told[i] = (struct wire_file){"weights", 10, "xxh3-128:0"};
    member_feed(f, (struct member_input){.kind = MEMBER_SAVED,
                                         .round = round,
                                         .files = told,
                                         .files_count = files,
                                         .bytes = 10 * files,
                                         .save_ms = 12,
                                         .epoch = 1});
}

void member_save_failed(struct member_fixture *f, uint64_t round, int64_t code)
{
    member_feed(f, (struct member_input){
                       .kind = MEMBER_SAVE_FAILED, .round = round, .code = code, .text = "no"});
}

void member_step_failed(struct member_fixture *f)
{
    f->begun = f->done;
    member_feed(f, (struct member_input){
                       .kind = MEMBER_STEP_FAILED, .code = 5, .step = f->done, .text = "mine"});
}

void member_policy(struct member_fixture *f)
{
    f->begun = f->done;
    f->gate_closed = true;
    member_feed(f, (struct member_input){.kind = MEMBER_POLICY_SAVE, .step = f->done});
}

void member_notice(struct member_fixture *f, const char *id, int64_t left_ms)
{
    member_feed(f, (struct member_input){.kind = MEMBER_NOTICE,
                                         .id = id,
                                         .notice_kind = NOTICE_PREEMPT,
                                         .source = "test",
                                         .left_ms = left_ms,
                                         .cancellable = true,
                                         .text = "spot"});
}

void member_close(struct member_fixture *f, enum wire_leave_why why)
{
    f->begun = f->done;
    member_feed(f, (struct member_input){.kind = MEMBER_CLOSE, .why = why, .code = 9});
}

void member_fixture_running(struct member_fixture *f, uint64_t rank, enum wire_layout layout)
{
    struct wire_snapshot snapshot;

    member_fixture_open(f, rank, layout);
    member_tick_at(f, f->now);
    member_welcome(f, true);
    snapshot = member_snapshot_made(f);
    snapshot.generation_state = GENERATION_JOINING;
    member_snapshot(f, snapshot);
    member_feed(f, (struct member_input){.kind = MEMBER_RESTORED, .checkpoint = 0, .step = 0});
    member_ack_all(f);
    member_tell(f, member_event(f, EVENT_STARTED));
    assert_int_equal(member_seen(f)->mode, VIEW_OPEN);
    f->now += 100;
    member_alive(f);
    clear(f);
}

/* --- the actions as text ---------------------------------------------------------------------- */

static void put_sent(struct line *line, const struct wire_msg *m)
{
    line_put(line, "%s", wire_type_name(m->type));
    if (m->up.request > 0)
        line_put(line, " #%llu", (unsigned long long)m->up.request);
    switch (m->type) {
    case WIRE_REPORT:
        line_put(line, " r%llu %lld/%lld%s", (unsigned long long)m->u.report.round,
                 (long long)m->u.report.begun, (long long)m->u.report.done,
                 m->u.report.aborted ? " aborted" : "");
        break;
    case WIRE_AT_STEP:
        line_put(line, " r%llu S%lld%s", (unsigned long long)m->u.at_step.round,
                 (long long)m->u.at_step.step, m->u.at_step.captured ? " captured" : "");
        break;
    case WIRE_FILES:
        line_put(line, " %zu", m->u.files.files.count);
        break;
    case WIRE_SAVED:
        line_put(line, " r%llu S%lld %llu files", (unsigned long long)m->u.saved.round,
                 (long long)m->u.saved.step, (unsigned long long)m->u.saved.files_count);
        break;
    case WIRE_SAVE_FAILED:
        line_put(line, " r%llu", (unsigned long long)m->u.save_failed.round);
        break;
    case WIRE_PAST:
        line_put(line, " r%llu at %lld", (unsigned long long)m->u.past.round,
                 (long long)m->u.past.begun);
        break;
    case WIRE_SAVE_AT:
        line_put(line, " S%lld", (long long)m->u.save_at.step);
        break;
    case WIRE_EVENTS_GET:
        line_put(line, " %llu", (unsigned long long)m->u.events_get.from_seq);
        break;
    case WIRE_MANIFEST_GET:
        line_put(line, " c%llu+%llu", (unsigned long long)m->u.manifest_get.checkpoint,
                 (unsigned long long)m->u.manifest_get.offset);
        break;
    case WIRE_LEAVE:
        line_put(line, " %s", wire_leave_why_name((unsigned)m->u.leave.why));
        break;
    default:
        break;
    }
}

static void put_view(struct line *line, const struct member_fixture *f, size_t n)
{
    switch (f->views[n].mode) {
    case VIEW_WAIT:
        line_put(line, "view wait");
        break;
    case VIEW_OPEN:
        line_put(line, "view open");
        break;
    case VIEW_STEP_TO:
        line_put(line, "view step_to %lld", (long long)f->views[n].step);
        break;
    case VIEW_CAPTURE:
        line_put(line, "view capture %lld", (long long)f->views[n].step);
        break;
    case VIEW_END:
        line_put(line, "view end %s%s", muster_status_name(f->views[n].status),
                 f->views[n].restart ? " restart" : "");
        break;
    }
}

static void put_action(struct line *line, const struct member_fixture *f,
                       const struct member_action *action, size_t *view)
{
    switch (action->kind) {
    case MEMBER_SEND:
        put_sent(line, &action->message);
        break;
    case MEMBER_SUBSCRIBE:
        line_put(line, "subscribe %s", action->text);
        break;
    case MEMBER_CLOSE_GATE:
        line_put(line, "close");
        break;
    case MEMBER_VIEW:
        put_view(line, f, (*view)++);
        break;
    case MEMBER_ON_ERROR:
        line_put(line, "on_error %s", muster_status_name(action->error.status));
        break;
    case MEMBER_WRITE_MANIFEST:
        line_put(line, "manifest r%llu S%lld %zu bytes", (unsigned long long)action->round,
                 (long long)action->step, action->bytes_count);
        break;
    case MEMBER_DISCARD_ROUND:
        line_put(line, "discard r%llu", (unsigned long long)action->round);
        break;
    case MEMBER_DELETE:
        line_put(line, "delete %llu S%lld %s", (unsigned long long)action->round,
                 (long long)action->step, action->text);
        break;
    case MEMBER_NOTICE_WITHDRAWN:
        line_put(line, "withdrawn %s", action->text);
        break;
    case MEMBER_EXIT_PROCESS:
        line_put(line, "exit%s", action->restart ? " restart" : "");
        break;
    case MEMBER_LOG:
        line_put(line, "log");
        break;
    }
}

const char *member_text_of(struct member_fixture *f)
{
    struct line line = {f->text, 0, sizeof f->text};
    size_t view = 0;

    f->text[0] = '\0';
    for (size_t i = 0; i < f->out.count; i++) {
        if (line.used > 0)
            line_put(&line, "; ");
        put_action(&line, f, &f->out.items[i], &view);
    }
    return f->text;
}

const struct wire_msg *member_sent(const struct member_fixture *f, enum wire_type type)
{
    for (size_t i = 0; i < f->out.count; i++)
        if (f->out.items[i].kind == MEMBER_SEND && f->out.items[i].message.type == type)
            return &f->out.items[i].message;
    return NULL;
}

size_t member_sent_count(const struct member_fixture *f, enum wire_type type)
{
    size_t count = 0;

    for (size_t i = 0; i < f->out.count; i++)
        count += f->out.items[i].kind == MEMBER_SEND && f->out.items[i].message.type == type;
    return count;
}

const struct member_action *member_did(const struct member_fixture *f, enum member_action_kind kind)
{
    for (size_t i = 0; i < f->out.count; i++)
        if (f->out.items[i].kind == kind)
            return &f->out.items[i];
    return NULL;
}
