/* manager_outcome - how a manager's saves went. A save is pending until its end is known: a commit
 * is noted, and a failure is returned by one call. A save that a call stops waiting for stays
 * pending. */
#include "client/manager/manager_private.h"

#include "node/clock.h"
#include "schema/error.h"

#include <string.h>

void manager_outcome_add(struct muster_manager *m, uint64_t round, int64_t step)
{
    if (m->pending_count == MEMBER_OUTCOMES_MAX) { /* the node forgets the oldest as well */
        memmove(m->pending, m->pending + 1, (MEMBER_OUTCOMES_MAX - 1) * sizeof *m->pending);
        m->pending_count--;
    }
    m->pending[m->pending_count++] = (struct manager_pending){round, step};
}

static void manager_outcome_settle(struct muster_manager *m, size_t index)
{
    m->pending_count--;
    memmove(m->pending + index, m->pending + index + 1,
            (m->pending_count - index) * sizeof *m->pending);
}

static enum muster_status manager_outcome_failed_save(const struct member_outcome *outcome,
                                                      struct muster_error *err)
{
    enum muster_status status = outcome->code > 0 && outcome->code < MUSTER_STATUS_COUNT
                                    ? (enum muster_status)outcome->code
                                    : MUSTER_E_ABORTED;

    const char *text = outcome->text[0] != '\0' ? outcome->text : muster_status_sentence(status);

    error_set(err, status, "step %lld was not saved (round %llu): %.2000s%s",
              (long long)outcome->step - 1, (unsigned long long)outcome->round, text,
              strstr(text, "untouched") != NULL ? "" : "; earlier checkpoints are untouched");
    if (err != NULL)
        err->rank = outcome->rank;
    return status;
}

static enum muster_status manager_outcome_await_one(struct muster_manager *m,
                                                    const struct manager_pending *save,
                                                    struct agent_outcome_wait *wait,
                                                    struct member_outcome *ret_outcome,
                                                    struct muster_error *err)
{
    struct agent *agent = m->node->agent;
    enum muster_status status = agent_wait_outcome(agent, save->round, wait, ret_outcome, err);

    if (ret_outcome->step < 0) /* the node has forgotten it */
        ret_outcome->step = save->step + 1;
    if (status != MUSTER_E_TIMEOUT)
        return status;
    if (wait->silence_ms > 0 && !agent_hears_broker(agent))
        return error_set(err, status,
                         "no broker is heard to commit the save of step %lld (round %llu): unless "
                         "that was done before, it is given up, and the next launch begins from "
                         "the checkpoint before it; start musterd with its database again",
                         (long long)save->step, (unsigned long long)save->round);
    return error_set(err, status,
                     "the save of step %lld (round %llu) is still being written or agreed, and the "
                     "longest wait for it is over; %s",
                     (long long)save->step, (unsigned long long)save->round,
                     agent_why_waits(agent));
}

static enum muster_status manager_outcome_await_all(struct muster_manager *m, size_t first,
                                                    size_t count, struct agent_outcome_wait *wait,
                                                    bool *ret_failed, struct muster_error *err)
{
    enum muster_status told = MUSTER_OK, late = MUSTER_OK;
    struct muster_error late_why = {.status = MUSTER_OK}, why;

    for (; count > 0 && m->node->agent != NULL && late != MUSTER_E_INTERRUPTED; count--) {
        struct member_outcome outcome;
        enum muster_status status =
            manager_outcome_await_one(m, &m->pending[first], wait, &outcome, &why);

        if (status == MUSTER_OK && outcome.state == OUTCOME_COMMITTED) {
            if (outcome.step - 1 > m->latest)
                m->latest = outcome.step - 1;
            manager_outcome_settle(m, first);
        } else if (status == MUSTER_OK && told == MUSTER_OK) {
            told = manager_outcome_failed_save(&outcome, err);
            if (outcome.step - 1 > m->failed)
                m->failed = outcome.step - 1;
            manager_outcome_settle(m, first);
        } else { /* its time is over, or another was told of: the next call tells of it */
            if (late == MUSTER_OK && status != MUSTER_OK) {
                late = status;
                late_why = why;
            }
            first++;
        }
    }
    node_note_interrupt(m->node, late);
    *ret_failed = told != MUSTER_OK;
    return *ret_failed ? told : error_pass(err, late, &late_why);
}

enum muster_status manager_outcome_await(struct muster_manager *m, size_t first, size_t count,
                                         int64_t until_ms, struct muster_error *err)
{
    struct agent_outcome_wait wait = {.until_ms = until_ms};
    bool failed;

    return manager_outcome_await_all(m, first, count, &wait, &failed, err);
}

/* The first failure is returned, the others are in the log. */
static void manager_outcome_tell(struct muster_manager *m, const struct muster_error *why,
                                 enum muster_status *told, struct muster_error *err)
{
    if (*told != MUSTER_OK) {
        node_log(m->node, 1, "%s", why->text);
        return;
    }
    *told = why->status;
    if (err != NULL)
        *err = *why;
}

/* A program that is done waits for a broker that is slow or starts again, but not for one that is
 * gone. */
enum muster_status manager_outcome_end(struct muster_manager *m, struct muster_error *err)
{
    struct agent_outcome_wait wait = {.until_ms = clock_ms(CLOCK_MONOTONIC) + m->save_timeout_ms,
                                      .silence_ms = m->silence_ms};
    enum muster_status told = MUSTER_OK;
    bool failed = true;

    if (m->node->interrupted && m->pending_count > 0) /* who broke that wait off wants to go */
        return error_set(err, MUSTER_E_INTERRUPTED,
                         "the save of step %lld was under way, and is not waited for: it counts "
                         "if every rank wrote its part",
                         (long long)m->pending[m->pending_count - 1].step);
    while (failed) { /* then another one may have, too */
        struct muster_error why;
        enum muster_status status =
            manager_outcome_await_all(m, 0, m->pending_count, &wait, &failed, &why);

        if (status != MUSTER_OK)
            manager_outcome_tell(m, &why, &told, err);
    }
    return told;
}

bool manager_outcome_is_open(const struct muster_manager *m, int64_t step)
{
    struct member_outcome outcome;

    for (size_t i = 0; i < m->pending_count && m->node->agent != NULL; i++)
        if (m->pending[i].step == step &&
            agent_outcome(m->node->agent, m->pending[i].round, &outcome))
            return outcome.state == OUTCOME_OPEN;
    return false;
}
