/* Allocations of a node, its agent and its writer are refused, one in each run: a part.
 * slow_node_allocations has all. */
#include "tests/faults/node_allocations.h"

int main(void)
{
    return node_allocations_sweep(13, 22);
}
