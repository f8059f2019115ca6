/* The broker's core: what becomes of the checkpoints that a launch left behind which went back. */
#include "tests/unit/broker/core/core_keep_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

/* The next launch finds `damaged` (the newest first) damaged, and goes back to what is before them.
 */
static void fall_back(struct core_fixture *f, const uint64_t *damaged, size_t count,
                      const char *keep)
{
    core_leave(f, 0, LEAVE_FINISHED, 0);
    f->fallback = true;
    f->nodes[0] = (struct core_node){
        .role = ROLE_CHIEF, .incarnation = f->nodes[0].incarnation + 100, .route = 100};
    core_hello(f, 0);
    for (size_t i = 0; i < count; i++) {
        struct wire_msg message = core_msg(f, 0, WIRE_RESTORE_FAILED);

        message.u.restore_failed = (struct wire_restore_failed){
            .checkpoint = damaged[i], .step = core_checkpoint(f, damaged[i])->step, .text = "bad"};
        core_say(f, 0, message);
    }
    core_restored(f, 0, core_job(f)->gen.resume_checkpoint, core_job(f)->gen.resume_step);
    f->fallback = false;
    core_policies(f, keep, "");
    core_obey(f);
    assert_int_equal(core_job(f)->gen.state, GENERATION_RUNNING);
}

/* Steps 1, 2, 3 of the first launch, of which the second goes back to 1. */
static void go_back(struct core_fixture *f, const char *keep)
{
    uint64_t round[4];

    for (int step = 1; step <= 3; step++)
        round[step] = core_saved_whole(f, step);
    fall_back(f, (const uint64_t[]){round[3], round[2]}, 2, keep);
    assert_int_equal(core_job(f)->gen.resume_step, 1);
}

/* Its steps that are still there, of the first launch. */
static void assert_left(const struct core_fixture *f, const char *what, const char *expected)
{
    char found[64] = "";

    for (size_t i = 0; i < f->rows_count; i++) {
        const struct record_checkpoint *row = &f->rows[i].u.checkpoint;

        if (f->rows[i].kind == RECORD_CHECKPOINT && row->state == CHECKPOINT_COMMITTED &&
            !core_counts(f, row))
            snprintf(found + strlen(found), sizeof found - strlen(found), "%s%lld",
                     found[0] != '\0' ? " " : "", (long long)row->step);
    }
    if (strcmp(found, expected) != 0)
        fail_msg("%s: %s is left, not %s", what, found, expected);
}

/* R12.5 */
static void they_go_when_a_later_launch_has_saved_as_far(void **state)
{
    struct core_fixture *f = *state;

    go_back(f, "latest 9; steps 2 3");
    assert_left(f, "nothing was saved yet", "2 3");
    core_commit_at(f, 2);
    uint64_t second = core_job(f)->round;
    core_obey(f);
    assert_left(f, "its manifest is being written", "2 3");
    core_manifest_done(f, second, 2);
    core_tick(f);
    assert_deletes(f, "0:2");
    assert_string_equal(core_sent(f, 100, WIRE_DELETE)->u.delete.path, "/ckpt/2");
    assert_int_equal(core_sent(f, 100, WIRE_DELETE)->u.delete.round_generation, 1);
    core_deleted(f, 0, 2, MUSTER_OK);
    assert_int_equal(core_checkpoint(f, 2)->state, CHECKPOINT_DELETED);
    assert_left(f, "the branch has come to step 2", "3");
    core_saved_whole(f, 5);
    core_obey(f);
    assert_left(f, "the branch has come further", "");
    assert_kept(f, "the branch's own", "1 2 5");
    assert_int_equal(core_checkpoint(f, 3)->state, CHECKPOINT_DELETED);
}

static void they_are_known_to_each_start_of_the_broker_and_each_launch(void **state)
{
    struct core_fixture *f = *state;

    go_back(f, "latest 2");
    core_start_again(f);
    core_saved_whole(f, 2);
    core_obey(f);
    assert_left(f, "after a start", "3");
    core_launch_again(f, "latest 2");
    core_obey(f);
    assert_left(f, "the next launch", "3");
    core_start_again(f);
    core_saved_whole(f, 3);
    core_obey(f);
    assert_left(f, "the next launch saved as far", "");
    assert_kept(f, "latest 2", "2 3");
}

/* The decision is on record; who was told may be gone. */
static void a_start_in_the_middle_of_their_deletion_goes_on_with_it(void **state)
{
    struct core_fixture *f = *state;

    go_back(f, "latest 9");
    core_saved_whole(f, 7);
    assert_int_equal(core_checkpoint(f, 2)->state, CHECKPOINT_DELETING);
    core_start_again(f);
    core_obey(f);
    assert_int_equal(core_checkpoint(f, 2)->state, CHECKPOINT_DELETED);
    assert_int_equal(core_checkpoint(f, 3)->state, CHECKPOINT_DELETED);
}

/* R12.5 */
static void a_job_that_keeps_all_keeps_them(void **state)
{
    struct core_fixture *f = *state;

    go_back(f, "");
    core_saved_whole(f, 9);
    core_obey(f);
    assert_left(f, "no policy", "2 3");
    core_launch_again(f, "latest 9");
    core_obey(f);
    assert_left(f, "the next launch has one", "");
}

static void what_is_pinned_stays_until_the_pin_falls(void **state)
{
    struct core_fixture *f = *state;
    uint64_t second;

    core_saved_whole(f, 1);
    second = core_saved_whole(f, 2);
    core_pin(f, second, "me", 0);
    fall_back(f, &second, 1, "latest 9");
    core_saved_whole(f, 3);
    core_obey(f);
    assert_left(f, "it is pinned", "2");
    core_start_again(f);
    core_obey(f);
    assert_left(f, "also after a start", "2");
    core_unpin(f, second, "me");
    core_obey(f);
    assert_left(f, "the pin is gone", "");
}

/* A branch that ends before it came as far is all that there will be (R12.5). */
static void they_go_when_the_job_is_done(void **state)
{
    struct core_fixture *f = *state;

    go_back(f, "latest 9");
    core_sweep(f, true);
    assert_int_equal(core_ack_value(f, 0), 0);
    core_obey(f);
    assert_left(f, "it saved nothing", "2 3");
    core_start_again(f);
    core_saved_whole(f, 2);
    core_obey(f);
    assert_left(f, "it may go on", "3");
    core_sweep(f, true);
    assert_int_equal(core_ack_value(f, 0), 1);
    core_obey(f);
    assert_left(f, "it is done", "");
}

int main(void)
{
#define ONE(test) cmocka_unit_test_setup_teardown(test, core_run_one, core_close)
    const struct CMUnitTest tests[] = {
        ONE(they_go_when_a_later_launch_has_saved_as_far),
        ONE(they_are_known_to_each_start_of_the_broker_and_each_launch),
        ONE(a_start_in_the_middle_of_their_deletion_goes_on_with_it),
        ONE(a_job_that_keeps_all_keeps_them),
        ONE(what_is_pinned_stays_until_the_pin_falls),
        ONE(they_go_when_the_job_is_done),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
