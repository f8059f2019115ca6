#include "tests/support/core_fixture.h"

#include "schema/rules/counts.h"

#include "tests/support/record_copy.h"
#include "tests/support/record_key.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* --- the database ----------------------------------------------------------------------------- */

static const char *keep_text(void *arena, const char *text)
{
    char *copy = arena_strdup(arena, text);

    assert_non_null(copy);
    return copy;
}

static void unpin(struct core_fixture *f, const struct record *row)
{
    struct record pin = *row;

    pin.kind = RECORD_PIN;
    for (size_t i = 0; i < f->rows_count; i++)
        if (record_same_key(&f->rows[i], &pin))
            f->rows[i].kind = RECORD_NONE;
}

static void shards_gone(struct core_fixture *f, const struct record_shards_gone *gone)
{
    for (size_t i = 0; i < f->rows_count; i++)
        if (f->rows[i].kind == RECORD_FILE && f->rows[i].u.file.round == gone->round &&
            strcmp(f->rows[i].u.file.job, gone->job) == 0)
            f->rows[i].kind = RECORD_NONE;
}

/* Each kind's job is its first word. */
static const char *job_of(const struct record *row)
{
    return row->kind == RECORD_BROKER || row->kind == RECORD_NONE ? "" : row->u.job.job;
}

static void forget(struct core_fixture *f, const char *job)
{
    for (size_t i = 0; i < f->rows_count; i++)
        if (strcmp(job_of(&f->rows[i]), job) == 0)
            f->rows[i].kind = RECORD_NONE;
}

static void write_row(struct core_fixture *f, const struct record *row)
{
    if (row->kind >= RECORD_TASK_QUEUE && row->kind <= RECORD_TASK_WORKER)
        return; /* tasks_fixture keeps them in a database */
    if (row->kind == RECORD_EVENT || row->kind == RECORD_SHARD || row->kind == RECORD_CUSTOM)
        return;
    if (row->kind == RECORD_UNPIN) {
        unpin(f, row);
        return;
    }
    if (row->kind == RECORD_FORGET) {
        forget(f, row->u.forget.job);
        return;
    }
    if (row->kind == RECORD_SHARDS_GONE) {
        shards_gone(f, &row->u.shards_gone);
        return;
    }
    for (size_t i = 0; i < f->rows_count; i++)
        if (record_same_key(&f->rows[i], row)) {
            f->rows[i] = record_copy(row, keep_text, &f->rows_arena);
            f->boots[i] = f->boot;
            return;
        }
    if (f->rows_count == f->rows_capacity) {
        f->rows_capacity = f->rows_capacity ? f->rows_capacity * 2 : 64;
        f->rows = realloc(f->rows, f->rows_capacity * sizeof *f->rows);
        f->boots = realloc(f->boots, f->rows_capacity * sizeof *f->boots);
        assert_non_null(f->rows);
        assert_non_null(f->boots);
    }
    f->boots[f->rows_count] = f->boot;
    f->rows[f->rows_count++] = record_copy(row, keep_text, &f->rows_arena);
}

static bool is_active(enum wire_round_state state)
{
    return state == ROUND_FREEZING || state == ROUND_DECIDED || state == ROUND_WRITING;
}

static bool round_is_active(const struct core_fixture *f, const char *job, uint64_t round)
{
    for (size_t i = 0; i < f->rows_count; i++)
        if (f->rows[i].kind == RECORD_ROUND && f->rows[i].u.round.round == round &&
            strcmp(f->rows[i].u.round.job, job) == 0)
            return is_active(f->rows[i].u.round.state);
    return false;
}

static bool is_loaded(const struct core_fixture *f, const struct record *row, bool active)
{
    switch (row->kind) {
    case RECORD_ROUND:
        return is_active(row->u.round.state) == active;
    case RECORD_PARTICIPANT:
        return round_is_active(f, row->u.participant.job, row->u.participant.round);
    case RECORD_FILE:
        return round_is_active(f, row->u.file.job, row->u.file.round);
    case RECORD_CHECKPOINT:
        return row->u.checkpoint.state == CHECKPOINT_WRITING ||
               row->u.checkpoint.state == CHECKPOINT_DELETING ||
               row->u.checkpoint.state == CHECKPOINT_COMMITTED;
    default:
        return true;
    }
}

/* only: of this job, NULL = of all */
static void load(struct core_fixture *f, enum record_kind kind, bool active, const char *only)
{
    for (size_t i = 0; i < f->rows_count; i++) {
        struct record row = f->rows[i];
        if (row.kind != kind || !is_loaded(f, &row, active))
            continue;
        if (only != NULL && strcmp(job_of(&row), only) != 0)
            continue;
        if (kind == RECORD_NOTICE)
            row.u.notice.other_boot = f->boots[i] != f->boot;
        if (kind == RECORD_ROUND)
            row.u.round.other_boot = f->boots[i] != f->boot;
        core_load(f->core, &row);
    }
}

/* --- the core and its time -------------------------------------------------------------------- */

/* Contract of core.h: rows stand before what depends on them. */
static void check_order(const struct core_fixture *f)
{
    for (size_t i = 0; i < f->out.count; i++) {
        const struct action *publish = &f->out.items[i];
        bool found = false;
        if (publish->kind != ACTION_PUBLISH || publish->message.type != WIRE_EVENT)
            continue;
        for (size_t j = 0; j < i; j++)
            found |= f->out.items[j].kind == ACTION_PERSIST &&
                     f->out.items[j].record.kind == RECORD_EVENT &&
                     f->out.items[j].record.u.event.seq == publish->message.u.event.seq &&
                     strcmp(f->out.items[j].record.u.event.job, publish->job) == 0;
        assert_true(found);
    }
}

static void step(struct core_fixture *f, const struct input *input)
{
    size_t first = f->out.count;

    core_step(f->core, input, &f->out);
    check_order(f);
    for (size_t i = first; i < f->out.count; i++)
        if (f->out.items[i].kind == ACTION_PERSIST)
            write_row(f, &f->out.items[i].record);
}

static struct input input_of(const struct core_fixture *f, enum input_kind kind)
{
    return (struct input){
        .kind = kind, .now_boot_ms = f->now, .now_unix_ms = 1700000000000 + f->now};
}

static void load_all(struct core_fixture *f, const char *only)
{
    static const enum record_kind order[] = {RECORD_JOB,   RECORD_GENERATION, RECORD_LAUNCH,
                                             RECORD_HOST,  RECORD_NODE,       RECORD_PROGRESS,
                                             RECORD_NOTICE};

    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++)
        load(f, order[i], true, only);
    load(f, RECORD_ROUND, false, only);
    load(f, RECORD_ROUND, true, only);
    load(f, RECORD_PARTICIPANT, true, only);
    load(f, RECORD_FILE, true, only);
    load(f, RECORD_CHECKPOINT, true, only);
    load(f, RECORD_POLICY, true, only);
    load(f, RECORD_PIN, true, only);
}

/* As the loop: a job that has left memory comes back for a message. */
static void wake(struct core_fixture *f, const struct wire_msg *message)
{
    struct input input = input_of(f, INPUT_JOB);

    input.job = core_lacks(f->core, message);
    if (input.job == NULL)
        return;
    load_all(f, input.job);
    step(f, &input);
}

static void start(struct core_fixture *f)
{
    struct core_options options = f->options;
    struct input input = input_of(f, INPUT_START);

    options.start_id = 7000 + ++f->starts;
    options.events_endpoint = "ipc:///e";
    f->core = core_create(&options);
    assert_non_null(f->core);
    load(f, RECORD_BROKER, true, NULL);
    load_all(f, NULL);
    actions_clear(&f->out);
    step(f, &input);
}

void core_fixture_open(struct core_fixture *f, uint64_t world_size, enum wire_layout layout)
{
    memset(f, 0, sizeof *f);
    f->job = "train";
    f->world_size = world_size;
    f->layout = layout;
    f->now = CORE_START_MS;
    actions_init(&f->out);
    arena_init(&f->rows_arena, 0);
    for (uint64_t n = 0; n < CORE_NODES; n++)
        f->nodes[n] = (struct core_node){.role = n == 0 ? ROLE_CHIEF : ROLE_WORKER,
                                         .rank = n,
                                         .incarnation = 50 + n,
                                         .route = 100 + n};
    start(f);
    core_clear(f);
}

void core_fixture_close(struct core_fixture *f)
{
    core_destroy(&f->core);
    actions_free(&f->out);
    arena_free(&f->rows_arena);
    free(f->copy);
    free(f->rows);
    free(f->boots);
}

void core_fixture_running(struct core_fixture *f, uint64_t world_size, enum wire_layout layout)
{
    core_fixture_open(f, world_size, layout);
    for (int n = 0; n < (int)world_size; n++)
        core_hello(f, n);
    for (int n = 0; n < (int)world_size; n++)
        core_restored(f, n, 0, 0);
    assert_int_equal(core_job(f)->gen.state, GENERATION_RUNNING);
    core_pass(f, 1000);
    core_clear(f);
}

#define SETUP(name, begin, world_size, layout) \
    int name(void **state)                     \
    {                                          \
        static struct core_fixture f;          \
                                               \
        begin(&f, world_size, layout);         \
        *state = &f;                           \
        return 0;                              \
    }
SETUP(core_open_one, core_fixture_open, 1, LAYOUT_REPLICATED)
SETUP(core_open_two, core_fixture_open, 2, LAYOUT_REPLICATED)
SETUP(core_open_two_sharded, core_fixture_open, 2, LAYOUT_SHARDED)
SETUP(core_open_three, core_fixture_open, 3, LAYOUT_REPLICATED)
SETUP(core_run_one, core_fixture_running, 1, LAYOUT_REPLICATED)
SETUP(core_run_two, core_fixture_running, 2, LAYOUT_REPLICATED)
SETUP(core_run_two_sharded, core_fixture_running, 2, LAYOUT_SHARDED)
SETUP(core_run_three, core_fixture_running, 3, LAYOUT_REPLICATED)
SETUP(core_run_three_sharded, core_fixture_running, 3, LAYOUT_SHARDED)
SETUP(core_run_four, core_fixture_running, 4, LAYOUT_REPLICATED)
SETUP(core_run_four_sharded, core_fixture_running, 4, LAYOUT_SHARDED)

int core_close(void **state)
{
    core_fixture_close(*state);
    return 0;
}

void core_restart(struct core_fixture *f, bool reboot)
{
    core_destroy(&f->core);
    if (reboot) {
        f->now = 5000;
        f->boot++;
    }
    start(f);
}

void core_copy(struct core_fixture *f)
{
    free(f->copy);
    f->copy = malloc(f->rows_count * sizeof *f->copy);
    assert_non_null(f->copy);
    memcpy(f->copy, f->rows, f->rows_count * sizeof *f->copy);
    f->copy_count = f->rows_count;
}

void core_restart_from_copy(struct core_fixture *f)
{
    memcpy(f->rows, f->copy, f->copy_count * sizeof *f->copy); /* there were never fewer */
    f->rows_count = f->copy_count;
    core_restart(f, false);
}

void core_restart_from_older_copy(struct core_fixture *f)
{
    for (size_t i = 0; i < f->copy_count; i++)
        if (f->copy[i].kind == RECORD_BROKER)
            f->copy[i].u.broker.older = true;
    core_restart_from_copy(f);
}

void core_clear(struct core_fixture *f)
{
    actions_clear(&f->out);
}

/* --- saying ----------------------------------------------------------------------------------- */

struct wire_msg core_msg(const struct core_fixture *f, int n, enum wire_type type)
{
    const struct core_node *node = &f->nodes[n];
    struct wire_msg message;

    memset(&message, 0, sizeof message);
    message.type = type;
    message.up = (struct wire_up){.job = f->job,
                                  .role = node->role,
                                  .rank = node->rank,
                                  .incarnation = node->incarnation,
                                  .generation = node->generation,
                                  .broker_epoch = node->epoch,
                                  .applied_seq = node->applied_seq};
    return message;
}

void core_feed(struct core_fixture *f, uint64_t route, const struct wire_msg *message)
{
    struct input input = input_of(f, INPUT_MESSAGE);

    input.route = route;
    input.message = message;
    input.by = message->up.role == ROLE_TOOL ? f->by : NULL;
    input.key_jobs = f->key_jobs;
    core_clear(f);
    wake(f, message);
    step(f, &input);
}

void core_say(struct core_fixture *f, int n, struct wire_msg message)
{
    if (wire_is_request(message.type))
        message.up.request = ++f->nodes[n].request;
    core_feed(f, f->nodes[n].route, &message);
}

/* Who stands between two steps waits there: a program that does nothing for minutes hangs. */
static unsigned phase_in_steps(const struct core_node *node)
{
    if (node->phase != PHASE_NONE)
        return node->phase;
    return node->begun > node->done ? PHASE_STEPPING : PHASE_FROZEN;
}

static unsigned phase_of(const struct core_node *node)
{
    if (node->phase != PHASE_NONE || node->begun > 0)
        return phase_in_steps(node);
    return node->generation > 0 ? PHASE_RESTORING : PHASE_JOINING;
}

void core_hello(struct core_fixture *f, int n)
{
    core_hello_telling(f, n, NULL);
}

void core_hello_telling(struct core_fixture *f, int n, struct wire_notice_fact *fact)
{
    struct wire_msg message = core_msg(f, n, WIRE_HELLO);
    struct core_node *node = &f->nodes[n];

    message.u.hello = (struct wire_hello){.speaks = WIRE_SPEAKS,
                                          .nonce = 900 + (uint64_t)n,
                                          .world_size = f->world_size,
                                          .host = "host",
                                          .pid = 4000 + (uint64_t)n,
                                          .layout = f->layout,
                                          .checkpoint_dir = "/ckpt",
                                          .begun = node->begun,
                                          .done = node->done,
                                          .phase = phase_of(node),
                                          .round = node->round,
                                          .saved_round = node->save_failed,
                                          .restore_fallback = f->fallback,
                                          .history = node->history,
                                          .answered = node->answered,
                                          .directory = node->directory,
                                          .age_ms = node->age_ms};
    if (fact != NULL) {
        message.u.hello.notices.items = fact;
        message.u.hello.notices.count = 1;
    }
    core_feed(f, node->route, &message);
    const struct wire_msg *welcome = core_sent(f, node->route, WIRE_WELCOME);
    if (welcome != NULL) {
        node->generation = welcome->u.welcome.generation;
        node->request = welcome->u.welcome.last_request;
        node->epoch = welcome->down.broker_epoch;
    }
}

void core_tool(struct core_fixture *f, struct wire_msg message, uint64_t request)
{
    message.up = (struct wire_up){.job = f->job, .role = ROLE_TOOL, .request = request};
    core_feed(f, 500, &message);
}

static void tick(struct core_fixture *f)
{
    struct input input = input_of(f, INPUT_TICK);

    step(f, &input);
}

void core_tick(struct core_fixture *f)
{
    core_clear(f);
    tick(f);
}

static void beat(struct core_fixture *f, int n)
{
    struct core_node *node = &f->nodes[n];
    struct wire_msg message = core_msg(f, n, WIRE_HEARTBEAT);
    struct input input = input_of(f, INPUT_MESSAGE);

    node->applied_seq = message.up.applied_seq = core_last_seq(f->core, f->job);
    message.u.heartbeat = (struct wire_heartbeat){.begun = node->begun,
                                                  .done = node->done,
                                                  .phase = phase_in_steps(node),
                                                  .round = node->round,
                                                  .step_p95_ms = node->p95_ms,
                                                  .saving_round = node->saving_round,
                                                  .saving_bytes = node->saving_bytes};
    input.message = &message;
    input.route = node->route;
    step(f, &input);
}

void core_heartbeat(struct core_fixture *f, int n)
{
    core_clear(f);
    beat(f, n);
}

void core_pass(struct core_fixture *f, int64_t ms)
{
    core_clear(f);
    while (ms > 0) {
        int64_t slice = ms < 500 ? ms : 500;
        f->now += slice;
        ms -= slice;
        for (int n = 0; n < CORE_NODES; n++) {
            struct peer *peer = peer_find(f->core, f->nodes[n].incarnation);
            if (peer != NULL && peer_is_live(peer) && peer->mapped && !f->nodes[n].silent)
                beat(f, n);
        }
        tick(f);
    }
    size_t stay = 0;
    for (size_t i = 0; i < f->out.count; i++) {
        const struct action *action = &f->out.items[i];
        if ((action->kind == ACTION_SEND && action->message.type == WIRE_ALIVE) ||
            (action->kind == ACTION_PERSIST && action->lazy))
            continue;
        f->out.items[stay++] = *action;
    }
    f->out.count = stay;
}

void core_restored(struct core_fixture *f, int n, uint64_t checkpoint, int64_t at)
{
    struct wire_msg message = core_msg(f, n, WIRE_RESTORED);

    message.u.restored = (struct wire_restored){.checkpoint = checkpoint, .step = at};
    core_say(f, n, message);
}

void core_report(struct core_fixture *f, int n, uint64_t round, int64_t begun, int64_t done)
{
    struct wire_msg message = core_msg(f, n, WIRE_REPORT);

    message.u.report = (struct wire_report){.round = round, .begun = begun, .done = done};
    core_say(f, n, message);
}

void core_report_all(struct core_fixture *f, uint64_t round, int64_t at)
{
    for (int n = 0; n < (int)f->world_size; n++)
        core_report(f, n, round, at, at);
}

void core_report_aborted(struct core_fixture *f, int n, uint64_t round, int64_t done)
{
    struct wire_msg message = core_msg(f, n, WIRE_REPORT);

    message.u.report =
        (struct wire_report){.round = round, .begun = done, .done = done, .aborted = true};
    core_say(f, n, message);
}

void core_at_step(struct core_fixture *f, int n, uint64_t round, int64_t at, bool captured)
{
    struct wire_msg message = core_msg(f, n, WIRE_AT_STEP);

    message.u.at_step = (struct wire_at_step){.round = round, .step = at, .captured = captured};
    core_say(f, n, message);
}

void core_files(struct core_fixture *f, int n, uint64_t round, int64_t at, size_t count)
{
    struct wire_msg message = core_msg(f, n, WIRE_FILES);
    static const struct wire_file files[] = {{"a", 10, "xxh3-128:1"}, {"b", 20, "xxh3-128:2"}};

    message.u.files.round = round;
    message.u.files.step = at;
    message.u.files.files.items = files;
    message.u.files.files.count = count;
    core_say(f, n, message);
}

void core_saved(struct core_fixture *f, int n, uint64_t round, int64_t at, size_t files)
{
    struct wire_msg message = core_msg(f, n, WIRE_SAVED);

    message.u.saved = (struct wire_saved){.round = round,
                                          .step = at,
                                          .files_count = files,
                                          .bytes = 30,
                                          .save_ms = 40,
                                          .epoch = 2,
                                          .blocked_ms = f->blocked_ms,
                                          .waited_ms = f->waited_ms,
                                          .held = f->held,
                                          .metrics = f->metrics ? f->metrics : "",
                                          .custom = f->custom ? f->custom : ""};
    core_say(f, n, message);
}

void core_save(struct core_fixture *f, int n, uint64_t round, int64_t at)
{
    core_at_step(f, n, round, at, false);
    core_files(f, n, round, at, 1);
    core_saved(f, n, round, at, 1);
}

void core_save_failed(struct core_fixture *f, int n, uint64_t round, int64_t at, unsigned code)
{
    struct wire_msg message = core_msg(f, n, WIRE_SAVE_FAILED);

    message.u.save_failed =
        (struct wire_save_failed){.round = round, .step = at, .code = code, .text = "no"};
    core_say(f, n, message);
}

void core_past(struct core_fixture *f, int n, uint64_t round, int64_t begun)
{
    struct wire_msg message = core_msg(f, n, WIRE_PAST);

    message.u.past = (struct wire_past){.round = round, .begun = begun};
    core_say(f, n, message);
}

void core_save_at(struct core_fixture *f, int n, int64_t at)
{
    struct wire_msg message = core_msg(f, n, WIRE_SAVE_AT);

    message.u.save_at.step = at;
    core_say(f, n, message);
}

void core_notice(struct core_fixture *f, int n, const char *id, int64_t left_ms)
{
    struct wire_msg message = core_msg(f, n, WIRE_NOTICE);

    message.u.notice = (struct wire_notice){.id = id,
                                            .kind = NOTICE_PREEMPT,
                                            .source = "test",
                                            .left_ms = left_ms,
                                            .cancellable = true,
                                            .text = "spot",
                                            .rank = (int64_t)f->nodes[n].rank,
                                            .flags = f->plans ? 0 : NOTICE_FLAG_AT_ONCE};
    core_say(f, n, message);
}

void core_cancel(struct core_fixture *f, int n, const char *id)
{
    struct wire_msg message = core_msg(f, n, WIRE_CANCEL);

    message.u.cancel.id = id;
    core_say(f, n, message);
}

void core_error(struct core_fixture *f, int n, int64_t at, const char *text)
{
    struct wire_msg message = core_msg(f, n, WIRE_ERROR);

    message.u.error = (struct wire_error){.code = 3, .step = at, .text = text};
    core_say(f, n, message);
}

void core_leave(struct core_fixture *f, int n, enum wire_leave_why why, int64_t code)
{
    struct wire_msg message = core_msg(f, n, WIRE_LEAVE);

    message.u.leave = (struct wire_leave){.why = why, .code = code, .done = f->nodes[n].done};
    core_say(f, n, message);
}

void core_save_now(struct core_fixture *f, const char *id)
{
    struct wire_msg message = {.type = WIRE_SAVE_NOW};

    message.u.save_now.id = id;
    core_tool(f, message, 1);
}

void core_commit_at(struct core_fixture *f, int64_t at)
{
    char id[32];
    uint64_t round = core_job(f)->round + 1;
    bool sharded = f->layout == LAYOUT_SHARDED;

    snprintf(id, sizeof id, "save-%llu", (unsigned long long)round);
    core_save_now(f, id);
    for (int n = 0; n < (int)f->world_size; n++)
        core_report(f, n, round, at, at);
    for (int n = (int)f->world_size - 1; n >= 0; n--) {
        if (sharded || n == 0)
            core_save(f, n, round, at);
        else
            core_at_step(f, n, round, at, true);
    }
    assert_int_equal(registry_newest(core_job(f))->row.step, at);
    core_clear(f);
}

struct job *core_job(struct core_fixture *f)
{
    return job_find(f->core, f->job);
}

const struct record_checkpoint *core_checkpoint(const struct core_fixture *f, uint64_t round)
{
    for (size_t i = 0; i < f->rows_count; i++)
        if (f->rows[i].kind == RECORD_CHECKPOINT && f->rows[i].u.checkpoint.round == round)
            return &f->rows[i].u.checkpoint;
    return NULL;
}

bool core_counts(const struct core_fixture *f, const struct record_checkpoint *row)
{
    for (size_t i = 0; i < f->rows_count; i++) {
        const struct record_launch *launch = &f->rows[i].u.launch;
        const struct counts_launch one = {launch->generation, launch->began_step};

        if (f->rows[i].kind == RECORD_LAUNCH && strcmp(launch->job, row->job) == 0 &&
            !counts_among(&one, 1, row->generation, row->step))
            return false;
    }
    return row->state == CHECKPOINT_COMMITTED;
}
