/* A relay that lies: between ranks and a broker, it is honest until SIGUSR1.
 *   prog_lying_relay LISTEN BROKER LIE     both are ZeroMQ addresses; says "ready" when it listens
 * LIE, about the two connections that spoke first (of ranks 0 and 1, or of two jobs):
 *   answers    each gets what the other is told
 *   routes     what each says is sent under the other's number
 *   name       what the second says is sent in the first's name: job, rank and incarnation
 *   bytes      bundles lose their second half of bytes, both ways
 *   entries    bundles lose their second half of messages, both ways, and are whole
 *   version    bundles have another version
 *   frame      what ranks say has another version
 * Events go past it: ranks subscribe at the broker. Ends by SIGTERM, or when the broker is told to
 * be of another version. */
#include "schema/arena.h"
#include "schema/wire/bundle.h"
#include "schema/wire/wire.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#define PEERS_MAX 16
#define ID_MAX 64
#define POLL_MS 20
#define HELLO_POLLS 25

enum lie { ANSWERS, ROUTES, NAME, BYTES, ENTRIES, VERSION, FRAME, LIES };
static const char *const lies[LIES] = {"answers", "routes",  "name", "bytes",
                                       "entries", "version", "frame"};

struct peer {
    uint8_t id[ID_MAX];
    int id_size;
    struct wire_up head; /* of what it said last; the job is in `job` */
    char job[JOB_NAME_MAX + 1];
};

static struct {
    void *front, *back;
    enum lie lie;
    struct peer peers[PEERS_MAX];
    unsigned count;
    struct arena arena;
} relay;
static volatile sig_atomic_t lying, stopped;

static void on_signal(int signo)
{
    if (signo == SIGUSR1)
        lying = 1;
    else
        stopped = 1;
}

static bool tells(enum lie lie)
{
    return lying && relay.lie == lie;
}

static unsigned peer_of(const uint8_t *id, int size)
{
    unsigned place = 0;

    while (place < relay.count && (relay.peers[place].id_size != size ||
                                   memcmp(relay.peers[place].id, id, (size_t)size) != 0))
        place++;
    if (place == relay.count && relay.count < PEERS_MAX) {
        memcpy(relay.peers[place].id, id, (size_t)size);
        relay.peers[relay.count++].id_size = size;
    }
    return place;
}

/* 0 and 1 change places. */
static unsigned other(unsigned place)
{
    return place < 2 ? 1 - place : place;
}

static void send_bundle(const struct bundle *bundle, void *socket)
{
    struct bundle sent = *bundle;

    if (tells(BYTES) && sent.size > BUNDLE_HEAD_BYTES)
        sent.size = BUNDLE_HEAD_BYTES + (sent.size - BUNDLE_HEAD_BYTES) / 2;
    if (tells(VERSION))
        sent.bytes[5] = (uint8_t)(BUNDLE_VERSION + 1);
    zmq_send(socket, sent.bytes, sent.size, ZMQ_DONTWAIT);
}

/* The same message in the name of the first peer. */
static size_t in_anothers_name(unsigned place, const uint8_t *frame, size_t size,
                               uint8_t *ret_frame)
{
    struct muster_error unused;
    struct wire_msg message;
    struct peer *peer = &relay.peers[place];

    arena_reset(&relay.arena);
    if (wire_decode(frame, size, &relay.arena, &message, &unused) != MUSTER_OK)
        return 0;
    peer->head = message.up;
    snprintf(peer->job, sizeof peer->job, "%s", message.up.job);
    if (!tells(NAME) || place != 1)
        return 0;
    message.up.job = relay.peers[0].job;
    message.up.role = relay.peers[0].head.role;
    message.up.rank = relay.peers[0].head.rank;
    message.up.incarnation = relay.peers[0].head.incarnation;
    message.up.generation = relay.peers[0].head.generation;
    return wire_encode(&message, ret_frame, WIRE_FRAME_MAX);
}

/* --- up --------------------------------------------------------------------------------------- */

static void say_hello(void)
{
    struct bundle bundle;
    struct bundle_hello hello = {.sender = 77};
    uint8_t bytes[BUNDLE_HELLO_MAX];

    bundle_begin(&bundle, WIRE_FRAME_MAX);
    bundle_add(&bundle, BUNDLE_CONTROL, bytes, bundle_hello_write(&hello, bytes));
    send_bundle(&bundle, relay.back);
}

static bool take_one(struct bundle *bundle)
{
    static uint8_t frame[WIRE_FRAME_MAX + 16], named[WIRE_FRAME_MAX];
    uint8_t id[ID_MAX];
    int id_size = zmq_recv(relay.front, id, sizeof id, ZMQ_DONTWAIT), size;
    unsigned place;
    size_t named_size;

    if (id_size < 0)
        return false;
    size = zmq_recv(relay.front, frame, sizeof frame, 0);
    if (size < 2)
        return true;
    place = peer_of(id, id_size);
    named_size = in_anothers_name(place, frame, (size_t)size, named);
    if (tells(FRAME))
        frame[frame[0] == 0xdc ? 3 : 1] = 2; /* the version, in an array of up to 15 or of more */
    if (tells(ROUTES))
        place = other(place);
    bundle_add(bundle, BUNDLE_PEER_MIN + place, named_size > 0 ? named : frame,
               named_size > 0 ? named_size : (size_t)size);
    return true;
}

/* A bundle of the first half of its messages; a single one is lost every other time. */
static const struct bundle *halved(const struct bundle *bundle)
{
    static struct bundle half;
    static unsigned singles;
    struct bundle_reader reader;
    struct bundle_entry entry;
    unsigned keep;

    if (!tells(ENTRIES) || bundle_open(bundle->bytes, bundle->size, &reader) != BUNDLE_WHOLE)
        return bundle;
    keep = bundle->entries > 1 ? bundle->entries / 2 : singles++ % 2;
    bundle_begin(&half, bundle->frame_max);
    for (; keep > 0 && bundle_next(&reader, &entry); keep--)
        bundle_add(&half, entry.peer, entry.frame, entry.size);
    return &half;
}

static void take_up(void)
{
    static struct bundle bundle;
    const struct bundle *sent;

    bundle_begin(&bundle, WIRE_FRAME_MAX);
    while (take_one(&bundle))
        ;
    sent = halved(&bundle);
    if (sent->entries > 0)
        send_bundle(sent, relay.back);
}

/* --- down ------------------------------------------------------------------------------------- */

static void give(const struct bundle_entry *entry)
{
    unsigned place = entry->peer - BUNDLE_PEER_MIN;

    if (entry->peer < BUNDLE_PEER_MIN || place >= relay.count)
        return;
    if (tells(ANSWERS))
        place = other(place);
    zmq_send(relay.front, relay.peers[place].id, (size_t)relay.peers[place].id_size,
             ZMQ_SNDMORE | ZMQ_DONTWAIT);
    zmq_send(relay.front, entry->frame, entry->size, ZMQ_DONTWAIT);
}

/* What this relay would say if it were honest: install the same version. */
static void take_refusal(const uint8_t *frame, size_t size)
{
    struct muster_error unused;
    struct wire_msg message;

    arena_reset(&relay.arena);
    if (wire_decode(frame, size, &relay.arena, &message, &unused) != MUSTER_OK ||
        message.type != WIRE_ACK || message.u.ack.code != MUSTER_E_VERSION)
        return;
    printf("refused: %s\n", message.u.ack.text);
    stopped = 1;
}

static void take_down(void)
{
    static uint8_t bytes[BUNDLE_BYTES_MAX];
    int size;

    while ((size = zmq_recv(relay.back, bytes, sizeof bytes, ZMQ_DONTWAIT)) >= 0) {
        size_t cut = tells(BYTES) ? (size_t)size / 2 : (size_t)size;
        struct bundle_reader reader;
        struct bundle_entry entry;

        if (bundle_open(bytes, cut, &reader) != BUNDLE_WHOLE) {
            take_refusal(bytes, cut);
            continue;
        }
        for (unsigned left = tells(ENTRIES) ? (reader.left + 1) / 2 : reader.left;
             left > 0 && bundle_next(&reader, &entry); left--)
            give(&entry);
    }
}

/* --- life ------------------------------------------------------------------------------------- */

static void *opened(void *context, int type, const char *address, bool binds)
{
    void *socket = zmq_socket(context, type);

    zmq_setsockopt(socket, ZMQ_LINGER, &(int){0}, sizeof(int));
    if ((binds ? zmq_bind : zmq_connect)(socket, address) == 0)
        return socket;
    fprintf(stderr, "%s: %s\n", address, zmq_strerror(zmq_errno()));
    exit(2);
}

int main(int argc, char **argv)
{
    void *context = zmq_ctx_new();
    unsigned polls = 0;

    if (argc != 4)
        return 2;
    while (relay.lie < LIES && strcmp(lies[relay.lie], argv[3]) != 0)
        relay.lie++;
    if (relay.lie == LIES)
        return 2;
    signal(SIGUSR1, on_signal);
    signal(SIGTERM, on_signal);
    setvbuf(stdout, NULL, _IOLBF, 0);
    arena_init(&relay.arena, 1 << 20);
    relay.front = opened(context, ZMQ_ROUTER, argv[1], true);
    relay.back = opened(context, ZMQ_DEALER, argv[2], false);
    printf("ready\n");
    while (!stopped) {
        zmq_pollitem_t items[] = {{relay.front, 0, ZMQ_POLLIN, 0}, {relay.back, 0, ZMQ_POLLIN, 0}};

        zmq_poll(items, 2, POLL_MS);
        take_up();
        take_down();
        if (polls++ % HELLO_POLLS == 0)
            say_hello();
    }
    arena_free(&relay.arena);
    zmq_close(relay.front);
    zmq_close(relay.back);
    zmq_ctx_term(context);
    return 0;
}
