/* link_socket - see link_socket.h. */
#include "node/link_socket.h"

#include <errno.h>

static bool again(int code)
{
    return code < 0 && zmq_errno() == EINTR;
}

int socket_connect(void *socket, const char *endpoint)
{
    int code;

    do
        code = zmq_connect(socket, endpoint);
    while (again(code));
    return code;
}

int socket_monitor(void *socket, const char *endpoint, int events)
{
    int code;

    do
        code = zmq_socket_monitor(socket, endpoint, events);
    while (again(code));
    return code;
}

int socket_end(void *context)
{
    int code;

    do
        code = zmq_ctx_term(context);
    while (again(code));
    return code;
}

bool socket_receive(void *socket, zmq_msg_t *ret_part)
{
    int size;

    do
        size = zmq_msg_recv(ret_part, socket, ZMQ_DONTWAIT);
    while (again(size));
    return size >= 0;
}

bool socket_send(void *socket, const void *frame, size_t size)
{
    int sent;

    do
        sent = zmq_send(socket, frame, size, ZMQ_DONTWAIT);
    while (again(sent));
    return sent >= 0;
}

bool socket_has_frame(void *socket)
{
    int events = 0, code;
    size_t size = sizeof events;

    do
        code = zmq_getsockopt(socket, ZMQ_EVENTS, &events, &size);
    while (again(code));
    return code == 0 && (events & ZMQ_POLLIN) != 0;
}
