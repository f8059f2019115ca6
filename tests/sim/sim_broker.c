/* sim_broker - drives the broker's core as broker/loop.c does: receive all, step each, write the
 * batch in one transaction, only then send. It may die before the commit, after it, between two
 * sends. */
#include "broker/core/rounds/rounds.h"
#include "tests/sim/sim_world.h"

#include <stdlib.h>
#include <string.h>

#define RETRY_US 100000
#define BOOTS_MAX 1000000 /* of one machine */

int64_t broker_boot_ms(const struct sim *sim)
{
    return sim->now_us / 1000 + sim->broker->boot_offset_ms;
}

int64_t broker_unix_ms(const struct sim *sim)
{
    return INT64_C(1700000000000) + sim->now_us / 1000 + sim->wall_offset_ms;
}

static void pass(struct sim *sim, struct sim_event *event);

void broker_wake(struct sim *sim, int64_t at_us)
{
    struct sim_broker *b = sim->broker;

    if (!b->alive || b->busy || b->frozen || b->pass_at_us <= at_us)
        return;
    b->pass_at_us = at_us > sim->now_us ? at_us : sim->now_us;
    struct sim_event *event = sim_at(sim, b->pass_at_us, pass, NULL);
    event->stamp = ++b->pass_stamp;
    event->number = broker_index(sim);
}

unsigned broker_index(const struct sim *sim)
{
    return (unsigned)(sim->broker - sim->brokers);
}

struct sim_broker *broker_turn(struct sim *sim, unsigned index)
{
    struct sim_broker *former = sim->broker;

    sim->broker = &sim->brokers[index];
    return former;
}

/* --- a pass ----------------------------------------------------------------------------------- */

/* What an input leads to is derived in one go: once more yields nothing (R2.6). */
static void check_settled(struct sim *sim, struct actions *out)
{
    size_t before = out->count;

    core_settle(sim->broker->core, out);
    if (out->count == before)
        return;
    const struct action *action = &out->items[before];
    if (action->kind == ACTION_PERSIST)
        sim_broken(sim, "settle", "settling twice writes a row of kind %d", action->record.kind);
    else
        sim_broken(sim, "settle", "settling twice sends %s", wire_type_name(action->message.type));
}

/* R5.16: a rank that saved at S for another cause trains on, and would wait for those that leave at
 * S. So a notice joins a decided save only where no other one fits in. */
static void check_joins(struct sim *sim)
{
    if (!shared_is_newest(sim))
        return;
    for (struct job *job = sim->broker->core->jobs; job != NULL; job = job->next) {
        struct sim_job *known = sim_job_named(sim, job->name);
        const struct round *round = round_awaited(job);
        bool decided = round != NULL && round->state != ROUND_FREEZING;
        bool joined = decided && round->cause == CAUSE_TERMINATION;

        if (joined && known->other_round == round->round) {
            int64_t least_ms = grace_least_ms(sim->broker->core, job);
            sim->stats->late_joins++;
            known->late_round = round->round;
            if (round->deadline_boot_ms == 0 ||
                round->deadline_boot_ms > sim->broker->core->now_boot + least_ms)
                sim_broken(sim, "R5.16",
                           "a notice joins round %llu, which is decided, but one more needs only "
                           "%lld ms",
                           (unsigned long long)round->round, (long long)least_ms);
        }
        known->other_round = decided && !joined ? round->round : 0;
    }
}

static void core_input(struct sim *sim, enum input_kind kind, uint64_t route,
                       const struct wire_msg *message, const char *job, struct actions *out)
{
    struct input input = {.kind = kind,
                          .now_boot_ms = broker_boot_ms(sim),
                          .now_unix_ms = broker_unix_ms(sim),
                          .route = route,
                          .message = message,
                          .by = message != NULL && message->up.role == ROLE_TOOL ? "uid 7" : NULL,
                          .job = job};

    core_step(sim->broker->core, &input, out);
    check_settled(sim, out);
    check_joins(sim);
}

static void answer_storage(struct sim *sim, uint64_t route, const struct wire_msg *message)
{
    struct wire_msg answer = {.type = message->type == WIRE_HELLO ? WIRE_REFUSED : WIRE_ACK};

    if (message->type != WIRE_HELLO && !wire_is_request(message->type))
        return;
    core_fill_down(sim->broker->core, "", &answer.down);
    if (message->type == WIRE_HELLO)
        answer.u.refused = (struct wire_refused){.nonce = message->u.hello.nonce,
                                                 .code = MUSTER_E_STORAGE,
                                                 .text = "disk full",
                                                 .retry = true};
    else
        answer.u.ack = (struct wire_ack){
            .request = message->up.request, .code = MUSTER_E_STORAGE, .text = "disk full"};
    broker_lower_head(sim, &answer.down);
    broker_transmit(sim, route, NULL, &answer);
}

/* For the checker: when the core was given the last frame of a process, on the route that it said
 * HELLO on, and what its heartbeats told. */
static void note_taken(struct sim *sim, struct sim_proc *proc, uint64_t route,
                       const struct wire_msg *message)
{
    if (proc == NULL || !shared_is_newest(sim))
        return;
    if (message->type == WIRE_HELLO) {
        proc->hello_route = route;
        int64_t way_us = sim->now_us - proc->created_us - (int64_t)message->u.hello.age_ms * 1000;
        if (way_us > proc->hello_way_us)
            proc->hello_way_us = way_us;
    }
    if (proc->hello_route == route)
        proc->taken_us = sim->now_us;
    if (message->type == WIRE_HEARTBEAT)
        bounds_beat(sim, proc, &message->u.heartbeat);
}

static void step_frame(struct sim *sim, struct sim_proc *proc, uint64_t route,
                       const struct wire_msg *message)
{
    struct actions *batch = &sim->broker->batch;
    const char *asleep = core_lacks(sim->broker->core, message);
    size_t before;

    if (message->type == WIRE_FORGET && !tool_forget_is_for_one_that_runs(sim, message))
        return;
    if (asleep != NULL) {
        SIM_TELL(sim, "BROKER wakes job %s", asleep);
        if (!shared_is_newest(sim) && disk_job(sim, asleep) == NULL) {
            sim->broker->holder.lacks = true;
            return;
        }
        disk_load_job(sim, sim->broker->core, asleep);
        core_input(sim, INPUT_JOB, 0, NULL, asleep, batch);
    }
    before = batch->count;
    core_input(sim, INPUT_MESSAGE, route, message, NULL, batch);
    if (proc != NULL && shared_is_newest(sim))
        check_taken_once(sim, proc, message, before);
    if (message->type == WIRE_FORGET)
        tool_forget_is_refused(sim, message, before);
}

static void take_frame(struct sim *sim, const struct sim_event *frame)
{
    struct sim_broker *b = sim->broker;
    struct wire_msg message;
    struct muster_error err;

    arena_reset(&sim->frame);
    if (wire_decode(frame->data, frame->size, &sim->frame, &message, &err) != MUSTER_OK ||
        !wire_is_up(message.type)) {
        sim_broken(sim, "wire", "a node's frame cannot be decoded: %s", err.text);
        return;
    }
    struct sim_proc *proc = frame->stamp <= sim->last_route ? sim->routes[frame->stamp] : NULL;
    SIM_TELL(sim, "broker <- %s from %s/%llu request %llu applied %llu",
             wire_type_name(message.type), message.up.job, (unsigned long long)message.up.rank,
             (unsigned long long)message.up.request, (unsigned long long)message.up.applied_seq);
    if (!b->blocked || core_input_is_free(&message))
        note_taken(sim, proc, frame->stamp, &message);
    if (!b->blocked)
        step_frame(sim, proc, frame->stamp, &message);
    else if (core_input_is_free(&message))
        core_input(sim, INPUT_MESSAGE, frame->stamp, &message, NULL, &b->free_outputs);
    else
        answer_storage(sim, frame->stamp, &message);
}

static bool crash_now(struct sim *sim, enum sim_fault where)
{
    struct sim_broker *b = sim->broker;

    if (b->crash_at != where || (b->crash_picky && !b->journals) ||
        (b->crash_deletes && !b->deletes) || b->crash_after-- > 0)
        return false;
    if (b->crash_deletes)
        sim->stats->faults[FAULT_BROKER_IN_DELETION]++;
    b->crash_deletes = false;
    b->crash_at = FAULT_NOTHING;
    fault_met(sim, where);
    broker_crash(sim, sim_fault_name(where));
    return true;
}

/* It stands still: what was due to happen does not. */
static bool is_stopped(struct sim *sim)
{
    if (sim->broker->frozen)
        fault_met_once(sim, &sim->unmet, FAULT_BROKER_FREEZE);
    return sim->broker->frozen;
}

static void next_pass(struct sim *sim)
{
    struct sim_broker *b = sim->broker;
    bool timers = sim->options.mutation != MUTANT_NO_TIMERS;
    int64_t wakeup = timers ? core_wakeup_boot_ms(b->core) : INT64_MAX;

    if (b->inbox_count > 0 || b->lacking_count > 0)
        broker_wake(sim, sim->now_us + 10);
    if (b->blocked)
        broker_wake(sim, sim->now_us + RETRY_US);
    else if (wakeup != INT64_MAX)
        broker_wake(sim, (wakeup - b->boot_offset_ms) * 1000);
    if (sim->options.shared)
        broker_wake(sim, b->holder.renew_at_us);
}

/* The batch may be written or not. */
static void put_in_doubt(struct sim_broker *b)
{
    struct actions batch = b->batch;

    b->batch = b->doubt;
    b->doubt = batch;
    b->doubt_boot = b->boot;
    b->in_doubt = true;
}

/* What musterd does when it cannot go on with its database: it exits. */
static void store_died(struct sim *sim, bool in_doubt)
{
    struct sim_broker *b = sim->broker;

    if (in_doubt)
        put_in_doubt(b);
    b->down_us = sim_range(sim, 10000, 3000000);
    broker_crash(sim, sim_store_lost_power(sim) ? sim_fault_name(FAULT_STORE_CUT)
                                                : "its database failed");
}

static void commit_after(struct sim *sim, int64_t delay_us);

static bool send_batch(struct sim *sim)
{
    struct sim_broker *b = sim->broker;

    for (size_t i = 0; i < b->batch.count && !sim->failed; i++) {
        const struct action *action = &b->batch.items[i];
        if (action->kind == ACTION_PERSIST || action->kind == ACTION_HINT)
            continue;
        if (crash_now(sim, FAULT_BROKER_BETWEEN_SENDS))
            return false;
        broker_carry_out(sim, action);
        if (sim_store_is_dead(sim)) {
            store_died(sim, false);
            return false;
        }
    }
    return true;
}

static void no_room(struct sim *sim)
{
    struct sim_broker *b = sim->broker;

    if (b->starting && sim->options.shared) {
        broker_begins_again(sim, "no room for its start");
        return;
    }
    if (b->starting) { /* musterd does not start */
        b->down_us = 1000000;
        broker_crash(sim, "no room for its start");
        return;
    }
    b->blocked = true;
    next_pass(sim);
}

static void batch_is_written(struct sim *sim)
{
    struct sim_broker *b = sim->broker;

    b->blocked = b->starting = false;
    if (crash_now(sim, FAULT_BROKER_AFTER_COMMIT))
        return;
    if (sim->options.mutation != MUTANT_PUBLISH_FIRST && !send_batch(sim))
        return;
    actions_clear(&b->batch);
    next_pass(sim);
}

void broker_answered(struct sim *sim, enum sim_answer answer)
{
    sim->broker->busy = false;
    if (answer == ANSWER_WRITTEN)
        batch_is_written(sim);
    else
        no_room(sim);
}

static void commit_one(struct sim *sim, struct sim_event *event)
{
    struct sim_broker *b = sim->broker;

    if (!b->alive || event->stamp != b->stamp)
        return;
    if (is_stopped(sim)) { /* goes on when it is thawed */
        commit_after(sim, 10000);
        return;
    }
    if (b->crash_at == FAULT_BROKER_BEFORE_COMMIT && b->crash_after == 0 &&
        sim->options.mutation == MUTANT_TORN_BATCH)
        disk_apply_some(sim, &b->batch, (size_t)sim_range(sim, 0, (int64_t)b->batch.count));
    if (crash_now(sim, FAULT_BROKER_BEFORE_COMMIT))
        return;
    b->busy = false;
    if (sim->disk_full) {
        fault_met_once(sim, &sim->unmet, FAULT_DISK_FULL);
        no_room(sim);
        return;
    }
    if (sim->options.mutation == MUTANT_PUBLISH_FIRST && !send_batch(sim))
        return;
    enum muster_status status = disk_apply(sim, &b->batch);
    b->refused = status == MUSTER_E_STORAGE;
    if (b->refused) {
        no_room(sim);
        return;
    }
    if (status != MUSTER_OK) {
        store_died(sim, true);
        return;
    }
    batch_is_written(sim);
}

static void commit(struct sim *sim, struct sim_event *event)
{
    struct sim_broker *newest = broker_turn(sim, (unsigned)event->number);

    commit_one(sim, event);
    sim->broker = newest;
}

static void commit_after(struct sim *sim, int64_t delay_us)
{
    struct sim_event *event = sim_after(sim, delay_us, commit, NULL);

    event->stamp = sim->broker->stamp;
    event->number = broker_index(sim);
}

static bool has_rows(const struct actions *batch)
{
    for (size_t i = 0; i < batch->count; i++)
        if (batch->items[i].kind == ACTION_PERSIST && !batch->items[i].lazy)
            return true;
    return false;
}

static bool is_of_deletion(const struct action *action)
{
    const struct record *row = &action->record;

    if (action->kind == ACTION_SEND && action->message.type == WIRE_DELETE)
        return true;
    return action->kind == ACTION_PERSIST && row->kind == RECORD_CHECKPOINT &&
           (row->u.checkpoint.state == CHECKPOINT_DELETING ||
            row->u.checkpoint.state == CHECKPOINT_DELETED);
}

/* Of a transaction. */
static int64_t write_us(struct sim *sim)
{
    int64_t takes = sim_range(sim, 50, sim->fsync_max_us);

    if (sim->now_us >= sim->slow_disk_until_us)
        return takes;
    fault_met_once(sim, &sim->unmet, FAULT_DISK_SLOW);
    return side_range(sim, sim->slow_disk_us, side_chance(sim, 60) ? 1500000 : 4000000);
}

static void write_batch(struct sim *sim)
{
    struct sim_broker *b = sim->broker;
    bool rows = has_rows(&b->batch);

    b->busy = true;
    b->journals = b->deletes = false;
    for (size_t i = 0; i < b->batch.count; i++) {
        b->deletes |= is_of_deletion(&b->batch.items[i]);
        b->journals |= b->batch.items[i].kind == ACTION_PERSIST &&
                       b->batch.items[i].record.kind == RECORD_EVENT;
    }
    if (!rows || !sim->options.shared) {
        commit_after(sim, rows ? write_us(sim) : 1);
        return;
    }
    shared_send(sim);
    if (b->alive)
        crash_now(sim, FAULT_BROKER_BEFORE_COMMIT);
}

static bool send_free_outputs(struct sim *sim)
{
    struct actions *out = &sim->broker->free_outputs;

    for (size_t i = 0; i < out->count && !sim_store_is_dead(sim); i++) {
        struct action *action = &out->items[i];
        enum wire_type type = action->message.type;
        if (type == WIRE_SNAPSHOT || type == WIRE_WELCOME || type == WIRE_EVENT)
            continue;
        if (action->kind == ACTION_SEND || action->kind == ACTION_PUBLISH)
            broker_lower_head(sim, &action->message.down);
        broker_carry_out(sim, action);
    }
    actions_clear(out);
    if (sim_store_is_dead(sim))
        store_died(sim, false);
    return sim->broker->alive;
}

static void take_inbox(struct sim *sim)
{
    struct sim_broker *b = sim->broker;
    size_t count = b->inbox_count;

    for (size_t i = 0; i < count; i++) {
        take_frame(sim, &b->inbox[i]);
        free(b->inbox[i].data);
    }
    b->inbox_count = 0;
    count = b->blocked ? 0 : b->lacking_count;
    for (size_t i = 0; i < count; i++)
        core_input(sim, INPUT_NO_EVENTS, b->lacking[i].stamp, NULL,
                   (const char *)b->lacking[i].data, &b->batch);
    if (count > 0)
        b->lacking_count = 0;
}

/* Progress and a job's sleep come with any tick: nobody waits for them. */
static bool is_waited_for(const struct action *action)
{
    return action->kind != ACTION_PERSIST ||
           (!action->lazy && action->record.kind != RECORD_JOB_ASLEEP);
}

static bool some_live(const struct job *job)
{
    for (size_t i = 0; i < job->peers_count; i++)
        if (peer_is_live(job->peers[i]))
            return true;
    return false;
}

/* What is due before the next wake-up would be done late in a quiet world. A job with live ranks is
 * looked at twice a heartbeat; of another a tick that looks at all timers before that finds
 * nothing. A gap is counted with the pass that it belongs to. */
static void check_wakeup(struct sim *sim)
{
    struct sim_broker *b = sim->broker;
    const struct input early = {
        .kind = INPUT_TICK, .now_boot_ms = broker_boot_ms(sim), .now_unix_ms = broker_unix_ms(sim)};
    int64_t since = early.now_boot_ms - b->core->ticked_ms - b->core->away_ms;

    if (b->blocked || b->batch.count > 0 || since > LOOP_GAP_MS ||
        early.now_boot_ms >= core_wakeup_boot_ms(b->core))
        return;
    for (struct job *job = b->core->jobs; job != NULL; job = job->next) {
        if (!some_live(job))
            job->timer_boot_ms = INT64_MIN;
        else if (job->timer_boot_ms > b->core->ticked_ms + HEARTBEAT_MS / 2)
            sim_broken(sim, "wakeup", "%s is not looked at twice a heartbeat", job->name);
    }
    core_step(b->core, &early, &b->batch);
    for (size_t i = 0; i < b->batch.count; i++) {
        const struct action *action = &b->batch.items[i];
        if (is_waited_for(action))
            sim_broken(sim, "wakeup",
                       "the broker's core has action %d (row %d) to do before it asks to be woken",
                       (int)action->kind, (int)action->record.kind);
    }
}

static void pass_one(struct sim *sim, struct sim_event *event)
{
    struct sim_broker *b = sim->broker;

    if (event->stamp != b->pass_stamp || !b->alive || is_stopped(sim) || b->busy)
        return;
    b->pass_at_us = NEVER;
    if (sim->options.shared && !shared_holds(sim))
        return;
    b->blocked |= b->holder.doubts;
    b->journals = true; /* idle crashes are not picky */
    if (crash_now(sim, FAULT_BROKER_IDLE) || crash_now(sim, FAULT_BROKER_REBOOT))
        return;
    if (sim->options.mutation != MUTANT_NO_TIMERS)
        check_wakeup(sim);
    take_inbox(sim);
    if (b->blocked) {
        if (!send_free_outputs(sim))
            return;
        if (b->holder.doubts)
            next_pass(sim);
        else
            write_batch(sim);
        return;
    }
    bounds_pass(sim);
    if (sim->options.mutation != MUTANT_NO_TIMERS)
        core_input(sim, INPUT_TICK, 0, NULL, NULL, &b->batch);
    broker_publish_hints(sim);
    write_batch(sim);
}

static void pass(struct sim *sim, struct sim_event *event)
{
    struct sim_broker *newest = broker_turn(sim, (unsigned)event->number);

    pass_one(sim, event);
    sim->broker = newest;
}

void broker_receive(struct sim *sim, uint64_t route, const uint8_t *data, size_t size)
{
    struct sim_broker *b = sim->broker;

    if (b->inbox_count == b->inbox_capacity) {
        b->inbox_capacity = b->inbox_capacity ? b->inbox_capacity * 2 : 64;
        b->inbox = realloc(b->inbox, b->inbox_capacity * sizeof *b->inbox);
    }
    uint8_t *copy = malloc(size + 1);
    memcpy(copy, data, size);
    b->inbox[b->inbox_count++] = (struct sim_event){.stamp = route, .data = copy, .size = size};
    broker_wake(sim, sim->now_us + sim_range(sim, 0, 300));
}

/* --- life ------------------------------------------------------------------------------------- */

static void forget_inbox(struct sim_broker *b)
{
    for (size_t i = 0; i < b->inbox_count; i++)
        free(b->inbox[i].data);
    b->inbox_count = 0;
    b->lacking_count = 0;
}

static void start_again(struct sim *sim, struct sim_event *event)
{
    (void)event;
    if (!sim->broker->alive)
        broker_start(sim);
}

/* False: its database cannot be opened or read now. */
static bool start_store(struct sim *sim)
{
    struct sim_broker *b = sim->broker;

    if (sim->store == NULL || sim_store_start(sim, b->core))
        return true;
    SIM_TELL(sim, "BROKER does not start: its database failed");
    core_destroy(&b->core);
    if (!sim->failed)
        sim_after(sim, 500000, start_again, NULL);
    return false;
}

void broker_start(struct sim *sim)
{
    struct sim_broker *b = sim->broker;
    struct core_options options = {.events_endpoint = "tcp://127.0.0.1:7701",
                                   .ended_held = sim->options.seed % 2 == 0 ? 0 : -1};

    if (b->starts++ == 0) {
        actions_init(&b->batch);
        actions_init(&b->free_outputs);
        actions_init(&b->doubt);
        b->boot_offset_ms = sim_range(sim, 20000, 900000000);
        b->boot = 1 + BOOTS_MAX * broker_index(sim);
    }
    if (sim->options.shared)
        shared_started(sim);
    else
        copy_put_back(sim);
    copy_nothing(sim);
    b->start_id = options.start_id = sim_random(sim) | 1;
    b->core = core_create(&options);
    if (!start_store(sim))
        return;
    b->alive = b->starting = true;
    b->busy = b->blocked = b->frozen = false;
    b->stamp++;
    b->started_us = sim->now_us;
    b->pass_at_us = NEVER;
    sim->stats->broker_starts++;
    check_loaded(sim);
    undo_swap(sim);
    if (sim->store == NULL)
        disk_load(sim, b->core);
    undo_swap(sim);
    SIM_TELL(sim, "BROKER %u starts, start %llu", broker_index(sim), (unsigned long long)b->starts);
    core_input(sim, INPUT_START, 0, NULL, NULL, &b->batch);
    write_batch(sim);
    net_broker_back(sim);
}

static void die(struct sim *sim)
{
    struct sim_broker *b = sim->broker;

    b->alive = false;
    undo_last(sim);
    if (sim->options.shared)
        shared_died(sim);
    core_destroy(&b->core);
    actions_clear(&b->batch);
    actions_clear(&b->free_outputs);
    forget_inbox(b);
    net_broker_gone(sim);
}

void broker_crash(struct sim *sim, const char *how)
{
    struct sim_broker *b = sim->broker;

    bool reboots = strcmp(how, sim_fault_name(FAULT_BROKER_REBOOT)) == 0 ||
                   strcmp(how, sim_fault_name(FAULT_STORE_CUT)) == 0;

    if (!b->alive)
        return;
    SIM_TELL(sim, "BROKER dies: %s", how);
    if (b->refused)
        put_in_doubt(b);
    b->refused = false;
    sim_store_die(sim, reboots);
    die(sim);
    if (reboots) {
        b->boot++;
        b->boot_offset_ms = sim_range(sim, 5000, 60000) - sim->now_us / 1000;
    }
    if (sim->options.shared)
        shared_waits(sim, b->down_us);
    else
        sim_after(sim, b->down_us, start_again, NULL);
}

void broker_begins_again(struct sim *sim, const char *why)
{
    SIM_TELL(sim, "BROKER %u begins again: %s", broker_index(sim), why);
    die(sim);
    shared_release(sim);
    shared_waits(sim, side_range(sim, 20000, 300000));
}

static void free_one(struct sim_broker *b)
{
    core_destroy(&b->core);
    actions_free(&b->batch);
    actions_free(&b->free_outputs);
    actions_free(&b->doubt);
    forget_inbox(b);
    free(b->inbox);
}

void broker_free(struct sim *sim)
{
    for (unsigned i = 0; i < SIM_BROKERS; i++)
        if (sim->brokers[i].starts > 0)
            free_one(&sim->brokers[i]);
}
