/* Seeds that nobody has run before, sanitized. One that fails is kept as a line of regressions.txt. */
#include "tests/sim/sim_test.h"

int main(void)
{
    return sim_fresh_main(15.0, 10.0);
}
