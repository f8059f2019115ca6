/* sim_keep - which worlds have policies, what their jobs keep, and what a chief asks of the broker:
 * it tells the policies, wishes for saves, deletes, pins, and says at its end that it saves no
 * more. As node/agent/agent_keep.c has it: one question at a time, and one whose answer is lost is
 * asked again. */
#include "tests/sim/sim_world.h"

#include <stdio.h>
#include <string.h>

#define WORLDS_PERCENT 20
#define SWEEP_US 10000000
#define SWEEP_LOOK_US 50000
#define BIT(x) (1u << (unsigned)(x))

/* --- the world -------------------------------------------------------------------------------- */

/* Of this stream's begin: chosen so that the seeds of regressions.txt are worlds without policies.
 */
#define SALT UINT64_C(0x6b6577c2)

void keeps_plan_world(struct sim *sim)
{
    sim->side = (sim->options.seed ^ SALT) * UINT64_C(0x9e3779b97f4a7c15);
    sim->keeps = side_chance(sim, WORLDS_PERCENT) && sim->options.grace == NULL;
    if (sim->options.keeps != SIM_BY_SEED)
        sim->keeps = sim->options.keeps == SIM_WITH;
}

/* --- what a job keeps ------------------------------------------------------------------------- */

static struct sim_rule some_rule(struct sim *sim, const struct sim_job *job)
{
    int64_t work_ms = job->total[0] * job->step_us / 1000;
    int64_t few = job->total[0] / 12 + 1;
    struct sim_rule rule = {
        .kind = side_chance(sim, 45) ? RULE_LATEST
                                     : (enum sim_rule_kind)side_range(sim, 0, RULE_KIND_COUNT - 1)};

    rule.greatest = side_chance(sim, 50);
    rule.unmeasured = side_chance(sim, 30);
    switch (rule.kind) {
    case RULE_LATEST:
        rule.number = side_range(sim, 0, 3);
        break;
    case RULE_BEST:
        rule.number = side_range(sim, 0, 2);
        break;
    case RULE_EVERY:
        rule.number = side_range(sim, 1, 5);
        rule.from = side_range(sim, 0, 1);
        rule.most = rule.greatest ? rule.number : 0;
        if (rule.unmeasured) {
            rule.kind = RULE_CLOSEST;
            rule.number *= few;
        }
        break;
    case RULE_NEAR:
        rule.number = side_range(sim, 1, 3 * few);
        break;
    case RULE_STEPS:
        rule.number = side_range(sim, 1, job->total[0]);
        rule.from = side_range(sim, 1, job->total[0]);
        break;
    default:
        rule.number = side_range(sim, 1, work_ms / 2 + 1);
        break;
    }
    return rule;
}

static const char *rule_text(struct sim *sim, const struct sim_rule *rule)
{
    static const char *const words[RULE_KIND_COUNT] = {[RULE_LATEST] = "latest",
                                                       [RULE_NEAR] = "near",
                                                       [RULE_EVERY_MS] = "every-ms",
                                                       [RULE_LAST_MS] = "last-ms"};
    char text[96];

    if (rule->kind == RULE_EVERY || rule->kind == RULE_CLOSEST) {
        snprintf(text, sizeof text, "%s %lld from %lld",
                 rule->kind == RULE_EVERY ? "every" : "closest", (long long)rule->number,
                 (long long)rule->from);
        if (rule->most > 0)
            snprintf(text + strlen(text), sizeof text - strlen(text), " most %lld",
                     (long long)rule->most);
    } else if (rule->kind == RULE_STEPS)
        snprintf(text, sizeof text, "steps %lld %lld", (long long)rule->number,
                 (long long)rule->from);
    else if (rule->kind == RULE_BEST)
        snprintf(text, sizeof text, "best %lld %s loss%s", (long long)rule->number,
                 rule->greatest ? "greatest" : "least", rule->unmeasured ? " unmeasured" : "");
    else
        snprintf(text, sizeof text, "%s %lld", words[rule->kind], (long long)rule->number);
    return sim_word(sim, text);
}

static void plan_keep(struct sim *sim, struct sim_job *job)
{
    struct sim_keeps *keeps = &job->keeps;
    char text[256] = "";

    keeps->rules_count = side_chance(sim, 88) ? (unsigned)side_range(sim, 1, 2) : 0;
    for (unsigned i = 0; i < keeps->rules_count; i++) {
        keeps->rules[i] = some_rule(sim, job);
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i > 0 ? "; " : "",
                 rule_text(sim, &keeps->rules[i]));
    }
    keeps->keep_text = sim_word(sim, text);
    keeps->trash = side_chance(sim, 30) ? "trash" : "";
    keeps->sweeps = side_chance(sim, 40);
}

/* So that a loop has about a dozen of them at most. */
static void plan_saves(struct sim *sim, struct sim_job *job)
{
    int64_t work_ms = job->total[0] * job->step_us / 1000;
    int64_t interval_ms = side_range(sim, work_ms / 12 + 300, work_ms / 3 + 600);
    char text[96] = "";

    job->keeps.save_text = "";
    if (sim->options.healthy || side_chance(sim, 45))
        return;
    job->keeps.wishes = side_chance(sim, 30);
    if (side_chance(sim, 35))
        snprintf(text, sizeof text, "period-ms %lld", (long long)interval_ms);
    else if (side_chance(sim, 45))
        snprintf(text, sizeof text, "continuous-ms %lld", (long long)interval_ms);
    else if (side_chance(sim, 50))
        snprintf(text, sizeof text, "overhead-ppm %lld",
                 (long long)(1 + job->save_us * 1000 / interval_ms % 1000000));
    else
        snprintf(text, sizeof text, "young-daly; period-ms %lld", (long long)interval_ms);
    if (!job->keeps.wishes && (text[0] == 'p' || text[0] == 'c'))
        job->keeps.interval_ms = interval_ms;
    job->keeps.save_text = sim_word(sim, text);
}

void keeps_plan_job(struct sim *sim, struct sim_job *job)
{
    if (!sim->keeps)
        return;
    plan_keep(sim, job);
    plan_saves(sim, job);
    /* what is kept is only worth a look if there are several */
    if (job->policy_every > 0 && side_chance(sim, 60))
        job->policy_every = 1 + job->total[0] / side_range(sim, 5, 12);
}

/* --- metrics ---------------------------------------------------------------------------------- */

bool keeps_measure(int64_t step, double *ret_value)
{
    if (step % 5 == 0)
        return false; /* nobody measured this one */
    *ret_value = (double)(step * 7919 % 10007);
    return true;
}

const char *keeps_metrics(struct sim *sim, int64_t step)
{
    char text[64];
    double value;

    if (!keeps_measure(step, &value))
        return "";
    snprintf(text, sizeof text, "{\"loss\":%.1f}", value);
    return sim_word(sim, text);
}

/* --- questions -------------------------------------------------------------------------------- */

static struct wire_msg question(struct sim *sim, struct sim_proc *proc, enum sim_ask ask)
{
    const struct sim_job *job = &sim->jobs[proc->job];
    struct wire_msg m = {.up.job = ""};

    switch (ask) {
    case ASK_POLICIES:
        m.type = WIRE_POLICIES;
        m.u.policies = (struct wire_policies){
            .keep = job->keeps.keep_text, .save = job->keeps.save_text, .trash = job->keeps.trash};
        break;
    case ASK_WISH:
        m.type = WIRE_SAVE_WISH;
        m.u.save_wish.step = proc->done;
        break;
    case ASK_SWEEP:
    case ASK_FINAL:
        m.type = WIRE_SWEEP;
        m.u.sweep.final = ask == ASK_FINAL;
        break;
    case ASK_DROP:
        m.type = WIRE_DROP;
        m.u.drop = (struct wire_drop){.checkpoint = some_checkpoint(sim, job),
                                      .newest = side_chance(sim, 15)};
        drop_said(sim, proc->job, m.u.drop.checkpoint, m.u.drop.newest);
        break;
    case ASK_PIN:
        m.type = WIRE_PIN;
        m.u.pin = (struct wire_pin){.checkpoint = some_checkpoint(sim, job),
                                    .id = "chief",
                                    .lease_ms = side_range(sim, 500, 20000)};
        break;
    default:
        m.type = WIRE_UNPIN;
        m.u.unpin = (struct wire_unpin){.checkpoint = side_chance(sim, 50) ? proc->asks.pinned : 0,
                                        .id = "chief"};
        break;
    }
    return m;
}

static void put(struct sim *sim, struct sim_event *event)
{
    struct sim_proc *proc = event->proc;
    struct sim_job *job = &sim->jobs[proc->job];
    enum sim_ask ask = (enum sim_ask)event->number;
    struct wire_msg message;
    struct member_input input = {.kind = MEMBER_ASK, .ask = &message};

    if (proc->asks.asked != ask || proc->view.left)
        return;
    message = question(sim, proc, ask);
    if (ask == ASK_FINAL)
        job->keeps.final_generation = proc->view.generation;
    proc->asks.answered = proc->view.asks_answered;
    SIM_TELL(sim, "%s/%u asks: %s", job->name, proc->slot, wire_type_name(message.type));
    proc_feed(sim, proc, &input);
}

/* Now and then one that is under way is given up for the next, as when its caller's time is over */
static void ask_next(struct sim *sim, struct sim_proc *proc)
{
    struct sim_asks *asks = &proc->asks;
    unsigned ask = 1;

    if (asks->wanted == 0 || (asks->asked != ASK_NOTHING && !side_chance(sim, 2)))
        return;
    while ((asks->wanted & BIT(ask)) == 0)
        ask++;
    asks->wanted &= ~BIT(ask);
    if (asks->asked == ASK_POLICIES)
        asks->wanted |= BIT(ASK_POLICIES); /* nobody goes on without */
    asks->asked = (enum sim_ask)ask;
    sim_after(sim, side_range(sim, 0, sim->post_max_us), put, proc)->number = ask;
}

static void ask(struct sim *sim, struct sim_proc *proc, enum sim_ask what)
{
    proc->asks.wanted |= BIT(what);
    ask_next(sim, proc);
}

static void sweep_again(struct sim *sim, struct sim_event *event)
{
    ask(sim, event->proc, ASK_FINAL);
}

static void swept(struct sim *sim, struct sim_proc *proc)
{
    proc->asks.swept = true;
    thread_swept(sim, proc);
}

static void hear(struct sim *sim, struct sim_proc *proc)
{
    struct sim_asks *asks = &proc->asks;
    const struct member_view *view = &proc->view;
    enum sim_ask asked = asks->asked;

    asks->asked = ASK_NOTHING;
    if (view->ask_code == MUSTER_E_HELLO || view->ask_code == MUSTER_E_BUSY) {
        if (view->ask_code == MUSTER_E_HELLO || asked == ASK_POLICIES || asked == ASK_FINAL)
            asks->wanted |= BIT(asked);
        return;
    }
    if (asked == ASK_PIN && view->ask_code == MUSTER_OK)
        asks->pinned = view->ask_value;
    if (asked == ASK_DROP && view->ask_code == MUSTER_OK)
        sim->stats->drops++;
    if (asked != ASK_FINAL)
        return;
    if (view->ask_code == MUSTER_OK && view->ask_value > 0 && sim->now_us < asks->sweeps_until_us &&
        !member_view_ends(view))
        sim_after(sim, SWEEP_LOOK_US, sweep_again, proc);
    else
        swept(sim, proc);
}

static void think(struct sim *sim, struct sim_event *event)
{
    struct sim_proc *proc = event->proc;
    const struct sim_keeps *keeps = &sim->jobs[proc->job].keeps;
    int64_t chance = side_range(sim, 0, 99);

    if (proc->leaving || proc->view.left)
        return;
    if (keeps->wishes && chance < 30)
        ask(sim, proc, ASK_WISH);
    else if (chance < 50)
        ask(sim, proc, ASK_SWEEP);
    else if (chance < 60 && !sim->options.healthy)
        ask(sim, proc, ASK_DROP);
    else if (chance < 75)
        ask(sim, proc, ASK_PIN);
    else if (chance < 90)
        ask(sim, proc, ASK_UNPIN);
    sim_after(sim, side_range(sim, 300000, 6000000), think, proc);
}

void keeps_look(struct sim *sim, struct sim_proc *proc)
{
    struct sim_asks *asks = &proc->asks;
    bool chief = proc->role == ROLE_CHIEF;

    if (!sim->keeps || !proc->alive || sim->failed)
        return;
    if (chief && !asks->begun && proc->view.started) {
        asks->begun = true;
        asks->wanted |= BIT(ASK_POLICIES);
        sim_after(sim, side_range(sim, 300000, 6000000), think, proc);
    }
    if (asks->asked != ASK_NOTHING && proc->view.asks_answered != asks->answered)
        hear(sim, proc);
    ask_next(sim, proc);
}

/* --- the end ---------------------------------------------------------------------------------- */

static void swept_late(struct sim *sim, struct sim_event *event)
{
    if (!event->proc->asks.swept)
        swept(sim, event->proc);
}

bool keeps_sweep_first(struct sim *sim, struct sim_proc *proc)
{
    if (!sim->keeps || proc->role != ROLE_CHIEF || proc->asks.swept ||
        !sim->jobs[proc->job].keeps.sweeps)
        return false;
    if (proc->view.mode != VIEW_OPEN || member_view_ends(&proc->view) || proc->closed)
        return false; /* as close() does it: the newest is what the job resumes from */
    proc->asks.sweeps_until_us = sim->now_us + SWEEP_US;
    sim_after(sim, SWEEP_US, swept_late, proc);
    ask(sim, proc, ASK_FINAL);
    return true;
}

void keeps_calm(struct sim *sim)
{
    sim->fail_deletes = sim->kill_hands = sim->freeze_hands = 0;
    readers_calm(sim);
}
