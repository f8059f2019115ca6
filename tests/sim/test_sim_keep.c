/* Worlds with policies, pins, deletions and imports: without faults and with them, sanitized; and
 * the must-fail controls of what is checked in them. A broker that is broken inside stands in for
 * the one of the archive: its keep.c, with one thing at a time that it does not look at. */
#include "broker/core/checkpoints/keep.h"
#include "schema/rules/keep.h"

#include "tests/sim/sim_test.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static enum {
    FAITHFUL,
    SEES_NO_PINS,
    SEES_NO_NEWEST,
    SEES_NO_WHOLE,
    SEES_NO_RESTORERS,
    WANTS_THE_OTHERS,
    HAS_NO_HAND,
    NEVER_CONSIDERS
} broken;

static bool broken_pins_hold(const struct job *job, uint64_t checkpoint)
{
    return broken != SEES_NO_PINS && pins_hold(job, checkpoint);
}

static const struct checkpoint *broken_newest(const struct job *job)
{
    return broken == SEES_NO_NEWEST ? NULL : registry_newest(job);
}

static const struct checkpoint *broken_whole(const struct job *job)
{
    if (broken == SEES_NO_NEWEST)
        return NULL; /* it would hold on to the newest, too */
    return broken == SEES_NO_WHOLE ? registry_newest(job) : registry_newest_whole(job);
}

static bool broken_choose(const struct keep_policies *policies, const struct keep_item *items,
                          size_t count, bool *ret_keep)
{
    bool done = broken != NEVER_CONSIDERS && keep_choose(policies, items, count, ret_keep);

    for (size_t i = 0; done && i < count && broken == WANTS_THE_OTHERS; i++)
        ret_keep[i] = !ret_keep[i];
    return done;
}

#define pins_hold broken_pins_hold
#define registry_newest broken_newest
#define registry_newest_whole broken_whole
#define keep_choose broken_choose
#define NODE_JOINED (broken == SEES_NO_RESTORERS ? NODE_STATE_COUNT : NODE_JOINED)
#define GENERATION_JOINING \
    (broken == SEES_NO_RESTORERS ? GENERATION_STATE_COUNT : GENERATION_JOINING)
#undef DELETES_IN_FLIGHT_MAX
#define DELETES_IN_FLIGHT_MAX (broken == HAS_NO_HAND ? 0u : 8u)
#include "broker/core/checkpoints/keep.c" /* NOLINT(bugprone-suspicious-include) */

/* --- faithful --------------------------------------------------------------------------------- */

static void without_faults_what_is_to_go_goes(void **state)
{
    struct sim_stats stats = {0};

    (void)state;
    for (unsigned seed = 1; seed <= 12; seed++) {
        struct sim_options options = {
            .seed = seed, .healthy = true, .async = -1, .nodes = 1 + seed % 6, .keeps = SIM_WITH};
        assert_true(sim_run_told(&options, &stats));
    }
    assert_true(stats.deletions > 3 && stats.deleted > 3 && stats.pins > 20);
}

static void with_faults_nothing_goes_that_has_to_stay(void **state)
{
    struct sim_stats stats = {0};

    (void)state;
    for (unsigned seed = 1; seed <= 20; seed++) {
        struct sim_options options = {
            .seed = seed, .async = -1, .keeps = SIM_WITH, .sqlite = seed % 4 == 0};
        assert_true(sim_run_told(&options, &stats));
    }
    assert_true(stats.deletions > 10 && stats.deleted > 10);
    assert_true(stats.commits_of[CAUSE_PERIOD] > 10);
}

/* --- controls --------------------------------------------------------------------------------- */

static void expect_broken(unsigned how, enum sim_mutation mutation, unsigned count,
                          const char *invariant)
{
    struct sim_options options = {.async = -1, .mutation = mutation, .keeps = SIM_WITH, .nodes = 3};

    broken = how;
    bool found = sim_find_broken(&options, count, invariant);
    broken = FAITHFUL;
    if (!found)
        fail_msg("no seed of %u breaks %s", count, invariant);
}

static void a_deletion_of_what_is_pinned_is_seen(void **state)
{
    (void)state;
    expect_broken(SEES_NO_PINS, MUTANT_NONE, 60, "I11");
}

static void a_pin_that_a_start_forgets_is_seen(void **state)
{
    (void)state;
    expect_broken(FAITHFUL, MUTANT_FORGETS_PINS, 200, "I11");
}

static void a_deletion_of_the_newest_is_seen(void **state)
{
    (void)state;
    expect_broken(SEES_NO_NEWEST, MUTANT_NONE, 60, "I11");
}

static void a_deletion_of_the_last_whole_one_is_seen(void **state)
{
    (void)state;
    expect_broken(SEES_NO_WHOLE, MUTANT_NONE, 100, "I11");
}

static void a_deletion_under_a_restore_is_seen(void **state)
{
    (void)state;
    expect_broken(SEES_NO_RESTORERS, MUTANT_NONE, 200, "I11");
}

static void a_deletion_of_what_a_policy_keeps_is_seen(void **state)
{
    (void)state;
    expect_broken(WANTS_THE_OTHERS, MUTANT_NONE, 60, "keep");
}

static void a_deletion_that_nobody_is_told_of_is_seen(void **state)
{
    (void)state;
    expect_broken(HAS_NO_HAND, MUTANT_NONE, 60, "deletion");
}

static void what_is_never_decided_is_seen(void **state)
{
    (void)state;
    expect_broken(NEVER_CONSIDERS, MUTANT_NONE, 200, "deletion");
}

static void a_deletion_whose_end_is_never_said_is_seen(void **state)
{
    (void)state;
    expect_broken(FAITHFUL, MUTANT_NEVER_DELETED, 60, "deletion");
}

/* What the policies decided is decided again once the broker is back: only what a person dropped is
 * lost, and a lasting world has more of that. */
static void a_decision_that_a_start_takes_back_is_seen(void **state)
{
    struct sim_options options = {
        .async = -1, .mutation = MUTANT_FORGETS_DELETION, .keeps = SIM_WITH, .lasting = true};

    (void)state;
    assert_true(sim_find_broken(&options, 100, "deletion")); /* nobody carries it out */
}

static void files_that_go_before_their_name_are_seen(void **state)
{
    (void)state;
    expect_broken(FAITHFUL, MUTANT_DELETES_IN_PLACE, 60, "I11");
}

static void an_import_that_is_not_written_is_seen(void **state)
{
    (void)state;
    expect_broken(FAITHFUL, MUTANT_LOSES_IMPORT, 400, "I12");
}

#define BUGS_MIN 12 /* that are seen: may grow, never fall */

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_faults_what_is_to_go_goes),
        cmocka_unit_test(with_faults_nothing_goes_that_has_to_stay),
        cmocka_unit_test(a_deletion_of_what_is_pinned_is_seen),
        cmocka_unit_test(a_pin_that_a_start_forgets_is_seen),
        cmocka_unit_test(a_deletion_of_the_newest_is_seen),
        cmocka_unit_test(a_deletion_of_the_last_whole_one_is_seen),
        cmocka_unit_test(a_deletion_under_a_restore_is_seen),
        cmocka_unit_test(a_deletion_of_what_a_policy_keeps_is_seen),
        cmocka_unit_test(a_deletion_that_nobody_is_told_of_is_seen),
        cmocka_unit_test(what_is_never_decided_is_seen),
        cmocka_unit_test(a_deletion_whose_end_is_never_said_is_seen),
        cmocka_unit_test(a_decision_that_a_start_takes_back_is_seen),
        cmocka_unit_test(files_that_go_before_their_name_are_seen),
        cmocka_unit_test(an_import_that_is_not_written_is_seen),
    };

    sim_guard_aborts();
    return sim_bugs_end(cmocka_run_group_tests(tests, NULL, NULL), BUGS_MIN);
}
