/* manager_keep - those of a manager's policies that the broker decides. They are told to it as
 * text. Without a broker this process itself deletes by them. */
#include "client/manager/manager_private.h"

#include "node/clock.h"
#include "node/shard/dir_delete.h"
#include "schema/error.h"
#include "schema/manifest/metrics.h"
#include "schema/rules/keep.h"

#include <stdlib.h>
#include <string.h>

#define TELL_MS 30000 /* a broker that starts again meanwhile is waited for */
#define TELL_AGAIN_MS 10000
#define SWEEP_MS 10000 /* what is still to be deleted then is the next launch's */

struct keep_rules {
    struct keep_policies keep;
    struct save_policies save;
    char keep_text[POLICY_TEXT_MAX + 1];
    char save_text[POLICY_TEXT_MAX + 1];
    char trash[FILE_PATH_MAX + 1];
};

/* --- from the user's form --------------------------------------------------------------------- */

static enum muster_status manager_keep_wrong(struct muster_error *err, size_t index,
                                             const char *what)
{
    return error_set(err, MUSTER_E_ARGUMENT, "muster_manager_open: policies.keep[%zu] %s", index,
                     what);
}

/* Steps become counts of steps done: step k is k + 1. */
static enum muster_status manager_keep_take_rules(struct keep_policies *to,
                                                  const struct muster_keep_policy *p, size_t index,
                                                  struct muster_error *err)
{
    static const enum keep_kind kinds[MUSTER_KEEP_KIND_COUNT] = {
        [MUSTER_KEEP_LATEST] = KEEP_LATEST,
        [MUSTER_KEEP_EVERY_STEPS] = KEEP_EVERY,
        [MUSTER_KEEP_EVERY_STEPS_NEAR] = KEEP_NEAR,
        [MUSTER_KEEP_EVERY_MS] = KEEP_EVERY_MS,
        [MUSTER_KEEP_BEST] = KEEP_BEST,
        [MUSTER_KEEP_STEPS] = KEEP_STEPS,
        [MUSTER_KEEP_LAST_MS] = KEEP_LAST_MS,
        [MUSTER_KEEP_EVERY_STEPS_CLOSEST] = KEEP_CLOSEST};
    bool of_multiples =
        p->kind == MUSTER_KEEP_EVERY_STEPS || p->kind == MUSTER_KEEP_EVERY_STEPS_CLOSEST;
    struct keep_rule *rule = &to->rules[to->count];

    *rule = (struct keep_rule){.kind = kinds[p->kind],
                               .number = p->number,
                               .from = of_multiples ? 1 : 0,
                               .most = p->max_to_keep,
                               .greatest = p->greatest,
                               .unmeasured = p->keep_unmeasured};
    if (p->kind == MUSTER_KEEP_BEST) {
        if (!metric_name_ok(p->metric))
            return manager_keep_wrong(err, index,
                                      "has a metric that is no name: letters, digits and . _ - /");
        memcpy(rule->metric, p->metric, strlen(p->metric) + 1);
    }
    if (p->kind == MUSTER_KEEP_STEPS) {
        if (to->steps_count + p->steps_count > POLICY_STEPS_MAX)
            return manager_keep_wrong(err, index, "brings the list above 512 given steps");
        rule->steps_first = to->steps_count;
        rule->steps_count = p->steps_count;
        for (size_t i = 0; i < p->steps_count; i++)
            to->steps[to->steps_count++] = p->steps[i] + 1;
    }
    to->count++;
    return MUSTER_OK;
}

static void manager_keep_take_save(struct save_policies *to, const struct muster_save_policy *p)
{
    struct save_rule rule = {.kind = SAVE_RULE_NONE, .number = p->number};

    if (p->kind == MUSTER_SAVE_PERIOD_MS)
        rule.kind = SAVE_RULE_PERIOD_MS;
    else if (p->kind == MUSTER_SAVE_CONTINUOUS_MS)
        rule.kind = SAVE_RULE_CONTINUOUS_MS;
    else if (p->kind == MUSTER_SAVE_YOUNG_DALY)
        rule = (struct save_rule){.kind = SAVE_RULE_YOUNG_DALY};
    else if (p->kind == MUSTER_SAVE_FIRST) /* the ranks' own, until its save fails */
        rule = (struct save_rule){.kind = SAVE_RULE_FIRST};
    else if (p->kind == MUSTER_SAVE_OVERHEAD)
        rule = (struct save_rule){.kind = SAVE_RULE_OVERHEAD_PPM,
                                  .number = p->share < 0.000001 ? 1 : (int64_t)(p->share * 1e6)};
    if (rule.kind != SAVE_RULE_NONE)
        to->rules[to->count++] = rule;
}

static enum muster_status manager_keep_take_all(const struct muster_policies *policies,
                                                struct keep_rules *rules, struct muster_error *err)
{
    enum muster_status status = MUSTER_OK;

    for (size_t i = 0; i < policies->keep_count && status == MUSTER_OK; i++)
        status = manager_keep_take_rules(&rules->keep, &policies->keep[i], i, err);
    for (size_t i = 0; i < policies->save_count; i++)
        manager_keep_take_save(&rules->save, &policies->save[i]);
    if (status == MUSTER_OK && policies->trash != NULL) {
        if (!policy_trash_ok(policies->trash) || strlen(policies->trash) > FILE_PATH_MAX)
            return error_set(err, MUSTER_E_ARGUMENT,
                             "muster_manager_open: policies.trash is \"%.60s\"; give the name of a "
                             "folder of letters, digits, _ . and -, that begins with a letter and "
                             "ends with no digit, as checkpoints do; not \"manifest.json\"",
                             policies->trash);
        memcpy(rules->trash, policies->trash, strlen(policies->trash) + 1);
    }
    if (status == MUSTER_OK)
        status = keep_policies_text(&rules->keep, rules->keep_text, err);
    if (status == MUSTER_OK)
        status = save_policies_text(&rules->save, rules->save_text, err);
    return status;
}

enum muster_status manager_keep_take(const struct muster_policies *policies,
                                     struct keep_rules **ret_rules, struct muster_error *err)
{
    struct keep_rules *rules;
    enum muster_status status;

    if (policies == NULL)
        return MUSTER_OK;
    rules = calloc(1, sizeof *rules);
    if (rules == NULL)
        return error_set(err, MUSTER_E_NOMEM, "no memory for the policies; free some");
    status = manager_keep_take_all(policies, rules, err);
    if (status != MUSTER_OK || (rules->keep_text[0] == '\0' && rules->save_text[0] == '\0')) {
        free(rules);
        return status;
    }
    *ret_rules = rules;
    return MUSTER_OK;
}

/* --- with a broker ---------------------------------------------------------------------------- */

static bool manager_keep_has_to_tell(const struct muster_manager *manager)
{
    return manager->keep != NULL && manager->rank == 0 && manager->node->agent != NULL;
}

static enum muster_status manager_keep_told(struct muster_manager *manager, int64_t timeout_ms,
                                            struct muster_error *err)
{
    struct wire_msg message = {.type = WIRE_POLICIES};
    uint64_t start = agent_broker_start(manager->node->agent);
    enum muster_status status;

    message.u.policies = (struct wire_policies){.keep = manager->keep->keep_text,
                                                .save = manager->keep->save_text,
                                                .trash = manager->keep->trash};
    status = agent_ask(manager->node->agent, &message, timeout_ms, NULL, err);
    if (status != MUSTER_E_TIMEOUT)
        manager->told_start = start;
    return status;
}

enum muster_status manager_keep_tell(struct muster_manager *manager, struct muster_error *err)
{
    return manager_keep_has_to_tell(manager) ? manager_keep_told(manager, TELL_MS, err) : MUSTER_OK;
}

void manager_keep_tell_again(struct muster_manager *manager)
{
    struct muster_error why;

    if (!manager_keep_has_to_tell(manager) ||
        manager->told_start == agent_broker_start(manager->node->agent) ||
        clock_ms(CLOCK_MONOTONIC) < manager->tell_again_ms)
        return;
    if (manager_keep_told(manager, FREEZE_MS, &why) == MUSTER_OK)
        return;
    manager->tell_again_ms = clock_ms(CLOCK_MONOTONIC) + TELL_AGAIN_MS;
    node_log(manager->node, 1, "the broker that started again was not told the job's policies: %s",
             why.text);
}

/* --- alone ------------------------------------------------------------------------------------ */

bool manager_keep_alone_due(const struct muster_manager *manager)
{
    return manager->node->local != NULL && manager->keep != NULL &&
           alone_pace_due(&manager->alone, &manager->keep->save, clock_ms(CLOCK_MONOTONIC));
}

enum muster_status manager_keep_delete_alone(struct muster_manager *manager,
                                             const struct muster_checkpoint_info *info,
                                             struct muster_error *err)
{
    const struct dir_deletion deletion = {.root = manager->directory,
                                          .job = manager->job,
                                          .generation = info->generation,
                                          .round = info->checkpoint,
                                          .step = info->step + 1,
                                          .path = info->path,
                                          .trash =
                                              manager->keep != NULL ? manager->keep->trash : ""};

    return dir_delete_checkpoint(&deletion, err);
}

static enum muster_status manager_keep_sweep_alone(struct muster_manager *manager, bool final,
                                                   struct muster_error *err)
{
    enum muster_status status = manager_read_list(manager, err);
    const struct manager_list *list = &manager->list;
    struct keep_item *items = calloc(list->count + 1, sizeof *items);
    bool *wanted = calloc(list->count + 1, sizeof *wanted);
    struct muster_error why, failed = {.status = MUSTER_OK};

    for (size_t i = 0; items != NULL && i < list->count; i++)
        items[i] = (struct keep_item){list->items[i].step + 1, list->items[i].committed_unix_ms,
                                      list->items[i].metrics};
    if (status == MUSTER_OK && items != NULL && wanted != NULL &&
        keep_choose(&manager->keep->keep, items, list->count, wanted))
        for (size_t i = 0; i < list->count; i++) /* one that stays is in the others' way no more */
            if (!wanted[i] && (final || i + 1 < list->count) &&
                manager_keep_delete_alone(manager, &list->items[i], &why) != MUSTER_OK)
                failed = why;
    free(items); /* without memory nothing goes now: the next save asks again */
    free(wanted);
    manager->undeleted = failed;
    if (status == MUSTER_OK && failed.status != MUSTER_OK)
        status = error_pass(err, failed.status, &failed);
    return status;
}

enum muster_status manager_keep_failure(struct muster_manager *manager, struct muster_error *err)
{
    struct muster_error why = manager->undeleted;

    if (manager->node->agent != NULL)
        return agent_deletion_failed(manager->node->agent, err);
    manager->undeleted.status = MUSTER_OK;
    return why.status == MUSTER_OK ? MUSTER_OK : error_pass(err, why.status, &why);
}

enum muster_status manager_keep_sweep(struct muster_manager *manager, bool final,
                                      struct muster_error *err)
{
    if (manager->keep == NULL || manager->keep->keep.count == 0) {
        if (!final || !manager->deletes || manager->node->agent == NULL)
            return MUSTER_OK;
        return agent_sweep(manager->node->agent, false, SWEEP_MS,
                           err); /* what was asked for goes */
    }
    if (manager->node->local != NULL)
        return manager_keep_sweep_alone(manager, final, err);
    if (!final || manager->rank != 0)
        return MUSTER_OK;
    agent_wait_in_place(manager->node->agent, MANIFEST_WAIT_MS); /* before that nothing goes */
    return agent_sweep(manager->node->agent, true, SWEEP_MS, err);
}
