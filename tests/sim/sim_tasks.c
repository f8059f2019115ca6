#include "tests/sim/sim_tasks.h"

#include "broker/core/core.h"
#include "broker/store_internal.h"
#include "client/coordinator_private.h"
#include "client/worker_private.h"
#include "schema/error.h"
#include "tests/support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORKERS 4
#define TASKS 80
#define STEP_MS 10
#define FAULTS_MS 40000 /* how long things break */
#define QUIET_MS 200000 /* by then all has ended */
#define FRAMES_MAX 4096
#define NUMBERS_MAX 512
#define FAULTS_UNTIL_MS (1000000 + FAULTS_MS)
#define CAUGHT 7 /* exit code */

struct frame {
    int64_t at_ms;
    bool up;
    uint64_t route;
    uint8_t *bytes;
    size_t size;
};

struct task_link { /* in place of client/task_link.c */
    struct task_link_owner owner;
    uint64_t route;
    int64_t next_ms, up_last_ms, down_last_ms;
    bool woken;
};

struct running {
    struct muster_task *task;
    int64_t until_ms;
};

struct process { /* a worker */
    muster_worker_t *worker;
    struct running running[4];
    int64_t back_ms;    /* dead until then */
    int64_t paused_ms;  /* stands still until then */
    int64_t unheard_ms; /* since then the broker may not have heard it */
};

static struct world {
    uint64_t seed, random;
    int64_t now;
    struct core *core; /* NULL: it is dead */
    struct store *store;
    struct actions out;
    int64_t broker_back_ms;
    uint64_t starts, routes, incarnations;
    char dir[SCRATCH_PATH_MAX];
    struct frame frames[FRAMES_MAX];
    size_t frames_count;
    muster_coordinator_t *coordinator;
    muster_remote_value_t *values[NUMBERS_MAX];
    struct process processes[WORKERS];
    struct task_link *links[WORKERS + 1]; /* the last is the coordinator's */
    uint64_t began[NUMBERS_MAX];
    bool ended[NUMBERS_MAX];
    uint64_t to_schedule;
    bool faults;
    bool blocks;  /* the coordinator's calls wait */
    bool waiting; /* one does: the world goes on in it */
    enum sim_tasks_break broken;
    const char *expected; /* what it is to fail with */
    struct sim_tasks_stats *stats;
} w;

static uint64_t next_random(void)
{
    uint64_t z = w.random += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static uint64_t below(uint64_t count)
{
    return next_random() % count;
}

/* Of so many steps of the world one, on average. */
static bool one_in(uint64_t count)
{
    return w.faults && below(count) == 0;
}

/* A control has failed, as it must or otherwise. */
static void expected_or_not(const char *text)
{
    if (w.expected == NULL)
        return;
    scratch_remove(w.dir);
    fflush(stderr);
    fprintf(stderr, "seed %llu, broken %d: %s\n", (unsigned long long)w.seed, (int)w.broken, text);
    _exit(strstr(text, w.expected) != NULL ? CAUGHT : 1);
}

#define INSIST(condition, ...)                                                     \
    do {                                                                           \
        if (!(condition)) {                                                        \
            char insisted[256];                                                    \
            snprintf(insisted, sizeof insisted, __VA_ARGS__);                      \
            expected_or_not(insisted);                                             \
            fprintf(stderr, "seed %llu, at %lld ms: ", (unsigned long long)w.seed, \
                    (long long)w.now);                                             \
            fprintf(stderr, __VA_ARGS__);                                          \
            fprintf(stderr, "\n");                                                 \
            fail_msg("%s", #condition);                                            \
        }                                                                          \
    } while (0)

/* --- the network -------------------------------------------------------------------------------- */

static void put_frame(bool up, struct task_link *link, const uint8_t *bytes, size_t size)
{
    int64_t *last = up ? &link->up_last_ms : &link->down_last_ms;
    struct frame *frame;

    if (w.core == NULL || w.frames_count == FRAMES_MAX || one_in(80)) {
        w.stats->frames_lost++;
        return;
    }
    frame = &w.frames[w.frames_count++];
    *frame =
        (struct frame){.at_ms = w.now + 1 + (int64_t)below(20), .up = up, .route = link->route};
    if (frame->at_ms < *last)
        frame->at_ms = *last;
    *last = frame->at_ms;
    frame->bytes = malloc(size);
    assert_non_null(frame->bytes);
    memcpy(frame->bytes, bytes, size);
    frame->size = size;
}

static void drop_frames(uint64_t route) /* 0: all */
{
    size_t kept = 0;

    for (size_t i = 0; i < w.frames_count; i++) {
        if (route == 0 || w.frames[i].route == route)
            free(w.frames[i].bytes);
        else
            w.frames[kept++] = w.frames[i];
    }
    w.frames_count = kept;
}

static void reconnect(struct task_link *link)
{
    if (link == NULL)
        return;
    drop_frames(link->route);
    link->route = ++w.routes;
    link->up_last_ms = link->down_last_ms = 0;
}

/* The first that is due, in order of time; NULL: none. */
static bool take_frame(bool up, uint64_t route, struct frame *ret_frame)
{
    size_t best = w.frames_count;

    for (size_t i = 0; i < w.frames_count; i++)
        if (w.frames[i].up == up && w.frames[i].at_ms <= w.now &&
            (up || w.frames[i].route == route) &&
            (best == w.frames_count || w.frames[i].at_ms < w.frames[best].at_ms))
            best = i;
    if (best == w.frames_count)
        return false;
    *ret_frame = w.frames[best];
    memmove(&w.frames[best], &w.frames[best + 1], (w.frames_count - best - 1) * sizeof w.frames[0]);
    w.frames_count--;
    return true;
}

/* --- in place of client/task_link.c -------------------------------------------------------------- */

int64_t task_now_ms(void)
{
    return w.now++; /* whoever waits sees time pass */
}

uint64_t task_incarnation(void)
{
    return 1000 + ++w.incarnations;
}

enum muster_status task_identity(const char *broker, const char *job,
                                 char ret_broker[ENDPOINT_MAX + 1], char ret_job[JOB_NAME_MAX + 1],
                                 struct muster_error *err)
{
    (void)broker, (void)job, (void)err;
    snprintf(ret_broker, ENDPOINT_MAX + 1, "ipc:///none");
    snprintf(ret_job, JOB_NAME_MAX + 1, "train");
    return MUSTER_OK;
}

bool task_again_due(struct task_again *again, int64_t now_ms, int64_t *wait_ms)
{
    bool due = now_ms >= again->at_ms;

    if (due) {
        again->every_ms = again->every_ms == 0 ? RESEND_MIN_MS : again->every_ms * 2;
        if (again->every_ms > RESEND_MAX_MS)
            again->every_ms = RESEND_MAX_MS;
        again->at_ms = now_ms + again->every_ms;
    }
    if (again->at_ms - now_ms < *wait_ms)
        *wait_ms = again->at_ms - now_ms;
    return due;
}

void task_again_reset(struct task_again *again)
{
    *again = (struct task_again){0, 0};
}

enum muster_status task_link_open(const char *broker, const struct task_link_owner *owner,
                                  struct task_link **ret_link, struct muster_error *err)
{
    struct task_link *link = calloc(1, sizeof *link);

    (void)broker, (void)err;
    assert_non_null(link);
    link->owner = *owner;
    link->route = ++w.routes;
    *ret_link = link;
    return MUSTER_OK;
}

void task_link_wake(struct task_link *link)
{
    link->woken = true;
}

void task_link_ask(struct task_link *link)
{
    link->woken = true;
}

void task_link_push(struct task_link *link)
{
    (void)link;
}

void task_link_drive(struct task_link *link)
{
    (void)link; /* the world gives the turns */
}

uint64_t task_link_seen(struct task_link *link)
{
    (void)link;
    return 0;
}

static void time_passes(void);

void task_link_lead(struct task_link *link, uint64_t seen, int64_t timeout_ms)
{
    (void)link, (void)seen, (void)timeout_ms;
    if (w.waiting)
        time_passes();
}

bool task_link_send(struct task_link *link, struct wire_msg *message)
{
    static uint8_t bytes[WIRE_FRAME_MAX];
    size_t size;

    message->up = (struct wire_up){.job = link->owner.job,
                                   .role = link->owner.role,
                                   .rank = link->owner.index,
                                   .incarnation = link->owner.incarnation};
    size = wire_encode(message, bytes, sizeof bytes);
    INSIST(size > 0, "a %s cannot be encoded", wire_type_name(message->type));
    put_frame(true, link, bytes, size);
    return true;
}

void task_link_close(struct task_link **link)
{
    if (*link == NULL)
        return;
    for (size_t i = 0; i <= WORKERS; i++)
        if (w.links[i] == *link)
            w.links[i] = NULL;
    drop_frames((*link)->route);
    free(*link);
    *link = NULL;
}

/* --- the broker --------------------------------------------------------------------------------- */

static void step_core(enum input_kind kind, uint64_t route, const struct wire_msg *message)
{
    const struct input input = {.kind = kind,
                                .now_boot_ms = w.now,
                                .now_unix_ms = 1700000000000 + w.now,
                                .route = route,
                                .message = message};

    sim_tasks_break_core(w.core, w.broken);
    core_step(w.core, &input, &w.out);
}

static void load_row(void *arg, const struct record *row)
{
    (void)arg;
    core_load(w.core, row);
}

static void broker_dies(void)
{
    core_destroy(&w.core);
    actions_clear(&w.out);
    drop_frames(0);
    w.broker_back_ms = w.now + (int64_t)below(3000);
    w.stats->broker_kills++;
}

/* T1, over everything that was ever committed. */
static void check_ends(void)
{
    for (size_t i = 0; i < w.out.count; i++) {
        const struct record *row = &w.out.items[i].record;

        if (w.out.items[i].kind != ACTION_PERSIST || row->kind != RECORD_TASK_END)
            continue;
        INSIST(row->u.task.number < NUMBERS_MAX && !w.ended[row->u.task.number],
               "task %llu ends twice", (unsigned long long)row->u.task.number);
        w.ended[row->u.task.number] = true;
    }
}

/* What a start of the broker insists on holds in between, too. */
static void check_rows(void)
{
    struct muster_error err;

    INSIST(store_check_rows(w.store, &err) == MUSTER_OK, "%.200s", err.text);
    w.stats->checks++;
}

static struct task_link *link_of(uint64_t route)
{
    for (size_t i = 0; i <= WORKERS; i++)
        if (w.links[i] != NULL && w.links[i]->route == route)
            return w.links[i];
    return NULL;
}

static void send_action(const struct action *action)
{
    static uint8_t bytes[WIRE_FRAME_MAX];
    struct task_link *link = link_of(action->route);
    struct wire_msg message = action->message;
    struct muster_error err;
    size_t size;

    if (link == NULL)
        return;
    if (action->kind == ACTION_SEND_TASKS) {
        assert_int_equal(store_task_page(w.store, &message.u.tasks_page, &err), MUSTER_OK);
    } else if (action->kind == ACTION_SEND_TASK_RESULT) {
        const struct wire_result_get asked = message.u.result_get;
        message = (struct wire_msg){.type = WIRE_RESULT_CHUNK};
        core_fill_down(w.core, "train", &message.down);
        message.u.result_chunk = (struct wire_result_chunk){
            .queue = asked.queue, .number = asked.number, .offset = asked.offset};
        message.u.result_chunk.code =
            store_task_result(w.store, &asked, &message.u.result_chunk, &err);
    } else if (action->kind != ACTION_SEND) {
        return;
    }
    size = wire_encode(&message, bytes, sizeof bytes);
    INSIST(size > 0, "a %s cannot be encoded", wire_type_name(message.type));
    put_frame(false, link, bytes, size);
}

static void commit_and_send(void)
{
    struct muster_error err;

    if (one_in(400)) {
        broker_dies(); /* before the commit */
        return;
    }
    if (store_apply(w.store, &w.out, w.now, &err) != MUSTER_OK)
        fail_msg("%s", err.text);
    check_ends();
    if (below(200) == 0)
        check_rows();
    if (one_in(400)) {
        broker_dies(); /* and nobody was told */
        return;
    }
    for (size_t i = 0; i < w.out.count; i++)
        send_action(&w.out.items[i]);
    actions_clear(&w.out);
}

static void broker_starts(void)
{
    const struct core_options options = {.start_id = 7000 + ++w.starts,
                                         .task_bytes_max = w.seed % 3 == 0 ? 1000 : 0,
                                         .events_endpoint = "ipc:///e"};
    struct muster_error err;

    w.core = core_create(&options);
    assert_non_null(w.core);
    if (store_load(w.store, load_row, NULL, &err) != MUSTER_OK)
        fail_msg("%s", err.text);
    for (size_t i = 0; i <= WORKERS; i++)
        reconnect(w.links[i]);
    step_core(INPUT_START, 0, NULL);
    commit_and_send();
}

static void broker_passes(void)
{
    static struct arena arena;
    struct frame frame;

    if (w.core == NULL) {
        if (w.now >= w.broker_back_ms)
            broker_starts();
        return;
    }
    while (take_frame(true, 0, &frame)) {
        struct wire_msg message;

        arena_reset(&arena);
        if (wire_decode(frame.bytes, frame.size, &arena, &message, NULL) == MUSTER_OK)
            step_core(INPUT_MESSAGE, frame.route, &message);
        free(frame.bytes);
    }
    arena_free(&arena);
    step_core(INPUT_TICK, 0, NULL);
    commit_and_send();
}

/* --- those who speak with it -------------------------------------------------------------------- */

static void link_turns(struct task_link *link)
{
    static struct arena arena;
    struct frame frame;
    bool heard = false;

    if (link == NULL)
        return;
    while (take_frame(false, link->route, &frame)) {
        struct wire_msg message;

        arena_reset(&arena);
        assert_int_equal(wire_decode(frame.bytes, frame.size, &arena, &message, NULL), MUSTER_OK);
        link->owner.take(link->owner.arg, &message, w.now);
        free(frame.bytes);
        heard = true;
    }
    arena_free(&arena);
    if (!heard && !link->woken && w.now < link->next_ms)
        return;
    link->woken = false;
    link->next_ms = w.now + link->owner.turn(link->owner.arg, w.now);
}

static void worker_begins(size_t i)
{
    struct process *process = &w.processes[i];
    struct muster_worker_options options = MUSTER_WORKER_OPTIONS_INIT;
    struct task_link_owner owner;

    options.index = (int)i;
    options.slots = 1 + (int)below(3);
    options.prefetch = (int)below(4);
    assert_int_equal(muster_worker_open(&options, &process->worker, NULL), MUSTER_OK);
    owner = (struct task_link_owner){.arg = process->worker,
                                     .take = worker_take,
                                     .turn = worker_turn,
                                     .job = process->worker->job,
                                     .role = ROLE_WORKER,
                                     .index = i,
                                     .incarnation = process->worker->incarnation};
    task_link_open("", &owner, &process->worker->link, NULL);
    process->worker->started = true;
    w.links[i] = process->worker->link;
    memset(process->running, 0, sizeof process->running);
    process->paused_ms = 0;
    process->unheard_ms = w.now;
}

static void worker_dies(size_t i)
{
    struct process *process = &w.processes[i];

    process->worker->left = true; /* so that nobody waits for its goodbye */
    muster_worker_close(&process->worker);
    memset(process->running, 0, sizeof process->running);
    process->back_ms = w.now + (int64_t)below(6000);
}

static void attempt_begins(struct process *process, struct running *slot)
{
    struct muster_task *task = process->worker->first;

    while (task != NULL && task->state != ATTEMPT_WAITING)
        task = task->next;
    if (task == NULL)
        return;
    task->state = ATTEMPT_RUNNING;
    process->worker->running++;
    w.stats->attempts++;
    INSIST(task->number < NUMBERS_MAX && ++w.began[task->number] <= 3,
           "task %llu is begun a fourth time", (unsigned long long)task->number);
    slot->task = task;
    slot->until_ms =
        w.now + 5 + (int64_t)below(one_in(10) || w.broken == SIM_TASKS_RUNS ? 4000 : 120);
}

/* Ends as the argument says: "f" fails; else the number, as text, long if it can be divided by 16. */
static void attempt_ends(struct process *process, struct running *slot)
{
    struct muster_task *task = slot->task;

    if (atomic_load(&task->cancelled) && below(2) == 0)
        task->status = MUSTER_E_CANCELLED;
    else if (task->args_size == 1 && task->bytes[0] == 'f')
        task->status = MUSTER_E_TASK, task->code = 17;
    if (task->status == MUSTER_OK) {
        task->result_size = task->number % 16 == 0 ? 60000 : 8;
        task->result = calloc(1, task->result_size);
        assert_non_null(task->result);
        memcpy(task->result, &task->number, sizeof task->number);
    }
    task->state = ATTEMPT_ENDED;
    process->worker->running--;
    process->worker->unsent++;
    task_link_wake(process->worker->link);
    slot->task = NULL;
}

static void worker_works(struct process *process)
{
    for (uint64_t i = 0; i < process->worker->slots; i++) {
        struct running *slot = &process->running[i];

        if (slot->task != NULL && (w.now >= slot->until_ms || atomic_load(&slot->task->cancelled)))
            attempt_ends(process, slot);
        if (slot->task == NULL && !process->worker->stopping)
            attempt_begins(process, slot);
    }
}

static void process_passes(size_t i)
{
    struct process *process = &w.processes[i];

    if (process->worker == NULL) {
        if (w.now >= process->back_ms)
            worker_begins(i);
        return;
    }
    if (w.now < process->paused_ms)
        return;
    if (one_in(2500)) {
        w.stats->worker_kills++;
        worker_dies(i);
        return;
    }
    if (one_in(2500))
        process->worker->stopping = true; /* in order: it gives back, and leaves */
    if (process->worker->left) {
        w.stats->leaves++;
        worker_dies(i);
        return;
    }
    if (one_in(4000)) { /* stopped, maybe for so long that it is taken for lost */
        w.stats->pauses++;
        process->paused_ms = w.now + (int64_t)below(9000);
        process->unheard_ms = process->paused_ms;
        return;
    }
    if (one_in(1500)) {
        w.stats->cuts++;
        reconnect(w.links[i]);
    }
    worker_works(process);
    link_turns(w.links[i]);
}

/* --- the coordinator ----------------------------------------------------------------------------- */

static void others_pass(void);

/* muster_coordinator_open waits for the answer: the world goes on meanwhile. */
enum muster_status task_link_start(struct task_link *link, struct muster_error *err)
{
    struct muster_coordinator *c = link->owner.arg;

    (void)err;
    w.links[WORKERS] = link;
    for (int i = 0; i < 5000 && !c->ever_opened; i++) {
        others_pass();
        link_turns(link);
        w.now += STEP_MS;
    }
    return MUSTER_OK;
}

static void coordinator_begins(bool fresh)
{
    struct muster_coordinator_options options = MUSTER_COORDINATOR_OPTIONS_INIT;
    struct muster_error err;

    options.fresh = fresh;
    options.max_queued = w.blocks ? 6 : 0;
    options.broker_timeout_ms = INT32_MAX;
    if (muster_coordinator_open(&options, &w.coordinator, &err) != MUSTER_OK)
        fail_msg("%s", err.text);
    for (uint64_t number = 1; number <= muster_coordinator_scheduled(w.coordinator); number++)
        assert_int_equal(muster_coordinator_value(w.coordinator, number, &w.values[number], &err),
                         MUSTER_OK);
}

static void coordinator_dies(void)
{
    w.coordinator->stale = true; /* so that nothing is handed over */
    muster_coordinator_close(&w.coordinator);
    for (size_t i = 0; i < NUMBERS_MAX; i++)
        muster_remote_value_free(&w.values[i]);
}

/* T3: but at workers that the broker may have taken for lost. */
static void check_nothing_runs(void)
{
    for (size_t i = 0; i < WORKERS; i++) {
        struct process *process = &w.processes[i];

        if (process->worker == NULL || w.now - process->unheard_ms < 8000)
            continue;
        for (size_t k = 0; k < 4; k++)
            INSIST(process->running[k].task == NULL,
                   "an error was raised and worker %zu runs task %llu", i,
                   (unsigned long long)process->running[k].task->number);
    }
}

static void schedule_one(void)
{
    struct muster_call call = MUSTER_CALL_INIT;
    muster_remote_value_t *value = NULL;
    struct muster_error err;
    enum muster_status status;

    call.function = "work";
    call.args = below(40) == 0 ? "f" : "w";
    call.args_size = 1;
    w.waiting = w.blocks;
    status = muster_coordinator_schedule(w.coordinator, &call, w.blocks ? -1 : 0, &value, &err);
    w.waiting = false;
    if (status == MUSTER_OK) {
        w.to_schedule--;
        w.stats->tasks++;
        w.values[muster_remote_value_id(value)] = value;
    } else if (status != MUSTER_E_TIMEOUT) {
        w.stats->raised++;
        check_nothing_runs();
    }
}

/* True: all has ended. */
static bool look(void)
{
    struct muster_error err;
    enum muster_status status;

    w.waiting = w.blocks;
    status = muster_coordinator_join(w.coordinator, w.blocks ? -1 : 0, &err);
    w.waiting = false;

    if (status != MUSTER_OK && status != MUSTER_E_TIMEOUT) {
        INSIST(status == MUSTER_E_TASK || status == MUSTER_E_LOST, "join: %.200s", err.text);
        w.stats->raised++;
        check_nothing_runs();
    }
    return status == MUSTER_OK && w.to_schedule == 0;
}

static void others_pass(void)
{
    broker_passes();
    for (size_t i = 0; i < WORKERS; i++)
        process_passes(i);
}

static bool all_known(void)
{
    for (size_t i = 0; i < NUMBERS_MAX; i++)
        if (w.values[i] != NULL && w.values[i]->state == TASK_QUEUED)
            return false;
    return true;
}

/* One step of everybody but the user's own thread, which may be waiting. */
static void time_passes(void)
{
    others_pass();
    link_turns(w.links[WORKERS]);
    if (one_in(3000))
        reconnect(w.links[WORKERS]);
    w.now += STEP_MS;
    if (w.now >= FAULTS_UNTIL_MS)
        w.faults = false;
    INSIST(w.now < FAULTS_UNTIL_MS + QUIET_MS, "not all tasks have ended: %llu of %llu",
           (unsigned long long)w.coordinator->ended, (unsigned long long)w.coordinator->scheduled);
}

static bool world_passes(void)
{
    bool over = false;

    time_passes();
    if (one_in(6000)) {
        w.stats->attaches++;
        coordinator_dies();
        coordinator_begins(false);
    }
    if (w.to_schedule > 0 && below(20) == 0)
        schedule_one();
    if (below(40) == 0)
        over = look() && all_known();
    return over && !w.faults;
}

/* --- the end ------------------------------------------------------------------------------------- */

static void check_result(const struct muster_remote_value *value)
{
    uint64_t number = 0;

    w.stats->done += value->state == TASK_DONE;
    w.stats->failed += value->state == TASK_FAILED;
    w.stats->cancelled += value->state == TASK_CANCELLED;
    if (value->state != TASK_DONE || value->have < sizeof number)
        return;
    memcpy(&number, value->result, sizeof number);
    INSIST(number == value->number, "task %llu has the result of %llu",
           (unsigned long long)value->number, (unsigned long long)number);
}

static void clean_up(void)
{
    check_rows();
    coordinator_dies();
    w.faults = false;
    for (size_t i = 0; i < WORKERS; i++)
        if (w.processes[i].worker != NULL)
            worker_dies(i);
    core_destroy(&w.core);
    drop_frames(0);
    actions_free(&w.out);
    store_close(&w.store);
    scratch_remove(w.dir);
}

static void run(uint64_t seed, enum sim_tasks_break how, const char *expected,
                struct sim_tasks_stats *stats)
{
    const struct store_options options = {.allow_network_fs = true};
    struct muster_error err;

    memset(&w, 0, sizeof w);
    w.broken = how;
    w.expected = expected;
    w.blocks = seed % 2 == 0;
    w.seed = w.random = seed;
    w.stats = stats;
    w.now = 1000000;
    w.to_schedule = TASKS;
    actions_init(&w.out);
    if (access("/dev/shm", W_OK) == 0) /* a disk's fsyncs would be most of the time */
        setenv("TMPDIR", "/dev/shm", 1);
    scratch_make(w.dir);
    if (store_open(scratch_path(w.dir, "muster.db"), &options, &w.store, &err) != MUSTER_OK)
        fail_msg("%s", err.text);
    broker_starts();
    for (size_t i = 0; i < WORKERS; i++)
        worker_begins(i);
    w.faults = how == SIM_TASKS_SOUND;
    coordinator_begins(true);
    while (w.now < FAULTS_UNTIL_MS)
        world_passes();
    while (!world_passes())
        continue;
    for (size_t i = 0; i < NUMBERS_MAX; i++)
        if (w.values[i] != NULL)
            check_result(w.values[i]);
    clean_up();
}

bool sim_tasks_fails(uint64_t seed, enum sim_tasks_break how, const char *words)
{
    struct sim_tasks_stats stats = {0};
    int status = 0;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        run(seed, how, words, &stats);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == CAUGHT));
    return WEXITSTATUS(status) == CAUGHT;
}

void sim_tasks_run(uint64_t seed, struct sim_tasks_stats *stats)
{
    run(seed, SIM_TASKS_SOUND, NULL, stats);
}

void sim_tasks_print(const struct sim_tasks_stats *stats)
{
    printf("%llu tasks, %llu attempts: %llu done, %llu failed, %llu cancelled; %llu errors raised; "
           "broker "
           "killed %llu times, workers %llu, left %llu, stopped %llu, cut %llu; %llu attaches, "
           "%llu frames lost; the database was checked %llu times\n",
           (unsigned long long)stats->tasks, (unsigned long long)stats->attempts,
           (unsigned long long)stats->done, (unsigned long long)stats->failed,
           (unsigned long long)stats->cancelled, (unsigned long long)stats->raised,
           (unsigned long long)stats->broker_kills, (unsigned long long)stats->worker_kills,
           (unsigned long long)stats->leaves, (unsigned long long)stats->pauses,
           (unsigned long long)stats->cuts, (unsigned long long)stats->attaches,
           (unsigned long long)stats->frames_lost, (unsigned long long)stats->checks);
}
