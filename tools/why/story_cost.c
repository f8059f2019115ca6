/* story_cost - the end of a story: where the job resumes, and which steps that costs. */
#include "tools/restored.h"
#include "tools/why/story_internal.h"

#include "schema/limits.h"
#include "tools/tool.h"
#include "tools/written.h"

#include <stdio.h>
#include <string.h>

struct named {
    char text[PATH_BYTES_MAX + 77];
};

/* "step 8 (checkpoint 1, /checkpoints/8)", with the path of what the program wrote by itself. */
static struct named cost_name(const struct muster_checkpoint_row *checkpoint)
{
    struct written written;
    struct named named;

    snprintf(named.text, sizeof named.text, "step %" PRId64 " (checkpoint %" PRId64 ", %s)",
             checkpoint->step, checkpoint->checkpoint, written_place(checkpoint, &written));
    return named;
}

/* The steps that were computed after `resume`, as far as they are known. */
static void cost_tell_lost(struct story *story, const struct muster_generation_row *generation,
                           int64_t resume, const char *from)
{
    int64_t lost = generation->step - resume;
    bool known = generation->unknown_ranks == 0;
    char unknown[200] = "", when[sizeof(struct shown) + 48] = "";

    if (generation->unknown_unix_ms != 0)
        snprintf(when, sizeof when, " after %s, when %s last heard,",
                 story_at(story, generation->unknown_unix_ms).text,
                 generation->unknown_ranks == 1 ? "it was" : "the first of them was");
    if (generation->unknown_ranks == 1)
        snprintf(unknown, sizeof unknown, ": what the lost rank did%s is not known", when);
    else if (!known)
        snprintf(unknown, sizeof unknown, ": what the %" PRId64 " lost ranks did%s is not known",
                 generation->unknown_ranks, when);
    if (lost <= 0)
        story_say(story, "%s No step is %slost%s.", from, known ? "" : "known to be ", unknown);
    else
        story_say(story, "%s %s%" PRId64 " step%s (from step %" PRId64 " on) %s lost%s.", from,
                  known ? "" : "At least ", lost, lost == 1 ? "" : "s", resume + 1,
                  lost == 1 ? "is" : "are", unknown);
}

static void cost_tell_what_helps(struct story *story, const struct muster_generation_row *failed)
{
    if (restored_does_not_fit(failed))
        story_say(story, "The checkpoint was read, and the program could not take it: start the "
                         "program that wrote it, or mend this one. No older checkpoint is taken "
                         "for that, even with `muster run --fallback`.");
    else if (failed->fallback)
        story_say(story,
                  "`muster verify --job %s` names damaged files, to be restored from a copy; older "
                  "checkpoints were to be tried, too, and that did not help.",
                  story->job);
    else
        story_say(story,
                  "`muster verify --job %s` names damaged files, to be restored from a copy; "
                  "`muster run --fallback` (option restore_fallback) lets all ranks take the next "
                  "older checkpoint instead, and loses the steps since that.",
                  story->job);
}

/* Its own text says what to do, and nothing else helps. */
static bool cost_says_how(const struct muster_generation_row *failed)
{
    return strstr(restored_text(failed), "`muster import ") != NULL;
}

/* Of a launch that could not restore: what the next one meets, and what can be done. */
static void cost_tell_next_restore(struct story *story, const struct muster_generation_row *failed,
                                   const struct muster_checkpoint_row *latest)
{
    if (latest != NULL && !failed->fallback && latest->checkpoint != failed->resume_checkpoint) {
        story_say(story,
                  "The next launch is told another checkpoint, the newest committed one as things "
                  "stand: %s.",
                  cost_name(latest).text);
        return;
    }
    if (latest == NULL || cost_says_how(failed)) {
        story_say(story, "The next launch ends in the same way, unless that is put right.");
        return;
    }
    story_say(
        story,
        "The next launch is told to resume from the newest committed checkpoint, %s, and ends "
        "in the same way unless that can be restored then.",
        cost_name(latest).text);
    cost_tell_what_helps(story, failed);
}

/* The first launch after the story's that began, or may yet begin; NULL: there is none. */
static const struct muster_generation_row *cost_next_begun(const struct story *story)
{
    const struct muster_generation_row *generation = muster_rows_generations(story->generations);

    for (size_t i = 1; i < muster_rows_count(story->generations); i++)
        if (!restored_nothing_begun(&generation[i]))
            return &generation[i];
    return NULL;
}

static const char *story_cost_end_of(const struct muster_generation_row *generation)
{
    return generation->end_text[0] != '\0' ? generation->end_text : "its last process left";
}

/* Launches between the story's and `until` (NULL: to the last) that began no step. */
static void cost_tell_not_begun(struct story *story, const struct muster_generation_row *until)
{
    const struct muster_generation_row *first = muster_rows_generations(story->generations) + 1;
    size_t count =
        until != NULL ? (size_t)(until - first) : muster_rows_count(story->generations) - 1;
    const struct muster_generation_row *last = first + count - 1;
    const struct muster_generation_row *failed = restored_in_the_way(story->generations, count + 1);

    if (count == 0)
        return;
    if (failed == NULL || failed < first)
        failed = last;
    if (count == 1)
        story_say_text(story, story_cost_end_of(last),
                       "Generation %" PRId64 " began no step: ", last->generation);
    else if (failed == last)
        story_say_text(story, story_cost_end_of(last),
                       "Generations %" PRId64 " to %" PRId64 " began no step. The last: ",
                       first->generation, last->generation);
    else
        story_say_text(story, story_cost_end_of(failed),
                       "Generations %" PRId64 " to %" PRId64 " began no step. Generation %" PRId64
                       ": ",
                       first->generation, last->generation, failed->generation);
}

/* The launch that could not restore and is not made good since; one before the story's is told of.
 * NULL: none. */
static const struct muster_generation_row *cost_still_unrestored(struct story *story)
{
    const struct muster_generation_row *failed =
        restored_in_the_way(story->generations, muster_rows_count(story->generations));

    if (failed != NULL || !restored_nothing_begun(muster_rows_generations(story->generations)))
        return failed;
    failed = restored_in_the_way(story->before, muster_rows_count(story->before));
    if (failed != NULL)
        story_say_text(story, restored_text(failed),
                       "Generation %" PRId64 " could not restore, and no step was begun since: ",
                       failed->generation);
    return failed;
}

static void cost_tell_resumed(struct story *story, const struct muster_generation_row *generation,
                              const struct muster_generation_row *next)
{
    char from[192];

    if (next->opened_unix_ms == 0) { /* it was ahead of a copy of the database, or found on disk */
        story_say(story,
                  "Where generation %" PRId64
                  " resumed is not known: its opening is not in this database.",
                  next->generation);
        return;
    }
    if (next->resume_checkpoint != 0)
        snprintf(from, sizeof from,
                 "Generation %" PRId64 " resumed at step %" PRId64 ", from checkpoint %" PRId64 ".",
                 next->generation, next->resume_step, next->resume_checkpoint);
    else
        snprintf(from, sizeof from,
                 "Generation %" PRId64
                 " began from the start, for there was no committed checkpoint.",
                 next->generation);
    cost_tell_lost(story, generation, next->resume_step, from);
}

/* Everybody is to leave; a withdrawal counts only while no round is open. */
static bool cost_is_being_ended(const struct story *story)
{
    const struct muster_round_row *last = story_last_round(story);

    return last != NULL && strcmp(last->cause, "termination") == 0 &&
           (strcmp(last->state, "aborted") != 0 || !story_all_withdrawn(story));
}

static bool story_cost_is_awaited(const struct muster_participant_row *member,
                                  const char *round_state)
{
    if (strcmp(round_state, "freezing") == 0)
        return member->reported_ms < 0;
    return member->captured_ms < 0 || (member->writer && member->saved_ms < 0);
}

static void cost_tell_being_ended(struct story *story)
{
    const struct muster_round_row *last = story_last_round(story);
    const muster_rows_t *members = story->participants[muster_rows_count(story->rounds) - 1];
    const struct muster_participant_row *member = muster_rows_participants(members);
    char whom[128] = "", until[sizeof(struct shown) + 32] = "";
    int shown = 0;

    if (strcmp(last->state, "aborted") == 0) {
        story_say(story, "The job is being ended: the save is tried again, then all ranks leave.");
        return;
    }
    for (size_t i = 0; i < muster_rows_count(members) && shown <= 8; i++) {
        size_t length = strlen(whom);

        if (!story_cost_is_awaited(&member[i], last->state))
            continue;
        if (shown++ == 8)
            snprintf(whom + length, sizeof whom - length, ", ...");
        else
            snprintf(whom + length, sizeof whom - length, "%s %" PRId64, shown == 1 ? " rank" : ",",
                     member[i].rank);
    }
    if (last->deadline_unix_ms - MARGIN_MS > story->now_unix_ms)
        snprintf(until, sizeof until, ", until %s at the latest",
                 story_at(story, last->deadline_unix_ms - MARGIN_MS).text);
    if (shown > 0)
        story_say(story, "The job is being ended: it waits for%s%s, then all ranks leave.", whom,
                  until);
    else
        story_say(story, "The job is being ended: all ranks leave.");
}

/* A notice of which this story does not tell may end the job soon. */
static void cost_tell_others_stand(struct story *story)
{
    const struct muster_notice_row *notice = muster_rows_notices(story->notices);
    const char *first = NULL;
    size_t count = 0, told = 0;

    for (size_t i = 0; i < muster_rows_count(story->notices); i++) {
        if (strcmp(notice[i].state, "active") != 0 || !render_ends(notice[i].kind))
            continue;
        if (story_has_notice(story, &notice[i])) {
            told++;
            continue;
        }
        first = first == NULL ? notice[i].id : first;
        count++;
    }
    if (count == 1)
        story_say(story,
                  "%s notice stands that its end is near: `muster why notice %s --job %s` "
                  "tells of it.",
                  told > 0 ? "Another" : "A", first, story->job);
    else if (count > 1)
        story_say(story,
                  "%zu %snotices stand that its end is near: `muster why notice %s --job %s` "
                  "tells of the first.",
                  count, told > 0 ? "other " : "", first, story->job);
}

/* A checkpoint that some rank could not restore was given up by all. Only their own logs told them
 * so. */
void story_fell_back(struct story *story, const struct muster_event_row *told)
{
    const struct muster_generation_row *generation = muster_rows_generations(story->generations);
    const struct muster_event_row *event = muster_rows_events(story->incidents);
    const struct muster_event_row *last = NULL;
    int64_t newest = -1;

    for (size_t i = 0; i < muster_rows_count(story->incidents); i++) {
        if (strcmp(event[i].kind, "restore failed") != 0)
            continue;
        last = &event[i];
        newest = event[i].step > newest ? event[i].step : newest;
    }
    if (story->fell_back_told || last == NULL || (told != NULL && told != last) ||
        generation == NULL || generation->started_unix_ms == 0 ||
        generation->resume_checkpoint == 0)
        return;
    story->fell_back_told = true;
    story_say(story,
              "All ranks took an older checkpoint: generation %" PRId64 " resumed at step %" PRId64
              ", from checkpoint %" PRId64 ".",
              generation->generation, generation->resume_step, generation->resume_checkpoint);
    if (newest > generation->resume_step)
        story_say(story, "By that %" PRId64 " step%s (%" PRId64 " to %" PRId64 ") %s lost.",
                  newest - generation->resume_step,
                  newest - generation->resume_step == 1 ? "" : "s", generation->resume_step + 1,
                  newest, newest - generation->resume_step == 1 ? "is" : "are");
}

/* As `muster status` has it. Of an imported launch nobody knows whether it started. */
static bool story_cost_has_finished(const struct muster_generation_row *generation)
{
    return strcmp(generation->state, "ended") == 0 && generation->end_status == MUSTER_OK &&
           generation->started_unix_ms > 0;
}

/* Nothing is to go on: what is saved of it, and what is not. */
static void cost_tell_finished(struct story *story, const struct muster_generation_row *generation,
                               const struct muster_checkpoint_row *latest)
{
    char from[1400];

    if (latest == NULL) {
        story_say(story, "The job has finished, and has no committed checkpoint.");
        return;
    }
    snprintf(from, sizeof from, "The job has finished. Its newest committed checkpoint is %s",
             cost_name(latest).text);
    if (latest->step < generation->step)
        story_say(story, "%s: what came after it, up to step %" PRId64 ", is in no checkpoint.",
                  from, generation->step);
    else
        story_say(story, "%s.", from);
}

struct from {
    char text[1400];
};

static struct from cost_resumes_from(const struct muster_checkpoint_row *latest)
{
    struct from from = {"There is no committed checkpoint: the job will start from the beginning."};

    if (latest != NULL)
        snprintf(from.text, sizeof from.text,
                 "The job will resume from the newest committed checkpoint, %s.",
                 cost_name(latest).text);
    return from;
}

static void cost_tell_goes_on(struct story *story, const struct muster_checkpoint_row *latest)
{
    const char *on = story_trains_on(story).text;

    if (story_is_stuck(story) && latest == NULL)
        story_say(story, "There is no committed checkpoint yet.");
    else if (story_is_stuck(story))
        story_say(story, "The job's newest committed checkpoint is %s.", cost_name(latest).text);
    else if (latest == NULL)
        story_say(story, "There is no committed checkpoint yet; %c%s.", on[0] | 0x20, on + 1);
    else
        story_say(story, "%s; %s newest committed checkpoint is %s.", on,
                  on[0] == 'T' ? "its" : "the job's", cost_name(latest).text);
}

void story_cost(struct story *story)
{
    const struct muster_generation_row *generation = muster_rows_generations(story->generations);
    const struct muster_generation_row *next = cost_next_begun(story);
    const struct muster_generation_row *failed;
    const struct muster_checkpoint_row *latest = muster_rows_checkpoints(story->latest);
    bool ends;

    if (generation == NULL)
        return;
    story_fell_back(story, NULL);
    ends = strcmp(generation->state, "ending") == 0 || strcmp(generation->state, "ended") == 0;
    cost_tell_not_begun(story, next);
    failed = next == NULL ? cost_still_unrestored(story) : NULL;
    if (failed != NULL) {
        cost_tell_next_restore(story, failed, latest);
        return;
    }
    if (next != NULL) {
        cost_tell_resumed(story, generation, next);
        return;
    }
    story_stuck(story);
    if (!ends && cost_is_being_ended(story)) {
        cost_tell_being_ended(story);
        return;
    }
    if (story_cost_has_finished(generation)) {
        cost_tell_finished(story, generation, latest);
        return;
    }
    if (ends) {
        if (tool_end_is_unheard(generation->end_text, generation->unknown_ranks))
            story_say(story, "Whether the job finished while no broker ran is not known here: "
                             "`muster run` said it where it was started. If it did not finish:");
        cost_tell_lost(story, generation, latest == NULL ? 0 : latest->step,
                       cost_resumes_from(latest).text);
    } else {
        cost_tell_goes_on(story, latest);
        cost_tell_others_stand(story);
    }
}
