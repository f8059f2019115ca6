#include "tests/support/tasks_fixture.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <sqlite3.h>
#include <stdio.h>

static struct tasks_fixture fixture;

/* --- text ------------------------------------------------------------------------------------- */

static void put(struct tasks_fixture *f, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void put(struct tasks_fixture *f, const char *format, ...)
{
    size_t used = strlen(f->text);
    va_list args;

    va_start(args, format);
    int n = vsnprintf(f->text + used, sizeof f->text - used, format, args);
    va_end(args);
    assert_true(n >= 0 && (size_t)n < sizeof f->text - used);
}

static void put_code(struct tasks_fixture *f, uint64_t code)
{
    if (code != MUSTER_OK)
        put(f, "/%s", muster_status_name((enum muster_status)code));
}

static void put_name(struct tasks_fixture *f, uint64_t kind, uint64_t number, uint64_t attempt)
{
    if (kind == TASK_KIND_RESOURCE)
        put(f, "r%llu", (unsigned long long)number);
    else
        put(f, "%llu.%llu", (unsigned long long)number, (unsigned long long)attempt);
}

static void put_ends(struct tasks_fixture *f, const struct wire_ended_entry *items, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        put(f, " ");
        put_name(f, items[i].kind, items[i].number, items[i].attempt);
        put(f, "=%s", wire_task_state_name((unsigned)items[i].state));
        if (items[i].state != TASK_CANCELLED)
            put_code(f, items[i].status);
    }
}

static void put_leases(struct tasks_fixture *f, const char *before,
                       const struct wire_lease_entry *items, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        put(f, " %s", before);
        put_name(f, items[i].kind, items[i].number, items[i].attempt);
        put_code(f, items[i].code);
    }
}

/* A worker says at once what it has, and hears that this is known, before it begins. */
static void confirm(struct tasks_fixture *f, uint64_t route)
{
    for (int w = 0; w < TASKS_WORKERS; w++) {
        struct task_worker *known = tasks_worker_find(f->core, f->workers[w].incarnation);

        if (f->workers[w].route == route && !f->workers[w].unconfirmed && known != NULL)
            known->received = f->workers[w].serial;
    }
}

static void put_work(struct tasks_fixture *f, const struct wire_work *m, uint64_t route)
{
    put(f, "work");
    for (size_t i = 0; i < m->tasks.count; i++) {
        const struct wire_task_entry *entry = &m->tasks.items[i];
        put(f, " ");
        put_name(f, entry->kind, entry->number, entry->attempt);
        for (int w = 0; w < TASKS_WORKERS; w++)
            if (f->workers[w].route == route && entry->serial == f->workers[w].serial + 1)
                f->workers[w].serial++;
    }
    confirm(f, route);
}

#define NUMBER(value) ((unsigned long long)(value))

static void put_for_coordinator(struct tasks_fixture *f, const struct wire_msg *m)
{
    switch (m->type) {
    case WIRE_QUEUE_OPENED:
        put(f, "opened q%llu %llu/%llu", NUMBER(m->u.queue_opened.queue),
            NUMBER(m->u.queue_opened.ended), NUMBER(m->u.queue_opened.taken));
        if (m->u.queue_opened.error_number > 0)
            put(f, " error %llu", NUMBER(m->u.queue_opened.error_number));
        put_code(f, m->u.queue_opened.code);
        break;
    case WIRE_TASKS_TAKEN:
        put(f, "taken %llu", NUMBER(m->u.tasks_taken.taken));
        put_code(f, m->u.tasks_taken.code);
        break;
    case WIRE_RESOURCE_TAKEN:
        put(f, "resource %llu", NUMBER(m->u.resource_taken.number));
        put_code(f, m->u.resource_taken.code);
        break;
    case WIRE_TASKS_ENDED:
        put(f, "ended @%llu", NUMBER(m->u.tasks_ended.before));
        put_ends(f, m->u.tasks_ended.tasks.items, m->u.tasks_ended.tasks.count);
        break;
    case WIRE_RAISED:
        put(f, "raised %llu #%llu", NUMBER(m->u.raised.raise), NUMBER(m->u.raised.number));
        if (m->u.raised.number > 0)
            put(f, " %s to %llu", muster_status_name((enum muster_status)m->u.raised.status),
                NUMBER(m->u.raised.cancelled_to));
        put(f, " %llu", NUMBER(m->u.raised.ended));
        break;
    case WIRE_QUEUE_ALIVE:
        put(f, "alive %llu/%llu", NUMBER(m->u.queue_alive.ended), NUMBER(m->u.queue_alive.taken));
        put_code(f, m->u.queue_alive.code);
        snprintf(f->unavailable, sizeof f->unavailable, "%s",
                 m->u.queue_alive.unavailable != NULL ? m->u.queue_alive.unavailable : "");
        if (f->unavailable[0] != '\0')
            put(f, " unavailable");
        break;
    default:
        put(f, "%s", wire_type_name(m->type));
    }
}

static void put_for_worker(struct tasks_fixture *f, const struct wire_msg *m, uint64_t route)
{
    switch (m->type) {
    case WIRE_WORK_WELCOME:
        put(f, "welcome");
        put_code(f, m->u.work_welcome.code);
        break;
    case WIRE_WORK:
        put_work(f, &m->u.work, route);
        break;
    case WIRE_WORK_TAKEN:
        put(f, "taken");
        put_leases(f, "", m->u.work_taken.tasks.items, m->u.work_taken.tasks.count);
        break;
    case WIRE_PART_TAKEN:
        put(f, "part %llu", NUMBER(m->u.part_taken.have));
        put_code(f, m->u.part_taken.code);
        break;
    case WIRE_WORK_ALIVE:
        put(f, "alive");
        put_code(f, m->u.work_alive.code);
        put_leases(f, "-", m->u.work_alive.cancelled.items, m->u.work_alive.cancelled.count);
        put_leases(f, "<", m->u.work_alive.back.items, m->u.work_alive.back.count);
        for (size_t i = 0; i < m->u.work_alive.gone.count; i++)
            put(f, " gone q%llu", NUMBER(m->u.work_alive.gone.items[i].queue));
        break;
    case WIRE_WORK_LEFT:
        put(f, "left");
        break;
    default:
        put(f, "%s", wire_type_name(m->type));
    }
}

static void put_page(struct tasks_fixture *f, const struct action *action)
{
    struct wire_tasks_page page = action->message.u.tasks_page;
    struct muster_error err;

    put(f, "page %llu", NUMBER(page.from));
    assert_int_equal(store_task_page(f->store, &page, &err), MUSTER_OK);
    put(f, "-%llu", NUMBER(page.next));
    put_ends(f, page.tasks.items, page.tasks.count);
    if (page.more)
        put(f, " ...");
}

static void put_chunk(struct tasks_fixture *f, const struct action *action)
{
    struct wire_result_chunk chunk = {0};
    struct muster_error err;
    enum muster_status status =
        store_task_result(f->store, &action->message.u.result_get, &chunk, &err);

    put(f, "chunk %llu %llu+%zu/%llu", NUMBER(action->number),
        NUMBER(action->message.u.result_get.offset), chunk.bytes.size, NUMBER(chunk.total));
    put_code(f, status);
}

static bool is_quiet(const struct tasks_fixture *f, const struct action *action)
{
    const struct wire_msg *m = &action->message;

    for (int w = 0; w < TASKS_WORKERS; w++)
        if (f->workers[w].route == action->route && f->workers[w].silent)
            return true; /* what is repeated in vain */
    return m->type == WIRE_WORK_ALIVE && m->u.work_alive.cancelled.count == 0 &&
           m->u.work_alive.code == MUSTER_OK;
}

static void put_action(struct tasks_fixture *f, const struct action *action)
{
    int worker = (int)action->route - 600;

    if (action->kind != ACTION_SEND && action->kind != ACTION_SEND_TASKS &&
        action->kind != ACTION_SEND_TASK_RESULT)
        return;
    if (f->text[0] != '\0')
        put(f, "; ");
    if (worker >= 0)
        put(f, "w%d:", worker % 10);
    else
        put(f, "c:");
    if (action->kind == ACTION_SEND_TASKS)
        put_page(f, action);
    else if (action->kind == ACTION_SEND_TASK_RESULT)
        put_chunk(f, action);
    else if (worker >= 0)
        put_for_worker(f, &action->message, action->route);
    else
        put_for_coordinator(f, &action->message);
}

/* --- the broker ------------------------------------------------------------------------------- */

static void write_and_send(struct tasks_fixture *f, bool quiet)
{
    struct muster_error err;

    if (store_apply(f->store, &f->out, f->now, &err) != MUSTER_OK)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < f->out.count; i++)
        if (!quiet || !is_quiet(f, &f->out.items[i]))
            put_action(f, &f->out.items[i]);
    actions_clear(&f->out);
}

static void step(struct tasks_fixture *f, enum input_kind kind, uint64_t route,
                 const struct wire_msg *message)
{
    struct input input = {.kind = kind,
                          .now_boot_ms = f->now,
                          .now_unix_ms = 1700000000000 + f->now,
                          .route = route,
                          .message = message};

    core_step(f->core, &input, &f->out);
}

static void load_row(void *arg, const struct record *row)
{
    struct tasks_fixture *f = arg;

    core_load(f->core, row);
}

static void start(struct tasks_fixture *f)
{
    struct core_options options = {.start_id = (f->start_high << 32) + 7000 + ++f->starts,
                                   .events_endpoint = "ipc:///e",
                                   .task_queues_max = f->queues_max};
    struct muster_error err;

    f->core = core_create(&options);
    assert_non_null(f->core);
    if (store_load(f->store, load_row, f, &err) != MUSTER_OK)
        fail_msg("%s", err.text);
    step(f, INPUT_START, 0, NULL);
    f->text[0] = '\0';
    write_and_send(f, false);
}

static void open_store(struct tasks_fixture *f)
{
    struct store_options options = {.allow_network_fs = true};
    struct muster_error err;

    if (store_open(f->db, &options, &f->store, &err) != MUSTER_OK)
        fail_msg("%s", err.text);
}

int tasks_open_file(void **state)
{
    struct tasks_fixture *f = &fixture;

    (void)state;
    memset(f, 0, sizeof *f);
    scratch_make(f->dir);
    snprintf(f->db, sizeof f->db, "%s", scratch_path(f->dir, "state/muster.db"));
    open_store(f);
    return 0;
}

int tasks_close_file(void **state)
{
    (void)state;
    store_close(&fixture.store);
    scratch_remove(fixture.dir);
    return 0;
}

static void empty_tables(struct tasks_fixture *f)
{
    sqlite3 *db = NULL;

    assert_int_equal(sqlite3_open_v2(f->db, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db,
                                  "DELETE FROM task; DELETE FROM task_part; DELETE FROM "
                                  "task_resource; DELETE FROM task_queue; DELETE FROM task_worker;"
                                  "DELETE FROM task_garbage;"
                                  "DELETE FROM node; DELETE FROM progress; DELETE FROM event;"
                                  "DELETE FROM generation; DELETE FROM job",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(db);
}

void tasks_tidy_slice(struct tasks_fixture *f)
{
    struct muster_error err;

    f->now = store_wakeup_boot_ms(f->store) > f->now ? store_wakeup_boot_ms(f->store) : f->now;
    if (store_tidy(f->store, f->now, &err) != MUSTER_OK)
        fail_msg("%s", err.text);
}

void tasks_begin(struct tasks_fixture *f)
{
    empty_tables(f);
    f->now = TASKS_START_MS;
    f->coordinator = 1000;
    f->number = f->scheduled = f->told = f->get_to = f->queue = 0;
    f->queues_max = 0;
    memset(f->workers, 0, sizeof f->workers);
    actions_init(&f->out);
    start(f);
}

int tasks_with_queue(void **state)
{
    tasks_begin(&fixture);
    tasks_open_queue(&fixture, false, 0);
    *state = &fixture;
    return 0;
}

int tasks_without_core(void **state)
{
    struct tasks_fixture *f = *state;

    core_destroy(&f->core);
    actions_free(&f->out);
    return 0;
}

void tasks_restart(struct tasks_fixture *f)
{
    core_destroy(&f->core);
    start(f);
}

void tasks_feed(struct tasks_fixture *f, uint64_t route, struct wire_msg *message)
{
    f->text[0] = '\0';
    step(f, INPUT_MESSAGE, route, message);
    step(f, INPUT_TICK, 0, NULL);
    write_and_send(f, false);
}

void tasks_tick_at(struct tasks_fixture *f)
{
    f->text[0] = '\0';
    step(f, INPUT_TICK, 0, NULL);
    write_and_send(f, false);
}

void tasks_pass(struct tasks_fixture *f, int64_t ms)
{
    f->text[0] = '\0';
    for (int64_t until = f->now + ms; f->now < until;) {
        f->now += until - f->now < 500 ? until - f->now : 500;
        for (int w = 0; w < TASKS_WORKERS; w++) {
            struct wire_msg message = tasks_msg(f, w, WIRE_WORK_BEAT);
            message.u.work_beat.received = f->workers[w].serial;
            if (f->workers[w].there && !f->workers[w].silent)
                step(f, INPUT_MESSAGE, f->workers[w].route, &message);
        }
        step(f, INPUT_TICK, 0, NULL);
        write_and_send(f, true);
    }
}

/* --- what they say ---------------------------------------------------------------------------- */

uint64_t tasks_route(const struct tasks_fixture *f, int w)
{
    return w < 0 ? 500 + f->coordinator % 100 : f->workers[w].route;
}

struct wire_msg tasks_msg(const struct tasks_fixture *f, int w, enum wire_type type)
{
    struct wire_msg message;

    memset(&message, 0, sizeof message);
    message.type = type;
    message.up.job = "train";
    message.up.role = w < 0 ? ROLE_TOOL : ROLE_WORKER;
    message.up.rank = w < 0 ? 0 : (uint64_t)w;
    message.up.incarnation = w < 0 ? f->coordinator : f->workers[w].incarnation;
    return message;
}

void tasks_open_queue(struct tasks_fixture *f, bool fresh, uint64_t max_queued)
{
    struct wire_msg message = tasks_msg(f, -1, WIRE_QUEUE_OPEN);
    const struct task_queue *queue;

    message.u.queue_open = (struct wire_queue_open){
        .nonce = 5, .name = "main", .fresh = fresh, .max_queued = max_queued};
    tasks_feed(f, tasks_route(f, -1), &message);
    queue = tasks_queue_named(f->core, "train", "main");
    assert_non_null(queue);
    f->queue = queue->queue;
    if (fresh)
        f->number = 0;
}

void tasks_add_one(struct tasks_fixture *f, struct wire_task_entry entry)
{
    struct wire_msg message = tasks_msg(f, -1, WIRE_TASKS_ADD);

    message.u.tasks_add.queue = f->queue;
    message.u.tasks_add.tasks.items = &entry;
    message.u.tasks_add.tasks.count = 1;
    tasks_feed(f, tasks_route(f, -1), &message);
}

void tasks_add(struct tasks_fixture *f, size_t count)
{
    struct wire_msg message = tasks_msg(f, -1, WIRE_TASKS_ADD);
    struct wire_task_entry entries[64];
    char args[64][24];

    assert_true(count <= 64);
    for (size_t i = 0; i < count; i++) {
        snprintf(args[i], sizeof args[i], "a%llu", NUMBER(f->number + 1));
        entries[i] = (struct wire_task_entry){.number = ++f->number,
                                              .fn = "work",
                                              .args = {(const uint8_t *)args[i], strlen(args[i])}};
    }
    message.u.tasks_add.queue = f->queue;
    message.u.tasks_add.tasks.items = entries;
    message.u.tasks_add.tasks.count = count;
    tasks_feed(f, tasks_route(f, -1), &message);
}

void tasks_say(struct tasks_fixture *f, enum wire_type type, uint64_t value)
{
    struct wire_msg message = tasks_msg(f, -1, type);

    switch (type) {
    case WIRE_RAISE:
        message.u.raise = (struct wire_raise){f->queue, value, f->scheduled};
        break;
    case WIRE_TASK_CANCEL:
        message.u.task_cancel = (struct wire_task_cancel){f->queue, value};
        break;
    case WIRE_QUEUE_BEAT:
        message.u.queue_beat = (struct wire_queue_beat){f->queue, value, f->told};
        break;
    case WIRE_TASKS_GET:
        message.u.tasks_get = (struct wire_tasks_get){f->queue, 9, value, f->get_to};
        break;
    case WIRE_RESULT_GET:
        message.u.result_get = (struct wire_result_get){f->queue, value, 0};
        break;
    case WIRE_RESOURCE_ADD:
        message.u.resource_add = (struct wire_resource_add){
            .queue = f->queue, .number = value, .fn = "make", .args = {(const uint8_t *)"r", 1}};
        break;
    default:
        fail_msg("tasks_say: %s", wire_type_name(type));
    }
    tasks_feed(f, tasks_route(f, -1), &message);
}

void tasks_worker_begin(struct tasks_fixture *f, int w, uint64_t slots, uint64_t takes)
{
    struct tasks_worker *worker = &f->workers[w];

    worker->incarnation = worker->incarnation == 0 ? 2000 + (uint64_t)w : worker->incarnation + 100;
    worker->route = worker->route == 0 ? 600 + (uint64_t)w : worker->route + 10;
    worker->slots = slots;
    worker->takes = takes;
    worker->silent = false;
    worker->there = true;
    tasks_hello(f, w, "");
}

/* "1.1 2.1! r1!" */
static size_t read_held(const struct tasks_fixture *f, const char *held,
                        struct wire_lease_entry entries[16])
{
    size_t count = 0;
    char text[128];

    snprintf(text, sizeof text, "%s", held);
    for (char *rest = text, *word; (word = strtok_r(rest, " ", &rest)) != NULL; count++) {
        unsigned number = 0, attempt = 0;

        assert_true(count < 16);
        assert_true(sscanf(word, "r%u", &number) == 1 ||
                    sscanf(word, "%u.%u", &number, &attempt) == 2);
        entries[count] =
            (struct wire_lease_entry){.queue = f->queue,
                                      .number = number,
                                      .attempt = attempt,
                                      .kind = word[0] == 'r' ? TASK_KIND_RESOURCE : TASK_KIND_TASK,
                                      .code = strchr(word, '!') != NULL};
    }
    return count;
}

void tasks_hello(struct tasks_fixture *f, int w, const char *held)
{
    struct wire_msg message = tasks_msg(f, w, WIRE_WORK_HELLO);
    struct wire_lease_entry entries[16];

    f->workers[w].serial = 0;
    message.u.work_hello = (struct wire_work_hello){.nonce = 3,
                                                    .host = "h",
                                                    .pid = 4000 + (uint64_t)w,
                                                    .slots = f->workers[w].slots,
                                                    .takes = f->workers[w].takes};
    message.u.work_hello.held.items = entries;
    message.u.work_hello.held.count = read_held(f, held, entries);
    tasks_feed(f, f->workers[w].route, &message);
}

void tasks_ended_as(struct tasks_fixture *f, int w, struct wire_ended_entry entry)
{
    struct wire_msg message = tasks_msg(f, w, WIRE_WORK_DONE);

    entry.queue = f->queue;
    if (entry.text == NULL)
        entry.text = "";
    message.u.work_done.tasks.items = &entry;
    message.u.work_done.tasks.count = 1;
    tasks_feed(f, f->workers[w].route, &message);
}

void tasks_done(struct tasks_fixture *f, int w, uint64_t number, uint64_t attempt)
{
    tasks_ended_as(f, w,
                   (struct wire_ended_entry){.number = number,
                                             .attempt = attempt,
                                             .state = TASK_DONE,
                                             .bytes = 2,
                                             .result = {(const uint8_t *)"ok", 2}});
}

void tasks_fail(struct tasks_fixture *f, int w, uint64_t number, uint64_t attempt, unsigned status)
{
    tasks_ended_as(f, w,
                   (struct wire_ended_entry){.number = number,
                                             .attempt = attempt,
                                             .state = TASK_FAILED,
                                             .status = status,
                                             .code = 17,
                                             .text = "it does not work"});
}

void tasks_beat(struct tasks_fixture *f, int w, uint64_t received)
{
    struct wire_msg message = tasks_msg(f, w, WIRE_WORK_BEAT);

    message.u.work_beat.received = received;
    tasks_feed(f, f->workers[w].route, &message);
}

struct task_queue *tasks_queue(struct tasks_fixture *f)
{
    struct task_queue *queue = tasks_queue_find(f->core, f->queue);

    assert_non_null(queue);
    return queue;
}

int64_t tasks_look(struct tasks_fixture *f, const char *sql)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    int64_t value;

    assert_int_equal(sqlite3_open_v2(f->db, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return value;
}
