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

/* cmocka knows of one thread. */
void sim_tasks_failed(const char *condition)
{
    if (w.me->is_thread)
        abort();
    fail_msg("%s", condition);
}

void sim_tasks_others_pass(void)
{
    sim_tasks_broker_passes();
    sim_tasks_servers_pass();
    for (size_t i = 0; i < WORKERS; i++)
        sim_tasks_process_passes(i);
}

void sim_tasks_time_passes(void)
{
    sim_tasks_others_pass();
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
    bool ended;

    sim_tasks_time_passes();
    if (w.users_count > 0) {
        ended = sim_tasks_users_pass();
    } else {
        sim_tasks_coordinator_passes();
        ended = sim_tasks_user_passes();
    }
    return ended && !w.faults;
}

/* --- the end ---------------------------------------------------------------------------------- */

static void count_ends(void)
{
    for (size_t i = 0; i < NUMBERS_MAX; i++) {
        const struct muster_remote_value *value = w.values[i];

        w.stats->done += value != NULL && value->state == TASK_DONE;
        w.stats->failed += value != NULL && value->state == TASK_FAILED;
        w.stats->cancelled += value != NULL && value->state == TASK_CANCELLED;
        if (value == NULL)
            continue;
        INSIST(value->state != TASK_DONE || w.began[i] > 0 || w.broken == SIM_TASKS_MIXES,
               "task %zu is done and was not begun", i);
        INSIST(!w.poison || value->state != TASK_FAILED || w.poisoned[i] > 0,
               "task %zu has failed for what another did: %.150s", i,
               value->text == NULL ? "" : value->text);
        INSIST(w.poisoned[i] <= 4, "task %zu ended %llu workers", i,
               (unsigned long long)w.poisoned[i]);
        INSIST(!w.poison || value->state != TASK_DONE || w.poisoned[i] == 0,
               "task %zu is done and ended its workers", i);
    }
}

static void clean_up(void)
{
    sim_tasks_check_rows();
    sim_tasks_coordinator_dies();
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

static bool has_servers(uint64_t seed, enum sim_tasks_break how)
{
    return how == SIM_TASKS_MUTE || how == SIM_TASKS_GRUDGES ||
           (how == SIM_TASKS_SOUND && seed % 3 == 1);
}

static bool has_threads(uint64_t seed, enum sim_tasks_break how)
{
    return how == SIM_TASKS_SLEEPS || (how == SIM_TASKS_SOUND && seed % 4 == 3);
}

static void run(uint64_t seed, enum sim_tasks_break how, bool poison, const char *expected,
                struct sim_tasks_stats *stats)
{
    const struct store_options options = {.allow_network_fs = true};
    struct muster_error err;

    memset(&w, 0, sizeof w);
    w.broken = how;
    w.poison = poison;
    w.expected = expected;
    w.me = &w.here;
    w.blocks = seed % 2 == 0;
    w.has_servers = has_servers(seed, how) && !poison;
    w.users_count = has_threads(seed, how) && !poison ? USERS : 0;
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
    w.faults = how == SIM_TASKS_SOUND && !poison;
    sim_tasks_coordinator_begins(true);
    sim_tasks_users_begin();
    while (w.now < FAULTS_UNTIL_MS)
        world_passes();
    while (!world_passes())
        continue;
    sim_tasks_users_end();
    count_ends();
    sim_tasks_fetch_long_results();
    clean_up();
}

bool sim_tasks_fails(uint64_t seed, enum sim_tasks_break how, const char *words)
{
    struct sim_tasks_stats stats = {0};
    int status = 0;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        run(seed, how, how == SIM_TASKS_BLAMES, words, &stats);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == CAUGHT));
    return WEXITSTATUS(status) == CAUGHT;
}

void sim_tasks_run(uint64_t seed, struct sim_tasks_stats *stats)
{
    run(seed, SIM_TASKS_SOUND, false, NULL, stats);
}

void sim_tasks_run_poisoned(uint64_t seed, struct sim_tasks_stats *stats)
{
    run(seed, SIM_TASKS_SOUND, true, NULL, stats);
}

void sim_tasks_print(const struct sim_tasks_stats *stats)
{
    const struct {
        const char *what;
        uint64_t count;
    } lines[] = {{"tasks", stats->tasks},
                 {"attempts", stats->attempts},
                 {"done", stats->done},
                 {"failed", stats->failed},
                 {"cancelled", stats->cancelled},
                 {"errors raised", stats->raised},
                 {"results fetched", stats->fetched},
                 {"per-worker values made", stats->values_made},
                 {"cancels asked for", stats->cancels},
                 {"errors of time raised", stats->timeouts},
                 {"broker kills", stats->broker_kills},
                 {"worker kills", stats->worker_kills},
                 {"workers left", stats->leaves},
                 {"workers stopped", stats->pauses},
                 {"workers preempted", stats->preempted},
                 {"workers ended by a task", stats->poisoned},
                 {"stale ends", stats->stale},
                 {"servers killed", stats->servers_killed},
                 {"servers preempted", stats->servers_preempted},
                 {"servers failed", stats->servers_failed},
                 {"servers finished", stats->servers_finished},
                 {"servers back", stats->servers_back},
                 {"times a missing one was named by schedule", stats->unavailable_schedule},
                 {"by join", stats->unavailable_join},
                 {"by done", stats->unavailable_done},
                 {"waits of a thread for another", stats->waits_beside},
                 {"connections cut", stats->cuts},
                 {"frames lost", stats->frames_lost},
                 {"attaches", stats->attaches},
                 {"queues begun anew", stats->fresh},
                 {"database checks", stats->checks}};

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        printf("%s%llu %s", i == 0 ? "" : ", ", (unsigned long long)lines[i].count, lines[i].what);
    printf("\n");
}
