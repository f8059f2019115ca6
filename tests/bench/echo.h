/* echo - the limit of a task's way: 64 bytes over the same hops, without a word being read.
 * DEALER (coordinator), ROUTER (broker), DEALER (worker) and back, over an ipc socket; each trip is
 * four messages. Owns: its sockets, threads and, when it is `placed`, a process of the router's. */
#ifndef TESTS_BENCH_ECHO_H
#define TESTS_BENCH_ECHO_H

#include <stdbool.h>

struct echo;

/* placed: every role has a context of its own, and the router a process of its own, as musterd, a
 * coordinator and a worker have. Else all sockets share one context, and with it one I/O thread:
 * fewer hand-offs than any three programs can have. NULL: errno. */
struct echo *echo_open(bool placed);
/* False: nothing came back within 5 s. */
bool echo_trip(struct echo *echo);
void echo_close(struct echo **echo);

#endif
