/* What is held for company: how long, in which order, and what is not. */
#include "broker/outbox.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <string.h>

static bool hold(struct outbox *outbox, uint64_t route, char what, int64_t now)
{
    const uint8_t frame[] = {(uint8_t)what};

    return outbox_hold(outbox, route, frame, sizeof frame, now);
}

static char first(const struct outbox_frame *frame)
{
    return frame == NULL ? '-' : (char)frame->data[0];
}

static void a_peers_frames_come_out_in_order_and_no_others(void **state)
{
    static struct outbox outbox;

    (void)state;
    assert_true(hold(&outbox, 1, 'a', 0) && hold(&outbox, 2, 'b', 0) && hold(&outbox, 1, 'c', 1));
    assert_int_equal(first(outbox_take(&outbox, 1)), 'a');
    assert_int_equal(first(outbox_take(&outbox, 1)), 'c');
    assert_int_equal(first(outbox_take(&outbox, 1)), '-');
    assert_int_equal(first(outbox_take(&outbox, 2)), 'b');
    assert_int_equal(outbox.count, 0);
}

static void alone_a_frame_is_due_soon(void **state)
{
    static struct outbox outbox;

    (void)state;
    assert_true(outbox_wakeup_boot_ms(&outbox) == INT64_MAX);
    assert_true(hold(&outbox, 1, 'a', 10) && hold(&outbox, 2, 'b', 11));
    assert_int_equal(outbox_wakeup_boot_ms(&outbox), 10 + OUTBOX_HOLD_MS);
    assert_int_equal(first(outbox_take_due(&outbox, 9 + OUTBOX_HOLD_MS)), '-');
    assert_int_equal(first(outbox_take_due(&outbox, 10 + OUTBOX_HOLD_MS)), 'a');
    assert_int_equal(first(outbox_take_due(&outbox, 10 + OUTBOX_HOLD_MS)), '-');
    assert_int_equal(outbox_wakeup_boot_ms(&outbox), 11 + OUTBOX_HOLD_MS);
    assert_int_equal(first(outbox_take_due(&outbox, INT64_MAX)), 'b');
}

static void what_has_no_room_is_not_held(void **state)
{
    static struct outbox outbox;
    static const uint8_t longer[OUTBOX_FRAME_MAX + 1];

    (void)state;
    assert_false(outbox_hold(&outbox, 1, longer, sizeof longer, 0));
    assert_true(outbox_hold(&outbox, 1, longer, OUTBOX_FRAME_MAX, 0));
    for (size_t i = 1; i < OUTBOX_FRAMES; i++)
        assert_true(hold(&outbox, i, 'x', 0));
    assert_false(hold(&outbox, 1, 'y', 0));
    assert_int_equal(outbox_take_due(&outbox, INT64_MAX)->size, OUTBOX_FRAME_MAX);
    assert_true(hold(&outbox, 1, 'y', 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_peers_frames_come_out_in_order_and_no_others),
        cmocka_unit_test(alone_a_frame_is_due_soon),
        cmocka_unit_test(what_has_no_room_is_not_held),
    };

    return cmocka_run_group_tests_name("outbox", tests, NULL, NULL);
}
