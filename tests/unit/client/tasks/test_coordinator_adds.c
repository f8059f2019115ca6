/* How a coordinator hands its tasks over when the connection takes no more for a moment: what could
 * not be sent is sent in the next turn, before what comes behind it. And what it makes of a result
 * that is not the one that was told of. The link is this program's: turns are taken where the test
 * wants them. */
#include "client/tasks/task_link.h"

#include <muster/coordinator.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUEUE 7

struct task_link {
    struct task_link_owner owner;
};

static struct {
    struct task_link *link;
    int64_t now_ms;
    int room; /* frames that the connection takes; -1 = any number */
    uint64_t opened,
        taken; /* of the broker: the nonce of QUEUE_OPEN; highest number without a gap */
    size_t frames;
    bool gap;
    bool asked; /* for that result */
    uint64_t asked_offset;
    uint64_t told_bytes,
        has_bytes; /* of the result of task 1: as its end said, and as the broker has it */
} world;

/* --- in place of client/tasks/task_link.c ----------------------------------------------------- */

int64_t task_now_ms(void)
{
    return world.now_ms;
}

uint64_t task_incarnation(void)
{
    return 5;
}

enum muster_status task_identity(const char *broker, const char *job,
                                 char ret_broker[BROKERS_TEXT_MAX + 1],
                                 char ret_job[JOB_NAME_MAX + 1], struct muster_error *err)
{
    (void)broker, (void)job, (void)err;
    snprintf(ret_broker, ENDPOINT_MAX + 1, "ipc:///none");
    snprintf(ret_job, JOB_NAME_MAX + 1, "train");
    return MUSTER_OK;
}

bool task_again_due(struct task_again *again, int64_t now_ms, int64_t *wait_ms)
{
    bool due = now_ms >= again->at_ms;

    if (due)
        again->at_ms = now_ms + RESEND_MIN_MS;
    if (again->at_ms - now_ms < *wait_ms)
        *wait_ms = again->at_ms - now_ms;
    return due;
}

void task_again_reset(struct task_again *again)
{
    *again = (struct task_again){0, 0};
}

static void take(const struct wire_msg *message)
{
    world.link->owner.take(world.link->owner.arg, message, world.now_ms);
}

static void task_1_ends(void)
{
    static struct wire_ended_entry entry;
    struct wire_msg ended = {.type = WIRE_TASKS_ENDED, .down.start_id = 1};

    entry = (struct wire_ended_entry){.queue = QUEUE,
                                      .number = 1,
                                      .attempt = 1,
                                      .state = TASK_DONE,
                                      .text = "",
                                      .bytes = world.told_bytes};
    ended.u.tasks_ended.queue = QUEUE;
    ended.u.tasks_ended.tasks.items = &entry;
    ended.u.tasks_ended.tasks.count = 1;
    take(&ended);
}

/* Its only part. */
static void task_1_is_given(uint64_t offset)
{
    static const uint8_t bytes[TASK_PART_MAX];
    struct wire_msg chunk = {.type = WIRE_RESULT_CHUNK, .down.start_id = 1};

    chunk.u.result_chunk = (struct wire_result_chunk){
        .queue = QUEUE, .number = 1, .offset = offset, .total = world.has_bytes};
    chunk.u.result_chunk.bytes.data = bytes;
    chunk.u.result_chunk.bytes.size = offset < world.has_bytes ? world.has_bytes - offset : 0;
    take(&chunk);
}

static void turn(void)
{
    world.link->owner.turn(world.link->owner.arg, world.now_ms);
}

enum muster_status task_link_open(const char *broker, const struct task_link_owner *owner,
                                  struct task_link **ret_link, struct muster_error *err)
{
    (void)broker, (void)err;
    world.link = *ret_link = calloc(1, sizeof **ret_link);
    assert_non_null(world.link);
    world.link->owner = *owner;
    return MUSTER_OK;
}

enum muster_status task_link_start(struct task_link *link, struct muster_error *err)
{
    struct wire_msg opened = {.type = WIRE_QUEUE_OPENED, .down.start_id = 1};

    (void)link, (void)err;
    turn();
    opened.u.queue_opened =
        (struct wire_queue_opened){.nonce = world.opened, .text = "", .queue = QUEUE};
    take(&opened);
    return MUSTER_OK;
}

void task_link_wake(struct task_link *link)
{
    (void)link;
}

void task_link_ask(struct task_link *link)
{
    (void)link;
}

void task_link_push(struct task_link *link)
{
    (void)link;
}

void task_link_drive(struct task_link *link)
{
    (void)link;
    turn();
}

uint64_t task_link_seen(struct task_link *link)
{
    (void)link;
    return 0;
}

/* Who waits hears what was taken. */
void task_link_lead(struct task_link *link, uint64_t seen, int64_t timeout_ms)
{
    struct wire_msg answer = {.type = WIRE_TASKS_TAKEN, .down.start_id = 1};

    (void)link, (void)seen, (void)timeout_ms;
    world.now_ms += 10;
    turn();
    if (world.asked) {
        world.asked = false;
        task_1_is_given(world.asked_offset);
    }
    answer.u.tasks_taken =
        (struct wire_tasks_taken){.queue = QUEUE, .taken = world.taken, .text = ""};
    take(&answer);
}

bool task_link_send(struct task_link *link, struct wire_msg *message)
{
    (void)link;
    if (message->type == WIRE_QUEUE_OPEN)
        world.opened = message->u.queue_open.nonce;
    if (message->type == WIRE_RESULT_GET) {
        world.asked = true;
        world.asked_offset = message->u.result_get.offset;
    }
    if (message->type != WIRE_TASKS_ADD)
        return true;
    if (world.room == 0)
        return false;
    world.room -= world.room > 0;
    world.frames++;
    for (size_t i = 0; i < message->u.tasks_add.tasks.count; i++) {
        uint64_t number = message->u.tasks_add.tasks.items[i].number;

        world.gap = world.gap || number > world.taken + 1;
        if (number == world.taken + 1)
            world.taken = number;
    }
    return true;
}

void task_link_close(struct task_link **link)
{
    free(*link);
    *link = NULL;
}

/* --- tests ------------------------------------------------------------------------------------ */

static struct muster_error err;

static int setup(void **state)
{
    struct muster_coordinator_options options = MUSTER_COORDINATOR_OPTIONS_INIT;
    muster_coordinator_t *coordinator;

    memset(&world, 0, sizeof world);
    world.now_ms = 1000;
    world.room = -1;
    assert_int_equal(muster_coordinator_open(&options, &coordinator, &err), MUSTER_OK);
    *state = coordinator;
    return 0;
}

static int teardown(void **state)
{
    muster_coordinator_t *coordinator = *state;

    assert_int_equal(muster_coordinator_close(&coordinator, NULL), MUSTER_OK);
    return 0;
}

static void schedule(muster_coordinator_t *coordinator, int count)
{
    struct muster_call call = MUSTER_CALL_INIT;

    call.function = "echo";
    for (int i = 0; i < count; i++) {
        assert_int_equal(muster_coordinator_schedule(coordinator, &call, -1, NULL, &err),
                         MUSTER_OK);
        turn();
    }
}

static void what_could_not_be_sent_goes_first_in_the_next_turn(void **state)
{
    world.room = 3;
    schedule(*state, 10);
    assert_int_equal(world.taken, 3);
    world.room = -1;
    turn(); /* in the same ms: nothing is waited for */
    assert_int_equal(world.taken, 10);
    assert_false(world.gap);
}

/* Nothing was sent at all, so no answer will come that calls for a turn: time does. */
static void a_connection_that_takes_nothing_is_tried_again(void **state)
{
    int64_t wait_ms;

    world.room = 0;
    schedule(*state, 3);
    assert_int_equal(world.frames, 0);
    wait_ms = world.link->owner.turn(world.link->owner.arg, world.now_ms);
    assert_in_range(wait_ms, 1, RESEND_MIN_MS);
    world.room = -1;
    world.now_ms += wait_ms;
    turn();
    assert_int_equal(world.taken, 3);
    assert_false(world.gap);
    assert_int_equal(muster_coordinator_flush(*state, 1000, &err), MUSTER_OK);
}

static enum muster_status fetch(muster_coordinator_t *coordinator, uint64_t told, uint64_t has)
{
    struct muster_call call = MUSTER_CALL_INIT;
    muster_remote_value_t *value;
    enum muster_status status;
    const void *data;
    size_t size = 0;

    call.function = "echo";
    assert_int_equal(muster_coordinator_schedule(coordinator, &call, -1, &value, &err), MUSTER_OK);
    turn();
    world.told_bytes = told;
    world.has_bytes = has;
    task_1_ends();
    status = muster_remote_value_fetch(value, -1, &data, &size, &err);
    assert_true(status != MUSTER_OK || size == told);
    muster_remote_value_free(&value);
    return status;
}

static void a_result_is_fetched(void **state)
{
    assert_int_equal(fetch(*state, 40000, 40000), MUSTER_OK);
}

/* The database was restored from a copy in which another attempt gave another one: nobody waits for
 * the first. */
static void a_result_of_another_length_is_an_error(void **state)
{
    assert_int_equal(fetch(*state, 40000, 30000), MUSTER_E_STORAGE);
    assert_non_null(strstr(err.text, "the result of task 1"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_could_not_be_sent_goes_first_in_the_next_turn),
        TEST(a_connection_that_takes_nothing_is_tried_again),
        TEST(a_result_is_fetched),
        TEST(a_result_of_another_length_is_an_error),
    };

    return cmocka_run_group_tests_name("coordinator_adds", tests, NULL, NULL);
}
