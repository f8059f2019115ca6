/* Seeds that nobody has run before, in every test run, without sanitizers. One that fails is kept
 * as a line of regressions.txt. */
#include "tests/sim/sim_test.h"

int main(void)
{
    return sim_fresh_main(
        &(struct sim_fresh){.memory_s = 8, .put_back_s = 3, .store_s = 4, .shared_s = 2});
}
