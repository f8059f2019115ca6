/* pace - how long a node's steps take, from looks at the gate's count: no clock on the hot path. A
 * look sees several steps or a part of one, so only the mean between two looks is known. Owns: the
 * newest PACE_LOOKS_MAX looks that saw a step end. Never: a clock, memory. Pure. */
#ifndef NODE_CORE_PACE_H
#define NODE_CORE_PACE_H

#include <stddef.h>
#include <stdint.h>

#define PACE_LOOKS_MAX 32

struct pace {
    uint64_t times[PACE_LOOKS_MAX];  /* mean of the steps that a look saw ... */
    uint64_t counts[PACE_LOOKS_MAX]; /* ... and how many they were */
    size_t count;
};

/* `steps` (at least 1) took took_ms together. */
void pace_add(struct pace *pace, int64_t steps, int64_t took_ms);
/* Nearest rank over the steps, not over the looks: a look that saw twenty short ones counts twenty
 * times, and one step that waited for a peer's save is one of hundreds. 0: none measured. */
uint64_t pace_p95(const struct pace *pace);

#endif
