/* Each allocation of the broker's own code is refused once while checkpoints are kept and deleted,
 * and while tasks run. */
#include "tests/faults/own_allocations.h"

int main(void)
{
    return own_allocations_sweep(true);
}
