#include "tests/bench/echo.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zmq.h>

#define FRAME 64
#define TURN_MS 100 /* how soon a thread sees that it shall end */
#define LOST_MS 5000

enum { ASK = 1, ANSWER, HELLO };

struct echo {
    char path[64], endpoint[72];
    void *contexts[3]; /* asker, answerer, router; one and the same unless placed */
    void *asker;
    pthread_t answerer, router;
    pid_t process; /* the router's; 0: a thread */
    bool answers, routes;
    atomic_bool stop;
    uint32_t trip;
};

static void *open_socket(void *context, int type, int wait_ms)
{
    void *socket = zmq_socket(context, type);
    int linger_ms = 0;

    zmq_setsockopt(socket, ZMQ_RCVTIMEO, &wait_ms, sizeof wait_ms);
    zmq_setsockopt(socket, ZMQ_LINGER, &linger_ms, sizeof linger_ms);
    return socket;
}

/* Passes each of two peers' frames to the other. */
static void *route(void *arg)
{
    struct echo *echo = arg;
    void *router = open_socket(echo->contexts[2], ZMQ_ROUTER, TURN_MS);
    char ids[2][256], id[256], frame[FRAME];
    int sizes[2] = {0, 0};

    zmq_bind(router, echo->endpoint);
    while (!atomic_load(&echo->stop)) {
        int id_size = zmq_recv(router, id, sizeof id, 0), size, from, to;

        if (id_size < 0)
            continue;
        size = zmq_recv(router, frame, sizeof frame, 0);
        if (size < 0)
            continue;
        from = frame[0] == ASK ? 0 : 1;
        to = 1 - from;
        memcpy(ids[from], id, (size_t)id_size);
        sizes[from] = id_size;
        if (sizes[to] == 0 || frame[0] == HELLO)
            continue;
        zmq_send(router, ids[to], (size_t)sizes[to], ZMQ_SNDMORE);
        zmq_send(router, frame, (size_t)size, 0);
    }
    zmq_close(router);
    return NULL;
}

static void *answer(void *arg)
{
    struct echo *echo = arg;
    void *dealer = open_socket(echo->contexts[1], ZMQ_DEALER, TURN_MS);
    char frame[FRAME] = {HELLO};

    zmq_connect(dealer, echo->endpoint);
    zmq_send(dealer, frame, sizeof frame, 0);
    while (!atomic_load(&echo->stop)) {
        if (zmq_recv(dealer, frame, sizeof frame, 0) < 0)
            continue;
        frame[0] = ANSWER;
        zmq_send(dealer, frame, sizeof frame, 0);
    }
    zmq_close(dealer);
    return NULL;
}

static void route_alone(struct echo *echo)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    echo->contexts[2] = zmq_ctx_new();
    route(echo);
    _exit(0);
}

struct echo *echo_open(bool placed)
{
    struct echo *echo = calloc(1, sizeof *echo);

    if (echo == NULL)
        return NULL;
    snprintf(echo->path, sizeof echo->path, "/tmp/muster-bench-echo-%ld-%d", (long)getpid(),
             placed);
    snprintf(echo->endpoint, sizeof echo->endpoint, "ipc://%s", echo->path);
    if (placed && (echo->process = fork()) == 0)
        route_alone(echo);
    echo->contexts[0] = zmq_ctx_new();
    echo->contexts[1] = placed ? zmq_ctx_new() : echo->contexts[0];
    echo->contexts[2] = echo->contexts[0];
    echo->routes = !placed && pthread_create(&echo->router, NULL, route, echo) == 0;
    echo->answers = pthread_create(&echo->answerer, NULL, answer, echo) == 0;
    echo->asker = open_socket(echo->contexts[0], ZMQ_DEALER, TURN_MS);
    zmq_connect(echo->asker, echo->endpoint);
    if (echo->process >= 0 && echo->answers && (placed || echo->routes))
        return echo;
    echo_close(&echo);
    return NULL;
}

/* An answer to a former trip, which came late, is none to this one. */
bool echo_trip(struct echo *echo)
{
    char frame[FRAME] = {ASK}, got[FRAME];

    echo->trip++;
    memcpy(frame + 1, &echo->trip, sizeof echo->trip);
    for (int i = 0; i < LOST_MS / TURN_MS; i++) {
        zmq_send(echo->asker, frame, sizeof frame, 0); /* again: the answerer was not there yet */
        while (zmq_recv(echo->asker, got, sizeof got, 0) > 0)
            if (memcmp(got + 1, &echo->trip, sizeof echo->trip) == 0)
                return true;
    }
    return false;
}

void echo_close(struct echo **echo)
{
    struct echo *e = *echo;

    *echo = NULL;
    atomic_store(&e->stop, true);
    if (e->answers)
        pthread_join(e->answerer, NULL);
    if (e->routes)
        pthread_join(e->router, NULL);
    if (e->process > 0) {
        kill(e->process, SIGKILL);
        waitpid(e->process, NULL, 0);
    }
    zmq_close(e->asker);
    zmq_ctx_term(e->contexts[0]);
    if (e->contexts[1] != e->contexts[0])
        zmq_ctx_term(e->contexts[1]);
    unlink(e->path);
    free(e);
}
