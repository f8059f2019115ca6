/* How many decisions and events a second one broker makes for many jobs at once. usage:
 * bench_jobs [SECONDS [DIRECTORY [JOBS ...]]]; one JSON object.
 *
 * Each job has WORLD nodes that agree without a pause: an operator asks for a save, all answer the
 * freeze, all hear the decision, the writer fails, and the next save is asked for. That is four
 * events a decision. Beside it are the two things that it consists of:
 *
 *   musterd_*  decisions_per_s, events_per_s, commits_per_s, and group: events a transaction
 *   floor_*    the same of a bare ROUTER and PUB with as many messages, which writes what a pass
 *              brought into SQLite in one synced transaction, and then answers (floor_jobs.h)
 *   sqlite_*   SQLite alone, with the same group commit: transactions of as many events and
 *              decisions as musterd's had on average, one after the other, synced
 *   floor_ratio, sqlite_ratio  musterd's events a second by theirs
 *
 * Each figure is the median of ROUNDS, of which each measures all three. One thread serves all
 * nodes, and its work is part of the time. */
#include "tests/bench/floor_jobs.h"
#include "tests/bench/swarm.h"

#include <errno.h>
#include <fcntl.h>
#include <muster/client.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#define WORLD 4
#define ROUNDS 3
#define WARM_MS 200
#define MOST_MS 60000
#define SECONDS_DEFAULT 3
#define COUNTS_MAX 16
#define JOBS_MAX (SWARM_PROCESS_NODES / WORLD)
#define TIMEOUT_MS 10000

struct totals {
    double seconds;
    uint64_t decisions, events, commits;
};

static void *tool; /* the operator's connection */
static bool goes_on;
static uint64_t decisions, asked, floor_events;

/* --- the jobs --------------------------------------------------------------------------------- */

static void ask_for_save(const struct node *node)
{
    uint8_t frame[1024];
    struct wire_msg message = swarm_message(WIRE_SAVE_NOW);
    char id[48];
    size_t size;

    snprintf(id, sizeof id, "bench-%llu", (unsigned long long)++asked);
    message.up = (struct wire_up){.request = asked, .job = node->job, .role = ROLE_TOOL};
    message.u.save_now.id = id;
    size = wire_encode(&message, frame, sizeof frame);
    if (size == 0 || zmq_send(tool, frame, size, ZMQ_DONTWAIT) < 0)
        bench_die("cannot ask for a save: %s", zmq_strerror(errno));
}

static void say_failed(struct swarm *swarm, struct node *node, const struct wire_event *event)
{
    struct wire_msg failed = swarm_message(WIRE_SAVE_FAILED);

    failed.u.save_failed.round = event->round;
    failed.u.save_failed.step = event->step;
    failed.u.save_failed.code = MUSTER_E_STORAGE; /* is not tried again */
    failed.u.save_failed.text = "as planned";
    swarm_say(swarm, node, &failed);
}

static void apply(struct swarm *swarm, struct node *node, const struct wire_event *event)
{
    struct wire_msg report = swarm_message(WIRE_REPORT);

    switch (event->kind) {
    case EVENT_FREEZE:
        report.u.report.round = event->round;
        report.u.report.begun = 10 + (int64_t)node->rank % 3;
        report.u.report.done = report.u.report.begun - 1;
        swarm_say(swarm, node, &report);
        break;
    case EVENT_DECISION:
        if (node->rank != 0)
            break;
        decisions++;
        say_failed(swarm, node, event);
        break;
    case EVENT_ABORT:
        if (node->rank == 0 && goes_on)
            ask_for_save(node);
        else if (node->rank == 0)
            swarm->ended += swarm->world;
        break;
    default:
        break;
    }
}

/* Its answers are not needed, but for a refusal. */
static void take_answers(struct swarm *swarm)
{
    uint8_t frame[1024];
    struct wire_msg message;
    struct muster_error err;
    int size;

    while ((size = zmq_recv(tool, frame, sizeof frame, ZMQ_DONTWAIT)) > 0) {
        arena_reset(&swarm->arena);
        if (wire_decode(frame, (size_t)size, &swarm->arena, &message, &err) == MUSTER_OK &&
            message.type == WIRE_ACK && message.u.ack.code != MUSTER_OK)
            bench_die("a save was refused: %s", message.u.ack.text);
    }
}

static void run_for(struct swarm *swarm, double ms)
{
    double until = bench_now_ms() + ms;

    while (bench_now_ms() < until) {
        swarm_pump(swarm, 10);
        if (swarm->take == swarm_take_frame)
            take_answers(swarm);
        else
            floor_jobs_drain(tool);
    }
}

/* What they do in that time, once caches and the database's file are warm. */
static struct totals run_jobs(struct swarm *swarm, void (*ask)(const struct node *node),
                              struct totals (*count)(const struct swarm *swarm, const void *of),
                              const void *of, double seconds)
{
    struct totals from, to;
    double began_ms, passed_ms;

    goes_on = true;
    for (size_t i = 0; i < swarm->count; i += swarm->world)
        ask(&swarm->nodes[i]);
    run_for(swarm, WARM_MS);
    from = count(swarm, of);
    began_ms = bench_now_ms();
    do { /* a busy machine may write nothing in a short time */
        run_for(swarm, seconds * 1e3);
        passed_ms = bench_now_ms() - began_ms;
        to = count(swarm, of); /* musterd is asked, which takes time of its own */
    } while ((to.commits == from.commits || to.decisions == from.decisions) && passed_ms < MOST_MS);
    to.seconds = passed_ms / 1e3;
    goes_on = false;
    swarm_await(swarm, &swarm->ended, "for their last decision");
    to.decisions -= from.decisions;
    to.events -= from.events;
    to.commits -= from.commits;
    return to;
}

static void open_tool(struct swarm *swarm, const struct door *door)
{
    tool = swarm_connect(swarm, ZMQ_DEALER, door->commands, NULL);
}

/* --- musterd ---------------------------------------------------------------------------------- */

static uint64_t ask_commits(const char *address)
{
    muster_client_t *client = NULL;
    muster_rows_t *rows = NULL;
    struct muster_error err;
    uint64_t commits = 0;

    if (muster_client_open(address, TIMEOUT_MS, &client, &err) != MUSTER_OK ||
        muster_client_broker(client, &rows, &err) != MUSTER_OK)
        bench_die("cannot ask the broker: %s", err.text);
    for (size_t i = 0; i < muster_rows_count(rows); i++)
        if (strcmp(muster_rows_broker(rows)[i].name, "commits") == 0)
            commits = (uint64_t)muster_rows_broker(rows)[i].number;
    muster_rows_destroy(&rows);
    muster_client_close(&client, NULL);
    return commits;
}

static struct totals count_musterd(const struct swarm *swarm, const void *address)
{
    struct totals now = {.decisions = decisions, .commits = ask_commits(address)};

    for (size_t i = 0; i < swarm->count; i += swarm->world)
        now.events += swarm->nodes[i].applied_seq;
    return now;
}

static struct totals measure_musterd(const char *directory, size_t jobs, double seconds)
{
    static const struct bench bench = {.name = "jobs", .apply = apply};
    const char *from = getenv("MUSTERD"), *musterd = from != NULL ? from : MUSTERD_PATH;
    char dir[PATH_MAX], db[PATH_MAX + 16], port[PATH_MAX + 16];
    struct door door;
    struct swarm swarm;
    struct totals totals;
    int watch = inotify_init1(IN_CLOEXEC);

    bench_make_directory(directory, dir);
    snprintf(db, sizeof db, "%s/muster.db", dir);
    snprintf(port, sizeof port, "%s/port", dir);
    if (inotify_add_watch(watch, dir, IN_CLOSE_WRITE | IN_MOVED_TO) < 0)
        bench_die("cannot watch %s: %s", dir, strerror(errno));
    bench_server = fork();
    if (bench_server == 0) {
        dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
        execl(musterd, musterd, "--listen", "tcp://127.0.0.1:*", "--db", db, "--port-file", port,
              (char *)NULL);
        _exit(127);
    }
    await_port_file(watch, bench_server, port, &door);
    close(watch);
    swarm_open(&swarm, 0, jobs * WORLD, &door, jobs * WORLD, NULL);
    swarm_split(&swarm, WORLD);
    swarm.take = swarm_take_frame;
    swarm.bench = &bench;
    open_tool(&swarm, &door);
    swarm_join(&swarm, 1);
    totals = run_jobs(&swarm, ask_for_save, count_musterd, door.commands, seconds);
    swarm_leave(&swarm, LEAVE_PREEMPTED);
    zmq_close(tool);
    swarm_close(&swarm);
    bench_stop_server(SIGTERM);
    bench_remove_directory(dir);
    return totals;
}

/* --- the floor -------------------------------------------------------------------------------- */

static void floor_ask(const struct node *node)
{
    floor_jobs_say(tool, FLOOR_SAVE, floor_job_of(node->job));
}

/* As apply. */
static void floor_take(struct swarm *swarm, struct node *node, const uint8_t *frame, size_t size)
{
    const uint32_t job = floor_job_of(node->job);

    (void)size;
    floor_events += node->rank == 0 && floor_is_event((char)frame[0]);
    if (frame[0] == FLOOR_FREEZE)
        floor_jobs_say(node->dealer, FLOOR_REPORT, job);
    if (node->rank != 0)
        return;
    if (frame[0] == FLOOR_DECISION) {
        decisions++;
        floor_jobs_say(node->dealer, FLOOR_FAILED, job);
    } else if (frame[0] == FLOOR_ABORT && goes_on) {
        floor_ask(node);
    } else if (frame[0] == FLOOR_ABORT) {
        swarm->ended += swarm->world;
    }
}

static struct totals count_floor(const struct swarm *swarm, const void *floor)
{
    (void)swarm;
    return (struct totals){.decisions = decisions,
                           .events = floor_events,
                           .commits = floor_jobs_commits((const struct floor_jobs *)floor)};
}

static void floor_await_topics(struct swarm *swarm)
{
    double until = bench_now_ms() + TIMEOUT_MS;

    while (swarm->heard_topic < swarm->count && bench_now_ms() < until) {
        for (size_t i = 0; i < swarm->count; i += swarm->world)
            floor_jobs_say(swarm->nodes[i].dealer, FLOOR_PROBE, floor_job_of(swarm->nodes[i].job));
        swarm_pump(swarm, 10);
    }
    swarm_await(swarm, &swarm->heard_topic, "for the floor's topics");
    swarm_quiet(swarm);
}

static struct totals measure_floor(const char *directory, size_t jobs, double seconds)
{
    struct floor_jobs *floor;
    struct totals totals;
    struct swarm swarm;
    struct door door;
    char dir[PATH_MAX];

    bench_make_directory(directory, dir);
    floor = floor_jobs_start(dir, jobs, WORLD, &door);
    swarm_open(&swarm, 0, jobs * WORLD, &door, jobs * WORLD, NULL);
    swarm_split(&swarm, WORLD);
    swarm.take = floor_take;
    open_tool(&swarm, &door);
    floor_await_topics(&swarm);
    totals = run_jobs(&swarm, floor_ask, count_floor, floor, seconds);
    zmq_close(tool);
    swarm_close(&swarm);
    floor_jobs_stop(floor);
    bench_remove_directory(dir);
    return totals;
}

/* --- bare SQLite ------------------------------------------------------------------------------ */

static void must(sqlite3 *db, bool good)
{
    if (!good)
        bench_die("SQLite: %s", sqlite3_errmsg(db));
}

static void write_row(sqlite3 *db, sqlite3_stmt *statement, uint64_t number)
{
    sqlite3_bind_int64(statement, 1, (sqlite3_int64)number);
    must(db, sqlite3_step(statement) == SQLITE_DONE && sqlite3_reset(statement) == SQLITE_OK);
}

/* Transactions of as many rows of each kind, until the time is over. */
static struct totals run_sqlite(sqlite3 *db, const struct totals *as, double seconds)
{
    const double events = (double)as->events / (double)as->commits,
                 made = (double)as->decisions / (double)as->commits;
    double began_ms = bench_now_ms();
    struct totals totals = {0};
    sqlite3_stmt *event = NULL, *decision = NULL;

    must(db, sqlite3_prepare_v2(db, FLOOR_JOBS_EVENT, -1, &event, NULL) == SQLITE_OK &&
                 sqlite3_prepare_v2(db, FLOOR_JOBS_DECISION, -1, &decision, NULL) == SQLITE_OK);
    while (bench_now_ms() < began_ms + seconds * 1e3) {
        totals.commits++;
        must(db, sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK);
        while ((double)totals.events < events * (double)totals.commits)
            write_row(db, event, ++totals.events);
        while ((double)totals.decisions < made * (double)totals.commits)
            write_row(db, decision, ++totals.decisions);
        must(db, sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) == SQLITE_OK);
    }
    totals.seconds = (bench_now_ms() - began_ms) / 1e3;
    sqlite3_finalize(event);
    sqlite3_finalize(decision);
    return totals;
}

static struct totals measure_sqlite(const char *directory, const struct totals *as, double seconds)
{
    char dir[PATH_MAX], path[PATH_MAX + 16];
    sqlite3 *db = NULL;
    struct totals totals;

    bench_make_directory(directory, dir);
    snprintf(path, sizeof path, "%s/bare.db", dir);
    must(db, sqlite3_open(path, &db) == SQLITE_OK);
    must(db, sqlite3_exec(db, FLOOR_JOBS_TABLES, NULL, NULL, NULL) == SQLITE_OK);
    totals = run_sqlite(db, as, seconds);
    sqlite3_close(db);
    bench_remove_directory(dir);
    return totals;
}

/* --- runs ------------------------------------------------------------------------------------- */

enum { MUSTERD, FLOOR, SQLITE, KINDS };
static const char *const kinds[KINDS] = {"musterd", "floor", "sqlite"};

static void print_kind(const char *name, const struct totals totals[ROUNDS])
{
    double made[ROUNDS], events[ROUNDS], commits[ROUNDS], group[ROUNDS];

    for (size_t i = 0; i < ROUNDS; i++) {
        made[i] = (double)totals[i].decisions / totals[i].seconds;
        events[i] = (double)totals[i].events / totals[i].seconds;
        commits[i] = (double)totals[i].commits / totals[i].seconds;
        group[i] = (double)totals[i].events / (double)totals[i].commits;
    }
    printf(", \"%s_decisions_per_s\": %.0f, \"%s_events_per_s\": %.0f, "
           "\"%s_commits_per_s\": %.0f, \"%s_group\": %.2f",
           name, bench_median(made, ROUNDS), name, bench_median(events, ROUNDS), name,
           bench_median(commits, ROUNDS), name, bench_median(group, ROUNDS));
}

static void print_ratio(const char *name, const struct totals ours[ROUNDS],
                        const struct totals theirs[ROUNDS])
{
    double ratios[ROUNDS];

    for (size_t i = 0; i < ROUNDS; i++)
        ratios[i] = (double)ours[i].events / ours[i].seconds /
                    ((double)theirs[i].events / theirs[i].seconds);
    printf(", \"%s_ratio\": %.3f", name, bench_median(ratios, ROUNDS));
}

static void measure(const char *directory, size_t jobs, double seconds)
{
    struct totals totals[KINDS][ROUNDS];

    for (size_t i = 0; i < ROUNDS; i++) {
        totals[MUSTERD][i] = measure_musterd(directory, jobs, seconds);
        totals[FLOOR][i] = measure_floor(directory, jobs, seconds);
        if (totals[MUSTERD][i].commits == 0 || totals[FLOOR][i].commits == 0)
            bench_die("nothing was written in %d s", MOST_MS / 1000);
        totals[SQLITE][i] = measure_sqlite(directory, &totals[MUSTERD][i], seconds);
    }
    printf("{\"jobs\": %zu, \"world\": %d", jobs, WORLD);
    for (size_t i = 0; i < KINDS; i++)
        print_kind(kinds[i], totals[i]);
    print_ratio(kinds[FLOOR], totals[MUSTERD], totals[FLOOR]);
    print_ratio(kinds[SQLITE], totals[MUSTERD], totals[SQLITE]);
    printf("}");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static const size_t counts[] = {1, 16, 64, 256};
    double seconds = argc > 1 ? strtod(argv[1], NULL) : SECONDS_DEFAULT;
    const char *directory = argc > 2 ? argv[2] : BUILD_DIR;

    if (!(seconds > 0) || argc > 3 + COUNTS_MAX)
        bench_die("usage: bench_jobs [SECONDS [DIRECTORY [JOBS ...]]]");
    bench_raise_files();
    printf("{\"bench\": \"jobs\", \"seconds\": %.1f, \"results\": [", seconds);
    fflush(stdout);
    for (size_t i = 0; argc > 3 ? i + 3 < (size_t)argc : i < sizeof counts / sizeof *counts; i++) {
        size_t jobs = argc > 3 ? strtoul(argv[i + 3], NULL, 10) : counts[i];

        if (jobs == 0 || jobs > JOBS_MAX)
            bench_die("%s is no number of jobs from 1 to %d", argv[i + 3], JOBS_MAX);
        printf("%s", i > 0 ? ", " : "");
        fflush(stdout);
        measure(directory, jobs, seconds);
    }
    printf("]}\n");
    return EXIT_SUCCESS;
}
