/* departed - processes that have left for good. A former connection, or the network, may deliver a
 * first HELLO late: after its process's LEAVE, and after the next generation was opened. It would
 * then join for a process that is gone, with the notices that it had. This list is only
 * in memory, since nothing that was sent to a former start of the broker reaches this one. */
#include "broker/core/state/state.h"

void departed_add(struct departed *departed, uint64_t incarnation)
{
    departed->incarnations[departed->next] = incarnation;
    departed->next = (departed->next + 1) % DEPARTED_MAX;
}

bool departed_holds(const struct departed *departed, uint64_t incarnation)
{
    for (size_t i = 0; i < DEPARTED_MAX; i++)
        if (departed->incarnations[i] == incarnation)
            return true;
    return false;
}
