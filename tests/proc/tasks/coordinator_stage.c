/* coordinator_stage - see coordinator_stage.h. */
#include "tests/proc/tasks/coordinator_stage.h"

#include "tests/proc/router_stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct coordinator_stage stage;
static struct router_stage broker;

/* --- the broker ------------------------------------------------------------------------------- */

static void answer_beat(struct wire_msg *answer)
{
    struct wire_queue_alive *m = &answer->u.queue_alive;

    answer->type = WIRE_QUEUE_ALIVE;
    *m = (struct wire_queue_alive){
        .queue = STAGE_QUEUE, .leased = 2, .workers = 1, .unavailable = ""};
    m->ended = atomic_load(&stage.done);
    atomic_fetch_add(&stage.beats, 1);
    if (atomic_load(&stage.failed))
        m->error_number = 1;
    if (atomic_load(&stage.queue) != STAGE_QUEUE)
        m->code = MUSTER_E_HELLO;
    if (atomic_load(&stage.server_lost))
        m->unavailable = "parameter server 0 was lost";
}

static void answer_open(const struct wire_msg *asked, struct wire_msg *answer)
{
    answer->type = WIRE_QUEUE_OPENED;
    answer->u.queue_opened = (struct wire_queue_opened){.nonce = asked->u.queue_open.nonce,
                                                        .text = "",
                                                        .queue = atomic_load(&stage.queue),
                                                        .taken = atomic_load(&stage.taken)};
}

static void answer_raise(struct wire_msg *answer)
{
    const unsigned status = atomic_load(&stage.raised_status);

    answer->type = WIRE_RAISED;
    answer->u.raised = (struct wire_raised){.queue = STAGE_QUEUE,
                                            .raise = 1,
                                            .number = 1,
                                            .status = status != 0 ? status : MUSTER_E_TASK,
                                            .code = 17,
                                            .text = "fail at worker 4: no\n\x1b[2Jluck",
                                            .cancelled_to = 3,
                                            .cancelled = 2,
                                            .ended = 3};
    atomic_store(&stage.failed, false);
    atomic_store(&stage.raised, true);
}

static void answer_page(const struct wire_msg *asked, struct wire_msg *answer)
{
    static struct wire_ended_entry ends[] = {
        {.number = 1, .state = TASK_FAILED, .status = MUSTER_E_TASK, .code = 17, .text = "no luck"},
        {.number = 2, .state = TASK_CANCELLED, .status = MUSTER_E_CANCELLED, .text = ""},
        {.number = 3, .state = TASK_CANCELLED, .status = MUSTER_E_CANCELLED, .text = ""}};

    answer->type = WIRE_TASKS_PAGE;
    answer->u.tasks_page = (struct wire_tasks_page){
        .queue = STAGE_QUEUE, .nonce = asked->u.tasks_get.nonce, .next = 4};
    if (atomic_load(&stage.done)) {
        static struct wire_ended_entry well[] = {
            {.number = 1, .state = TASK_DONE, .text = "", .bytes = STAGE_RESULT_BYTES},
            {.number = 2, .state = TASK_DONE, .text = "", .bytes = STAGE_RESULT_BYTES}};

        answer->u.tasks_page.ended = atomic_load(&stage.done);
        answer->u.tasks_page.tasks.items = well;
        answer->u.tasks_page.tasks.count = atomic_load(&stage.done);
        return;
    }
    if (!atomic_load(&stage.raised))
        return;
    answer->u.tasks_page.ended = 3;
    answer->u.tasks_page.tasks.items = ends;
    answer->u.tasks_page.tasks.count = 3;
}

static void answer_chunk(const struct wire_msg *asked, struct wire_msg *answer)
{
    static uint8_t bytes[STAGE_RESULT_BYTES];
    const bool bad = atomic_load(&stage.unreadable) ||
                     asked->u.result_get.number == atomic_load(&stage.bad_result);

    answer->type = WIRE_RESULT_CHUNK;
    answer->u.result_chunk =
        (struct wire_result_chunk){.queue = STAGE_QUEUE, .number = asked->u.result_get.number};
    answer->u.result_chunk.code = bad ? MUSTER_E_IO : MUSTER_OK;
    if (bad)
        return;
    answer->u.result_chunk.total = STAGE_RESULT_BYTES;
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
    answer->u.tasks_taken = (struct wire_tasks_taken){.queue = STAGE_QUEUE, .text = ""};
    if (atomic_load(&stage.busy))
        answer->u.tasks_taken.code = MUSTER_E_BUSY;
    else
        answer->u.tasks_taken.taken =
            asked->u.tasks_add.tasks.items[asked->u.tasks_add.tasks.count - 1].number;
}

static void answer_resource(const struct wire_msg *asked, struct wire_msg *answer)
{
    answer->type = WIRE_RESOURCE_TAKEN;
    answer->u.resource_taken =
        (struct wire_resource_taken){.queue = STAGE_QUEUE, .number = asked->u.resource_add.number};
    answer->u.resource_taken.code = atomic_load(&stage.other_made) ? MUSTER_E_EXISTS : MUSTER_OK;
}

static bool answer_it(const struct wire_msg *asked, struct wire_msg *answer)
{
    if (asked->type == WIRE_RAISE)
        atomic_fetch_add(&stage.raises, 1);
    if (asked->type == WIRE_RESOURCE_ADD)
        atomic_store(&stage.resource, (unsigned)asked->u.resource_add.number);
    if (atomic_load(&stage.silent) || (unsigned)asked->type == atomic_load(&stage.no_answer))
        return false;
    answer->down.job = "train";
    answer->down.start_id = atomic_load(&stage.start);
    if (atomic_load(&stage.full)) {
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
    } else if (asked->type == WIRE_TASKS_GET && atomic_load(&stage.unreadable)) {
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

/* --- the coordinator -------------------------------------------------------------------------- */

enum muster_status stage_open(int64_t connect_ms, int64_t broker_ms)
{
    struct muster_coordinator_options options = MUSTER_COORDINATOR_OPTIONS_INIT;

    options.broker = broker.endpoint;
    options.job = "train";
    options.name = "says";
    options.connect_timeout_ms = connect_ms;
    options.broker_timeout_ms = broker_ms;
    return muster_coordinator_open(&options, &stage.coordinator, &stage.err);
}

muster_remote_value_t *stage_schedule(void)
{
    struct muster_call call = MUSTER_CALL_INIT;
    muster_remote_value_t *value = NULL;

    call.function = "fail";
    assert_int_equal(
        muster_coordinator_schedule(stage.coordinator, &call, 10000, &value, &stage.err),
        MUSTER_OK);
    return value;
}

enum muster_status stage_join(int64_t timeout_ms)
{
    return muster_coordinator_join(stage.coordinator, timeout_ms, &stage.err);
}

void assert_says(const char *text)
{
    if (strstr(stage.err.text, text) == NULL)
        fail_msg("\"%s\" says not: %s", stage.err.text, text);
}

int stage_begin(void **state)
{
    (void)state;
    alarm(STAGE_PATIENCE_S); /* a hang ends so */
    memset(&stage, 0, sizeof stage);
    atomic_store(&stage.queue, STAGE_QUEUE);
    atomic_store(&stage.start, 1);
    router_stage_begin(&broker, "tcp://127.0.0.1:*", answer_it);
    assert_int_equal(stage_open(30000, 30000), MUSTER_OK);
    return 0;
}

int stage_end(void **state)
{
    (void)state;
    muster_coordinator_close(&stage.coordinator, NULL);
    router_stage_end(&broker);
    alarm(0);
    return 0;
}

void stage_open_again(int64_t connect_ms, int64_t broker_ms)
{
    muster_coordinator_close(&stage.coordinator, NULL);
    assert_int_equal(stage_open(connect_ms, broker_ms), MUSTER_OK);
}

void stage_broker_is_another(unsigned taken, enum wire_type no_answer)
{
    atomic_store(&stage.no_answer, no_answer);
    atomic_store(&stage.taken, taken);
    atomic_fetch_add(&stage.start, 1);
}
