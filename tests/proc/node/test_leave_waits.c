/* A node that closes stays as long as the closing rule says (R8.5): for a broker whose disk is
 * full, for one that is heard again, for a manifest that comes late; and not for a dead one. */
#include "schema/limits.h"
#include "tests/support/lone_node.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#define BEYOND_MS (3 * HEARTBEAT_MS) /* as long as no answer takes */
#define SILENT_MS                                                                  \
    (LOST_MS + 2 * HEARTBEAT_MS) /* a host with much to do needs more than LOST_MS \
                                  */

static int64_t closing_since_ms;

static void close_it(void)
{
    closing_since_ms = lone_now_ms();
    atomic_store(&lone.stop, true);
}

static int64_t closing_ms(void)
{
    return lone_now_ms() - closing_since_ms;
}

static void start(void)
{
    lone_start();
    lone_welcome_and_start();
    lone_await_steps(3);
}

static void a_broker_whose_disk_is_full_is_waited_for(void **state)
{
    (void)state;
    start();
    lone.not_stored = MUSTER_E_STORAGE;
    close_it();
    while (closing_ms() < BEYOND_MS)
        lone_await(WIRE_LEAVE);
    lone.not_stored = MUSTER_OK;
    lone_await(WIRE_LEAVE);
    lone_end();
    assert_int_equal(lone.close_status, MUSTER_OK);
}

/* ... and does not know it any more: its LEAVE is said to each. */
static void a_broker_that_is_heard_again_is_told_anew(void **state)
{
    struct wire_msg unknown = {.type = WIRE_ACK, .u.ack.code = MUSTER_E_HELLO};

    (void)state;
    start();
    lone.not_stored = MUSTER_E_STORAGE;
    close_it();
    for (int i = 1; i <= 3; i++) {
        while (closing_ms() < i * HEARTBEAT_MS)
            lone_await(WIRE_LEAVE);
        lone.epoch++;
        lone_transmit(&unknown, false);
        lone_welcome();
    }
    lone.not_stored = MUSTER_OK;
    lone_await(WIRE_LEAVE);
    lone_end();
    assert_int_equal(lone.close_status, MUSTER_OK);
}

/* The last save of a job that ends for an error is committed, and its manifest is this node's to
 * write. */
static void a_manifest_that_comes_late_is_waited_for(void **state)
{
    struct wire_msg part = {.type = WIRE_MANIFEST_CHUNK};
    int64_t step;

    (void)state;
    start();
    lone_say((struct wire_event){
        .kind = EVENT_NODE_LOST, .rank = 1, .text = "silent", .flags = EVENT_FLAG_ROUND_FOLLOWS});
    lone_say_with_member(EVENT_FREEZE, CAUSE_ERROR, -1, 0);
    step = lone_await(WIRE_REPORT)->u.report.begun;
    lone_say_with_member(EVENT_DECISION, CAUSE_ERROR, step, MEMBER_FLAG_WRITER);
    lone_await(WIRE_SAVED);
    lone_say((struct wire_event){.kind = EVENT_COMMIT,
                                 .round = 1,
                                 .cause = CAUSE_ERROR,
                                 .step = step,
                                 .checkpoint = 1,
                                 .incarnation = lone.incarnation});
    close_it(); /* as the program does by itself */
    while (closing_ms() < BEYOND_MS)
        lone_await(WIRE_MANIFEST_GET);
    part.u.manifest_chunk = (struct wire_manifest_chunk){.checkpoint = 1,
                                                         .round_generation = 1,
                                                         .step = step,
                                                         .total = 1,
                                                         .bytes = {(const uint8_t *)"x", 1}};
    lone_transmit(&part, false);
    lone_await(WIRE_LEAVE);
    lone_end();
    assert_int_equal(lone.run_status, MUSTER_E_PEER);
}

static void a_dead_broker_is_waited_for_until_it_is_lost(void **state)
{
    (void)state;
    start();
    close_it();
    lone_end(); /* nobody hears it */
    assert_true(closing_ms() < SILENT_MS);
}

/* ... and so one that has said that its disk is full, and died. */
static void a_full_broker_that_dies_is_waited_for_no_longer(void **state)
{
    (void)state;
    start();
    lone.not_stored = MUSTER_E_STORAGE;
    close_it();
    lone_await(WIRE_LEAVE);
    lone_end();
    assert_true(closing_ms() < SILENT_MS);
}

/* A notice says that this process is killed soon: it is gone before. */
static void a_deadline_ends_the_wait_for_a_full_disk(void **state)
{
    const int64_t left_ms = BEYOND_MS;

    (void)state;
    start();
    assert_int_equal(muster_node_notify(lone.node, MUSTER_NOTICE_STOP, left_ms, "spot"), MUSTER_OK);
    lone_await(WIRE_NOTICE);
    lone.not_stored = MUSTER_E_STORAGE;
    close_it();
    while (closing_ms() < left_ms - MARGIN_MS - HEARTBEAT_MS)
        lone_await(WIRE_LEAVE);
    lone_end();
    assert_true(closing_ms() < left_ms);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, lone_setup, lone_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_broker_whose_disk_is_full_is_waited_for),
        TEST(a_broker_that_is_heard_again_is_told_anew),
        TEST(a_manifest_that_comes_late_is_waited_for),
        TEST(a_dead_broker_is_waited_for_until_it_is_lost),
        TEST(a_full_broker_that_dies_is_waited_for_no_longer),
        TEST(a_deadline_ends_the_wait_for_a_full_disk),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
