/* The node's core: a save that does not return is ended with its process, whenever the end came.
 * PROTOCOL.md, Bounds. */
#include "tests/support/member_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define NEVER_MS (60 * 60000) /* an hour */

/* The training thread goes into its save_fn of round 1; whether that is told is the test's. */
static void enter_save(struct member_fixture *f)
{
    member_stand(f, 5);
    member_freeze(f, 1, CAUSE_OPERATOR, false);
    member_ack_all(f);
    member_decision(f, 1, CAUSE_OPERATOR, 5, 2);
    member_arrive(f);
    member_ack_all(f);
    assert_int_equal(member_seen(f)->mode, VIEW_CAPTURE);
}

static void say_not_saved(struct member_fixture *f)
{
    struct wire_event event = member_event(f, EVENT_NOT_SAVED);

    event.text = "its deadline's margin was reached";
    member_tell(f, event);
    assert_int_equal(member_seen(f)->mode, VIEW_END);
}

/* R8.1 */
static void a_save_that_is_told_before_the_end_is_broken_off_and_ended(void **state)
{
    struct member_fixture *f = *state;

    enter_save(f);
    member_set_saving(f->m, 1, 0);
    say_not_saved(f);
    assert_non_null(member_did(f, MEMBER_ON_ERROR));
    member_pass(f, f->m->options.abort_timeout_ms, true);
    assert_non_null(member_did(f, MEMBER_EXIT_PROCESS));
}

/* It began just before the end, and the end was heard first. */
static void so_is_one_that_is_told_behind_it(void **state)
{
    struct member_fixture *f = *state;

    enter_save(f);
    say_not_saved(f);
    assert_null(member_did(f, MEMBER_ON_ERROR));
    member_set_saving(f->m, 1, 0);
    member_pass(f, HEARTBEAT_MS, true);
    assert_non_null(member_did(f, MEMBER_ON_ERROR));
    assert_null(member_did(f, MEMBER_EXIT_PROCESS));
    member_pass(f, f->m->options.abort_timeout_ms, true);
    assert_non_null(member_did(f, MEMBER_EXIT_PROCESS));
}

static void so_is_one_that_begins_unseen_as_a_peer_fails(void **state)
{
    struct member_fixture *f = *state;

    enter_save(f);
    member_peer_error(f, 2, false);
    assert_int_equal(member_seen(f)->mode, VIEW_END);
    member_set_saving(f->m, 1, 0);
    member_pass(f, HEARTBEAT_MS + f->m->options.abort_timeout_ms, true);
    assert_non_null(member_did(f, MEMBER_EXIT_PROCESS));
}

/* ... and one whose bytes grow goes on, and comes back. */
static void one_that_comes_further_and_returns_ends_no_process(void **state)
{
    struct member_fixture *f = *state;

    enter_save(f);
    say_not_saved(f);
    for (uint64_t i = 1; i <= 3; i++) {
        member_set_saving(f->m, 1, i);
        member_pass(f, f->m->options.abort_timeout_ms / 2, true);
        assert_null(member_did(f, MEMBER_EXIT_PROCESS));
    }
    member_set_saving(f->m, 0, 0);
    member_pass(f, NEVER_MS, true);
    assert_null(member_did(f, MEMBER_EXIT_PROCESS));
}

/* Its outcome came in the pass of the end: the thread is in nothing that could be broken off. */
static void a_save_that_ended_just_before_the_end_is_not_broken_off(void **state)
{
    struct member_fixture *f = *state;

    for (int failed = 0; failed < 2; failed++) {
        member_fixture_close(f);
        member_fixture_running(f, 1, LAYOUT_REPLICATED);
        enter_save(f);
        member_set_saving(f->m, 1, 0);
        member_pass(f, HEARTBEAT_MS, true);
        if (failed > 0)
            member_save_failed(f, 1, MUSTER_E_SAVE);
        else
            member_saved(f, 1, 1);
        say_not_saved(f);
        assert_null(member_did(f, MEMBER_ON_ERROR));
        member_pass(f, NEVER_MS, true);
        assert_null(member_did(f, MEMBER_ON_ERROR));
        assert_null(member_did(f, MEMBER_EXIT_PROCESS));
    }
}

/* The same of what is written behind it, at any moment of that. */
static void what_is_written_behind_is_not_broken_off_either(void **state)
{
    struct member_fixture *f = *state;

    for (int written = 0; written < 2; written++) {
        member_fixture_close(f);
        member_fixture_running(f, 1, LAYOUT_REPLICATED);
        enter_save(f);
        member_set_saving(f->m, 1, 0);
        member_feed(f, (struct member_input){.kind = MEMBER_CAPTURED, .round = 1, .step = 5});
        if (written > 0)
            member_saved(f, 1, 1);
        say_not_saved(f);
        member_pass(f, NEVER_MS, true);
        assert_null(member_did(f, MEMBER_ON_ERROR));
        assert_null(member_did(f, MEMBER_EXIT_PROCESS));
    }
}

/* Where the process may not be ended that is not asked for again and again. */
static void the_process_is_to_be_ended_once(void **state)
{
    struct member_fixture *f = *state;

    enter_save(f);
    member_set_saving(f->m, 1, 0);
    say_not_saved(f);
    member_pass(f, f->m->options.abort_timeout_ms, true);
    assert_non_null(member_did(f, MEMBER_EXIT_PROCESS));
    member_tick_at(f, f->now);
    member_pass(f, NEVER_MS, true);
    assert_null(member_did(f, MEMBER_EXIT_PROCESS));
}

#define T(test) cmocka_unit_test_setup_teardown(test, member_set_up, member_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_save_that_is_told_before_the_end_is_broken_off_and_ended),
        T(so_is_one_that_is_told_behind_it),
        T(so_is_one_that_begins_unseen_as_a_peer_fails),
        T(one_that_comes_further_and_returns_ends_no_process),
        T(a_save_that_ended_just_before_the_end_is_not_broken_off),
        T(what_is_written_behind_is_not_broken_off_either),
        T(the_process_is_to_be_ended_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
