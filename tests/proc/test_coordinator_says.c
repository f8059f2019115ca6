/* What a coordinator's calls return and say, against a broker of this program: it answers as each test wants. */
#include "client/coordinator_private.h"
#include "tests/proc/router_stage.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <stdio.h>

#define PATIENCE_S 60
#define QUEUE 7
#define BROKER_MS 3000 /* beats come each second, on a busy machine later */
#define RESULT_BYTES 5000

static struct {
    atomic_bool full;          /* it can write nothing */
    atomic_bool unreadable;    /* it can read neither pages nor results */
    atomic_uint bad_result;    /* of this task, alone */
    atomic_uint done;          /* so many tasks have ended well, with long results */
    atomic_bool failed;        /* task 1 has ... */
    atomic_bool raised;        /* ... and was raised: the others were cancelled */
    atomic_bool server_lost;   /* beats tell so */
    atomic_bool busy;          /* its queue is full */
    atomic_bool silent;        /* it answers nothing, ... */
    atomic_uint raised_status; /* of the error; 0 = MUSTER_E_TASK */
    atomic_uint no_answer;     /* ... or not to this type */
    atomic_uint raises;        /* how often it was asked to raise */
    atomic_uint resource; /* the number of the value that it was last asked to put on record, ... */
    atomic_bool other_made; /* ... which another call made */
    atomic_uint queue, start,
        taken; /* of its present database; tasks that it has when it is opened */
    atomic_uint beats;
} world;

static struct router_stage broker;
static muster_coordinator_t *coordinator;
static struct muster_error err;

/* --- the broker ------------------------------------------------------------------------------------ */

static void answer_beat(struct wire_msg *answer)
{
    struct wire_queue_alive *m = &answer->u.queue_alive;

    answer->type = WIRE_QUEUE_ALIVE;
    *m = (struct wire_queue_alive){.queue = QUEUE, .leased = 2, .workers = 1, .unavailable = ""};
    m->ended = atomic_load(&world.done);
    atomic_fetch_add(&world.beats, 1);
    if (atomic_load(&world.failed))
        m->error_number = 1;
    if (atomic_load(&world.queue) != QUEUE)
        m->code = MUSTER_E_HELLO;
    if (atomic_load(&world.server_lost))
        m->unavailable = "parameter server 0 was lost";
}

static void answer_open(const struct wire_msg *asked, struct wire_msg *answer)
{
    answer->type = WIRE_QUEUE_OPENED;
    answer->u.queue_opened = (struct wire_queue_opened){.nonce = asked->u.queue_open.nonce,
                                                        .text = "",
                                                        .queue = atomic_load(&world.queue),
                                                        .taken = atomic_load(&world.taken)};
}

static void answer_raise(struct wire_msg *answer)
{
    const unsigned status = atomic_load(&world.raised_status);

    answer->type = WIRE_RAISED;
    answer->u.raised = (struct wire_raised){.queue = QUEUE,
                                            .raise = 1,
                                            .number = 1,
                                            .status = status != 0 ? status : MUSTER_E_TASK,
                                            .code = 17,
                                            .text = "fail at worker 4: no luck",
                                            .cancelled_to = 3,
                                            .cancelled = 2,
                                            .ended = 3};
    atomic_store(&world.failed, false);
    atomic_store(&world.raised, true);
}

static void answer_page(const struct wire_msg *asked, struct wire_msg *answer)
{
    static struct wire_ended_entry ends[] = {
        {.number = 1, .state = TASK_FAILED, .status = MUSTER_E_TASK, .code = 17, .text = "no luck"},
        {.number = 2, .state = TASK_CANCELLED, .status = MUSTER_E_CANCELLED, .text = ""},
        {.number = 3, .state = TASK_CANCELLED, .status = MUSTER_E_CANCELLED, .text = ""}};

    answer->type = WIRE_TASKS_PAGE;
    answer->u.tasks_page =
        (struct wire_tasks_page){.queue = QUEUE, .nonce = asked->u.tasks_get.nonce, .next = 4};
    if (atomic_load(&world.done)) {
        static struct wire_ended_entry well[] = {
            {.number = 1, .state = TASK_DONE, .text = "", .bytes = RESULT_BYTES},
            {.number = 2, .state = TASK_DONE, .text = "", .bytes = RESULT_BYTES}};

        answer->u.tasks_page.ended = atomic_load(&world.done);
        answer->u.tasks_page.tasks.items = well;
        answer->u.tasks_page.tasks.count = atomic_load(&world.done);
        return;
    }
    if (!atomic_load(&world.raised))
        return;
    answer->u.tasks_page.ended = 3;
    answer->u.tasks_page.tasks.items = ends;
    answer->u.tasks_page.tasks.count = 3;
}

static void answer_chunk(const struct wire_msg *asked, struct wire_msg *answer)
{
    static uint8_t bytes[RESULT_BYTES];
    const bool bad = atomic_load(&world.unreadable) ||
                     asked->u.result_get.number == atomic_load(&world.bad_result);

    answer->type = WIRE_RESULT_CHUNK;
    answer->u.result_chunk =
        (struct wire_result_chunk){.queue = QUEUE, .number = asked->u.result_get.number};
    answer->u.result_chunk.code = bad ? MUSTER_E_IO : MUSTER_OK;
    if (bad)
        return;
    answer->u.result_chunk.total = RESULT_BYTES;
    answer->u.result_chunk.bytes.data = bytes;
    answer->u.result_chunk.bytes.size = sizeof bytes;
}

static void answer_unread(const struct wire_msg *asked, struct wire_msg *answer)
{
    answer->type = WIRE_ACK;
    answer->u.ack = (struct wire_ack){.request = asked->u.tasks_get.nonce,
                                      .code = MUSTER_E_STORAGE,
                                      .text = "cannot read a page"};
}

static void answer_add(const struct wire_msg *asked, struct wire_msg *answer)
{
    answer->type = WIRE_TASKS_TAKEN;
    answer->u.tasks_taken = (struct wire_tasks_taken){.queue = QUEUE, .text = ""};
    if (atomic_load(&world.busy))
        answer->u.tasks_taken.code = MUSTER_E_BUSY;
    else
        answer->u.tasks_taken.taken =
            asked->u.tasks_add.tasks.items[asked->u.tasks_add.tasks.count - 1].number;
}

static void answer_resource(const struct wire_msg *asked, struct wire_msg *answer)
{
    answer->type = WIRE_RESOURCE_TAKEN;
    answer->u.resource_taken =
        (struct wire_resource_taken){.queue = QUEUE, .number = asked->u.resource_add.number};
    answer->u.resource_taken.code = atomic_load(&world.other_made) ? MUSTER_E_EXISTS : MUSTER_OK;
}

static bool answer_it(const struct wire_msg *asked, struct wire_msg *answer)
{
    if (asked->type == WIRE_RAISE)
        atomic_fetch_add(&world.raises, 1);
    if (asked->type == WIRE_RESOURCE_ADD)
        atomic_store(&world.resource, (unsigned)asked->u.resource_add.number);
    if (atomic_load(&world.silent) || (unsigned)asked->type == atomic_load(&world.no_answer))
        return false;
    answer->down.job = "train";
    answer->down.start_id = atomic_load(&world.start);
    if (atomic_load(&world.full)) {
        answer->type = WIRE_ACK;
        answer->u.ack = (struct wire_ack){.code = MUSTER_E_STORAGE, .text = "the disk is full"};
        return asked->type == WIRE_QUEUE_BEAT || asked->type == WIRE_QUEUE_OPEN;
    }
    if (asked->type == WIRE_QUEUE_OPEN) {
        answer_open(asked, answer);
    } else if (asked->type == WIRE_QUEUE_BEAT) {
        answer_beat(answer);
    } else if (asked->type == WIRE_TASKS_ADD) {
        answer_add(asked, answer);
    } else if (asked->type == WIRE_RESOURCE_ADD) {
        answer_resource(asked, answer);
    } else if (asked->type == WIRE_RAISE) {
        answer_raise(answer);
    } else if (asked->type == WIRE_TASKS_GET && atomic_load(&world.unreadable)) {
        answer_unread(asked, answer);
    } else if (asked->type == WIRE_TASKS_GET) {
        answer_page(asked, answer);
    } else if (asked->type == WIRE_RESULT_GET) {
        answer_chunk(asked, answer);
    } else {
        return false;
    }
    return true;
}

/* --- the coordinator ------------------------------------------------------------------------------- */

static enum muster_status open_it(int64_t connect_ms, int64_t broker_ms)
{
    struct muster_coordinator_options options = MUSTER_COORDINATOR_OPTIONS_INIT;

    options.broker = broker.endpoint;
    options.job = "train";
    options.name = "says";
    options.connect_timeout_ms = connect_ms;
    options.broker_timeout_ms = broker_ms;
    return muster_coordinator_open(&options, &coordinator, &err);
}

static muster_remote_value_t *schedule(void)
{
    struct muster_call call = MUSTER_CALL_INIT;
    muster_remote_value_t *value = NULL;

    call.function = "fail";
    assert_int_equal(muster_coordinator_schedule(coordinator, &call, 10000, &value, &err),
                     MUSTER_OK);
    return value;
}

static enum muster_status join(int64_t timeout_ms)
{
    return muster_coordinator_join(coordinator, timeout_ms, &err);
}

static void assert_says(const char *text)
{
    if (strstr(err.text, text) == NULL)
        fail_msg("\"%s\" says not: %s", err.text, text);
}

static int setup(void **state)
{
    (void)state;
    alarm(PATIENCE_S); /* a hang ends so */
    memset(&world, 0, sizeof world);
    atomic_store(&world.queue, QUEUE);
    atomic_store(&world.start, 1);
    router_stage_begin(&broker, "tcp://127.0.0.1:*", answer_it);
    assert_int_equal(open_it(30000, 30000), MUSTER_OK);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    muster_coordinator_close(&coordinator);
    router_stage_end(&broker);
    alarm(0);
    return 0;
}

/* --- what is said ---------------------------------------------------------------------------------- */

static void an_error_names_task_function_worker_and_what_was_cancelled(void **state)
{
    muster_remote_value_t *values[] = {schedule(), schedule(), schedule()};
    const void *data;
    size_t size;

    (void)state;
    assert_int_equal(muster_coordinator_flush(coordinator, 10000, &err), MUSTER_OK);
    atomic_store(&world.failed, true);
    assert_int_equal(join(20000), MUSTER_E_TASK);
    assert_int_equal(err.code, 17);
    assert_int_equal(err.task, 1);
    assert_int_equal(err.rank, -1);
    assert_string_equal(
        err.text, "task 1 of queue says failed with code 17, and 2 queued tasks were "
                  "cancelled (schedule again what is still wanted): fail at worker 4: no luck");
    assert_int_equal(muster_remote_value_fetch(values[1], 10000, &data, &size, &err),
                     MUSTER_E_CANCELLED);
    assert_says("task 2 was cancelled because task 1 of its queue had failed; schedule it again");
    assert_int_equal(err.task, 2);
    for (int i = 0; i < 3; i++)
        muster_remote_value_free(&values[i]);
}

static void a_time_out_tells_numbers_that_are_of_now(void **state)
{
    muster_remote_value_t *value = schedule();

    (void)state;
    assert_int_equal(join(600), MUSTER_E_TIMEOUT);
    assert_int_equal(err.task, 0);
    assert_says(
        "not all tasks have ended in time: 0 of 1 tasks have ended, 2 were at 1 workers 0.");
    assert_true(atomic_load(&world.beats) >= 2);
    muster_remote_value_free(&value);
}

static void a_broker_that_cannot_write_is_named_for_it(void **state)
{
    muster_remote_value_t *value = schedule();

    (void)state;
    assert_int_equal(muster_coordinator_flush(coordinator, 10000, &err), MUSTER_OK);
    atomic_store(&world.full, true);
    while (join(200) == MUSTER_E_TIMEOUT) /* until a beat was answered so */
        continue;
    assert_int_equal(err.status, MUSTER_E_STORAGE);
    assert_says("not all tasks have ended in time, for the broker at tcp://");
    assert_says("can write nothing: the disk is full. Nothing is lost");
    atomic_store(&world.full, false);
    while (join(200) == MUSTER_E_STORAGE)
        continue;
    assert_int_equal(err.status, MUSTER_E_TIMEOUT);
    muster_remote_value_free(&value);
}

/* It is heard, so that no other bound ends the wait. */
static void a_wait_without_end_ends_when_nothing_can_be_written(void **state)
{
    (void)state;
    muster_coordinator_close(&coordinator);
    assert_int_equal(open_it(30000, BROKER_MS), MUSTER_OK);
    muster_remote_value_t *value = schedule();
    assert_int_equal(muster_coordinator_flush(coordinator, 10000, &err), MUSTER_OK);
    atomic_store(&world.full, true);
    assert_int_equal(join(-1), MUSTER_E_STORAGE);
    assert_says("the disk is full");
    muster_remote_value_free(&value);
    atomic_store(&world.full, false);
}

static void a_queue_is_not_opened_while_nothing_can_be_written(void **state)
{
    (void)state;
    muster_coordinator_close(&coordinator);
    atomic_store(&world.full, true);
    assert_int_equal(open_it(1200, 1000), MUSTER_E_STORAGE);
    assert_says("the queue was not opened, for the broker at tcp://");
}

/* Its beats are answered all the while. */
static void a_broker_that_cannot_read_what_has_ended_is_named_for_it(void **state)
{
    (void)state;
    muster_coordinator_close(&coordinator);
    assert_int_equal(open_it(30000, BROKER_MS), MUSTER_OK);
    muster_remote_value_t *value = schedule();
    assert_int_equal(muster_coordinator_flush(coordinator, 10000, &err), MUSTER_OK);
    atomic_store(&world.unreadable, true);
    atomic_store(&world.done, 1);
    assert_int_equal(join(-1), MUSTER_E_STORAGE);
    assert_says("at tcp://");
    assert_says(" cannot read which tasks have ended: cannot read a page. Nothing is lost");
    assert_int_equal(join(300), MUSTER_E_STORAGE);
    atomic_store(&world.unreadable, false);
    while (join(300) != MUSTER_OK) /* until it was asked again; the alarm ends a hang */
        continue;
    muster_remote_value_free(&value);
}

/* Pages are not needed for that. */
static void what_cannot_be_read_keeps_nothing_from_being_handed_over(void **state)
{
    struct muster_call call = MUSTER_CALL_INIT;

    (void)state;
    muster_coordinator_close(&coordinator);
    assert_int_equal(open_it(30000, BROKER_MS), MUSTER_OK);
    muster_remote_value_t *values[] = {schedule(), NULL};
    assert_int_equal(muster_coordinator_flush(coordinator, 10000, &err), MUSTER_OK);
    atomic_store(&world.no_answer, WIRE_TASKS_ADD);
    values[1] = schedule();
    atomic_store(&world.unreadable, true);
    atomic_store(&world.done, 1);
    assert_int_equal(join(-1), MUSTER_E_STORAGE);
    call.function = "fail";
    assert_int_equal(muster_coordinator_schedule(coordinator, &call, 10000, NULL, &err), MUSTER_OK);
    assert_int_equal(muster_coordinator_flush(coordinator, 100, &err), MUSTER_E_TIMEOUT);
    atomic_store(&world.no_answer, WIRE_NONE);
    assert_int_equal(muster_coordinator_close(&coordinator), MUSTER_OK);
    for (int i = 0; i < 2; i++)
        muster_remote_value_free(&values[i]);
}

static void a_result_that_cannot_be_read_is_named_for_it(void **state)
{
    const void *data;
    size_t size;

    (void)state;
    muster_coordinator_close(&coordinator);
    assert_int_equal(open_it(30000, BROKER_MS), MUSTER_OK);
    muster_remote_value_t *value = schedule();
    atomic_store(&world.done, 1);
    assert_int_equal(join(20000), MUSTER_OK);
    atomic_store(&world.unreadable, true);
    assert_int_equal(muster_remote_value_fetch(value, -1, &data, &size, &err), MUSTER_E_STORAGE);
    assert_says("the result of task 1 did not come, for the broker at tcp://");
    assert_says("cannot read it (MUSTER_E_IO: a file could not be read or written");
    assert_int_equal(muster_remote_value_fetch(value, 300, &data, &size, &err), MUSTER_E_STORAGE);
    atomic_store(&world.unreadable, false);
    while (muster_remote_value_fetch(value, 300, &data, &size, &err) != MUSTER_OK)
        continue;
    assert_int_equal(size, RESULT_BYTES);
    muster_remote_value_free(&value);
}

/* It has taken so many. */
static void broker_is_another(unsigned taken, enum wire_type no_answer)
{
    atomic_store(&world.no_answer, no_answer);
    atomic_store(&world.taken, taken);
    atomic_fetch_add(&world.start, 1);
}

/* It is slow, but nobody knows yet that it cannot read. */
static void a_new_broker_is_not_blamed_for_what_the_last_could_not_read(void **state)
{
    muster_remote_value_t *value = schedule();
    const void *data;
    size_t size;

    (void)state;
    assert_int_equal(muster_coordinator_flush(coordinator, 10000, &err), MUSTER_OK);
    atomic_store(&world.unreadable, true);
    atomic_store(&world.done, 1);
    while (join(100) != MUSTER_E_STORAGE)
        assert_int_equal(err.status, MUSTER_E_TIMEOUT);
    broker_is_another(1, WIRE_TASKS_GET);
    while (join(100) == MUSTER_E_STORAGE) /* until it was opened; the alarm ends a hang */
        continue;
    assert_int_equal(err.status, MUSTER_E_TIMEOUT);
    atomic_store(&world.unreadable, false);
    atomic_store(&world.no_answer, WIRE_NONE);
    assert_int_equal(join(20000), MUSTER_OK);
    atomic_store(&world.bad_result, 1);
    while (muster_remote_value_fetch(value, 100, &data, &size, &err) != MUSTER_E_STORAGE)
        assert_int_equal(err.status, MUSTER_E_TIMEOUT);
    broker_is_another(1, WIRE_RESULT_GET);
    while (muster_remote_value_fetch(value, 100, &data, &size, &err) == MUSTER_E_STORAGE)
        continue;
    assert_int_equal(err.status, MUSTER_E_TIMEOUT);
    muster_remote_value_free(&value);
}

/* Each answer to the first frees its place, which is the only one since answers were late. */
static void one_result_that_cannot_be_read_holds_up_no_other(void **state)
{
    const void *data;
    size_t size;

    (void)state;
    muster_coordinator_close(&coordinator);
    assert_int_equal(open_it(30000, BROKER_MS), MUSTER_OK);
    muster_remote_value_t *values[] = {schedule(), schedule()};
    atomic_store(&world.done, 2);
    assert_int_equal(join(20000), MUSTER_OK);
    atomic_store(&world.bad_result, 1);
    assert_int_equal(muster_remote_value_fetch(values[0], -1, &data, &size, &err),
                     MUSTER_E_STORAGE);
    assert_int_equal(muster_remote_value_fetch(values[1], -1, &data, &size, &err), MUSTER_OK);
    assert_int_equal(size, RESULT_BYTES);
    for (int i = 0; i < 2; i++)
        muster_remote_value_free(&values[i]);
}

static void a_lost_database_is_told_from_another_coordinator(void **state)
{
    muster_remote_value_t *value = schedule();

    (void)state;
    assert_int_equal(muster_coordinator_flush(coordinator, 10000, &err), MUSTER_OK);
    atomic_store(&world.queue, QUEUE + 1);
    atomic_store(&world.start, 2);
    assert_int_equal(join(20000), MUSTER_E_STALE);
    assert_says("is not what this coordinator has opened");
    assert_says("it has 0 of 1 tasks. The broker's database was lost or put back");
    assert_says("schedule what is missing once more");
    muster_remote_value_free(&value);
}

static void a_server_is_missing_only_by_fresh_word(void **state)
{
    bool done;

    (void)state;
    atomic_store(&world.server_lost, true);
    while (muster_coordinator_done(coordinator, &done, &err) == MUSTER_OK)
        usleep(10000);
    assert_int_equal(err.status, MUSTER_E_UNAVAILABLE);
    assert_says("parameter server 0 was lost");
    atomic_store(&world.server_lost, false);
    assert_int_equal(muster_coordinator_done(coordinator, &done, &err), MUSTER_OK);
}

/* --- the calls' own failures ------------------------------------------------------------------------ */

static void begin_again(int64_t connect_ms, int64_t broker_ms)
{
    muster_coordinator_close(&coordinator);
    assert_int_equal(open_it(connect_ms, broker_ms), MUSTER_OK);
}

static void each_call_says_that_no_broker_is_heard(void **state)
{
    struct muster_call call = MUSTER_CALL_INIT;
    muster_remote_value_t *value = NULL, *none = NULL;
    const void *data;
    size_t size;
    bool done;

    (void)state;
    begin_again(400, 1500);
    atomic_store(&world.silent, true);
    value = schedule();
    assert_int_equal(join(-1), MUSTER_E_BROKER);
    assert_int_equal(err.task, 0);
    assert_says("no broker was heard at tcp://");
    call.function = "fail";
    assert_int_equal(muster_coordinator_schedule(coordinator, &call, -1, &none, &err),
                     MUSTER_E_BROKER);
    assert_null(none);
    assert_int_equal(muster_coordinator_done(coordinator, &done, &err), MUSTER_E_BROKER);
    assert_int_equal(muster_coordinator_flush(coordinator, -1, &err), MUSTER_E_BROKER);
    assert_int_equal(muster_remote_value_fetch(value, -1, &data, &size, &err), MUSTER_E_BROKER);
    assert_int_equal(muster_coordinator_close(&coordinator), MUSTER_E_BROKER);
    assert_int_equal(open_it(400, 1500), MUSTER_E_BROKER);
    assert_says("no broker answered at tcp://");
    muster_remote_value_free(&value);
}

static void close_says_what_was_not_taken(void **state)
{
    muster_remote_value_t *value;

    (void)state;
    begin_again(30000, BROKER_MS);
    atomic_store(&world.no_answer, WIRE_TASKS_ADD);
    value = schedule();
    assert_int_equal(muster_coordinator_close(&coordinator), MUSTER_E_TIMEOUT);
    muster_remote_value_free(&value);
    assert_int_equal(open_it(30000, BROKER_MS), MUSTER_OK);
    value = schedule();
    atomic_store(&world.queue, QUEUE + 1);
    atomic_store(&world.start, 2);
    assert_int_equal(muster_coordinator_close(&coordinator), MUSTER_E_STALE);
    muster_remote_value_free(&value);
}

/* The raise is never answered, as long as something runs. */
static void done_does_not_wait_for_what_ignores_that_it_is_cancelled(void **state)
{
    muster_remote_value_t *value = schedule();
    enum muster_status status;
    bool done = true;

    (void)state;
    coordinator->done_wait_ms = 200;
    assert_int_equal(muster_coordinator_flush(coordinator, 10000, &err), MUSTER_OK);
    atomic_store(&world.no_answer, WIRE_RAISE);
    atomic_store(&world.failed, true);
    while (atomic_load(&world.raises) < 2) { /* or it hangs, and the alarm ends it */
        assert_int_equal(muster_coordinator_done(coordinator, &done, &err), MUSTER_OK);
        assert_false(done);
        usleep(1000);
    }
    atomic_store(&world.no_answer, WIRE_NONE);
    while ((status = muster_coordinator_done(coordinator, &done, &err)) == MUSTER_OK)
        assert_false(done);
    assert_int_equal(status, MUSTER_E_TASK);
    assert_int_equal(err.task, 1);
    muster_remote_value_free(&value);
}

/* As brokers of before MUSTER_E_TASK_TIMEOUT have it on record. */
static void done_returns_the_time_out_of_a_task(void **state)
{
    muster_remote_value_t *value = schedule();
    enum muster_status status;
    bool done;

    (void)state;
    assert_int_equal(muster_coordinator_flush(coordinator, 10000, &err), MUSTER_OK);
    atomic_store(&world.raised_status, MUSTER_E_TIMEOUT);
    atomic_store(&world.failed, true);
    while ((status = muster_coordinator_done(coordinator, &done, &err)) == MUSTER_OK)
        usleep(1000); /* the alarm ends it if it is never told */
    assert_int_equal(status, MUSTER_E_TIMEOUT);
    assert_int_equal(err.task, 1);
    muster_remote_value_free(&value);
}

static enum muster_status create(const char *args)
{
    muster_per_worker_t *value = NULL;
    enum muster_status status =
        muster_coordinator_create_per_worker(coordinator, "make", args, strlen(args), &value, &err);

    assert_true((status == MUSTER_OK) == (value != NULL));
    return status;
}

static void a_value_that_was_not_answered_is_made_once(void **state)
{
    (void)state;
    begin_again(400, 30000);
    atomic_store(&world.no_answer, WIRE_RESOURCE_ADD);
    assert_int_equal(create("7"), MUSTER_E_TIMEOUT);
    assert_int_equal(create("7"), MUSTER_E_TIMEOUT);
    atomic_store(&world.no_answer, WIRE_NONE);
    coordinator->connect_timeout_ms = 30000;
    assert_int_equal(create("7"), MUSTER_OK);
    assert_int_equal(atomic_load(&world.resource), 1);
    assert_int_equal(create("7"), MUSTER_OK); /* another of the same kind */
    assert_int_equal(atomic_load(&world.resource), 2);
}

static void a_number_that_was_refused_is_the_next_ones(void **state)
{
    (void)state;
    assert_int_equal(create("7"), MUSTER_OK);
    atomic_store(&world.other_made, true);
    assert_int_equal(create("8"), MUSTER_E_EXISTS);
    assert_says("per-worker value 2 of queue says was made by another call");
    atomic_store(&world.other_made, false);
    assert_int_equal(create("9"), MUSTER_OK);
    assert_int_equal(atomic_load(&world.resource), 2);
}

/* Also while the broker takes nothing. */
static void schedule_waits_when_its_bytes_are_not_taken(void **state)
{
    static uint8_t args[49152];
    struct muster_call call = MUSTER_CALL_INIT;
    enum muster_status status = MUSTER_OK;
    size_t scheduled = 0;

    (void)state;
    atomic_store(&world.busy, true);
    call.function = "fail";
    call.args = args;
    call.args_size = sizeof args;
    while (status == MUSTER_OK && scheduled <= ((size_t)64 << 20) / sizeof args + 1) {
        status = muster_coordinator_schedule(coordinator, &call, 300, NULL, &err);
        scheduled += status == MUSTER_OK;
    }
    assert_int_equal(status, MUSTER_E_TIMEOUT);
    assert_says("the queue stayed full and nothing was scheduled");
    assert_int_equal(scheduled, muster_coordinator_scheduled(coordinator));
    assert_int_equal(scheduled, ((size_t)64 << 20) / sizeof args + 1);
    atomic_store(&world.busy, false);
    assert_int_equal(muster_coordinator_schedule(coordinator, &call, 30000, NULL, &err), MUSTER_OK);
}

static uint64_t untaken_bytes(void)
{
    uint64_t bytes;

    pthread_mutex_lock(&coordinator->mutex);
    bytes = coordinator->untaken_bytes;
    pthread_mutex_unlock(&coordinator->mutex);
    return bytes;
}

/* Or a long task would hold on to its place in the 64 MiB until it ends. */
static void what_was_taken_unheard_waits_no_more(void **state)
{
    struct muster_call call = MUSTER_CALL_INIT;

    (void)state;
    atomic_store(&world.no_answer, WIRE_TASKS_ADD);
    call.function = "fail";
    call.args = "arguments";
    call.args_size = 9;
    assert_int_equal(muster_coordinator_schedule(coordinator, &call, 10000, NULL, &err), MUSTER_OK);
    assert_int_equal(untaken_bytes(), 9);
    broker_is_another(1, WIRE_TASKS_ADD);
    assert_int_equal(muster_coordinator_flush(coordinator, 20000, &err), MUSTER_OK);
    assert_int_equal(untaken_bytes(), 0);
}

/* A process that is stopped for longer than broker_timeout_ms hears nobody, which is nobody's fault. */
static void who_was_stopped_blames_no_broker(void **state)
{
    pid_t child;
    int status;

    (void)state;
    muster_coordinator_close(&coordinator);
    child = fork();
    if (child == 0) {
        bool done;

        alarm(PATIENCE_S);
        if (open_it(30000, 3500) != MUSTER_OK)
            _exit(2);
        raise(SIGSTOP);
        for (int i = 0; i < 50; i++, usleep(1000))
            if (muster_coordinator_done(coordinator, &done, &err) != MUSTER_OK)
                _exit(3);
        _exit(muster_coordinator_close(&coordinator) == MUSTER_OK ? 0 : 4);
    }
    assert_int_equal(waitpid(child, &status, WUNTRACED), child);
    assert_true(WIFSTOPPED(status));
    sleep(5); /* longer than broker_timeout_ms: that is the case */
    kill(child, SIGCONT);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* In a child: each call is refused, whoever holds which lock in the parent, and nothing of it is touched. */
static int call_everything(muster_remote_value_t *value)
{
    struct muster_place place = {.kind = MUSTER_PLACE_VALUE, .value = value};
    struct muster_call call = MUSTER_CALL_INIT;
    muster_per_worker_t *per_worker = NULL;
    muster_remote_value_t *other = NULL;
    const void *data;
    size_t size;
    bool done;

    call.function = "fail";
    if (muster_coordinator_schedule(coordinator, &call, -1, &other, &err) != MUSTER_E_FORKED ||
        join(-1) != MUSTER_E_FORKED ||
        muster_coordinator_done(coordinator, &done, &err) != MUSTER_E_FORKED ||
        muster_coordinator_flush(coordinator, -1, &err) != MUSTER_E_FORKED ||
        muster_coordinator_create_per_worker(coordinator, "make", "7", 1, &per_worker, &err) !=
            MUSTER_E_FORKED)
        return 1;
    if (muster_remote_value_fetch(value, -1, &data, &size, &err) != MUSTER_E_FORKED ||
        muster_coordinator_fetch(coordinator, &place, -1, &err) != MUSTER_E_FORKED ||
        muster_remote_value_cancel(value, &err) != MUSTER_E_FORKED ||
        muster_coordinator_value(coordinator, 1, &other, &err) != MUSTER_E_FORKED)
        return 2;
    if (strstr(err.text, "forked from the coordinator's") == NULL ||
        muster_coordinator_scheduled(coordinator) != 0)
        return 3;
    muster_coordinator_release(coordinator);
    muster_remote_value_free(&value);
    if (value != NULL || muster_coordinator_close(&coordinator) != MUSTER_E_FORKED ||
        coordinator != NULL)
        return 4;
    return 0;
}

static void a_forked_child_calls_in_vain_and_harms_nobody(void **state)
{
    muster_remote_value_t *value = schedule();
    pid_t child;
    int status;

    (void)state;
    assert_int_equal(muster_coordinator_flush(coordinator, 10000, &err), MUSTER_OK);
    pthread_mutex_lock(&coordinator->mutex); /* as a thread that the child does not have */
    child = fork();
    if (child == 0) {
        alarm(PATIENCE_S / 2);
        _exit(call_everything(value));
    }
    pthread_mutex_unlock(&coordinator->mutex);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    atomic_store(&world.done, 1);
    assert_int_equal(join(20000), MUSTER_OK);
    muster_remote_value_free(&value);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_error_names_task_function_worker_and_what_was_cancelled),
        TEST(a_time_out_tells_numbers_that_are_of_now),
        TEST(a_broker_that_cannot_write_is_named_for_it),
        TEST(a_wait_without_end_ends_when_nothing_can_be_written),
        TEST(a_queue_is_not_opened_while_nothing_can_be_written),
        TEST(a_broker_that_cannot_read_what_has_ended_is_named_for_it),
        TEST(what_cannot_be_read_keeps_nothing_from_being_handed_over),
        TEST(a_result_that_cannot_be_read_is_named_for_it),
        TEST(a_new_broker_is_not_blamed_for_what_the_last_could_not_read),
        TEST(one_result_that_cannot_be_read_holds_up_no_other),
        TEST(a_lost_database_is_told_from_another_coordinator),
        TEST(a_server_is_missing_only_by_fresh_word),
        TEST(each_call_says_that_no_broker_is_heard),
        TEST(close_says_what_was_not_taken),
        TEST(done_does_not_wait_for_what_ignores_that_it_is_cancelled),
        TEST(done_returns_the_time_out_of_a_task),
        TEST(a_value_that_was_not_answered_is_made_once),
        TEST(a_number_that_was_refused_is_the_next_ones),
        TEST(schedule_waits_when_its_bytes_are_not_taken),
        TEST(what_was_taken_unheard_waits_no_more),
        TEST(who_was_stopped_blames_no_broker),
        TEST(a_forked_child_calls_in_vain_and_harms_nobody),
    };

    return cmocka_run_group_tests_name("coordinator_says", tests, NULL, NULL);
}
