/* How much a task's arguments may have: what is allowed comes whole to the broker (which is this
 * program's), one byte more is refused with what to do instead, before anything was scheduled. */
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
#define MOST 49152

static uint8_t args[MOST + 1];
static struct router_stage broker;
static muster_coordinator_t *coordinator;
static struct muster_error err;

static struct {
    atomic_uint tasks, values;           /* that came ... */
    atomic_bool task_whole, value_whole; /* ... with all their bytes */
} world;

static bool is_whole(const uint8_t *data, size_t size)
{
    return size == MOST && memcmp(data, args, MOST) == 0;
}

static bool answer_it(const struct wire_msg *asked, struct wire_msg *answer)
{
    answer->down.job = "train";
    answer->down.start_id = 1;
    if (asked->type == WIRE_QUEUE_OPEN) {
        answer->type = WIRE_QUEUE_OPENED;
        answer->u.queue_opened = (struct wire_queue_opened){
            .nonce = asked->u.queue_open.nonce, .text = "", .queue = QUEUE};
    } else if (asked->type == WIRE_TASKS_ADD) {
        const struct wire_task_entry *entry = &asked->u.tasks_add.tasks.items[0];

        atomic_store(&world.task_whole, is_whole(entry->args.data, entry->args.size));
        atomic_store(&world.tasks, (unsigned)entry->number);
        answer->type = WIRE_TASKS_TAKEN;
        answer->u.tasks_taken =
            (struct wire_tasks_taken){.queue = QUEUE, .taken = entry->number, .text = ""};
    } else if (asked->type == WIRE_RESOURCE_ADD) {
        atomic_store(&world.value_whole,
                     is_whole(asked->u.resource_add.args.data, asked->u.resource_add.args.size));
        atomic_store(&world.values, (unsigned)asked->u.resource_add.number);
        answer->type = WIRE_RESOURCE_TAKEN;
        answer->u.resource_taken = (struct wire_resource_taken){
            .queue = QUEUE, .number = asked->u.resource_add.number, .text = ""};
    } else if (asked->type == WIRE_QUEUE_BEAT) {
        answer->type = WIRE_QUEUE_ALIVE;
        answer->u.queue_alive = (struct wire_queue_alive){
            .queue = QUEUE, .taken = atomic_load(&world.tasks), .unavailable = ""};
    }
    return answer->type != WIRE_NONE;
}

static int setup(void **state)
{
    struct muster_coordinator_options options = MUSTER_COORDINATOR_OPTIONS_INIT;

    (void)state;
    alarm(PATIENCE_S); /* a hang ends so */
    for (size_t i = 0; i < sizeof args; i++)
        args[i] = (uint8_t)(i * 31 + i / 977);
    memset(&world, 0, sizeof world);
    router_stage_begin(&broker, "tcp://127.0.0.1:*", answer_it);
    options.broker = broker.endpoint;
    options.job = "train";
    assert_int_equal(muster_coordinator_open(&options, &coordinator, &err), MUSTER_OK);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    assert_int_equal(muster_coordinator_close(&coordinator, NULL), MUSTER_OK);
    router_stage_end(&broker);
    alarm(0);
    return 0;
}

static enum muster_status schedule(size_t size)
{
    struct muster_call call = MUSTER_CALL_INIT;

    call.function = "learn";
    call.args = args;
    call.args_size = size;
    return muster_coordinator_schedule(coordinator, &call, PATIENCE_S * 1000, NULL, &err);
}

static void says_what_to_do(const char *where)
{
    assert_non_null(strstr(err.text, "the arguments of \"learn\" have 49153 bytes, at most 49152"));
    assert_non_null(strstr(err.text, where));
}

static void of_a_task(void **state)
{
    (void)state;
    assert_int_equal(schedule(MOST + 1), MUSTER_E_ARGUMENT);
    says_what_to_do("give the path of a file that has them, or schedule several smaller tasks");
    assert_int_equal(muster_coordinator_scheduled(coordinator), 0);
    assert_int_equal(schedule(MOST), MUSTER_OK);
    assert_int_equal(muster_coordinator_flush(coordinator, PATIENCE_S * 1000, &err), MUSTER_OK);
    assert_int_equal(atomic_load(&world.tasks), 1);
    assert_true(atomic_load(&world.task_whole));
}

static void of_a_per_worker_value(void **state)
{
    muster_per_worker_t *value = NULL;

    (void)state;
    assert_int_equal(
        muster_coordinator_create_per_worker(coordinator, "learn", args, MOST + 1, &value, &err),
        MUSTER_E_ARGUMENT);
    says_what_to_do("give the path of a file that has them");
    assert_int_equal(
        muster_coordinator_create_per_worker(coordinator, "learn", args, MOST, &value, &err),
        MUSTER_OK);
    assert_int_equal(atomic_load(&world.values), 1);
    assert_true(atomic_load(&world.value_whole));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(of_a_task),
        TEST(of_a_per_worker_value),
    };

    return cmocka_run_group_tests_name("task_arguments", tests, NULL, NULL);
}
