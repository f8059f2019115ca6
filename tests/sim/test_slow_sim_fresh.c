/* Seeds that nobody has run before, sanitized. One that fails is kept as a line of regressions.txt.
 */
#include "tests/sim/sim_test.h"

int main(void)
{
    return sim_fresh_main(
        &(struct sim_fresh){.memory_s = 15, .put_back_s = 5, .store_s = 10, .shared_s = 5});
}
