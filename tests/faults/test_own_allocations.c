/* Each allocation of the broker's own code in a preemption is refused once, and a part of those of
 * the other stories. */
#include "tests/faults/own_allocations.h"

int main(void)
{
    return own_allocations_sweep(false);
}
