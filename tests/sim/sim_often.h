/* sim_often - what a fixed set of worlds must have met. */
#ifndef TESTS_SIM_SIM_OFTEN_H
#define TESTS_SIM_SIM_OFTEN_H

#include <stdint.h>

/* Of everything that it can meet 100: what is rarer is printed and counted. */
void sim_expect_often(const char *kind, const char *what, uint64_t count);
unsigned sim_rare(void);

#endif
