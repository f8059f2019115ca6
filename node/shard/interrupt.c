/* interrupt - see interrupt.h. */
#include "node/shard/interrupt.h"

#include "node/clock.h"

#include <stddef.h>

bool interrupt_look_at(struct interrupt *interrupt, int64_t now_ms)
{
    if (interrupt->said || interrupt->ask == NULL)
        return interrupt->said;
    if (interrupt->asked_ms == 0)
        interrupt->asked_ms = now_ms; /* what is short asks nobody */
    if (now_ms - interrupt->asked_ms < INTERRUPT_MS)
        return false;
    interrupt->asked_ms = now_ms;
    interrupt->said = interrupt->ask(interrupt->arg);
    return interrupt->said;
}

bool interrupt_look(struct interrupt *interrupt)
{
    return interrupt != NULL && interrupt_look_at(interrupt, clock_ms(CLOCK_MONOTONIC));
}

bool interrupt_went(uint64_t bytes, void *interrupt)
{
    (void)bytes;
    return !interrupt_look(interrupt);
}
