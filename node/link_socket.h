/* link_socket - ZeroMQ's calls, repeated while a signal breaks them off. All of them, also those that never wait, first look
 * for commands of the I/O thread, and return EINTR when a signal comes then; nothing has been done by then, so that the
 * call may be made again. A user's thread has signals. */
#ifndef NODE_LINK_SOCKET_H
#define NODE_LINK_SOCKET_H

#include <stdbool.h>
#include <zmq.h>

/* As zmq_connect, zmq_socket_monitor, zmq_ctx_term: 0, or -1 and zmq_errno(). */
int socket_connect(void *socket, const char *endpoint);
int socket_monitor(void *socket, const char *endpoint, int events);
int socket_end(void *context);

/* Do not wait. False: nothing is there, or there is no room. */
bool socket_receive(void *socket, zmq_msg_t *ret_part);
bool socket_send(void *socket, const void *frame, size_t size);
bool socket_has_frame(void *socket);

#endif
