/* Must-fail controls inside the node's core: one that orders who does not write to train on beyond
 * S, one that keeps some ranks from coming to S, one that does not act on the errors of others, one
 * that writes no manifest. The mutated files stand in for those of the archive. */
#include "node/core/member_state.h"

void view_set_truly(struct member *m, enum view_mode mode);
void error_heard_truly(struct member *m, int rank, int code, int64_t step, const char *text,
                       uint64_t round_follows);

#define view_set view_set_truly
#include "node/core/member.c" /* NOLINT(bugprone-suspicious-include) */
#undef view_set
#define error_heard error_heard_truly
#include "node/core/member_error.c" /* NOLINT(bugprone-suspicious-include) */
#undef error_heard

static bool walks_on, stands_still, is_deaf, writes_none;

#define MEMBER_WRITE_MANIFEST (writes_none ? MEMBER_LOG : MEMBER_WRITE_MANIFEST)
#include "node/core/member_manifest.c" /* NOLINT(bugprone-suspicious-include) */
#undef MEMBER_WRITE_MANIFEST

#include "tests/sim/sim_test.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

void view_set(struct member *m, enum view_mode mode)
{
    bool held = stands_still && mode == VIEW_STEP_TO && m->options.rank % 2 == 1;

    view_set_truly(m, held ? VIEW_WAIT : mode);
    if (walks_on && mode == VIEW_STEP_TO && !m->writer)
        m->view.step++;
}

void error_heard(struct member *m, int rank, int code, int64_t step, const char *text,
                 uint64_t round_follows)
{
    if (!is_deaf || m->options.rank % 2 == 0)
        error_heard_truly(m, rank, code, step, text, round_follows);
}

static int nothing_is_mutated(void **state)
{
    (void)state;
    walks_on = stands_still = is_deaf = writes_none = false;
    return 0;
}

static void a_step_beyond_the_save_step_is_seen(void **state)
{
    struct sim_options options = {.async = -1};

    (void)state;
    walks_on = true;
    assert_true(sim_find_broken(&options, 50, "I2"));
}

/* Training is synchronous: those that go on wait for those that do not. */
static void a_wrong_freeze_deadlocks_and_is_seen(void **state)
{
    struct sim_options options = {.async = 0};

    (void)state;
    stands_still = true;
    assert_true(sim_find_broken(&options, 60, "I5"));
}

static void a_manifest_that_is_not_written_is_seen(void **state)
{
    struct sim_options options = {.async = -1};

    (void)state;
    writes_none = true;
    assert_true(sim_find_said(&options, 100, "manifest", "lived to write"));
}

static void an_error_that_is_not_acted_on_is_seen(void **state)
{
    struct sim_options options = {.async = 1};

    (void)state;
    is_deaf = true;
    assert_true(sim_find_broken(&options, 400, "I10"));
}

#define BUGS_MIN 4 /* that are seen: may grow, never fall */

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_step_beyond_the_save_step_is_seen, nothing_is_mutated),
        cmocka_unit_test_setup(a_wrong_freeze_deadlocks_and_is_seen, nothing_is_mutated),
        cmocka_unit_test_setup(a_manifest_that_is_not_written_is_seen, nothing_is_mutated),
        cmocka_unit_test_setup(an_error_that_is_not_acted_on_is_seen, nothing_is_mutated),
    };

    sim_guard_aborts();
    return sim_bugs_end(cmocka_run_group_tests(tests, NULL, NULL), BUGS_MIN);
}
