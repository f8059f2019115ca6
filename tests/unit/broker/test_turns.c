/* A key that asks without an end delays itself alone, and what it said is taken in its order. */
#include "broker/turns.h"
#include "schema/wire/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

static const struct key_grant greedy = {.name = "g", .public_key = "greedy"};
static const struct key_grant honest = {.name = "h", .public_key = "honest"};

static bool say(struct turns *turns, const struct key_grant *key, uint8_t type, uint64_t route)
{
    const uint8_t bytes[] = {0x93, 1, type, 0};
    const struct bus_frame frame = {
        .route = route, .grant = key, .data = bytes, .size = sizeof bytes};

    return turns_take(turns, &frame);
}

static unsigned kept_taken(struct turns *turns, uint64_t *ret_first, uint64_t *ret_last)
{
    struct bus_frame frame;
    const char *key;
    unsigned count = 0;

    turns_begin(turns);
    for (; turns_next(turns, &frame, &key); count++) {
        assert_string_equal(key, greedy.public_key);
        if (count == 0)
            *ret_first = frame.route;
        *ret_last = frame.route;
    }
    return count;
}

static void a_flood_of_one_leaves_the_turn_of_another(void **state)
{
    struct turns *turns = turns_create();
    uint64_t first = 0, last = 0;
    unsigned now = 0;

    (void)state;
    turns_begin(turns);
    for (uint64_t i = 1; i <= 3 * TURN_WORK; i++)
        now += say(turns, &greedy, WIRE_REPORT, i);
    assert_int_equal(now, TURN_WORK);
    assert_true(say(turns, &honest, WIRE_REPORT, 1));
    assert_true(turns_wait(turns));
    assert_int_equal(kept_taken(turns, &first, &last), TURN_WORK);
    assert_int_equal(first, TURN_WORK + 1);
    assert_int_equal(last, 2 * TURN_WORK);
    assert_false(say(turns, &greedy, WIRE_REPORT, 99999)); /* not before what waits */
    assert_int_equal(kept_taken(turns, &first, &last), TURN_WORK);
    assert_int_equal(kept_taken(turns, &first, &last), 1);
    assert_int_equal(last, 99999);
    assert_false(turns_wait(turns));
    assert_true(say(turns, &greedy, WIRE_REPORT, 1));
    assert_int_equal(turns_dropped(turns), 0);
    turns_destroy(&turns);
}

static void questions_are_dear_and_delay_no_heartbeat(void **state)
{
    struct turns *turns = turns_create();
    unsigned now = 0;

    (void)state;
    turns_begin(turns);
    for (uint64_t i = 0; i < 100; i++)
        now += say(turns, &greedy, WIRE_QUERY, i);
    assert_int_equal(now, TURN_WORK / TURN_QUESTION_WORK);
    assert_true(say(turns, &greedy, WIRE_HEARTBEAT, 1));
    turns_destroy(&turns);
}

/* A list of 1,024 tasks has 6 KiB at least, and costs more than a beat. */
static void a_list_of_tasks_costs_by_its_size(void **state)
{
    static const uint8_t types[] = {WIRE_TASKS_ADD, WIRE_WORK_HELLO, WIRE_WORK_BEAT,
                                    WIRE_WORK_DONE};

    (void)state;
    for (size_t i = 0; i < sizeof types; i++) {
        struct turns *turns = turns_create();
        uint8_t bytes[6144] = {0x93, 1, types[i], 0};
        const struct bus_frame frame = {
            .route = 1, .grant = &greedy, .data = bytes, .size = sizeof bytes};
        unsigned now = 0;

        turns_begin(turns);
        for (int n = 0; n < 200; n++)
            now += turns_take(turns, &frame);
        assert_int_equal(now, TURN_WORK / (1 + sizeof bytes / TURN_LIST_BYTES) + 1);
        turns_destroy(&turns);
        turns = turns_create();
        turns_begin(turns);
        for (now = 0; now < TURN_WORK && say(turns, &greedy, types[i], 1);)
            now++;
        assert_int_equal(now, TURN_WORK);
        turns_destroy(&turns);
    }
}

static void what_is_kept_has_a_bound(void **state)
{
    struct turns *turns = turns_create();
    static uint8_t bytes[WIRE_FRAME_MAX] = {0x93, 1, WIRE_FILES, 0};
    const struct bus_frame frame = {
        .route = 1, .grant = &greedy, .data = bytes, .size = sizeof bytes};

    (void)state;
    turns_begin(turns);
    for (int i = 0; i < TURN_WORK + 1000; i++)
        turns_take(turns, &frame);
    assert_in_range(turns_dropped(turns), 1000 - TURNS_HELD_BYTES / WIRE_FRAME_MAX, 999);
    assert_true(say(turns, &honest, WIRE_FILES, 1));
    turns_destroy(&turns);
}

static void bytes_that_are_no_message_are_kept_and_taken_as_any(void **state)
{
    struct turns *turns = turns_create();
    const struct bus_frame frame = {.route = 1, .grant = &greedy, .data = NULL, .size = 0};
    uint64_t first = 0, last = 0;

    (void)state;
    turns_begin(turns);
    for (int i = 0; i <= TURN_WORK; i++)
        turns_take(turns, &frame);
    assert_int_equal(kept_taken(turns, &first, &last), 1);
    turns_destroy(&turns);
}

/* Of 100 MiB it has 50: then as much is free as it had. */
static void one_key_has_half_of_the_disk_written_in_a_day(void **state)
{
    const int64_t all = 100 << 20, day = 20000 * DAY_MS;
    struct turns *turns = turns_create();
    int64_t used = 0;

    (void)state;
    while (turns_write(turns, greedy.public_key, 1000, all - used, day))
        used += TURN_ROWS * (TURN_ROW_BYTES + 1000);
    assert_true(used > 49 << 20 && used < (50 << 20) + TURN_ROWS * (TURN_ROW_BYTES + 1000));
    assert_true(turns_write(turns, honest.public_key, 1000, all - used, day));
    assert_false(turns_write(turns, greedy.public_key, 1000, all - used, day + DAY_MS - 1));
    assert_true(turns_write(turns, greedy.public_key, 1000, all - used, day + DAY_MS));
    assert_false(turns_write(turns, honest.public_key, 1000, 0, day));
    assert_false(turns_write(turns, honest.public_key, 1000, -1, day));
    turns_destroy(&turns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_key_has_half_of_the_disk_written_in_a_day),
        cmocka_unit_test(a_flood_of_one_leaves_the_turn_of_another),
        cmocka_unit_test(questions_are_dear_and_delay_no_heartbeat),
        cmocka_unit_test(a_list_of_tasks_costs_by_its_size),
        cmocka_unit_test(what_is_kept_has_a_bound),
        cmocka_unit_test(bytes_that_are_no_message_are_kept_and_taken_as_any),
    };

    return cmocka_run_group_tests_name("turns", tests, NULL, NULL);
}
