/* Each allocation of a node, its agent and its writer is refused once, from muster_node_open to
 * muster_node_close. With arguments FROM [TO] only these. */
#include "tests/faults/node_allocations.h"

#include <stdlib.h>

#define POINTS_MIN 290 /* some come with the clock: heartbeats, repetitions */

int main(int argc, char **argv)
{
    if (argc > 1)
        return node_allocations_replay(strtoull(argv[1], NULL, 10),
                                       strtoull(argv[argc - 1], NULL, 10));
    return node_allocations_sweep(1, POINTS_MIN);
}
