/* The fixed set: every seed of it in every build, and everything that can happen has happened
 * often. It is thousands of clusters, so this program is built without sanitizers and with -O2. */
#include "tests/sim/sim_often.h"
#include "tests/sim/sim_test.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <string.h>

#define FIXED_SEEDS 12500
#define SQLITE_SEEDS 160
/* Of the jobs, so many come to rest after the faults: what the liveness phase asks for is asked of
 * most worlds. */
#define RESTED_PERCENT 60
/* Of the fixed seeds, so that what is asked of rare worlds is asked of the real store, too. */
#define ON_SQLITE 110

static bool move_is_made(unsigned from, unsigned to)
{
    static const unsigned moves[ROUND_STATE_COUNT] = {
        [ROUND_NONE] = 1u << ROUND_FREEZING | 1u << ROUND_DECIDED | 1u << ROUND_ABORTED |
                       1u << ROUND_UNCHANGED,
        [ROUND_FREEZING] = 1u << ROUND_DECIDED | 1u << ROUND_ABORTED | 1u << ROUND_UNCHANGED,
        [ROUND_DECIDED] = 1u << ROUND_WRITING | 1u << ROUND_COMMITTED | 1u << ROUND_ABORTED,
        [ROUND_WRITING] = 1u << ROUND_COMMITTED | 1u << ROUND_ABORTED,
    };

    return (moves[from] & 1u << to) != 0;
}

static void expect_moves(const struct sim_stats *s)
{
    char text[64];

    for (unsigned from = 0; from < ROUND_STATE_COUNT; from++)
        for (unsigned to = 0; to < ROUND_STATE_COUNT; to++) {
            snprintf(text, sizeof text, "%s to %s", wire_round_state_name(from),
                     wire_round_state_name(to));
            if (move_is_made(from, to))
                sim_expect_often("move", text, s->moves[from][to]);
            else if (s->moves[from][to] > 0)
                fail_msg("a round moved from %s, which is no move", text);
        }
}

static void expect_reasons(const struct sim_stats *s)
{
    for (unsigned i = 0; i < REASON_COUNT; i++)
        sim_expect_often("reason", sim_reason_words(i), s->reasons[i]);
}

static void expect_everything(const struct sim_stats *s)
{
    static const enum muster_status codes[] = {
        MUSTER_E_TIMEOUT, MUSTER_E_STORAGE, MUSTER_E_PEER,        MUSTER_E_STEP,
        MUSTER_E_SAVE,    MUSTER_E_ABORTED, MUSTER_E_UNREACHABLE, MUSTER_E_NOT_SAVED};

    for (unsigned fault = 1; fault < FAULT_STORE_FIRST; fault++)
        if (fault < FAULT_RELAY_DIES || fault > FAULT_HAND_OVER) /* of worlds of their own */
            sim_expect_often("fault", sim_fault_name(fault), s->faults[fault]);
    for (unsigned type = WIRE_HELLO; type < WIRE_TYPE_MAX; type++)
        if (strcmp(wire_type_name(type), wire_type_name(WIRE_NONE)) != 0 && /* a number in use */
            !wire_is_task(type) && /* of worlds of their own: plain_fixed_tasks.c */
            type != WIRE_HOST)     /* supervisors are no part of a world: unit.core_hosts */
            sim_expect_often("message", wire_type_name(type), s->messages[type]);
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        sim_expect_often("abort", muster_status_name(codes[i]), s->aborts_by[codes[i]]);
    for (unsigned kind = EVENT_NONE + 1; kind < EVENT_KIND_COUNT; kind++)
        sim_expect_often("event", wire_event_kind_name(kind), s->emitted[kind]);
    expect_reasons(s);
    for (unsigned i = 0; i < PLANNED_COUNT; i++)
        sim_expect_often("plan", sim_plan_words(i), s->plans[i]);
    sim_expect_often("saves on notice", "committed", s->commits_of[CAUSE_NOTICE]);
    sim_expect_often("saves by time and cost", "committed", s->commits_of[CAUSE_PERIOD]);
    sim_expect_often("deletion", "by policies", s->deletions - s->deletions_asked);
    sim_expect_often("deletion", "asked for", s->deletions_asked);
    sim_expect_often("deletion", "done", s->deleted);
    sim_expect_often("checkpoint", "imported", s->imports);
    sim_expect_often("supervisor's word", "of somebody", s->gone_lived);
    expect_moves(s);
    sim_expect_often("thaw", "", s->thaws);
    sim_expect_often("world", "of several jobs", s->shared);
    sim_expect_often("job", "with uneven loops", s->uneven);
    sim_expect_often("job", "with observers", s->observers);
    sim_expect_often("job", "with several steps a call", s->strides);
    sim_expect_often("save", "due in the middle of a call", s->between_strides);
    for (unsigned i = 0; i < MOMENT_LEAVING; i++)
        sim_expect_often("notice", sim_moment_name(i), s->noticed[i]);
    sim_expect_often("launch", "opened anew after a put-back", s->launches_anew);
    sim_expect_often("notice after the faults", "saved", s->ample_saved);
}

static void the_fixed_seeds_break_nothing_and_meet_everything(void **state)
{
    struct sim_stats stats = {0};
    static uint64_t nodes[FIXED_SEEDS], faults[FIXED_SEEDS];

    (void)state;
    for (unsigned seed = 1; seed <= FIXED_SEEDS; seed++) {
        struct sim_options options = {.seed = seed,
                                      .focused = true,
                                      .put_back = seed % (2 * ON_SQLITE) == 0,
                                      .sqlite = seed % ON_SQLITE == 0,
                                      .slow_disk = seed % 16 == 3,
                                      .lasting = seed % 6 != 1,
                                      .async = -1};
        uint64_t nodes_before = stats.nodes, faults_before = stats.faults_met;
        assert_true(sim_run_told(&options, &stats));
        nodes[seed - 1] = stats.nodes - nodes_before;
        faults[seed - 1] = stats.faults_met - faults_before;
    }
    sim_stats_print(&stats, stdout);
    uint64_t nodes_median = sim_median(nodes, FIXED_SEEDS),
             faults_median = sim_median(faults, FIXED_SEEDS);
    printf("median: nodes %llu, faults met %llu\n", (unsigned long long)nodes_median,
           (unsigned long long)faults_median);
    expect_everything(&stats);
    assert_int_equal(sim_rare(), 0);
    assert_true(stats.rested * 100 >= stats.jobs * RESTED_PERCENT);
    assert_true(nodes_median >= 8);
    assert_true(faults_median >= 5);
}

/* SQLite is the disk: what broker/store hands out at each start is compared with what was written.
 */
static void the_real_store_forgets_nothing_whatever_its_disk_does(void **state)
{
    struct sim_stats stats = {0};

    (void)state;
    for (unsigned seed = 1; seed <= SQLITE_SEEDS; seed++) {
        struct sim_options options = {.seed = seed, .async = -1, .sqlite = true};
        assert_true(sim_run_told(&options, &stats));
    }
    sim_stats_print(&stats, stdout);
    for (unsigned fault = FAULT_STORE_FIRST; fault < FAULT_COUNT; fault++)
        sim_expect_often("fault", sim_fault_name(fault), stats.faults[fault]);
    assert_int_equal(sim_rare(), 0);
    assert_true(stats.broker_starts > 5 * SQLITE_SEEDS);
    assert_true(stats.faults[FAULT_BROKER_REBOOT] > 0 && stats.rows > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fixed_seeds_break_nothing_and_meet_everything),
        cmocka_unit_test(the_real_store_forgets_nothing_whatever_its_disk_does),
    };

    sim_guard_aborts();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
