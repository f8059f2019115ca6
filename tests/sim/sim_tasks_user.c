/* sim_tasks_user - the user's thread of a world of tasks: everything that coordinator.h offers, at random. */
#include "tests/sim/sim_tasks_private.h"

#include "schema/error.h"

#include <string.h>

#define BLOCKS_AT 6 /* tasks that have not ended */

/* muster_coordinator_open waits for the answer: the world goes on meanwhile. */
enum muster_status task_link_start(struct task_link *link, struct muster_error *err)
{
    struct muster_coordinator *c = link->owner.arg;

    (void)err;
    w.links[WORKERS] = link;
    for (int i = 0; i < 5000 && !c->ever_opened; i++) {
        sim_tasks_others_pass();
        sim_tasks_link_turns(link);
        w.now += STEP_MS;
    }
    return MUSTER_OK;
}

/* --- attach and begin anew ----------------------------------------------------------------------- */

/* What a former coordinator scheduled is there, but what its user gave up. */
static void find_values(void)
{
    struct muster_error err;

    for (uint64_t number = 1; number <= muster_coordinator_scheduled(w.coordinator); number++) {
        enum muster_status status =
            muster_coordinator_value(w.coordinator, number, &w.values[number], &err);

        INSIST(status == MUSTER_OK || (status == MUSTER_E_NOT_FOUND && w.freed[number]),
               "after an attach: %.200s", err.text);
        if (w.freed[number])
            muster_remote_value_free(&w.values[number]);
    }
}

/* Up to so many. After an attach the same calls in the same order find them again. */
static void make_per_worker(size_t from, size_t count)
{
    struct muster_error err;

    for (size_t i = from; i < count; i++) {
        w.waiting = true;
        if (muster_coordinator_create_per_worker(w.coordinator, "make", "x", 1, &w.per_worker[i],
                                                 &err) != MUSTER_OK)
            fail_msg("%s", err.text);
        w.waiting = false;
    }
    w.per_worker_count = count;
}

void sim_tasks_coordinator_begins(bool fresh)
{
    struct muster_coordinator_options options = MUSTER_COORDINATOR_OPTIONS_INIT;
    struct muster_error err;

    options.fresh = fresh;
    options.max_queued = w.blocks ? BLOCKS_AT : 0;
    options.broker_timeout_ms = INT32_MAX;
    options.connect_timeout_ms = INT32_MAX;
    if (muster_coordinator_open(&options, &w.coordinator, &err) != MUSTER_OK)
        fail_msg("%s", err.text);
    INSIST(fresh || w.coordinator->queue == w.queue, "an attach found another queue");
    w.queue = w.coordinator->queue;
    if (fresh) {
        memset(w.began, 0, sizeof w.began);
        memset(w.begun, 0, sizeof w.begun);
        memset(w.excused, 0, sizeof w.excused);
        memset(w.poisoned, 0, sizeof w.poisoned);
        memset(w.ended, 0, sizeof w.ended);
        memset(w.freed, 0, sizeof w.freed);
    }
    find_values();
    if (w.broken == SIM_TASKS_SOUND)
        make_per_worker(0, fresh || w.per_worker_count == 0 ? 1 : w.per_worker_count);
}

void sim_tasks_coordinator_dies(void)
{
    w.coordinator->stale = true; /* so that nothing is handed over */
    muster_coordinator_close(&w.coordinator);
    for (size_t i = 0; i < NUMBERS_MAX; i++)
        muster_remote_value_free(&w.values[i]);
}

static void another_coordinator(void)
{
    bool fresh = w.seed % 5 == 0 && sim_tasks_below(2) == 0;

    sim_tasks_coordinator_dies();
    if (fresh)
        w.to_schedule += TASKS / 4;
    w.stats->attaches += !fresh;
    w.stats->fresh += fresh;
    sim_tasks_coordinator_begins(fresh);
}

/* --- tasks --------------------------------------------------------------------------------------- */

/* A call returned an error, not of its own time: it is a task's, which is over now. */
static void raised(enum muster_status status, const struct muster_error *err)
{
    INSIST(status == MUSTER_E_TASK || status == MUSTER_E_LOST || status == MUSTER_E_INPUT ||
               status == MUSTER_E_TASK_TIMEOUT,
           "raised: %.200s", err->text);
    INSIST(err->task > 0 && err->task <= muster_coordinator_scheduled(w.coordinator),
           "raised, and of no task: %.200s", err->text);
    w.stats->raised++;
    w.stats->timeouts += status == MUSTER_E_TASK_TIMEOUT;
    sim_tasks_check_nothing_runs();
}

/* Of its own time a call says so by a status that no task has; without a limit it never does. */
static bool is_error(enum muster_status status)
{
    return status != MUSTER_OK && (w.blocks || status != MUSTER_E_TIMEOUT);
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
    w.waiting = w.blocks;
    status = muster_coordinator_schedule(w.coordinator, &call, w.blocks ? -1 : 0, &value, &err);
    w.waiting = false;
    if (status == MUSTER_OK) {
        w.to_schedule--;
        w.stats->tasks++;
        INSIST(!w.blocks || w.coordinator->scheduled - w.coordinator->ended <= BLOCKS_AT,
               "%llu tasks of a queue of %d have not ended",
               (unsigned long long)(w.coordinator->scheduled - w.coordinator->ended), BLOCKS_AT);
        w.values[muster_remote_value_id(value)] = value;
    } else if (is_error(status)) {
        raised(status, &err);
    }
}

/* True: all has ended. */
static bool look(void)
{
    struct muster_error err;
    enum muster_status status;

    w.waiting = w.blocks;
    status = muster_coordinator_join(w.coordinator, w.blocks ? -1 : 0, &err);
    w.waiting = false;
    if (is_error(status))
        raised(status, &err);
    return status == MUSTER_OK && w.to_schedule == 0;
}

static bool all_known(void)
{
    for (size_t i = 0; i < NUMBERS_MAX; i++)
        if (w.values[i] != NULL && w.values[i]->state == TASK_QUEUED)
            return false;
    return true;
}

/* --- values -------------------------------------------------------------------------------------- */

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

    w.waiting = w.blocks;
    status = muster_remote_value_fetch(value, w.blocks ? -1 : 0, &result, &size, &err);
    w.waiting = false;
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

    for (int i = 0; i < 2000 && status == MUSTER_E_TIMEOUT; i++) {
        sim_tasks_time_passes();
        status = muster_remote_value_fetch(w.values[number], 0, &result, &size, &err);
    }
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

    if (value == NULL)
        return;
    switch (sim_tasks_below(8)) {
    case 0:
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

bool sim_tasks_user_passes(void)
{
    if (sim_tasks_one_in(1500))
        another_coordinator();
    if (w.broken == SIM_TASKS_SOUND && w.per_worker_count < PER_WORKER && sim_tasks_one_in(200))
        make_per_worker(w.per_worker_count, w.per_worker_count + 1); /* while workers have tasks */
    if (w.to_schedule > 0 && sim_tasks_below(20) == 0)
        schedule_one();
    if (w.broken == SIM_TASKS_SOUND && sim_tasks_below(60) == 0)
        look_at_a_value();
    return sim_tasks_below(40) == 0 && look() && all_known();
}
