/* bus_guard - what a connection may send, judged before libzmq takes memory for it.
 * Owns: a small state for each connection, by descriptor; the counters of what it closed.
 * Never: keeps or changes a byte, waits, logs.
 *
 * libzmq 4.3.4 bounds a frame (ZMQ_MAXMSGSIZE) and counts whole messages (ZMQ_RCVHWM). No option of
 * it bounds the parts of one message, the length of a topic or the number of topics. At the limit
 * of open files its accept spins. It makes each connection by accept or accept4, reads it by recv,
 * and opens what CURVE sealed by crypto_box_open. So main.c defines these for the whole process and
 * hands them to this module. This needs no copy, no further thread and no further descriptor.
 *
 * What always holds: a connection is closed at the first frame that a peer of ours never sends. An
 * unfinished message takes at most WIRE_FRAME_MAX + WIRE_SEAL bytes, and a connection has at most
 * GUARD_TOPICS_MAX topics. If CURVE encrypts the frames, only their size can be judged here. So a
 * connection that listens may send no more frames than topics. For the others, bus_peers.c counts
 * the bytes that nobody has taken. */
#ifndef BROKER_BUS_GUARD_H
#define BROKER_BUS_GUARD_H

#include "schema/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#define GUARD_TOPICS_MAX 16 /* SUBSCRIBE and CANCEL in a connection's life; a node sends one */
#define GUARD_TOPIC_BYTES (JOB_NAME_MAX + 2) /* how, name, end */
#define GUARD_COMMAND_BYTES 512              /* a READY of ours has some 40, CURVE's INITIATE 300 */
#define GUARD_COMMANDS_MAX 4                 /* with CURVE: HELLO, INITIATE, and two to spare */
#define GUARD_CURVE_BYTES 33                 /* what it puts around a message */

enum bus_guard_state { GUARD_GREETING, GUARD_FLAGS, GUARD_LENGTH, GUARD_BODY };

struct bus_guard_stream { /* all zero but `accepted`: a new connection */
    bool accepted;        /* it is a peer's: those that we made are not judged */
    uint8_t state;        /* enum bus_guard_state */
    uint8_t flags;        /* of the present frame */
    uint8_t left;         /* bytes of the greeting or of the length: read, or still to come */
    uint8_t topics;
    bool curve;       /* as its greeting says: what follows the handshake cannot be read */
    bool listens;     /* at the events' port, of a broker with keys */
    uint8_t commands; /* of CURVE's handshake */
    uint32_t at;      /* in the body */
    uint64_t size;
    uint64_t begun; /* what the frames cost that have begun, see bus_peers.h; for who takes it */
};

/* Judges the next bytes of a connection. False: no peer of ours sends that, so close the
 * connection. */
bool bus_guard_stream_take(struct bus_guard_stream *stream, const uint8_t *bytes, size_t size);

/* From now on connections are judged. files: the process's limit of open files; some are left for
 * the rest of the program. False: no memory. */
bool bus_guard_start(size_t files);

/* These replace the system calls of the same names. Before bus_guard_start they do only what those
 * do. */
ssize_t bus_guard_recv(int fd, void *data, size_t size, int flags);
/* crypto_box_open for libzmq. A client that names itself is refused (-1). It could take the name of
 * a connection that ended, and hear what is said to it. And libzmq 4.3 aborts when it gives a name
 * away that somebody has. muster's own clients have none. */
int bus_guard_box_open(unsigned char *plain, const unsigned char *box, unsigned long long size,
                       const unsigned char *nonce, const unsigned char *public_key,
                       const unsigned char *secret_key);
int bus_guard_accept(int fd, struct sockaddr *address, socklen_t *address_size, int flags);
ssize_t bus_guard_send(int fd, const void *data, size_t size, int flags);
int bus_guard_close(int fd);

/* False: a client showed its key, and this libzmq did not open its box by that call. */
bool bus_guard_sees_names(void);

struct bus_guard_counters {
    uint64_t judged; /* reads: 0 while messages arrive says that this libzmq reads in another way */
    uint64_t hostile; /* connections closed for what they sent */
    uint64_t full;    /* ... because too many are open */
};
void bus_guard_counters(struct bus_guard_counters *ret_counters);
size_t bus_guard_files(void); /* as told to bus_guard_start, 0 = not started */

#endif
