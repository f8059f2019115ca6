/* agent_manager - what a checkpoint manager asks of its node besides the plain boundary. The
 * manager says where a step ends, and that a save is wanted here. It asks before a save whether
 * there will be one, and afterwards how it ended. */
#include "node/agent/agent_state.h"

#include "node/clock.h"
#include "schema/error.h"

/* begun and done of the step that the caller says has ended; a want is remembered for the visit. */
static void agent_manager_end_here(struct agent *agent, const struct agent_end *end)
{
    int64_t begun;

    pthread_mutex_lock(&agent->mutex);
    begun = gate_begun(agent->gate);
    agent->awaits_commit = end->awaits;
    if (end->done != gate_done(agent->gate))
        gate_set(agent->gate, begun > end->done ? begun : end->done, end->done);
    if (end->want && role_is_trainer(agent->options.member.role))
        agent->gate->due = end->done;
    pthread_mutex_unlock(&agent->mutex);
}

static bool agent_manager_end_is_saved(const struct agent *agent, int64_t done)
{
    const struct member_view *view = &agent->view;

    return view->mode == VIEW_END && view->end.status == MUSTER_PREEMPTED && view->end.code == 0 &&
           view->end.step == done;
}

/* A rank that writes nothing may come to the save step when all is over. */
static bool agent_manager_is_on_disk(const struct agent *agent, int64_t done)
{
    for (size_t i = 0; i < MEMBER_COMMITS_MAX; i++)
        if (agent->view.committed[i] == done)
            return done > 0;
    return false;
}

/* It was heard of, and of so many saves since that it was forgotten. */
static bool agent_manager_may_be_forgotten(const struct agent *agent, int64_t done)
{
    for (size_t i = 0; i < MEMBER_COMMITS_MAX; i++)
        if (agent->view.committed[i] <= done)
            return false;
    return true;
}

/* The broker knows what every rank was told of that step: all are to be told alike. */
static bool agent_manager_broker_has_saved(struct agent *agent, int64_t done)
{
    const struct wire_msg question = {.type = WIRE_SAVE_AT, .u.save_at.step = done};
    struct muster_error why;
    uint64_t value;

    return agent_hears_broker(agent) &&
           agent_ask(agent, &question, FREEZE_MS, &value, &why) == MUSTER_E_EXISTS;
}

/* The newest round at that step that was aborted; 0 = none. The rank heard of it and of its abort
 * on its way to the step, or when it asked for the save, and all ranks are to be told alike. */
static uint64_t agent_manager_was_aborted(const struct agent *agent, int64_t done)
{
    uint64_t round = 0;

    for (size_t i = 0; i < MEMBER_OUTCOMES_MAX; i++) {
        const struct member_outcome *outcome = &agent->view.outcomes[i];

        if (outcome->state == OUTCOME_ABORTED && outcome->step == done && outcome->round > round)
            round = outcome->round;
    }
    return round;
}

enum muster_status agent_end_step(struct agent *agent, const struct agent_end *end,
                                  struct agent_ended *ret_ended, struct muster_error *err)
{
    struct visit visit = {.begin = true, .ask = end->ask, .call_arg = end->call_arg};
    enum muster_status status;
    bool unsure;

    agent_manager_end_here(agent, end);
    status = agent_stay(agent, &visit, err);
    pthread_mutex_lock(&agent->mutex);
    agent->gate->due = INT64_MAX; /* what was wanted here is over; an answer given stands */
    ret_ended->saves =
        status == MUSTER_OK ? visit.save_round != 0 : agent_manager_end_is_saved(agent, end->done);
    ret_ended->round = visit.save_round;
    ret_ended->committed =
        status == MUSTER_OK && !ret_ended->saves && agent_manager_is_on_disk(agent, end->done);
    if (status == MUSTER_OK && !ret_ended->saves && !ret_ended->committed)
        ret_ended->round = agent_manager_was_aborted(agent, end->done);
    unsure = status == MUSTER_OK && end->want && !ret_ended->saves && !ret_ended->committed &&
             ret_ended->round == 0 && agent_manager_may_be_forgotten(agent, end->done);
    pthread_mutex_unlock(&agent->mutex);
    if (unsure)
        ret_ended->committed = agent_manager_broker_has_saved(agent, end->done);
    return status;
}

bool agent_unbegin(struct agent *agent)
{
    bool open;

    pthread_mutex_lock(&agent->mutex);
    open = !gate_is_closed(agent->gate);
    if (open) {
        gate_close(agent->gate);
        gate_take_back(agent->gate);
        gate_open(agent->gate);
    }
    pthread_mutex_unlock(&agent->mutex);
    return open;
}

void agent_wait_round(struct agent *agent, uint64_t round, int64_t timeout_ms)
{
    int64_t until_ms = clock_ms(CLOCK_MONOTONIC) + timeout_ms, left_ms = timeout_ms;
    struct agent_patience patience = {0};

    pthread_mutex_lock(&agent->mutex);
    while (agent->view.round < round && agent->view.mode != VIEW_END && left_ms > 0 &&
           agent_wait(agent, &patience, left_ms, NULL) == MUSTER_OK)
        left_ms = until_ms - clock_ms(CLOCK_MONOTONIC);
    pthread_mutex_unlock(&agent->mutex);
}

static bool agent_manager_all_in_place(const struct member_view *view)
{
    for (size_t i = 0; i < MEMBER_OUTCOMES_MAX; i++)
        if (view->outcomes[i].state == OUTCOME_COMMITTED && !view->outcomes[i].in_place)
            return false;
    return true;
}

void agent_wait_in_place(struct agent *agent, int64_t timeout_ms)
{
    int64_t until_ms = clock_ms(CLOCK_MONOTONIC) + timeout_ms, left_ms = timeout_ms;
    struct agent_patience patience = {0};

    pthread_mutex_lock(&agent->mutex);
    while (!agent_manager_all_in_place(&agent->view) && agent->view.mode != VIEW_END &&
           left_ms > 0 && agent_wait(agent, &patience, left_ms, NULL) == MUSTER_OK)
        left_ms = until_ms - clock_ms(CLOCK_MONOTONIC);
    pthread_mutex_unlock(&agent->mutex);
}

/* Mutex held. A round that is not among the newest is not known any more. */
static bool agent_manager_look_up(const struct agent *agent, uint64_t round,
                                  struct member_outcome *ret_outcome)
{
    for (size_t i = 0; i < MEMBER_OUTCOMES_MAX; i++) {
        if (agent->view.outcomes[i].round != round || round == 0)
            continue;
        *ret_outcome = agent->view.outcomes[i];
        return true;
    }
    return false;
}

bool agent_outcome(struct agent *agent, uint64_t round, struct member_outcome *ret_outcome)
{
    bool found;

    pthread_mutex_lock(&agent->mutex);
    found = agent_manager_look_up(agent, round, ret_outcome);
    pthread_mutex_unlock(&agent->mutex);
    return found;
}

/* Mutex held. How long it may wait on; 0 = no longer. */
static int64_t agent_manager_outcome_left_ms(const struct agent *agent,
                                             struct agent_outcome_wait *wait)
{
    const int64_t now_ms = clock_ms(CLOCK_MONOTONIC);
    int64_t until_ms = wait->until_ms;

    if (agent_hears_broker(agent)) {
        wait->silent = false;
    } else if (wait->silence_ms > 0) {
        if (!wait->silent)
            wait->silent_from_ms = now_ms;
        wait->silent = true;
        if (agent->view.mode == VIEW_END)
            return 0; /* its own deadline, or nobody is left to agree with */
        if (wait->silent_from_ms + wait->silence_ms < until_ms)
            until_ms = wait->silent_from_ms + wait->silence_ms;
    }
    return now_ms < until_ms ? until_ms - now_ms : 0;
}

enum muster_status agent_wait_outcome(struct agent *agent, uint64_t round,
                                      struct agent_outcome_wait *wait,
                                      struct member_outcome *ret_outcome, struct muster_error *err)
{
    enum muster_status status = MUSTER_OK;
    int64_t left_ms;

    *ret_outcome = (struct member_outcome){.round = round, .step = -1, .state = OUTCOME_UNKNOWN};
    pthread_mutex_lock(&agent->mutex);
    while (agent_manager_look_up(agent, round, ret_outcome) && ret_outcome->state == OUTCOME_OPEN &&
           status == MUSTER_OK && (left_ms = agent_manager_outcome_left_ms(agent, wait)) > 0)
        status = agent_wait(agent, &wait->patience, left_ms, err);
    pthread_mutex_unlock(&agent->mutex);
    if (status != MUSTER_OK || ret_outcome->state != OUTCOME_OPEN)
        return status;
    return error_set(err, MUSTER_E_TIMEOUT,
                     "the save of step %lld (round %llu) is still being written or agreed; %s",
                     (long long)(ret_outcome->step + agent->options.save.names.offset),
                     (unsigned long long)round, agent_why_waits(agent));
}
