/* Must-fail controls: cores that do not ask to be woken for something that they wait for. In a busy
 * world another input comes soon, so that the bounds of the checker see none of them. The mutated
 * files stand in for those of the archive. */
#include "broker/core/state/state.h"
#include "node/core/member_state.h"

static enum lost { NOTHING, OF_ROUND, OF_LINK, OF_LEAVE, OF_PIN, OF_BEAT } lost;

int64_t round_wakeup_kept(const struct member *m);
int64_t link_wakeup_kept(const struct member *m);
int64_t leave_wakeup_kept(const struct member *m);

#define round_wakeup round_wakeup_kept
#include "node/core/member_round.c" /* NOLINT(bugprone-suspicious-include) */
#undef round_wakeup
#define link_wakeup link_wakeup_kept
#include "node/core/member_link.c" /* NOLINT(bugprone-suspicious-include) */
#undef link_wakeup
#define leave_wakeup leave_wakeup_kept
#include "node/core/member_leave.c" /* NOLINT(bugprone-suspicious-include) */
#undef leave_wakeup

static void job_timer_of(enum lost which, struct job *job, int64_t at_boot_ms)
{
    if (lost != which)
        job_timer(job, at_boot_ms);
}

#define job_timer(job, at) job_timer_of(OF_BEAT, (job), (at))
#include "broker/core/members/roster.c" /* NOLINT(bugprone-suspicious-include) */
#undef job_timer
#define job_timer(job, at) job_timer_of(OF_PIN, (job), (at))
#include "broker/core/checkpoints/pins.c" /* NOLINT(bugprone-suspicious-include) */
#undef job_timer

#include "tests/sim/sim_test.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

int64_t round_wakeup(const struct member *m)
{
    return lost == OF_ROUND ? NEVER : round_wakeup_kept(m);
}

int64_t link_wakeup(const struct member *m)
{
    return lost == OF_LINK ? NEVER : link_wakeup_kept(m);
}

int64_t leave_wakeup(const struct member *m)
{
    return lost == OF_LEAVE ? NEVER : leave_wakeup_kept(m);
}

static int nothing_is_lost(void **state)
{
    (void)state;
    lost = NOTHING;
    return 0;
}

static void is_seen(enum lost which)
{
    struct sim_options options = {.async = -1, .keeps = which == OF_PIN ? SIM_WITH : SIM_BY_SEED};

    lost = which;
    assert_true(sim_find_broken(&options, 100, "wakeup"));
}

static void a_bound_of_a_round_without_a_wakeup_is_seen(void **state)
{
    (void)state;
    is_seen(OF_ROUND);
}

static void a_heartbeat_without_a_wakeup_is_seen(void **state)
{
    (void)state;
    is_seen(OF_LINK);
}

static void a_leave_without_a_wakeup_is_seen(void **state)
{
    (void)state;
    is_seen(OF_LEAVE);
}

static void a_pin_that_ends_without_a_timer_is_seen(void **state)
{
    (void)state;
    is_seen(OF_PIN);
}

static void ranks_that_are_not_looked_at_are_seen(void **state)
{
    (void)state;
    is_seen(OF_BEAT);
}

#define BUGS_MIN 5 /* that are seen: may grow, never fall */
#define T(test) cmocka_unit_test_setup(test, nothing_is_lost)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_bound_of_a_round_without_a_wakeup_is_seen),
        T(a_heartbeat_without_a_wakeup_is_seen),
        T(a_leave_without_a_wakeup_is_seen),
        T(a_pin_that_ends_without_a_timer_is_seen),
        T(ranks_that_are_not_looked_at_are_seen),
    };

    sim_guard_aborts();
    return sim_bugs_end(cmocka_run_group_tests(tests, NULL, NULL), BUGS_MIN);
}
