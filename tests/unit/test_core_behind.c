/* The broker's core: a save that is written behind training, and a termination that waits for it. */
#include "tests/support/core_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static int running(void **state)
{
    static struct core_fixture f;

    core_fixture_running(&f, 2, LAYOUT_SHARDED);
    *state = &f;
    return 0;
}

static int close_core(void **state)
{
    core_fixture_close(*state);
    return 0;
}

/* Both stand at step 4 still, so the termination would save what is being written already. */
static void the_margin_names_who_still_writes_the_step_that_all_stand_at(void **state)
{
    struct core_fixture *f = *state;

    core_save_now(f, "a");
    for (int n = 0; n < 2; n++)
        core_report(f, n, 1, 4, 4);
    for (int n = 0; n < 2; n++)
        core_at_step(f, n, 1, 4, true);
    core_files(f, 0, 1, 4, 1);
    core_saved(f, 0, 1, 4, 1);
    assert_int_equal(core_job(f)->rounds[0].state, ROUND_WRITING);
    core_notice(f, 0, "n1", 60000);
    for (int n = 0; n < 2; n++)
        core_report(f, n, 2, 4, 4);
    core_notice(f, 1, "n2", 2600); /* joins, and its margin comes before the freeze is over */
    core_clear(f);
    core_pass(f, 2600 - MARGIN_MS);
    const struct wire_event *abort = core_event(f, EVENT_ABORT);
    assert_non_null(abort);
    assert_int_equal(abort->round, 2);
    assert_int_equal(abort->rank, 1);
    assert_non_null(strstr(abort->text, "rank 1 had not saved"));
}

#define T(test) cmocka_unit_test_setup_teardown(test, running, close_core)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(the_margin_names_who_still_writes_the_step_that_all_stand_at),
    };

    return cmocka_run_group_tests_name("core_behind", tests, NULL, NULL);
}
