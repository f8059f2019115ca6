/* The journal tells what an operator ordered, and who that was: once for each order that changed
 * something, and never for what was refused, repeated, or is no order. */
#include "tests/unit/broker/core/core_keep_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

static struct core_fixture fixture;

static int two_running(void **state)
{
    core_fixture_running(&fixture, 2, LAYOUT_SHARDED);
    fixture.by = "key ann at 10.0.0.7";
    *state = &fixture;
    return 0;
}

static void order(struct core_fixture *f, struct wire_msg message)
{
    static uint64_t request;

    core_tool(f, message, ++request);
}

static void save(struct core_fixture *f, const char *id)
{
    order(f, (struct wire_msg){.type = WIRE_SAVE_NOW, .u.save_now.id = id});
}

static void notify(struct core_fixture *f, const char *id, int64_t rank)
{
    order(f, (struct wire_msg){.type = WIRE_NOTICE,
                               .u.notice = {.id = id,
                                            .kind = NOTICE_USER,
                                            .source = "user",
                                            .left_ms = 3600000,
                                            .text = "",
                                            .rank = rank}});
}

static void told(struct core_fixture *f, const char *text)
{
    const struct wire_event *event = core_event(f, EVENT_ORDER);

    if (text == NULL) {
        assert_null(event);
        return;
    }
    assert_non_null(event);
    assert_string_equal(event->text, text);
}

static void a_save_is_told_with_its_round_and_a_repeat_is_not(void **state)
{
    struct core_fixture *f = *state;

    save(f, "a");
    told(f, "key ann at 10.0.0.7: save");
    assert_int_equal(core_event(f, EVENT_ORDER)->round, 1);
    save(f, "a");
    told(f, NULL);
}

static void a_notice_and_its_withdrawal_are_told(void **state)
{
    struct core_fixture *f = *state;

    notify(f, "n-1", 1);
    told(f, "key ann at 10.0.0.7: notify rank 1, notice n-1");
    notify(f, "n-1", 1);
    told(f, NULL);
    order(f, (struct wire_msg){.type = WIRE_CANCEL, .u.cancel.id = "n-1"});
    told(f, "key ann at 10.0.0.7: cancel notice n-1");
    notify(f, "n-2", 7); /* there is no such rank */
    told(f, NULL);
}

static void pins_for_good_are_told_and_a_readers_lease_is_not(void **state)
{
    struct core_fixture *f = *state;

    core_commit_at(f, 5);
    order(f, (struct wire_msg){.type = WIRE_PIN, .u.pin = {.id = "best"}});
    told(f, "key ann at 10.0.0.7: pin the newest checkpoint as best");
    order(f, (struct wire_msg){.type = WIRE_PIN, .u.pin = {.id = "reader", .lease_ms = 5000}});
    told(f, NULL);
    order(f, (struct wire_msg){.type = WIRE_UNPIN, .u.unpin = {.id = "reader"}});
    told(f, NULL);
    order(f, (struct wire_msg){.type = WIRE_UNPIN, .u.unpin = {.id = "best", .checkpoint = 1}});
    told(f, "key ann at 10.0.0.7: unpin checkpoint 1 as best");
}

static void a_drop_is_told_and_a_refused_one_is_not(void **state)
{
    struct core_fixture *f = *state;

    core_saved_whole(f, 5);
    order(f, (struct wire_msg){.type = WIRE_DROP, .u.drop.checkpoint = 1}); /* the newest stays */
    told(f, NULL);
    core_saved_whole(f, 9);
    order(f, (struct wire_msg){.type = WIRE_DROP, .u.drop.checkpoint = 1});
    told(f, "key ann at 10.0.0.7: drop checkpoint 1");
}

/* Whose key it is: others may hold one, and a local user is the one who runs it. */
static void what_a_supervisor_says_with_a_key_is_told_once(void **state)
{
    struct core_fixture *f = *state;
    const struct wire_msg gone = {
        .type = WIRE_GONE,
        .u.gone = {.rank = 1, .incarnation = f->nodes[1].incarnation, .signo = 9}};
    struct wire_msg host = {.type = WIRE_HOST,
                            .u.host = {.id = 9,
                                       .name = "h",
                                       .address = "192.0.2.1",
                                       .port = 1,
                                       .ranks = 1,
                                       .min = 2,
                                       .max = 2,
                                       .node_rank = -1}};

    f->key_jobs = "*";
    order(f, gone);
    told(f, "key ann at 10.0.0.7: the process of rank 1 has ended");
    order(f, gone);
    told(f, NULL);
    order(f, host);
    told(f, "key ann at 10.0.0.7: host h comes");
    order(f, host);
    told(f, NULL);
    f->key_jobs = NULL;
    host.u.host.id = 8;
    order(f, host);
    told(f, NULL);
}

static void nodes_give_no_orders(void **state)
{
    struct core_fixture *f = *state;

    core_notice(f, 1, "own", 3600000);
    told(f, NULL);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, two_running, core_close)
    const struct CMUnitTest tests[] = {
        T(a_save_is_told_with_its_round_and_a_repeat_is_not),
        T(a_notice_and_its_withdrawal_are_told),
        T(pins_for_good_are_told_and_a_readers_lease_is_not),
        T(a_drop_is_told_and_a_refused_one_is_not),
        T(what_a_supervisor_says_with_a_key_is_told_once),
        T(nodes_give_no_orders),
    };

    return cmocka_run_group_tests_name("core_orders", tests, NULL, NULL);
}
