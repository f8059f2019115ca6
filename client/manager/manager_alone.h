/* manager_alone - save policies by time and cost of a process without a broker: there is nobody to
 * agree with, so it decides by itself, as a broker would. Intervals count from the beginning of the
 * last save, also of an earlier life. Pure: the clock is the caller's. */
#ifndef CLIENT_MANAGER_ALONE_H
#define CLIENT_MANAGER_ALONE_H

#include "schema/rules/policies.h"

struct alone_pace {          /* times on the caller's clock */
    int64_t began_ms;        /* the last save, or the first step */
    int64_t run_ms;          /* when this life began */
    int64_t saves, saves_ms; /* that were measured, and how long they took in all */
};

/* age_ms: of the newest checkpoint, -1 = there is none. */
struct alone_pace alone_pace_begin(int64_t now_ms, int64_t age_ms);
void alone_pace_saved(struct alone_pace *pace, int64_t began_ms, int64_t took_ms);
/* Is a save due by one of these rules? */
bool alone_pace_due(const struct alone_pace *pace, const struct save_policies *rules,
                    int64_t now_ms);

#endif
