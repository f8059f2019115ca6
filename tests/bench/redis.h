/* redis - the agreement of bench_notice as programs build it on Redis: each node has a connection
 * for commands and one that subscribes. One publishes the freeze, each pushes its report, and who
 * makes it complete sets the decision and publishes it. Redis logs each write, and syncs its log
 * before anybody is answered (appendonly yes, appendfsync always). */
#ifndef TESTS_BENCH_REDIS_H
#define TESTS_BENCH_REDIS_H

#include <stdbool.h>
#include <stddef.h>

#define REDIS_NODES_MAX 4500 /* four descriptors each, two of them the server's */

bool redis_is_here(void); /* the program redis-server */
/* `rounds` agreements of `count` nodes, behind one that is not counted. The log is in `dir`. Fills
 * what each took, and what it cost the server. */
void redis_measure(const char *dir, size_t count, size_t rounds, double *ret_times_ms,
                   double *ret_cpu_ms);

#endif
