/* manager_save - the boundary after a manager's step: whether the step is saved, the save, and how
 * it went. */
#include "client/manager/manager_private.h"
#include "client/node/options_take.h"

#include "node/clock.h"
#include "schema/error.h"
#include "schema/manifest/metrics.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define WISH_AGAIN_MS 200        /* a broker that opened no round is asked again ... */
#define WISH_UNANSWERED_MS 10000 /* ... and one that did not answer */

/* --- which step ------------------------------------------------------------------------------- */

/* Is it committed? On record, not by what this process remembers. */
static enum muster_status manager_save_exists(struct muster_manager *m, int64_t step,
                                              bool *ret_exists, struct muster_error *err)
{
    enum muster_status status = manager_read_list(m, err);

    if (status == MUSTER_OK)
        *ret_exists = manager_list_find(&m->list, step) != NULL;
    return status;
}

static enum muster_status manager_save_refuse_passed(struct muster_manager *m, const char *call,
                                                     int64_t step, struct muster_error *err)
{
    bool there = false;
    enum muster_status status = manager_save_exists(m, step, &there, err);

    if (status != MUSTER_OK)
        return status;
    if (there)
        return error_set(err, MUSTER_E_EXISTS,
                         "%s: step %lld is saved already; it stays as it is, nothing was written",
                         call, (long long)step);
    return error_set(err, MUSTER_E_ARGUMENT,
                     "%s: step %lld goes backwards, step %lld was the last one; steps only go "
                     "forward, restore to go back",
                     call, (long long)step, (long long)m->passed);
}

/* MUSTER_OK: it is the next one, or the last one once more (then *ret_again). */
static enum muster_status manager_save_check_step(struct muster_manager *m, const char *call,
                                                  int64_t step, bool *ret_again,
                                                  struct muster_error *err)
{
    if (step < 0 || step > INT64_MAX / 4)
        return error_set(err, MUSTER_E_ARGUMENT, "%s: step is %lld; steps are 0 to 2^61 - 1", call,
                         (long long)step);
    *ret_again = step == m->passed;
    if (step == m->passed + 1 || *ret_again || (m->fresh && step > m->passed))
        return MUSTER_OK;
    if (step < m->passed)
        return manager_save_refuse_passed(m, call, step, err);
    return error_set(err, MUSTER_E_ARGUMENT,
                     "%s: step %lld comes after %lld, some are left out; call it after every step, "
                     "with a policy that says which are saved",
                     call, (long long)step, (long long)m->passed);
}

/* --- the boundary ----------------------------------------------------------------------------- */

static enum muster_status manager_save_end_step(struct muster_manager *m, int64_t step,
                                                const struct agent_end *end, bool *ret_saves,
                                                struct muster_error *err)
{
    struct agent_ended ended;
    int64_t began_ms = clock_ms(CLOCK_MONOTONIC);
    enum muster_status status = node_end_step(m->node, end, &ended, err);

    if (m->node->local != NULL && end->want && !end->ask) /* also one that failed is over */
        alone_pace_saved(&m->alone, began_ms, clock_ms(CLOCK_MONOTONIC) - began_ms);
    *ret_saves = ended.saves || ended.committed || (!end->ask && ended.round != 0);
    if (muster_node_total_run_calls(m->node) == step + 1) { /* also when the save there failed */
        m->fresh = false;
        m->passed = step;
        m->asked = end->ask && *ret_saves ? step : -1;
    }
    if (*ret_saves)
        m->wished = -1; /* this is what the function wanted, or newer */
    if (ended.committed)
        m->latest = step;
    if (!end->ask && status == MUSTER_OK && ended.round != 0)
        manager_outcome_add(m, ended.round, step);
    if (!end->ask && ended.saves && (status == MUSTER_PREEMPTED || m->node->local != NULL))
        m->latest = step;
    return status;
}

/* --- saving ----------------------------------------------------------------------------------- */

static enum muster_status manager_save_check_request(const struct muster_manager *m,
                                                     const struct muster_save_request *r,
                                                     struct muster_error *err)
{
    if (r->state != NULL &&
        (m->node_options.termination.save_fn != NULL || m->node_options.snapshot_fn != NULL))
        return error_set(
            err, MUSTER_E_ARGUMENT,
            "muster_manager_save: a state is given, but the node has a save_fn or a "
            "snapshot_fn, which say by themselves what is saved; leave one of them out");
    if (r->epoch < -1 || r->step_in_epoch < -1 || r->data_position < -1)
        return error_set(err, MUSTER_E_ARGUMENT,
                         "muster_manager_save: epoch (%lld), step_in_epoch (%lld) or data_position "
                         "(%lld) is negative; -1 is not told",
                         (long long)r->epoch, (long long)r->step_in_epoch,
                         (long long)r->data_position);
    return r->state != NULL && m->node->layout == LAYOUT_REPLICATED
               ? state_refuse_own(r->state, MUSTER_E_ARGUMENT, err)
               : MUSTER_OK;
}

/* As one JSON object. */
static bool manager_save_is_named_before(const struct muster_save_request *r, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (strcmp(r->metrics[i].name, r->metrics[index].name) == 0)
            return true;
    return false;
}

static enum muster_status manager_save_metrics_text(const struct muster_manager *m,
                                                    const struct muster_save_request *r,
                                                    char ret_text[METRICS_BYTES_MAX + 1],
                                                    struct muster_error *err)
{
    char number[METRIC_NUMBER_SIZE];
    size_t used = 0;

    if (r->metrics_count == 0)
        return MUSTER_OK;
    if (r->metrics == NULL)
        return error_set(err, MUSTER_E_ARGUMENT,
                         "muster_manager_save: metrics is NULL and has a count");
    for (size_t i = 0; i < r->metrics_count; i++) {
        const struct muster_metric *metric = &r->metrics[i];

        if (metric->name == NULL || !metric_name_ok(metric->name))
            return error_set(err, MUSTER_E_ARGUMENT,
                             "muster_manager_save: metrics[%zu] has no name of 1 to %d letters, "
                             "digits and . _ - /",
                             i, METRIC_NAME_MAX);
        if (manager_save_is_named_before(r, i))
            return error_set(err, MUSTER_E_ARGUMENT,
                             "muster_manager_save: metrics[%zu] is a second \"%s\"; give each once",
                             i, metric->name);
        if (!isfinite(metric->value)) { /* a loss that diverged is no reason to lose the save */
            node_log(m->node, 1, "metric %s is no finite number and is left out", metric->name);
            continue;
        }
        if (used + METRIC_NAME_MAX + 40 > METRICS_BYTES_MAX)
            return error_set(err, MUSTER_E_ARGUMENT,
                             "muster_manager_save: the metrics are more than %d bytes",
                             METRICS_BYTES_MAX);
        metrics_number(metric->value, number);
        used += (size_t)snprintf(ret_text + used, METRICS_BYTES_MAX + 1 - used, "%s\"%s\":%s",
                                 used == 0 ? "{" : ",", metric->name, number);
    }
    if (used > 0)
        memcpy(ret_text + used, "}", 2);
    return MUSTER_OK;
}

/* Asks the broker to open a round now. Its step is the first that all ranks can still save: this
 * one or one of the next. If it cannot open one, the wish stays, and is sent again. */
static void manager_save_tell_wish(struct muster_manager *m, int64_t step)
{
    const struct wire_msg wish = {.type = WIRE_SAVE_WISH, .u.save_wish = {.step = step + 1}};
    struct muster_error why = {.text = "the broker opens no round now: earlier saves are being "
                                       "written or have just failed, or a rank is missing"};
    enum muster_status status = MUSTER_E_BROKER;
    uint64_t round = 0;

    if (clock_ms(CLOCK_MONOTONIC) < m->wish_again_ms)
        return;
    if (agent_hears_broker(m->node->agent))
        status = agent_ask(m->node->agent, &wish, FREEZE_MS, &round, &why);
    else
        error_set(&why, status, "no broker is heard");
    if (status == MUSTER_OK && round > 0) {
        m->wished = -1;
        agent_wait_round(m->node->agent, round, FREEZE_MS);
        return;
    }
    /* nobody is to train at the pace of answers that do not come */
    m->wish_again_ms = clock_ms(CLOCK_MONOTONIC) +
                       (status == MUSTER_E_TIMEOUT ? WISH_UNANSWERED_MS : WISH_AGAIN_MS);
    if (step == m->wished)
        node_log(m->node, 1, "a function wants step %lld saved, and that save waits: %s",
                 (long long)step, why.text);
}

/* Calls the chief's own functions. True: this step is to be saved by a process without a broker. */
static bool manager_save_ask_functions(struct muster_manager *m, int64_t step)
{
    if (m->rank != 0 || m->rules.functions_count == 0)
        return false;
    if (m->node->agent == NULL)
        return step_rules_ask(&m->rules, step);
    if (step_rules_ask(&m->rules, step) && m->wished < 0)
        m->wished = step;
    if (m->wished >= 0)
        manager_save_tell_wish(m, step);
    return false;
}

static bool manager_save_policies_want(struct muster_manager *m, int64_t step)
{
    bool first =
        m->fresh || (m->node->local != NULL && m->latest < 0); /* with a broker that knows */

    manager_keep_tell_again(m);
    return step_rules_want(&m->rules, step, first) || manager_save_ask_functions(m, step) ||
           manager_keep_alone_due(m);
}

/* Step `step` has ended before, so its boundary may be passed. Only a forced save has work left. */
static enum muster_status save_again(struct muster_manager *m, int64_t step, bool force,
                                     struct muster_error *err)
{
    bool there = false;
    enum muster_status status;

    if (m->asked == step)
        return MUSTER_OK;
    if (step > m->latest && !force)
        return MUSTER_OK;
    if (manager_outcome_is_open(m, step))
        return error_set(err, MUSTER_E_EXISTS,
                         "muster_manager_save: step %lld is being saved already", (long long)step);
    status = manager_save_exists(m, step, &there, err);
    if (status != MUSTER_OK)
        return status;
    if (there)
        return manager_save_refuse_passed(m, "muster_manager_save", step, err);
    if (!force || m->node->agent == NULL || agent_unbegin(m->node->agent))
        return MUSTER_OK;
    return error_set(err, MUSTER_E_BUSY,
                     "muster_manager_save: step %lld is over for the job, a later step is being "
                     "saved; nothing was done",
                     (long long)step);
}

/* The state that is saved at the step that ends here; NULL: the node's own. */
static void manager_save_give_state(struct muster_manager *m, const muster_state_t *state)
{
    if (m->node->agent != NULL)
        agent_give_state(m->node->agent, state);
    else
        local_give_state(m->node->local, state);
}

/* Metrics and metadata of the state, for the save that writes it: this call, or a round that meets
 * it here. */
static enum muster_status manager_save_tell_facts(struct muster_manager *m,
                                                  const struct muster_save_request *r,
                                                  struct muster_error *err)
{
    char metrics[METRICS_BYTES_MAX + 1] = "";
    enum muster_status status = manager_save_metrics_text(m, r, metrics, err);

    if (status != MUSTER_OK)
        return status;
    manager_save_give_state(m, r->state);
    muster_node_set_position(m->node, r->epoch, r->step_in_epoch, r->data_position);
    if (m->node->agent != NULL)
        return agent_set_facts(m->node->agent, metrics, r->custom_metadata, err);
    return local_set_facts(m->node->local, metrics, r->custom_metadata, err);
}

/* A notice may make a save the job's last after this rank has captured. Ranks that capture it later
 * leave with it, so this rank does, too: in one step more it would wait for them for ever. */
static enum muster_status manager_save_leave(struct muster_manager *m, struct muster_error *err)
{
    const struct agent_end end = {.done = m->passed + 1};
    struct agent_ended ended;

    return muster_manager_reached_preemption(m, m->passed)
               ? node_end_step(m->node, &end, &ended, err)
               : MUSTER_OK;
}

/* The state at this step is captured, here or by those who save it for all. Without save_behind it
 * is committed, or not, before this returns. A save before it that was under way still: its failure
 * is told now, to every rank alike. */
static enum muster_status manager_save_finish(struct muster_manager *m, bool *ret_saved,
                                              struct muster_error *err)
{
    bool own = m->pending_count > 0 && m->pending[m->pending_count - 1].step == m->passed;
    size_t before = m->pending_count - own;
    int64_t until_ms = clock_ms(CLOCK_MONOTONIC) + m->save_timeout_ms;
    struct muster_error why, left;
    enum muster_status earlier = manager_outcome_await(m, 0, before, until_ms, &why);
    enum muster_status status = MUSTER_OK;

    if (!m->behind && own)
        status = manager_outcome_await(m, m->pending_count - 1, 1, until_ms, err);
    *ret_saved = status == MUSTER_OK;
    if (status == MUSTER_OK && m->node->local != NULL &&
        manager_keep_sweep(m, false, &left) != MUSTER_OK)
        node_log(m->node, 1, "step %lld is saved; %s", (long long)m->passed, left.text);
    if (status == MUSTER_OK && !m->behind && own)
        status = manager_save_leave(m, err);
    if (status == MUSTER_OK && earlier != MUSTER_OK && err != NULL)
        *err = why;
    return status != MUSTER_OK ? status : earlier;
}

static enum muster_status save_here(struct muster_manager *m, int64_t step,
                                    const struct muster_save_request *r, bool want, bool *ret_saved,
                                    struct muster_error *err)
{
    const struct agent_end end = {
        .done = step + 1, .want = want, .awaits = !m->behind, .call_arg = r->call_arg};
    bool saves = false, was_asked = m->asked == step;
    enum muster_status status = manager_save_tell_facts(m, r, err);

    if (status != MUSTER_OK)
        return status;
    status = manager_save_end_step(m, step, &end, &saves, err);
    *ret_saved = saves && status == MUSTER_PREEMPTED;
    if (status != MUSTER_OK && status != MUSTER_PREEMPTED)
        m->failed = step;
    if (status != MUSTER_OK)
        return status;
    if (saves)
        return manager_save_finish(m, ret_saved, err);
    if (was_asked || r->force)
        m->failed = step;
    if (was_asked || r->force)
        return error_set(err, MUSTER_E_ABORTED,
                         "muster_manager_save: step %lld was not saved: the save was not agreed or "
                         "its round is over; `muster events` says why, training may go on",
                         (long long)step);
    return MUSTER_OK;
}

enum muster_status muster_manager_save(muster_manager_t *manager, int64_t step,
                                       const struct muster_save_request *request, bool *ret_saved,
                                       struct muster_error *ret_error)
{
    struct muster_save_request own = MUSTER_SAVE_REQUEST_INIT;
    const struct muster_save_request *r = &own;
    struct muster_error why;
    enum muster_status status = manager_need_node(manager, "muster_manager_save", &why);
    bool again = false, saved = false, want;

    if (ret_saved != NULL)
        *ret_saved = false;
    if (status == MUSTER_OK && request != NULL)
        status = save_request_take(request, &own, &why);
    if (status == MUSTER_OK)
        status = manager_save_check_request(manager, r, &why);
    if (status == MUSTER_OK)
        status = manager_save_check_step(manager, "muster_manager_save", step, &again, &why);
    if (status == MUSTER_OK && again)
        status = save_again(manager, step, r->force, &why);
    if (status != MUSTER_OK)
        return error_pass(ret_error, status, &why);
    if (again && !r->force && manager->asked != step) /* what goes with the step, once more */
        status = manager_save_tell_facts(manager, r, &why);
    want = r->force || (!again && manager_save_policies_want(manager, step));
    if (manager->asked == step &&
        manager->latest >= step) { /* others saved it before this rank asked */
        manager->asked = -1;
        status = manager_save_finish(manager, &saved, &why);
    } else if (!again || r->force || manager->asked == step)
        status = save_here(manager, step, r, want || manager->asked == step, &saved, &why);
    if (ret_saved != NULL)
        *ret_saved = saved;
    return error_pass(ret_error, status, &why);
}

/* The boundary after step `step`, for a caller that saves by itself between this and
 * muster_manager_save. */
static enum muster_status manager_save_ask(struct muster_manager *manager, const char *call,
                                           int64_t step, bool force, bool *ret_saves,
                                           struct muster_error *err)
{
    struct agent_end end = {.done = step + 1, .ask = true};
    enum muster_status status = manager_need_node(manager, call, err);
    bool again = false;

    if (status != MUSTER_OK)
        return status;
    *ret_saves = false;
    if (step >= 0 && step < manager->passed) /* at or below the latest, or passed */
        return MUSTER_OK;
    status = manager_save_check_step(manager, call, step, &again, err);
    if (status != MUSTER_OK)
        return status;
    *ret_saves = manager->asked == step;
    if (again)
        return MUSTER_OK;
    end.want = manager_save_policies_want(manager, step) || force;
    manager_save_give_state(manager, NULL); /* that of the step before is not borrowed any more */
    return manager_save_end_step(manager, step, &end, ret_saves, err);
}

enum muster_status muster_manager_should_save(muster_manager_t *manager, int64_t step,
                                              bool *ret_should_save, struct muster_error *ret_error)
{
    bool saves = false;
    enum muster_status status =
        manager_save_ask(manager, "muster_manager_should_save", step, false, &saves, ret_error);

    if (ret_should_save != NULL && status == MUSTER_OK)
        *ret_should_save = saves;
    return status;
}

enum muster_status muster_manager_begin_save(muster_manager_t *manager, int64_t step,
                                             bool *ret_begun, struct muster_error *ret_error)
{
    bool saves = false;
    enum muster_status status =
        manager_save_ask(manager, "muster_manager_begin_save", step, true, &saves, ret_error);

    if (ret_begun != NULL && status == MUSTER_OK)
        *ret_begun = saves;
    return status;
}

/* --- waiting ---------------------------------------------------------------------------------- */

enum muster_status muster_manager_wait_until_finished(muster_manager_t *manager, int64_t timeout_ms,
                                                      struct muster_error *ret_error)
{
    int64_t until_ms, left_ms;
    enum muster_status status;

    if (manager_is_gone(manager))
        return manager_refuse(manager, "muster_manager_wait_until_finished", ret_error);
    if (timeout_ms < -1)
        return error_set(
            ret_error, MUSTER_E_ARGUMENT,
            "muster_manager_wait_until_finished: timeout_ms is %lld; give 0 or more, or "
            "-1",
            (long long)timeout_ms);
    if (manager->node == NULL)
        return MUSTER_OK;
    if (timeout_ms < 0)
        timeout_ms = manager->save_timeout_ms;
    until_ms = timeout_ms > INT64_MAX / 4 ? INT64_MAX : clock_ms(CLOCK_MONOTONIC) + timeout_ms;
    status = manager_outcome_await(manager, 0, manager->pending_count, until_ms, ret_error);
    left_ms = until_ms - clock_ms(CLOCK_MONOTONIC);
    if (status == MUSTER_OK && manager->node->agent != NULL && left_ms > 0)
        agent_wait_in_place(manager->node->agent,
                            left_ms < MANIFEST_WAIT_MS ? left_ms : MANIFEST_WAIT_MS);
    return status;
}

enum muster_status muster_manager_check_for_errors(muster_manager_t *manager,
                                                   struct muster_error *ret_error)
{
    struct muster_error why;
    enum muster_status status;

    if (manager_is_gone(manager))
        return manager_refuse(manager, "muster_manager_check_for_errors", ret_error);
    if (manager->node == NULL)
        return MUSTER_OK;
    status = manager_outcome_await(manager, 0, manager->pending_count, 0, &why);
    if (status == MUSTER_OK || status == MUSTER_E_TIMEOUT)
        return manager_keep_failure(manager, ret_error);
    return error_pass(ret_error, status, &why);
}

bool muster_manager_is_saving_in_progress(muster_manager_t *manager)
{
    struct member_view view;

    if (manager_is_gone(manager) || manager->node == NULL || manager->node->agent == NULL)
        return false;
    agent_view(manager->node->agent, &view);
    for (size_t i = 0; i < MEMBER_OUTCOMES_MAX; i++)
        if (view.outcomes[i].state == OUTCOME_OPEN)
            return true;
    return false;
}

bool muster_manager_reached_preemption(muster_manager_t *manager, int64_t step)
{
    struct member_view view;

    if (manager_is_gone(manager) || manager->node == NULL || step < 0)
        return false;
    if (manager->node->agent == NULL)
        return muster_node_reached_preemption(manager->node, step);
    agent_view(manager->node->agent, &view);
    if (view.mode == VIEW_END)
        return view.leave_restart && step + 1 >= view.end.step;
    return view.termination && view.step >= 0 && step + 1 == view.step;
}
