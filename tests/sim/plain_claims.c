/* Must-fail controls of what rows, events and verdicts say of themselves (sim_check_claims.c): each
 * mutant of a core lets worlds end well that were told something untrue. The mutated files stand in
 * for those of the archive. */
#include "broker/core/dispatch.h"
#include "node/core/member_state.h"
#include "tests/sim/sim.h"

#include <stdio.h>
#include <string.h>

static bool takes_for_saved, blames_anyone, never_gives_up, tries_full_disks, loses_files,
    forgets_first, starts_early, breaks_promise, hasty, lies, is_mute, last_writes, lets_in,
    impatient, keeps_notice, stays, looks_back, loses_shards, miscounts, gives_up, names_nobody,
    forgets_owed, overlooks, trusts_deleted, forgets_joined, leaves_early, opens_late;
static enum sim_reason misnamed; /* for it another is blamed, by name; REASON_COUNT = for none */

static const struct checkpoint *looked_back(const struct job *job)
{
    return looks_back ? registry_newest(job) : NULL;
}

static int64_t furthest_begun(const struct round *round)
{
    int64_t furthest = -1;

    for (size_t i = 0; round != NULL && i < round->count; i++)
        if (round->parts[i].begun > furthest)
            furthest = round->parts[i].begun;
    return furthest;
}

/* What the launch began from counts, and is not there any more. */
static bool goes_back(const struct job *job)
{
    uint64_t resume = job->gen.resume_checkpoint;

    return trusts_deleted && resume > 0 && !registry_has(job, resume);
}

static bool gives_up_termination(const struct round *round)
{
    return (gives_up || names_nobody) && round != NULL && round->state == ROUND_FREEZING &&
           round->cause == CAUSE_TERMINATION;
}

static void unchanged_or_given_up(struct core *core, struct job *job, struct round *round,
                                  int64_t step)
{
    const struct checkpoint *newest = looked_back(job);

    if (gives_up_termination(round))
        round_abort(core, job, round, names_nobody ? -1 : (int64_t)round->parts[0].rank,
                    MUSTER_E_SAVE, "they stand at different steps", ABORT_FINAL);
    else if (goes_back(job))
        round_unchanged(core, job, round, job->gen.resume_step);
    else
        round_unchanged(core, job, round, newest != NULL ? newest->row.step : step);
}

/* A step more than the newest checkpoint's counts as on disk, or any step does once there is one */
static const struct checkpoint *newest_or_next(const struct job *job)
{
    static struct checkpoint next;
    const struct checkpoint *newest = registry_newest(job);
    struct round *open = round_open_one((struct job *)job);

    if (gives_up_termination(open) || goes_back(job)) {
        next.row.step = furthest_begun(open);
        return &next;
    }
    if (newest == NULL || !(takes_for_saved || looks_back))
        return newest;
    next = *newest;
    next.row.step = looks_back ? furthest_begun(open) : newest->row.step + 1;
    return &next;
}

static void decide_for_the_last(struct round *round, enum wire_round_state to)
{
    if (last_writes && to == ROUND_DECIDED && !round->parts[round->count - 1].writer) {
        round->parts[0].writer = false;
        round->parts[round->count - 1].writer = true;
    }
    round_move(round, to);
}

/* A member that is not the culprit, as the culprit. */
static void blame_another(struct round *round)
{
    char why[sizeof round->reason];
    const char *rest;
    size_t i = 0;

    if (misnamed == REASON_COUNT || strstr(round->reason, sim_reason_words(misnamed)) == NULL)
        return;
    while (i < round->count && (int64_t)round->parts[i].rank == round->culprit_rank)
        i++;
    if (i == round->count)
        return;
    round->culprit_rank = (int64_t)round->parts[i].rank;
    memcpy(why, round->reason, sizeof why);
    rest = strncmp(why, "rank ", 5) == 0 ? strchr(why + 5, ' ') : NULL;
    if (rest != NULL)
        snprintf(round->reason, sizeof round->reason, "rank %lld%s", (long long)round->culprit_rank,
                 rest);
}

static void persist_blame(struct core *core, struct job *job, struct round *round)
{
    if (round->state == ROUND_ABORTED)
        blame_another(round);
    persist_round(core, job, round);
}

static void count_anew(struct core *core, struct record_checkpoint *row)
{
    if (miscounts && row->state == CHECKPOINT_COMMITTED)
        row->shards_required++;
    persist_checkpoint(core, row);
}

static void fail_or_not(struct core *core, struct job *job, enum wire_event_kind kind,
                        uint64_t rank, const char *text)
{
    if (!lets_in)
        generation_rank_failed(core, job, kind, rank, text);
}

static bool committed_or_next(const struct job *job, int64_t step)
{
    const struct checkpoint *newest = newest_or_next(job);

    return round_is_committed(job, step) ||
           (newest != NULL && newest != registry_newest(job) && newest->row.step == step);
}

/* NOLINTBEGIN(bugprone-suspicious-include,bugprone-macro-parentheses) */
#define round_is_committed committed_or_next
#define round_abort(core, job, round, rank, code, text, retry) \
    round_abort(core, job, round, blames_anyone ? 0 : (rank), code, text, retry)
#define round_move decide_for_the_last
#define round_unchanged unchanged_or_given_up
#include "broker/core/rounds/round_decide.c"
#undef round_unchanged
#undef round_move
#undef round_is_committed
#undef round_abort

#undef ROUND_ATTEMPTS_MAX
#define ROUND_ATTEMPTS_MAX (never_gives_up ? 1000U : 3U)
#define ABORT_FINAL (tries_full_disks ? ABORT_RETRY : ABORT_FINAL)
#define RECORD_FILE (loses_files ? RECORD_NONE : RECORD_FILE)
#define RECORD_SHARD (loses_shards ? RECORD_NONE : RECORD_SHARD)
#define persist_checkpoint count_anew
#define persist_round persist_blame
#include "broker/core/rounds/save.c"
#undef ABORT_FINAL
#undef RECORD_FILE
#undef RECORD_SHARD
#undef persist_checkpoint
#undef persist_round

static void set_first_error_truly(struct core *core, struct job *job, int64_t rank, int64_t code,
                                  const char *text);
#define generation_set_first_error set_first_error_truly
#include "broker/core/state/ending.c"
#undef generation_set_first_error
#define NODE_RESTORED NODE_RESTORED || starts_early
#include "broker/core/members/generation.c"
#undef NODE_RESTORED

void generation_set_first_error(struct core *core, struct job *job, int64_t rank, int64_t code,
                                const char *text)
{
    if (forgets_first)
        job->gen.error_rank = -1;
    set_first_error_truly(core, job, rank, code, text);
}

static void settle_or_forget(struct core *core, struct job *job)
{
    if (breaks_promise)
        job->want = (struct want){CAUSE_NONE, 0, false};
    job_settle(core, job);
}

/* A notice joined the last attempt, or came before it. */
static bool last_was_a_termination(const struct job *job)
{
    const struct outcome *last = &job->outcomes[0];

    for (size_t i = 1; i < OUTCOMES_MAX; i++)
        if (job->outcomes[i].round > last->round)
            last = &job->outcomes[i];
    return last->cause == CAUSE_TERMINATION;
}

static void owed_or_not(struct job *job)
{
    if (forgets_owed || (forgets_joined && last_was_a_termination(job)))
        job->want = (struct want){CAUSE_NONE, 0, false};
    else
        round_want_owed(job);
}

#define job_settle settle_or_forget
#define round_want_owed owed_or_not
#include "broker/core/start.c"
#undef job_settle

#undef LOST_MS
#define LOST_MS (hasty ? 2500 : 5000)
#include "broker/core/members/roster.c"

static void end_or_overlook(struct core *core, struct job *job)
{
    if (!overlooks)
        save_settle(core, job);
}

static void open_or_wait(struct core *core, struct job *job)
{
    static bool waits;

    waits = opens_late && !waits;
    if (!waits)
        round_try_open(core, job);
}

#define save_settle end_or_overlook
#define round_try_open open_or_wait
#include "broker/core/members/settle.c"
#undef round_try_open
#undef save_settle

#undef ENDING_MS
#define ENDING_MS (impatient ? 0 : 10000)
#define generation_rank_failed fail_or_not
#include "broker/core/members/hello.c"
#undef generation_rank_failed

#define RECORD_NOTICE_CANCELLED (keeps_notice ? RECORD_NOTICE_ACTIVE : RECORD_NOTICE_CANCELLED)
#define join notice_join
#include "broker/core/rounds/notice.c"
#undef join
#undef round_want_owed
#undef RECORD_NOTICE_CANCELLED

#define OUTCOME_ABORTED (lies ? OUTCOME_COMMITTED : OUTCOME_ABORTED)
#include "node/core/member_outcome.c"
#undef OUTCOME_ABORTED

enum { NOTICES_PENDING_MAX = PENDING_NOTICE_MAX };
#undef PENDING_NOTICE_MAX
#define PENDING_NOTICE_MAX (is_mute ? 0U : (size_t)NOTICES_PENDING_MAX)
#include "node/core/member_notice.c"

#undef MARGIN_MS
#define MARGIN_MS (stays ? -100000 : 1000)
#define error_awaits_round(m) (!leaves_early && error_awaits_round(m))
#include "node/core/member_round.c"
#undef error_awaits_round
/* NOLINTEND(bugprone-suspicious-include,bugprone-macro-parentheses) */

#include "tests/sim/sim_test.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static int nothing_is_mutated(void **state)
{
    (void)state;
    takes_for_saved = blames_anyone = never_gives_up = tries_full_disks = loses_files = false;
    forgets_first = starts_early = breaks_promise = hasty = lies = is_mute = false;
    last_writes = lets_in = impatient = keeps_notice = stays = false;
    looks_back = loses_shards = miscounts = gives_up = names_nobody = forgets_owed = false;
    overlooks = trusts_deleted = forgets_joined = leaves_early = opens_late = false;
    misnamed = REASON_COUNT;
    return 0;
}

static void expect_said(bool *mutation, unsigned count, const char *invariant, const char *words)
{
    const struct sim_options chance = {.async = -1};

    *mutation = true;
    assert_true(sim_find_said(&chance, count, invariant, words));
}

static void expect(bool *mutation, unsigned count, const char *invariant)
{
    expect_said(mutation, count, invariant, "");
}

static void a_termination_without_a_save_of_what_is_new_is_seen(void **state)
{
    (void)state;
    expect(&takes_for_saved, 200, "unchanged");
}

static void a_save_that_a_deleted_checkpoint_stands_for_is_seen(void **state)
{
    (void)state;
    expect_said(&trusts_deleted, 200, "unchanged", "on no disk");
}

static void a_wrong_culprit_is_seen(void **state)
{
    (void)state;
    expect(&blames_anyone, 200, "culprit");
}

static void a_termination_that_forgets_the_steps_since_its_newest_checkpoint_is_seen(void **state)
{
    (void)state;
    expect_said(&looks_back, 200, "unchanged", "reported begun");
}

static void a_culprit_that_did_its_part_is_seen_in_each_kind_of_abort(void **state)
{
    static const enum sim_reason kinds[] = {REASON_FREEZE,    REASON_MARGIN_REPORT, REASON_WAY,
                                            REASON_SAVE_SLOW, REASON_MARGIN_SAVE,   REASON_LOST,
                                            REASON_FAILED,    REASON_FINISHED,      REASON_LEFT,
                                            REASON_PAST,      REASON_SAVE_FAILED};
    const struct sim_options focused = {.async = -1, .focused = true}, anything = {.async = -1};

    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        misnamed = kinds[i];
        /* a freeze that a margin cuts short is too rare in the focused worlds */
        const bool by_chance = kinds[i] == REASON_MARGIN_REPORT;
        assert_true(sim_find_said(by_chance ? &anything : &focused, by_chance ? 4000 : 400,
                                  "culprit", sim_reason_words(kinds[i])));
    }
}

static void a_cause_that_gets_rounds_without_end_is_seen(void **state)
{
    (void)state;
    expect(&never_gives_up, 400, "I5");
}

static void a_full_disk_that_is_tried_again_is_seen(void **state)
{
    (void)state;
    expect(&tries_full_disks, 300, "I5");
}

static void a_save_that_was_promised_and_is_not_tried_again_is_seen(void **state)
{
    (void)state;
    expect(&breaks_promise, 400, "I5");
}

/* The worlds are made for it (sim_focus.c). */
static void expect_owed(bool *mutation, const char *world, unsigned count, const char *words)
{
    const struct sim_options made = {.async = -1, .lasting = true, .world = world};

    *mutation = true;
    assert_true(sim_find_said(&made, count, "I5", words));
}

static void a_promised_save_that_a_withdrawn_notice_takes_along_is_seen(void **state)
{
    (void)state;
    expect_owed(&forgets_owed, "a notice that joined a save is withdrawn after a start", 600,
                "was to be tried again, and is not");
}

static void a_promised_save_is_missed_also_behind_the_saves_of_a_policy(void **state)
{
    (void)state;
    expect_owed(&breaks_promise, "a save that was begun before a start, and a policy's behind it",
                100, "was to be tried again, and is not (operator");
}

/* Its first attempt was the operator's, its second a notice had joined, which was withdrawn. */
static void a_promised_save_whose_last_attempt_a_notice_joined_is_missed(void **state)
{
    (void)state;
    expect_owed(&forgets_joined, "a notice that joined a save is withdrawn after a start", 600,
                "round 2 of job0 was to be tried again, and is not (termination");
}

static void a_rank_that_leaves_before_the_round_that_follows_an_error_is_seen(void **state)
{
    const struct sim_options made = {
        .async = -1,
        .lasting = true,
        .world = "a writer that dies in another save while a notice stands"};

    (void)state;
    leaves_early = true;
    assert_true(sim_find_said(&made, 40, "I10", "and not for the round"));
}

static void a_round_that_outlives_its_members_is_seen(void **state)
{
    (void)state;
    expect_said(&overlooks, 200, "I5", "has ended, and its round");
}

static void a_consequence_that_comes_with_the_second_settling_is_seen(void **state)
{
    (void)state;
    expect(&opens_late, 20, "settle");
}

static void a_process_that_was_heard_and_is_lost_is_seen(void **state)
{
    (void)state;
    expect(&hasty, 300, "I5");
}

static void a_checkpoint_without_the_rows_of_its_files_is_seen(void **state)
{
    (void)state;
    expect(&loses_files, 20, "I1");
}

static void a_checkpoint_without_the_row_of_a_shard_is_seen(void **state)
{
    (void)state;
    expect_said(&loses_shards, 20, "I1", "has no row");
}

static void a_checkpoint_of_fewer_shards_than_it_needs_is_seen(void **state)
{
    (void)state;
    expect_said(&miscounts, 20, "I1", "writers of");
}

static void a_launch_that_starts_before_all_have_restored_is_seen(void **state)
{
    (void)state;
    expect(&starts_early, 20, "I9");
}

static void a_later_error_in_place_of_the_first_is_seen(void **state)
{
    (void)state;
    expect(&forgets_first, 400, "I10");
}

static void a_verdict_that_is_not_the_rounds_is_seen(void **state)
{
    (void)state;
    expect(&lies, 50, "verdict");
}

static void a_notice_that_is_told_to_nobody_is_seen(void **state)
{
    (void)state;
    expect(&is_mute, 300, "notices");
}

static void a_notice_with_time_enough_that_ends_without_a_save_is_seen(void **state)
{
    (void)state;
    expect_said(&gives_up, 100, "notices", "nothing was saved");
}

static void a_termination_that_nobody_is_blamed_for_is_seen(void **state)
{
    (void)state;
    expect_said(&names_nobody, 100, "notices", "aborted by nobody");
}

static void a_writer_that_is_not_the_lowest_is_seen(void **state)
{
    (void)state;
    expect(&last_writes, 20, "I1");
}

static void a_rank_that_joins_a_launch_that_runs_is_seen(void **state)
{
    (void)state;
    expect(&lets_in, 200, "I9");
}

static void a_launch_that_is_ended_before_its_time_is_seen(void **state)
{
    (void)state;
    expect(&impatient, 50, "I6");
}

static void a_withdrawn_notice_that_stays_is_seen(void **state)
{
    (void)state;
    expect(&keeps_notice, 100, "I12");
}

static void a_process_that_stays_until_its_deadline_is_seen(void **state)
{
    (void)state;
    expect(&stays, 200, "I5");
}

#define BREAKS(test) cmocka_unit_test_setup(test, nothing_is_mutated)

#define BUGS_MIN 38 /* that are seen: may grow, never fall */

int main(void)
{
    const struct CMUnitTest tests[] = {
        BREAKS(a_termination_without_a_save_of_what_is_new_is_seen),
        BREAKS(a_save_that_a_deleted_checkpoint_stands_for_is_seen),
        BREAKS(a_wrong_culprit_is_seen),
        BREAKS(a_termination_that_forgets_the_steps_since_its_newest_checkpoint_is_seen),
        BREAKS(a_culprit_that_did_its_part_is_seen_in_each_kind_of_abort),
        BREAKS(a_cause_that_gets_rounds_without_end_is_seen),
        BREAKS(a_full_disk_that_is_tried_again_is_seen),
        BREAKS(a_save_that_was_promised_and_is_not_tried_again_is_seen),
        BREAKS(a_promised_save_that_a_withdrawn_notice_takes_along_is_seen),
        BREAKS(a_promised_save_is_missed_also_behind_the_saves_of_a_policy),
        BREAKS(a_promised_save_whose_last_attempt_a_notice_joined_is_missed),
        BREAKS(a_rank_that_leaves_before_the_round_that_follows_an_error_is_seen),
        BREAKS(a_round_that_outlives_its_members_is_seen),
        BREAKS(a_consequence_that_comes_with_the_second_settling_is_seen),
        BREAKS(a_process_that_was_heard_and_is_lost_is_seen),
        BREAKS(a_checkpoint_without_the_rows_of_its_files_is_seen),
        BREAKS(a_checkpoint_without_the_row_of_a_shard_is_seen),
        BREAKS(a_checkpoint_of_fewer_shards_than_it_needs_is_seen),
        BREAKS(a_launch_that_starts_before_all_have_restored_is_seen),
        BREAKS(a_later_error_in_place_of_the_first_is_seen),
        BREAKS(a_verdict_that_is_not_the_rounds_is_seen),
        BREAKS(a_notice_that_is_told_to_nobody_is_seen),
        BREAKS(a_notice_with_time_enough_that_ends_without_a_save_is_seen),
        BREAKS(a_termination_that_nobody_is_blamed_for_is_seen),
        BREAKS(a_writer_that_is_not_the_lowest_is_seen),
        BREAKS(a_rank_that_joins_a_launch_that_runs_is_seen),
        BREAKS(a_launch_that_is_ended_before_its_time_is_seen),
        BREAKS(a_withdrawn_notice_that_stays_is_seen),
        BREAKS(a_process_that_stays_until_its_deadline_is_seen),
    };

    sim_guard_aborts();
    return sim_bugs_end(cmocka_run_group_tests(tests, NULL, NULL), BUGS_MIN);
}
