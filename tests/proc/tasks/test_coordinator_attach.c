/* A coordinator that attached to many tasks asks for those that it is asked for, against a broker
 * of this program. */
#include "tests/proc/router_stage.h"

#include <muster/muster.h>

#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>

#include <cmocka.h>

#define PATIENCE_S 60
#define QUEUE 7
#define ENDED 3000
#define PAGE 500

static atomic_ullong told; /* ends in pages */
static atomic_uint page_takes_us;
static struct router_stage broker;
static muster_coordinator_t *coordinator;
static struct muster_error err;

static void answer_page(const struct wire_tasks_get *m, struct wire_msg *answer)
{
    static struct wire_ended_entry ends[PAGE];
    uint64_t to = m->to > 0 && m->to < ENDED ? m->to : ENDED;
    size_t count = 0;

    for (uint64_t number = m->from; number <= to && count < PAGE; number++)
        ends[count++] = (struct wire_ended_entry){.number = number, .state = TASK_DONE, .text = ""};
    atomic_fetch_add(&told, count);
    answer->type = WIRE_TASKS_PAGE;
    answer->u.tasks_page = (struct wire_tasks_page){.queue = QUEUE,
                                                    .nonce = m->nonce,
                                                    .from = m->from,
                                                    .next = m->from + count,
                                                    .more = m->from + count <= to,
                                                    .ended = ENDED};
    answer->u.tasks_page.tasks.items = ends;
    answer->u.tasks_page.tasks.count = count;
}

static bool answer_it(const struct wire_msg *asked, struct wire_msg *answer)
{
    answer->down.job = "train";
    answer->down.start_id = 1;
    if (asked->type == WIRE_QUEUE_OPEN) {
        answer->type = WIRE_QUEUE_OPENED;
        answer->u.queue_opened = (struct wire_queue_opened){.nonce = asked->u.queue_open.nonce,
                                                            .text = "",
                                                            .queue = QUEUE,
                                                            .taken = ENDED + 1,
                                                            .ended = ENDED};
    } else if (asked->type == WIRE_QUEUE_BEAT) {
        answer->type = WIRE_QUEUE_ALIVE;
        answer->u.queue_alive = (struct wire_queue_alive){
            .queue = QUEUE, .taken = ENDED + 1, .ended = ENDED, .unavailable = ""};
    } else if (asked->type == WIRE_TASKS_GET) {
        usleep((useconds_t)atomic_load(&page_takes_us));
        answer_page(&asked->u.tasks_get, answer);
    } else {
        return false;
    }
    return true;
}

static int setup(void **state)
{
    struct muster_coordinator_options options = MUSTER_COORDINATOR_OPTIONS_INIT;

    (void)state;
    alarm(PATIENCE_S); /* a hang ends so */
    atomic_store(&told, 0);
    atomic_store(&page_takes_us, 0);
    router_stage_begin(&broker, "tcp://127.0.0.1:*", answer_it);
    options.broker = broker.endpoint;
    options.job = "train";
    assert_int_equal(muster_coordinator_open(&options, &coordinator, &err), MUSTER_OK);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    muster_coordinator_close(&coordinator, NULL);
    router_stage_end(&broker);
    return 0;
}

static void fetch(muster_remote_value_t *value)
{
    const void *data;
    size_t size;

    assert_int_equal(muster_remote_value_fetch(value, 30000, &data, &size, &err), MUSTER_OK);
    muster_remote_value_free(&value);
}

static muster_remote_value_t *take(uint64_t id)
{
    muster_remote_value_t *value = NULL;

    assert_int_equal(muster_coordinator_value(coordinator, id, &value, &err), MUSTER_OK);
    return value;
}

/* Each took a look at all that was behind it: 20,000 would have taken hours. */
static void values_that_are_taken_one_by_one_cost_one_end_each(void **state)
{
    (void)state;
    for (uint64_t id = 1; id <= 100; id++)
        fetch(take(id));
    assert_int_equal(atomic_load(&told), 100);
}

static void values_that_are_taken_at_once_cost_their_pages(void **state)
{
    muster_remote_value_t *values[ENDED];

    (void)state;
    for (uint64_t id = 1; id <= ENDED; id++)
        values[id - 1] = take(id);
    for (size_t i = 0; i < ENDED; i++)
        fetch(values[i]);
    assert_in_range(atomic_load(&told), ENDED, 2 * ENDED);
}

static void what_has_ended_is_fetched_without_a_wait(void **state)
{
    muster_remote_value_t *ended, *queued;
    const void *data;
    size_t size;

    (void)state;
    atomic_store(&page_takes_us, 100000);
    ended = take(7);
    queued = take(ENDED + 1);
    assert_int_equal(muster_remote_value_fetch(ended, 0, &data, &size, &err), MUSTER_OK);
    assert_int_equal(muster_remote_value_fetch(queued, 0, &data, &size, &err), MUSTER_E_TIMEOUT);
    muster_remote_value_free(&ended);
    muster_remote_value_free(&queued);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(values_that_are_taken_one_by_one_cost_one_end_each),
        TEST(values_that_are_taken_at_once_cost_their_pages),
        TEST(what_has_ended_is_fetched_without_a_wait),
    };

    return cmocka_run_group_tests_name("coordinator_attach", tests, NULL, NULL);
}
