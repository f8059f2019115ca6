/* story - the frame of a story: what asked for the save, what happened meanwhile, what it cost. */
#include "tools/why/story_internal.h"

#include "schema/limits.h"
#include "tools/tool.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* --- sentences -------------------------------------------------------------------------------- */

static void story_add_line(struct story *story, char *line) /* takes */
{
    char **lines = line == NULL
                       ? NULL
                       : realloc(story->lines, (story->lines_count + 1) * sizeof *story->lines);

    if (lines == NULL) {
        free(line);
        story->broken = true;
        return;
    }
    for (char *at = line; *at != '\0'; at++)
        if (*at == '\n' || *at == '\t')
            *at = ' ';
    story->lines = lines;
    story->lines[story->lines_count++] = line;
}

void story_say(struct story *story, const char *format, ...)
{
    char *line = NULL;
    va_list list;

    va_start(list, format);
    if (vasprintf(&line, format, list) < 0)
        line = NULL;
    va_end(list);
    story_add_line(story, line);
}

void story_say_text(struct story *story, const char *text, const char *format, ...)
{
    size_t length = strlen(text);
    int end = length == 0 ? '.' : text[length - 1];
    char *line = NULL;
    char *whole = NULL;
    va_list list;

    va_start(list, format);
    if (vasprintf(&line, format, list) < 0)
        line = NULL;
    va_end(list);
    if (length == 0)
        text = "no reason was given.";
    if (line == NULL ||
        asprintf(&whole, "%s%s%s", line, text, strchr(".!?", end) == NULL ? "." : "") < 0)
        whole = NULL;
    free(line);
    story_add_line(story, whole);
}

static void story_pause_line(struct story *story) /* between paragraphs, never two */
{
    if (story->lines_count > 0 && story->lines[story->lines_count - 1][0] != '\0')
        story_say(story, "%s", "");
}

struct who story_who(int64_t rank, const char *host, int64_t pid)
{
    struct who who;

    if (host[0] == '\0')
        snprintf(who.text, sizeof who.text, "rank %" PRId64, rank);
    else
        snprintf(who.text, sizeof who.text, "rank %" PRId64 " (host %s, pid %" PRId64 ")", rank,
                 host, pid);
    return who;
}

struct who story_member(const struct story *story, int64_t rank)
{
    for (size_t i = 0; i < muster_rows_count(story->rounds); i++) {
        const struct muster_participant_row *member =
            muster_rows_participants(story->participants[i]);

        for (size_t k = 0; k < muster_rows_count(story->participants[i]); k++)
            if (member[k].rank == rank)
                return story_who(rank, member[k].host, member[k].pid);
    }
    return story_who(rank, "", 0);
}

struct shown story_at(const struct story *story, int64_t unix_ms)
{
    return render_clock(unix_ms, story->now_unix_ms);
}

const struct muster_round_row *story_last_round(const struct story *story)
{
    size_t count = muster_rows_count(story->rounds);

    return count == 0 ? NULL : &muster_rows_rounds(story->rounds)[count - 1];
}

/* --- what asked for it ------------------------------------------------------------------------ */

bool story_has_notice(const struct story *story, const struct muster_notice_row *notice)
{
    const struct muster_round_row *first = muster_rows_rounds(story->rounds);
    const struct muster_round_row *last = story_last_round(story);

    if (story->notice_id != NULL && strcmp(notice->id, story->notice_id) == 0)
        return true;
    return last != NULL && notice->generation == last->generation &&
           notice->round >= first->round && notice->round <= last->round;
}

bool story_all_withdrawn(const struct story *story)
{
    const struct muster_notice_row *notice = muster_rows_notices(story->notices);
    bool any = false;

    for (size_t i = 0; i < muster_rows_count(story->notices); i++) {
        if (!story_has_notice(story, &notice[i]))
            continue;
        if (strcmp(notice[i].state, "cancelled") != 0)
            return false;
        any = true;
    }
    return any;
}

static const struct muster_event_row *story_find_incident(const struct story *story,
                                                          const char *kind, const char *text)
{
    const struct muster_event_row *event = muster_rows_events(story->incidents);

    for (size_t i = 0; i < muster_rows_count(story->incidents); i++)
        if (strcmp(event[i].kind, kind) == 0 && (text == NULL || strcmp(event[i].text, text) == 0))
            return &event[i];
    return NULL;
}

#define ORDERED_BY_MAX 440

/* " (key ann at 10.0.0.7)": who gave that order, if the journal tells. round: 0 = whichever. */
static void story_ordered_by(const struct story *story, const char *order, int64_t round,
                             char ret[ORDERED_BY_MAX])
{
    const struct muster_event_row *event = muster_rows_events(story->incidents);

    ret[0] = '\0';
    for (size_t i = 0; i < muster_rows_count(story->incidents); i++) {
        const char *words = strstr(event[i].text, ": ");

        if (strcmp(event[i].kind, "order") == 0 && words != NULL && strcmp(words + 2, order) == 0 &&
            (round == 0 || event[i].round == round))
            snprintf(ret, ORDERED_BY_MAX, " (%.*s)", (int)(words - event[i].text), event[i].text);
    }
}

/* Was the withdrawal too late? In time it is between two attempts, when the job trains on. */
static bool story_is_refused(const struct story *story, const struct muster_notice_row *notice,
                             const struct muster_event_row *event)
{
    const struct muster_round_row *last = story_last_round(story);
    bool aborted = last != NULL && strcmp(last->state, "aborted") == 0;

    if (notice->round == 0)
        return false;
    return !aborted || last->ended_unix_ms == 0 ||
           (event != NULL && event->unix_ms < last->ended_unix_ms);
}

/* "an operator (key ann at 10.0.0.7)", or the notice's source. */
static void story_source(const struct story *story, const struct muster_notice_row *notice,
                         char ret[ORDERED_BY_MAX + 16])
{
    char order[ORDERED_BY_MAX], by[ORDERED_BY_MAX];

    snprintf(order, sizeof order, "notify rank %" PRId64 ", notice %s", notice->rank, notice->id);
    story_ordered_by(story, order, 0, by);
    if (notice->by_operator)
        snprintf(ret, ORDERED_BY_MAX + 16, "an operator%s", by);
    else
        snprintf(ret, ORDERED_BY_MAX + 16, "%s", notice->source);
}

static void story_tell_notice(struct story *story, const struct muster_notice_row *notice)
{
    struct shown time = story_at(story, notice->received_unix_ms);
    struct who who = story_who(notice->rank, notice->host, notice->pid);
    char order[ORDERED_BY_MAX], by[ORDERED_BY_MAX], source[ORDERED_BY_MAX + 16];
    const char *fate = render_fate(notice->kind);
    bool withdrawn = strcmp(notice->state, "cancelled") == 0;
    const struct muster_event_row *event =
        story_find_incident(story, "notice cancelled", notice->id);
    char when[sizeof(struct shown) + 8] = "";

    struct shown left = render_duration(notice->left_ms < 0 ? GRACE_DEFAULT_MS : notice->left_ms);

    story_source(story, notice, source);
    if (strcmp(notice->left_from, "grace_period_ms") == 0)
        story_say(story,
                  "At %s %s was told by %s that it %s; the job's grace_period_ms gives "
                  "it %s (notice %s, %s).",
                  time.text, who.text, source, fate, left.text, notice->id, notice->kind);
    else if (strcmp(notice->left_from, "told") == 0)
        story_say(story, "At %s %s was told by %s that it %s, with %s left (notice %s, %s).",
                  time.text, who.text, source, fate, left.text, notice->id, notice->kind);
    else
        story_say(story,
                  "At %s %s%s was told by %s that it %s, at a time that is not known: %s are "
                  "assumed%s (notice %s, %s).",
                  time.text, notice->by_operator ? "" : "the broker heard that ", who.text, source,
                  fate, left.text, notice->by_operator ? "" : " to be left", notice->id,
                  notice->kind);
    if (notice->text[0] != '\0')
        story_say_text(story, notice->text, "The notice says: ");
    snprintf(order, sizeof order, "cancel notice %s", notice->id);
    story_ordered_by(story, order, 0, by);
    if (withdrawn && event != NULL)
        snprintf(when, sizeof when, " at %s", story_at(story, event->unix_ms).text);
    if (withdrawn && event != NULL && tool_notice_fell(story->nodes, event))
        story_say(story, "The notice lapsed%s, because rank %" PRId64 " had finished.", when,
                  notice->rank);
    else if (withdrawn && story_is_refused(story, notice, event))
        story_say(story,
                  "It was to be withdrawn%s, which was too late: round %" PRId64
                  " had been opened for it, and a round that has begun is not stopped by that.",
                  when, notice->round);
    else if (withdrawn)
        story_say(story, "It was withdrawn%s%s.", when, by);
}

static void story_tell_cause(struct story *story)
{
    const struct muster_round_row *first = muster_rows_rounds(story->rounds);
    const struct muster_round_row *last = story_last_round(story);
    char by[ORDERED_BY_MAX] = "";
    const struct muster_notice_row *notice = muster_rows_notices(story->notices);
    size_t told = 0;

    for (size_t i = 0; i < muster_rows_count(story->notices); i++)
        if (story_has_notice(story, &notice[i])) {
            story_tell_notice(story, &notice[i]);
            told++;
        }
    if (last == NULL || told > 0 || strcmp(last->reason, "found on disk") == 0)
        return;
    story_ordered_by(story, "save", first->round, by);
    if (strcmp(last->cause, "operator") == 0)
        story_say(story, "An operator%s asked for a checkpoint.", by);
    else if (strcmp(last->cause, "policy") == 0)
        story_say(story, "The ranks asked for a checkpoint at a step of their own.");
    else
        story_say(story, "The cause of the save was: %s.", last->cause);
}

/* --- what befell meanwhile -------------------------------------------------------------------- */

static int64_t story_begins_unix_ms(const struct story *story)
{
    const struct muster_round_row *first = muster_rows_rounds(story->rounds);
    const struct muster_notice_row *notice = muster_rows_notices(story->notices);
    int64_t begins = first == NULL ? INT64_MAX : first->opened_unix_ms;

    for (size_t i = 0; i < muster_rows_count(story->notices); i++)
        if (story_has_notice(story, &notice[i]) && notice[i].received_unix_ms < begins)
            begins = notice[i].received_unix_ms;
    return begins;
}

/* A save, a notice and its withdrawal have sentences of their own, with who ordered them. */
static bool story_is_told_elsewhere(const struct muster_event_row *event)
{
    const char *words = strcmp(event->kind, "order") == 0 ? strstr(event->text, ": ") : NULL;

    return strcmp(event->kind, "notice cancelled") == 0 ||
           (words != NULL &&
            (strncmp(words, ": save", 6) == 0 || strncmp(words, ": notify ", 9) == 0 ||
             strncmp(words, ": cancel ", 9) == 0));
}

static const char *story_shown_kind(const struct muster_event_row *event)
{
    return strcmp(event->kind, "peer error") == 0 ? "a step failed" : event->kind;
}

/* An incident of the broker itself: it is in no job's journal, because it affects all jobs. */
static bool story_is_of_broker(const struct muster_event_row *event)
{
    return strncmp(event->kind, "broker ", 7) == 0;
}

static bool story_is_within(const struct muster_event_row *event,
                            const struct muster_round_row *round)
{
    return event->unix_ms >= round->opened_unix_ms &&
           (round->ended_unix_ms == 0 || event->unix_ms <= round->ended_unix_ms);
}

static void story_tell_broker(struct story *story, const struct muster_event_row *event,
                              const struct muster_round_row *round)
{
    struct shown time = story_at(story, event->unix_ms);
    bool put_back = event->text[0] != '\0';

    if (strcmp(event->kind, "broker started") != 0)
        story_say_text(story, event->text, "At %s the broker was held up: ", time.text);
    else if (put_back)
        story_say_text(story, event->text, "At %s the broker was restarted, and ", time.text);
    else if (round != NULL && round->decided_unix_ms != 0 &&
             round->decided_unix_ms <= event->unix_ms)
        story_say(story,
                  "At %s the broker was restarted; it went on with round %" PRId64
                  " at step %" PRId64 ", which had been decided.",
                  time.text, round->round, round->step);
    else
        story_say(story, "At %s the broker was restarted.", time.text);
}

bool story_broker_was_away(const struct story *story, int64_t from_unix_ms, int64_t until_unix_ms)
{
    const struct muster_event_row *event = muster_rows_events(story->incidents);

    for (size_t i = 0; i < muster_rows_count(story->incidents); i++)
        if (story_is_of_broker(&event[i]) && event[i].unix_ms >= from_unix_ms &&
            event[i].unix_ms <= until_unix_ms)
            return true;
    return false;
}

void story_broker(struct story *story, const struct muster_round_row *round)
{
    const struct muster_event_row *event = muster_rows_events(story->incidents);

    for (size_t i = 0; i < muster_rows_count(story->incidents); i++)
        if (story_is_of_broker(&event[i]) && story_is_within(&event[i], round))
            story_tell_broker(story, &event[i], round);
}

static bool story_is_in_a_round(const struct story *story, const struct muster_event_row *event)
{
    const struct muster_round_row *round = muster_rows_rounds(story->rounds);

    for (size_t i = 0; i < muster_rows_count(story->rounds); i++)
        if (story_is_within(event, &round[i]))
            return true;
    return false;
}

/* The words of a failure are not said twice. */
static void story_tell_end(struct story *story, const struct muster_event_row *end,
                           int64_t from_unix_ms)
{
    const struct muster_event_row *event = muster_rows_events(story->incidents);
    struct shown time = story_at(story, end->unix_ms);

    for (; event < end; event++)
        if (event->unix_ms >= from_unix_ms && event->rank >= 0 &&
            tool_end_is_of(end->text, event->text)) {
            story_say(story, "At %s generation %" PRId64 " ended because of rank %" PRId64 ".",
                      time.text, end->generation, event->rank);
            return;
        }
    story_say_text(story, end->text, "At %s generation %" PRId64 " ended: ", time.text,
                   end->generation);
}

/* Incidents of [from, until), each with the broker's own words. */
static void story_tell_incidents(struct story *story, int64_t from_unix_ms, int64_t until_unix_ms)
{
    const struct muster_event_row *event = muster_rows_events(story->incidents);
    const struct muster_round_row *last = story_last_round(story);

    for (size_t i = 0; i < muster_rows_count(story->incidents); i++) {
        struct shown time = story_at(story, event[i].unix_ms);
        const char *text = event[i].text;

        if (event[i].unix_ms < from_unix_ms || event[i].unix_ms >= until_unix_ms ||
            story_is_told_elsewhere(&event[i]) ||
            (story_is_of_broker(&event[i]) && story_is_in_a_round(story, &event[i])))
            continue;
        if (story_is_of_broker(&event[i]))
            story_tell_broker(story, &event[i], NULL);
        else if (strcmp(event[i].kind, "not saved") == 0 && last != NULL &&
                 strcmp(last->reason, text) == 0) /* said already */
            story_say(story, "At %s the termination was left without a checkpoint.", time.text);
        else if (strcmp(event[i].kind, "not saved") == 0)
            story_say_text(story, text,
                           "At %s the termination was left without a checkpoint: ", time.text);
        else if (strcmp(event[i].kind, "order") == 0)
            story_say_text(story, text, "At %s an operator gave an order: ", time.text);
        else if (strcmp(event[i].kind, "generation ended") == 0)
            story_tell_end(story, &event[i], from_unix_ms);
        else if (event[i].rank >= 0)
            story_say_text(story, text, "At %s, %s (rank %" PRId64 "): ", time.text,
                           story_shown_kind(&event[i]), event[i].rank);
        else
            story_say_text(story, text, "At %s, %s: ", time.text, event[i].kind);
        if (story_came_out(story, &event[i]))
            story_say(story, "It has come out of that since.");
        story_fell_back(story, &event[i]);
        story_blame(story, &event[i]);
    }
}

static void story_tell_rounds(struct story *story)
{
    const struct muster_round_row *round = muster_rows_rounds(story->rounds);
    size_t count = muster_rows_count(story->rounds);
    int64_t from = story_begins_unix_ms(story);

    for (size_t i = 0; i < count; i++) {
        story_pause_line(story);
        story_tell_incidents(story, from, round[i].opened_unix_ms);
        from = round[i].opened_unix_ms;
        story_round(story, i);
    }
    story_pause_line(story);
    /* A round that comes long after an operator's save has nothing to do with it. */
    if (count > 0 && strcmp(round[count - 1].cause, "termination") != 0 &&
        round[count - 1].ended_unix_ms != 0)
        story_tell_incidents(story, from, round[count - 1].ended_unix_ms + 1);
    else
        story_tell_incidents(story, from, INT64_MAX);
}

/* --- no round --------------------------------------------------------------------------------- */

static void story_tell_plan(struct story *story)
{
    const struct muster_job_row *job = muster_rows_jobs(story->job_row);

    if (job == NULL || job->freeze_unix_ms == 0)
        story_say(story, "It stands, and no round has been opened for it yet.");
    else
        story_say_text(story, job->plan,
                       "It stands, and the job trains on: the freeze is planned for %s, ",
                       story_at(story, job->freeze_unix_ms).text);
}

/* A notice that no round was opened for. */
static void story_tell_no_round(struct story *story)
{
    const struct muster_notice_row *notice = muster_rows_notices(story->notices);
    const struct muster_generation_row *generation = muster_rows_generations(story->generations);
    const char *state = "", *kind = "";

    for (size_t i = 0; i < muster_rows_count(story->notices); i++)
        if (story_has_notice(story, &notice[i])) {
            state = notice[i].state;
            kind = notice[i].kind;
        }
    story_tell_incidents(story, story_begins_unix_ms(story), INT64_MAX);
    if (story->served_by != 0)
        story_say(story,
                  "It came after the save was over: round %" PRId64
                  " had already served it (`muster why round %" PRId64 " --job %s`).",
                  story->served_by, story->served_by, story->job);
    else if (strcmp(state, "cancelled") == 0)
        story_say(story, "No round was opened for it, so there is no checkpoint of it.");
    else if (kind[0] != '\0' && !render_ends(kind))
        story_say(story, "No rank leaves for it, so no save is made for it.");
    else if (strcmp(state, "active") == 0 &&
             (generation == NULL || strcmp(generation->state, "ended") != 0))
        story_tell_plan(story);
    else if (story_find_incident(story, "not saved", NULL) != NULL)
        return; /* it has said why */
    else if (generation != NULL && generation->end_text[0] != '\0')
        story_say_text(story, generation->end_text, "No checkpoint came of it: ");
    else
        story_say(story,
                  "No checkpoint came of it: no round was opened before the generation ended.");
}

/* --- a failure of which no round tells -------------------------------------------------------- */

static bool story_tells_failure(const struct story *story)
{
    return story->notice_id == NULL && story_last_round(story) == NULL;
}

bool story_is_failure(const struct muster_event_row *event)
{
    static const char *const kinds[] = {"node lost",      "peer error", "join failed",
                                        "restore failed", "stuck",      "rank restarted"};

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(event->kind, kinds[i]) == 0)
            return true;
    return false;
}

/* The first failure of a generation is the cause of the others. */
static const struct muster_event_row *story_first_failure(const struct story *story)
{
    const struct muster_event_row *event = muster_rows_events(story->incidents);

    const struct muster_event_row *first = NULL;

    for (size_t i = 0; i < muster_rows_count(story->incidents); i++)
        if (story_is_failure(&event[i]) && (first == NULL || event[i].seq < first->seq))
            first = &event[i]; /* by number: the clock of times may have been set back */
    return first;
}

static void story_tell_failure_headline(struct story *story, int64_t generation)
{
    const struct muster_event_row *event = story_first_failure(story);

    int64_t lost = event != NULL ? story_lost_before(story, event) : -1;

    if (event == NULL)
        story_say(story, "Job %s, generation %" PRId64 ": ended.", story->job, generation);
    else if (lost >= 0)
        story_say(story,
                  "Job %s, generation %" PRId64 ": rank %" PRId64 " was lost, and a step failed, "
                  "rank %" PRId64 ".",
                  story->job, generation, lost, event->rank);
    else if (event->rank >= 0)
        story_say(story, "Job %s, generation %" PRId64 ": %s, rank %" PRId64 ".", story->job,
                  generation, story_shown_kind(event), event->rank);
    else
        story_say(story, "Job %s, generation %" PRId64 ": %s.", story->job, generation,
                  story_shown_kind(event));
}

bool story_is_over(const struct story *story)
{
    const struct muster_generation_row *generation = muster_rows_generations(story->generations);

    return generation == NULL || strncmp(generation->state, "end", 3) == 0;
}

/* Does its notice stand in a launch that runs? */
static bool story_may_come(const struct story *story)
{
    const struct muster_notice_row *notice = muster_rows_notices(story->notices);

    if (story->served_by != 0 || story_is_over(story))
        return false;
    for (size_t i = 0; i < muster_rows_count(story->notices); i++)
        if (story_has_notice(story, &notice[i]) && strcmp(notice[i].state, "active") == 0 &&
            render_ends(notice[i].kind))
            return true;
    return false;
}

/* The answer in one line; the story follows. */
static void story_tell_headline(struct story *story)
{
    const struct muster_round_row *last = story_last_round(story);
    const struct muster_generation_row *generation = muster_rows_generations(story->generations);
    int64_t number = generation == NULL ? 0 : generation->generation;

    if (story_tells_failure(story))
        story_tell_failure_headline(story, number);
    else if (last == NULL)
        story_say(story, "Job %s, generation %" PRId64 ", notice %s: no round%s.", story->job,
                  number, story->notice_id, story_may_come(story) ? " yet" : "");
    else if (strcmp(last->state, "committed") == 0)
        story_say(story,
                  "Job %s, generation %" PRId64 ", round %" PRId64 ": saved at step %" PRId64 ".",
                  story->job, number, last->round, last->step);
    else if (strcmp(last->state, "unchanged") == 0)
        story_say(story,
                  "Job %s, generation %" PRId64 ", round %" PRId64
                  ": nothing new to save at step %" PRId64 ".",
                  story->job, number, last->round, last->step);
    else if (strcmp(last->state, "aborted") == 0)
        story_say(story, "Job %s, generation %" PRId64 ", round %" PRId64 ": %s.", story->job,
                  number, last->round,
                  last->final || story_is_over(story) ? "not saved"
                  : story_all_withdrawn(story)        ? "aborted, and not wanted any more"
                                                      : "aborted, to be tried again");
    else
        story_say(story, "Job %s, generation %" PRId64 ", round %" PRId64 ": %s.", story->job,
                  number, last->round, last->state);
    story_pause_line(story);
}

void story_tell(struct story *story)
{
    story_tell_headline(story);
    story_tell_cause(story);
    if (story_tells_failure(story))
        story_tell_incidents(story, 0, INT64_MAX);
    else if (story_last_round(story) == NULL)
        story_tell_no_round(story);
    else
        story_tell_rounds(story);
    story_cost(story);
}

void story_free(struct story *story)
{
    for (size_t i = 0; story->participants != NULL && i < muster_rows_count(story->rounds); i++)
        muster_rows_destroy(&story->participants[i]);
    free(story->participants);
    for (size_t i = 0; i < story->lines_count; i++)
        free(story->lines[i]);
    free(story->lines);
    muster_rows_destroy(&story->rounds);
    muster_rows_destroy(&story->notices);
    muster_rows_destroy(&story->incidents);
    muster_rows_destroy(&story->generations);
    muster_rows_destroy(&story->nodes);
    muster_rows_destroy(&story->before);
    muster_rows_destroy(&story->checkpoint);
    muster_rows_destroy(&story->latest);
    muster_rows_destroy(&story->job_row);
    *story = (struct story){0};
}
