/* libmuster-query's talk with a broker, played by the test on a thread of its own. */
#include "client/query/query_link.h"
#include "tests/support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <zmq.h>

static char directory[SCRATCH_PATH_MAX];

static const char *in_directory(const char *name)
{
    return scratch_path(directory, "%s", name);
}

static int set_up(void **state)
{
    (void)state;
    scratch_make(directory);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    scratch_remove(directory);
    return 0;
}

struct stage;
/* Answers the count-th message; false: it is lost. */
typedef bool act_fn(struct stage *stage, int count, const struct wire_msg *question,
                    struct wire_msg *answer);
struct stage {
    act_fn *act;
    void *context;
    void *socket;
    char address[SCRATCH_PATH_MAX + 8];
    pthread_t thread;
    int count;             /* messages heard */
    uint64_t requests[16]; /* their numbers */
    bool garbage_first;
};

static void send_to(struct stage *stage, const void *route, size_t route_size, const void *bytes,
                    size_t size)
{
    zmq_send(stage->socket, route, route_size, ZMQ_SNDMORE);
    zmq_send(stage->socket, bytes, size, 0);
}

static void *play(void *arg)
{
    struct stage *stage = arg;
    static uint8_t frame[WIRE_FRAME_MAX];

    for (;;) {
        uint8_t route[64];
        int route_size = zmq_recv(stage->socket, route, sizeof route, 0);
        int size = zmq_recv(stage->socket, frame, sizeof frame, 0);
        struct wire_msg question = {.type = WIRE_NONE};
        struct wire_msg answer = {.type = WIRE_NONE};
        struct arena arena;

        if (route_size < 0 || size <= 1) /* the end of the play */
            break;
        arena_init(&arena, 0);
        if (wire_decode(frame, (size_t)size, &arena, &question, NULL) == MUSTER_OK) {
            stage->requests[stage->count % 16] = question.up.request;
            stage->count++;
            if (stage->garbage_first)
                send_to(stage, route, (size_t)route_size, "garbage", 7);
            if (stage->act(stage, stage->count, &question, &answer))
                send_to(stage, route, (size_t)route_size, frame,
                        wire_encode(&answer, frame, sizeof frame));
        }
        arena_free(&arena);
    }
    return NULL;
}

static muster_client_t *open_stage(struct stage *stage, act_fn *act, int timeout_ms)
{
    muster_client_t *client = NULL;
    int linger_ms = 0;

    stage->act = act;
    stage->context = zmq_ctx_new();
    stage->socket = zmq_socket(stage->context, ZMQ_ROUTER);
    zmq_setsockopt(stage->socket, ZMQ_LINGER, &linger_ms, sizeof linger_ms);
    snprintf(stage->address, sizeof stage->address, "ipc://%s", in_directory("broker"));
    assert_int_equal(zmq_bind(stage->socket, stage->address), 0);
    assert_int_equal(pthread_create(&stage->thread, NULL, play, stage), 0);
    assert_int_equal(muster_client_open(stage->address, timeout_ms, &client, NULL), MUSTER_OK);
    assert_false(muster_client_is_database(client));
    return client;
}

static void close_stage(struct stage *stage, muster_client_t **client)
{
    void *last = zmq_socket(stage->context, ZMQ_DEALER);

    muster_client_close(client, NULL);
    zmq_connect(last, stage->address);
    zmq_send(last, "", 0, 0);
    pthread_join(stage->thread, NULL);
    zmq_close(last);
    zmq_close(stage->socket);
    zmq_ctx_term(stage->context);
}

static bool takes_the_third(struct stage *stage, int count, const struct wire_msg *question,
                            struct wire_msg *answer)
{
    (void)stage;
    answer->type = WIRE_ACK;
    answer->u.ack.request =
        question->up.request + (count == 2 ? 1 : 0); /* the second is a stranger's */
    answer->u.ack.value = 17;
    return count > 1;
}

static void an_order_is_repeated_with_its_number_until_answered(void **state)
{
    struct stage stage = {.garbage_first = true};
    muster_client_t *client = open_stage(&stage, takes_the_third, 10000);
    int64_t round = 0;

    (void)state;
    assert_int_equal(muster_client_save_now(client, "words", "save-1", &round, NULL), MUSTER_OK);
    assert_int_equal(round, 17);
    close_stage(&stage, &client);
    assert_int_equal(stage.count, 3);
    assert_int_equal(stage.requests[0], stage.requests[1]);
    assert_int_equal(stage.requests[0], stage.requests[2]);
}

/* The broker keeps the batch that holds the order, and repeats meet a full disk until it is
 * written. */
static bool has_room_the_third_time(struct stage *stage, int count, const struct wire_msg *question,
                                    struct wire_msg *answer)
{
    bool room = stage->garbage_first ? false : count > 2;

    answer->type = WIRE_ACK;
    answer->u.ack.request = question->up.request;
    answer->u.ack.code = room ? MUSTER_OK : MUSTER_E_STORAGE;
    answer->u.ack.text = room ? "" : "no room for the database; free disk space";
    answer->u.ack.value = 18;
    return true;
}

static void a_full_disk_is_no_answer_to_an_order(void **state)
{
    struct stage stage = {.count = 0};
    muster_client_t *client = open_stage(&stage, has_room_the_third_time, 10000);
    struct muster_error err;
    int64_t round = 0;

    (void)state;
    assert_int_equal(muster_client_notify(client, "words", "x", 1, 500, "why", &round, &err),
                     MUSTER_OK);
    assert_int_equal(round, 18);
    close_stage(&stage, &client);

    stage = (struct stage){.garbage_first = true}; /* it stays full */
    client = open_stage(&stage, has_room_the_third_time, 300);
    assert_int_equal(muster_client_notify(client, "words", "x", 1, 500, "why", &round, &err),
                     MUSTER_E_STORAGE);
    assert_non_null(strstr(err.text, "no room for the database; free disk space"));
    assert_non_null(strstr(err.text, "may still be carried out"));
    close_stage(&stage, &client);
}

static bool refuses(struct stage *stage, int count, const struct wire_msg *question,
                    struct wire_msg *answer)
{
    (void)stage;
    (void)count;
    answer->type = WIRE_ACK;
    answer->u.ack.request = question->up.request;
    answer->u.ack.code = MUSTER_E_RANK;
    answer->u.ack.text = question->type == WIRE_NOTICE ? "rank 9 is not inside the world" : "";
    return true;
}

static void a_refusal_has_the_brokers_code_and_text(void **state)
{
    struct stage stage = {.count = 0};
    muster_client_t *client = open_stage(&stage, refuses, 10000);
    muster_rows_t *rows = NULL;
    struct muster_error err;

    (void)state;
    assert_int_equal(muster_client_notify(client, "words", "x", 9, 500, "why", NULL, &err),
                     MUSTER_E_RANK);
    assert_string_equal(err.text, "rank 9 is not inside the world");
    assert_int_equal(muster_client_cancel(client, "words", "x", &err), MUSTER_E_RANK);
    assert_non_null(strstr(err.text, "is not inside the world")); /* the status's own sentence */
    assert_int_equal(muster_client_jobs(client, NULL, &rows, &err), MUSTER_E_RANK);
    assert_null(rows);
    close_stage(&stage, &client);
}

static bool gives_pages(struct stage *stage, int count, const struct wire_msg *question,
                        struct wire_msg *answer)
{
    static uint8_t cells[2]; /* the numbers of the next two */
    int64_t above = question->u.query.number_arg;

    (void)stage;
    (void)count;
    assert_int_equal(question->u.query.after, 0);
    cells[0] = (uint8_t)(above + 1);
    cells[1] = (uint8_t)(above + 2);
    answer->type = WIRE_ROWS;
    answer->u.rows.request = question->up.request;
    answer->u.rows.columns = 1;
    answer->u.rows.rows = above < 4 ? 2 : 0;
    answer->u.rows.more = above < 4;
    answer->u.rows.cells.data = cells;
    answer->u.rows.cells.size = (size_t)answer->u.rows.rows;
    return true;
}

static void pages_are_asked_for_until_there_is_no_more(void **state)
{
    struct stage stage = {.count = 0};
    muster_client_t *client = open_stage(&stage, gives_pages, 10000);
    muster_rows_t *rows = NULL;

    (void)state;
    assert_int_equal(muster_client_events(client, "words", 0, NULL, &rows, NULL), MUSTER_OK);
    assert_int_equal(muster_rows_count(rows), 4);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(muster_rows_events(rows)[i].seq, i + 1);
    muster_rows_destroy(&rows);
    close_stage(&stage, &client);
    assert_int_equal(stage.count, 3);
}

static bool promises_for_ever(struct stage *stage, int count, const struct wire_msg *question,
                              struct wire_msg *answer)
{
    (void)stage;
    (void)count;
    answer->type = WIRE_ROWS;
    answer->u.rows.request = question->up.request;
    answer->u.rows.more = true;
    return true;
}

static void a_broker_that_promises_rows_and_sends_none_is_an_error(void **state)
{
    struct stage stage = {.count = 0};
    muster_client_t *client = open_stage(&stage, promises_for_ever, 10000);
    muster_rows_t *rows = NULL;

    (void)state;
    assert_int_equal(muster_client_jobs(client, NULL, &rows, NULL), MUSTER_E_PROTOCOL);
    assert_null(rows);
    close_stage(&stage, &client);
}

static void no_answer_ends_with_the_timeout_and_names_the_address(void **state)
{
    muster_client_t *client = NULL;
    muster_rows_t *rows = NULL;
    struct muster_error err;

    (void)state;
    assert_int_equal(muster_client_open("tcp://127.0.0.1:9", 250, &client, NULL), MUSTER_OK);
    assert_int_equal(muster_client_jobs(client, NULL, &rows, &err), MUSTER_E_BROKER);
    assert_non_null(strstr(err.text, "tcp://127.0.0.1:9"));
    assert_non_null(strstr(err.text, "musterd"));
    muster_client_close(&client, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_order_is_repeated_with_its_number_until_answered),
        cmocka_unit_test(a_full_disk_is_no_answer_to_an_order),
        cmocka_unit_test(a_refusal_has_the_brokers_code_and_text),
        cmocka_unit_test(pages_are_asked_for_until_there_is_no_more),
        cmocka_unit_test(a_broker_that_promises_rows_and_sends_none_is_an_error),
        cmocka_unit_test(no_answer_ends_with_the_timeout_and_names_the_address),
    };

    return cmocka_run_group_tests_name("query_broker", tests, set_up, tear_down);
}
