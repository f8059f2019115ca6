/* pace - see pace.h. */
#include "node/core/pace.h"

void pace_add(struct pace *pace, int64_t steps, int64_t took_ms)
{
    pace->times[pace->count % PACE_LOOKS_MAX] = (uint64_t)((took_ms + steps - 1) / steps);
    pace->counts[pace->count++ % PACE_LOOKS_MAX] = (uint64_t)steps;
}

uint64_t pace_p95(const struct pace *pace)
{
    size_t count = pace->count < PACE_LOOKS_MAX ? pace->count : PACE_LOOKS_MAX;
    uint64_t all = 0, p95 = UINT64_MAX;

    for (size_t i = 0; i < count; i++)
        all += pace->counts[i];
    for (size_t pass = 0; pass < count; pass++) { /* the longest, the next, ... */
        uint64_t next = 0, beyond = 0;
        for (size_t i = 0; i < count; i++)
            if (pace->times[i] < p95 && pace->times[i] > next)
                next = pace->times[i];
        for (size_t i = 0; i < count; i++)
            beyond += pace->times[i] >= next ? pace->counts[i] : 0;
        p95 = next;
        if (beyond > all / 20)
            break;
    }
    return count > 0 ? p95 : 0;
}
