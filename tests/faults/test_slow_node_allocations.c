/* Each allocation of a node, its agent and its writer is refused once, from muster_node_open to muster_node_close. */
#include "tests/faults/node_allocations.h"

#define POINTS_MIN 290 /* some come with the clock: heartbeats, repetitions */

int main(void)
{
    return node_allocations_sweep(1, POINTS_MIN);
}
