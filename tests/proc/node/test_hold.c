/* A checkpoint is held while it is read: what the broker hears, played by the test on a thread of
 * its own. */
#include "client/manager/hold.h"

#include "schema/wire/wire.h"
#include "tests/support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <zmq.h>

#define LEASE_MS 300

struct stage {
    char directory[SCRATCH_PATH_MAX], address[SCRATCH_PATH_MAX + 8];
    void *context, *socket;
    pthread_t thread;
    atomic_int pins, unpins; /* that were answered */
    atomic_int unlike;       /* orders that are not of the one pin */
    atomic_int mute;         /* so many messages are lost */
    atomic_uint code;
    char id[64];
};

static void take(struct stage *stage, const struct wire_msg *order)
{
    if (order->type == WIRE_PIN) {
        if (stage->id[0] == '\0')
            snprintf(stage->id, sizeof stage->id, "%.60s", order->u.pin.id);
        if (strcmp(order->u.pin.id, stage->id) != 0 || order->u.pin.checkpoint != 7 ||
            order->u.pin.lease_ms != LEASE_MS || strcmp(order->up.job, "words") != 0)
            atomic_fetch_add(&stage->unlike, 1);
        atomic_fetch_add(&stage->pins, 1);
        return;
    }
    if (order->type != WIRE_UNPIN || strcmp(order->u.unpin.id, stage->id) != 0 ||
        order->u.unpin.checkpoint != 7)
        atomic_fetch_add(&stage->unlike, 1);
    atomic_fetch_add(&stage->unpins, 1);
}

static void *play(void *arg)
{
    static uint8_t frame[WIRE_FRAME_MAX];
    struct stage *stage = arg;

    for (;;) {
        uint8_t route[64];
        int route_size = zmq_recv(stage->socket, route, sizeof route, 0);
        int size = zmq_recv(stage->socket, frame, sizeof frame, 0);
        struct wire_msg order = {.type = WIRE_NONE}, answer = {.type = WIRE_ACK};
        struct arena arena;

        if (route_size < 0 || size <= 1) /* the end of the play */
            return NULL;
        if (atomic_load(&stage->mute) > 0) {
            atomic_fetch_sub(&stage->mute, 1);
            continue;
        }
        arena_init(&arena, 0);
        if (wire_decode(frame, (size_t)size, &arena, &order, NULL) == MUSTER_OK) {
            take(stage, &order);
            answer.u.ack = (struct wire_ack){.request = order.up.request,
                                             .code = atomic_load(&stage->code),
                                             .text = "",
                                             .value = 7};
            size_t length = wire_encode(&answer, frame, sizeof frame);
            zmq_send(stage->socket, route, (size_t)route_size, ZMQ_SNDMORE);
            zmq_send(stage->socket, frame, length, 0);
        }
        arena_free(&arena);
    }
}

static int open_stage(void **state)
{
    static struct stage stage;
    int linger_ms = 0;

    memset(&stage, 0, sizeof stage);
    scratch_make(stage.directory);
    snprintf(stage.address, sizeof stage.address, "ipc://%s/b", stage.directory);
    stage.context = zmq_ctx_new();
    stage.socket = zmq_socket(stage.context, ZMQ_ROUTER);
    zmq_setsockopt(stage.socket, ZMQ_LINGER, &linger_ms, sizeof linger_ms);
    assert_int_equal(zmq_bind(stage.socket, stage.address), 0);
    assert_int_equal(pthread_create(&stage.thread, NULL, play, &stage), 0);
    *state = &stage;
    return 0;
}

static int close_stage(void **state)
{
    struct stage *stage = *state;
    void *last = zmq_socket(stage->context, ZMQ_DEALER);

    zmq_connect(last, stage->address);
    zmq_send(last, "", 0, 0);
    pthread_join(stage->thread, NULL);
    zmq_close(last);
    zmq_close(stage->socket);
    zmq_ctx_term(stage->context);
    scratch_remove(stage->directory);
    return 0;
}

static enum muster_status begin(struct stage *stage, int timeout_ms, struct hold **ret_hold)
{
    const struct hold_wish wish = {.broker = stage->address,
                                   .job = "words",
                                   .who = "restore",
                                   .checkpoint = 7,
                                   .lease_ms = LEASE_MS,
                                   .timeout_ms = timeout_ms};

    return hold_begin(&wish, ret_hold, NULL);
}

static void await_pins(struct stage *stage, int count)
{
    for (int i = 0; i < 6000 && atomic_load(&stage->pins) < count; i++)
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    assert_true(atomic_load(&stage->pins) >= count);
}

/* The lease was of ten minutes, and a restore that took longer could lose what it read. */
static void a_lease_is_prolonged_until_the_end(void **state)
{
    struct stage *stage = *state;
    struct hold *hold = NULL;

    assert_int_equal(begin(stage, 20000, &hold), MUSTER_OK);
    await_pins(stage, 6);
    assert_int_equal(strncmp(stage->id, "restore-", 8), 0);
    hold_end(&hold);
    assert_null(hold);
    assert_int_equal(atomic_load(&stage->unpins), 1);
    assert_int_equal(atomic_load(&stage->unlike), 0);
}

static void a_broker_that_was_away_is_asked_again(void **state)
{
    struct stage *stage = *state;
    struct hold *hold = NULL;

    assert_int_equal(begin(stage, 20000, &hold), MUSTER_OK);
    atomic_store(&stage->mute, 3);
    await_pins(stage, 3);
    hold_end(&hold);
    assert_int_equal(atomic_load(&stage->unlike), 0);
}

static void what_is_gone_cannot_be_held(void **state)
{
    struct stage *stage = *state;
    struct hold *hold = NULL;

    atomic_store(&stage->code, MUSTER_E_NOT_FOUND);
    assert_int_equal(begin(stage, 20000, &hold), MUSTER_E_NOT_FOUND);
    assert_null(hold);
}

static void a_broker_that_is_gone_ends_no_wait_late(void **state)
{
    struct stage *stage = *state;
    struct hold *hold = NULL;
    time_t began = time(NULL);

    atomic_store(&stage->mute, 1000000);
    assert_int_equal(begin(stage, 200, &hold), MUSTER_E_BROKER);
    atomic_store(&stage->mute, 0);
    assert_int_equal(begin(stage, 20000, &hold), MUSTER_OK);
    atomic_store(&stage->mute, 1000000);
    hold_end(&hold);
    assert_true(time(NULL) - began < 60);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, open_stage, close_stage)
    const struct CMUnitTest tests[] = {
        TEST(a_lease_is_prolonged_until_the_end),
        TEST(a_broker_that_was_away_is_asked_again),
        TEST(what_is_gone_cannot_be_held),
        TEST(a_broker_that_is_gone_ends_no_wait_late),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
