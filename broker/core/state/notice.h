/* notice - who is to be terminated, and when a save for it begins. */
#ifndef BROKER_CORE_NOTICE_H
#define BROKER_CORE_NOTICE_H

#include "schema/rules/plan.h"
#include "schema/sql/record.h"

struct notice {
    char id[NOTICE_ID_MAX + 1];
    uint64_t generation;
    int64_t rank;
    uint64_t incarnation;
    enum wire_notice_kind kind;
    char source[NAME_MAX_BYTES + 1];
    enum record_notice_state state;
    bool cancellable;
    bool of_evaluator; /* its own end is nobody else's: shown, no cause of a round */
    int64_t left_ms;
    int64_t deadline_boot_ms; /* 0 = not known (the machine rebooted) */
    char *text;
    uint64_t round;
    int64_t received_unix_ms;
    uint64_t flags; /* NOTICE_FLAG_* */
    struct notice *next;
};

#define GRACE_TEXT_MAX 511
struct grace { /* what the active notices ask for, as shown */
    enum plan_why why;
    char id[NOTICE_ID_MAX + 1]; /* of the notice that decides */
    int64_t freeze_boot_ms;
    int64_t freeze_unix_ms; /* 0 = no plan waits */
    char text[GRACE_TEXT_MAX + 1];
    unsigned basis;   /* PLAN_KNOWS_* */
    bool early_asked; /* the early save: one for all that end together */
};

#endif
