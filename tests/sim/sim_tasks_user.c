/* sim_tasks_user - the user's thread of a world of tasks: everything that coordinator.h offers, at
 * random. */
#include "tests/sim/sim_tasks_private.h"

#include "schema/error.h"

#include <string.h>

#define BLOCKS_AT SIM_TASKS_BLOCKS_AT

/* Up to so many. After an attach the same calls in the same order find them again. */
void sim_tasks_make_per_worker(size_t from, size_t count)
{
    struct muster_error err;

    for (size_t i = from; i < count; i++) {
        sim_tasks_call_begins(-1);
        if (muster_coordinator_create_per_worker(w.coordinator, "make", "x", 1, &w.per_worker[i],
                                                 &err) != MUSTER_OK)
            fail_msg("%s", err.text);
        sim_tasks_call_ended();
    }
    w.per_worker_count = count;
}

/* --- tasks ------------------------------------------------------------------------------------ */

/* A call returned an error, not of its own time: it is a task's, which is over now. */
static void raised(enum muster_status status, const struct muster_error *err)
{
    if (status == MUSTER_E_UNAVAILABLE) {
        sim_tasks_check_unavailable(err);
        return;
    }
    INSIST(status == MUSTER_E_TASK || status == MUSTER_E_LOST || status == MUSTER_E_INPUT ||
               status == MUSTER_E_TASK_TIMEOUT,
           "raised: %.200s", err->text);
    INSIST(err->task > 0 && err->task <= muster_coordinator_scheduled(w.coordinator),
           "raised, and of no task: %.200s", err->text);
    w.stats->raised++;
    w.stats->timeouts += status == MUSTER_E_TASK_TIMEOUT;
    sim_tasks_check_nothing_runs();
}

/* How long the next call may take. */
static int64_t patience_ms(void)
{
    static const int64_t some[] = {-1, -1, 0, 300};

    return w.users_count > 0 ? some[sim_tasks_below(4)] : w.blocks ? -1 : 0;
}

/* Of its own time a call says so by a status that no task has; without a limit it never does. */
static bool is_error(enum muster_status status)
{
    return status != MUSTER_OK && (w.me->timeout_ms < 0 || status != MUSTER_E_TIMEOUT);
}

static void schedule_one(void)
{
    struct muster_call call = MUSTER_CALL_INIT;
    muster_remote_value_t *value = NULL;
    struct muster_error err;
    enum muster_status status;

    call.function = "work";
    call.args = sim_tasks_below(w.broken == SIM_TASKS_BLAMES ? 8 : 40) != 0 ? "w"
                : w.poison                                                  ? "p"
                                                                            : "f";
    call.args_size = 1;
    if (w.broken == SIM_TASKS_SOUND) {
        call.per_worker = w.per_worker;
        call.per_worker_count =
            sim_tasks_below(3) > 0 ? 0 : 1 + sim_tasks_below(w.per_worker_count);
        call.timeout_ms = sim_tasks_below(6) == 0 ? SIM_TASKS_LIMIT_MS : 0;
        if (call.timeout_ms > 0 && sim_tasks_below(10) == 0 && !w.poison)
            call.args = "s";
    }
    sim_tasks_call_begins(patience_ms());
    w.to_schedule--; /* nobody else's, while this one waits */
    status = muster_coordinator_schedule(w.coordinator, &call, w.me->timeout_ms, &value, &err);
    w.to_schedule += status != MUSTER_OK;
    w.stats->unavailable_schedule += status == MUSTER_E_UNAVAILABLE;
    sim_tasks_call_ended();
    if (status == MUSTER_OK) {
        sim_tasks_check_available();
        w.stats->tasks++;
        INSIST(!w.blocks || w.coordinator->scheduled - w.coordinator->ended <= BLOCKS_AT,
               "%llu tasks of a queue of %d have not ended",
               (unsigned long long)(w.coordinator->scheduled - w.coordinator->ended), BLOCKS_AT);
        w.values[muster_remote_value_id(value)] = value;
        w.owner[muster_remote_value_id(value)] = (size_t)(w.me - w.users);
    } else if (is_error(status)) {
        raised(status, &err);
    }
}

static enum muster_status join_one(struct muster_error *err)
{
    enum muster_status status;

    sim_tasks_call_begins(patience_ms());
    status = muster_coordinator_join(w.coordinator, w.me->timeout_ms, err);
    w.stats->unavailable_join += status == MUSTER_E_UNAVAILABLE;
    return status;
}

/* It does not wait, but for what an error waits for. */
static enum muster_status ask_done(bool *ret_done, struct muster_error *err)
{
    enum muster_status status;

    sim_tasks_call_begins(DONE_WAIT_MS);
    w.me->waits = true;
    status = muster_coordinator_done(w.coordinator, ret_done, err);
    w.stats->unavailable_done += status == MUSTER_E_UNAVAILABLE;
    INSIST(status != MUSTER_E_TIMEOUT, "done waited in vain: %.150s", err->text);
    return status;
}

/* True: all has ended. */
static bool look(void)
{
    struct muster_error err;
    enum muster_status status;
    bool done = true;

    status = sim_tasks_below(4) > 0 ? join_one(&err) : ask_done(&done, &err);
    sim_tasks_call_ended();
    if (is_error(status))
        raised(status, &err);
    if (status == MUSTER_OK && !w.coordinator->raising) /* an error goes before, for a later call */
        sim_tasks_check_available();
    return status == MUSTER_OK && done && w.to_schedule == 0;
}

static bool all_known(void)
{
    for (size_t i = 0; i < NUMBERS_MAX; i++)
        if (w.values[i] != NULL && w.values[i]->state == TASK_QUEUED)
            return false;
    return true;
}

/* --- values ----------------------------------------------------------------------------------- */

static void check_result(uint64_t number, const uint8_t *result, size_t size)
{
    uint64_t said[3] = {0}; /* number, attempt, who */

    INSIST(size >= sizeof said, "the result of task %llu has %zu bytes", (unsigned long long)number,
           size);
    memcpy(said, result, sizeof said);
    INSIST(said[0] == number, "task %llu has the result of %llu", (unsigned long long)number,
           (unsigned long long)said[0]);
    INSIST(size == sim_tasks_result_size(number, said[1]),
           "the result of task %llu, attempt %llu, has %zu bytes", (unsigned long long)number,
           (unsigned long long)said[1], size);
    for (size_t i = sizeof said; i < size; i++)
        INSIST(result[i] == (uint8_t)said[2],
               "the result of task %llu is of attempt %llu, and of another from byte %zu on",
               (unsigned long long)number, (unsigned long long)said[1], i);
}

static void fetch_one(muster_remote_value_t *value)
{
    const void *result;
    struct muster_error err;
    enum muster_status status;
    size_t size;

    sim_tasks_call_begins(patience_ms());
    w.me->waits = true; /* a moment, for what the broker has */
    status = muster_remote_value_fetch(value, w.me->timeout_ms, &result, &size, &err);
    sim_tasks_call_ended();
    if (status != MUSTER_OK)
        return;
    w.stats->fetched++;
    check_result(muster_remote_value_id(value), result, size);
}

static void fetch_to_the_end(uint64_t number)
{
    enum muster_status status = MUSTER_E_TIMEOUT;
    struct muster_error err;
    const void *result;
    size_t size;

    w.me->waits = true;
    for (int i = 0; i < 2000 && status == MUSTER_E_TIMEOUT; i++)
        status = muster_remote_value_fetch(w.values[number], 0, &result, &size, &err);
    w.me->waits = false;
    INSIST(status == MUSTER_OK, "the result of task %llu: %.200s", (unsigned long long)number,
           err.text);
    check_result(number, result, size);
}

void sim_tasks_fetch_long_results(void)
{
    for (uint64_t number = 16; number < NUMBERS_MAX; number += 16)
        if (w.values[number] != NULL && w.values[number]->state == TASK_DONE)
            fetch_to_the_end(number);
}

static void look_at_a_value(void)
{
    uint64_t scheduled = muster_coordinator_scheduled(w.coordinator);
    uint64_t newest = sim_tasks_below(scheduled < 8 ? scheduled + 1 : 8);
    uint64_t number =
        sim_tasks_below(2) == 0 ? scheduled - newest : 1 + sim_tasks_below(scheduled + 1);
    struct muster_remote_value *value = w.values[number % NUMBERS_MAX];
    struct muster_error err;

    if (value == NULL || (w.me->is_thread && w.owner[number] != (size_t)(w.me - w.users)))
        return;
    switch (sim_tasks_below(8)) {
    case 0:
    case 3:
        w.stats->cancels++;
        assert_int_equal(muster_remote_value_cancel(value, &err), MUSTER_OK);
        break;
    case 1:
    case 2: /* the task goes on */
        w.stats->freed++;
        w.freed[number] = true;
        muster_remote_value_free(&w.values[number]);
        muster_coordinator_release(w.coordinator);
        break;
    default:
        fetch_one(value);
    }
}

static void make_another(void)
{
    if (w.broken == SIM_TASKS_SOUND && w.per_worker_count < PER_WORKER)
        sim_tasks_make_per_worker(w.per_worker_count, w.per_worker_count + 1);
}

bool sim_tasks_user_passes(void)
{
    if (sim_tasks_one_in(200))
        make_another(); /* while workers have tasks */
    if (w.to_schedule > 0 && sim_tasks_below(20) == 0)
        schedule_one();
    if (w.broken == SIM_TASKS_SOUND && sim_tasks_below(60) == 0)
        look_at_a_value();
    return sim_tasks_below(40) == 0 && look() && all_known();
}

/* One of several, each time that it has thought: one makes the per-worker values, lest two make the
 * same number. */
bool sim_tasks_thread_passes(void)
{
    uint64_t die = sim_tasks_below(20);

    if (die == 0 && w.me == w.users && w.faults)
        make_another();
    if (die < 10 && w.to_schedule > 0)
        schedule_one();
    else if (die < 15)
        look_at_a_value();
    else
        return look() && all_known();
    return false;
}
