/* More of them than plain_fresh_seeds.c runs. */
#include "tests/sim/sim_test.h"

int main(void)
{
    return sim_fresh_main(
        &(struct sim_fresh){.memory_s = 30, .put_back_s = 15, .store_s = 30, .shared_s = 15});
}
