/* plan - when a round is frozen for a notice, so that the job trains on until the last safe moment.
 *
 *   freeze at   deadline - (2.5 x save p95 + (2 + lag) x step p95 + FREEZE_MS + MARGIN_MS + 500 ms)
 *   earlier     if a broker that starts again at that moment would come too late, and that costs at
 *               most 1 / PLAN_RESTART_SHARE of what could be trained (short steps and saves)
 *   later       if nothing was trained in this launch: a step, a save and the margin before the
 *               deadline
 *   at once     if the time left is a guess or unknown, or that moment has passed
 *
 * A save that was never measured is assumed to take PLAN_SAVE_MS, a step that was never measured no
 * time.
 *
 * Owns: the arithmetic, and a job's save times, one a round: the slowest writer's. They are a ring
 * of the newest PLAN_SAVES_MAX, so that saves that grow are believed soon.
 * Never: clock, state of a job, allocation. Numbers come in, a moment goes out. */
#ifndef SCHEMA_PLAN_H
#define SCHEMA_PLAN_H

#include "schema/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLAN_SAVES_TEXT (PLAN_SAVES_MAX * 11 + 1) /* numbers below 2^32 and a blank each */

struct plan_saves {
    uint32_t ms[PLAN_SAVES_MAX]; /* oldest first */
    size_t count;
};
/* 0 counts as 1: a save was measured. */
void plan_saves_add(struct plan_saves *saves, int64_t ms);
/* Nearest rank; of fewer than 20 the longest. 0: none was measured. */
int64_t plan_saves_p95(const struct plan_saves *saves);
/* As decimal numbers with a blank between, for the database. */
void plan_saves_write(const struct plan_saves *saves, char ret_text[PLAN_SAVES_TEXT]);
/* Any other text gives no saves. */
void plan_saves_read(struct plan_saves *saves, const char *text);

struct plan_facts {
    int64_t now_boot_ms;
    int64_t deadline_boot_ms; /* 0 = unknown */
    int64_t grace_ms;         /* that the notice gave when it came */
    bool at_once;             /* it asks for no more steps, or its time left is a guess */
    bool trained;             /* a step of this launch has begun: there is something to save */
    int64_t step_p95_ms;      /* 0 = not measured */
    int64_t save_p95_ms;      /* 0 = not measured */
    bool alone;  /* without a broker: no freeze to wait for, none that may start again */
    int64_t lag; /* steps between the first and the last rank */
};

enum plan_why {
    PLAN_NONE,
    PLAN_ASKED, /* at once, as the notice says */
    PLAN_AHEAD, /* freeze_boot_ms was computed, and lies ahead */
    PLAN_DUE,   /* computed, and it is now or was before */
    PLAN_WHY_COUNT
};

struct plan {
    enum plan_why why;
    int64_t freeze_boot_ms;
    int64_t reserve_ms; /* before the deadline; 0 unless it was computed */
    unsigned basis;     /* PLAN_KNOWS_*: what it was computed from */
};
#define PLAN_KNOWS_STEP 1u
#define PLAN_KNOWS_SAVE 2u
#define PLAN_KNOWS_TRAINED 4u
#define PLAN_BASIS_TEXT 128

struct plan plan_make(const struct plan_facts *facts);

/* The least time in which a freeze and a save may still end before the deadline's margin. */
int64_t plan_least_ms(const struct plan_facts *facts);

/* "step p95 5 ms, no save was measured yet: 24 s assumed", and whether training has begun. */
void plan_describe_basis(const struct plan_facts *facts, char ret_text[PLAN_BASIS_TEXT]);

/* The time left to plan with, from what a source tells (told_ms) and the option grace_period_ms; -1
 * = neither tells it. usual: no time was told, and the sender of such signals usually leaves this
 * much. */
struct plan_left {
    int64_t ms;     /* bounds the save; GRACE_DEFAULT_MS if nothing tells it */
    bool by_option; /* it is grace_period_ms */
    bool assumed;   /* nobody told it */
    bool at_once;   /* there is no time to plan with, or no more steps are wanted */
    bool
        too_short; /* what was told, or the option, is below LEAST_LEAD_MS and counts as not said */
};
struct plan_left plan_left_of(int64_t told_ms, int64_t grace_period_ms, bool usual);

#endif
