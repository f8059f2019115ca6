/* What a job holds is given back, and nothing of it can be reached any more. A piece that stays is
 * found by the leak sanitizer at the end of this program. */
#include "broker/core/state/state.h"
#include "tests/unit/broker/core/core_keep_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void a_round_that_is_freed_is_empty(void **state)
{
    struct round round = {.used = true, .round = 4, .count = 1};

    (void)state;
    round.parts = calloc(1, sizeof *round.parts);
    round.metrics = strdup("{}");
    round_free(&round);
    assert_false(round.used);
    assert_int_equal(round.round, 0);
    assert_null(round.parts);
    round_free(&round); /* of one that holds nothing */
}

static void notices_and_policies_go_all_at_once(void **state)
{
    struct job *job = calloc(1, sizeof *job);

    (void)state;
    for (int i = 0; i < 3; i++) {
        struct notice *notice = calloc(1, sizeof *notice);

        notice->text = strdup("a notice");
        notice->next = job->notices;
        job->notices = notice;
    }
    job->keep.policies = calloc(1, sizeof *job->keep.policies);
    job->keep.policies->keep_text = strdup("latest 2");
    job->keep.policies->save_text = strdup("every 5");
    notices_free(job);
    assert_null(job->notices);
    policies_free(job);
    assert_null(job->keep.policies);
    policies_free(job);
    free(job);
}

/* With checkpoints, pins, a deletion, a notice, policies and an open round. */
static void a_job_in_full_swing_leaves_nothing(void **state)
{
    struct core_fixture *f = *state;
    uint64_t first;

    core_policies(f, "latest 1", "period-ms 60000");
    first = core_saved_whole(f, 5);
    core_pin(f, first, "eval", 0);
    core_saved_whole(f, 10);
    core_saved_whole(f, 15); /* 10 is to be deleted */
    core_notice(f, 1, "n1", 30000);
    core_save_now(f, "s1");
    assert_non_null(core_job(f)->notices);
    assert_non_null(core_job(f)->keep.policies);
    assert_int_not_equal(core_job(f)->checkpoints_count, 0);
    assert_int_not_equal(core_job(f)->keep.deletions_count, 0);
    core_error(f, 2, 16, "division by zero");
    assert_non_null(core_job(f)->gen.error_text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_round_that_is_freed_is_empty),
        cmocka_unit_test(notices_and_policies_go_all_at_once),
        cmocka_unit_test_setup_teardown(a_job_in_full_swing_leaves_nothing, core_run_three,
                                        core_close),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
