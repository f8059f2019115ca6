/* The node's core: brokers that take over from each other. PROTOCOL.md R1.8. */
#include "tests/support/member_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static struct wire_msg refused_as_stale(struct member_fixture *f)
{
    struct wire_msg refused = member_down(f, WIRE_REFUSED);

    refused.u.refused = (struct wire_refused){
        .nonce = f->m->nonce, .code = MUSTER_E_STALE, .text = "rank 1 was taken over"};
    return refused;
}

/* R1.8, I6: one that was frozen while another took over from it answers the HELLO of a node that
 * tries its address again. */
static void a_past_broker_is_not_believed_when_it_greets_or_refuses(void **state)
{
    struct member_fixture *f = *state;
    int64_t heard = member_heard_boot_ms(f->m);

    member_tick_at(f, f->now + 10);
    member_feed(f, (struct member_input){.kind = MEMBER_CONNECTED});
    assert_member(f, "HELLO");
    f->epoch = 2;
    member_frame(f, refused_as_stale(f));
    assert_member(f, "");
    member_welcome(f, false);
    assert_member(f, "");
    assert_int_equal(member_heard_boot_ms(f->m), heard);
    assert_int_equal(member_seen(f)->mode, VIEW_OPEN);
    f->epoch = 3;
    member_frame(f, refused_as_stale(f));
    assert_int_equal(member_seen(f)->mode, VIEW_END);
}

/* R1.8: its address may be the same text as before, "tcp://0.0.0.0:7701", on another host. */
static void each_broker_that_greets_is_subscribed_to(void **state)
{
    struct member_fixture *f = *state;

    f->epoch = 4;
    f->start_id = 502;
    member_feed(f, (struct member_input){.kind = MEMBER_CONNECTED});
    assert_member(f, "HELLO");
    member_welcome(f, false);
    assert_member(f, "subscribe ipc:///e; PROBE_GET; HEARTBEAT; view open");
    assert_int_equal(member_heard_boot_ms(f->m), f->now);
}

#define T(test) cmocka_unit_test_setup_teardown(test, member_set_up, member_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_past_broker_is_not_believed_when_it_greets_or_refuses),
        T(each_broker_that_greets_is_subscribed_to),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
