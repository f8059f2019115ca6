/* agent_core - feeds the core and carries out what it answers. Agent thread, mutex held: from the
 * reading of begun and done to the publishing of the view nothing the training thread does can come
 * between. Users' callbacks are made by other threads: agent_tell, callback. */
#include "node/agent/agent_state.h"

#include "node/clock.h"
#include "schema/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLOSINGS_MAX 8 /* closings that one input can cause, far beyond sense */

void agent_log(struct agent *agent, int level, const char *format, ...)
{
    char text[MUSTER_ERROR_TEXT_MAX];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    tell_log(agent->tell, level, text);
}

void agent_fault(struct agent *agent, const char *text)
{
    if (agent->faulted)
        return;
    agent->faulted = true;
    gate_close(agent->gate);
    agent->view.mode = VIEW_END;
    agent->view.leave_restart = false;
    agent->view.left = true; /* nobody can be told any more */
    error_set(&agent->view.end, MUSTER_E_FAULT, "%s; %s", text,
              muster_status_advice(MUSTER_E_FAULT));
    pthread_cond_broadcast(&agent->changed);
    agent_log(agent, 0, "%s", text);
}

static void agent_core_send_message(struct agent *agent, const struct wire_msg *message)
{
    size_t size = wire_encode(message, agent->frame, WIRE_FRAME_MAX);

    if (size == 0)
        agent_fault(agent, "the node made a message that cannot be encoded");
    else if (agent->link ==
             NULL) /* its thread has ended: agent_dismiss looks what it did not see */
        return;
    else if (!link_send(agent->link, agent->frame, size))
        agent_log(agent, 3, "%s could not be sent: no broker is connected",
                  wire_type_name(message->type));
}

static void agent_core_note_outcomes(struct agent *agent, const struct member_view *view)
{
    int64_t step = atomic_load(&agent->commit_step);

    for (size_t i = 0; i < MEMBER_OUTCOMES_MAX; i++)
        if (view->outcomes[i].state == OUTCOME_ABORTED && view->outcomes[i].step > step)
            step = view->outcomes[i].step;
    if (step > atomic_load(&agent->outcome_step))
        atomic_store(&agent->outcome_step, step);
}

static void agent_publish_view(struct agent *agent)
{
    const struct member_view *view = &agent->view;
    int64_t save_step = atomic_load(&agent->save_step);

    agent->view = *member_get_view(agent->core);
    if (view->mode == VIEW_OPEN ||
        (view->mode == VIEW_WAIT && view->round != agent->captured_round))
        save_step = -1;
    else if (view->mode == VIEW_STEP_TO || view->mode == VIEW_CAPTURE)
        save_step = view->step;
    atomic_store(&agent->save_step, save_step);
    atomic_store(&agent->broker_start, view->broker_start);
    atomic_store(&agent->unheard, view->unheard);
    for (size_t i = 0; i < MEMBER_COMMITS_MAX; i++)
        if (view->committed[i] > atomic_load(&agent->commit_step))
            atomic_store(&agent->commit_step, view->committed[i]);
    if (view->started && !agent->leaving && agent->options.supervised != NULL)
        supervised_starts(agent->options.supervised); /* before any step */
    agent_core_note_outcomes(agent, view);
    if (view->mode == VIEW_OPEN)
        gate_open(agent->gate);
    else
        gate_close(agent->gate); /* the core closed it before; a view never leaves it open */
    if (agent->options.hooks.seen != NULL)
        agent->options.hooks.seen(view, agent->options.hooks.log_arg);
    pthread_cond_broadcast(&agent->changed);
}

void agent_discard(struct agent *agent, uint64_t generation, uint64_t round)
{
    if (agent->saving_round == round && round != 0) {
        agent->discard_waits = true;
        if (agent->behind != NULL)
            behind_stop(agent->behind);
        return;
    }
    for (size_t i = 0; i < AGENT_ROUNDS_MAX; i++) {
        struct opened_round *opened = &agent->opened[i];

        if (opened->round == round && opened->generation == generation && round != 0)
            writer_discard(agent->writer, generation, round, opened->nonce, NULL);
    }
}

void agent_clear_left(struct agent *agent, uint64_t generation, uint64_t round)
{
    writer_clear_left(agent->writer, generation, round, NULL); /* else the next launch's */
}

static void agent_write_manifest(struct agent *agent, const struct member_action *action)
{
    struct muster_error err;
    enum muster_status status =
        writer_manifest(agent->writer, action->round, action->bytes, action->bytes_count, &err);
    struct post *post;

    if (status == MUSTER_OK)
        return;
    post = post_new(MEMBER_MANIFEST_FAILED);
    if (post != NULL) {
        post->input.checkpoint = action->round;
        post->input.code = status;
        post->input.text = arena_strdup(&post->arena, err.text);
    }
    if (post_put(agent, post, NULL) != MUSTER_OK)
        agent_fault(agent, NO_MEMORY_TO_TELL);
}

static void agent_write_notice_id(const struct agent *agent, const char *source, uint64_t number,
                                  char ret_id[NOTICE_ID_MAX + 1])
{
    snprintf(ret_id, NOTICE_ID_MAX + 1, "%s-%016llx-%llu", source,
             (unsigned long long)agent->options.member.incarnation, (unsigned long long)number);
}

/* A notice of ours that was cancelled may be given again. */
static void agent_note_cancelled(struct agent *agent, const char *cancelled)
{
    char id[NOTICE_ID_MAX + 1];
    const char *dash = strrchr(cancelled, '-');
    const char *first = strchr(cancelled, '-');
    uint64_t number = dash != NULL ? strtoull(dash + 1, NULL, 10) : 0;
    char source[SOURCE_NAME_MAX + 1];

    if (dash == NULL || first == dash || (size_t)(first - cancelled) > SOURCE_NAME_MAX)
        return;
    snprintf(source, sizeof source, "%.*s", (int)(first - cancelled), cancelled);
    agent_write_notice_id(agent, source, number, id);
    if (strcmp(id, cancelled) == 0 && strcmp(source, "user") != 0)
        watch_forget(agent->watch, number);
}

/* Returns the begun of the closing, or -1: the gate was not to be closed. */
static int64_t agent_core_carry_out(struct agent *agent, const struct member_action *action)
{
    struct muster_error err;

    switch (action->kind) {
    case MEMBER_SEND:
        agent_core_send_message(agent, &action->message);
        return -1;
    case MEMBER_SUBSCRIBE: /* without it events come by unicast, only later */
        if (agent->link != NULL && link_subscribe(agent->link, action->text, &err) != MUSTER_OK)
            agent_log(agent, 0, "no events by subscription: %s", err.text);
        return -1;
    case MEMBER_CLOSE_GATE:
        return gate_close(agent->gate);
    case MEMBER_VIEW:
        agent_publish_view(agent);
        return -1;
    case MEMBER_ON_ERROR:
        agent->error_heard = true;
        pthread_cond_broadcast(&agent->changed);
        tell_error(agent->tell, &action->error);
        return -1;
    case MEMBER_WRITE_MANIFEST:
        agent_write_manifest(agent, action);
        return -1;
    case MEMBER_DISCARD_ROUND:
        agent_discard(agent, action->generation, action->round);
        return -1;
    case MEMBER_DELETE:
        agent_delete(agent, action);
        return -1;
    case MEMBER_NOTICE_WITHDRAWN:
        agent_note_cancelled(agent, action->text);
        return -1;
    case MEMBER_EXIT_PROCESS:
        /* a thread that knows of its end is on its way */
        agent->exit_wanted = agent->options.member.exit_allowed && !agent->end_told;
        agent->exit_restart = action->restart;
        return -1;
    case MEMBER_LOG:
        agent_log(agent, action->level, "%s", action->text);
        return -1;
    }
    agent_fault(agent, "the node's core asked for an action that does not exist");
    return -1;
}

/* One step of the core. Returns the begun of a closing that it asked for, or -1. */
static int64_t agent_step(struct agent *agent, struct member_input *input)
{
    int64_t closing = -1;

    input->now_boot_ms = agent->now_boot_ms;
    if (input->kind != MEMBER_GATE_CLOSED)
        input->begun = gate_begun(agent->gate);
    input->done = gate_done(agent->gate);
    input->in_hold = atomic_load(&agent->hold_depth) > 0;
    member_actions_clear(&agent->actions);
    member_step(agent->core, input, &agent->actions);
    for (size_t i = 0; i < agent->actions.count && !agent->faulted; i++) {
        int64_t begun = agent_core_carry_out(agent, &agent->actions.items[i]);

        if (closing < 0)
            closing = begun;
    }
    if (member_is_starved(agent->core))
        agent_fault(agent, "there was no memory for what the broker has to hear");
    return closing;
}

void agent_feed(struct agent *agent, struct member_input *input)
{
    int64_t closing;

    if (agent->faulted)
        return;
    closing = agent_step(agent, input);
    for (int i = 0; closing >= 0 && i < CLOSINGS_MAX && !agent->faulted; i++) {
        struct member_input closed = {.kind = MEMBER_GATE_CLOSED, .begun = closing};

        closing = agent_step(agent, &closed);
    }
    if (closing >= 0)
        agent_fault(agent, "the node's core closes its gate for ever");
}

void agent_feed_posts(struct agent *agent)
{
    while (agent->first_post != NULL) {
        struct post *post = agent->first_post;

        agent->first_post = post->next;
        if (agent->first_post == NULL)
            agent->last_post = NULL;
        agent_feed(agent, &post->input);
        agent->consumed++;
        post_free(post);
        pthread_cond_broadcast(&agent->changed);
    }
}

static int64_t agent_left_of(const struct agent *agent, int64_t deadline_boot_ms)
{
    if (deadline_boot_ms < 0)
        return -1;
    return deadline_boot_ms > agent->now_boot_ms ? deadline_boot_ms - agent->now_boot_ms : 0;
}

static void agent_feed_record(struct agent *agent, const struct notice_record *record)
{
    const struct notice_item *item = &record->item;
    char id[NOTICE_ID_MAX + 1];
    struct member_input input = {.kind =
                                     record->withdrawn ? MEMBER_NOTICE_CANCELLED : MEMBER_NOTICE,
                                 .id = id,
                                 .notice_kind = item->kind,
                                 .source = record->source,
                                 .left_ms = agent_left_of(agent, item->deadline_boot_ms),
                                 .cancellable = item->cancellable,
                                 .text = item->text};

    if (record->number == 0) {
        agent_log(agent, 3, "%s again", item->text);
        return;
    }
    agent_write_notice_id(agent, record->source, record->number, id);
    if (record->withdrawn)
        agent_log(agent, 2, "notice %s is withdrawn: %s", id, item->text);
    agent_feed(agent, &input);
}

/* For the next heartbeat. */
static void agent_tell_sources(struct agent *agent)
{
    char json[WATCH_JSON_MAX + 1];

    if (agent->now_boot_ms < agent->sources_boot_ms)
        return;
    agent->sources_boot_ms = agent->now_boot_ms + HEARTBEAT_MS / 2;
    watch_json(
        agent->watch,
        &(struct notice_now){.boot_ms = agent->now_boot_ms, .unix_ms = clock_ms(CLOCK_REALTIME)},
        json);
    member_set_sources(agent->core, json);
}

void agent_tell_saving(struct agent *agent)
{
    member_set_saving(agent->core, agent->saving_round,
                      agent->saving_round > 0 ? agent_saving_bytes(agent) : 0);
}

void agent_feed_notices(struct agent *agent)
{
    struct notice_record record;
    struct source_status status;

    while (watch_take(agent->watch, &record))
        agent_feed_record(agent, &record);
    agent_tell_sources(agent);
    while (watch_take_change(agent->watch, &status))
        agent_log(agent, status.state == SOURCE_DEGRADED ? 1 : 2, "notice source %s: %s%s%s",
                  status.name, source_state_name(status.state), status.text[0] != '\0' ? ": " : "",
                  status.text);
}

static void agent_feed_frame(struct agent *agent, const uint8_t *frame, size_t size)
{
    struct wire_msg message;
    struct muster_error err;
    struct member_input input = {.kind = MEMBER_FRAME, .message = &message};
    enum muster_status status;

    arena_reset(&agent->frame_arena);
    status = wire_decode(frame, size, &agent->frame_arena, &message, &err);
    if (status == MUSTER_E_VERSION && agent->misfit.status == MUSTER_OK)
        agent->misfit = err; /* who waits to join is told; a member trains on */
    if (status != MUSTER_OK || wire_is_up(message.type)) {
        if (agent->bad_frames++ == 0) /* counted, told once, never obeyed */
            agent_log(agent, 1, "a frame that is no broker's message was dropped (%zu bytes)",
                      size);
        return;
    }
    agent->frames_heard++;
    agent_feed(agent, &input);
    if (member_heard_boot_ms(agent->core) == agent->now_boot_ms)
        link_heard(agent->link);
    if (member_end_is_committed(agent->core))
        watch_committed(agent->watch);
}

bool agent_feed_frames(struct agent *agent)
{
    for (int i = 0; i < AGENT_FRAMES_PASS; i++) {
        size_t size = 0;
        const uint8_t *frame = link_receive(agent->link, &size);

        if (frame == NULL)
            return false;
        agent_feed_frame(agent, frame, size);
    }
    return true;
}
