/* bus_guard - see bus_guard.h. The framing is ZMTP 3 (rfc.zeromq.org/spec/23): a greeting of 64
 * bytes, then frames of flags, a length of 1 or 8 bytes, and a body. */
#include "broker/bus_guard.h"

#include "broker/bus_peers.h"
#include "broker/core/contract/core.h"

#include <errno.h>
#include <sodium/crypto_box.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define GREETING_BYTES 64
#define VERSION_AT 10
#define MECHANISM_AT 12
#define FLAG_MORE 1
#define FLAG_LONG 2
#define FLAG_COMMAND 4
#define INITIATE_BYTES (crypto_box_ZEROBYTES + 128) /* in it: the client's key and its vouch */
#define HANDSHAKE_COMMANDS 2 /* with CURVE: HELLO and INITIATE, before any message */
#define FILES_SPARE 32       /* database, log, lock, libzmq's own */
#define FILES_MAX ((size_t)2 * CORE_NODES_MAX + 1024)

/* --- one connection --------------------------------------------------------------------------- */

/* Older protocols have other frames; libzmq speaks 3 since 2013. */
static bool guard_greeting_byte_ok(unsigned at, uint8_t byte)
{
    if (at == 0)
        return byte == 0xff;
    if (at == 9)
        return (byte & 1) != 0;
    return at != VERSION_AT || byte >= 3;
}

static bool guard_greeting_take(struct bus_guard_stream *stream, uint8_t byte)
{
    bool ok = guard_greeting_byte_ok(stream->left, byte);

    if (stream->left == MECHANISM_AT)
        stream->curve = byte == 'C';
    if (++stream->left == GREETING_BYTES)
        stream->state = GUARD_FLAGS;
    return ok;
}

/* All that can be seen of a frame inside CURVE: whether it belongs to the handshake, and its size.
 */
static bool guard_sealed_begins(struct bus_guard_stream *stream)
{
    if ((stream->flags & FLAG_COMMAND) != 0)
        return ++stream->commands <= GUARD_COMMANDS_MAX;
    if (stream->commands < HANDSHAKE_COMMANDS) /* libzmq takes one that does not say it is one */
        return false;
    stream->begun += PEERS_FRAME_BYTES;
    stream->begun += stream->size > GUARD_CURVE_BYTES ? stream->size - GUARD_CURVE_BYTES : 0;
    return !stream->listens ||
           (stream->size <= GUARD_COMMAND_BYTES && ++stream->topics <= GUARD_TOPICS_MAX);
}

static bool guard_frame_begins(struct bus_guard_stream *stream)
{
    stream->at = 0;
    stream->state = stream->size > 0 ? GUARD_BODY : GUARD_FLAGS;
    if (stream->size > WIRE_FRAME_MAX + WIRE_SEAL ||
        (stream->curve && !guard_sealed_begins(stream)))
        return false;
    return (stream->flags & FLAG_COMMAND) == 0 || stream->size <= GUARD_COMMAND_BYTES;
}

static bool guard_flags_take(struct bus_guard_stream *stream, uint8_t byte)
{
    stream->flags = byte;
    stream->left = (byte & FLAG_LONG) != 0 ? 8 : 1;
    stream->size = 0;
    stream->state = GUARD_LENGTH;
    return (byte & FLAG_MORE) == 0; /* our messages have one part */
}

static bool guard_length_take(struct bus_guard_stream *stream, uint8_t byte)
{
    stream->size = stream->size << 8 | byte;
    return --stream->left > 0 || guard_frame_begins(stream);
}

/* SUBSCRIBE and CANCEL as commands (ZMTP 3.1), or as messages that begin with 1 or 0 (ZMTP 3.0). No
 * message of ours begins so. */
static bool guard_is_topic(const struct bus_guard_stream *stream, uint8_t byte)
{
    if (stream->curve)
        return false;
    if ((stream->flags & FLAG_COMMAND) != 0)
        return stream->at == 1 && (byte == 'S' || byte == 'C');
    return stream->at == 0 && byte <= 1;
}

static bool guard_topic_ok(struct bus_guard_stream *stream)
{
    const size_t name = (stream->flags & FLAG_COMMAND) != 0 ? sizeof "SUBSCRIBE" : 0;

    return stream->size <= GUARD_TOPIC_BYTES + name && ++stream->topics <= GUARD_TOPICS_MAX;
}

/* Returns how many bytes it took; ret_ok: as bus_guard_stream_take. Only the first two bytes of a
 * body matter. */
static size_t guard_body_take(struct bus_guard_stream *stream, const uint8_t *bytes, size_t size,
                              bool *ret_ok)
{
    size_t left = (size_t)(stream->size - stream->at);
    size_t taken = size < left ? size : left;

    for (size_t i = 0; i < taken && stream->at < 2; i++, stream->at++)
        if (guard_is_topic(stream, bytes[i]) && !guard_topic_ok(stream))
            *ret_ok = false;
    stream->at = (uint32_t)(stream->size - (left - taken));
    if (taken == left)
        stream->state = GUARD_FLAGS;
    return taken;
}

bool bus_guard_stream_take(struct bus_guard_stream *stream, const uint8_t *bytes, size_t size)
{
    bool ok = true;

    for (size_t at = 0; at < size && ok;) {
        if (stream->state == GUARD_BODY)
            at += guard_body_take(stream, bytes + at, size - at, &ok);
        else if (stream->state == GUARD_GREETING)
            ok = guard_greeting_take(stream, bytes[at++]);
        else if (stream->state == GUARD_FLAGS)
            ok = guard_flags_take(stream, bytes[at++]);
        else
            ok = guard_length_take(stream, bytes[at++]);
    }
    return ok;
}

/* --- all of them ------------------------------------------------------------------------------ */

/* A descriptor belongs to one of libzmq's threads at a time. */
static struct {
    struct bus_guard_stream *streams; /* by descriptor */
    size_t files,
        connections; /* the process's limit, and descriptors of connections are below this */
    atomic_uint_fast64_t judged, hostile, full, initiates;
} guard;

bool bus_guard_start(size_t files)
{
    size_t connections = files < FILES_MAX ? files : FILES_MAX;

    connections = connections > 2 * FILES_SPARE ? connections - FILES_SPARE : connections / 2;
    guard.streams = calloc(connections, sizeof *guard.streams);
    if (guard.streams == NULL || !bus_peers_start(connections))
        return false;
    guard.files = files;
    guard.connections = connections;
    return true;
}

ssize_t bus_guard_recv(int fd, void *data, size_t size, int flags)
{
    ssize_t got = recvfrom(fd, data, size, flags, NULL, NULL);
    struct bus_guard_stream *stream;
    uint64_t begun;

    if (got <= 0 || guard.streams == NULL || (size_t)fd >= guard.connections)
        return got;
    stream = &guard.streams[fd];
    if (!stream->accepted)
        return got;
    atomic_fetch_add_explicit(&guard.judged, 1, memory_order_relaxed);
    if (!bus_guard_stream_take(stream, data, (size_t)got)) {
        atomic_fetch_add_explicit(&guard.hostile, 1, memory_order_relaxed);
        return 0; /* as if the peer had ended: libzmq closes, and forgets what was not whole */
    }
    begun = stream->begun;
    stream->begun = 0;
    return begun == 0 || bus_peers_received(fd, begun) ? got : 0;
}

/* Properties: a byte of length and a name, four bytes of length and a value. */
static bool guard_initiate_ok(const uint8_t *at, size_t left)
{
    static const char identity[] = "Identity";

    while (left > 0 && left >= 5 + (size_t)at[0]) {
        const size_t name = at[0];
        const uint8_t *size = at + 1 + name;
        const size_t value =
            (size_t)size[0] << 24 | (size_t)size[1] << 16 | (size_t)size[2] << 8 | size[3];

        if (name == sizeof identity - 1 && memcmp(at + 1, identity, name) == 0 && value > 0)
            return false;
        if (value > left - 5 - name)
            break; /* libzmq refuses it */
        at += 5 + name + value;
        left -= 5 + name + value;
    }
    return true;
}

int bus_guard_box_open(unsigned char *plain, const unsigned char *box, unsigned long long size,
                       const unsigned char *nonce, const unsigned char *public_key,
                       const unsigned char *secret_key)
{
    static const char initiate[] = "CurveZMQINITIATE"; /* begins the nonce of that command alone */
    int code =
        crypto_box_curve25519xsalsa20poly1305_open(plain, box, size, nonce, public_key, secret_key);

    if (code != 0 || memcmp(nonce, initiate, sizeof initiate - 1) != 0 || size <= INITIATE_BYTES)
        return code;
    atomic_fetch_add_explicit(&guard.initiates, 1, memory_order_relaxed);
    if (guard_initiate_ok(plain + INITIATE_BYTES, (size_t)size - INITIATE_BYTES))
        return code;
    atomic_fetch_add_explicit(&guard.hostile, 1, memory_order_relaxed);
    return -1; /* as if it were forged: libzmq closes */
}

bool bus_guard_sees_names(void)
{
    return guard.streams == NULL || atomic_load(&guard.initiates) > 0;
}

/* Closes a connection that was just accepted: its peer tries again later. A connection that is not
 * accepted would be reported again at once, for ever. */
static int bus_guard_turn_away(int connection)
{
    close(connection);
    errno = ECONNABORTED;
    return -1;
}

int bus_guard_accept(int fd, struct sockaddr *address, socklen_t *address_size, int flags)
{
    int connection = (int)syscall(SYS_accept4, fd, address, address_size, flags);

    if (connection < 0 || guard.streams == NULL)
        return connection;
    if ((size_t)connection >= guard.connections) {
        atomic_fetch_add_explicit(&guard.full, 1, memory_order_relaxed);
        return bus_guard_turn_away(connection);
    }
    guard.streams[connection] = (struct bus_guard_stream){.accepted = true};
    if (address == NULL) /* libzmq does not ask for that of a local socket's peer */
        return connection;
    if (!bus_peers_opened(fd, connection, address))
        return bus_guard_turn_away(connection);
    guard.streams[connection].listens = bus_peers_listens(connection);
    return connection;
}

ssize_t bus_guard_send(int fd, const void *data, size_t size, int flags)
{
    ssize_t sent = sendto(fd, data, size, flags, NULL, 0);

    if (sent > 0)
        bus_peers_sent(fd, (size_t)sent);
    return sent;
}

/* ThreadSanitizer closes files of its own while it reports, and would wait for itself in here. That
 * a number is used again after its close is the kernel's order, which it does not see. */
__attribute__((no_sanitize("thread"))) int bus_guard_close(int fd)
{
    bus_peers_closed(fd);
    if (guard.streams != NULL && fd >= 0 && (size_t)fd < guard.connections)
        guard.streams[fd].accepted = false;
    return (int)syscall(SYS_close, fd);
}

void bus_guard_counters(struct bus_guard_counters *ret_counters)
{
    *ret_counters = (struct bus_guard_counters){.judged = atomic_load(&guard.judged),
                                                .hostile = atomic_load(&guard.hostile),
                                                .full = atomic_load(&guard.full)};
}

size_t bus_guard_files(void)
{
    return guard.files;
}
