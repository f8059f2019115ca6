/* The broker's core: each message has those who may say it, and nobody else is taken at it. */
#include "tests/support/core_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#define EVALUATOR 5

enum { UP, DOWN };

static const struct {
    enum wire_type type;
    int way;
} all[] = {
#define MSG(TYPE, number, way, ...) {WIRE_##TYPE, way},
#include "schema/wire/wire.def"
#undef MSG
};

#define ROUTE_OF_TOOL 500

/* As it comes from the wire: its strings are empty, and no pointer of it is NULL. */
static struct wire_msg empty_message(const struct wire_msg *head, struct arena *arena)
{
    static uint8_t frame[WIRE_FRAME_MAX];
    size_t size = wire_encode(head, frame, sizeof frame);
    struct wire_msg message;
    struct muster_error err;

    assert_true(size > 0);
    assert_int_equal(wire_decode(frame, size, arena, &message, &err), MUSTER_OK);
    return message;
}

/* What such a process of a running job is answered to an empty message of that type. */
static bool is_refused(enum wire_type type, enum wire_role role)
{
    static struct core_fixture f;
    const int node = role == ROLE_EVALUATOR ? EVALUATOR : 0;
    struct arena arena = {0};
    struct wire_msg message;

    core_fixture_running(&f, 2, LAYOUT_REPLICATED);
    f.nodes[EVALUATOR].role = ROLE_EVALUATOR;
    f.nodes[EVALUATOR].rank = 0;
    core_hello(&f, EVALUATOR);
    core_restored(&f, EVALUATOR, 0, 0);
    message = core_msg(&f, node, type);
    message = empty_message(&message, &arena);
    if (role == ROLE_TOOL)
        core_tool(&f, message, 1);
    else
        core_say(&f, node, message);
    const struct wire_msg *ack =
        core_sent(&f, role == ROLE_TOOL ? ROUTE_OF_TOOL : f.nodes[node].route, WIRE_ACK);
    bool refused = ack != NULL && ack->u.ack.code == MUSTER_E_PROTOCOL;
    if (refused)
        assert_non_null(strstr(ack->u.ack.text, "is not a message that a"));
    core_fixture_close(&f);
    arena_free(&arena);
    return refused;
}

/* Those with a door of their own: who says them has not joined a launch. */
static bool has_own_door(enum wire_type type)
{
    return type == WIRE_HELLO || wire_is_task(type);
}

static void each_request_is_taken_from_somebody(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (all[i].way != UP || has_own_door(all[i].type))
            continue;
        if (is_refused(all[i].type, ROLE_CHIEF) && is_refused(all[i].type, ROLE_TOOL))
            fail_msg("%s is in no table", wire_type_name(all[i].type));
    }
}

static void what_the_broker_says_is_taken_from_nobody(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i].way == DOWN && !has_own_door(all[i].type) && !is_refused(all[i].type, ROLE_TOOL))
            fail_msg("%s is taken from a tool", wire_type_name(all[i].type));
}

static void only_ranks_speak_of_saves_and_of_what_goes(void **state)
{
    static const enum wire_type types[] = {WIRE_AT_STEP,     WIRE_FILES,         WIRE_SAVED,
                                           WIRE_SAVE_FAILED, WIRE_PAST,          WIRE_SAVE_AT,
                                           WIRE_SAVE_WISH,   WIRE_MANIFEST_DONE, WIRE_SWEEP,
                                           WIRE_DELETED,     WIRE_POLICIES};

    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        assert_false(is_refused(types[i], ROLE_CHIEF));
        assert_true(is_refused(types[i], ROLE_EVALUATOR));
        assert_true(is_refused(types[i], ROLE_TOOL));
    }
}

static void only_tools_speak_for_operators(void **state)
{
    static const enum wire_type types[] = {WIRE_SAVE_NOW, WIRE_GONE, WIRE_FORGET, WIRE_IMPORT,
                                           WIRE_HOST};

    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        assert_false(is_refused(types[i], ROLE_TOOL));
        assert_true(is_refused(types[i], ROLE_CHIEF));
        assert_true(is_refused(types[i], ROLE_EVALUATOR));
    }
}

/* A tool's word is a tool's whatever role its message claims, for its process has not joined. */
static void who_has_not_joined_is_told_to(void **state)
{
    static struct core_fixture f;
    struct wire_msg message;

    (void)state;
    core_fixture_running(&f, 2, LAYOUT_REPLICATED);
    message = core_msg(&f, 0, WIRE_REPORT);
    message.up.request = 1;
    core_feed(&f, ROUTE_OF_TOOL, &message);
    assert_int_equal(core_sent(&f, ROUTE_OF_TOOL, WIRE_ACK)->u.ack.code, MUSTER_E_HELLO);
    core_fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_request_is_taken_from_somebody),
        cmocka_unit_test(what_the_broker_says_is_taken_from_nobody),
        cmocka_unit_test(only_ranks_speak_of_saves_and_of_what_goes),
        cmocka_unit_test(only_tools_speak_for_operators),
        cmocka_unit_test(who_has_not_joined_is_told_to),
    };

    return cmocka_run_group_tests_name("core_dispatch", tests, NULL, NULL);
}
