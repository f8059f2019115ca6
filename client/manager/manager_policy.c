/* manager_policy - see manager_policy.h. */
#include "client/manager/manager_policy.h"

#include "schema/error.h"
#include "schema/limits.h"

#include <string.h>

/* --- the check -------------------------------------------------------------------------------- */

/* One rule of a list, for texts. */
struct rule {
    const char *list;
    size_t index;
};

static enum muster_status manager_policy_wrong(struct muster_error *err, struct rule rule,
                                               const char *what)
{
    return error_set(err, MUSTER_E_ARGUMENT, "muster_manager_open: policies.%s[%zu] %s", rule.list,
                     rule.index, what);
}

static enum muster_status manager_policy_check_number(struct rule rule, int64_t number,
                                                      int64_t least, const char *unit,
                                                      struct muster_error *err)
{
    if (number >= least && number <= POLICY_NUMBER_MAX)
        return MUSTER_OK;
    return error_set(err, MUSTER_E_ARGUMENT,
                     "muster_manager_open: policies.%s[%zu].number is %lld; give %lld or more %s%s",
                     rule.list, rule.index, (long long)number, (long long)least, unit,
                     number > 0 ? ", below 2^62" : "");
}

static enum muster_status manager_policy_check_steps(struct rule rule, const int64_t *steps,
                                                     size_t count, struct muster_error *err)
{
    if (steps == NULL || count == 0)
        return manager_policy_wrong(err, rule,
                                    "has no steps; give at least one, or leave the policy out");
    if (count > MUSTER_POLICY_STEPS_MAX)
        return manager_policy_wrong(
            err, rule,
            "has more steps than a list of policies may (512); use several rules of every "
            "so many");
    for (size_t i = 0; i < count; i++)
        if (steps[i] < 0)
            return error_set(
                err, MUSTER_E_ARGUMENT,
                "muster_manager_open: policies.%s[%zu].steps[%zu] is %lld; steps begin "
                "with 0",
                rule.list, rule.index, i, (long long)steps[i]);
    return MUSTER_OK;
}

/* The name of an option that is given and would have no effect; NULL: none. */
static const char *manager_policy_unused_by_save(const struct muster_save_policy *p)
{
    bool numbered = p->kind == MUSTER_SAVE_EVERY_STEPS || p->kind == MUSTER_SAVE_PERIOD_MS ||
                    p->kind == MUSTER_SAVE_CONTINUOUS_MS;

    if (p->kind != MUSTER_SAVE_STEPS && (p->steps != NULL || p->steps_count > 0))
        return "has steps, but its kind is not MUSTER_SAVE_STEPS";
    if (p->kind != MUSTER_SAVE_FUNCTION && p->should_save_fn != NULL)
        return "has a should_save_fn, but its kind is not MUSTER_SAVE_FUNCTION";
    if (p->kind != MUSTER_SAVE_OVERHEAD && p->share != 0)
        return "has a share, but its kind is not MUSTER_SAVE_OVERHEAD";
    return !numbered && p->number != 0 ? "has a number, which its kind does not use" : NULL;
}

static enum muster_status manager_policy_check_save(struct rule rule,
                                                    const struct muster_save_policy *p,
                                                    struct muster_error *err)
{
    if (p->kind <= MUSTER_SAVE_NONE || p->kind >= MUSTER_SAVE_KIND_COUNT)
        return manager_policy_wrong(err, rule, "has a kind that does not exist");
    if (manager_policy_unused_by_save(p) != NULL)
        return manager_policy_wrong(err, rule, manager_policy_unused_by_save(p));
    switch (p->kind) {
    case MUSTER_SAVE_EVERY_STEPS:
        return manager_policy_check_number(rule, p->number, 1, "steps", err);
    case MUSTER_SAVE_STEPS:
        return manager_policy_check_steps(rule, p->steps, p->steps_count, err);
    case MUSTER_SAVE_PERIOD_MS:
        return manager_policy_check_number(rule, p->number, 1, "milliseconds", err);
    case MUSTER_SAVE_CONTINUOUS_MS:
        return manager_policy_check_number(rule, p->number, 0, "milliseconds", err);
    case MUSTER_SAVE_OVERHEAD:
        if (p->share > 0 && p->share < 1)
            return MUSTER_OK;
        return error_set(err, MUSTER_E_ARGUMENT,
                         "muster_manager_open: policies.save[%zu].share is %g; give a share of the "
                         "time between 0 and 1, as 0.02",
                         rule.index, p->share);
    case MUSTER_SAVE_FUNCTION:
        if (p->should_save_fn == NULL)
            return manager_policy_wrong(err, rule, "is a function, but should_save_fn is NULL");
        return MUSTER_OK;
    default:
        return MUSTER_OK;
    }
}

static const char *manager_policy_unused_by_keep(const struct muster_keep_policy *p)
{
    if (p->kind != MUSTER_KEEP_STEPS && (p->steps != NULL || p->steps_count > 0))
        return "has steps, but its kind is not MUSTER_KEEP_STEPS";
    if (p->kind == MUSTER_KEEP_STEPS && p->number != 0)
        return "has a number, which its kind does not use";
    if (p->max_to_keep != 0 && p->kind != MUSTER_KEEP_EVERY_STEPS &&
        p->kind != MUSTER_KEEP_EVERY_STEPS_CLOSEST)
        return "has max_to_keep, which its kind does not use";
    if (p->kind == MUSTER_KEEP_BEST)
        return NULL;
    if (p->metric != NULL)
        return "has a metric, but its kind is not MUSTER_KEEP_BEST";
    return p->greatest || p->keep_unmeasured
               ? "has greatest or keep_unmeasured, but its kind is not MUSTER_KEEP_BEST"
               : NULL;
}

static enum muster_status manager_policy_check_keep(struct rule rule,
                                                    const struct muster_keep_policy *p,
                                                    struct muster_error *err)
{
    if (p->kind <= MUSTER_KEEP_NONE || p->kind >= MUSTER_KEEP_KIND_COUNT)
        return manager_policy_wrong(err, rule, "has a kind that does not exist");
    if (manager_policy_unused_by_keep(p) != NULL)
        return manager_policy_wrong(err, rule, manager_policy_unused_by_keep(p));
    switch (p->kind) {
    case MUSTER_KEEP_BEST:
        if (p->metric == NULL || p->metric[0] == '\0')
            return manager_policy_wrong(err, rule, "keeps the best, but names no metric");
        return manager_policy_check_number(rule, p->number, 0, "checkpoints", err);
    case MUSTER_KEEP_LATEST:
        return manager_policy_check_number(rule, p->number, 0, "checkpoints", err);
    case MUSTER_KEEP_EVERY_STEPS:
    case MUSTER_KEEP_EVERY_STEPS_CLOSEST:
        if (p->max_to_keep < 0 || p->max_to_keep > POLICY_NUMBER_MAX)
            return manager_policy_wrong(
                err, rule, "has a max_to_keep that is no count; give 1 or more, or 0 for all");
        return manager_policy_check_number(rule, p->number, 1, "steps", err);
    case MUSTER_KEEP_EVERY_STEPS_NEAR:
        return manager_policy_check_number(rule, p->number, 1, "steps", err);
    case MUSTER_KEEP_EVERY_MS:
    case MUSTER_KEEP_LAST_MS:
        return manager_policy_check_number(rule, p->number, 1, "milliseconds", err);
    default:
        return manager_policy_check_steps(rule, p->steps, p->steps_count, err);
    }
}

static enum muster_status manager_policy_check_lists(const struct muster_policies *policies,
                                                     struct muster_error *err)
{
    enum muster_status status;

    if (policies->save_count > MUSTER_POLICIES_MAX || policies->keep_count > MUSTER_POLICIES_MAX)
        return error_set(
            err, MUSTER_E_ARGUMENT,
            "muster_manager_open: policies have %zu rules to save and %zu to keep; give at "
            "most %d of each",
            policies->save_count, policies->keep_count, MUSTER_POLICIES_MAX);
    if ((policies->save == NULL && policies->save_count > 0) ||
        (policies->keep == NULL && policies->keep_count > 0))
        return error_set(err, MUSTER_E_ARGUMENT,
                         "muster_manager_open: policies.%s is NULL, and its count is not 0",
                         policies->save == NULL && policies->save_count > 0 ? "save" : "keep");
    for (size_t i = 0; i < policies->keep_count; i++) {
        status = manager_policy_check_keep((struct rule){"keep", i}, &policies->keep[i], err);
        if (status != MUSTER_OK)
            return status;
    }
    if (policies->trash != NULL && policies->keep_count == 0)
        return error_set(
            err, MUSTER_E_ARGUMENT,
            "muster_manager_open: policies.trash is given, but no keep policy deletes anything");
    return MUSTER_OK;
}

/* --- the rules -------------------------------------------------------------------------------- */

static enum muster_status manager_policy_take(struct step_rules *rules,
                                              const struct muster_save_policy *p, size_t i,
                                              struct muster_error *err)
{
    switch (p->kind) {
    case MUSTER_SAVE_EVERY_STEPS:
        rules->every[rules->every_count++] = p->number;
        return MUSTER_OK;
    case MUSTER_SAVE_STEPS:
        if (rules->steps_count + p->steps_count > MUSTER_POLICY_STEPS_MAX)
            return manager_policy_wrong(err, (struct rule){"save", i},
                                        "brings the list above 512 given steps");
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
    status = manager_policy_check_lists(policies, err);
    for (size_t i = 0; i < policies->save_count && status == MUSTER_OK; i++) {
        status = manager_policy_check_save((struct rule){"save", i}, &policies->save[i], err);
        if (status == MUSTER_OK)
            status = manager_policy_take(ret_rules, &policies->save[i], i, err);
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
