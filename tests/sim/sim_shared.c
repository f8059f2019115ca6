/* sim_shared - two brokers over one log, as musterd --shared: broker/store/shared.c, fenced_log.c.
 * The rows of the log are sim->disk. A batch is a statement that is on its way for a while, may
 * arrive when its broker is frozen, overtaken or dead, and is taken only by the fence. Its answer
 * is on its way, too, and may be lost. A take-over is a start of the broker on the log's rows. */
#include "broker/store/shared.h"
#include "tests/sim/sim_world.h"

#include <stdlib.h>
#include <string.h>

#define US(ms) ((int64_t)(ms)*1000)
#define U(x) ((unsigned long long)(x))
#define ASK_US US(3000) /* then a statement has no answer */
#define RETRY_US US(500)
#define SLOW_MAX_US US(9000) /* longer than a broker waits: it has given the statement up */
#define COPY_MAX_US US(1500)
#define SKEW_MAX_MS 20000

struct statement {
    uint64_t number, epoch, seq;
    bool passed;  /* MUTANT_FENCE_APART */
    bool is_lost; /* its answer */
    bool written, no_room;
};

static struct sim_holder *holder_of(const struct sim *sim)
{
    return &sim->broker->holder;
}

static bool has_lease(const struct sim *sim)
{
    return holder_of(sim)->epoch == sim->lease.epoch;
}

bool shared_is_newest(const struct sim *sim)
{
    return !sim->options.shared || (has_lease(sim) && !holder_of(sim)->of_lost_history);
}

uint64_t shared_told(const struct sim *sim, const char *job)
{
    for (size_t i = 0; i < sim->jobs_count; i++)
        if (strcmp(sim->jobs[i].name, job) == 0)
            return holder_of(sim)->told[i];
    return 0;
}

static void note_told(struct sim *sim)
{
    for (size_t i = 0; i < sim->jobs_count; i++) {
        const struct record_job *row = disk_job(sim, sim->jobs[i].name);
        holder_of(sim)->told[i] = row != NULL ? row->seq : 0;
    }
}

static bool is_cut(struct sim *sim)
{
    if (sim->now_us >= holder_of(sim)->cut_until_us)
        return false;
    fault_met_once(sim, &sim->unmet, FAULT_LOG_CUT);
    return true;
}

/* One way. */
static int64_t way_us(struct sim *sim)
{
    if (sim->now_us >= sim->slow_log_until_us)
        return side_range(sim, 50, 50 + sim->fsync_max_us / 2);
    fault_met_once(sim, &sim->unmet, FAULT_LOG_SLOW);
    return side_range(sim, 1000, side_chance(sim, 50) ? US(1500) : SLOW_MAX_US);
}

static struct sim_event *event_of(struct sim *sim, int64_t after_us, sim_event_fn *fn)
{
    struct sim_event *event = sim_after(sim, after_us, fn, NULL);

    event->number = broker_index(sim);
    event->stamp = sim->broker->stamp;
    return event;
}

/* --- the lease -------------------------------------------------------------------------------- */

static void lease_lasts(struct sim *sim)
{
    bool own = sim->options.mutation == MUTANT_OWN_CLOCK;

    sim->lease.ends_us = sim->now_us + US(SHARED_LEASE_MS) +
                         (own ? US(holder_of(sim)->skew_ms + sim->wall_offset_ms) : 0);
    holder_of(sim)->renewed_us = sim->now_us;
    holder_of(sim)->renew_at_us = sim->now_us + US(SHARED_RENEW_MS);
    holder_of(sim)->doubts = false;
}

void shared_release(struct sim *sim)
{
    if (!has_lease(sim) || is_cut(sim))
        return;
    sim->lease.ends_us = INT64_MIN;
    holder_of(sim)->renewed_us = INT64_MIN / 2;
}

/* No broker may be overtaken while it can believe that its lease holds. */
static void check_overtaken(struct sim *sim)
{
    for (unsigned i = 0; i < SIM_BROKERS; i++) {
        const struct sim_broker *other = &sim->brokers[i];
        if (other == sim->broker || !other->alive || other->holder.epoch != sim->lease.epoch)
            continue;
        sim->stats->overtaken++;
        if (!other->holder.of_lost_history &&
            sim->now_us < other->holder.renewed_us + US(SHARED_LEASE_MS))
            sim_broken(sim, "lease", "broker %u is overtaken %lld ms after it renewed its lease", i,
                       (long long)(sim->now_us - other->holder.renewed_us) / 1000);
    }
}

static bool can_take(struct sim *sim)
{
    int64_t ends_us = sim->lease.ends_us;

    return !is_cut(sim) &&
           (ends_us < sim->now_us || ends_us > sim->now_us + 2 * US(SHARED_LEASE_MS));
}

static void take(struct sim *sim)
{
    struct sim_holder *holder = holder_of(sim);
    uint64_t now_ms = (uint64_t)sim->now_us / 1000;

    check_overtaken(sim);
    if (sim->lease.epoch > 0 && sim->lease.epoch != holder->epoch)
        sim->stats->takeovers++;
    sim->lease.epoch = sim->lease.epoch + 1 > now_ms ? sim->lease.epoch + 1 : now_ms;
    holder->epoch = sim->lease.epoch;
    holder->seq = sim->lease.seq;
    holder->unsure = holder->of_lost_history = holder->lacks = false;
    lease_lasts(sim);
    SIM_TELL(sim, "BROKER %u takes the lease, epoch %llu, batch %llu", broker_index(sim),
             U(holder->epoch), U(holder->seq));
}

static void looks(struct sim *sim, struct sim_event *event);

/* The copy of the log is made. */
static void begins(struct sim *sim, struct sim_event *event)
{
    struct sim_broker *newest = broker_turn(sim, (unsigned)event->number);

    if (event->stamp == sim->broker->stamp && !sim->broker->alive) {
        if (sim->broker->frozen)
            event_of(sim, 10000, begins);
        else if (has_lease(sim)) {
            broker_start(sim);
            newest = sim->broker;
        } else
            shared_waits(sim, US(SHARED_LOOK_MS));
    }
    sim->broker = newest;
}

static void looks(struct sim *sim, struct sim_event *event)
{
    struct sim_broker *newest = broker_turn(sim, (unsigned)event->number);

    if (event->stamp == sim->broker->stamp && !sim->broker->alive) {
        if (sim->broker->frozen || !can_take(sim))
            event_of(sim, US(SHARED_LOOK_MS), looks);
        else {
            take(sim);
            newest = sim->broker;
            event_of(sim, side_range(sim, 1000, COPY_MAX_US), begins);
        }
    }
    sim->broker = newest;
}

void shared_waits(struct sim *sim, int64_t for_us)
{
    sim->broker->stamp++;
    event_of(sim, for_us, looks);
}

void shared_world(struct sim *sim)
{
    sim->lease.ends_us = INT64_MIN;
    sim_after(sim, 0, net_look_at_silence, NULL);
    for (unsigned i = 0; i < SIM_BROKERS; i++) {
        struct sim_broker *newest = broker_turn(sim, i);
        holder_of(sim)->skew_ms = side_range(sim, -SKEW_MAX_MS, SKEW_MAX_MS);
        shared_waits(sim, i == 0 ? 0 : side_range(sim, 0, 2000000));
        sim->broker = newest;
    }
}

void shared_started(struct sim *sim)
{
    const struct sim_table *rows = &sim->disk.tables[RECORD_BROKER];

    sim->broker->epoch = rows->count > 0 ? rows->rows[0].record.u.broker.epoch : 0;
    note_told(sim);
}

bool shared_holds(struct sim *sim)
{
    struct sim_holder *holder = holder_of(sim);

    if (holder->lacks) {
        broker_begins_again(sim, "the log is not what it wrote");
        return false;
    }
    if (sim->now_us >= holder->renew_at_us) {
        if (is_cut(sim)) {
            int64_t silent_us = sim->now_us - holder->renewed_us;
            holder->renew_at_us = sim->now_us + RETRY_US;
            holder->doubts = silent_us >= US(SHARED_LEASE_MS - SHARED_MARGIN_MS);
            if (silent_us >= US(SHARED_DOUBT_MS)) {
                broker_begins_again(sim, "its lease could not be renewed");
                return false;
            }
        } else if (!has_lease(sim)) {
            broker_begins_again(sim, "another broker is active");
            return false;
        } else
            lease_lasts(sim);
    }
    if (!holder->doubts && sim->now_us >= holder->renewed_us + US(SHARED_LEASE_MS))
        sim_broken(sim, "lease", "broker %u goes on %lld ms after its lease was renewed",
                   broker_index(sim), (long long)(sim->now_us - holder->renewed_us) / 1000);
    return true;
}

/* --- a batch ---------------------------------------------------------------------------------- */

/* What became of the batch before. False: this broker is not active any more. */
static bool resolve(struct sim *sim)
{
    const struct sim_holder *holder = holder_of(sim);

    if (!has_lease(sim))
        broker_begins_again(sim, "another broker is active");
    else if (holder->seq != sim->lease.seq)
        broker_begins_again(sim, holder->seq < sim->lease.seq
                                     ? "the answer to its last batch was lost"
                                     : "the log was restored to an earlier state");
    return sim->broker->alive;
}

static void hears(struct sim *sim, struct sim_event *event)
{
    const struct statement *at = (const struct statement *)event->data;
    struct sim_broker *newest = broker_turn(sim, (unsigned)event->number);
    struct sim_holder *holder = holder_of(sim);

    if (event->stamp == sim->broker->stamp && sim->broker->busy && at->number == holder->sent) {
        if (sim->broker->frozen) {
            struct sim_event *later = event_of(sim, 10000, hears);
            later->data = event->data;
            event->data = NULL;
        } else if (at->no_room) {
            holder->unsure = false;
            broker_answered(sim, ANSWER_NO_ROOM);
        } else if (!at->written) {
            if (resolve(sim))
                broker_begins_again(sim, "a batch was not taken");
        } else {
            holder->seq++;
            holder->unsure = false;
            note_told(sim);
            if (sim->disk.ends > sim->broker->ends_told)
                sim->broker->ends_told = sim->disk.ends;
            broker_answered(sim, ANSWER_WRITTEN);
        }
    }
    sim->broker = newest;
}

static void in_vain(struct sim *sim, struct sim_event *event)
{
    struct sim_broker *newest = broker_turn(sim, (unsigned)event->number);

    if (event->stamp == sim->broker->stamp && sim->broker->busy &&
        event->size == holder_of(sim)->sent) {
        if (sim->broker->frozen) /* when it wakes an answer that came is heard first */
            event_of(sim, 25000, in_vain)->size = event->size;
        else
            broker_answered(sim, ANSWER_NO_ROOM);
    }
    sim->broker = newest;
}

static bool fence(const struct sim *sim, const struct statement *at)
{
    if (sim->options.mutation == MUTANT_NO_FENCE)
        return true;
    if (sim->options.mutation == MUTANT_FENCE_APART)
        return at->passed;
    return at->epoch == sim->lease.epoch && at->seq == sim->lease.seq;
}

static void write(struct sim *sim, struct statement *at, const struct actions *batch)
{
    at->no_room = sim->disk_full;
    if (at->no_room) {
        fault_met_once(sim, &sim->unmet, FAULT_DISK_FULL);
        return;
    }
    at->written = fence(sim, at);
    if (!at->written) {
        sim->stats->refused++;
        SIM_TELL(sim, "LOG refuses a batch of epoch %llu, behind %llu", U(at->epoch), U(at->seq));
        return;
    }
    sim->lease.seq++;
    disk_apply(sim, batch);
    at->is_lost = sim->lost_answers > 0;
    if (at->is_lost) {
        sim->lost_answers--;
        fault_met(sim, FAULT_LOG_DOUBT);
        SIM_TELL(sim, "LOG's answer is lost");
    }
}

static void arrives(struct sim *sim, struct sim_event *event)
{
    struct statement *at = (struct statement *)event->data;
    struct sim_broker *newest = broker_turn(sim, (unsigned)event->number);
    struct sim_broker *b = sim->broker;
    bool lives = event->stamp == b->stamp && b->alive && at->number == b->holder.sent;

    if (lives)
        write(sim, at, &b->batch);
    else if (at->number == b->holder.lost) { /* its broker is dead */
        uint64_t boot = b->boot;
        b->boot = b->doubt_boot;
        write(sim, at, &b->doubt);
        b->boot = boot;
        b->holder.lost = 0;
        sim->stats->late += at->written;
    }
    if (lives && !at->is_lost) {
        struct sim_event *answer = event_of(sim, way_us(sim), hears);
        answer->data = event->data;
        event->data = NULL;
    }
    sim->broker = newest;
}

static void sends(struct sim *sim)
{
    struct sim_holder *holder = holder_of(sim);
    struct statement *at;
    bool cut = is_cut(sim);
    int64_t way = way_us(sim);

    if (holder->unsure && !cut && !resolve(sim))
        return;
    holder->unsure = true;
    holder->sent++;
    if (cut) /* lost, or arrives when the broker has given it up */
        way = side_chance(sim, 60) ? -1 : holder->cut_until_us - sim->now_us + way;
    event_of(sim, ASK_US, in_vain)->size = holder->sent;
    if (way < 0)
        return;
    at = calloc(1, sizeof *at);
    *at = (struct statement){.number = holder->sent, .epoch = holder->epoch, .seq = holder->seq};
    at->passed = at->epoch == sim->lease.epoch && at->seq == sim->lease.seq;
    event_of(sim, way, arrives)->data = (uint8_t *)at;
}

static void departs(struct sim *sim, struct sim_event *event)
{
    struct sim_broker *newest = broker_turn(sim, (unsigned)event->number);

    if (event->stamp == sim->broker->stamp && sim->broker->alive) {
        if (sim->broker->frozen)
            event_of(sim, 10000, departs);
        else
            sends(sim);
    }
    sim->broker = newest;
}

void shared_send(struct sim *sim)
{
    if (!sim->freeze_at_send) {
        sends(sim);
        return;
    }
    sim->freeze_at_send = false;
    sim->broker->frozen = true;
    fault_met_once(sim, &sim->unmet, FAULT_BROKER_FREEZE);
    event_of(sim, 10000, departs);
}

void shared_died(struct sim *sim)
{
    struct sim_broker *b = sim->broker;
    struct actions batch = b->batch;

    if (!b->holder.unsure)
        return;
    b->batch = b->doubt;
    b->doubt = batch;
    b->doubt_boot = b->boot;
    b->holder.lost = b->holder.sent;
}

void shared_put_back(struct sim *sim)
{
    if (!sim->put_back)
        return;
    if (sim->copy_lease.seq == sim->lease.seq && sim->copy_lease.epoch == sim->lease.epoch) {
        sim->put_back = sim->copied = false;
        return;
    }
    copy_put_back(sim);
    sim->lease = sim->copy_lease;
    for (unsigned i = 0; i < SIM_BROKERS; i++) {
        struct sim_holder *at = &sim->brokers[i].holder;
        bool its_own = at->epoch == sim->lease.epoch && at->seq == sim->lease.seq && !at->unsure;
        at->of_lost_history = sim->brokers[i].alive && !its_own;
    }
}

/* --- faults ----------------------------------------------------------------------------------- */

bool shared_fault(struct sim *sim, const struct sim_fault_plan *plan)
{
    const int64_t end_us = sim->now_us + plan->for_us;

    switch (plan->kind) {
    case FAULT_LOG_CUT:
        holder_of(sim)->cut_until_us = end_us;
        return true;
    case FAULT_LOG_SLOW:
        sim->slow_log_until_us = end_us;
        return true;
    case FAULT_LOG_DOUBT:
        sim->lost_answers++;
        return true;
    case FAULT_HAND_OVER:
        if (!sim->broker->alive || sim->broker->frozen)
            return true;
        fault_met(sim, FAULT_HAND_OVER);
        broker_begins_again(sim, sim_fault_name(FAULT_HAND_OVER));
        return true;
    default:
        return false;
    }
}

static void add(struct sim *sim, int64_t work)
{
    static const enum sim_fault kinds[] = {FAULT_BROKER_FREEZE,
                                           FAULT_BROKER_FREEZE,
                                           FAULT_LOG_CUT,
                                           FAULT_LOG_CUT,
                                           FAULT_LOG_SLOW,
                                           FAULT_LOG_SLOW,
                                           FAULT_LOG_DOUBT,
                                           FAULT_HAND_OVER,
                                           FAULT_BROKER_IDLE,
                                           FAULT_BROKER_AFTER_COMMIT,
                                           FAULT_BROKER_BEFORE_COMMIT,
                                           FAULT_BROKER_BETWEEN_SENDS};
    struct sim_fault_plan plan = {
        .kind = kinds[side_range(sim, 0, sizeof kinds / sizeof kinds[0] - 1)],
        .at_us = side_range(sim, 0, work + 2000000),
        .for_us = side_range(sim, US(100), side_chance(sim, 70) ? US(12000) : US(40000)),
        .slot = -1};

    plan_add(sim, &plan);
}

void shared_plan(struct sim *sim, int64_t work)
{
    for (int64_t count = side_range(sim, 2, 8); count > 0; count--)
        add(sim, work);
}
