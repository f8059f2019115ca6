/* Seeds that nobody has run before: many, without sanitizers. One that fails is kept as a line of
 * regressions.txt. */
#include "tests/sim/sim_test.h"

int main(void)
{
    return sim_fresh_main(30.0, 20.0);
}
