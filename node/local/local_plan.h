/* local_plan - what one process without a broker knows of its notices, and when it saves for them:
 * the broker's arithmetic (schema/rules/plan.h) with this process's own steps and saves. Owns: the
 * active notices, the measured times, the texts for people. Never: a clock, memory, a file, a lock.
 * Pure: the caller says what time it is. */
#ifndef NODE_LOCAL_PLAN_H
#define NODE_LOCAL_PLAN_H

#include "node/core/pace.h"
#include "node/notice/base/source.h"
#include "schema/rules/plan.h"

#define LOCAL_TIMES_TEXT (PLAN_SAVES_TEXT + 64)
#define LOCAL_PLAN_TEXT 512

struct local_notice {
    uint64_t number; /* of its record; 0: the program's own, which nobody withdraws */
    enum wire_notice_kind kind;
    int64_t deadline_boot_ms, grace_ms;
    bool at_once;
    bool assumed; /* grace_ms was not told */
    char text[NOTICE_TEXT_MAX + 1];
};

struct local_plan {
    int64_t grace_period_ms; /* as the option: -1 = as the notice says */
    struct local_notice notices[NOTICES_NODE_MAX];
    size_t count;
    struct plan_saves saves;
    struct pace pace;
    int64_t step_p95_before_ms; /* of the lives before; 0: none */
    int64_t from;               /* the step of the restore: beyond it this life has trained */
    int64_t begun, begun_at;    /* of the last look; 0 while the gate is closed */
    struct plan plan;           /* of the earliest notice; PLAN_NONE without one */
    struct local_notice chosen; /* that one */
    bool measures;              /* the early save was asked for, see local_plan_wants_save */
    char text[LOCAL_PLAN_TEXT]; /* what local_plan_due found */
};

void local_plan_init(struct local_plan *plan, int64_t grace_period_ms);

/* A notice that ends the process; left_ms -1 = unknown. Of too many the latest is not kept. */
void local_plan_notice(struct local_plan *plan, int64_t now, uint64_t number,
                       enum wire_notice_kind kind, int64_t left_ms, const char *text);
/* False: there was none of this number. */
bool local_plan_withdraw(struct local_plan *plan, uint64_t number);

/* One look at the gate. open: a thread that comes may pass. */
void local_plan_look(struct local_plan *plan, int64_t now, int64_t begun, bool open);
/* A restore: what it sets is no step. */
void local_plan_restart_looks(struct local_plan *plan, int64_t begun);
int64_t local_plan_step_p95(const struct local_plan *plan); /* 0: not measured */

/* Is it time to save and leave? *ret_wakeup_boot_ms: when to ask again at the latest, INT64_MAX:
 * never. Without a notice false. `plan`, `chosen` and `text` tell what was found. */
bool local_plan_due(struct local_plan *plan, int64_t now, int64_t *ret_wakeup_boot_ms);

/* After local_plan_due: true once, if the plan waits and no save was ever measured. That one save
 * measures it. */
bool local_plan_wants_save(struct local_plan *plan);

/* The measured times, as text for the next life. Any other text gives none. */
void local_plan_write_times(const struct local_plan *plan, char ret_text[LOCAL_TIMES_TEXT]);
void local_plan_read_times(struct local_plan *plan, const char *text);

#endif
