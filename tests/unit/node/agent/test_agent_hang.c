/* A save that has just begun when the end is heard: the agent knows of it before it hears. */
#include "tests/support/lone_node.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>

static _Atomic bool in_save;
static int calls_in_save;

static int gather_in_vain(const struct muster_save_context *context)
{
    int64_t until = lone_now_ms() + LONE_DEADLINE_MS / 2;

    (void)context;
    atomic_store(&in_save, true);
    while (atomic_load(&lone.on_error_calls) == 0 && lone_now_ms() < until)
        poll(NULL, 0, 1);
    calls_in_save = atomic_load(&lone.on_error_calls);
    return 1;
}

static int restore_nothing(const struct muster_restore_context *context)
{
    (void)context;
    return 0;
}

static void an_end_that_is_heard_as_a_save_begins_breaks_it_off(void **state)
{
    (void)state;
    lone.options.state = NULL;
    lone.options.termination.save_fn = gather_in_vain;
    lone.options.termination.restore_fn = restore_nothing;
    lone_start();
    lone_welcome_and_start();
    lone_await_steps(3);
    lone_say_with_member(EVENT_FREEZE, CAUSE_OPERATOR, -1, MEMBER_FLAG_WRITER);
    lone_say_with_member(EVENT_DECISION, CAUSE_OPERATOR,
                         lone_await(WIRE_REPORT)->u.report.begun + 1, MEMBER_FLAG_WRITER);
    for (int64_t until = lone_now_ms() + LONE_DEADLINE_MS;
         !atomic_load(&in_save) && lone_now_ms() < until;)
        poll(NULL, 0, 1);
    lone_say((struct wire_event){.kind = EVENT_NOT_SAVED, .rank = -1, .text = "too late"});
    lone_await_leave();
    assert_int_equal(calls_in_save, 1);
    assert_int_equal(lone.on_error_seen.status, MUSTER_PREEMPTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_end_that_is_heard_as_a_save_begins_breaks_it_off,
                                        lone_setup, lone_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
