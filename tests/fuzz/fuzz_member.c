/* A node's core and what its broker, its training thread and time may do to it, in any order. The
 * input is a text: a letter says what happens, the digits behind it with what (see `deeds`); all
 * else is skipped. The first two digits are the layout and whether it runs already. After each the
 * invariants of member_rules hold. At the end the broker is silent and the thread obeys its orders:
 * it is let go, told to end, or was never let in. */
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/member_rules.h"

#define DEEDS_MAX 400    /* of one input */
#define LEAP_MS 61000    /* from one look of the end to the next */
#define LEAPS_MAX 60     /* an hour: the longest bound is WAY_UNMEASURED_MS */
#define PASSES_MAX 4     /* at one moment */
#define WAKEUPS_MAX 50   /* of one wait */
#define WALK_STEPS_MAX 8 /* that the thread takes between two looks */

struct play {
    struct member_fixture f;
    struct member_rules rules;
    struct bytes in;
    uint64_t arrived_round; /* told to have arrived in */
};

/* --- operands --------------------------------------------------------------------------------- */

static unsigned digit(struct play *p, unsigned count)
{
    return (take(&p->in) - (unsigned)'0') % count;
}

static uint64_t some_round(struct play *p)
{
    switch (digit(p, 5)) {
    case 0:
        return p->f.m->round;
    case 1:
        return p->f.m->round + 1;
    case 2:
        return p->f.m->round - 1;
    case 3:
        return 0;
    default:
        return UINT64_MAX;
    }
}

static int64_t some_step(struct play *p)
{
    switch (digit(p, 7)) {
    case 0:
        return p->f.begun;
    case 1:
        return p->f.begun + 1;
    case 2:
        return p->f.begun + 3;
    case 3:
        return p->f.done;
    case 4:
        return -1;
    case 5:
        return INT64_MAX;
    default:
        return INT64_MIN;
    }
}

static int64_t some_time(struct play *p)
{
    static const int64_t times[] = {-1, 0, 900, 5000, 40000, INT64_MAX, INT64_MIN};

    return times[digit(p, sizeof times / sizeof times[0])];
}

static const char *some_text(struct play *p)
{
    static const char *const texts[] = {"n1", "", "n2", "\xff\x80 not UTF-8"};

    return texts[digit(p, 4)];
}

/* --- the broker ------------------------------------------------------------------------------- */

static void frame(struct play *p, struct wire_msg message)
{
    member_frame(&p->f, message);
    member_rules_check(&p->rules, &p->f);
}

static void feed(struct play *p, struct member_input input)
{
    member_feed(&p->f, input);
    member_rules_check(&p->rules, &p->f);
}

static void do_welcome(struct play *p)
{
    struct wire_msg message = member_down(&p->f, WIRE_WELCOME);
    unsigned variant = digit(p, 5);

    message.u.welcome = (struct wire_welcome){.speaks = WIRE_SPEAKS,
                                              .nonce = p->f.m->nonce - (variant == 4),
                                              .generation = p->f.generation,
                                              .world_size = 3,
                                              .events_endpoint = variant == 3 ? "" : "ipc:///e",
                                              .heartbeat_ms = HEARTBEAT_MS,
                                              .last_request = p->f.last_request,
                                              .snapshot_follows = variant != 1};
    if (variant == 2) /* its database was lost */
        message.u.welcome.last_request = p->f.last_request = 0;
    frame(p, message);
}

static void do_snapshot(struct play *p)
{
    static const unsigned states[] = {GENERATION_RUNNING, GENERATION_JOINING, GENERATION_ENDING,
                                      GENERATION_ENDED};
    struct wire_msg message = member_down(&p->f, WIRE_SNAPSHOT);
    struct wire_snapshot *s = &message.u.snapshot;
    unsigned variant = digit(p, 5);

    *s = member_snapshot_made(&p->f);
    s->generation_state = states[digit(p, 4)];
    if (variant == 1) { /* a round of its own */
        s->round = some_round(p);
        s->round_state = ROUND_FREEZING + digit(p, 2);
        s->round_cause = CAUSE_TERMINATION + digit(p, 5);
        s->round_step = some_step(p);
        s->round_flags = digit(p, 2);
        s->member = digit(p, 3) != 2;
        s->writer = digit(p, 2) == 0;
        s->taken = digit(p, 3) == 2;
    } else if (variant == 2) { /* the outcome of the one that it named */
        s->named_round = some_round(p);
        s->named_state = digit(p, ROUND_STATE_COUNT);
        s->named_cause = digit(p, CAUSE_COUNT);
        s->named_step = some_step(p);
    } else if (variant == 3) { /* an end */
        s->error_rank = digit(p, 4);
        s->error_code = digit(p, 3);
        s->error_text = some_text(p);
        s->end_status = digit(p, MUSTER_STATUS_COUNT);
        s->end_text = some_text(p);
        s->round = some_round(p);
    } else if (variant == 4) { /* the manifest of the resume choice is missing */
        s->resume_ready = false;
        s->resume_repair = true;
        s->resume_checkpoint = some_round(p);
        s->seq = p->f.seq + digit(p, 3) - 1;
    }
    frame(p, message);
}

static void do_event(struct play *p)
{
    struct wire_event event = member_event(&p->f, digit(p, EVENT_KIND_COUNT));

    event.round = event.checkpoint = some_round(p);
    event.cause = CAUSE_TERMINATION + digit(p, 5);
    event.step = some_step(p);
    event.flags = digit(p, 8);
    event.rank = (int64_t)digit(p, 4) - 1;
    event.incarnation = digit(p, 2) == 0 ? MEMBER_INCARNATION : 90;
    event.text = some_text(p);
    for (unsigned n = 0; n < 3; n++)
        p->f.members[n].flags = digit(p, 2) == 0 ? MEMBER_FLAG_WRITER : 0;
    event.members.items = p->f.members;
    event.members.count = 3;
    if (digit(p, 8) == 7)
        p->f.seq += digit(p, 3); /* some were lost */
    member_tell(&p->f, event);
    member_rules_check(&p->rules, &p->f);
}

/* The usual ones in one letter each. */
static void do_freeze(struct play *p)
{
    enum wire_cause cause = CAUSE_TERMINATION + digit(p, 2);

    member_freeze(&p->f, p->f.m->round + 1, cause, digit(p, 3) == 2);
    member_rules_check(&p->rules, &p->f);
}

static void do_decision(struct play *p)
{
    uint64_t round = p->f.m->round + (digit(p, 2) == 1); /* or that of a policy save */
    int64_t step = some_step(p);
    enum wire_cause cause = CAUSE_TERMINATION + digit(p, 2);

    member_decision(&p->f, round, cause, step, digit(p, 8));
    member_rules_check(&p->rules, &p->f);
}

static void do_outcome(struct play *p)
{
    bool aborted = digit(p, 2) == 1;
    unsigned first = digit(p, 2);

    if (aborted)
        member_abort(&p->f, p->f.m->round, first == 1);
    else
        member_commit(&p->f, p->f.m->round, CAUSE_TERMINATION + first, p->f.done, digit(p, 2) == 0);
    member_rules_check(&p->rules, &p->f);
}

static void do_ack(struct play *p)
{
    struct wire_msg message = member_down(&p->f, WIRE_ACK);
    unsigned variant = digit(p, 4);
    uint64_t first = p->f.m->next_request - p->f.m->pending_count;
    uint64_t request = variant == 0   ? first
                       : variant == 1 ? p->f.m->next_request - 1
                                      : first + digit(p, 5) - 2;
    unsigned code = variant == 3 ? digit(p, MUSTER_STATUS_COUNT) : MUSTER_OK;

    if (code == MUSTER_OK && request > p->f.last_request && request < p->f.m->next_request)
        p->f.last_request = request;
    message.u.ack = (struct wire_ack){.request = request, .code = code, .text = "why"};
    frame(p, message);
}

static void do_small_frame(struct play *p)
{
    static const enum wire_type types[] = {WIRE_ALIVE, WIRE_PING,    WIRE_PROBE,
                                           WIRE_HINT,  WIRE_REFUSED, WIRE_MANIFEST_CHUNK};
    struct wire_msg message = member_down(&p->f, types[digit(p, 6)]);
    static const uint8_t text[] = "{\"muster\"}";

    message.down.last_seq += digit(p, 3);
    if (message.type == WIRE_PROBE)
        message.u.probe.nonce = p->f.m->probe_nonce;
    else if (message.type == WIRE_HINT)
        message.u.hint = (struct wire_hint){.id = "n1", .kind = digit(p, NOTICE_KIND_COUNT)};
    else if (message.type == WIRE_REFUSED) {
        message.u.refused.nonce = p->f.m->nonce;
        message.u.refused.code = digit(p, MUSTER_STATUS_COUNT);
        message.u.refused.text = "rank 1 is held";
        message.u.refused.retry = digit(p, 2) == 0;
    } else if (message.type == WIRE_MANIFEST_CHUNK) {
        message.u.manifest_chunk.checkpoint = p->f.m->manifest;
        message.u.manifest_chunk.step = some_step(p);
        message.u.manifest_chunk.offset = p->f.m->manifest_have;
        message.u.manifest_chunk.total = 1 + digit(p, 12);
        message.u.manifest_chunk.bytes.data = text;
        message.u.manifest_chunk.bytes.size = digit(p, 10);
    }
    frame(p, message);
}

static void do_restart_of_broker(struct play *p)
{
    unsigned variant = digit(p, 4);

    p->f.start_id++;
    p->f.epoch += variant != 3; /* 3: restored from a copy */
    p->f.generation += variant == 1;
    if (variant == 3)
        p->f.seq = p->f.seq > 3 ? p->f.seq - 3 : 0;
}

/* A frame of any content; half of them as from this broker. */
static void do_frame(struct play *p)
{
    bool own = digit(p, 2) == 0;
    size_t size = take(&p->in);
    struct muster_error err;
    struct arena arena;
    struct wire_msg message;

    if (size > p->in.left)
        size = p->in.left;
    arena_init(&arena, (size_t)1 << 20);
    if (wire_decode(p->in.at, size, &arena, &message, &err) == MUSTER_OK) {
        if (own && !wire_is_up(message.type))
            message.down = member_down(&p->f, message.type).down;
        if (own && message.type == WIRE_EVENT)
            message.u.event.seq = ++p->f.seq;
        if (own && message.type == WIRE_WELCOME)
            message.u.welcome.nonce = p->f.m->nonce;
        if (message.type == WIRE_DELETE)
            member_rules_told(&p->rules, message.u.delete.checkpoint);
        frame(p, message);
        if (p->f.m->known_seq > p->f.seq)
            p->f.seq = p->f.m->applied_seq; /* the next event is the one that it waits for */
    }
    arena_free(&arena);
    p->in.at += size;
    p->in.left -= size;
}

/* --- the training thread ---------------------------------------------------------------------- */

static void save(struct play *p, bool well)
{
    uint64_t round = member_seen(&p->f)->round;

    if (well) {
        member_rules_saved(&p->rules, round);
        member_saved(&p->f, round, 1);
    } else {
        member_save_failed(&p->f, round, MUSTER_E_SAVE);
    }
    member_rules_check(&p->rules, &p->f);
}

/* One move of a thread that obeys: the end of its step, the begin of one, or what its orders say */
static void move(struct play *p, bool well)
{
    const struct member_view *view = member_seen(&p->f);
    bool free_to_begin =
        !p->f.gate_closed || (view->mode == VIEW_STEP_TO && p->f.begun < view->step);

    if (p->f.begun > p->f.done) {
        p->f.done = p->f.begun;
        p->arrived_round = 0;
    } else if (free_to_begin && view->mode != VIEW_END) {
        p->f.begun++;
    } else if (view->mode == VIEW_CAPTURE && view->writer) {
        save(p, well);
    } else if (view->mode != VIEW_END && p->arrived_round != view->round + 1) {
        p->arrived_round = view->round + 1;
        feed(p, (struct member_input){.kind = MEMBER_ARRIVED});
    }
}

static void do_moves(struct play *p)
{
    for (unsigned moves = 1 + digit(p, 9); moves > 0; moves--)
        move(p, true);
}

static void do_failed_save(struct play *p)
{
    move(p, false);
}

static void do_policy_save(struct play *p)
{
    if (p->f.gate_closed || p->f.begun > p->f.done || p->f.m->closing)
        return;
    member_policy(&p->f);
    member_rules_check(&p->rules, &p->f);
}

static void do_failed_step(struct play *p)
{
    if (p->f.begun == p->f.done)
        return;
    member_step_failed(&p->f);
    member_rules_check(&p->rules, &p->f);
}

static void do_close(struct play *p)
{
    bool broken = digit(p, 3) == 2;

    if (p->f.begun > p->f.done && !broken)
        return;
    p->f.begun = p->f.done;
    p->f.gate_closed = true;
    feed(p,
         (struct member_input){
             .kind = MEMBER_CLOSE, .why = digit(p, LEAVE_WHY_COUNT), .code = 9, .broken = broken});
}

static void do_restored(struct play *p)
{
    bool well = digit(p, 2) == 0;

    if (member_seen(&p->f)->started || !member_seen(&p->f)->resume_known)
        return;
    feed(p, (struct member_input){.kind = well ? MEMBER_RESTORED : MEMBER_RESTORE_FAILED,
                                  .checkpoint = member_seen(&p->f)->resume_checkpoint,
                                  .step = member_seen(&p->f)->resume_step,
                                  .text = some_text(p)});
}

static void do_notice(struct play *p)
{
    struct member_input input = {.kind = MEMBER_NOTICE_CANCELLED, .source = "file"};

    if (digit(p, 3) == 2) {
        input.id = some_text(p);
    } else {
        input.kind = MEMBER_NOTICE;
        input.id = digit(p, 2) == 0 ? "n1" : "n2";
        input.notice_kind = 1 + digit(p, NOTICE_KIND_COUNT - 1);
        input.left_ms = some_time(p);
        input.cancellable = digit(p, 2) == 0;
        input.text = some_text(p);
    }
    feed(p, input);
}

static void do_manifest(struct play *p)
{
    bool well = digit(p, 2) == 0;

    if (!p->f.m->manifest_writing)
        return;
    feed(p, (struct member_input){.kind = well ? MEMBER_MANIFEST_WRITTEN : MEMBER_MANIFEST_FAILED,
                                  .checkpoint = p->f.m->manifest,
                                  .text = "/ckpt/8"});
}

/* --- questions and deletions ------------------------------------------------------------------ */

static void do_ask(struct play *p)
{
    static const enum wire_type types[] = {WIRE_POLICIES, WIRE_SAVE_WISH, WIRE_SWEEP,
                                           WIRE_DROP,     WIRE_PIN,       WIRE_UNPIN};
    struct wire_msg ask = {.type = types[digit(p, 6)], .up = {.job = ""}};

    if (ask.type == WIRE_POLICIES)
        ask.u.policies = (struct wire_policies){.keep = "latest 1", .save = "", .trash = ""};
    else if (ask.type == WIRE_PIN)
        ask.u.pin.id = "reader";
    else if (ask.type == WIRE_UNPIN)
        ask.u.unpin.id = "reader";
    feed(p, (struct member_input){.kind = MEMBER_ASK, .ask = &ask});
}

static void do_delete(struct play *p)
{
    struct wire_msg message = member_down(&p->f, WIRE_DELETE);

    message.u.delete.checkpoint = 1 + digit(p, 9);
    message.u.delete.path = digit(p, 2) == 0 ? "" : "/ckpt/8";
    message.u.delete.trash = "";
    member_rules_told(&p->rules, message.u.delete.checkpoint);
    frame(p, message);
}

/* The writer's answer to what it was told, right or lost; or one that nobody asked for. */
static void do_deleted(struct play *p)
{
    uint64_t checkpoint = 1 + digit(p, 9);
    unsigned how = digit(p, 3);

    member_rules_deleted(&p->rules, checkpoint);
    if (how == 2) {
        member_deletion_lost(p->f.m, checkpoint);
        return;
    }
    feed(p, (struct member_input){.kind = MEMBER_DELETED,
                                  .checkpoint = checkpoint,
                                  .code = how == 1 ? MUSTER_E_IO : MUSTER_OK,
                                  .text = some_text(p)});
}

/* --- time ------------------------------------------------------------------------------------- */

static void tick(struct play *p, int64_t now)
{
    member_tick_at(&p->f, now);
    member_rules_check(&p->rules, &p->f);
}

/* A tick may leave a wakeup that is due at once, but not for ever. */
static void settle(struct play *p)
{
    for (int i = 0; member_wakeup_boot_ms(p->f.m) <= p->f.now; i++) {
        must(i < PASSES_MAX);
        tick(p, p->f.now);
    }
}

static void do_time(struct play *p)
{
    static const int64_t times[] = {1, 20, 200, 1000, 2500, 4500, 21000, 130000};
    int64_t ms = times[digit(p, sizeof times / sizeof times[0])];

    int64_t until = p->f.now + ms;
    bool in_wakeups = digit(p, 2) == 1;

    for (int i = 0; i < WAKEUPS_MAX && p->f.now < until; i++) {
        int64_t at = in_wakeups ? member_wakeup_boot_ms(p->f.m) : until;
        tick(p, at < until ? at : until);
        settle(p);
        if (in_wakeups && i % 2 == 0)
            frame(p, member_down(&p->f, WIRE_ALIVE));
    }
}

static void do_hold(struct play *p)
{
    p->f.in_hold = !p->f.in_hold;
}

static bool is_settled(const struct member_fixture *f)
{
    const struct member_view *view = member_seen(f);

    if (f->m->closing)
        return view->left;
    return !view->joined || view->mode == VIEW_OPEN || view->mode == VIEW_END ||
           (view->mode == VIEW_STEP_TO && f->begun < view->step); /* it trains on */
}

/* I5: nobody is there any more, and every boundary returns. */
static void all_ends(struct play *p)
{
    for (int i = 0; i < LEAPS_MAX && !is_settled(&p->f); i++) {
        for (int moves = 0; moves < WALK_STEPS_MAX && !is_settled(&p->f); moves++)
            move(p, true);
        tick(p, p->f.now + LEAP_MS);
        settle(p);
    }
    must(is_settled(&p->f));
}

/* --- all together ----------------------------------------------------------------------------- */

static const struct {
    char letter;
    void (*act)(struct play *p);
} deeds[] = {
    {'w', do_welcome},           /* VARIANT */
    {'g', do_snapshot},          /* VARIANT STATE ... */
    {'e', do_event},             /* KIND ROUND CAUSE STEP ... */
    {'z', do_freeze},            /* CAUSE ABORT */
    {'d', do_decision},          /* POLICY STEP CAUSE WRITERS */
    {'o', do_outcome},           /* ABORTED ... */
    {'k', do_ack},               /* VARIANT ... */
    {'y', do_small_frame},       /* TYPE SEQ+ ... */
    {'b', do_restart_of_broker}, /* VARIANT */
    {'f', do_frame},             /* OWN SIZE BYTES */
    {'s', do_moves},             /* COUNT */
    {'x', do_failed_save},
    {'p', do_policy_save},
    {'q', do_failed_step},
    {'c', do_close},    /* BROKEN WHY */
    {'r', do_restored}, /* WELL TEXT */
    {'n', do_notice},   /* CANCELS ... */
    {'m', do_manifest}, /* WELL */
    {'t', do_time},     /* MS ALIVE */
    {'h', do_hold},
    {'a', do_ask},     /* WHAT */
    {'l', do_delete},  /* CHECKPOINT PATH */
    {'u', do_deleted}, /* CHECKPOINT HOW */
};

static void act(struct play *p, char letter)
{
    for (size_t i = 0; i < sizeof deeds / sizeof deeds[0]; i++) {
        if (deeds[i].letter != letter)
            continue;
        deeds[i].act(p);
        return;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct play p;

    memset(&p, 0, sizeof p);
    p.in = (struct bytes){data, size};
    enum wire_layout layout = digit(&p, 2) == 0 ? LAYOUT_REPLICATED : LAYOUT_SHARDED;
    if (digit(&p, 2) == 0) {
        member_fixture_running(&p.f, 1, layout);
    } else {
        member_fixture_open(&p.f, 1, layout);
        member_tick_at(&p.f, p.f.now);
    }
    for (int i = 0; i < DEEDS_MAX && p.in.left > 0; i++)
        act(&p, (char)take(&p.in));
    all_ends(&p);
    member_fixture_close(&p.f);
    return 0;
}
