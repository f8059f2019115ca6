/* manager_alone - see manager_alone.h. */
#include "client/manager/manager_alone.h"

#include "schema/rules/daly.h"

struct alone_pace alone_pace_begin(int64_t now_ms, int64_t age_ms)
{
    return (struct alone_pace){.began_ms = age_ms > 0 ? now_ms - age_ms : now_ms, .run_ms = now_ms};
}

void alone_pace_saved(struct alone_pace *pace, int64_t began_ms, int64_t took_ms)
{
    pace->began_ms = began_ms;
    pace->saves++;
    pace->saves_ms += took_ms > 0 ? took_ms : 1; /* one that costs nothing would be made for ever */
}

static bool alone_rule_is_due(const struct alone_pace *pace, const struct save_rule *rule,
                              int64_t now_ms)
{
    int64_t since_ms = now_ms - pace->began_ms;
    int64_t cost_ms = pace->saves > 0 ? (pace->saves_ms + pace->saves - 1) / pace->saves : -1;

    switch (rule->kind) {
    case SAVE_RULE_PERIOD_MS:
    case SAVE_RULE_CONTINUOUS_MS:
        return since_ms >= rule->number;
    case SAVE_RULE_OVERHEAD_PPM: /* the first one is made to know what one costs */
        return cost_ms < 0 || since_ms / 1000000 >= cost_ms ||
               since_ms >= cost_ms * 1000000 / rule->number;
    case SAVE_RULE_YOUNG_DALY:
        return cost_ms < 0 ||
               since_ms >= cost_ms + daly_interval_ms(cost_ms, now_ms - pace->run_ms + DAY_MS);
    default:
        return false;
    }
}

bool alone_pace_due(const struct alone_pace *pace, const struct save_policies *rules,
                    int64_t now_ms)
{
    for (size_t i = 0; i < rules->count; i++)
        if (alone_rule_is_due(pace, &rules->rules[i], now_ms))
            return true;
    return false;
}
