/* A broker's core and what up to eight nodes, tools, time and crashes may do to it, in any order.
 * The input is a text: a letter says what happens, the digits behind it to whom and with what (see
 * `deeds`); all else is skipped. The first three digits are the world's size, its layout, and
 * whether it is running. After each the invariants of core_rules hold; at the end all nodes fall
 * silent and everything ends. */
#include "tests/fuzz/core_rules.h"
#include "tests/fuzz/fuzz.h"

#include "schema/manifest/manifest.h"

#include <stdlib.h>

#define DEEDS_MAX 400 /* of one input */
#define PASSES_MAX 8  /* at one moment */

struct play {
    struct core_fixture f;
    struct core_rules rules;
    struct bytes in;
    struct wire_msg last[CORE_NODES]; /* numbered requests, to be said again */
    struct arena last_arena;
    uint64_t lives; /* incarnations given out */
    uint64_t routes;
};

/* --- operands --------------------------------------------------------------------------------- */

static unsigned digit(struct play *p, unsigned count)
{
    return (take(&p->in) - (unsigned)'0') % count;
}

static struct core_node *who(struct play *p, int *ret_node)
{
    *ret_node = (int)digit(p, CORE_NODES);
    return &p->f.nodes[*ret_node];
}

static uint64_t some_round(struct play *p)
{
    struct job *job = core_job(&p->f);
    uint64_t newest = job != NULL ? job->round : 0;

    switch (digit(p, 5)) {
    case 0:
        return newest;
    case 1:
        return newest - 1;
    case 2:
        return newest - 2;
    case 3:
        return newest + 1;
    default:
        return UINT64_MAX;
    }
}

static int64_t some_step(struct play *p, const struct core_node *node)
{
    struct job *job = core_job(&p->f);
    struct round *round = job != NULL ? round_find(job, job->round) : NULL;

    switch (digit(p, 8)) {
    case 0:
        return round != NULL ? round->step : node->done;
    case 1:
        return node->done;
    case 2:
        return node->begun;
    case 3:
        return node->done + 1;
    case 4:
        return 0;
    case 5:
        return -1;
    case 6:
        return INT64_MAX;
    default:
        return INT64_MIN;
    }
}

static int64_t some_time(struct play *p)
{
    static const int64_t times[] = {-1, 0, 1, 900, 5000, 30000, 3600000, INT64_MAX, INT64_MIN};

    return times[digit(p, sizeof times / sizeof times[0])];
}

static const char *some_id(struct play *p)
{
    static const char *const ids[] = {"n1", "n2", "n3", ""};

    return ids[digit(p, 4)];
}

/* --- saying ----------------------------------------------------------------------------------- */

static void checked(struct play *p)
{
    core_rules_check(&p->rules, &p->f);
}

static void say(struct play *p, int n, struct wire_msg message)
{
    struct core_node *node = &p->f.nodes[n];

    if (message.type == WIRE_SAVED)
        core_rules_said(&p->rules, node->incarnation, &message.u.saved);
    if (wire_is_request(message.type)) {
        message.up.request = ++node->request;
        must(wire_copy(&p->last[n], &message, &p->last_arena));
    }
    core_feed(&p->f, node->route, &message);
    checked(p);
}

static struct wire_msg make(struct play *p, int n, enum wire_type type)
{
    return core_msg(&p->f, n, type);
}

static void do_hello(struct play *p)
{
    int n;
    struct core_node *node = who(p, &n);
    unsigned variant = digit(p, 10);
    struct wire_msg m = make(p, n, WIRE_HELLO);
    const struct wire_notice_fact fact = {"n1", NOTICE_PREEMPT, "file", 9000, true, "again", 0};
    const struct wire_msg *welcome;

    m.u.hello = (struct wire_hello){.speaks = WIRE_SPEAKS,
                                    .nonce = 1,
                                    .world_size = p->f.world_size + (variant == 1),
                                    .host = "host",
                                    .pid = 4000,
                                    .layout = variant == 2 ? LAYOUT_NONE : p->f.layout,
                                    .checkpoint_dir = variant == 3 ? "/other" : "/ckpt",
                                    .begun = node->begun,
                                    .done = node->done,
                                    .restore_fallback = p->f.fallback};
    if (variant == 4) { /* what it knows of a round */
        m.u.hello.round = m.u.hello.saved_round = some_round(p);
        m.u.hello.reported = true;
        m.u.hello.report_begun = m.u.hello.report_done = node->done;
        m.u.hello.saved_ok = digit(p, 2);
    } else if (variant == 5) { /* of a broker whose database was lost */
        m.up.broker_epoch = m.up.broker_epoch + digit(p, 4);
        m.up.applied_seq = core_last_seq(p->f.core, p->f.job) + digit(p, 4);
        m.up.generation = m.up.generation + digit(p, 4);
        m.u.hello.generation_seen = m.up.generation;
        m.u.hello.round = some_round(p);
    } else if (variant == 6) {
        m.u.hello.notices.items = &fact;
        m.u.hello.notices.count = 1;
    } else if (variant == 7) { /* the largest numbers */
        m.up.broker_epoch = m.up.applied_seq = m.up.generation = UINT64_MAX >> digit(p, 4);
        m.u.hello.begun = m.u.hello.done = some_step(p, node);
        m.u.hello.generation_seen = m.u.hello.round = m.u.hello.saved_round = m.up.generation;
    }
    core_feed(&p->f, node->route, &m);
    welcome = core_sent(&p->f, node->route, WIRE_WELCOME);
    if (welcome != NULL) {
        node->generation = welcome->u.welcome.generation;
        node->request = welcome->u.welcome.last_request;
        node->epoch = welcome->down.broker_epoch;
    }
    checked(p);
}

static void do_restart_of_node(struct play *p)
{
    int n;
    struct core_node *node = who(p, &n);
    bool reconnects = digit(p, 2);

    node->route = 1000 + ++p->routes;
    if (reconnects)
        return;
    node->incarnation = 1000 + ++p->lives;
    node->generation = node->request = node->applied_seq = 0;
    node->begun = node->done = 0;
}

static void do_steps(struct play *p)
{
    int n;
    struct core_node *node = who(p, &n);

    node->done = node->begun;
    node->begun += digit(p, 4);
    if (digit(p, 2) == 0)
        node->done = node->begun;
}

static void do_restored(struct play *p)
{
    int n;
    struct core_node *node = who(p, &n);
    struct job *job = core_job(&p->f);
    unsigned variant = digit(p, 4);
    uint64_t checkpoint = job != NULL ? job->gen.resume_checkpoint : 0;
    int64_t step = job != NULL ? job->gen.resume_step : 0;
    struct wire_msg m = make(p, n, variant == 3 ? WIRE_RESTORE_FAILED : WIRE_RESTORED);

    if (variant == 3)
        m.u.restore_failed =
            (struct wire_restore_failed){.checkpoint = checkpoint, .step = step, .text = "torn"};
    else
        m.u.restored = (struct wire_restored){.checkpoint = checkpoint + (variant == 1),
                                              .step = variant == 2 ? some_step(p, node) : step};
    node->begun = node->done = step;
    say(p, n, m);
}

static void do_notice(struct play *p)
{
    unsigned variant = digit(p, 4);
    int n;
    struct core_node *node = who(p, &n);
    struct wire_msg m = make(p, n, variant == 3 ? WIRE_CANCEL : WIRE_NOTICE);
    const char *id = some_id(p);

    if (variant == 3) {
        m.u.cancel.id = id;
    } else {
        m.u.notice = (struct wire_notice){.id = id,
                                          .kind = variant == 2 ? NOTICE_FREEZE : NOTICE_PREEMPT,
                                          .source = "file",
                                          .text = "spot",
                                          .rank = (int64_t)node->rank};
        m.u.notice.left_ms = some_time(p);
        m.u.notice.cancellable = digit(p, 2) == 0;
    }
    if (digit(p, 2) == 0) {
        say(p, n, m);
        return;
    }
    core_tool(&p->f, m, 1);
    checked(p);
}

static void do_save_wish(struct play *p)
{
    int n;
    struct core_node *node = who(p, &n);
    struct wire_msg m = make(p, n, WIRE_SAVE_AT);

    if (digit(p, 2) == 0) {
        m.u.save_at.step = some_step(p, node);
        say(p, n, m);
        return;
    }
    m.type = WIRE_SAVE_NOW;
    m.u.save_now.id = some_id(p);
    core_tool(&p->f, m, 1);
    checked(p);
}

static void do_report(struct play *p)
{
    int n;
    struct core_node *node = who(p, &n);
    unsigned variant = digit(p, 4);
    struct wire_msg m = make(p, n, variant == 3 ? WIRE_PAST : WIRE_REPORT);
    uint64_t round = some_round(p);
    int64_t begun = variant >= 2 ? some_step(p, node) : node->begun;
    int64_t done = variant == 2 ? some_step(p, node) : node->done;

    if (variant == 3)
        m.u.past = (struct wire_past){.round = round, .begun = begun};
    else
        m.u.report = (struct wire_report){
            .round = round, .begun = begun, .done = done, .aborted = variant == 1};
    say(p, n, m);
}

static void do_save(struct play *p)
{
    static const struct wire_file files[] = {{"a", 10, "xxh3-128:1"}, {"b", 20, "xxh3-128:2"}};
    int n;
    struct core_node *node = who(p, &n);
    unsigned variant = digit(p, 5);
    static const enum wire_type types[] = {WIRE_AT_STEP, WIRE_FILES, WIRE_SAVED, WIRE_AT_STEP,
                                           WIRE_SAVE_FAILED};
    struct wire_msg m = make(p, n, types[variant]);
    uint64_t round = some_round(p);
    int64_t step = some_step(p, node);

    if (m.type == WIRE_AT_STEP) {
        m.u.at_step = (struct wire_at_step){.round = round, .step = step, .captured = variant == 3};
        node->begun = node->done = step_ok(step) ? step : node->done;
    } else if (m.type == WIRE_FILES) {
        m.u.files.round = round;
        m.u.files.step = step;
        m.u.files.files.items = files;
        m.u.files.files.count = digit(p, 3);
    } else if (m.type == WIRE_SAVED) {
        static const char *const words[] = {"", "{\"loss\":0.5}", "no json"};
        m.u.saved = (struct wire_saved){.round = round,
                                        .step = step,
                                        .files_count = digit(p, 3),
                                        .bytes = INT64_MAX,
                                        .metrics = words[step & 1],
                                        .custom = words[(step & 3) == 2 ? 2 : 0]};
    } else {
        m.u.save_failed = (struct wire_save_failed){
            .round = round, .step = step, .code = digit(p, 60), .text = "no"};
    }
    say(p, n, m);
}

static void do_end(struct play *p)
{
    int n;
    struct core_node *node = who(p, &n);
    unsigned variant = digit(p, 6);
    struct wire_msg m = make(p, n, variant == 5 ? WIRE_ERROR : WIRE_LEAVE);

    if (variant == 5)
        m.u.error = (struct wire_error){.code = 3, .step = some_step(p, node), .text = "NaN"};
    else
        m.u.leave = (struct wire_leave){.why = variant, .code = 1, .done = some_step(p, node)};
    say(p, n, m);
}

static void do_question(struct play *p)
{
    int n;
    struct core_node *node = who(p, &n);
    static const enum wire_type types[] = {WIRE_HEARTBEAT,    WIRE_PROBE_GET,     WIRE_EVENTS_GET,
                                           WIRE_MANIFEST_GET, WIRE_MANIFEST_DONE, WIRE_NOOP};
    struct wire_msg m = make(p, n, types[digit(p, 6)]);

    node->applied_seq = m.up.applied_seq = core_last_seq(p->f.core, p->f.job) - digit(p, 3);
    if (m.type == WIRE_HEARTBEAT) {
        uint64_t round = some_round(p);
        unsigned speed = digit(p, 3);

        m.u.heartbeat = (struct wire_heartbeat){.begun = node->begun,
                                                .done = node->done,
                                                .phase = speed == 2 ? 255 : PHASE_STEPPING,
                                                .round = round,
                                                .step_p95_ms = (uint64_t)speed * 40000};
    } else if (m.type == WIRE_EVENTS_GET)
        m.u.events_get.from_seq = digit(p, 9);
    else if (m.type == WIRE_MANIFEST_GET)
        m.u.manifest_get.checkpoint = some_round(p);
    else if (m.type == WIRE_MANIFEST_DONE)
        m.u.manifest_done =
            (struct wire_manifest_done){.checkpoint = some_round(p), .path = "/ckpt/8"};
    say(p, n, m);
}

/* The last request again, or the one after next. */
static void do_repeat(struct play *p)
{
    int n;
    struct core_node *node = who(p, &n);
    struct wire_msg m = p->last[n];

    if (m.type == WIRE_NONE)
        return;
    m.up.request += 2 * digit(p, 2);
    m.up.incarnation = node->incarnation;
    if (m.type == WIRE_SAVED)
        core_rules_said(&p->rules, node->incarnation, &m.u.saved);
    core_feed(&p->f, node->route, &m);
    checked(p);
}

/* --- what is kept ----------------------------------------------------------------------------- */

static uint64_t some_checkpoint(struct play *p)
{
    struct job *job = core_job(&p->f);
    unsigned which = digit(p, 6);

    if (job == NULL || which == 5 || job->checkpoints_count == 0)
        return which == 5 ? UINT64_MAX : 0;
    return which == 4 ? job->round : job->checkpoints[which % job->checkpoints_count].row.round;
}

static struct wire_msg keep_message(struct play *p, int n, enum wire_type type)
{
    static const char *const keeps[] = {
        "latest 1", "", "latest 0", "every 2 from 1; near 3", "best 1 least loss", "no rule"};
    static const char *const saves[] = {"", "period-ms 1000", "continuous-ms 0; young-daly",
                                        "overhead-ppm 20000"};
    struct wire_msg m = make(p, n, type);

    if (type == WIRE_POLICIES) {
        m.u.policies.keep = keeps[digit(p, 6)];
        m.u.policies.save = saves[digit(p, 4)];
        m.u.policies.trash = digit(p, 3) == 2 ? "trash" : "";
    } else if (type == WIRE_SWEEP) {
        m.u.sweep.final = digit(p, 2) == 1;
        p->rules.gives_up |= m.u.sweep.final;
    } else if (type == WIRE_DROP) {
        m.u.drop.checkpoint = some_checkpoint(p);
        m.u.drop.newest = digit(p, 3) == 2;
        p->rules.gives_up |= m.u.drop.newest;
    } else if (type == WIRE_PIN) {
        m.u.pin.checkpoint = some_checkpoint(p);
        m.u.pin.id = some_id(p);
        m.u.pin.lease_ms = some_time(p);
    } else if (type == WIRE_UNPIN) {
        m.u.unpin.checkpoint = some_checkpoint(p);
        m.u.unpin.id = some_id(p);
    } else if (type == WIRE_DELETED) {
        struct job *job = core_job(&p->f);
        bool any = job != NULL && job->keep.deletions_count > 0;
        m.u.deleted.checkpoint = any ? job->keep.deletions[0].checkpoint : some_round(p);
        m.u.deleted.code = digit(p, 3) == 2 ? MUSTER_E_IO : MUSTER_OK;
        m.u.deleted.text = "why not";
    } else {
        m.u.save_wish.step = some_step(p, &p->f.nodes[n]);
    }
    return m;
}

static void do_keep(struct play *p)
{
    static const enum wire_type types[] = {WIRE_POLICIES, WIRE_SWEEP,   WIRE_DROP,     WIRE_PIN,
                                           WIRE_UNPIN,    WIRE_DELETED, WIRE_SAVE_WISH};
    enum wire_type type = types[digit(p, 7)];
    int n;

    who(p, &n);
    struct wire_msg m = keep_message(p, n, type);
    if (digit(p, 3) < 2) {
        say(p, n, m);
        return;
    }
    core_tool(&p->f, m, 1);
    checked(p);
}

/* A manifest that was found on disk, whole or its first half or its second. */
static void do_import(struct play *p)
{
    static const struct wire_file file = {"a", 10, "xxh3-128:00112233445566778899aabbccddeeff"};
    const struct manifest_shard shard = {
        .rank = 0, .incarnation = 1, .files = &file, .file_count = 1};
    struct manifest manifest = {.job = p->f.job,
                                .generation = 1 + digit(p, 4),
                                .round = 1 + digit(p, 9),
                                .step = 1 + digit(p, 9),
                                .layout = LAYOUT_REPLICATED,
                                .world_size = 1,
                                .cause = "operator",
                                .shards = &shard,
                                .shard_count = 1};
    struct wire_msg m = make(p, 0, WIRE_IMPORT);
    struct muster_error err;
    unsigned part = digit(p, 4);
    char *text = NULL;
    size_t size = 0;

    must(manifest_render(&manifest, &text, &size, &err) == MUSTER_OK);
    size_t from = part == 2 ? size / 2 : 0, until = part == 1 ? size / 2 : size;
    m.u.import.path = "/ckpt/1";
    m.u.import.offset = from;
    m.u.import.total = size;
    m.u.import.bytes.data = (const uint8_t *)text + from;
    m.u.import.bytes.size = until - from;
    core_tool(&p->f, m, 1);
    checked(p);
    free(text);
}

/* --- time and crashes ------------------------------------------------------------------------- */

/* A tick may leave a wakeup that is due at once, but not for ever. */
static void settle(struct play *p)
{
    for (int i = 0; core_wakeup_boot_ms(p->f.core) <= p->f.now; i++) {
        must(i < PASSES_MAX);
        core_tick(&p->f);
        checked(p);
    }
}

static void do_time(struct play *p)
{
    static const int64_t times[] = {0, 1, 50, 600, 2000, 2500, 5500, 10500, 61000};
    int64_t passes = times[digit(p, sizeof times / sizeof times[0])];

    if (digit(p, 2) == 0) { /* nobody says anything */
        p->f.now += passes;
        core_tick(&p->f);
        checked(p);
        settle(p);
        return;
    }
    for (int64_t slice; passes > 0; passes -= slice) {
        slice = passes < 500 ? passes : 500;
        core_pass(&p->f, slice);
        checked(p);
        settle(p);
    }
}

static void do_silence(struct play *p)
{
    int n;
    struct core_node *node = who(p, &n);

    node->silent = !node->silent;
}

static void do_restart_of_broker(struct play *p)
{
    core_restart(&p->f, digit(p, 4) == 1);
    checked(p);
}

static void do_snapshot(struct play *p)
{
    int n;
    struct core_node *node = who(p, &n);
    struct input input = {.kind = INPUT_NO_EVENTS,
                          .now_boot_ms = p->f.now,
                          .now_unix_ms = 1700000000000 + p->f.now,
                          .route = node->route,
                          .job = p->f.job};

    core_clear(&p->f);
    core_step(p->f.core, &input, &p->f.out);
    checked(p);
}

/* A frame of any content from a node's connection; half of them in the node's own name. */
static void do_frame(struct play *p)
{
    int n;
    struct core_node *node = who(p, &n);
    bool own = digit(p, 2) == 0;
    size_t size = take(&p->in);
    struct muster_error err;
    struct arena arena;
    struct wire_msg m;

    if (size > p->in.left)
        size = p->in.left;
    arena_init(&arena, (size_t)1 << 20);
    if (wire_decode(p->in.at, size, &arena, &m, &err) == MUSTER_OK && wire_is_up(m.type) &&
        (own || wire_job_name_ok(m.up.job))) {
        if (own)
            m.up = make(p, n, m.type).up;
        if (own && wire_is_request(m.type))
            m.up.request = ++node->request;
        if (m.type == WIRE_SAVED)
            core_rules_said(&p->rules, m.up.incarnation, &m.u.saved);
        core_feed(&p->f, node->route, &m);
        checked(p);
    }
    arena_free(&arena);
    p->in.at += size;
    p->in.left -= size;
}

/* --- all together ----------------------------------------------------------------------------- */

static const struct {
    char letter;
    void (*act)(struct play *p);
} deeds[] = {
    {'h', do_hello},             /* NODE VARIANT ... */
    {'i', do_restart_of_node},   /* NODE RECONNECTS */
    {'s', do_steps},             /* NODE BEGUN+ DONE */
    {'r', do_restored},          /* NODE VARIANT ... */
    {'n', do_notice},            /* VARIANT NODE ID LEFT ... */
    {'w', do_save_wish},         /* NODE TOOL ... */
    {'p', do_report},            /* NODE VARIANT ROUND ... */
    {'v', do_save},              /* NODE VARIANT ROUND STEP ... */
    {'e', do_end},               /* NODE VARIANT STEP */
    {'q', do_question},          /* NODE VARIANT SEQ ... */
    {'d', do_repeat},            /* NODE LATER */
    {'t', do_time},              /* MS HEARTBEATS */
    {'x', do_silence},           /* NODE */
    {'k', do_restart_of_broker}, /* REBOOT */
    {'g', do_snapshot},          /* NODE */
    {'f', do_frame},             /* NODE OWN SIZE BYTES */
    {'c', do_keep},              /* WHAT NODE ... TOOL */
    {'m', do_import},            /* GENERATION ROUND STEP PART */
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

static void open_play(struct play *p)
{
    uint64_t world_size = 1 + digit(p, 4);
    enum wire_layout layout = digit(p, 2) == 0 ? LAYOUT_REPLICATED : LAYOUT_SHARDED;
    unsigned start = digit(p, 4);

    arena_init(&p->last_arena, 0);
    if (start % 2 == 0)
        core_fixture_running(&p->f, world_size, layout);
    else
        core_fixture_open(&p->f, world_size, layout);
    p->f.fallback = start >= 2;
    p->f.nodes[6].role = ROLE_EVALUATOR;
    p->f.nodes[7].role = ROLE_PS;
    p->f.nodes[6].rank = p->f.nodes[7].rank = 0;
    p->rules.seq = core_last_seq(p->f.core, p->f.job);
    p->rules.generation = core_job(&p->f) != NULL ? core_job(&p->f)->gen.generation : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct play p;

    memset(&p, 0, sizeof p);
    p.in = (struct bytes){data, size};
    open_play(&p);
    for (int i = 0; i < DEEDS_MAX && p.in.left > 0; i++)
        act(&p, (char)take(&p.in));
    core_rules_all_ends(&p.rules, &p.f);
    core_fixture_close(&p.f);
    arena_free(&p.last_arena);
    return 0;
}
