/* story_ledger - what was told, and whether the database still knows it; see story.h. */
#include "tests/faults/story.h"

#include "broker/store/store_internal.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

void story_wrong(struct story *story, const char *format, ...)
{
    va_list args;

    if (story->wrong[0] != '\0')
        return;
    va_start(args, format);
    vsnprintf(story->wrong, sizeof story->wrong, format, args);
    va_end(args);
}

/* --- what was told ---------------------------------------------------------------------------- */

static void note_event(struct story *story, const struct wire_event *event)
{
    const struct wire_msg message = {.type = WIRE_EVENT, .u.event = *event};
    struct story_told *told = &story->events[story->events_count];

    if (story->events_count == STORY_EVENTS_MAX) {
        story_wrong(story, "more than %d events", STORY_EVENTS_MAX);
        return;
    }
    told->seq = event->seq;
    told->size = wire_encode(&message, told->body, sizeof told->body);
    if (told->size == 0)
        story_wrong(story, "event %" PRIu64 " cannot be encoded", event->seq);
    story->events_count++;
    if (event->kind == EVENT_COMMIT)
        story->saved_step = event->step;
}

static void note_answer(struct story *story, const struct action *action)
{
    int node = (int)action->route - 100;

    if (node < 0 || node >= STORY_NODES || action->message.type != WIRE_ACK)
        return;
    if (action->message.u.ack.request > story->answered[node])
        story->answered[node] = action->message.u.ack.request;
    if (story->pending[node].request == action->message.u.ack.request)
        story->pending[node].word = WORD_NONE;
}

void story_note(struct story *story)
{
    const struct actions *out = &story->f.out;

    for (size_t i = 0; i < out->count; i++) {
        const struct action *action = &out->items[i];

        if (story->plot->note != NULL)
            story->plot->note(story, action);
        if (action->kind == ACTION_PUBLISH && action->message.type == WIRE_EVENT &&
            strcmp(action->message.down.job, story->f.job) == 0)
            note_event(story, &action->message.u.event);
        if (action->kind == ACTION_SEND)
            note_answer(story, action);
        if (action->kind == ACTION_SEND && action->message.down.broker_epoch > story->epoch)
            story->epoch = action->message.down.broker_epoch;
    }
}

/* --- what is there ---------------------------------------------------------------------------- */

static sqlite3_stmt *ask(struct story *story, const char *sql)
{
    sqlite3_stmt *statement = NULL;

    if (sqlite3_prepare_v2(story->store->db, sql, -1, &statement, NULL) != SQLITE_OK)
        story_wrong(story, "%s: %s", sql, sqlite3_errmsg(story->store->db));
    return statement;
}

static void verify_file(struct story *story)
{
    sqlite3_stmt *statement = ask(story, "PRAGMA integrity_check");

    if (sqlite3_step(statement) != SQLITE_ROW)
        story_wrong(story, "the database cannot be checked: %s", sqlite3_errmsg(story->store->db));
    else if (strcmp((const char *)sqlite3_column_text(statement, 0), "ok") != 0)
        story_wrong(story, "the database is damaged: %s", sqlite3_column_text(statement, 0));
    sqlite3_finalize(statement);
    statement = ask(story, "PRAGMA foreign_key_check");
    if (sqlite3_step(statement) == SQLITE_ROW)
        story_wrong(story, "a row of table %s refers to nothing",
                    sqlite3_column_text(statement, 0));
    sqlite3_finalize(statement);
}

static void verify_rows(struct story *story)
{
    struct muster_error err = {0};

    if (store_check_rows(story->store, &err) != MUSTER_OK)
        story_wrong(story, "the rows do not fit together: %s", err.text);
}

static void verify_event(struct story *story, sqlite3_stmt *statement,
                         const struct story_told *told)
{
    sqlite3_reset(statement);
    sqlite3_bind_int64(statement, 1, (int64_t)told->seq);
    if (sqlite3_step(statement) != SQLITE_ROW)
        story_wrong(story, "event %" PRIu64 " was heard and is not in the journal", told->seq);
    else if ((size_t)sqlite3_column_bytes(statement, 0) != told->size ||
             memcmp(sqlite3_column_blob(statement, 0), told->body, told->size) != 0)
        story_wrong(story, "event %" PRIu64 " was heard with other content", told->seq);
}

void story_verify_number(struct story *story, const char *what, const char *sql, uint64_t parameter,
                         int64_t least)
{
    sqlite3_stmt *statement = ask(story, sql);

    sqlite3_bind_int64(statement, 1, (int64_t)parameter); /* not all have one */
    if (sqlite3_step(statement) != SQLITE_ROW || sqlite3_column_int64(statement, 0) < least)
        story_wrong(story, "%s is %lld, %" PRId64 " was told", what,
                    (long long)sqlite3_column_int64(statement, 0), least);
    sqlite3_finalize(statement);
}

void story_verify_synced(struct story *story)
{
    if (strstr(story->settings, "synchronous") != NULL)
        return; /* a control */
    story->hooks->look(story, true);
    story_verify_number(story, "the connection's synchronous setting", "PRAGMA synchronous", 0, 2);
    story->hooks->look(story, false);
}

void story_verify(struct story *story)
{
    sqlite3_stmt *events;

    story->hooks->look(story, true);
    verify_file(story);
    events = ask(story, "SELECT body FROM event WHERE job = 'train' AND seq = ?1");
    for (size_t i = 0; i < story->events_count; i++)
        verify_event(story, events, &story->events[i]);
    sqlite3_finalize(events);
    for (int n = 0; n < STORY_NODES; n++)
        if (story->answered[n] > 0)
            story_verify_number(story, "the last request taken",
                                "SELECT last_request FROM node WHERE incarnation = ?1",
                                story->f.nodes[n].incarnation, (int64_t)story->answered[n]);
    if (story->epoch > 0)
        story_verify_number(story, "the broker's epoch",
                            "SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'broker_epoch'", 0,
                            (int64_t)story->epoch);
    if (story->saved_step >= 0)
        story_verify_number(story, "the newest committed step",
                            "SELECT max(step) FROM checkpoint WHERE job = 'train' AND"
                            " state = 'committed'",
                            0, story->saved_step);
    story_verify_number(story, "minus the number of open rounds",
                        "SELECT -count(*) FROM round WHERE state IN ('freezing', 'decided')", 0,
                        -1);
    verify_rows(story);
    if (story->plot->verify != NULL)
        story->plot->verify(story);
    story->hooks->look(story, false);
}
