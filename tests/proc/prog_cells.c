/* prog_cells ENDPOINT KEY_FILE OTHER_JOB - says each message of the wire that a client has, about
 * its key's own job and about another one, over a real connection, and compares what is refused
 * with tests/support/authority_cells.c. Behind each it asks a question, whose answer ends the wait.
 */
#include "schema/arena.h"
#include "tests/support/authority_cells.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#define WAIT_MS 20000

static struct key_file key;
static void *broker;

static void die(const char *what)
{
    fprintf(stderr, "prog_cells: %s\n", what);
    exit(1);
}

static void read_key(const char *path)
{
    char text[KEY_FILE_BYTES_MAX] = "";
    FILE *stream = fopen(path, "re");
    struct muster_error err;

    if (stream == NULL || fread(text, 1, sizeof text - 1, stream) == 0 ||
        key_file_read(text, &key, &err) != MUSTER_OK)
        die(path);
    fclose(stream);
}

static void open_broker(void *context, const char *endpoint)
{
    int none = 0, wait_ms = WAIT_MS;

    broker = zmq_socket(context, ZMQ_DEALER);
    if (broker == NULL || zmq_setsockopt(broker, ZMQ_LINGER, &none, sizeof none) != 0 ||
        zmq_setsockopt(broker, ZMQ_RCVTIMEO, &wait_ms, sizeof wait_ms) != 0 ||
        zmq_setsockopt(broker, ZMQ_CURVE_SERVERKEY, key.broker_key, KEY_TEXT_BYTES + 1) != 0 ||
        zmq_setsockopt(broker, ZMQ_CURVE_PUBLICKEY, key.public_key, KEY_TEXT_BYTES + 1) != 0 ||
        zmq_setsockopt(broker, ZMQ_CURVE_SECRETKEY, key.secret_key, KEY_TEXT_BYTES + 1) != 0 ||
        zmq_connect(broker, endpoint) != 0)
        die(endpoint);
}

static void say(struct wire_msg message)
{
    static uint8_t frame[WIRE_FRAME_MAX];
    size_t size = wire_encode(&message, frame, sizeof frame);

    if (size == 0 || zmq_send(broker, frame, size, 0) < 0)
        die(wire_type_name(message.type));
}

/* What is said of that type; the broker has to be able to read it. */
static struct wire_msg made(enum wire_type type, const char *job, uint64_t request)
{
    struct wire_msg message = {
        .type = type,
        .up = {.job = job, .role = ROLE_TOOL, .request = request, .incarnation = request}};

    if (type == WIRE_HELLO)
        message.u.hello = (struct wire_hello){.world_size = 1, .layout = LAYOUT_SHARDED};
    if (type == WIRE_QUERY)
        message.u.query.name = "jobs";
    return message;
}

/* Is an answer of this number that it may not? Until that of the question, `last`. */
static bool is_refused(uint64_t number, uint64_t last)
{
    static uint8_t frame[WIRE_FRAME_MAX];
    struct arena arena;
    bool refused = false, over = false;

    arena_init(&arena, 0);
    while (!over) {
        struct wire_msg answer;
        struct muster_error err;
        int size = zmq_recv(broker, frame, sizeof frame, 0);

        if (size < 0)
            die("no answer");
        arena_reset(&arena);
        if (wire_decode(frame, (size_t)size, &arena, &answer, &err) != MUSTER_OK)
            die(err.text);
        refused |= answer.type == WIRE_ACK && answer.u.ack.request == number &&
                   answer.u.ack.code == MUSTER_E_AUTH;
        refused |= answer.type == WIRE_REFUSED && answer.u.refused.code == MUSTER_E_AUTH;
        over = answer.type == WIRE_ROWS && answer.u.rows.request == last;
    }
    arena_free(&arena);
    return refused;
}

int main(int argc, char **argv)
{
    void *context = zmq_ctx_new();
    uint64_t number = 1;
    int cells = 0, wrong = 0;

    if (argc != 4)
        die("prog_cells ENDPOINT KEY_FILE OTHER_JOB");
    read_key(argv[2]);
    open_broker(context, argv[1]);
    for (size_t i = 0; i < authority_message_count; i++) {
        const struct authority_message *message = &authority_messages[i];

        for (int own = 0; own < 2 && message->up; own++, cells++, number += 2) {
            bool may = own == 1 && authority_cell(key.role, message);

            say(made(message->type, own == 1 ? key.jobs : argv[3], number));
            say(made(WIRE_QUERY, key.jobs, number + 1));
            if (is_refused(number, number + 1) == may) {
                printf("wrong: %s by a %s of %s job\n", wire_type_name(message->type),
                       key_role_name(key.role), own == 1 ? "its own" : "another");
                wrong++;
            }
        }
    }
    printf("%d cells\n", cells);
    zmq_close(broker);
    zmq_ctx_term(context);
    return wrong > 0;
}
