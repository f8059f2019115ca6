/* The loop's order, on a real database and real sockets, with a stand-in for the core whose answers
 * each test scripts. */
#include "broker/loop.h"

#include "broker/store/store_internal.h"
#include "tests/support/scratch.h"
#include "tests/unit/broker/no_core.h"
#include "tests/unit/broker/store/store_samples.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <zmq.h>

#define PATIENCE_MS 5000

/* --- the stand-in ----------------------------------------------------------------------------- */

typedef void script_fn(const struct input *input, struct actions *out);

static struct {
    script_fn *script;
    int messages, ticks, starts, no_events;
    int jobs, loaded; /* INPUT_JOB, and rows */
    bool lacks;       /* a HELLO is of a job that has left memory */
    uint64_t seq;     /* what heads tell, written or not */
    uint64_t epochs_jumped;
} fake;

struct core *core_create(const struct core_options *options)
{
    (void)options;
    return (struct core *)&fake;
}

void core_destroy(struct core **core)
{
    *core = NULL;
}

void core_load(struct core *core, const struct record *row)
{
    (void)core;
    (void)row;
    fake.loaded++;
}

void core_step(struct core *core, const struct input *input, struct actions *out)
{
    (void)core;
    fake.messages += input->kind == INPUT_MESSAGE;
    fake.ticks += input->kind == INPUT_TICK;
    fake.starts += input->kind == INPUT_START;
    fake.no_events += input->kind == INPUT_NO_EVENTS;
    fake.jobs += input->kind == INPUT_JOB;
    if (fake.script != NULL)
        fake.script(input, out);
}

int64_t core_wakeup_boot_ms(const struct core *core)
{
    (void)core;
    return INT64_MAX;
}

const char *core_lacks(const struct core *core, const struct wire_msg *message)
{
    (void)core;
    return fake.lacks && message->type == WIRE_HELLO ? message->up.job : NULL;
}

bool core_input_is_free(const struct wire_msg *message)
{
    return message->type == WIRE_HEARTBEAT || message->type == WIRE_EVENTS_GET ||
           message->type == WIRE_QUERY;
}

uint64_t core_epoch(const struct core *core)
{
    (void)core;
    return 1 + fake.epochs_jumped;
}

uint64_t core_start_id(const struct core *core)
{
    (void)core;
    return 2;
}

uint64_t core_last_seq(const struct core *core, const char *job)
{
    (void)core;
    (void)job;
    return fake.seq;
}

void core_fill_down(const struct core *core, const char *job, struct wire_down *ret_down)
{
    (void)core;
    *ret_down = (struct wire_down){
        .start_id = 2, .broker_epoch = core_epoch(core), .job = job, .last_seq = fake.seq};
}

static struct action *add(struct actions *out, enum action_kind kind)
{
    if (out->count == out->capacity) {
        out->capacity = out->capacity == 0 ? 16 : 2 * out->capacity;
        out->items = realloc(out->items, out->capacity * sizeof *out->items);
        assert_non_null(out->items);
    }
    out->items[out->count] = (struct action){.kind = kind, .job = SAMPLE_JOB};
    return &out->items[out->count++];
}

static struct wire_msg *add_message(struct actions *out, enum action_kind kind, uint64_t route,
                                    enum wire_type type)
{
    struct action *action = add(out, kind);

    action->route = route;
    action->message.type = type;
    core_fill_down(NULL, SAMPLE_JOB, &action->message.down);
    return &action->message;
}

static void add_row(struct actions *out, const struct record *row)
{
    add(out, ACTION_PERSIST)->record = *row;
}

static void add_ack(const struct input *input, struct actions *out)
{
    add_message(out, ACTION_SEND, input->route, WIRE_ACK)->u.ack.request =
        input->message->up.request;
}

/* --- fixture ---------------------------------------------------------------------------------- */

struct fixture {
    char dir[SCRATCH_PATH_MAX];
    char db[SCRATCH_PATH_MAX + 32];
    char listen[64];
    struct store *store;
    struct bus *bus;
    struct core *core;
    struct loop *loop;
    void *context;
    void *dealer;
    void *sub;
    struct arena arena;
    struct muster_error err;
};

static int64_t boot_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void pass(struct fixture *f)
{
    bool stop = false;

    if (loop_pass(f->loop, 20, &stop, &f->err) != MUSTER_OK)
        fail_msg("%s", f->err.text);
}

/* A SUB that surely hears. */
static void *subscribe(struct fixture *f)
{
    void *sub = zmq_socket(f->context, ZMQ_SUB);
    int64_t until = boot_ms() + PATIENCE_MS;
    char topic[64];
    int size = -1;
    bool last = false;

    assert_int_equal(zmq_setsockopt(sub, ZMQ_SUBSCRIBE, SAMPLE_JOB, sizeof SAMPLE_JOB), 0);
    assert_int_equal(zmq_connect(sub, bus_events_endpoint(f->bus)), 0);
    while (size < 0 && boot_ms() < until) {
        bus_wait(f->bus, -1, 1);
        bus_publish(f->bus, SAMPLE_JOB, (const uint8_t *)"?", 1);
        size = zmq_recv(sub, topic, sizeof topic, ZMQ_DONTWAIT);
    }
    assert_int_equal(size, sizeof SAMPLE_JOB);
    zmq_recv(sub, topic, sizeof topic, 0);
    bus_publish(f->bus, SAMPLE_JOB, (const uint8_t *)"!", 1);
    while (!last) { /* the rest of what was said meanwhile; the test's own timeout is the bound */
        assert_true(zmq_recv(sub, topic, sizeof topic, 0) >= 0);
        assert_int_equal(zmq_recv(sub, topic, sizeof topic, 0), 1);
        last = topic[0] == '!';
    }
    return sub;
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct store_options options = {.allow_network_fs = true};
    struct bus_options bus = {.listen = f->listen};

    memset(&fake, 0, sizeof fake);
    scratch_make(f->dir);
    snprintf(f->db, sizeof f->db, "%s/muster.db", f->dir);
    snprintf(f->listen, sizeof f->listen, "ipc://%.40s/sock", f->dir);
    assert_int_equal(store_open(f->db, &options, &f->store, &f->err), MUSTER_OK);
    assert_int_equal(bus_open(&bus, &f->bus, &f->err), MUSTER_OK);
    f->core = core_create(NULL);
    f->loop = loop_create(f->store, f->bus, f->core, -1);
    assert_int_equal(loop_start(f->loop, &f->err), MUSTER_OK);
    assert_int_equal(fake.starts, 1);
    f->context = zmq_ctx_new();
    f->dealer = zmq_socket(f->context, ZMQ_DEALER);
    assert_int_equal(zmq_connect(f->dealer, bus_command_endpoint(f->bus)), 0);
    f->sub = subscribe(f);
    arena_init(&f->arena, 0);
    *state = f;
    return 0;
}

static void limit_file_size(rlim_t bytes)
{
    struct rlimit limit = {.rlim_cur = bytes, .rlim_max = RLIM_INFINITY};

    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    limit_file_size(RLIM_INFINITY);
    zmq_ctx_set(f->context, ZMQ_BLOCKY, 0);
    zmq_close(f->dealer);
    zmq_close(f->sub);
    zmq_ctx_term(f->context);
    loop_destroy(&f->loop);
    bus_close(&f->bus);
    store_close(&f->store);
    arena_free(&f->arena);
    scratch_remove(f->dir);
    free(f);
    return 0;
}

static void fill_disk(struct fixture *f)
{
    char path[SCRATCH_PATH_MAX + 64];
    struct stat wal;

    snprintf(path, sizeof path, "%s-wal", f->db);
    assert_int_equal(stat(path, &wal), 0);
    limit_file_size((rlim_t)wal.st_size);
}

static void say(struct fixture *f, const struct wire_msg *message)
{
    uint8_t frame[WIRE_FRAME_MAX];
    size_t size = wire_encode(message, frame, sizeof frame);

    assert_true(size > 0);
    assert_int_equal(zmq_send(f->dealer, frame, size, 0), (int)size);
}

static void say_request(struct fixture *f, enum wire_type type, uint64_t request)
{
    struct wire_msg message = {.type = type,
                               .up = {.request = request,
                                      .job = SAMPLE_JOB,
                                      .role = ROLE_WORKER,
                                      .incarnation = SAMPLE_INCARNATION}};

    if (type == WIRE_NOTICE)
        message.u.notice.kind = NOTICE_PREEMPT;
    if (type == WIRE_HELLO)
        message.u.hello.nonce = request;
    say(f, &message);
}

/* What a socket hears next: runs the loop until it comes. False: nothing for wait_ms. */
static bool hear(struct fixture *f, void *socket, struct wire_msg *message, int64_t wait_ms)
{
    static uint8_t frame[WIRE_FRAME_MAX];
    int64_t until = boot_ms() + wait_ms;

    do {
        int size = zmq_recv(socket, frame, sizeof frame, ZMQ_DONTWAIT);
        int more = 0;
        size_t more_size = sizeof more;

        if (size < 0) {
            pass(f);
            continue;
        }
        zmq_getsockopt(socket, ZMQ_RCVMORE, &more, &more_size);
        if (more) /* the topic */
            size = zmq_recv(socket, frame, sizeof frame, 0);
        assert_int_equal(wire_decode(frame, (size_t)size, &f->arena, message, &f->err), MUSTER_OK);
        return true;
    } while (boot_ms() < until);
    return false;
}

static void expect(struct fixture *f, void *socket, struct wire_msg *message, enum wire_type type)
{
    if (!hear(f, socket, message, PATIENCE_MS))
        fail_msg("no %s came", wire_type_name(type));
    if (message->type != type)
        fail_msg("%s came instead of %s", wire_type_name(message->type), wire_type_name(type));
}

/* --- order ------------------------------------------------------------------------------------ */

/* NOTICE: hint, rows, event, answer. Everything else: only an answer. */
static void take_notice(const struct input *input, struct actions *out)
{
    struct record event = *sample_of(RECORD_EVENT);

    if (input->kind != INPUT_MESSAGE)
        return;
    if (input->message->type == WIRE_HEARTBEAT) {
        add_message(out, ACTION_SEND, input->route, WIRE_ALIVE);
        return;
    }
    if (input->message->type == WIRE_QUERY) {
        struct action *action = add(out, ACTION_SEND_ROWS);
        action->route = input->route;
        assert_true(wire_copy(&action->message, input->message, &out->arena));
        return;
    }
    if (input->message->type == WIRE_NOTICE) {
        fake.epochs_jumped++; /* it came from a node that knew a later broker */
        add_row(out, sample_of(RECORD_JOB));
        add_row(out, &event);
        fake.seq = event.u.event.seq;
        add_message(out, ACTION_PUBLISH, 0, WIRE_EVENT)->u.event = event.u.event.body;
        add_message(out, ACTION_HINT, 0, WIRE_HINT)->u.hint.kind = NOTICE_PREEMPT;
    }
    add_ack(input, out);
}

/* R1.1, R2.1 */
static void a_notice_is_hinted_written_published_and_answered(void **state)
{
    struct fixture *f = *state;
    struct wire_msg message;

    fake.script = take_notice;
    say_request(f, WIRE_NOTICE, 1);
    expect(f, f->sub, &message, WIRE_HINT); /* before the event, though added after it */
    assert_int_equal(message.down.last_seq, 0);
    assert_int_equal(message.down.broker_epoch, 1); /* nor of an epoch that is not written */
    expect(f, f->sub, &message, WIRE_EVENT);
    assert_int_equal(message.down.broker_epoch, 2);
    assert_int_equal(message.u.event.seq, 103);
    assert_int_equal(message.down.last_seq, 103);
    expect(f, f->dealer, &message, WIRE_ACK);
    assert_int_equal(message.u.ack.request, 1);
    assert_int_equal(store_job_seq(f->store, SAMPLE_JOB), 103);
}

/* R2.4 */
static void on_a_full_disk_only_the_hint_leaves_until_the_batch_is_written(void **state)
{
    struct fixture *f = *state;
    struct wire_msg message;

    fake.script = take_notice;
    fill_disk(f);
    say_request(f, WIRE_NOTICE, 1);
    expect(f, f->sub, &message, WIRE_HINT);
    assert_false(hear(f, f->dealer, &message, 250));
    assert_false(hear(f, f->sub, &message, 20));
    limit_file_size(RLIM_INFINITY);
    expect(f, f->sub, &message, WIRE_EVENT); /* the same batch, whole */
    expect(f, f->dealer, &message, WIRE_ACK);
    assert_int_equal(message.u.ack.code, MUSTER_OK);
    assert_int_equal(fake.messages, 1);          /* the core took it once */
    assert_false(hear(f, f->sub, &message, 50)); /* and the hint went out once */
}

/* R2.4 */
static void while_blocked_what_is_not_free_is_answered_storage(void **state)
{
    struct fixture *f = *state;
    struct wire_msg message;
    int ticks;

    fake.script = take_notice;
    fill_disk(f);
    say_request(f, WIRE_NOTICE, 1);
    expect(f, f->sub, &message, WIRE_HINT);
    ticks = fake.ticks;
    say_request(f, WIRE_AT_STEP, 2);
    expect(f, f->dealer, &message, WIRE_ACK);
    assert_int_equal(message.u.ack.request, 2);
    assert_int_equal(message.u.ack.code, MUSTER_E_STORAGE);
    assert_non_null(strstr(message.u.ack.text, f->db));
    say_request(f, WIRE_HELLO, 77);
    expect(f, f->dealer, &message, WIRE_REFUSED);
    assert_int_equal(message.u.refused.nonce, 77);
    assert_int_equal(message.u.refused.code, MUSTER_E_STORAGE);
    assert_true(message.u.refused.retry);
    say_request(f, WIRE_QUEUE_BEAT, 0); /* a coordinator of tasks repeats it */
    expect(f, f->dealer, &message, WIRE_ACK);
    assert_int_equal(message.u.ack.code, MUSTER_E_STORAGE);
    say_request(f, WIRE_HEARTBEAT, 0);
    expect(f, f->dealer, &message, WIRE_ALIVE);
    assert_int_equal(message.down.last_seq, 0); /* event 103 is not committed: nobody hears of it */
    assert_int_equal(fake.messages, 2);         /* the notice and the heartbeat */
    assert_int_equal(fake.ticks, ticks);
    assert_int_equal(loop_counters(f->loop)->refused, 3);
    limit_file_size(RLIM_INFINITY);
    expect(f, f->dealer, &message, WIRE_ACK);
    assert_int_equal(message.u.ack.request, 1);
    say_request(f, WIRE_AT_STEP, 2); /* its sender repeats it */
    expect(f, f->dealer, &message, WIRE_ACK);
    assert_int_equal(message.u.ack.code, MUSTER_OK);
    assert_true(fake.ticks > ticks);
}

static void
while_blocked_a_question_is_answered_and_tells_of_no_epoch_that_is_not_written(void **state)
{
    struct fixture *f = *state;
    struct wire_msg query = {.type = WIRE_QUERY,
                             .up = {.request = 9, .job = "", .role = ROLE_TOOL},
                             .u.query = {.name = "jobs", .text_arg = ""}};
    struct wire_msg message;

    fake.script = take_notice;
    fill_disk(f);
    say_request(f, WIRE_NOTICE, 1);
    expect(f, f->sub, &message, WIRE_HINT);
    say(f, &query);
    expect(f, f->dealer, &message, WIRE_ROWS);
    assert_int_equal(message.u.rows.request, 9);
    assert_int_equal(message.down.broker_epoch, 1); /* the notice's batch tells of epoch 2 */
}

static void break_a_rule(const struct input *input, struct actions *out)
{
    if (input->kind != INPUT_MESSAGE)
        return;
    add_row(out, sample_of(RECORD_SHARD)); /* of no checkpoint */
    add_ack(input, out);
}

/* R2.5 */
static void a_row_that_cannot_be_written_ends_the_loop_and_nothing_leaves(void **state)
{
    struct fixture *f = *state;
    int64_t until = boot_ms() + PATIENCE_MS;
    enum muster_status status = MUSTER_OK;
    bool stop = false;
    char frame[64];

    fake.script = break_a_rule;
    say_request(f, WIRE_AT_STEP, 1);
    while (status == MUSTER_OK && boot_ms() < until)
        status = loop_pass(f->loop, 20, &stop, &f->err);
    assert_int_equal(status, MUSTER_E_FAULT);
    assert_int_equal(zmq_recv(f->dealer, frame, sizeof frame, ZMQ_DONTWAIT), -1);
}

/* --- what is read from the database ----------------------------------------------------------- */

static void send_events(const struct input *input, struct actions *out)
{
    struct action *action;

    if (input->kind == INPUT_NO_EVENTS) {
        assert_string_equal(input->job, SAMPLE_JOB);
        add_message(out, ACTION_SEND, input->route, WIRE_SNAPSHOT)->u.snapshot.seq = fake.seq;
    }
    if (input->kind != INPUT_MESSAGE)
        return;
    if (input->message->type == WIRE_NOTICE) {
        for (size_t i = 0; i < samples_count; i++)
            add_row(out, &samples[i]);
        fake.seq = 103;
        add_ack(input, out);
        return;
    }
    action = add(out, ACTION_SEND_EVENTS);
    action->route = input->route;
    action->number = input->message->u.events_get.from_seq;
    action->count = 10;
}

static void events_are_sent_from_the_journal_or_the_core_is_asked(void **state)
{
    struct fixture *f = *state;
    struct wire_msg get = {.type = WIRE_EVENTS_GET, .up = {.job = SAMPLE_JOB, .role = ROLE_WORKER}};
    struct wire_msg message;

    fake.script = send_events;
    say_request(f, WIRE_NOTICE, 1);
    expect(f, f->dealer, &message, WIRE_ACK);
    get.u.events_get.from_seq = 103;
    say(f, &get);
    expect(f, f->dealer, &message, WIRE_EVENT);
    assert_event_same(&message.u.event, &sample_of(RECORD_EVENT)->u.event.body);
    assert_int_equal(message.down.start_id, 2); /* the head of now */
    get.u.events_get.from_seq = 50;
    say(f, &get);
    expect(f, f->dealer, &message, WIRE_SNAPSHOT);
    assert_int_equal(message.u.snapshot.seq, 103);
    assert_int_equal(fake.no_events, 1);
}

static void answer_from_database(const struct input *input, struct actions *out)
{
    struct action *action;

    if (input->kind != INPUT_MESSAGE)
        return;
    if (input->message->type == WIRE_NOTICE) {
        send_events(input, out);
        return;
    }
    if (input->message->type == WIRE_MANIFEST_GET) {
        action = add(out, ACTION_SEND_MANIFEST);
        action->number = input->message->u.manifest_get.checkpoint;
        action->count = input->message->u.manifest_get.offset;
    } else {
        action = add(out, ACTION_SEND_ROWS);
        assert_true(wire_copy(&action->message, input->message, &out->arena));
    }
    action->route = input->route;
}

static void queries_and_manifests_are_answered_from_rows(void **state)
{
    struct fixture *f = *state;
    struct wire_msg query = {.type = WIRE_QUERY,
                             .up = {.request = 9, .job = "", .role = ROLE_TOOL},
                             .u.query = {.name = "jobs", .text_arg = ""}};
    struct wire_msg get = {.type = WIRE_MANIFEST_GET,
                           .up = {.job = SAMPLE_JOB, .role = ROLE_WORKER},
                           .u.manifest_get = {.checkpoint = SAMPLE_ROUND}};
    struct wire_msg message;

    fake.script = answer_from_database;
    say_request(f, WIRE_NOTICE, 1);
    expect(f, f->dealer, &message, WIRE_ACK);
    say(f, &query);
    expect(f, f->dealer, &message, WIRE_ROWS);
    assert_int_equal(message.u.rows.code, MUSTER_OK);
    assert_int_equal(message.u.rows.request, 9);
    assert_int_equal(message.u.rows.rows, 1);
    assert_true(message.u.rows.cells.size > 0);
    query.u.query.name = "secrets";
    say(f, &query);
    expect(f, f->dealer, &message, WIRE_ROWS);
    assert_int_equal(message.u.rows.code, MUSTER_E_NOT_FOUND);
    assert_non_null(strstr(message.u.rows.text, "secrets"));
    say(f, &get);
    expect(f, f->dealer, &message, WIRE_MANIFEST_CHUNK);
    assert_int_equal(message.u.manifest_chunk.checkpoint, SAMPLE_ROUND);
    assert_int_equal(message.u.manifest_chunk.round_generation, SAMPLE_GENERATION);
    assert_int_equal(message.u.manifest_chunk.step, 801);
    assert_int_equal(message.u.manifest_chunk.total, message.u.manifest_chunk.bytes.size);
}

static void send_tasks(const struct input *input, struct actions *out)
{
    struct action *action;

    if (input->kind != INPUT_MESSAGE)
        return;
    action = add(out, input->message->type == WIRE_TASKS_GET ? ACTION_SEND_TASKS
                                                             : ACTION_SEND_TASK_RESULT);
    action->route = input->route;
    if (action->kind == ACTION_SEND_TASK_RESULT) {
        assert_true(wire_copy(&action->message, input->message, &out->arena));
        return;
    }
    action->message.type = WIRE_TASKS_PAGE;
    action->message.u.tasks_page.queue = input->message->u.tasks_get.queue;
    action->message.u.tasks_page.nonce = input->message->u.tasks_get.nonce;
    action->message.u.tasks_page.from = input->message->u.tasks_get.from;
    action->message.u.tasks_page.next = 9;
}

/* Who asks would wait for nothing otherwise (R9.9). */
static void what_cannot_be_read_for_a_coordinator_is_answered_so(void **state)
{
    struct fixture *f = *state;
    struct wire_msg page = {.type = WIRE_TASKS_GET,
                            .up = {.job = SAMPLE_JOB, .role = ROLE_TOOL},
                            .u.tasks_get = {.queue = 1, .nonce = 77, .from = 1}};
    struct wire_msg result = {.type = WIRE_RESULT_GET,
                              .up = {.job = SAMPLE_JOB, .role = ROLE_TOOL},
                              .u.result_get = {.queue = 1, .number = 5}};
    struct wire_msg message;

    fake.script = send_tasks;
    say(f, &page);
    expect(f, f->dealer, &message, WIRE_TASKS_PAGE);
    assert_int_equal(store_exec(f->store, "ALTER TABLE task RENAME TO gone", &f->err), MUSTER_OK);
    say(f, &page);
    expect(f, f->dealer, &message, WIRE_ACK);
    assert_int_equal(message.u.ack.code, MUSTER_E_STORAGE);
    assert_int_equal(message.u.ack.request, 77);
    assert_non_null(strstr(message.u.ack.text, "cannot read a page of tasks in database"));
    assert_string_equal(message.down.job, SAMPLE_JOB);
    say(f, &result);
    expect(f, f->dealer, &message, WIRE_RESULT_CHUNK);
    assert_int_equal(message.u.result_chunk.number, 5);
    assert_int_not_equal(message.u.result_chunk.code, MUSTER_OK);
    assert_int_not_equal(message.u.result_chunk.code, MUSTER_E_NOT_FOUND); /* it may be there */
}

static void tell_a_deadline(const struct input *input, struct actions *out)
{
    if (input->kind != INPUT_MESSAGE)
        return;
    add_message(out, ACTION_PUBLISH, 0, WIRE_EVENT)->u.event.left_ms = 999999;
    out->items[out->count - 1].deadline_boot_ms = input->now_boot_ms + 30000;
    add_message(out, ACTION_PUBLISH, 0, WIRE_EVENT)->u.event.left_ms = 999999;
    out->items[out->count - 1].deadline_boot_ms = input->now_boot_ms - 1;
    add_message(out, ACTION_PUBLISH, 0, WIRE_EVENT)->u.event.left_ms = 999999;
}

/* R1.9 */
static void time_left_is_computed_at_the_send(void **state)
{
    struct fixture *f = *state;
    struct wire_msg message;

    fake.script = tell_a_deadline;
    say_request(f, WIRE_AT_STEP, 1);
    expect(f, f->sub, &message, WIRE_EVENT);
    assert_in_range(message.u.event.left_ms, 29000, 30000);
    expect(f, f->sub, &message, WIRE_EVENT);
    assert_int_equal(message.u.event.left_ms, 0);
    expect(f, f->sub, &message, WIRE_EVENT);
    assert_int_equal(message.u.event.left_ms, 999999);
}

/* --- bad input -------------------------------------------------------------------------------- */

static void pass_until(struct fixture *f, const uint64_t *counter, uint64_t value)
{
    int64_t until = boot_ms() + PATIENCE_MS;

    while (*counter < value && boot_ms() < until)
        pass(f);
    assert_int_equal(*counter, value);
}

static void what_is_not_understood_is_counted_and_dropped(void **state)
{
    struct fixture *f = *state;
    const struct loop_counters *counters = loop_counters(f->loop);
    struct wire_msg alive = {.type = WIRE_ALIVE, .down = {.job = SAMPLE_JOB}};
    struct wire_msg message;
    void *named = zmq_socket(f->context, ZMQ_DEALER);

    fake.script = take_notice;
    zmq_send(f->dealer, "garbage", 7, 0);
    zmq_send(f->dealer, "", 0, 0);
    pass_until(f, &counters->malformed, 2);
    say(f, &alive); /* only a broker says this */
    pass_until(f, &counters->unexpected, 1);
    zmq_send(f->dealer, "two", 3, ZMQ_SNDMORE);
    zmq_send(f->dealer, "parts", 5, ZMQ_SNDMORE);
    zmq_send(f->dealer, "and a third", 11, 0);
    pass_until(f, &bus_counters(f->bus)->dropped_shape, 1);
    assert_int_equal(zmq_setsockopt(named, ZMQ_ROUTING_ID, "admin", 5), 0);
    assert_int_equal(zmq_connect(named, bus_command_endpoint(f->bus)), 0);
    zmq_send(named, "x", 1, 0);
    pass_until(f, &bus_counters(f->bus)->dropped_identity, 1);
    zmq_close(named);
    assert_int_equal(fake.messages, 0);
    say_request(f, WIRE_AT_STEP, 5);
    expect(f, f->dealer, &message, WIRE_ACK);
    assert_int_equal(message.u.ack.request, 5);
}

static void another_version_is_answered_with_its_code(void **state)
{
    static const struct {
        enum wire_type said;
        enum wire_type answered;
    } cases[] = {{WIRE_HELLO, WIRE_REFUSED}, {WIRE_AT_STEP, WIRE_ACK}};
    struct fixture *f = *state;

    for (size_t i = 0; i < 2; i++) {
        struct wire_msg message = {.type = cases[i].said, .up = {.job = SAMPLE_JOB, .request = 1}};
        uint8_t frame[WIRE_FRAME_MAX];
        size_t size = wire_encode(&message, frame, sizeof frame);
        size_t version = frame[0] == 0xdc ? 3 : 1; /* after the array's head */

        assert_int_equal(frame[version], WIRE_VERSION);
        frame[version] = WIRE_VERSION + 1;
        zmq_send(f->dealer, frame, size, 0);
        expect(f, f->dealer, &message, cases[i].answered);
        assert_int_equal(i == 0 ? message.u.refused.code : message.u.ack.code, MUSTER_E_VERSION);
    }
    assert_int_equal(loop_counters(f->loop)->version, 2);
    assert_int_equal(fake.messages, 0);
}

static void answer_patiently(const struct input *input, struct actions *out)
{
    if (input->kind != INPUT_MESSAGE)
        return;
    add_ack(input, out);
    out->items[out->count - 1].patient = input->message->up.request == 1;
}

static void what_may_wait_goes_before_the_next_to_its_peer_or_by_itself(void **state)
{
    struct fixture *f = *state;
    struct wire_msg message;

    fake.script = answer_patiently;
    for (uint64_t request = 1; request <= 2; request++) {
        say_request(f, WIRE_AT_STEP, request);
        while (fake.messages < (int)request)
            pass(f);
    }
    for (uint64_t request = 1; request <= 2; request++) {
        expect(f, f->dealer, &message, WIRE_ACK);
        assert_int_equal(message.u.ack.request, request);
    }
    say_request(f, WIRE_AT_STEP, 1); /* and nothing follows */
    expect(f, f->dealer, &message, WIRE_ACK);
    assert_int_equal(message.u.ack.request, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_notice_is_hinted_written_published_and_answered),
        TEST(on_a_full_disk_only_the_hint_leaves_until_the_batch_is_written),
        TEST(while_blocked_what_is_not_free_is_answered_storage),
        TEST(while_blocked_a_question_is_answered_and_tells_of_no_epoch_that_is_not_written),
        TEST(a_row_that_cannot_be_written_ends_the_loop_and_nothing_leaves),
        TEST(events_are_sent_from_the_journal_or_the_core_is_asked),
        TEST(queries_and_manifests_are_answered_from_rows),
        TEST(what_cannot_be_read_for_a_coordinator_is_answered_so),
        TEST(time_left_is_computed_at_the_send),
        TEST(what_is_not_understood_is_counted_and_dropped),
        TEST(another_version_is_answered_with_its_code),
        TEST(what_may_wait_goes_before_the_next_to_its_peer_or_by_itself),
    };

    return cmocka_run_group_tests_name("loop", tests, NULL, NULL);
}
