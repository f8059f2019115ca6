#include "schema/rules/plan.h"

#include "schema/limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void plan_saves_add(struct plan_saves *saves, int64_t ms)
{
    if (saves->count == PLAN_SAVES_MAX) {
        memmove(saves->ms, saves->ms + 1, (PLAN_SAVES_MAX - 1) * sizeof saves->ms[0]);
        saves->count--;
    }
    saves->ms[saves->count++] = ms < 1 ? 1 : ms > INT32_MAX ? INT32_MAX : (uint32_t)ms;
}

static int plan_ascending(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

int64_t plan_saves_p95(const struct plan_saves *saves)
{
    uint32_t sorted[PLAN_SAVES_MAX];

    if (saves->count == 0)
        return 0;
    memcpy(sorted, saves->ms, saves->count * sizeof sorted[0]);
    qsort(sorted, saves->count, sizeof sorted[0], plan_ascending);
    return sorted[(saves->count * 95 + 99) / 100 - 1];
}

void plan_saves_write(const struct plan_saves *saves, char ret_text[PLAN_SAVES_TEXT])
{
    size_t used = 0;

    ret_text[0] = '\0';
    for (size_t i = 0; i < saves->count; i++)
        used += (size_t)snprintf(ret_text + used, PLAN_SAVES_TEXT - used, "%s%lu", i > 0 ? " " : "",
                                 (unsigned long)saves->ms[i]);
}

void plan_saves_read(struct plan_saves *saves, const char *text)
{
    char *end;

    memset(saves, 0, sizeof *saves);
    while (*text != '\0') {
        long long ms = strtoll(text, &end, 10);
        if (end == text || ms < 1 || (*end != ' ' && *end != '\0')) {
            memset(saves, 0, sizeof *saves);
            return;
        }
        plan_saves_add(saves, ms);
        text = *end == ' ' ? end + 1 : end;
    }
}

#define TIME_MAX_MS ((int64_t)1 << 40) /* 35 years: no sum of a few overflows */

static int64_t plan_bounded(int64_t ms)
{
    return ms < TIME_MAX_MS ? ms : TIME_MAX_MS;
}

static int64_t plan_steps_ms(const struct plan_facts *facts, int64_t more)
{
    int64_t lag = facts->lag > 0 ? facts->lag : 0, step = facts->step_p95_ms;

    if (step <= 0)
        return 0;
    return lag > TIME_MAX_MS / step - more ? TIME_MAX_MS : (lag + more) * step;
}

int64_t plan_least_ms(const struct plan_facts *facts)
{
    if (facts->step_p95_ms <= 0 || facts->save_p95_ms <= 0)
        return FREEZE_MS + 2 * MARGIN_MS;
    return plan_bounded(facts->save_p95_ms) + plan_steps_ms(facts, 1) + PLAN_FREEZE_MS + MARGIN_MS;
}

static int64_t plan_save_ms(const struct plan_facts *facts)
{
    return facts->save_p95_ms > 0 ? plan_bounded(facts->save_p95_ms) : PLAN_SAVE_MS;
}

static int64_t plan_reserve_ms(const struct plan_facts *facts)
{
    int64_t save = plan_save_ms(facts);
    int64_t reserve =
        (5 * save + 1) / 2 + plan_steps_ms(facts, 2) + FREEZE_MS + MARGIN_MS + PLAN_SPARE_MS;
    if (facts->alone)
        return reserve - FREEZE_MS;
    int64_t restart = save + plan_steps_ms(facts, 1) + PLAN_RESTART_MS + PLAN_FREEZE_MS + MARGIN_MS;
    int64_t share = (facts->grace_ms - reserve) / PLAN_RESTART_SHARE;

    if (restart > reserve && share > 0)
        reserve += restart - reserve < share ? restart - reserve : share;
    return reserve;
}

struct plan plan_make(const struct plan_facts *facts)
{
    struct plan plan = {.why = PLAN_ASKED, .freeze_boot_ms = facts->now_boot_ms};
    int64_t at;

    if (facts->at_once || facts->deadline_boot_ms == 0)
        return plan;
    plan.reserve_ms = facts->trained ? plan_reserve_ms(facts) : plan_least_ms(facts);
    plan.basis = (facts->step_p95_ms > 0 ? PLAN_KNOWS_STEP : 0) |
                 (facts->save_p95_ms > 0 ? PLAN_KNOWS_SAVE : 0) |
                 (facts->trained ? PLAN_KNOWS_TRAINED : 0);
    at = facts->deadline_boot_ms - plan.reserve_ms;
    plan.why = at > facts->now_boot_ms ? PLAN_AHEAD : PLAN_DUE;
    if (plan.why == PLAN_AHEAD)
        plan.freeze_boot_ms = at;
    return plan;
}

void plan_describe_basis(const struct plan_facts *facts, char ret_text[PLAN_BASIS_TEXT])
{
    char step[40] = "no step was measured yet", save[48];

    if (facts->step_p95_ms > 0)
        snprintf(step, sizeof step, "step p95 %lld ms", (long long)facts->step_p95_ms);
    if (facts->save_p95_ms > 0)
        snprintf(save, sizeof save, "save p95 %lld ms", (long long)facts->save_p95_ms);
    else
        snprintf(save, sizeof save, "no save was measured yet: %d s assumed", PLAN_SAVE_MS / 1000);
    snprintf(ret_text, PLAN_BASIS_TEXT, "%s, %s%s", step, save,
             facts->trained ? "" : ", no step of this launch has begun");
}

/* --- the time left ---------------------------------------------------------------------------- */

struct plan_left plan_left_of(int64_t told_ms, int64_t grace_period_ms, bool usual)
{
    bool short_told = told_ms >= 0 && told_ms < LEAST_LEAD_MS;
    bool short_option = grace_period_ms > 0 && grace_period_ms < LEAST_LEAD_MS;
    struct plan_left left = {.ms = short_told ? -1 : told_ms,
                             .too_short = short_told || short_option};

    left.by_option =
        grace_period_ms > 0 && !short_option && (left.ms < 0 || left.ms > grace_period_ms);
    if (left.by_option)
        left.ms = grace_period_ms;
    usual = usual && grace_period_ms < 0;
    left.assumed = left.ms < 0 || usual;
    left.at_once = left.assumed || left.too_short || grace_period_ms == 0;
    if (left.ms < 0)
        left.ms = GRACE_DEFAULT_MS;
    else if (left.ms > INT32_MAX)
        left.ms = INT32_MAX; /* 24 days: as good as for ever */
    return left;
}
