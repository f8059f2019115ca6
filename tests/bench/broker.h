/* broker - a musterd that a benchmark starts and stops. One a process. */
#ifndef TESTS_BENCH_BROKER_H
#define TESTS_BENCH_BROKER_H

#include <stdbool.h>

/* That program, with this database, at this address; silent. Does not wait until it listens. False:
 * errno. */
bool bench_broker_start(const char *musterd, const char *db, const char *address);
void bench_broker_stop(void);
void bench_broker_kill(void); /* before a benchmark that failed ends; without one nothing */

#endif
