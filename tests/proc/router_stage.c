/* router_stage - see router_stage.h. */
#include "tests/proc/router_stage.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <zmq.h>

static void *serve(void *arg)
{
    static uint8_t in[WIRE_FRAME_MAX], out[WIRE_FRAME_MAX];
    struct router_stage *stage = arg;
    struct arena arena;
    uint8_t id[64];

    arena_init(&arena, (size_t)1 << 21);
    while (!atomic_load(&stage->stop)) {
        struct wire_msg asked, answer = {.type = WIRE_NONE};
        int id_size = zmq_recv(stage->router, id, sizeof id, 0);
        int size = id_size > 0 ? zmq_recv(stage->router, in, sizeof in, 0) : -1;

        if (size <= 0)
            continue;
        arena_reset(&arena);
        assert_int_equal(wire_decode(in, (size_t)size, &arena, &asked, NULL), MUSTER_OK);
        router_stage_hold(stage);
        size_t bytes = stage->answer(&asked, &answer) ? wire_encode(&answer, out, sizeof out) : 0;
        router_stage_release(stage);
        if (bytes == 0)
            continue;
        zmq_send(stage->router, id, (size_t)id_size, ZMQ_SNDMORE);
        zmq_send(stage->router, out, bytes, 0);
    }
    arena_free(&arena);
    return NULL;
}

void router_stage_begin(struct router_stage *stage, const char *endpoint, router_answer_fn *answer)
{
    size_t size = sizeof stage->endpoint;

    stage->answer = answer;
    pthread_mutex_init(&stage->mutex, NULL);
    atomic_store(&stage->stop, false);
    stage->context = zmq_ctx_new();
    stage->router = zmq_socket(stage->context, ZMQ_ROUTER);
    zmq_setsockopt(stage->router, ZMQ_RCVTIMEO, &(int){50}, sizeof(int));
    zmq_setsockopt(stage->router, ZMQ_LINGER, &(int){0}, sizeof(int));
    assert_int_equal(zmq_bind(stage->router, endpoint), 0);
    assert_int_equal(zmq_getsockopt(stage->router, ZMQ_LAST_ENDPOINT, stage->endpoint, &size), 0);
    assert_int_equal(pthread_create(&stage->thread, NULL, serve, stage), 0);
}

void router_stage_end(struct router_stage *stage)
{
    atomic_store(&stage->stop, true);
    pthread_join(stage->thread, NULL);
    zmq_close(stage->router);
    zmq_ctx_term(stage->context);
    pthread_mutex_destroy(&stage->mutex);
}

void router_stage_hold(struct router_stage *stage)
{
    pthread_mutex_lock(&stage->mutex);
}

void router_stage_release(struct router_stage *stage)
{
    pthread_mutex_unlock(&stage->mutex);
}
