#include "tests/bench/floor_jobs.h"

#include <errno.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PASS_MAX 4096
#define FROM_MAX 16 /* what libzmq names a peer by has 5 bytes */

struct floor_jobs {
    _Atomic uint64_t commits;
};

struct answer {
    uint8_t from[FROM_MAX];
    size_t size;
};

struct floor_server {
    void *router, *pub;
    sqlite3 *db;
    sqlite3_stmt *event, *decision;
    struct floor_jobs *shared;
    size_t world;
    size_t *reports; /* of each job */
    uint64_t events, decisions;
    struct answer answers[PASS_MAX];
    size_t answers_count;
    struct {
        char kind;
        uint32_t job;
    } published[2 * PASS_MAX];
    size_t published_count;
    bool writes;
};

bool floor_is_event(char kind)
{
    return kind == FLOOR_ORDER || kind == FLOOR_FREEZE || kind == FLOOR_DECISION ||
           kind == FLOOR_ABORT;
}

uint32_t floor_job_of(const char *job)
{
    return (uint32_t)strtoul(strrchr(job, '-') + 1, NULL, 10);
}

void floor_jobs_say(void *dealer, char kind, uint32_t job)
{
    uint8_t bytes[HEAD_BYTES] = {(uint8_t)kind};

    memcpy(bytes + 4, &job, sizeof job);
    if (zmq_send(dealer, bytes, sizeof bytes, ZMQ_DONTWAIT) < 0)
        bench_die("cannot send: %s", zmq_strerror(errno));
}

void floor_jobs_drain(void *dealer)
{
    uint8_t frame[HEAD_BYTES];

    while (zmq_recv(dealer, frame, sizeof frame, ZMQ_DONTWAIT) >= 0)
        continue;
}

/* --- its process ------------------------------------------------------------------------------ */

static void server_must(bool good)
{
    if (!good)
        _exit(EXIT_FAILURE);
}

static void server_write(sqlite3_stmt *statement, uint64_t number)
{
    sqlite3_bind_int64(statement, 1, (sqlite3_int64)number);
    server_must(sqlite3_step(statement) == SQLITE_DONE && sqlite3_reset(statement) == SQLITE_OK);
}

static void server_publish(struct floor_server *server, char kind, uint32_t job)
{
    server->published[server->published_count].kind = kind;
    server->published[server->published_count++].job = job;
    if (!floor_is_event(kind))
        return;
    if (!server->writes)
        server_must(sqlite3_exec(server->db, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK);
    server->writes = true;
    server_write(server->event, ++server->events);
}

static void server_decide(struct floor_server *server, uint32_t job)
{
    if (++server->reports[job] < server->world)
        return;
    server->reports[job] = 0;
    server_publish(server, FLOOR_DECISION, job);
    server_write(server->decision, ++server->decisions);
}

static void server_take(struct floor_server *server, const uint8_t *frame)
{
    uint32_t job;

    memcpy(&job, frame + 4, sizeof job);
    switch (frame[0]) {
    case FLOOR_SAVE:
        server_publish(server, FLOOR_ORDER, job);
        server_publish(server, FLOOR_FREEZE, job);
        break;
    case FLOOR_REPORT:
        server_decide(server, job);
        break;
    case FLOOR_FAILED:
        server_publish(server, FLOOR_ABORT, job);
        break;
    default:
        server_publish(server, FLOOR_PROBE, job);
        break;
    }
}

/* False: nothing is there. */
static bool server_receive(struct floor_server *server, int flags)
{
    struct answer *answer = &server->answers[server->answers_count];
    uint8_t frame[HEAD_BYTES];
    int size = zmq_recv(server->router, answer->from, FROM_MAX, flags);

    if (size < 0)
        return false;
    answer->size = (size_t)size;
    server_must(zmq_recv(server->router, frame, sizeof frame, 0) == (int)sizeof frame);
    if (frame[0] == FLOOR_SAVE || frame[0] == FLOOR_FAILED) /* others have no answer */
        server->answers_count++;
    server_take(server, frame);
    return true;
}

static void server_send(struct floor_server *server)
{
    uint8_t bytes[HEAD_BYTES] = {'a'};
    char topic[SWARM_JOB_BYTES];

    for (size_t i = 0; i < server->answers_count; i++) {
        zmq_send(server->router, server->answers[i].from, server->answers[i].size, ZMQ_SNDMORE);
        zmq_send(server->router, bytes, sizeof bytes, 0);
    }
    for (size_t i = 0; i < server->published_count; i++) {
        bytes[0] = (uint8_t)server->published[i].kind;
        snprintf(topic, sizeof topic, "bench-%u", server->published[i].job);
        zmq_send(server->pub, topic, strlen(topic) + 1, ZMQ_SNDMORE);
        zmq_send(server->pub, bytes, sizeof bytes, 0);
    }
}

static void server_pass(struct floor_server *server)
{
    server->answers_count = server->published_count = 0;
    server->writes = false;
    server_must(server_receive(server, 0));
    for (size_t i = 1; i < PASS_MAX && server_receive(server, ZMQ_DONTWAIT); i++)
        continue;
    if (server->writes) {
        server_must(sqlite3_exec(server->db, "COMMIT", NULL, NULL, NULL) == SQLITE_OK);
        server->shared->commits++;
    }
    server_send(server);
}

static void server_open(struct floor_server *server, const char *dir, size_t jobs, int told)
{
    struct door door = {.commands = ""};
    size_t size = sizeof door.commands;
    char path[PATH_MAX + 16];
    void *context = zmq_ctx_new();

    snprintf(path, sizeof path, "%s/floor.db", dir);
    server->reports = calloc(jobs, sizeof *server->reports);
    server->router = zmq_socket(context, ZMQ_ROUTER);
    server->pub = zmq_socket(context, ZMQ_PUB);
    server_must(server->reports != NULL && sqlite3_open(path, &server->db) == SQLITE_OK &&
                sqlite3_exec(server->db, FLOOR_JOBS_TABLES, NULL, NULL, NULL) == SQLITE_OK &&
                sqlite3_prepare_v2(server->db, FLOOR_JOBS_EVENT, -1, &server->event, NULL) ==
                    SQLITE_OK &&
                sqlite3_prepare_v2(server->db, FLOOR_JOBS_DECISION, -1, &server->decision, NULL) ==
                    SQLITE_OK);
    server_must(zmq_bind(server->router, "tcp://127.0.0.1:*") == 0 &&
                zmq_bind(server->pub, "tcp://127.0.0.1:*") == 0);
    zmq_getsockopt(server->router, ZMQ_LAST_ENDPOINT, door.commands, &size);
    size = sizeof door.events;
    zmq_getsockopt(server->pub, ZMQ_LAST_ENDPOINT, door.events, &size);
    server_must(write(told, &door, sizeof door) == (ssize_t)sizeof door);
}

struct floor_jobs *floor_jobs_start(const char *dir, size_t jobs, size_t world,
                                    struct door *ret_door)
{
    static struct floor_server server;
    struct floor_jobs *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int ends[2];

    if (shared == MAP_FAILED || pipe(ends) != 0 || (bench_server = fork()) < 0)
        bench_die("cannot start the floor: %s", strerror(errno));
    if (bench_server == 0) {
        server.shared = shared;
        server.world = world;
        server_open(&server, dir, jobs, ends[1]);
        for (;;)
            server_pass(&server);
    }
    close(ends[1]);
    if (read(ends[0], ret_door, sizeof *ret_door) != (ssize_t)sizeof *ret_door)
        bench_die("the floor did not start");
    close(ends[0]);
    return shared;
}

void floor_jobs_stop(struct floor_jobs *floor)
{
    bench_stop_server(SIGKILL);
    munmap(floor, sizeof *floor);
}

uint64_t floor_jobs_commits(const struct floor_jobs *floor)
{
    return floor->commits;
}
