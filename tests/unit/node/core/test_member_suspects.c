/* The node's core: a rank whose collective broke asks the broker about the others. */
#include "tests/support/member_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

/* R8.4 */
static void who_suspects_another_asks_until_all_others_were_heard(void **state)
{
    struct member_fixture *f = *state;
    int64_t every = GONE_PING_MS;

    member_pass(f, HEARTBEAT_MS, true);
    member_feed(f, (struct member_input){.kind = MEMBER_SUSPECTS});
    member_pass(f, LOST_MS - 1, true);
    assert_false(member_sent(f, WIRE_HEARTBEAT)->u.heartbeat.suspects);
    member_pass(f, 1, true);
    for (int asked = 0; asked < 6; asked++) {
        assert_true(member_sent(f, WIRE_HEARTBEAT)->u.heartbeat.suspects);
        member_pass(f, every - 1, true);
        assert_null(member_sent(f, WIRE_HEARTBEAT));
        member_pass(f, 1, true);
        every = every * 2 > HEARTBEAT_MS ? HEARTBEAT_MS : every * 2;
    }
    assert_false(member_seen(f)->all_live);
    struct wire_msg alive = member_down(f, WIRE_ALIVE);
    alive.u.alive.all_live = true;
    alive.down.last_seq++; /* an event is on its way, which may be of one that is gone */
    member_frame(f, alive);
    assert_false(member_seen(f)->all_live);
    alive.down.last_seq--;
    member_frame(f, alive);
    assert_true(member_seen(f)->all_live);
    member_pass(f, HEARTBEAT_MS, true);
    assert_false(member_sent(f, WIRE_HEARTBEAT)->u.heartbeat.suspects);
}

static void nobody_who_suspects_no_other_is_told_that_all_live(void **state)
{
    struct member_fixture *f = *state;
    struct wire_msg alive = member_down(f, WIRE_ALIVE);

    alive.u.alive.all_live = true;
    member_frame(f, alive);
    assert_false(member_seen(f)->all_live);
}

#define T(test) cmocka_unit_test_setup_teardown(test, member_set_up, member_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(who_suspects_another_asks_until_all_others_were_heard),
        T(nobody_who_suspects_no_other_is_told_that_all_live),
    };

    return cmocka_run_group_tests_name("member_suspects", tests, NULL, NULL);
}
