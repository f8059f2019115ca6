/* story_round - one round in sentences: who was asked, what they answered, what came of it. */
#include "tools/why/story_internal.h"

#include "schema/error.h"
#include "tools/written.h"

#define CLOCKS_DIFFER_MS 2
#define NAMED_MAX 4 /* ranks named in one sentence; of more, the count */

struct part {
    const struct muster_round_row *round;
    const struct muster_participant_row *members;
    size_t count;
    bool again; /* another round was its first attempt */
};

/* Which members lack something. */
typedef bool lacks_fn(const struct muster_participant_row *member);

static bool story_round_lacks_report(const struct muster_participant_row *member)
{
    return member->reported_ms < 0;
}
static bool story_round_lacks_capture(const struct muster_participant_row *member)
{
    return member->captured_ms < 0 && member->saved_ms < 0;
}
static bool story_round_lacks_save(const struct muster_participant_row *member)
{
    return member->writer && member->saved_ms < 0;
}

static size_t story_round_count_of(const struct part *part, lacks_fn *lacks)
{
    size_t count = 0;

    for (size_t i = 0; i < part->count; i++)
        count += lacks(&part->members[i]);
    return count;
}

struct names {
    char text[1400];
};

/* "rank 1 (host a, pid 7), rank 3 (host b, pid 8) and 5 more" */
static struct names story_round_name_them(const struct part *part, lacks_fn *lacks)
{
    struct names names = {""};
    size_t all = story_round_count_of(part, lacks);
    size_t named = 0;
    size_t used = 0;

    for (size_t i = 0; i < part->count && named < NAMED_MAX; i++) {
        const struct muster_participant_row *member = &part->members[i];
        const char *before = ", ";

        if (!lacks(member))
            continue;
        if (named == 0)
            before = "";
        else if (named + 1 == all)
            before = " and ";
        used += (size_t)snprintf(names.text + used, sizeof names.text - used, "%s%s", before,
                                 story_who(member->rank, member->host, member->pid).text);
        named++;
    }
    if (named < all)
        snprintf(names.text + used, sizeof names.text - used, " and %zu more", all - named);
    return names;
}

/* The member with the greatest value at that offset of its row; NULL if all are negative. */
static const struct muster_participant_row *story_round_greatest(const struct part *part,
                                                                 size_t offset)
{
    const struct muster_participant_row *found = NULL;
    int64_t most = -1;

    for (size_t i = 0; i < part->count; i++) {
        int64_t value;

        memcpy(&value, (const char *)&part->members[i] + offset, sizeof value);
        if (value > most) {
            most = value;
            found = &part->members[i];
        }
    }
    return found;
}
#define GREATEST(part, member) \
    story_round_greatest(part, offsetof(struct muster_participant_row, member))

static int64_t story_round_least_begun(const struct part *part)
{
    int64_t least = INT64_MAX;

    for (size_t i = 0; i < part->count; i++)
        if (part->members[i].reported_ms >= 0 && part->members[i].begun < least)
            least = part->members[i].begun;
    return least;
}

static struct shown story_round_after(const struct part *part, int64_t unix_ms)
{
    return render_duration(unix_ms == 0 ? -1 : unix_ms - part->round->opened_unix_ms);
}

/* The same for what cannot have come before floor_ms: the members count on another clock than the
 * round's times, so both may differ by a rounding. */
static struct shown story_round_after_not_before(const struct part *part, int64_t unix_ms,
                                                 int64_t floor_ms)
{
    int64_t ms = unix_ms - part->round->opened_unix_ms;

    if (unix_ms != 0 && ms < floor_ms && floor_ms - ms <= CLOCKS_DIFFER_MS)
        return render_duration(floor_ms);
    return story_round_after(part, unix_ms);
}

static struct shown story_round_decided_after(const struct part *part)
{
    const struct muster_participant_row *slowest = GREATEST(part, reported_ms);

    return story_round_after_not_before(part, part->round->decided_unix_ms,
                                        slowest == NULL ? -1 : slowest->reported_ms);
}

static struct shown story_round_committed_after(const struct part *part)
{
    const struct muster_participant_row *captured = GREATEST(part, captured_ms);
    const struct muster_participant_row *saved = GREATEST(part, saved_ms);
    int64_t floor_ms = captured == NULL ? -1 : captured->captured_ms;

    if (saved != NULL && saved->saved_ms > floor_ms)
        floor_ms = saved->saved_ms;
    return story_round_after_not_before(part, part->round->ended_unix_ms, floor_ms);
}

static const char *story_round_plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

/* --- asking and answering --------------------------------------------------------------------- */

/* Former brokers did not keep why a round was opened: its plan was that of a notice that came
 * later. */
static bool story_round_is_of_later_notice(const struct story *story,
                                           const struct muster_round_row *round)
{
    const struct muster_notice_row *notice = muster_rows_notices(story->notices);

    for (size_t i = 0; i < muster_rows_count(story->notices); i++)
        if (notice[i].round == round->round && notice[i].received_unix_ms > round->opened_unix_ms &&
            strstr(round->plan, notice[i].id) != NULL)
            return true;
    return false;
}

static void story_round_tell_opening(struct story *story, const struct part *part)
{
    const struct muster_round_row *round = part->round;
    struct shown time = story_at(story, round->opened_unix_ms);

    if (GREATEST(part, reported_ms) == NULL && round->step >= 0 && round->decided_unix_ms != 0 &&
        round->decided_unix_ms == round->opened_unix_ms)
        story_say(story,
                  "At %s round %" PRId64 " was opened with save step %" PRId64
                  " for %zu rank%s, without a freeze.",
                  time.text, round->round, round->step, part->count,
                  story_round_plural((int64_t)part->count));
    else if (part->count == 0)
        story_say(story, "At %s round %" PRId64 " was opened, and no rank was there to be frozen.",
                  time.text, round->round);
    else
        story_say(story, "At %s round %" PRId64 "%s froze %zu rank%s%s.", time.text, round->round,
                  part->again ? ", the next attempt," : "", part->count,
                  story_round_plural((int64_t)part->count),
                  round->aborted_steps ? " and asked them to break off the step they were in" : "");
    if (round->plan[0] == '\0' || part->again || part->count == 0)
        return;
    if (story_round_is_of_later_notice(story, round))
        story_say(story, "That was before the notice came, which then joined it.");
    else
        story_say_text(story, round->plan, "The freeze was to come ");
}

static void story_round_tell_reports(struct story *story, const struct part *part)
{
    const struct muster_participant_row *slowest = GREATEST(part, reported_ms);
    const struct muster_participant_row *furthest = GREATEST(part, begun);
    size_t missing = story_round_count_of(part, story_round_lacks_report);
    bool one = part->count == 1;
    char steps[96];

    if (slowest == NULL || furthest == NULL) {
        if (part->round->step < 0 && part->count > 0)
            story_say(story, "None of them reported.");
        return;
    }
    if (story_round_least_begun(part) == furthest->begun)
        snprintf(steps, sizeof steps, "%s begun step %" PRId64, one ? "It had" : "They had all",
                 furthest->begun);
    else
        snprintf(steps, sizeof steps, "They had begun steps %" PRId64 " to %" PRId64,
                 story_round_least_begun(part), furthest->begun);
    if (missing == 0)
        story_say(story, "%s reported within %s. %s.", one ? "It" : "All of them",
                  render_duration(slowest->reported_ms).text, steps);
    else
        story_say(story, "%zu of %zu reported within %s; %s did not. %s.", part->count - missing,
                  part->count, render_duration(slowest->reported_ms).text,
                  story_round_name_them(part, story_round_lacks_report).text, steps);
}

static void story_round_tell_decision(struct story *story, const struct part *part)
{
    const struct muster_round_row *round = part->round;
    const struct muster_participant_row *furthest = GREATEST(part, begun);

    if (round->decided_unix_ms == 0 || furthest == NULL)
        return;
    if (round->aborted_steps)
        story_say(story, "All stood at step %" PRId64 ", which became the save step after %s.",
                  round->step, story_round_decided_after(part).text);
    else if (furthest->begun == round->step && story_round_least_begun(part) == round->step)
        story_say(story, "So all had to save at step %" PRId64 "; that was agreed after %s.",
                  round->step, story_round_decided_after(part).text);
    else if (furthest->begun == round->step)
        story_say(story,
                  "The furthest, rank %" PRId64 ", had begun step %" PRId64
                  ", so all had to save at step %" PRId64 "; that was agreed after %s.",
                  furthest->rank, round->step, round->step, story_round_decided_after(part).text);
    else
        story_say(story, "Save step %" PRId64 " was agreed after %s.", round->step,
                  story_round_decided_after(part).text);
}

/* --- saving ----------------------------------------------------------------------------------- */

static void story_round_tell_captures(struct story *story, const struct part *part)
{
    const struct muster_participant_row *last = GREATEST(part, captured_ms);
    size_t missing = story_round_count_of(part, story_round_lacks_capture);
    int64_t opened = part->round->opened_unix_ms;

    if (part->round->step < 0 || part->round->decided_unix_ms == 0)
        return;
    if (last == NULL)
        story_say(story, "None of them captured its state at step %" PRId64 ".", part->round->step);
    else if (missing == 0 && story_broker_was_away(story, opened, opened + last->captured_ms))
        story_say(story,
                  "%s captured %s state at step %" PRId64
                  "; the broker had heard of that within %s, from rank %" PRId64 " last.",
                  part->count == 1 ? "It" : "All", part->count == 1 ? "its" : "their",
                  part->round->step, render_duration(last->captured_ms).text, last->rank);
    else if (missing == 0)
        story_say(story,
                  "%s captured %s state at step %" PRId64 " within %s; the last was rank %" PRId64
                  ".",
                  part->count == 1 ? "It" : "All", part->count == 1 ? "its" : "their",
                  part->round->step, render_duration(last->captured_ms).text, last->rank);
    else if (strcmp(part->round->state, "committed") == 0)
        story_say(story,
                  "%zu of %zu captured their state at step %" PRId64
                  ": that is the whole state, as any rank's shard holds it in a replicated job; "
                  "%s did not, and nobody waited.",
                  part->count - missing, part->count, part->round->step,
                  story_round_name_them(part, story_round_lacks_capture).text);
    else
        story_say(story, "%zu of %zu captured their state at step %" PRId64 "; %s did not.",
                  part->count - missing, part->count, part->round->step,
                  story_round_name_them(part, story_round_lacks_capture).text);
}

static void story_round_tell_saves(struct story *story, const struct part *part)
{
    const struct muster_round_row *round = part->round;
    const struct muster_participant_row *slowest = GREATEST(part, save_ms);
    size_t missing = story_round_count_of(part, story_round_lacks_save);

    for (size_t i = 0; i < part->count; i++)
        if (part->members[i].failed[0] != '\0')
            story_say_text(
                story, part->members[i].failed, "The save of %s failed: ",
                story_who(part->members[i].rank, part->members[i].host, part->members[i].pid).text);
    if (round->writers == 0 || round->decided_unix_ms == 0)
        return;
    if (round->writers == 1 && missing == 0 && slowest != NULL)
        story_say(story, "The one shard was saved by rank %" PRId64 " in %s.", slowest->rank,
                  render_duration(slowest->save_ms).text);
    else if (round->saved == 0)
        story_say(story, "None of %" PRId64 " shard%s was saved.", round->writers,
                  story_round_plural(round->writers));
    else if (missing == 0 && slowest != NULL)
        story_say(story,
                  "All %" PRId64 " shards were saved; the slowest save was rank %" PRId64
                  "'s with %s.",
                  round->writers, slowest->rank, render_duration(slowest->save_ms).text);
    else
        story_say(story, "%" PRId64 " of %" PRId64 " shards were saved; %s did not save.",
                  round->saved, round->writers,
                  story_round_name_them(part, story_round_lacks_save).text);
}

/* --- the end ---------------------------------------------------------------------------------- */

static void story_round_tell_commit(struct story *story, const struct part *part)
{
    const struct muster_checkpoint_row *checkpoint = muster_rows_checkpoints(story->checkpoint);
    const struct muster_round_row *round = part->round;
    struct written written;
    char margin[96] = "";

    if (round->margin_ms >= 0)
        snprintf(margin, sizeof margin, ", %s before the deadline",
                 render_duration(round->margin_ms).text);
    if (checkpoint != NULL && checkpoint->checkpoint == round->round &&
        written_find(checkpoint->custom, &written))
        story_say(story,
                  "Checkpoint %" PRId64 " at step %" PRId64
                  " was committed after %s%s. The program's own files (%s) are in %s",
                  round->round, round->step, story_round_committed_after(part).text, margin,
                  render_bytes(written.bytes).text, written.path);
    else if (checkpoint != NULL && checkpoint->checkpoint == round->round)
        story_say(story,
                  "Checkpoint %" PRId64 " at step %" PRId64 " (%s) was committed after %s%s: %s",
                  round->round, round->step, render_bytes(checkpoint->bytes).text,
                  story_round_committed_after(part).text, margin, checkpoint->path);
    else
        story_say(story, "Checkpoint %" PRId64 " at step %" PRId64 " was committed after %s%s.",
                  round->round, round->step, story_round_committed_after(part).text, margin);
}

static void story_round_tell_abort(struct story *story, const struct part *part, bool followed)
{
    const struct muster_round_row *round = part->round;
    const char *reason = round->reason;
    struct shown time = story_round_after(part, round->ended_unix_ms);

    if (reason[0] == '\0')
        reason = muster_status_sentence((enum muster_status)round->reason_code);
    if (round->culprit_rank >= 0 &&
        strncmp(reason, ERROR_SAYS_NOTICE_LEFT, strlen(ERROR_SAYS_NOTICE_LEFT)) != 0)
        story_say_text(story, reason,
                       "Round %" PRId64 " was aborted after %s because of %s: ", round->round,
                       time.text, story_member(story, round->culprit_rank).text);
    else
        story_say_text(story, reason, "Round %" PRId64 " was aborted after %s: ", round->round,
                       time.text);
    if (round->reason_code == MUSTER_E_STORAGE && round->culprit_rank >= 0 && round->final &&
        (strcmp(round->cause, "operator") == 0 || strcmp(round->cause, "termination") == 0))
        story_say(story, "It was not tried again: other failures are, but a full disk stays full.");
    if (round->final || followed || story_is_over(story))
        return;
    if (story_all_withdrawn(story))
        story_say(story, "No other attempt follows, for nobody asks for it any more.");
    else
        story_say(story, "Another attempt is still wanted.");
}

void story_round(struct story *story, size_t index)
{
    const struct muster_rows *members = story->participants[index];
    struct part part = {.round = &muster_rows_rounds(story->rounds)[index],
                        .members = muster_rows_participants(members),
                        .count = muster_rows_count(members),
                        .again = index > 0 || muster_rows_rounds(story->rounds)[index].attempt > 1};
    const char *state = part.round->state;

    if (strcmp(part.round->reason, "found on disk") ==
        0) { /* with members: what became of it was forgotten */
        story_say(story,
                  "Round %" PRId64 " was found on disk by `muster import`: its checkpoint at step "
                  "%" PRId64 " is whole, and how it came about is not known any more.",
                  part.round->round, part.round->step);
        return;
    }
    story_round_tell_opening(story, &part);
    story_round_tell_reports(story, &part);
    if (strcmp(state, "unchanged") == 0) {
        story_broker(story, part.round);
        story_say_text(story, part.round->reason,
                       "Round %" PRId64 " ended unchanged at step %" PRId64
                       " after %s, without a new save: ",
                       part.round->round, part.round->step,
                       story_round_after(&part, part.round->ended_unix_ms).text);
        return;
    }
    story_round_tell_decision(story, &part);
    story_round_tell_captures(story, &part);
    story_round_tell_saves(story, &part);
    story_broker(story, part.round);
    if (strcmp(state, "committed") == 0)
        story_round_tell_commit(story, &part);
    else if (strcmp(state, "aborted") == 0)
        story_round_tell_abort(story, &part, index + 1 < muster_rows_count(story->rounds));
    else
        story_say(story, "It is still %s, after %s.", state,
                  render_duration(story->now_unix_ms - part.round->opened_unix_ms).text);
}
