/* sim_often - see sim_often.h. */
#include "tests/sim/sim_often.h"

#include <stdio.h>

#define OFTEN 100

static unsigned rare;

void sim_expect_often(const char *kind, const char *what, uint64_t count)
{
    if (count >= OFTEN)
        return;
    printf("too seldom: %s '%s' %llu times, not %d\n", kind, what, (unsigned long long)count,
           OFTEN);
    rare++;
}

unsigned sim_rare(void)
{
    return rare;
}
