/* A broker's queues, and what two coordinators, four workers, time and crashes may do to them, in
 * any order: the core with its database. The input is a text, as fuzz_core's: a letter says what
 * happens, the digits behind it to whom and with what (see `deeds`). After each input what the
 * broker says can be sent, no task ends twice, what a worker is given is leased to it, and nothing
 * is leased when an error is raised; the rows fit together at every start and in the end, and then
 * an honest worker brings all tasks to theirs. */
#include "broker/core/tasks/tasks.h"
#include "broker/store/store_internal.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/scratch.h"

#include <unistd.h>

#define DEEDS_MAX 300
#define WORKERS 4
#define COORDINATORS 2
#define HELD_MAX 32
#define ENDS_MAX 1024
#define HONEST_PASSES_MAX 200 /* of a second */
#define TASKS_MAX 40          /* of a queue */

struct speaker {
    uint64_t incarnation, route;
    struct wire_lease_entry held[HELD_MAX]; /* of a worker: what it was sent */
    size_t held_count;
    uint64_t queue; /* of a coordinator */
};

static struct play {
    struct bytes in;
    struct store *store;
    struct core *core;
    struct actions out;
    int64_t now;
    uint64_t starts, lives, routes;
    struct speaker workers[WORKERS + 1]; /* the last is honest */
    struct speaker coordinators[COORDINATORS];
    uint64_t ends[ENDS_MAX]; /* ids of tasks that ended */
    size_t ends_count;
} p;

static unsigned digit(unsigned count)
{
    return (take(&p.in) - (unsigned)'0') % count;
}

static int64_t ask(const char *sql, uint64_t id)
{
    sqlite3_stmt *statement = NULL;
    int64_t value;

    must(sqlite3_prepare_v2(p.store->db, sql, -1, &statement, NULL) == SQLITE_OK);
    sqlite3_bind_int64(statement, 1, (int64_t)id);
    must(sqlite3_step(statement) == SQLITE_ROW);
    value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return value;
}

static void finding(const char *what, const struct muster_error *err)
{
    fprintf(stderr, "must hold: %s: %s\n", what, err->text);
    abort();
}

/* --- what must hold --------------------------------------------------------------------------- */

static void check_rows(void)
{
    struct muster_error err = {0};

    if (store_check_rows(p.store, &err) != MUSTER_OK) {
        finding("the rows fit together", &err);
    }
}

static void check_end(const struct record_task *row) /* T1 */
{
    uint64_t id = row->queue << 40 | row->number;

    for (size_t i = 0; i < p.ends_count; i++)
        must(p.ends[i] != id);
    if (p.ends_count < ENDS_MAX)
        p.ends[p.ends_count++] = id;
}

static void take_work(struct speaker *worker, const struct wire_work *work)
{
    for (size_t i = 0; i < work->tasks.count; i++) {
        const struct wire_task_entry *entry = &work->tasks.items[i];
        size_t known = 0;

        if (entry->kind == TASK_KIND_TASK) /* T2 */
            must(ask("SELECT count(*) FROM task WHERE id = ?1 AND state = 'leased'",
                     entry->queue << 40 | entry->number) == 1 ||
                 ask("SELECT count(*) FROM task_queue WHERE queue = ?1", entry->queue) == 0 ||
                 entry->fn[0] == '\0'); /* taken away while it was on its way */
        while (known < worker->held_count && (worker->held[known].number != entry->number ||
                                              worker->held[known].queue != entry->queue ||
                                              worker->held[known].kind != entry->kind))
            known++;
        if (known == HELD_MAX)
            continue;
        worker->held[known] =
            (struct wire_lease_entry){entry->queue, entry->number, entry->attempt, entry->kind, 0};
        worker->held_count += known == worker->held_count;
    }
}

static void check_message(const struct action *action)
{
    static uint8_t frame[WIRE_FRAME_MAX];
    const struct wire_msg *m = &action->message;

    must(!wire_is_up(m->type) && wire_encode(m, frame, sizeof frame) > 0);
    if (m->type == WIRE_RAISED && m->u.raised.number > 0 && /* T3 */
        m->u.raised.cancelled_to >=
            (uint64_t)ask("SELECT ifnull(max(taken), 0) FROM task_queue WHERE queue = ?1",
                          m->u.raised.queue) &&
        ask("SELECT ifnull(max(error_pending), 1) FROM task_queue WHERE queue = ?1",
            m->u.raised.queue) == 0)
        must(ask("SELECT count(*) FROM task WHERE id >> 40 = ?1 AND state = 'queued'",
                 m->u.raised.queue) == 0);
    for (int w = 0; w <= WORKERS && m->type == WIRE_WORK; w++)
        if (p.workers[w].route == action->route)
            take_work(&p.workers[w], &m->u.work);
    for (int c = 0; c < COORDINATORS && m->type == WIRE_QUEUE_OPENED; c++)
        if (p.coordinators[c].route == action->route && m->u.queue_opened.code == MUSTER_OK)
            p.coordinators[c].queue = m->u.queue_opened.queue;
}

static void check_pages(const struct action *action)
{
    static uint8_t frame[WIRE_FRAME_MAX];
    struct wire_msg message = action->message;
    struct muster_error err;

    if (action->kind == ACTION_SEND_TASKS) {
        must(store_task_page(p.store, &message.u.tasks_page, &err) == MUSTER_OK);
    } else {
        const struct wire_result_get asked = message.u.result_get;
        message = (struct wire_msg){.type = WIRE_RESULT_CHUNK};
        core_fill_down(p.core, "train", &message.down);
        message.u.result_chunk = (struct wire_result_chunk){
            .queue = asked.queue, .number = asked.number, .offset = asked.offset};
        message.u.result_chunk.code =
            store_task_result(p.store, &asked, &message.u.result_chunk, &err);
        must(message.u.result_chunk.code == MUSTER_OK ||
             message.u.result_chunk.code == MUSTER_E_NOT_FOUND);
    }
    must(wire_encode(&message, frame, sizeof frame) > 0);
}

static void write_and_check(void)
{
    struct muster_error err = {0};

    for (size_t i = 0; i < p.out.count; i++)
        if (p.out.items[i].kind == ACTION_PERSIST && p.out.items[i].record.kind == RECORD_TASK_END)
            check_end(&p.out.items[i].record.u.task);
    if (store_apply(p.store, &p.out, p.now, &err) != MUSTER_OK) {
        finding("what the core wants written can be", &err);
    }
    for (size_t i = 0; i < p.out.count; i++) {
        const struct action *action = &p.out.items[i];

        if (action->kind == ACTION_SEND)
            check_message(action);
        else if (action->kind == ACTION_SEND_TASKS || action->kind == ACTION_SEND_TASK_RESULT)
            check_pages(action);
    }
    actions_clear(&p.out);
}

/* --- the broker ------------------------------------------------------------------------------- */

static void step(enum input_kind kind, uint64_t route, const struct wire_msg *message)
{
    const struct input input = {.kind = kind,
                                .now_boot_ms = p.now,
                                .now_unix_ms = 1700000000000 + p.now,
                                .route = route,
                                .message = message};

    core_step(p.core, &input, &p.out);
    write_and_check();
}

static void load_row(void *arg, const struct record *row)
{
    core_load(arg, row);
}

static void broker_starts(void)
{
    const struct core_options options = {.start_id = 7000 + ++p.starts,
                                         .events_endpoint = "ipc:///e"};
    struct muster_error err = {0};

    core_destroy(&p.core);
    p.core = core_create(&options);
    must(p.core != NULL);
    if (store_load(p.store, load_row, p.core, &err) != MUSTER_OK) {
        finding("a start takes what is there", &err);
    }
    step(INPUT_START, 0, NULL);
}

/* --- saying ----------------------------------------------------------------------------------- */

static void say(const struct speaker *who, struct wire_msg message)
{
    message.up.job = "train";
    message.up.incarnation = who->incarnation;
    message.up.role = ROLE_TOOL;
    for (uint64_t w = 0; w <= WORKERS; w++)
        if (who == &p.workers[w])
            message.up.rank = w, message.up.role = ROLE_WORKER;
    step(INPUT_MESSAGE, who->route, &message);
}

static struct speaker *some_worker(void)
{
    return &p.workers[digit(WORKERS)];
}

static struct speaker *some_coordinator(void)
{
    return &p.coordinators[digit(COORDINATORS)];
}

static uint64_t some_number(const struct speaker *coordinator)
{
    const struct task_queue *queue = tasks_queue_find(p.core, coordinator->queue);
    uint64_t taken = queue != NULL ? queue->taken : 0;

    switch (digit(6)) {
    case 0:
        return taken + 1;
    case 1:
        return taken;
    case 2:
        return taken / 2;
    case 3:
        return 1;
    case 4:
        return TASK_NUMBER_MAX;
    default:
        return 0;
    }
}

static void do_open(void)
{
    struct speaker *c = some_coordinator();
    struct wire_msg m = {.type = WIRE_QUEUE_OPEN};

    m.u.queue_open = (struct wire_queue_open){.nonce = 5,
                                              .name = digit(4) == 3 ? "other" : "main",
                                              .fresh = digit(3) == 1,
                                              .max_queued = digit(3) == 2 ? 2 : 0,
                                              .max_attempts = digit(4)};
    say(c, m);
}

static void do_add(void)
{
    static const char *const functions[] = {"work", "", "fail"};
    const struct speaker *c = some_coordinator();
    const struct task_queue *queue = tasks_queue_find(p.core, c->queue);
    uint64_t first = some_number(c);
    size_t count = digit(6);
    struct wire_task_entry entries[6];
    struct wire_msg m = {.type = WIRE_TASKS_ADD};

    if (queue != NULL && queue->taken > TASKS_MAX)
        return;
    for (size_t i = 0; i < count; i++)
        entries[i] = (struct wire_task_entry){.number = (first + i) & TASK_NUMBER_MAX,
                                              .fn = functions[digit(3)],
                                              .timeout_ms = digit(3) == 2 ? 700 : 0,
                                              .args = {(const uint8_t *)"args", digit(5)}};
    m.u.tasks_add.queue = c->queue;
    m.u.tasks_add.tasks.items = entries;
    m.u.tasks_add.tasks.count = count;
    say(c, m);
}

static void do_of_queue(void)
{
    static const enum wire_type types[] = {WIRE_RESOURCE_ADD, WIRE_RAISE,      WIRE_TASK_CANCEL,
                                           WIRE_TASKS_GET,    WIRE_RESULT_GET, WIRE_QUEUE_BEAT};
    const struct speaker *c = some_coordinator();
    struct wire_msg m = {.type = types[digit(6)]};
    const struct task_queue *queue = tasks_queue_find(p.core, c->queue);
    uint64_t number = some_number(c);
    uint64_t resources = queue != NULL ? queue->resources_count : 0;
    uint64_t raised = queue != NULL ? queue->raised : 0;

    if (m.type == WIRE_RESOURCE_ADD)
        m.u.resource_add = (struct wire_resource_add){
            .queue = c->queue, .number = resources + digit(3), .fn = "make"};
    else if (m.type == WIRE_RAISE)
        m.u.raise =
            (struct wire_raise){c->queue, digit(9) == 8 ? UINT64_MAX : raised + digit(3), number};
    else if (m.type == WIRE_TASK_CANCEL)
        m.u.task_cancel = (struct wire_task_cancel){c->queue, number};
    else if (m.type == WIRE_TASKS_GET)
        m.u.tasks_get = (struct wire_tasks_get){c->queue, 1, number, digit(9)};
    else if (m.type == WIRE_RESULT_GET)
        m.u.result_get = (struct wire_result_get){c->queue, number, digit(3)};
    else
        m.u.queue_beat = (struct wire_queue_beat){c->queue, number, digit(3)};
    say(c, m);
}

static void do_hello(void)
{
    struct speaker *w = some_worker();
    unsigned variant = digit(6);
    struct wire_lease_entry some[HELD_MAX];
    struct wire_msg m = {.type = WIRE_WORK_HELLO};

    if (variant == 0) { /* another process */
        w->incarnation = 2000 + ++p.lives;
        w->route = 3000 + ++p.routes;
        w->held_count = 0;
    } else if (variant == 1) { /* another connection */
        w->route = 3000 + ++p.routes;
    } else if (variant == 2) { /* it forgot something */
        w->held_count /= 2;
    }
    memcpy(some, w->held, sizeof some);
    if (variant == 3 && w->held_count > 0) { /* it says what is not so */
        some[0].attempt += digit(3);
        some[0].kind = digit(3);
        some[0].code = digit(2);
        some[0].number += digit(2);
    }
    m.u.work_hello = (struct wire_work_hello){
        .nonce = 3, .host = "h", .pid = 4, .slots = digit(4), .takes = digit(6)};
    m.u.work_hello.held.items = some;
    m.u.work_hello.held.count = w->held_count;
    say(w, m);
}

static void forget_held(struct speaker *w, size_t i)
{
    w->held_count--;
    memmove(&w->held[i], &w->held[i + 1], (w->held_count - i) * sizeof w->held[0]);
}

static void do_done(void)
{
    struct speaker *w = some_worker();
    size_t i = digit(4);
    unsigned variant = digit(7);
    struct wire_ended_entry entry = {.text = "", .state = TASK_DONE};
    struct wire_msg m = {.type = WIRE_WORK_DONE};

    if (i >= w->held_count)
        return;
    entry.queue = w->held[i].queue;
    entry.number = w->held[i].number;
    entry.attempt = w->held[i].attempt + (variant == 6);
    entry.kind = w->held[i].kind;
    if (variant == 1)
        entry.state = TASK_FAILED, entry.status = MUSTER_E_TASK, entry.text = "no";
    else if (variant == 2)
        entry.state = TASK_CANCELLED, entry.status = MUSTER_E_CANCELLED;
    else if (variant == 3)
        entry.state = TASK_QUEUED;
    else if (variant == 4)
        entry.bytes = 2, entry.result = (struct wire_bytes){(const uint8_t *)"ok", 2};
    else if (variant == 5)
        entry.bytes = 6; /* in parts */
    m.u.work_done.tasks.items = &entry;
    m.u.work_done.tasks.count = 1;
    say(w, m);
    if (digit(4) > 0) /* else it is said again */
        forget_held(w, i);
}

static void do_part(void)
{
    struct speaker *w = some_worker();
    size_t i = digit(4);
    struct wire_msg m = {.type = WIRE_WORK_PART};

    if (i >= w->held_count)
        return;
    m.u.work_part = (struct wire_work_part){.queue = w->held[i].queue,
                                            .number = w->held[i].number,
                                            .attempt = w->held[i].attempt,
                                            .offset = (uint64_t)digit(4) * 3,
                                            .total = 6,
                                            .bytes = {(const uint8_t *)"part", digit(5)}};
    say(w, m);
}

static void do_beat(void)
{
    struct speaker *w = some_worker();
    struct wire_msg m = {.type = digit(6) == 5 ? WIRE_WORK_LEAVE : WIRE_WORK_BEAT};

    if (m.type == WIRE_WORK_BEAT) {
        m.u.work_beat.received = digit(5) == 4 ? UINT64_MAX : digit(5);
        m.u.work_beat.leaving = digit(5) == 4;
        m.u.work_beat.renewed.items = w->held;
        m.u.work_beat.renewed.count = digit(2) ? w->held_count : 0;
    }
    say(w, m);
}

static void do_time(void)
{
    static const int64_t times[] = {0, 1, 300, 800, 1900, 2100, 5100, 10100};

    p.now += times[digit(8)];
    step(INPUT_TICK, 0, NULL);
}

static void do_frame(void)
{
    const struct speaker *who = digit(2) == 0 ? some_worker() : some_coordinator();
    size_t size = take(&p.in);
    struct arena arena;
    struct wire_msg m;

    if (size > p.in.left)
        size = p.in.left;
    arena_init(&arena, (size_t)1 << 20);
    if (wire_decode(p.in.at, size, &arena, &m, NULL) == MUSTER_OK && m.type >= WIRE_QUEUE_OPEN &&
        m.type <= WIRE_WORK_LEFT && wire_is_up(m.type))
        say(who, m);
    arena_free(&arena);
    p.in.at += size;
    p.in.left -= size;
}

static void do_restart(void)
{
    broker_starts();
}

static const struct {
    char letter;
    void (*act)(void);
} deeds[] = {
    {'o', do_open},                      /* COORDINATOR NAME FRESH FULL ATTEMPTS */
    {'a', do_add},                       /* COORDINATOR NUMBER COUNT (FUNCTION TIMEOUT ARGS)... */
    {'q', do_of_queue},                  /* COORDINATOR WHAT NUMBER ... */
    {'h', do_hello},                     /* WORKER VARIANT SLOTS TAKES */
    {'d', do_done},                      /* WORKER WHICH VARIANT FORGETS */
    {'p', do_part},                      /* WORKER WHICH OFFSET SIZE */
    {'b', do_beat},                      /* WORKER LEAVES RECEIVED LEAVING RENEWS */
    {'t', do_time},                      /* MS */
    {'k', do_restart},  {'f', do_frame}, /* WHO SIZE BYTES */
};

/* --- all ends --------------------------------------------------------------------------------- */

static void honest_work(struct speaker *w)
{
    struct wire_msg beat = {.type = WIRE_WORK_BEAT};

    beat.u.work_beat.renewed.items = w->held;
    beat.u.work_beat.renewed.count = w->held_count;
    say(w, beat);
    while (w->held_count > 0) {
        struct wire_ended_entry entry = {.queue = w->held[0].queue,
                                         .number = w->held[0].number,
                                         .attempt = w->held[0].attempt,
                                         .kind = w->held[0].kind,
                                         .state = TASK_DONE,
                                         .text = ""};
        struct wire_msg m = {.type = WIRE_WORK_DONE};

        m.u.work_done.tasks.items = &entry;
        m.u.work_done.tasks.count = 1;
        forget_held(w, 0);
        say(w, m);
    }
}

/* Who owns a queue wants its error, and then all the rest. */
static void raise_all(void)
{
    for (struct task_queue *q = p.core->tasks->queues; q != NULL; q = q->next) {
        struct speaker owner = {.incarnation = q->coordinator, .route = q->route};
        struct wire_msg m = {.type = WIRE_RAISE};

        m.u.raise = (struct wire_raise){q->queue, q->raised + 1, 0};
        if (q->mapped && q->error_pending && q->raised < UINT64_MAX)
            say(&owner, m);
    }
}

static bool all_ended(void)
{
    for (const struct task_queue *q = p.core->tasks->queues; q != NULL; q = q->next)
        if (q->live > 0 && q->raised < UINT64_MAX && (q->mapped || !q->error_pending))
            return false;
    return true;
}

static void everything_ends(void)
{
    struct speaker *honest = &p.workers[WORKERS];
    struct wire_msg hello = {.type = WIRE_WORK_HELLO};
    int passes = 0;

    if (p.core->tasks == NULL)
        return;
    *honest = (struct speaker){.incarnation = 9000, .route = 9001};
    hello.u.work_hello =
        (struct wire_work_hello){.nonce = 3, .host = "h", .pid = 4, .slots = 2, .takes = 4};
    say(honest, hello);
    while (!all_ended()) {
        must(passes++ < HONEST_PASSES_MAX);
        p.now += 1000;
        step(INPUT_TICK, 0, NULL);
        honest_work(honest);
        raise_all();
    }
}

/* --- all together ----------------------------------------------------------------------------- */

static char dir[SCRATCH_PATH_MAX];

static void remove_store(void)
{
    store_close(&p.store);
    scratch_remove(dir);
}

static void open_store(void)
{
    const struct store_options options = {.allow_network_fs = true};
    struct muster_error err = {0};

    if (access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 1);
    scratch_make(dir);
    must(store_open(scratch_path(dir, "muster.db"), &options, &p.store, &err) == MUSTER_OK);
    atexit(remove_store);
}

static void begin(void)
{
    struct store *store = p.store;

    memset(&p, 0, sizeof p);
    p.store = store;
    if (p.store == NULL)
        open_store();
    must(sqlite3_exec(p.store->db,
                      "PRAGMA synchronous = OFF; DELETE FROM task; DELETE FROM task_part;"
                      "DELETE FROM task_resource; DELETE FROM task_queue; DELETE FROM task_worker",
                      NULL, NULL, NULL) == SQLITE_OK);
    p.now = 1000000;
    actions_init(&p.out);
    for (uint64_t c = 0; c < COORDINATORS; c++)
        p.coordinators[c] = (struct speaker){.incarnation = 1000 + c, .route = 500 + c};
    for (uint64_t w = 0; w < WORKERS; w++)
        p.workers[w] = (struct speaker){.incarnation = 1100 + w, .route = 600 + w};
    broker_starts();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    begin();
    p.in = (struct bytes){data, size};
    for (int i = 0; i < DEEDS_MAX && p.in.left > 0; i++) {
        char letter = (char)take(&p.in);

        for (size_t k = 0; k < sizeof deeds / sizeof deeds[0]; k++)
            if (deeds[k].letter == letter)
                deeds[k].act();
    }
    check_rows();
    everything_ends();
    broker_starts();
    core_destroy(&p.core);
    actions_free(&p.out);
    return 0;
}
