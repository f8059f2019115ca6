/* local_plan - see local_plan.h. */
#include "node/local/local_plan.h"

#include "schema/limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void local_plan_init(struct local_plan *plan, int64_t grace_period_ms)
{
    memset(plan, 0, sizeof *plan);
    plan->grace_period_ms = grace_period_ms;
}

/* --- notices ---------------------------------------------------------------------------------- */

static struct local_notice *local_plan_latest(struct local_plan *plan)
{
    struct local_notice *last = &plan->notices[0];

    for (size_t i = 1; i < plan->count; i++)
        if (plan->notices[i].deadline_boot_ms > last->deadline_boot_ms)
            last = &plan->notices[i];
    return last;
}

void local_plan_notice(struct local_plan *plan, int64_t now, uint64_t number,
                       enum wire_notice_kind kind, int64_t left_ms, const char *text)
{
    struct plan_left left = plan_left_of(left_ms, plan->grace_period_ms, kind == NOTICE_SIGNAL);
    struct local_notice notice = {.number = number,
                                  .kind = kind,
                                  .at_once = left.at_once,
                                  .assumed = left.assumed || left.too_short,
                                  .grace_ms = left.ms,
                                  .deadline_boot_ms = now + left.ms},
                        *place;

    snprintf(notice.text, sizeof notice.text, "%s", text);
    if (plan->count < NOTICES_NODE_MAX)
        place = &plan->notices[plan->count++];
    else {
        place = local_plan_latest(plan);
        if (!notice.at_once && place->deadline_boot_ms <= notice.deadline_boot_ms)
            return;
    }
    *place = notice;
}

bool local_plan_withdraw(struct local_plan *plan, uint64_t number)
{
    bool found = false;

    for (size_t i = 0; number != 0 && i < plan->count;) {
        if (plan->notices[i].number != number) {
            i++;
            continue;
        }
        plan->notices[i] = plan->notices[--plan->count];
        found = true;
    }
    return found;
}

/* --- times ------------------------------------------------------------------------------------ */

void local_plan_restart_looks(struct local_plan *plan, int64_t begun)
{
    plan->from = plan->begun = begun;
    plan->begun_at = 0;
}

void local_plan_look(struct local_plan *plan, int64_t now, int64_t begun, bool open)
{
    int64_t steps = begun - plan->begun;

    if (steps == 0 && open)
        return;
    if (steps > 0 && plan->begun_at > 0 && open)
        pace_add(&plan->pace, steps, now - plan->begun_at);
    plan->begun_at = open && steps > 0 ? now : 0;
    plan->begun = begun;
}

int64_t local_plan_step_p95(const struct local_plan *plan)
{
    uint64_t p95 = pace_p95(&plan->pace);

    return p95 == 0 ? plan->step_p95_before_ms : p95 < INT32_MAX ? (int64_t)p95 : INT32_MAX;
}

void local_plan_write_times(const struct local_plan *plan, char ret_text[LOCAL_TIMES_TEXT])
{
    char saves[PLAN_SAVES_TEXT];

    plan_saves_write(&plan->saves, saves);
    snprintf(ret_text, LOCAL_TIMES_TEXT, "step_p95_ms %lld\nsaves_ms %s\n",
             (long long)local_plan_step_p95(plan), saves);
}

void local_plan_read_times(struct local_plan *plan, const char *text)
{
    static const char steps[] = "step_p95_ms ", saves[] = "\nsaves_ms ";
    char line[PLAN_SAVES_TEXT];
    const char *at;
    char *end;
    long long ms;

    if (strncmp(text, steps, sizeof steps - 1) != 0)
        return;
    ms = strtoll(text + sizeof steps - 1, &end, 10);
    if (ms < 0 || ms > INT32_MAX || strncmp(end, saves, sizeof saves - 1) != 0)
        return;
    at = end + sizeof saves - 1;
    snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n"), at);
    plan_saves_read(&plan->saves, line);
    plan->step_p95_before_ms = ms;
}

/* --- now or later ----------------------------------------------------------------------------- */

#define SECONDS(ms) (long long)((ms) / 1000), (long long)((ms) % 1000 / 100)

static void local_plan_describe(struct local_plan *plan, const struct plan_facts *facts)
{
    char basis[PLAN_BASIS_TEXT];
    const char *notice = plan->chosen.text;
    int64_t left = facts->deadline_boot_ms - facts->now_boot_ms;

    if (plan->plan.why == PLAN_ASKED) {
        snprintf(plan->text, LOCAL_PLAN_TEXT, "notice (%s): saves at once: %s", notice,
                 plan->chosen.assumed ? "it tells no time left to plan with"
                                      : "grace_period_ms asks for it");
        return;
    }
    plan_describe_basis(facts, basis);
    if (plan->plan.why == PLAN_DUE) {
        snprintf(plan->text, LOCAL_PLAN_TEXT,
                 "notice (%s): saves at once: %lld.%lld s are left, and %lld.%lld s are reserved "
                 "(%s)",
                 notice, SECONDS(left > 0 ? left : 0), SECONDS(plan->plan.reserve_ms), basis);
        return;
    }
    snprintf(plan->text, LOCAL_PLAN_TEXT,
             "notice (%s): trains on until %lld.%lld s before its deadline in %lld.%lld s (%s)",
             notice, SECONDS(plan->plan.reserve_ms), SECONDS(left > 0 ? left : 0), basis);
}

bool local_plan_due(struct local_plan *plan, int64_t now, int64_t *ret_wakeup_boot_ms)
{
    struct plan_facts facts = {.now_boot_ms = now,
                               .step_p95_ms = local_plan_step_p95(plan),
                               .save_p95_ms = plan_saves_p95(&plan->saves),
                               .trained = plan->begun > plan->from,
                               .alone = true},
                      of_best = facts;

    *ret_wakeup_boot_ms = INT64_MAX;
    plan->plan = (struct plan){.why = PLAN_NONE, .freeze_boot_ms = INT64_MAX};
    plan->text[0] = '\0';
    for (size_t i = 0; i < plan->count; i++) {
        const struct local_notice *notice = &plan->notices[i];
        struct plan one;

        facts.deadline_boot_ms = notice->deadline_boot_ms;
        facts.grace_ms = notice->grace_ms;
        facts.at_once = notice->at_once;
        one = plan_make(&facts);
        if (plan->plan.why != PLAN_NONE && one.freeze_boot_ms >= plan->plan.freeze_boot_ms)
            continue;
        plan->plan = one;
        plan->chosen = *notice;
        of_best = facts;
    }
    if (plan->plan.why == PLAN_NONE)
        return false;
    local_plan_describe(plan, &of_best);
    *ret_wakeup_boot_ms = plan->plan.freeze_boot_ms;
    return plan->plan.freeze_boot_ms <= now;
}

bool local_plan_wants_save(struct local_plan *plan)
{
    if (plan->measures || plan->plan.why != PLAN_AHEAD ||
        (plan->plan.basis & (PLAN_KNOWS_SAVE | PLAN_KNOWS_TRAINED)) != PLAN_KNOWS_TRAINED)
        return false;
    plan->measures = true;
    return true;
}
