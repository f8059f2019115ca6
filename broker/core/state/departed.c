/* departed - who has left for good. A first HELLO that a former connection still held, or that the
 * network repeated, can come after its process's LEAVE and after the next generation was opened: it
 * would join as a process that is not there any more, with the notices that it had. In memory
 * alone: what was sent to a former start of the broker does not come. */
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
