/* announce - see announce.h. broker_log escapes what came from outside. */
#include "broker/announce.h"

#include "broker/log.h"

#include <inttypes.h>
#include <stdio.h>

#define LINES_MAX 64
#define TEXT_BYTES 1024

/* "at step 40", as the job's program counts. While no checkpoint's name tells how it counts, "after
 * 41 steps", which is also true. */
struct step_words {
    char text[40];
};

static struct step_words announce_step_words(const struct core *core,
                                             const struct record_event *row)
{
    struct step_words words;
    int64_t offset, step = row->body.step;

    if (step > 0 && core_step_offset(core, row->job, &offset))
        snprintf(words.text, sizeof words.text, "at step %" PRId64, step + offset);
    else
        snprintf(words.text, sizeof words.text, "after %" PRId64 " steps", step);
    return words;
}

static void announce_generation_text(const struct record_event *row, const char *at, char *text,
                                     size_t size)
{
    const struct wire_event *event = &row->body;

    if (event->kind == EVENT_GENERATION_ENDED)
        snprintf(text, size, "generation %" PRIu64 " ended: %s", row->generation, event->text);
    else if (event->checkpoint == 0)
        snprintf(text, size, "generation %" PRIu64 " opened, from the start", row->generation);
    else
        snprintf(text, size, "generation %" PRIu64 " opened, resumes %s from checkpoint %" PRIu64,
                 row->generation, at, event->checkpoint);
}

static void announce_round_text(const struct wire_event *event, const char *at, char *text,
                                size_t size)
{
    const char *cause = wire_cause_name((unsigned)event->cause);

    if (event->kind == EVENT_COMMIT)
        snprintf(text, size, "round %" PRIu64 " (%s) committed: checkpoint %" PRIu64 " %s",
                 event->round, cause, event->checkpoint, at);
    else if (event->kind == EVENT_UNCHANGED)
        snprintf(text, size, "round %" PRIu64 " (%s) ended: nothing to save, the newest is %s",
                 event->round, cause, at);
    else if (event->kind == EVENT_ABORT)
        snprintf(text, size, "round %" PRIu64 " (%s) aborted: %s%s", event->round, cause,
                 event->text, (event->flags & EVENT_FLAG_RETRY) != 0 ? "; it is tried again" : "");
    else
        snprintf(text, size, "round %" PRIu64 " (%s): the job ends without a new checkpoint: %s",
                 event->round, cause, event->text);
}

/* Events on which an operator may have to act, or which mean a loss. */
static enum log_level announce_event_level(const struct wire_event *event)
{
    switch (event->kind) {
    case EVENT_ABORT:
        return (event->flags & EVENT_FLAG_RETRY) != 0 ? LOG_LEVEL_INFO : LOG_LEVEL_WARNING;
    case EVENT_SAVE_SKIPPED:
        return event->code == MUSTER_E_EXISTS ? LOG_LEVEL_DEBUG : LOG_LEVEL_WARNING;
    case EVENT_NOT_SAVED:
    case EVENT_NODE_LOST:
    case EVENT_JOIN_FAILED:
    case EVENT_RESTORE_FAILED:
    case EVENT_STUCK:
    case EVENT_PEER_ERROR:
        return LOG_LEVEL_WARNING;
    default:
        return LOG_LEVEL_INFO;
    }
}

/* False: it does not belong in the log. */
static bool announce_event_text(const struct record_event *row, const char *at, char *text,
                                size_t size)
{
    const struct wire_event *event = &row->body;

    switch (event->kind) {
    case EVENT_GENERATION_OPENED:
    case EVENT_GENERATION_ENDED:
        announce_generation_text(row, at, text, size);
        return true;
    case EVENT_COMMIT:
    case EVENT_ABORT:
    case EVENT_UNCHANGED:
    case EVENT_NOT_SAVED:
        announce_round_text(event, at, text, size);
        return true;
    case EVENT_ORDER:
    case EVENT_NODE_LOST: /* names rank, process and host itself */
    case EVENT_JOIN_FAILED:
    case EVENT_STUCK: /* a rank in its step, or a task at its worker */
        snprintf(text, size, "%s", event->text);
        return true;
    case EVENT_RESTORE_FAILED:
        snprintf(text, size, "rank %" PRId64 " %s: %s", event->rank,
                 event->flags & EVENT_FLAG_IMPORTS ? "imports" : "could not restore", event->text);
        return true;
    case EVENT_SAVE_SKIPPED:
        snprintf(text, size, "no save %s: %s", at, event->text);
        return true;
    case EVENT_PEER_ERROR:
        snprintf(text, size, "rank %" PRId64 " failed its step: %s", event->rank, event->text);
        return true;
    case EVENT_TERMINATION:
        snprintf(text, size, "rank %" PRId64 " has a notice (%s): %s", event->rank,
                 wire_notice_kind_name((unsigned)event->code), event->text);
        return true;
    default:
        return false;
    }
}

/* The job of the row. NULL: the row is not logged. */
static const char *announce_row_text(const struct core *core, const struct record *row, char *text,
                                     size_t size)
{
    if (row->kind == RECORD_EVENT)
        return announce_event_text(&row->u.event, announce_step_words(core, &row->u.event).text,
                                   text, size)
                   ? row->u.event.job
                   : NULL;
    if (row->kind != RECORD_FORGET || row->u.forget.by == NULL || row->u.forget.by[0] == '\0')
        return NULL;
    snprintf(text, size, "%s: forget", row->u.forget.by); /* its journal goes with it */
    return row->u.forget.job;
}

static enum log_level announce_row_level(const struct record *row)
{
    return row->kind == RECORD_EVENT ? announce_event_level(&row->u.event.body) : LOG_LEVEL_INFO;
}

void announce_batch(const struct actions *batch, const struct core *core)
{
    size_t lines = 0;

    for (size_t i = 0; i < batch->count; i++) {
        const struct record *row = &batch->items[i].record;
        char text[TEXT_BYTES];
        const char *job = batch->items[i].kind == ACTION_PERSIST
                              ? announce_row_text(core, row, text, sizeof text)
                              : NULL;

        if (job != NULL && (row->kind == RECORD_FORGET || ++lines <= LINES_MAX))
            broker_log(announce_row_level(row), "job %s: %s", job, text);
    }
    if (lines > LINES_MAX)
        broker_log(LOG_LEVEL_INFO, "and %zu more events at once; see muster events",
                   lines - LINES_MAX);
}

void announce_loaded(const struct record *row)
{
    const struct record_job *job = &row->u.job;

    if (row->kind != RECORD_JOB || job->state == GENERATION_NONE || job->state == GENERATION_ENDED)
        return;
    broker_log(LOG_LEVEL_INFO,
               "job %s: recovered in generation %" PRIu64 ", which was %s; its nodes may come back",
               job->job, job->generation, wire_generation_state_name(job->state));
}
