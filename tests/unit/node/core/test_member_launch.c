/* A process that slept through its launch's end hears of the next one, and acts on nothing of it */
#include "tests/support/member_fixture.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void what_the_next_launch_does_moves_nobody_of_this_one(void **state)
{
    static const enum wire_event_kind kinds[] = {EVENT_RESUME, EVENT_STARTED,   EVENT_TERMINATION,
                                                 EVENT_FREEZE, EVENT_DECISION,  EVENT_PEER_ERROR,
                                                 EVENT_COMMIT, EVENT_UNCHANGED, EVENT_NOT_SAVED};

    (void)state;
    for (int started = 0; started < 2; started++)
        for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
            struct member_fixture f = {0};
            if (started) {
                member_fixture_running(&f, 1, LAYOUT_REPLICATED);
            } else {
                member_fixture_open(&f, 1, LAYOUT_REPLICATED);
                member_tick_at(&f, f.now);
                member_welcome(&f, true);
                struct wire_snapshot snapshot = member_snapshot_made(&f);
                snapshot.generation_state = GENERATION_JOINING;
                member_snapshot(&f, snapshot);
            }
            enum view_mode mode = member_seen(&f)->mode;
            struct wire_event event = member_event(&f, kinds[i]);
            event.generation++;
            event.rank = 0;
            event.step = 9;
            event.cause = CAUSE_TERMINATION;
            member_tell(&f, event);
            assert_int_equal(member_seen(&f)->mode, mode);
            assert_int_equal(member_seen(&f)->started, started);
            assert_null(member_did(&f, MEMBER_CLOSE_GATE));
            assert_null(member_did(&f, MEMBER_ON_ERROR));
            assert_int_equal(f.m->applied_seq, f.seq); /* it was heard anyway */
            member_fixture_close(&f);
        }
}

/* The broker took each of its HELLOs; what it was let into first had ended meanwhile. */
static void a_later_answer_to_the_same_hello_lets_into_the_next_launch(void **state)
{
    struct member_fixture f = {0};

    (void)state;
    member_fixture_open(&f, 1, LAYOUT_REPLICATED);
    member_tick_at(&f, f.now);
    member_welcome(&f, true);
    struct wire_snapshot snapshot = member_snapshot_made(&f);
    snapshot.generation_state = GENERATION_JOINING;
    member_snapshot(&f, snapshot);
    snapshot.generation = ++f.generation;
    struct wire_msg again = member_down(&f, WIRE_WELCOME);
    again.u.welcome = (struct wire_welcome){.speaks = WIRE_SPEAKS,
                                            .nonce = f.m->nonce - 1, /* its probe has the next */
                                            .generation = f.generation,
                                            .world_size = 3,
                                            .events_endpoint = "ipc:///e",
                                            .heartbeat_ms = HEARTBEAT_MS,
                                            .snapshot_follows = true};
    member_frame(&f, again);
    member_snapshot(&f, snapshot);
    member_tell(&f, member_event(&f, EVENT_STARTED));
    assert_true(member_seen(&f)->started);
    assert_int_equal(member_seen(&f)->generation, f.generation);
    member_fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_next_launch_does_moves_nobody_of_this_one),
        cmocka_unit_test(a_later_answer_to_the_same_hello_lets_into_the_next_launch),
    };

    return cmocka_run_group_tests_name("member_launch", tests, NULL, NULL);
}
