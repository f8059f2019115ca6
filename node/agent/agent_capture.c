/* agent_capture - the training thread at its save step: it saves, or takes a snapshot that another
 * thread writes. Mutex held; it is free while the disk or the user's functions are waited for. */
#include "node/agent/agent_state.h"

#include "node/clock.h"
#include "schema/error.h"

#include <errno.h>

#define LONG_WAIT_MS 1000   /* for the save before: said in the log */
#define POST_PATIENCE_MS 50 /* a full queue is looked at again */

static void capture_remember_round(struct agent *agent, const struct member_view *view)
{
    agent->opened[agent->opened_count++ % AGENT_ROUNDS_MAX] = (struct opened_round){
        .generation = view->generation, .round = view->round, .nonce = view->round_nonce};
}

static struct post *capture_saved_post(struct agent *agent, const struct behind_result *result)
{
    const struct save_order *order = result->order;
    const struct shard_files *files = result->files;
    struct post *post = post_new(MEMBER_SAVED);
    struct wire_file *copies;

    if (post == NULL)
        return NULL;
    copies = arena_alloc(&post->arena, (files->count + 1) * sizeof *copies);
    for (size_t i = 0; copies != NULL && i < files->count; i++) {
        copies[i].path = arena_strdup(&post->arena, files->files[i].path);
        copies[i].bytes = files->files[i].bytes;
        copies[i].checksum = arena_strdup(&post->arena, files->files[i].checksum);
        if (copies[i].path == NULL || copies[i].checksum == NULL)
            copies = NULL;
    }
    if (copies == NULL) {
        post_free(post);
        return NULL;
    }
    post->input.files = copies;
    post->input.files_count = files->count;
    post->input.bytes = files->bytes;
    post->input.save_ms = result->save_ms > 0 ? (uint64_t)result->save_ms : 0;
    post->input.blocked_ms = result->blocked_ms > 0 ? (uint64_t)result->blocked_ms : 0;
    post->input.epoch = order->epoch;
    post->input.step_in_epoch = order->step_in_epoch;
    post->input.data_position = order->data_position;
    post->input.held = result->held;
    post->input.waited_ms = order->waited_ms > 0 ? (uint64_t)order->waited_ms : 0;
    agent_facts_into(agent, post);
    post->input.round = order->round;
    post->input.step = order->step;
    return post;
}

static struct post *capture_failed_post(const struct save_order *order,
                                        const struct muster_error *why)
{
    struct post *post = post_new(MEMBER_SAVE_FAILED);

    if (post == NULL)
        return NULL;
    post->input.round = order->round;
    post->input.step = order->step;
    /* a full disk is told apart: another round would fill it again */
    post->input.code = why->code == ENOSPC || why->code == EDQUOT ? MUSTER_E_STORAGE : why->status;
    post->input.text = arena_strdup(&post->arena, why->text);
    return post;
}

static struct post *capture_result_post(struct agent *agent, const void *arg)
{
    const struct behind_result *result = arg;

    return result->status == MUSTER_OK ? capture_saved_post(agent, result)
                                       : capture_failed_post(result->order, result->why);
}

/* The round's directory is written to no more. */
static void capture_writing_ended(struct agent *agent, const struct save_order *order)
{
    agent->saving_round = 0;
    if (!agent->discard_waits)
        return;
    agent->discard_waits = false;
    agent_discard(agent, order->generation, order->round);
}

/* A save that comes too late is still reported; the core drops it. If it were not, the core would
 * stay at its save step, and the other ranks would wait until the broker's bound. */
static void capture_tell_result(struct agent *agent, const struct behind_result *result)
{
    if (!post_put_patiently(agent, capture_result_post, result) && !agent->over)
        agent_fault(agent, NO_MEMORY_TO_TELL);
}

static bool capture_asks(void *agent)
{
    return agent_is_interrupted(agent);
}

/* Mutex held. From here on, long work asks the program, as the waits do. A node that leaves asks
 * nobody: its state is that of its last step, and no later save makes up for this one. */
static struct interrupt *capture_begin_asking(struct agent *agent, bool leaving)
{
    bool asked = agent->options.hooks.interrupted != NULL && !leaving;

    agent->interrupt = (struct interrupt){
        .ask = asked ? capture_asks : NULL, .arg = agent, .said = agent->interrupted && !leaving};
    return &agent->interrupt;
}

static enum muster_status capture_save_now(struct agent *agent, struct save_order *order,
                                           bool leaving, struct muster_error *err)
{
    struct shard_files files = {0};
    struct muster_error why = {.status = MUSTER_OK};
    struct behind_result result = {
        .order = order, .files = &files, .why = &why, .held = agent->awaits_commit};
    int64_t began_ms;

    order->watch = &agent->foreground;
    atomic_store(&agent->foreground.stop, false);
    agent->foreground.interrupt = capture_begin_asking(agent, leaving);
    pthread_mutex_unlock(&agent->mutex);
    began_ms = order->turn_ms > 0 ? order->turn_ms : clock_ms(CLOCK_MONOTONIC);
    result.status = save_shard(&agent->options.save, order, &files, &why);
    result.save_ms = result.blocked_ms = clock_ms(CLOCK_MONOTONIC) - began_ms;
    pthread_mutex_lock(&agent->mutex);
    capture_writing_ended(agent, order);
    capture_tell_result(agent, &result);
    shard_files_clear(&files);
    if (result.status != MUSTER_OK && agent->interrupt.said)
        return error_set(err, MUSTER_E_INTERRUPTED, "%s", why.text);
    return agent_wait_fed(agent, err); /* after a fault the view says it */
}

/* A program may count its bytes from 0 again, for its snapshot and then for its save. That is
 * progress, too. */
void agent_set_save_progress(struct agent *agent, uint64_t bytes)
{
    uint64_t before = atomic_exchange(&agent->told_bytes, bytes);

    atomic_fetch_add(&agent->told_in_all, bytes >= before ? bytes - before : bytes);
}

uint64_t agent_saving_bytes(struct agent *agent)
{
    uint64_t bytes = atomic_load(&agent->foreground.bytes) + atomic_load(&agent->told_in_all);

    return bytes + (agent->behind != NULL ? behind_bytes(agent->behind) : 0);
}

/* Nothing is being written now. The broker waits for a save as long as it comes further: what the
 * one before came to would be taken for the beginning of this one. */
static void capture_progress_from_zero(struct agent *agent)
{
    atomic_store(&agent->foreground.bytes, 0);
    if (agent->behind != NULL)
        behind_begin(agent->behind);
    atomic_store(&agent->told_bytes, 0);
    atomic_store(&agent->told_in_all, 0);
}

/* As its user counts: a manager's steps are indexes. */
static long long agent_capture_shown_step(const struct agent *agent, int64_t done)
{
    return (long long)done + agent->options.save.names.offset;
}

/* --- behind ----------------------------------------------------------------------------------- */

void agent_behind_done(const struct behind_result *result, void *arg)
{
    struct agent *agent = arg;

    pthread_mutex_lock(&agent->mutex);
    if (agent->over) { /* it was left behind: its round failed with this node's leaving */
        pthread_mutex_unlock(&agent->mutex);
        return;
    }
    if (result->status != MUSTER_OK)
        agent_log(agent, 2, "the save of step %lld failed in the background: %s",
                  agent_capture_shown_step(agent, result->order->step), result->why->text);
    capture_writing_ended(agent, result->order);
    capture_tell_result(agent, result);
    pthread_cond_broadcast(&agent->changed);
    pthread_mutex_unlock(&agent->mutex);
}

/* One is written at a time: the next save waits for the one before, in its own round's time. */
static enum muster_status capture_await_behind(struct agent *agent, struct save_order *order,
                                               struct muster_error *err)
{
    int64_t began_ms = clock_ms(CLOCK_MONOTONIC), waited_ms;
    struct agent_patience patience = {0};
    enum muster_status status = MUSTER_OK;

    while (status == MUSTER_OK && agent->behind != NULL && behind_is_busy(agent->behind) &&
           agent->view.mode == VIEW_CAPTURE && agent->view.round == order->round)
        status = agent_wait(agent, &patience, POST_PATIENCE_MS, err);
    waited_ms = clock_ms(CLOCK_MONOTONIC) - began_ms;
    order->waited_ms = waited_ms;
    if (waited_ms > LONG_WAIT_MS)
        agent_log(agent, 1,
                  "the save of step %lld waited %lld ms until the one before it was written; save "
                  "less often, or to a faster disk",
                  agent_capture_shown_step(agent, order->step), (long long)waited_ms);
    return status;
}

/* True: taken, and written from now on. False: the thread has to save it itself. */
static bool capture_save_behind(struct agent *agent, const struct save_order *order, bool *ret_over)
{
    struct muster_error why = {.status = MUSTER_OK};
    enum muster_status status;
    struct post *post;

    struct interrupt *interrupt = capture_begin_asking(agent, false);

    pthread_mutex_unlock(&agent->mutex);
    status = behind_take(agent->behind, order, interrupt, &why);
    post = status == MUSTER_OK ? post_new(MEMBER_CAPTURED) : NULL;
    pthread_mutex_lock(&agent->mutex);
    *ret_over = agent->view.mode != VIEW_CAPTURE || agent->view.round != order->round;
    if (post != NULL) {
        post->input.round = order->round;
        post->input.step = order->step;
    }
    if (*ret_over || status != MUSTER_OK || post_put(agent, post, &why) != MUSTER_OK) {
        if (*ret_over)
            post_free(post);
        else if (!interrupt->said) /* that save breaks off at once */
            agent_log(agent, 1, "step %lld is saved in the foreground: %s",
                      agent_capture_shown_step(agent, order->step), why.text);
        behind_drop(agent->behind);
        return false;
    }
    behind_start(agent->behind);
    return true;
}

static struct save_order capture_order_of_view(const struct agent *agent)
{
    return (struct save_order){.generation = agent->view.generation,
                               .round = agent->view.round,
                               .nonce = agent->view.round_nonce,
                               .step = agent->view.step,
                               .strong = agent->view.broker_signs,
                               .first = atomic_load(&agent->commit_step) == 0};
}

static bool capture_is_to(const struct agent *agent, uint64_t round)
{
    return agent->view.mode == VIEW_CAPTURE && agent->view.round == round;
}

/* From here on the broker counts the time of a save. */
static void capture_begin_saving(struct agent *agent, const struct save_order *order)
{
    capture_progress_from_zero(agent);
    agent->saving_round = order->round;
    capture_remember_round(agent, &agent->view);
}

/* --- the caller's turn ------------------------------------------------------------------------ */

/* "" if the program did not say. */
static void capture_ask_why(const struct agent *agent, char ret_text[SAVE_WHY_SIZE])
{
    const struct save_target *target = &agent->options.save;

    ret_text[0] = '\0';
    if (target->why != NULL)
        target->why(ret_text, target->hook_arg);
}

enum muster_status agent_turn(struct agent *agent, struct muster_error *err)
{
    struct save_order order = capture_order_of_view(agent);
    char why[SAVE_WHY_SIZE];
    enum muster_status status = capture_await_behind(agent, &order, err);

    if (status != MUSTER_OK || !capture_is_to(agent, order.round))
        return status;
    order.turn_ms = clock_ms(CLOCK_MONOTONIC);
    capture_begin_saving(agent, &order);
    agent->turn = order;
    capture_ask_why(agent, why); /* what it said of a save before */
    return MUSTER_OK;
}

void agent_turn_beside(struct agent *agent)
{
    agent->turn = capture_order_of_view(agent);
    agent->captured_round = agent->turn.round;
}

static void capture_tell_unsaved(struct agent *agent, const struct save_order *order, bool failed,
                                 const char *text)
{
    struct muster_error why;
    struct behind_result result = {.order = order, .why = &why, .status = MUSTER_E_SAVE};
    long long step = agent_capture_shown_step(agent, order->step);

    if (text[0] != '\0')
        error_set(&why, MUSTER_E_SAVE, "the program could not save step %lld: %s", step, text);
    else if (failed)
        error_set(&why, MUSTER_E_SAVE, "the program failed while it saved step %lld", step);
    else
        error_set(&why, MUSTER_E_SAVE,
                  "the program was told to save step %lld and went on without it", step);
    agent->captured_round = order->round;
    capture_tell_result(agent, &result);
}

void agent_turn_ended(struct agent *agent, struct visit *visit)
{
    const struct save_order order = agent->turn;
    bool here = !visit->failed && gate_done(agent->gate) == order.step;
    char why[SAVE_WHY_SIZE] = "";

    if (order.round == 0)
        return;
    if (!here || visit->leaving)
        capture_ask_why(agent, why);
    visit->unsaved = visit->leaving && why[0] != '\0';
    if (agent->captured_round == order.round) { /* it writes nothing */
        if (here) {
            visit->save_round = order.round;
            agent->gate->due = INT64_MAX; /* what is wanted here is saved by others */
        }
        if (!here || !visit->ask)
            agent->turn.round = 0;
        return;
    }
    if (capture_is_to(agent, order.round)) {
        if (here && !visit->unsaved)
            return; /* it is saved now, or asked for once more */
        capture_tell_unsaved(agent, &order, visit->failed, why);
    }
    agent->turn.round = 0;
    capture_writing_ended(agent, &order);
}

/* --- capturing -------------------------------------------------------------------------------- */

enum muster_status agent_capture(struct agent *agent, const struct visit *visit,
                                 struct muster_error *err)
{
    bool turn = agent->turn.round != 0 && agent->turn.round == agent->view.round, over = false;
    struct save_order order = turn ? agent->turn : capture_order_of_view(agent);
    enum muster_status status = MUSTER_OK;

    order.epoch = agent->epoch;
    order.step_in_epoch = agent->step_in_epoch;
    order.data_position = agent->data_position;
    order.call_arg = visit->call_arg;
    order.state = agent->given_state;

    if (!agent->view.writer) {
        agent->captured_round = order.round;
        return MUSTER_OK;
    }
    if (!turn)
        status = capture_await_behind(agent, &order, err);
    if (status != MUSTER_OK || !capture_is_to(agent, order.round))
        return status; /* aborted meanwhile: the boundary looks again */
    agent->captured_round = order.round;
    agent->turn.round = 0;
    if (!turn)
        capture_begin_saving(agent, &order);
    agent_facts_take(agent);
    if (agent->behind != NULL && !visit->leaving && !agent->view.termination) {
        if (capture_save_behind(agent, &order, &over))
            return agent_wait_fed(agent, err);
        if (over) {
            capture_writing_ended(agent, &order);
            return MUSTER_OK;
        }
    }
    return capture_save_now(agent, &order, visit->leaving, err);
}

void agent_end_behind(struct agent *agent)
{
    int64_t until_ms = clock_ms(CLOCK_MONOTONIC) + agent_last_wait_ms(agent, AGENT_CLOSE_MS);
    struct agent_patience patience = {.deaf = true};

    if (agent->behind == NULL || agent->behind_left || !behind_is_busy(agent->behind))
        return;
    behind_stop(agent->behind);
    while (behind_is_busy(agent->behind)) { /* the process ends next: better without a race */
        int64_t left_ms = until_ms - clock_ms(CLOCK_MONOTONIC);

        if (left_ms <= 0) {
            agent->behind_left = true;
            agent_log(agent, 1,
                      "the save of round %llu does not end: it is left unfinished and does not "
                      "count; look at the disk, or at save_fn",
                      (unsigned long long)agent->saving_round);
            return;
        }
        (void)agent_wait(agent, &patience, left_ms < POST_PATIENCE_MS ? left_ms : POST_PATIENCE_MS,
                         NULL);
    }
}

/* --- asked from outside ----------------------------------------------------------------------- */

/* Mutex held. True on every rank, whether it writes or not, if its save is captured and neither
 * committed nor aborted yet. */
static bool capture_is_saving(struct agent *agent)
{
    if (agent->behind != NULL && behind_is_busy(agent->behind))
        return true;
    for (size_t i = 0; i < MEMBER_OUTCOMES_MAX; i++)
        if (agent->view.outcomes[i].state == OUTCOME_OPEN)
            return true;
    return false;
}

bool agent_is_saving(struct agent *agent)
{
    bool saving;

    pthread_mutex_lock(&agent->mutex);
    saving = capture_is_saving(agent);
    pthread_mutex_unlock(&agent->mutex);
    return saving;
}

/* Mutex held. The oldest failure that nobody was told of; each is told once. */
static enum muster_status capture_tell_failure(struct agent *agent, struct muster_error *err)
{
    const struct member_outcome *first = NULL;
    enum muster_status status;

    for (size_t i = 0; i < MEMBER_OUTCOMES_MAX; i++) {
        const struct member_outcome *outcome = &agent->view.outcomes[i];

        if ((outcome->state == OUTCOME_ABORTED || outcome->state == OUTCOME_UNKNOWN) &&
            outcome->round > agent->told_round && (first == NULL || outcome->round < first->round))
            first = outcome;
    }
    if (first == NULL)
        return MUSTER_OK;
    agent->told_round = first->round;
    status = first->code > 0 ? (enum muster_status)first->code : MUSTER_E_ABORTED;
    error_set(err, status,
              "the save of step %lld was not committed: %s; earlier checkpoints are untouched",
              agent_capture_shown_step(agent, first->step), first->text);
    if (err != NULL) {
        err->rank = first->rank;
        err->step = first->step;
    }
    return status;
}

enum muster_status agent_wait_saved(struct agent *agent, int64_t timeout_ms,
                                    struct muster_error *err)
{
    int64_t until_ms = clock_ms(CLOCK_MONOTONIC) + timeout_ms, left_ms = timeout_ms;
    struct agent_patience patience = {0};
    enum muster_status status = MUSTER_OK;

    pthread_mutex_lock(&agent->mutex);
    while (status == MUSTER_OK && capture_is_saving(agent) && left_ms > 0 &&
           agent->view.mode != VIEW_END) {
        status = agent_wait(agent, &patience,
                            left_ms < POST_PATIENCE_MS ? left_ms : POST_PATIENCE_MS, err);
        left_ms = until_ms - clock_ms(CLOCK_MONOTONIC);
    }
    if (status == MUSTER_OK && capture_is_saving(agent) && left_ms <= 0)
        status = error_set(err, MUSTER_E_TIMEOUT,
                           "a save is still being written or agreed after %lld ms; %s",
                           (long long)timeout_ms, agent_why_waits(agent));
    else if (status == MUSTER_OK)
        status = capture_tell_failure(agent, err);
    pthread_mutex_unlock(&agent->mutex);
    return status;
}
