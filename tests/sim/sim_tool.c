/* sim_tool - an operator's tools: notices and saves that they ask for, questions about the
 * database. A question changes nothing, and is answered whatever else fails, unless the broker dies
 * first. */
#include "tests/sim/sim_world.h"

#include "broker/core/dispatch.h"
#include "schema/sql/queries.h"

#include <stdlib.h>
#include <string.h>

void tool_say(struct sim *sim, const struct wire_msg *message)
{
    size_t size = wire_encode(message, sim->buffer, sizeof sim->buffer);

    if (size == 0) {
        sim_broken(sim, "wire", "a tool's %s cannot be encoded", wire_type_name(message->type));
        return;
    }
    sim->stats->messages[message->type]++;
    sim->routes = realloc(sim->routes, (sim->last_route + 2) * sizeof(struct sim_proc *));
    sim->routes[++sim->last_route] = NULL;
    broker_receive(sim, sim->last_route, sim->buffer, size);
}

struct wire_msg tool_message(struct sim *sim, enum wire_type type, const struct sim_job *job)
{
    return (struct wire_msg){
        .type = type,
        .up = {
            .request = ++sim->tool_request, .job = job->name, .role = ROLE_TOOL, .incarnation = 1}};
}

static void remember_notice(struct sim *sim, const struct sim_job *job, const char *id,
                            int64_t left_ms)
{
    sim->notices = realloc(sim->notices, (sim->notices_count + 1) * sizeof *sim->notices);
    sim->notices[sim->notices_count++] = (struct sim_notice){
        .job = job->name, .id = sim_word(sim, id), .at_us = sim->now_us, .left_ms = left_ms};
}

void tool_request(struct sim *sim, const struct sim_fault_plan *plan)
{
    const struct sim_job *job = &sim->jobs[plan->target % sim->jobs_count];
    struct wire_msg message =
        tool_message(sim, plan->kind == FAULT_OPERATOR_SAVE ? WIRE_SAVE_NOW : WIRE_NOTICE, job);
    char id[32];

    if (!sim->broker->alive)
        return; /* nobody hears it */
    fault_met(sim, plan->kind);
    snprintf(id, sizeof id, "t%llu", (unsigned long long)sim->tool_request);
    if (plan->kind == FAULT_OPERATOR_SAVE) {
        message.u.save_now.id = id;
    } else {
        int64_t left_ms = plan->left_ms > 0 ? plan->left_ms : plan->for_us / 1000 + 5000;
        message.u.notice = (struct wire_notice){.id = id,
                                                .kind = NOTICE_PREEMPT,
                                                .source = "tool",
                                                .left_ms = left_ms,
                                                .rank = (int64_t)((plan->target / 7) % job->nodes)};
        remember_notice(sim, job, id, left_ms);
    }
    tool_say(sim, &message);
}

/* --- a supervisor ----------------------------------------------------------------------------- */

#define ABOUT_THE_GONE (UINT64_C(1) << 40) /* in the numbers of these requests */

void tool_gone(struct sim *sim, const struct sim_proc *proc)
{
    struct wire_msg message = tool_message(sim, WIRE_GONE, &sim->jobs[proc->job]);

    if (!sim->broker->alive)
        return;
    message.up.request |= ABOUT_THE_GONE;
    message.u.gone = (struct wire_gone){.rank = proc->rank,
                                        .incarnation = proc->incarnation,
                                        .code = sim_chance(sim, 50) ? 1 : 0,
                                        .signo = sim_chance(sim, 50) ? 9 : 0};
    sim->stats->gone_told++;
    tool_say(sim, &message);
}

static void says_gone(struct sim *sim, struct sim_event *event)
{
    tool_gone(sim, sim->procs[event->number]);
}

/* Who left has said so itself. While no broker runs nobody hears it, and it is said no more. */
void tool_sees_end(struct sim *sim, const struct sim_proc *proc)
{
    if (sim->jobs[proc->job].supervised && !proc->view.left)
        sim_after(sim, sim_range(sim, 500, 120000), says_gone, NULL)->number = (int64_t)proc->index;
}

/* --- an order to forget a job that runs ------------------------------------------------------- */

#define FORGETS_OF_QUESTIONS 4 /* of so many questions one goes with such an order */

static void tool_forgets(struct sim *sim, const struct sim_job *job)
{
    struct wire_msg message = tool_message(sim, WIRE_FORGET, job);

    tool_say(sim, &message);
}

/* When the order comes: one for a job that has ended would be obeyed, and the launch that follows
 * would begin at step 0. That is what it is for, so it is asked for nowhere here. */
bool tool_forget_is_for_one_that_runs(const struct sim *sim, const struct wire_msg *message)
{
    const struct core *core = sim->broker->core;
    const struct job *job =
        asleep_holds(core, message->up.job) ? NULL : job_find(core, message->up.job);

    return job != NULL && job->gen.state != GENERATION_NONE && job->gen.state != GENERATION_ENDED;
}

void tool_forget_is_refused(struct sim *sim, const struct wire_msg *message, size_t from)
{
    const struct actions *batch = &sim->broker->batch;
    bool refused = false;

    for (size_t i = from; i < batch->count; i++) {
        const struct action *action = &batch->items[i];
        if (action->kind == ACTION_PERSIST && action->record.kind == RECORD_FORGET)
            sim_broken(sim, "forget", "job %s is forgotten while it runs", message->up.job);
        if (action->kind == ACTION_SEND && action->message.type == WIRE_ACK)
            refused = action->message.u.ack.code == MUSTER_E_BUSY;
    }
    if (!refused || job_find(sim->broker->core, message->up.job) == NULL)
        sim_broken(sim, "forget", "job %s runs, and an order to forget it is not refused",
                   message->up.job);
}

/* --- questions -------------------------------------------------------------------------------- */

void tool_asks(struct sim *sim, struct sim_event *event)
{
    static const char *const names[] = {
#define QUERY(name, columns, sql) #name,
#include "schema/sql/queries.def"
#undef QUERY
    };
    const struct sim_job *job = &sim->jobs[sim_random(sim) % sim->jobs_count];
    struct wire_msg message = tool_message(sim, WIRE_QUERY, job);

    (void)event;
    message.u.query =
        (struct wire_query){.name = names[sim_random(sim) % (sizeof names / sizeof names[0])],
                            .text_arg = "",
                            .number_arg = sim_range(sim, 0, 6),
                            .after = sim_chance(sim, 20) ? sim_range(sim, 1, 300) : 0};
    if (sim->broker->alive && !sim->broker->frozen) {
        fault_met_once(sim, &sim->unmet, FAULT_TOOL_ASKS);
        sim->asked++;
        sim->stats->queries++;
        tool_say(sim, &message);
        if (sim->asked % FORGETS_OF_QUESTIONS == 0)
            tool_forgets(sim, job);
    }
    if (sim->now_us < sim->asks_until_us)
        sim_after(sim, sim_range(sim, 10000, 400000), tool_asks, NULL);
}

void tool_hears(struct sim *sim, const struct wire_msg *message)
{
    uint64_t code = message->type == WIRE_ROWS ? message->u.rows.code : MUSTER_OK;
    bool disk = sim->store != NULL && (code == MUSTER_E_IO || code == MUSTER_E_STORAGE);

    readers_hear(sim, message);
    import_hear(sim, message);
    if (message->type == WIRE_ACK && (message->u.ack.request & ABOUT_THE_GONE) != 0 &&
        message->u.ack.value == 1)
        sim->stats->gone_lived++;
    if (message->type != WIRE_ROWS)
        return;
    sim->answered++;
    sim->stats->rows++;
    if (code != MUSTER_OK && !disk)
        sim_broken(sim, "answers", "a tool's question is answered: %s", message->u.rows.text);
    if (sim->answered > sim->asked)
        sim_broken(sim, "answers", "one question was answered twice");
}
