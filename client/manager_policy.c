/* manager_policy - see manager_policy.h. */
#include "client/manager_policy.h"

#include "schema/error.h"

#include <string.h>

/* --- the check ------------------------------------------------------------------------------------- */

static enum muster_status wrong(struct muster_error *err, const char *list, size_t index,
                                const char *what)
{
    return error_set(err, MUSTER_E_ARGUMENT, "policies.%s[%zu] %s", list, index, what);
}

static const char *steps_problem(const int64_t *steps, size_t count)
{
    if (steps == NULL || count == 0)
        return "has no steps; give at least one, or leave the policy out";
    if (count > MUSTER_POLICY_STEPS_MAX)
        return "has more steps than a list of policies may (512); use several rules of every so "
               "many";
    for (size_t i = 0; i < count; i++)
        if (steps[i] < 0)
            return "has a negative step; steps begin with 0";
    return NULL;
}

static const char *save_problem(const struct muster_save_policy *p)
{
    if (p->kind != MUSTER_SAVE_STEPS && (p->steps != NULL || p->steps_count > 0))
        return "has steps, but its kind is not MUSTER_SAVE_STEPS";
    if (p->kind != MUSTER_SAVE_FUNCTION && p->should_save_fn != NULL)
        return "has a should_save_fn, but its kind is not MUSTER_SAVE_FUNCTION";
    switch (p->kind) {
    case MUSTER_SAVE_EVERY_STEPS:
        return p->number > 0 ? NULL : "saves every 0 or fewer steps; number has to be 1 or more";
    case MUSTER_SAVE_STEPS:
        return steps_problem(p->steps, p->steps_count);
    case MUSTER_SAVE_PERIOD_MS:
        return p->number > 0 ? NULL : "has a period of 0 or fewer ms; number has to be 1 or more";
    case MUSTER_SAVE_CONTINUOUS_MS:
        return p->number >= 0 ? NULL : "has a negative interval; number has to be 0 or more";
    case MUSTER_SAVE_OVERHEAD:
        return p->share > 0 && p->share < 1 ? NULL : "has a share that is not between 0 and 1";
    case MUSTER_SAVE_FUNCTION:
        return p->should_save_fn != NULL ? NULL : "is a function, but should_save_fn is NULL";
    case MUSTER_SAVE_FIRST:
    case MUSTER_SAVE_YOUNG_DALY:
        return NULL;
    default:
        return "has a kind that does not exist";
    }
}

static const char *keep_problem(const struct muster_keep_policy *p)
{
    if (p->kind != MUSTER_KEEP_STEPS && (p->steps != NULL || p->steps_count > 0))
        return "has steps, but its kind is not MUSTER_KEEP_STEPS";
    if (p->kind != MUSTER_KEEP_BEST && p->metric != NULL)
        return "has a metric, but its kind is not MUSTER_KEEP_BEST";
    switch (p->kind) {
    case MUSTER_KEEP_LATEST:
        return p->number >= 0 ? NULL : "keeps a negative number of checkpoints";
    case MUSTER_KEEP_BEST:
        if (p->metric == NULL || p->metric[0] == '\0')
            return "keeps the best, but names no metric";
        return p->number >= 0 ? NULL : "keeps a negative number of checkpoints";
    case MUSTER_KEEP_EVERY_STEPS:
    case MUSTER_KEEP_EVERY_STEPS_NEAR:
        return p->number > 0 ? NULL : "keeps every 0 or fewer steps; number has to be 1 or more";
    case MUSTER_KEEP_EVERY_MS:
    case MUSTER_KEEP_LAST_MS:
        return p->number > 0 ? NULL : "has a time of 0 or fewer ms; number has to be 1 or more";
    case MUSTER_KEEP_STEPS:
        return steps_problem(p->steps, p->steps_count);
    default:
        return "has a kind that does not exist";
    }
}

static enum muster_status check_lists(const struct muster_policies *policies,
                                      struct muster_error *err)
{
    if (policies->struct_size != sizeof *policies)
        return error_set(err, MUSTER_E_ARGUMENT,
                         "policies are not initialized, or of another version; begin with "
                         "MUSTER_POLICIES_INIT");
    if (policies->save_count > MUSTER_POLICIES_MAX || policies->keep_count > MUSTER_POLICIES_MAX)
        return error_set(err, MUSTER_E_ARGUMENT, "a list of policies has more than %d rules",
                         MUSTER_POLICIES_MAX);
    if ((policies->save == NULL && policies->save_count > 0) ||
        (policies->keep == NULL && policies->keep_count > 0))
        return error_set(err, MUSTER_E_ARGUMENT, "a list of policies is NULL and has a count");
    for (size_t i = 0; i < policies->keep_count; i++) {
        const char *problem = keep_problem(&policies->keep[i]);

        if (problem != NULL)
            return wrong(err, "keep", i, problem);
    }
    if (policies->trash != NULL && policies->keep_count == 0)
        return error_set(err, MUSTER_E_ARGUMENT,
                         "policies.trash is given, but no keep policy deletes anything");
    return MUSTER_OK;
}

/* --- the rules ------------------------------------------------------------------------------------- */

static enum muster_status take(struct step_rules *rules, const struct muster_save_policy *p,
                               size_t i, struct muster_error *err)
{
    switch (p->kind) {
    case MUSTER_SAVE_EVERY_STEPS:
        rules->every[rules->every_count++] = p->number;
        return MUSTER_OK;
    case MUSTER_SAVE_STEPS:
        if (rules->steps_count + p->steps_count > MUSTER_POLICY_STEPS_MAX)
            return wrong(err, "save", i, "brings the list above 512 given steps");
        memcpy(rules->steps + rules->steps_count, p->steps, p->steps_count * sizeof *p->steps);
        rules->steps_count += p->steps_count;
        return MUSTER_OK;
    case MUSTER_SAVE_FIRST:
        rules->first = true;
        return MUSTER_OK;
    case MUSTER_SAVE_FUNCTION:
        rules->functions[rules->functions_count].fn = p->should_save_fn;
        rules->functions[rules->functions_count++].arg = p->arg;
        return MUSTER_OK;
    default: /* the broker's */
        return MUSTER_OK;
    }
}

enum muster_status step_rules_take(const struct muster_policies *policies,
                                   struct step_rules *ret_rules, struct muster_error *err)
{
    enum muster_status status = MUSTER_OK;

    memset(ret_rules, 0, sizeof *ret_rules);
    if (policies == NULL)
        return MUSTER_OK;
    status = check_lists(policies, err);
    for (size_t i = 0; i < policies->save_count && status == MUSTER_OK; i++) {
        const char *problem = save_problem(&policies->save[i]);

        if (problem != NULL)
            return wrong(err, "save", i, problem);
        status = take(ret_rules, &policies->save[i], i, err);
    }
    return status;
}

bool step_rules_want(const struct step_rules *rules, int64_t step, bool first)
{
    if (step < 0)
        return false;
    if (first && rules->first)
        return true;
    for (size_t i = 0; i < rules->every_count; i++)
        if (step % rules->every[i] == 0)
            return true;
    for (size_t i = 0; i < rules->steps_count; i++)
        if (rules->steps[i] == step)
            return true;
    return false;
}

bool step_rules_ask(const struct step_rules *rules, int64_t step)
{
    bool wanted = false;

    for (size_t i = 0; i < rules->functions_count; i++) /* each is asked: it may count its calls */
        wanted |= rules->functions[i].fn(step, rules->functions[i].arg);
    return wanted;
}
