/* manager_policy - the save policies that every rank computes alike from the step, and the check of
 * all. Owns: copies of the rules. Never: a message, a clock; what depends on time or cost is the
 * broker's. */
#ifndef CLIENT_MANAGER_POLICY_H
#define CLIENT_MANAGER_POLICY_H

#include <muster/policy.h>

struct step_rules {
    int64_t every[MUSTER_POLICIES_MAX];
    size_t every_count;
    int64_t steps[MUSTER_POLICY_STEPS_MAX];
    size_t steps_count;
    bool first;
    struct {
        muster_should_save_fn *fn;
        void *arg;
    } functions[MUSTER_POLICIES_MAX];
    size_t functions_count;
};

/* Copies the rules that are this module's; policies NULL: none. MUSTER_E_ARGUMENT: which policy of
 * which list is wrong and why; also for those that are the broker's, and for the keep policies. */
enum muster_status step_rules_take(const struct muster_policies *policies,
                                   struct step_rules *ret_rules, struct muster_error *err);

/* Is a save wanted at this step? first: it is the first step of a job that never saved. */
bool step_rules_want(const struct step_rules *rules, int64_t step, bool first);

/* Does a function of the user's want one? Chief only. */
bool step_rules_ask(const struct step_rules *rules, int64_t step);

#endif
