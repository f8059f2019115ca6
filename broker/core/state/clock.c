/* clock - the loop's clock, which stands still while the loop is away: see clock_move() in core.c.
 */
#include "broker/core/state/state.h"

/* The time up to the last tick, since a moment on the loop's clock. A newcomer that asks for a held
 * rank is answered by what was known then, since the holder's word may be the next in the queue. */
int64_t core_passed_ms(const struct core *core, int64_t since_ms)
{
    return core->ticked_ms - since_ms;
}

int64_t core_clock_ms(const struct core *core, int64_t boot_ms)
{
    return boot_ms - core->away_ms;
}
