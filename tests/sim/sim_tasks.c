#include "tests/sim/sim_tasks_private.h"

#include "schema/error.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct sim_tasks_world sim_tasks_world;

static uint64_t next_random(void)
{
    uint64_t z = w.random += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint64_t sim_tasks_below(uint64_t count)
{
    return next_random() % count;
}

/* Of so many steps of the world one, on average. */
bool sim_tasks_one_in(uint64_t count)
{
    return w.faults && sim_tasks_below(count) == 0;
}

/* A control has failed, as it must or otherwise. */
void sim_tasks_expected(const char *text)
{
    if (w.expected == NULL)
        return;
    scratch_remove(w.dir);
    fflush(stderr);
    fprintf(stderr, "seed %llu, broken %d: %s\n", (unsigned long long)w.seed, (int)w.broken, text);
    _exit(strstr(text, w.expected) != NULL ? CAUGHT : 1);
}

/* --- the coordinator ----------------------------------------------------------------------------- */

static void others_pass(void);

/* muster_coordinator_open waits for the answer: the world goes on meanwhile. */
enum muster_status task_link_start(struct task_link *link, struct muster_error *err)
{
    struct muster_coordinator *c = link->owner.arg;

    (void)err;
    w.links[WORKERS] = link;
    for (int i = 0; i < 5000 && !c->ever_opened; i++) {
        others_pass();
        sim_tasks_link_turns(link);
        w.now += STEP_MS;
    }
    return MUSTER_OK;
}

static void coordinator_begins(bool fresh)
{
    struct muster_coordinator_options options = MUSTER_COORDINATOR_OPTIONS_INIT;
    struct muster_error err;

    options.fresh = fresh;
    options.max_queued = w.blocks ? 6 : 0;
    options.broker_timeout_ms = INT32_MAX;
    if (muster_coordinator_open(&options, &w.coordinator, &err) != MUSTER_OK)
        fail_msg("%s", err.text);
    for (uint64_t number = 1; number <= muster_coordinator_scheduled(w.coordinator); number++)
        assert_int_equal(muster_coordinator_value(w.coordinator, number, &w.values[number], &err),
                         MUSTER_OK);
}

static void coordinator_dies(void)
{
    w.coordinator->stale = true; /* so that nothing is handed over */
    muster_coordinator_close(&w.coordinator);
    for (size_t i = 0; i < NUMBERS_MAX; i++)
        muster_remote_value_free(&w.values[i]);
}

static void schedule_one(void)
{
    struct muster_call call = MUSTER_CALL_INIT;
    muster_remote_value_t *value = NULL;
    struct muster_error err;
    enum muster_status status;

    call.function = "work";
    call.args = sim_tasks_below(40) == 0 ? "f" : "w";
    call.args_size = 1;
    w.waiting = w.blocks;
    status = muster_coordinator_schedule(w.coordinator, &call, w.blocks ? -1 : 0, &value, &err);
    w.waiting = false;
    if (status == MUSTER_OK) {
        w.to_schedule--;
        w.stats->tasks++;
        w.values[muster_remote_value_id(value)] = value;
    } else if (status != MUSTER_E_TIMEOUT) {
        w.stats->raised++;
        sim_tasks_check_nothing_runs();
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

    if (status != MUSTER_OK && status != MUSTER_E_TIMEOUT) {
        INSIST(status == MUSTER_E_TASK || status == MUSTER_E_LOST, "join: %.200s", err.text);
        w.stats->raised++;
        sim_tasks_check_nothing_runs();
    }
    return status == MUSTER_OK && w.to_schedule == 0;
}

static void others_pass(void)
{
    sim_tasks_broker_passes();
    for (size_t i = 0; i < WORKERS; i++)
        sim_tasks_process_passes(i);
}

static bool all_known(void)
{
    for (size_t i = 0; i < NUMBERS_MAX; i++)
        if (w.values[i] != NULL && w.values[i]->state == TASK_QUEUED)
            return false;
    return true;
}

void sim_tasks_time_passes(void)
{
    others_pass();
    sim_tasks_link_turns(w.links[WORKERS]);
    if (sim_tasks_one_in(3000))
        sim_tasks_reconnect(w.links[WORKERS]);
    w.now += STEP_MS;
    if (w.now >= FAULTS_UNTIL_MS)
        w.faults = false;
    INSIST(w.now < FAULTS_UNTIL_MS + QUIET_MS, "not all tasks have ended: %llu of %llu",
           (unsigned long long)w.coordinator->ended, (unsigned long long)w.coordinator->scheduled);
}

static bool world_passes(void)
{
    bool over = false;

    sim_tasks_time_passes();
    if (sim_tasks_one_in(6000)) {
        w.stats->attaches++;
        coordinator_dies();
        coordinator_begins(false);
    }
    if (w.to_schedule > 0 && sim_tasks_below(20) == 0)
        schedule_one();
    if (sim_tasks_below(40) == 0)
        over = look() && all_known();
    return over && !w.faults;
}

/* --- the end ------------------------------------------------------------------------------------- */

static void check_result(const struct muster_remote_value *value)
{
    uint64_t number = 0;

    w.stats->done += value->state == TASK_DONE;
    w.stats->failed += value->state == TASK_FAILED;
    w.stats->cancelled += value->state == TASK_CANCELLED;
    if (value->state != TASK_DONE || value->have < sizeof number)
        return;
    memcpy(&number, value->result, sizeof number);
    INSIST(number == value->number, "task %llu has the result of %llu",
           (unsigned long long)value->number, (unsigned long long)number);
}

static void clean_up(void)
{
    sim_tasks_check_rows();
    coordinator_dies();
    w.faults = false;
    for (size_t i = 0; i < WORKERS; i++)
        if (w.processes[i].worker != NULL)
            sim_tasks_worker_dies(i);
    core_destroy(&w.core);
    sim_tasks_drop_frames(0);
    actions_free(&w.out);
    store_close(&w.store);
    scratch_remove(w.dir);
}

static void run(uint64_t seed, enum sim_tasks_break how, const char *expected,
                struct sim_tasks_stats *stats)
{
    const struct store_options options = {.allow_network_fs = true};
    struct muster_error err;

    memset(&w, 0, sizeof w);
    w.broken = how;
    w.expected = expected;
    w.blocks = seed % 2 == 0;
    w.seed = w.random = seed;
    w.stats = stats;
    w.now = 1000000;
    w.to_schedule = TASKS;
    actions_init(&w.out);
    if (access("/dev/shm", W_OK) == 0) /* a disk's fsyncs would be most of the time */
        setenv("TMPDIR", "/dev/shm", 1);
    scratch_make(w.dir);
    if (store_open(scratch_path(w.dir, "muster.db"), &options, &w.store, &err) != MUSTER_OK)
        fail_msg("%s", err.text);
    sim_tasks_broker_starts();
    for (size_t i = 0; i < WORKERS; i++)
        sim_tasks_worker_begins(i);
    w.faults = how == SIM_TASKS_SOUND;
    coordinator_begins(true);
    while (w.now < FAULTS_UNTIL_MS)
        world_passes();
    while (!world_passes())
        continue;
    for (size_t i = 0; i < NUMBERS_MAX; i++)
        if (w.values[i] != NULL)
            check_result(w.values[i]);
    clean_up();
}

bool sim_tasks_fails(uint64_t seed, enum sim_tasks_break how, const char *words)
{
    struct sim_tasks_stats stats = {0};
    int status = 0;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        run(seed, how, words, &stats);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == CAUGHT));
    return WEXITSTATUS(status) == CAUGHT;
}

void sim_tasks_run(uint64_t seed, struct sim_tasks_stats *stats)
{
    run(seed, SIM_TASKS_SOUND, NULL, stats);
}

void sim_tasks_print(const struct sim_tasks_stats *stats)
{
    printf("%llu tasks, %llu attempts: %llu done, %llu failed, %llu cancelled; %llu errors raised; "
           "broker "
           "killed %llu times, workers %llu, left %llu, stopped %llu, cut %llu; %llu attaches, "
           "%llu frames lost; the database was checked %llu times\n",
           (unsigned long long)stats->tasks, (unsigned long long)stats->attempts,
           (unsigned long long)stats->done, (unsigned long long)stats->failed,
           (unsigned long long)stats->cancelled, (unsigned long long)stats->raised,
           (unsigned long long)stats->broker_kills, (unsigned long long)stats->worker_kills,
           (unsigned long long)stats->leaves, (unsigned long long)stats->pauses,
           (unsigned long long)stats->cuts, (unsigned long long)stats->attaches,
           (unsigned long long)stats->frames_lost, (unsigned long long)stats->checks);
}
