/* agent_post - how other threads reach the core: inputs in a bounded queue, and the wait for their
 * results. Mutex held in every function here but agent_writer_done. */
#include "node/agent/agent_state.h"

#include "node/clock.h"
#include "schema/error.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define POSTS_OF_ANYBODY_MAX \
    (AGENT_POSTS_MAX - 16) /* the rest is the training thread's and the writer's */
#define MEMORY_PATIENCE_MS 2000
#define POST_LOOK_MS 50 /* a full queue, or memory, is looked for again */
#define INTERRUPT_MS 90 /* between two questions to hooks.interrupted */

void agent_wake(struct agent *agent)
{
    const uint64_t one = 1;
    ssize_t written = write(agent->wake_fd, &one, sizeof one); /* full: it is readable already */

    (void)written;
}

struct post *post_new(enum member_input_kind kind)
{
    struct post *post = calloc(1, sizeof *post);

    if (post == NULL)
        return NULL;
    arena_init(&post->arena, 0);
    post->input.kind = kind;
    post->input.left_ms = -1;
    return post;
}

void post_free(struct post *post)
{
    if (post == NULL)
        return;
    arena_free(&post->arena);
    free(post);
}

enum muster_status post_put(struct agent *agent, struct post *post, struct muster_error *err)
{
    uint64_t limit;

    if (post == NULL)
        return error_set(err, MUSTER_E_NOMEM, "no memory to tell the node's thread; free some");
    limit = post->input.kind == MEMBER_NOTICE ? POSTS_OF_ANYBODY_MAX : AGENT_POSTS_MAX;
    if (agent->posted - agent->consumed >= limit) {
        post_free(post);
        return error_set(err, MUSTER_E_BUSY,
                         "%llu messages wait for the node's thread already; call less often",
                         (unsigned long long)(agent->posted - agent->consumed));
    }
    if (agent->last_post != NULL)
        agent->last_post->next = post;
    else
        agent->first_post = post;
    agent->last_post = post;
    agent->posted++;
    agent_wake(agent);
    return MUSTER_OK;
}

bool post_put_patiently(struct agent *agent, post_make_fn *make, const void *arg)
{
    struct agent_patience patience = {.deaf = true};
    int64_t until_ms = clock_ms(CLOCK_MONOTONIC) + MEMORY_PATIENCE_MS;

    while (!agent->faulted && !agent->over) {
        enum muster_status status = post_put(agent, make(agent, arg), NULL);

        if (status == MUSTER_OK)
            return true;
        if (status == MUSTER_E_BUSY) /* the agent's thread is there: its bound is agent_wait's */
            until_ms = clock_ms(CLOCK_MONOTONIC) + MEMORY_PATIENCE_MS;
        if (clock_ms(CLOCK_MONOTONIC) >= until_ms ||
            agent_wait(agent, &patience, POST_LOOK_MS, NULL) != MUSTER_OK)
            return false;
    }
    return false;
}

/* Without its path a manifest is not told of: NULL then, too. */
static struct post *post_writer(struct agent *agent, const void *arg)
{
    const struct writer_result *result = arg;
    struct post *post = post_new(result->deleted               ? MEMBER_DELETED
                                 : result->status == MUSTER_OK ? MEMBER_MANIFEST_WRITTEN
                                                               : MEMBER_MANIFEST_FAILED);

    (void)agent;
    if (post == NULL)
        return NULL;
    post->input.checkpoint = result->checkpoint;
    post->input.code = result->status;
    post->input.text =
        arena_strdup(&post->arena, result->status == MUSTER_OK ? result->path : result->text);
    if (post->input.text == NULL) {
        post_free(post);
        return NULL;
    }
    return post;
}

void agent_writer_done(const struct writer_result *result, void *arg)
{
    struct agent *agent = arg;

    pthread_mutex_lock(&agent->mutex);
    if (result->deleted)
        agent_note_deletion(agent, result); /* before the broker hears of it, and a sweep ends */
    if (!post_put_patiently(agent, post_writer, result) && !agent->over) {
        if (result->deleted)
            member_deletion_lost(agent->core, result->checkpoint); /* the broker asks again */
        else
            agent_fault(agent, NO_MEMORY_TO_TELL); /* no manifest would follow this one */
    }
    pthread_mutex_unlock(&agent->mutex);
}

/* With the mutex free while it is asked: what a host does in there must not hold up the agent's
 * thread. */
static bool post_ask_interrupted(struct agent *agent)
{
    bool (*ask)(void *arg) = agent->options.hooks.interrupted;
    bool yes;

    if (ask == NULL || agent->interrupted)
        return agent->interrupted;
    pthread_mutex_unlock(&agent->mutex);
    yes = ask(agent->options.hooks.arg);
    pthread_mutex_lock(&agent->mutex);
    agent->interrupted |= yes;
    agent->hurries |= yes;
    return agent->interrupted;
}

bool agent_is_interrupted(struct agent *agent)
{
    bool interrupted;

    pthread_mutex_lock(&agent->mutex);
    interrupted = post_ask_interrupted(agent);
    pthread_mutex_unlock(&agent->mutex);
    return interrupted;
}

/* Asked after a wait, so that no change between the question and the wait is missed. */
static enum muster_status post_look_for_interrupt(struct agent *agent,
                                                  struct agent_patience *patience,
                                                  struct muster_error *err)
{
    const int64_t now_ms = clock_ms(CLOCK_MONOTONIC);

    if (patience->deaf || agent->options.hooks.interrupted == NULL)
        return MUSTER_OK;
    if (now_ms - patience->asked_ms < INTERRUPT_MS && !agent->interrupted)
        return MUSTER_OK;
    patience->asked_ms = now_ms;
    if (!post_ask_interrupted(agent))
        return MUSTER_OK;
    return error_set(err, MUSTER_E_INTERRUPTED, "rank %llu was interrupted while it waited",
                     (unsigned long long)agent->options.save.rank);
}

static int64_t post_sleep_of(const struct agent *agent, const struct agent_patience *patience,
                             int64_t limit_ms)
{
    const int64_t most_ms =
        agent->options.hooks.interrupted != NULL && !patience->deaf ? INTERRUPT_MS : 1000;

    return limit_ms < 1 ? 1 : limit_ms < most_ms ? limit_ms : most_ms;
}

enum muster_status agent_wait(struct agent *agent, struct agent_patience *patience,
                              int64_t limit_ms, struct muster_error *err)
{
    int64_t sleep_ms = post_sleep_of(agent, patience, limit_ms);
    int64_t until_ms = clock_ms(CLOCK_MONOTONIC) + sleep_ms;
    struct timespec until = {.tv_sec = until_ms / 1000, .tv_nsec = until_ms % 1000 * 1000000L};

    if (patience->asked_ms == 0)
        patience->asked_ms = clock_ms(CLOCK_MONOTONIC); /* what is short asks nobody */
    if (patience->passes != agent->passes) {
        patience->passes = agent->passes;
        patience->idle_ms = 0;
    }
    if (agent->interrupted && !patience->deaf)
        return post_look_for_interrupt(agent, patience, err);
    if (pthread_cond_timedwait(&agent->changed, &agent->mutex, &until) != ETIMEDOUT)
        return post_look_for_interrupt(agent, patience, err);
    patience->idle_ms += sleep_ms;
    if (patience->passes != agent->passes || patience->idle_ms < AGENT_STUCK_MS)
        return post_look_for_interrupt(agent, patience, err);
    return error_set(err, MUSTER_E_FAULT,
                     "the node's thread has not come round for %d s; look for a callback "
                     "(termination_watcher_fn, on_error, log) that blocks",
                     AGENT_STUCK_MS / 1000);
}

enum muster_status agent_wait_fed(struct agent *agent, struct muster_error *err)
{
    struct agent_patience patience = {0};
    uint64_t until = agent->posted;
    enum muster_status status = MUSTER_OK;

    while (agent->consumed < until && status == MUSTER_OK)
        status = agent_wait(agent, &patience, INT64_MAX, err);
    return status;
}
