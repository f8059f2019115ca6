/* link_socket - ZeroMQ's calls, repeated while a signal breaks them off. All of them, also those
 * that never wait, first look for commands of the I/O thread, and return EINTR if a signal comes
 * then. Nothing has been done by then, so the call may be made again. A user's thread has signals.
 * It is a header because libmuster-query is linked without node. */
#ifndef NODE_LINK_SOCKET_H
#define NODE_LINK_SOCKET_H

#include <errno.h>
#include <stdbool.h>
#include <zmq.h>

static inline bool link_socket_again(int code)
{
    return code < 0 && zmq_errno() == EINTR;
}

/* As zmq_connect, zmq_socket_monitor, zmq_ctx_term: 0, or -1 and zmq_errno(). */
static inline int socket_connect(void *socket, const char *endpoint)
{
    int code;

    do
        code = zmq_connect(socket, endpoint);
    while (link_socket_again(code));
    return code;
}

static inline int socket_monitor(void *socket, const char *endpoint, int events)
{
    int code;

    do
        code = zmq_socket_monitor(socket, endpoint, events);
    while (link_socket_again(code));
    return code;
}

static inline int socket_end(void *context)
{
    int code;

    do
        code = zmq_ctx_term(context);
    while (link_socket_again(code));
    return code;
}

/* The next three do not wait. False: nothing is there, or there is no room. */
static inline bool socket_receive(void *socket, zmq_msg_t *ret_part)
{
    int size;

    do
        size = zmq_msg_recv(ret_part, socket, ZMQ_DONTWAIT);
    while (link_socket_again(size));
    return size >= 0;
}

static inline bool socket_send(void *socket, const void *frame, size_t size)
{
    int sent;

    do
        sent = zmq_send(socket, frame, size, ZMQ_DONTWAIT);
    while (link_socket_again(sent));
    return sent >= 0;
}

static inline bool socket_has_frame(void *socket)
{
    int events = 0, code;
    size_t size = sizeof events;

    do
        code = zmq_getsockopt(socket, ZMQ_EVENTS, &events, &size);
    while (link_socket_again(code));
    return code == 0 && (events & ZMQ_POLLIN) != 0;
}

#endif
