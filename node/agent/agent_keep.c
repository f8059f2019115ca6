/* agent_keep - see agent_keep.h. */
#include "node/agent/agent_state.h"

#include "node/clock.h"
#include "schema/error.h"
#include "schema/manifest/metrics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SWEEP_LOOK_MS 50 /* between two questions what is left */

/* --- questions -------------------------------------------------------------------------------- */

static enum muster_status agent_keep_put_ask(struct agent *agent, const struct wire_msg *message,
                                             struct muster_error *err)
{
    struct post *post = post_new(MEMBER_ASK);
    struct wire_msg *copy = post != NULL ? arena_alloc(&post->arena, sizeof *copy) : NULL;
    struct wire_msg whole = *message; /* its head is the core's to fill in */

    whole.up = (struct wire_up){.job = ""};
    if (copy == NULL || !wire_copy(copy, &whole, &post->arena)) {
        post_free(post);
        post = NULL;
    }
    if (post != NULL)
        post->input.ask = copy;
    return post_put(agent, post, err);
}

static enum muster_status agent_keep_told(const struct agent *agent, uint64_t *ret_value,
                                          struct muster_error *err)
{
    if (agent->view.ask_code == MUSTER_OK && ret_value != NULL)
        *ret_value = agent->view.ask_value;
    if (agent->view.ask_code == MUSTER_OK)
        return MUSTER_OK;
    return error_set(err, (enum muster_status)agent->view.ask_code, "%s", agent->view.ask_text);
}

/* Mutex held. */
static enum muster_status agent_keep_ask_once(struct agent *agent, const struct wire_msg *message,
                                              int64_t until_ms, uint64_t *ret_value,
                                              struct muster_error *err)
{
    struct agent_patience patience = {0};
    uint64_t before = agent->view.asks_answered;
    enum muster_status status = agent_keep_put_ask(agent, message, err);

    while (status == MUSTER_OK && agent->view.asks_answered == before) {
        int64_t left_ms = until_ms - clock_ms(CLOCK_MONOTONIC);

        if (agent->view.left)
            left_ms = 0; /* nobody answers any more */
        if (left_ms <= 0)
            return error_set(err, MUSTER_E_TIMEOUT,
                             "the broker did not answer %s in time; it may still be done. See "
                             "`muster status`",
                             wire_type_name(message->type));
        status = agent_wait(agent, &patience, left_ms, err);
    }
    return status == MUSTER_OK ? agent_keep_told(agent, ret_value, err) : status;
}

enum muster_status agent_ask(struct agent *agent, const struct wire_msg *message,
                             int64_t timeout_ms, uint64_t *ret_value, struct muster_error *err)
{
    int64_t until_ms = clock_ms(CLOCK_MONOTONIC) + timeout_ms;
    enum muster_status status;

    pthread_mutex_lock(&agent->mutex);
    do
        status = agent_keep_ask_once(agent, message, until_ms, ret_value, err);
    while (status == MUSTER_E_HELLO); /* bounded by until_ms: each try waits for an answer */
    pthread_mutex_unlock(&agent->mutex);
    return status;
}

static enum muster_status agent_keep_still_left(uint64_t left, const char *why,
                                                struct muster_error *err)
{
    return error_set(err, MUSTER_E_TIMEOUT,
                     "%llu checkpoint%s still to be deleted; the job's next launch goes on with "
                     "%s%s%s",
                     (unsigned long long)left, left == 1 ? " is" : "s are",
                     left == 1 ? "it" : "them", why[0] != '\0' ? ": " : "", why);
}

enum muster_status agent_sweep(struct agent *agent, bool final, int64_t timeout_ms,
                               struct muster_error *err)
{
    const struct wire_msg message = {.type = WIRE_SWEEP, .u.sweep = {.final = final}};
    const int64_t until_ms = clock_ms(CLOCK_MONOTONIC) + timeout_ms;
    char why[sizeof agent->view.ask_text] = "";
    uint64_t left = 1;
    enum muster_status status = MUSTER_OK;
    bool ends, ended_before;

    pthread_mutex_lock(&agent->mutex);
    ends = ended_before = member_view_ends(&agent->view);
    pthread_mutex_unlock(&agent->mutex);
    while (status == MUSTER_OK && left > 0) {
        int64_t now_ms = clock_ms(CLOCK_MONOTONIC);

        if (now_ms >= until_ms || (ends && !ended_before)) /* who is told to end leaves in time */
            return agent_keep_still_left(left, why, err);
        status = agent_ask(agent, &message, until_ms - now_ms, &left, err);
        pthread_mutex_lock(&agent->mutex);
        snprintf(why, sizeof why, "%s", agent->view.ask_text);
        ends = member_view_ends(&agent->view);
        pthread_mutex_unlock(&agent->mutex);
        if (status == MUSTER_OK && left > 0)
            nanosleep(&(struct timespec){.tv_nsec = SWEEP_LOOK_MS * 1000000L}, NULL);
    }
    return status;
}

/* --- what a save tells ------------------------------------------------------------------------ */

static bool agent_keep_replace(char **text, const char *with)
{
    char *copy = with != NULL && *with != '\0' ? strdup(with) : NULL;

    if (copy == NULL && with != NULL && *with != '\0')
        return false;
    free(*text);
    *text = copy;
    return true;
}

enum muster_status agent_set_facts(struct agent *agent, const char *metrics, const char *custom,
                                   struct muster_error *err)
{
    if (metrics != NULL && !metrics_ok(metrics))
        return error_set(err, MUSTER_E_ARGUMENT,
                         "the metrics are no JSON object of names and numbers of at most %d bytes",
                         METRICS_BYTES_MAX);
    if (custom != NULL && !custom_ok(custom))
        return error_set(err, MUSTER_E_ARGUMENT,
                         "the custom metadata is no JSON object of at most %d bytes",
                         CUSTOM_BYTES_MAX);
    if (!agent_keep_replace(&agent->metrics, metrics) ||
        !agent_keep_replace(&agent->custom, custom))
        return error_set(err, MUSTER_E_NOMEM, "no memory for metrics; free some");
    return MUSTER_OK;
}

void agent_give_state(struct agent *agent, const struct muster_state *state)
{
    agent->given_state = state;
}

void agent_facts_take(struct agent *agent)
{
    free(agent->saving_metrics);
    free(agent->saving_custom);
    agent->saving_metrics = agent->metrics;
    agent->saving_custom = agent->custom;
    agent->metrics = agent->custom = NULL;
}

void agent_facts_into(struct agent *agent, struct post *post)
{
    post->input.metrics = arena_strdup(&post->arena, agent->saving_metrics);
    post->input.custom = arena_strdup(&post->arena, agent->saving_custom);
}

/* --- deletion --------------------------------------------------------------------------------- */

void agent_note_deletion(struct agent *agent, const struct writer_result *result)
{
    if (result->status != MUSTER_OK) {
        agent->undeleted = result->checkpoint;
        error_set(&agent->undeleted_why, result->status,
                  "checkpoint %llu could not be deleted, and takes its room until it can: %.2000s",
                  (unsigned long long)result->checkpoint, result->text);
    } else if (agent->undeleted == result->checkpoint) {
        agent->undeleted = 0;
    }
}

enum muster_status agent_deletion_failed(struct agent *agent, struct muster_error *err)
{
    struct muster_error why = {.status = MUSTER_OK};

    pthread_mutex_lock(&agent->mutex);
    if (agent->undeleted != 0)
        why = agent->undeleted_why;
    agent->undeleted = 0;
    pthread_mutex_unlock(&agent->mutex);
    return why.status == MUSTER_OK ? MUSTER_OK : error_pass(err, why.status, &why);
}

void agent_delete(struct agent *agent, const struct member_action *action)
{
    struct muster_error err;
    enum muster_status status = writer_delete(agent->writer, action->generation, action->round,
                                              action->step, action->text, action->trash, &err);
    struct post *post;

    if (status == MUSTER_OK)
        return;
    post = post_new(MEMBER_DELETED);
    if (post != NULL) {
        post->input.checkpoint = action->round;
        post->input.code = status;
        post->input.text = arena_strdup(&post->arena, err.text);
    }
    if (post_put(agent, post, NULL) != MUSTER_OK)
        member_deletion_lost(agent->core, action->round);
}
