/* The node's core: the program's questions to the broker, and the checkpoints that it has deleted
 * here. */
#include "tests/support/member_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

static int running(void **state)
{
    static struct member_fixture f;

    member_fixture_running(&f, 0, LAYOUT_REPLICATED);
    member_ack_all(&f);
    *state = &f;
    return 0;
}

static uint64_t ask_sweep(struct member_fixture *f)
{
    const struct wire_msg ask = {.type = WIRE_SWEEP, .up.job = "", .u.sweep = {.final = true}};

    member_feed(f, (struct member_input){.kind = MEMBER_ASK, .ask = &ask});
    assert_non_null(member_sent(f, WIRE_SWEEP));
    return member_sent(f, WIRE_SWEEP)->up.request;
}

static void a_question_is_answered_in_the_view(void **state)
{
    struct member_fixture *f = *state;
    uint64_t before = member_get_view(f->m)->asks_answered;
    struct wire_msg ack = member_down(f, WIRE_ACK);

    ack.u.ack.request = ask_sweep(f);
    ack.u.ack.code = MUSTER_E_BUSY;
    ack.u.ack.text = "why not";
    ack.u.ack.value = 7;
    assert_int_equal(member_get_view(f->m)->asks_answered, before);
    member_frame(f, ack);
    assert_int_equal(member_get_view(f->m)->asks_answered, before + 1);
    assert_int_equal(member_get_view(f->m)->ask_code, MUSTER_E_BUSY);
    assert_int_equal(member_get_view(f->m)->ask_value, 7);
    assert_string_equal(member_get_view(f->m)->ask_text, "why not");
    member_frame(f, ack); /* again: it counts once */
    assert_int_equal(member_get_view(f->m)->asks_answered, before + 1);
}

static void a_question_is_repeated_until_it_is_answered(void **state)
{
    struct member_fixture *f = *state;
    uint64_t request = ask_sweep(f);

    member_tick_at(f, f->now + RESEND_MIN_MS);
    assert_int_equal(member_sent(f, WIRE_SWEEP)->up.request, request);
}

/* The broker took it, and was restarted before its answer was heard: the number is taken, and what
 * it was answered nobody knows. */
static void an_answer_that_is_lost_is_said_so(void **state)
{
    struct member_fixture *f = *state;
    uint64_t before = member_get_view(f->m)->asks_answered;
    uint64_t request = ask_sweep(f);
    struct wire_msg ack = member_down(f, WIRE_ACK);

    ack.u.ack.code = MUSTER_E_HELLO;
    member_frame(f, ack);
    f->last_request = request;
    member_welcome(f, false);
    assert_int_equal(member_get_view(f->m)->asks_answered, before + 1);
    assert_int_equal(member_get_view(f->m)->ask_code, MUSTER_E_HELLO);
}

/* --- deletion --------------------------------------------------------------------------------- */

static struct wire_msg order(struct member_fixture *f, uint64_t checkpoint)
{
    struct wire_msg message = member_down(f, WIRE_DELETE);

    message.u.delete = (struct wire_delete){
        .checkpoint = checkpoint, .round_generation = 1, .step = 4, .path = "/c/4", .trash = "old"};
    return message;
}

static void done(struct member_fixture *f, uint64_t checkpoint, int64_t code)
{
    member_feed(f, (struct member_input){
                       .kind = MEMBER_DELETED, .checkpoint = checkpoint, .code = code, .text = ""});
}

static void a_deletion_whose_outcome_is_lost_is_carried_out_when_it_is_told_again(void **state)
{
    struct member_fixture *f = *state;

    member_frame(f, order(f, 9));
    member_deletion_lost(f->m, 9);
    member_deletion_lost(f->m, 10); /* of which it never heard */
    assert_null(member_sent(f, WIRE_DELETED));
    member_frame(f, order(f, 9));
    assert_non_null(member_did(f, MEMBER_DELETE));
}

static void a_deletion_is_done_once_and_told(void **state)
{
    struct member_fixture *f = *state;

    member_frame(f, order(f, 9));
    const struct member_action *action = member_did(f, MEMBER_DELETE);
    assert_non_null(action);
    assert_int_equal(action->round, 9);
    assert_int_equal(action->generation, 1);
    assert_int_equal(action->step, 4);
    assert_string_equal(action->text, "/c/4");
    assert_string_equal(action->trash, "old");
    member_frame(f, order(f, 9)); /* while it is under way */
    assert_null(member_did(f, MEMBER_DELETE));
    done(f, 9, MUSTER_E_IO);
    assert_int_equal(member_sent(f, WIRE_DELETED)->u.deleted.checkpoint, 9);
    assert_int_equal(member_sent(f, WIRE_DELETED)->u.deleted.code, MUSTER_E_IO);
    member_frame(f, order(f, 9)); /* asked for again, it is tried again */
    assert_non_null(member_did(f, MEMBER_DELETE));
    done(f, 9, MUSTER_OK);
    assert_int_equal(member_sent(f, WIRE_DELETED)->u.deleted.code, MUSTER_OK);
}

/* R12.6 */
static void no_more_are_under_way_than_there_is_room_for(void **state)
{
    struct member_fixture *f = *state;
    size_t begun = 0;

    for (uint64_t c = 1; c <= DELETES_MAX + 4; c++) {
        member_frame(f, order(f, c));
        begun += member_did(f, MEMBER_DELETE) != NULL;
    }
    assert_int_equal(begun, DELETES_MAX);
    done(f, 3, MUSTER_OK);
    member_frame(f, order(f, DELETES_MAX + 4));
    assert_non_null(member_did(f, MEMBER_DELETE));
}

static void an_older_broker_deletes_nothing(void **state)
{
    struct member_fixture *f = *state;
    struct wire_msg message = order(f, 9);

    message.down.broker_epoch--;
    member_frame(f, message);
    assert_null(member_did(f, MEMBER_DELETE));
}

/* R12.9 */
static void who_closes_begins_none(void **state)
{
    struct member_fixture *f = *state;

    member_close(f, LEAVE_FINISHED);
    member_frame(f, order(f, 9));
    assert_null(member_did(f, MEMBER_DELETE));
}

/* R12.9 */
static void who_is_told_to_end_waits_for_no_deletion(void **state)
{
    struct member_fixture *f = *state;

    assert_false(member_view_ends(member_seen(f)));
    member_tell(f, member_event(f, EVENT_TERMINATION));
    assert_true(member_view_ends(member_seen(f)));
}

static void whose_job_ends_waits_for_no_deletion(void **state)
{
    struct member_fixture *f = *state;

    member_peer_error(f, 1, false);
    assert_int_equal(member_seen(f)->mode, VIEW_END);
    assert_true(member_view_ends(member_seen(f)));
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, running, member_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_question_is_answered_in_the_view),
        TEST(a_question_is_repeated_until_it_is_answered),
        TEST(an_answer_that_is_lost_is_said_so),
        TEST(a_deletion_whose_outcome_is_lost_is_carried_out_when_it_is_told_again),
        TEST(a_deletion_is_done_once_and_told),
        TEST(no_more_are_under_way_than_there_is_room_for),
        TEST(an_older_broker_deletes_nothing),
        TEST(who_closes_begins_none),
        TEST(who_is_told_to_end_waits_for_no_deletion),
        TEST(whose_job_ends_waits_for_no_deletion),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
