/* Long results, from a worker to the broker and from there to a coordinator: parts that are under
 * way at the same time, some of which are lost. The broker is this program's. */
#include "client/tasks/task_parts.h"
#include "tests/proc/router_stage.h"

#include <muster/muster.h>

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <stdio.h>

#define PATIENCE_S 60
#define QUEUE 7
#define PARTS 96
#define SIZE ((size_t)PARTS * TASK_PART_MAX + 17)
#define LOST_OF 12    /* one of so many is lost, at the end */
#define HOLD_EVERY 24 /* answers, then none until a part comes once more */

static uint8_t result[SIZE], came[SIZE];
static struct muster_error err;

static struct {
    size_t under_way, most; /* different parts that came or were asked for without an answer */
    size_t answered;
    bool holds;
    uint64_t highest;
    unsigned dice;
    uint64_t have; /* of the worker's result */
    bool given;
    atomic_bool done;
} world;

static struct router_stage broker;

/* --- the broker ------------------------------------------------------------------------------- */

/* True: as if it had never come. Nothing is answered at first, and now and then, until one comes
 * for the second time: by then as many have come as may be under way. */
static bool is_held(uint64_t offset)
{
    world.holds = world.holds && (world.under_way == 0 || offset > world.highest);
    if (!world.holds)
        return false;
    world.highest = offset;
    world.under_way++;
    if (world.under_way > world.most)
        world.most = world.under_way;
    return true;
}

static bool is_lost(uint64_t offset)
{
    if (is_held(offset))
        return true;
    world.dice = world.dice * 1103515245 + 12345;
    if (world.most >= TASK_PARTS_AHEAD && (world.dice >> 16) % LOST_OF == 0)
        return true;
    if (++world.answered % HOLD_EVERY == 0) {
        world.holds = world.most < TASK_PARTS_AHEAD;
        world.under_way = 0;
    }
    return false;
}

static bool answer_part(const struct wire_work_part *asked, struct wire_msg *answer)
{
    if (is_lost(asked->offset))
        return false;
    if (asked->offset == world.have) {
        memcpy(came + world.have, asked->bytes.data, asked->bytes.size);
        world.have += asked->bytes.size;
    }
    answer->type = WIRE_PART_TAKEN;
    answer->u.part_taken = (struct wire_part_taken){.queue = asked->queue,
                                                    .number = asked->number,
                                                    .attempt = asked->attempt,
                                                    .have = world.have};
    return true;
}

static void give_work(struct wire_msg *answer)
{
    static struct wire_task_entry entry = {
        .queue = QUEUE, .number = 1, .attempt = 1, .serial = 1, .fn = "long"};

    world.given = true;
    answer->type = WIRE_WORK;
    answer->u.work.tasks.items = &entry;
    answer->u.work.tasks.count = 1;
}

static void take_done(const struct wire_ended_entry *end, struct wire_msg *answer)
{
    static struct wire_lease_entry entry = {.queue = QUEUE, .number = 1, .attempt = 1};

    atomic_store(&world.done, end->state == TASK_DONE && end->bytes == SIZE && world.have == SIZE);
    answer->type = WIRE_WORK_TAKEN;
    answer->u.work_taken.tasks.items = &entry;
    answer->u.work_taken.tasks.count = 1;
}

static bool answer_worker(const struct wire_msg *asked, struct wire_msg *answer)
{
    answer->down.job = "train";
    answer->down.start_id = 7;
    if (asked->type == WIRE_WORK_PART)
        return answer_part(&asked->u.work_part, answer);
    if (asked->type == WIRE_WORK_HELLO) {
        answer->type = WIRE_WORK_WELCOME;
        answer->u.work_welcome =
            (struct wire_work_welcome){.nonce = asked->u.work_hello.nonce, .text = ""};
    } else if (asked->type == WIRE_WORK_BEAT && !world.given) {
        give_work(answer);
    } else if (asked->type == WIRE_WORK_BEAT) {
        answer->type = WIRE_WORK_ALIVE;
        answer->u.work_alive.confirmed = asked->u.work_beat.received + 1;
    } else if (asked->type == WIRE_WORK_DONE) {
        take_done(&asked->u.work_done.tasks.items[0], answer);
    } else if (asked->type == WIRE_WORK_LEAVE) {
        answer->type = WIRE_WORK_LEFT;
        answer->u.work_left.nonce = asked->u.work_leave.nonce;
    }
    return answer->type != WIRE_NONE;
}

static bool answer_get(const struct wire_result_get *asked, struct wire_msg *answer)
{
    size_t left = SIZE - (size_t)asked->offset;

    if (is_lost(asked->offset))
        return false;
    answer->type = WIRE_RESULT_CHUNK;
    answer->u.result_chunk = (struct wire_result_chunk){
        .queue = QUEUE, .number = 1, .offset = asked->offset, .total = SIZE};
    answer->u.result_chunk.bytes.data = result + asked->offset;
    answer->u.result_chunk.bytes.size = left < TASK_PART_MAX ? left : TASK_PART_MAX;
    return true;
}

static bool answer_coordinator(const struct wire_msg *asked, struct wire_msg *answer)
{
    static struct wire_ended_entry end = {
        .queue = QUEUE, .number = 1, .attempt = 1, .state = TASK_DONE, .text = "", .bytes = SIZE};

    answer->down.job = "train";
    answer->down.start_id = 7;
    if (asked->type == WIRE_RESULT_GET)
        return answer_get(&asked->u.result_get, answer);
    if (asked->type == WIRE_QUEUE_OPEN) {
        answer->type = WIRE_QUEUE_OPENED;
        answer->u.queue_opened = (struct wire_queue_opened){
            .nonce = asked->u.queue_open.nonce, .text = "", .queue = QUEUE, .taken = 1, .ended = 1};
    } else if (asked->type == WIRE_TASKS_GET) {
        answer->type = WIRE_TASKS_PAGE;
        answer->u.tasks_page = (struct wire_tasks_page){
            .queue = QUEUE, .nonce = asked->u.tasks_get.nonce, .next = 2, .ended = 1};
        answer->u.tasks_page.tasks.items = &end;
        answer->u.tasks_page.tasks.count = 1;
    } else if (asked->type == WIRE_QUEUE_BEAT) {
        answer->type = WIRE_QUEUE_ALIVE;
        answer->u.queue_alive =
            (struct wire_queue_alive){.queue = QUEUE, .taken = 1, .ended = 1, .unavailable = ""};
    }
    return answer->type != WIRE_NONE;
}

/* --- tests ------------------------------------------------------------------------------------ */

static int setup(void **state)
{
    (void)state;
    alarm(PATIENCE_S); /* a hang ends so */
    memset(&world, 0, sizeof world);
    memset(came, 0, sizeof came);
    world.holds = true;
    for (size_t i = 0; i < SIZE; i++)
        result[i] = (uint8_t)(i * 31 + i / 977);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    router_stage_end(&broker);
    alarm(0);
    return 0;
}

static int give_long(muster_task_t *task, void *arg)
{
    (void)arg;
    return muster_task_set_result(task, result, SIZE) == MUSTER_OK ? 0 : 1;
}

static size_t most(void)
{
    router_stage_hold(&broker);
    size_t most = world.most;
    router_stage_release(&broker);
    return most;
}

static void a_worker_sends_parts_ahead_and_lost_ones_again(void **state)
{
    struct muster_worker_options options = MUSTER_WORKER_OPTIONS_INIT;
    muster_worker_t *worker;

    (void)state;
    router_stage_begin(&broker, "tcp://127.0.0.1:*", answer_worker);
    options.broker = broker.endpoint;
    options.job = "train";
    options.index = 0;
    assert_int_equal(muster_worker_open(&options, &worker, &err), MUSTER_OK);
    assert_int_equal(muster_worker_register(worker, "long", give_long, NULL, &err), MUSTER_OK);
    assert_int_equal(muster_worker_start(worker, &err), MUSTER_OK);
    while (!atomic_load(&world.done))
        usleep(1000);
    assert_memory_equal(came, result, SIZE);
    assert_int_equal(most(), TASK_PARTS_AHEAD);
    muster_worker_close(&worker, NULL);
}

static void a_coordinator_asks_for_parts_ahead_and_for_lost_ones_again(void **state)
{
    struct muster_coordinator_options options = MUSTER_COORDINATOR_OPTIONS_INIT;
    muster_coordinator_t *coordinator;
    muster_remote_value_t *value;
    const void *data;
    size_t size;

    (void)state;
    router_stage_begin(&broker, "tcp://127.0.0.1:*", answer_coordinator);
    options.broker = broker.endpoint;
    options.job = "train";
    assert_int_equal(muster_coordinator_open(&options, &coordinator, &err), MUSTER_OK);
    assert_int_equal(muster_coordinator_value(coordinator, 1, &value, &err), MUSTER_OK);
    assert_int_equal(muster_remote_value_fetch(value, PATIENCE_S * 1000, &data, &size, &err),
                     MUSTER_OK);
    assert_int_equal(size, SIZE);
    assert_memory_equal(data, result, SIZE);
    assert_int_equal(most(), TASK_PARTS_AHEAD);
    muster_remote_value_free(&value);
    muster_coordinator_close(&coordinator, NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_worker_sends_parts_ahead_and_lost_ones_again),
        TEST(a_coordinator_asks_for_parts_ahead_and_for_lost_ones_again),
    };

    return cmocka_run_group_tests_name("long_results", tests, NULL, NULL);
}
