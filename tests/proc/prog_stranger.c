/* prog_stranger WHAT ENDPOINT KEY_FILE JOB COUNT - a client with a valid key that means harm. It
 * goes on until its standard input ends, and then says how often it did it. WHAT is one of:
 *
 *   connections  holds COUNT connections, each of which asks something each second
 *   silent       the same, and they say nothing
 *   flood        COUNT connections ask as fast as they can, and read what is answered
 *   deaf         the same, and they never read
 *   endless      messages of PARTS parts, over each of COUNT connections
 *   topics       COUNT subscriptions, as many as a connection takes
 *   orders       all that only JOB's own may say, one after another
 *   named        chooses its own routing id; how often it was answered
 */
#include "schema/arena.h"
#include "schema/keys/keys.h"
#include "schema/wire/wire.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

#define SOCKETS_MAX 4096
#define PARTS 30000 /* libzmq sends a message when its last part is there, and not before */

static struct key_file key;
static void *context, *sockets[SOCKETS_MAX];
static size_t count;
static uint8_t frame[WIRE_FRAME_MAX];
static size_t frame_size;
static unsigned long long done;

static void die(const char *what)
{
    fprintf(stderr, "prog_stranger: %s: %s\n", what, zmq_strerror(zmq_errno()));
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

/* Of libzmq's own form: a broker might take it for a connection that it named. */
static bool named;

static void *socket_new(int type, const char *endpoint)
{
    void *socket = zmq_socket(context, type);
    int none = 0, many = 100000, hwm = 20, wait_ms = 100;

    if (socket == NULL || zmq_setsockopt(socket, ZMQ_LINGER, &none, sizeof none) != 0 ||
        zmq_setsockopt(socket, ZMQ_SNDHWM, &hwm, sizeof hwm) != 0 ||
        zmq_setsockopt(socket, ZMQ_RCVHWM, type == ZMQ_SUB ? &many : &hwm, sizeof hwm) != 0 ||
        zmq_setsockopt(socket, ZMQ_CURVE_SERVERKEY, key.broker_key, KEY_TEXT_BYTES + 1) != 0 ||
        zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, key.public_key, KEY_TEXT_BYTES + 1) != 0 ||
        zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, key.secret_key, KEY_TEXT_BYTES + 1) != 0 ||
        (named && zmq_setsockopt(socket, ZMQ_ROUTING_ID, "\0name", 5) != 0) ||
        zmq_setsockopt(socket, ZMQ_RCVTIMEO, &wait_ms, sizeof wait_ms) != 0 ||
        zmq_connect(socket, endpoint) != 0)
        die(endpoint);
    return socket;
}

static void encode(struct wire_msg message)
{
    frame_size = wire_encode(&message, frame, sizeof frame);
    if (frame_size == 0)
        die("cannot encode");
}

static void make_question(const char *job)
{
    encode((struct wire_msg){.type = WIRE_QUERY,
                             .up = {.job = job, .role = ROLE_TOOL, .request = 1},
                             .u.query = {.name = "events", .text_arg = ""}});
}

static bool is_over(int wait_ms)
{
    struct pollfd item = {.fd = STDIN_FILENO, .events = POLLIN};
    char byte;

    return poll(&item, 1, wait_ms) > 0 && read(STDIN_FILENO, &byte, 1) <= 0;
}

static void drain(void *socket)
{
    char answer[256];

    while (zmq_recv(socket, answer, sizeof answer, ZMQ_DONTWAIT) >= 0) {
    }
}

/* Each of them once. reads: what it is answered, too. */
static void ask_all(bool reads)
{
    for (size_t i = 0; i < count; i++) {
        if (reads)
            drain(sockets[i]);
        if (zmq_send(sockets[i], frame, frame_size, ZMQ_DONTWAIT) >= 0)
            done++;
    }
}

/* What only the job's own may say, and one order after another. */
static void order(const char *job, unsigned turn)
{
    static const enum wire_type types[] = {
        WIRE_NOTICE, WIRE_GONE,  WIRE_HELLO,      WIRE_RESULT_GET, WIRE_DROP,  WIRE_SAVE_NOW,
        WIRE_IMPORT, WIRE_LEAVE, WIRE_WORK_HELLO, WIRE_FORGET,     WIRE_QUERY, WIRE_QUEUE_OPEN};
    struct wire_msg message = {.type = types[turn % (sizeof types / sizeof types[0])],
                               .up = {.job = job,
                                      .role = turn % 3 == 0 ? ROLE_CHIEF : ROLE_TOOL,
                                      .incarnation = turn + 1,
                                      .broker_epoch = ((uint64_t)1 << 62) - 1,
                                      .request = turn}};

    if (message.type == WIRE_NOTICE)
        message.u.notice =
            (struct wire_notice){.id = "x", .kind = NOTICE_PREEMPT, .source = "x", .text = ""};
    if (message.type == WIRE_HELLO) {
        message.up.role = ROLE_CHIEF;
        message.u.hello = (struct wire_hello){.world_size = 1, .layout = LAYOUT_SHARDED};
    }
    if (message.type == WIRE_SAVE_NOW)
        message.u.save_now.id = "x";
    if (message.type == WIRE_QUERY)
        message.u.query = (struct wire_query){.name = "jobs", .text_arg = ""};
    frame_size = wire_encode(&message, frame, sizeof frame);
}

static void topics(void)
{
    char topic[64];

    snprintf(topic, sizeof topic, "%llu", done);
    if (zmq_setsockopt(sockets[done % count], ZMQ_SUBSCRIBE, topic, strlen(topic) + 1) == 0)
        done++;
}

static void parts(void *socket)
{
    int left = PARTS;

    while (left > 0 && zmq_send(socket, frame, frame_size, ZMQ_DONTWAIT | ZMQ_SNDMORE) >= 0)
        left--;
    if (left < PARTS && zmq_send(socket, "", 0, ZMQ_DONTWAIT) >= 0)
        done++;
}

static void act(const char *what, const char *job)
{
    char answer[256];

    if (named) {
        zmq_send(sockets[0], frame, frame_size, ZMQ_DONTWAIT);
        done += zmq_recv(sockets[0], answer, sizeof answer, 0) >= 0;
        return;
    }
    if (strcmp(what, "flood") == 0 || strcmp(what, "deaf") == 0)
        ask_all(what[0] == 'f');
    else if (strcmp(what, "endless") == 0)
        for (size_t i = 0; i < count; i++)
            parts(sockets[i]);
    else if (strcmp(what, "topics") == 0)
        topics();
    else if (strcmp(what, "orders") == 0) {
        order(job, (unsigned)done);
        if (frame_size == 0)
            done++;
        else
            ask_all(true);
    } else if (strcmp(what, "connections") == 0)
        ask_all(true);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    bool slow = strcmp(what, "connections") == 0 || strcmp(what, "silent") == 0;

    if (argc != 6 || (count = (size_t)atol(argv[5])) == 0 || count > SOCKETS_MAX) {
        fputs("prog_stranger WHAT ENDPOINT KEY_FILE JOB COUNT\n", stderr);
        return 1;
    }
    named = strcmp(what, "named") == 0;
    context = zmq_ctx_new();
    zmq_ctx_set(context, ZMQ_MAX_SOCKETS, SOCKETS_MAX + 16);
    read_key(argv[3]);
    if (strcmp(what, "topics") == 0)
        count = 1;
    for (size_t i = 0; i < count; i++)
        sockets[i] = socket_new(strcmp(what, "topics") == 0 ? ZMQ_SUB : ZMQ_DEALER, argv[2]);
    make_question(argv[4]);
    puts("ready");
    fflush(stdout);
    while (!is_over(slow ? 1000 : 0))
        act(what, argv[4]);
    printf("%s %llu\n", what, done);
    if (strcmp(what, "endless") == 0) {
        /* libzmq 4.3.4 asserts (session_base.cpp:260) when a socket is closed that is in the middle
         * of a message of many parts. */
        fflush(stdout);
        _exit(0);
    }
    for (size_t i = 0; i < count; i++)
        zmq_close(sockets[i]);
    zmq_ctx_term(context);
    return 0;
}
