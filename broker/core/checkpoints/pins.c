/* pins - who holds a checkpoint: an operator until the pin is removed, or a reader for a lease that
 * it renews. While the broker runs, a lease counts in boot time. Over a restart it counts by the
 * wall clock, and never for longer than was left. */
#include "broker/core/checkpoints/keep.h"

#include "schema/room.h"

#include <stdio.h>

#define LEASE_MAX_MS ((int64_t)365 * 24 * 3600 * 1000)

static const struct answer ok = {MUSTER_OK, "", 0};

bool pins_hold(const struct job *job, uint64_t checkpoint)
{
    for (size_t i = 0; i < job->keep.pins_count; i++)
        if (job->keep.pins[i].checkpoint == checkpoint)
            return true;
    return false;
}

const char *pins_told(struct core *core, const struct job *job, uint64_t checkpoint)
{
    const struct pin *found = NULL;

    for (size_t i = 0; i < job->keep.pins_count; i++) {
        const struct pin *pin = &job->keep.pins[i];
        if (pin->checkpoint == checkpoint && (found == NULL || pin->until_boot_ms == 0))
            found = pin;
    }
    if (found == NULL)
        return NULL;
    if (found->until_boot_ms > 0)
        return out_printf(core, "%s has pinned it, for %lld s more", found->id,
                          (long long)(found->until_boot_ms - core->now + 999) / 1000);
    return out_printf(core, "%s has pinned it; `muster unpin %llu --job %s --id %s` lets it go",
                      found->id, (unsigned long long)checkpoint, job->name, found->id);
}

static void pins_persist(struct core *core, const struct job *job, const struct pin *pin, bool gone)
{
    struct action *action = action_add(core, ACTION_PERSIST);

    action->record.kind = gone ? RECORD_UNPIN : RECORD_PIN;
    action->record.u.pin = (struct record_pin){.job = out_text(core, job->name),
                                               .checkpoint = pin->checkpoint,
                                               .id = out_text(core, pin->id),
                                               .until_unix_ms = pin->until_unix_ms};
}

/* The checkpoint's own row says it too, for lists. */
static void pins_show(struct core *core, struct job *job, uint64_t number)
{
    struct checkpoint *checkpoint = registry_find(job, number);

    if (checkpoint == NULL || checkpoint->row.pinned == pins_hold(job, number))
        return;
    checkpoint->row.pinned = !checkpoint->row.pinned;
    persist_checkpoint(core, &checkpoint->row);
}

static void pins_drop(struct core *core, struct job *job, size_t index)
{
    struct pin pin = job->keep.pins[index];

    job->keep.pins[index] = job->keep.pins[--job->keep.pins_count];
    job->keep.changed = true;
    pins_persist(core, job, &pin, true);
    pins_show(core, job, pin.checkpoint);
}

void pins_forget(struct core *core, struct job *job, uint64_t checkpoint)
{
    for (size_t i = job->keep.pins_count; i-- > 0;)
        if (job->keep.pins[i].checkpoint == checkpoint)
            pins_drop(core, job, i);
}

static struct pin *pin_add(struct job *job)
{
    struct keep_state *keep = &job->keep;

    keep->pins =
        room_for_one(keep->pins, keep->pins_count, &keep->pins_capacity, 8, sizeof *keep->pins);
    MUST(keep->pins != NULL);
    return &keep->pins[keep->pins_count++];
}

static struct pin *pin_find(struct job *job, uint64_t checkpoint, const char *id)
{
    for (size_t i = 0; i < job->keep.pins_count; i++)
        if (job->keep.pins[i].checkpoint == checkpoint && strcmp(job->keep.pins[i].id, id) == 0)
            return &job->keep.pins[i];
    return NULL;
}

struct answer pins_take(struct core *core, struct job *job, const struct wire_pin *m)
{
    const struct checkpoint *checkpoint =
        m->checkpoint == 0 ? registry_newest(job) : registry_find(job, m->checkpoint);

    if (m->id[0] == '\0' || m->lease_ms < 0)
        return (struct answer){MUSTER_E_ARGUMENT,
                               "a pin needs an id, and a lease that is not negative", 0};
    if (checkpoint == NULL)
        return (struct answer){MUSTER_E_NOT_FOUND,
                               out_printf(core,
                                          "job %s has no committed checkpoint %llu to "
                                          "pin: `muster checkpoints --job %s` lists them",
                                          job->name, (unsigned long long)m->checkpoint, job->name),
                               0};
    uint64_t number = checkpoint->row.round;
    struct pin *pin = pin_find(job, number, m->id);
    if (pin == NULL && job->keep.pins_count == PINS_JOB_MAX)
        return (struct answer){MUSTER_E_BUSY,
                               "the job's checkpoints have as many pins as there may be", 0};
    if (pin == NULL)
        pin = pin_add(job);
    int64_t lease = m->lease_ms < LEASE_MAX_MS ? m->lease_ms : LEASE_MAX_MS;
    *pin = (struct pin){.checkpoint = number,
                        .until_unix_ms = lease > 0 ? core->now_unix + lease : 0,
                        .until_boot_ms = lease > 0 ? core->now + lease : 0};
    snprintf(pin->id, sizeof pin->id, "%s", m->id);
    pins_persist(core, job, pin, false);
    pins_show(core, job, number);
    if (lease > 0)
        job_timer(job, pin->until_boot_ms);
    return (struct answer){MUSTER_OK, "", number};
}

struct answer pins_unpin(struct core *core, struct job *job, const struct wire_unpin *m)
{
    for (size_t i = job->keep.pins_count; i-- > 0;)
        if ((m->checkpoint == 0 || job->keep.pins[i].checkpoint == m->checkpoint) &&
            strcmp(job->keep.pins[i].id, m->id) == 0)
            pins_drop(core, job, i);
    return ok;
}

void pins_tick(struct core *core, struct job *job)
{
    for (size_t i = job->keep.pins_count; i-- > 0;) {
        int64_t until = job->keep.pins[i].until_boot_ms;
        if (until == 0)
            continue;
        if (core->now < until) {
            job_timer(job, until);
            continue;
        }
        pins_drop(core, job, i);
    }
}

void pins_load(struct core *core, const struct record_pin *row)
{
    struct job *job = job_find(core, row->job);

    if (job == NULL || job->keep.pins_count == PINS_JOB_MAX)
        return;
    struct pin *pin = pin_add(job);
    *pin = (struct pin){.checkpoint = row->checkpoint,
                        .until_unix_ms = row->until_unix_ms,
                        .until_boot_ms = row->until_unix_ms > 0 ? BOOT_UNKNOWN : 0};
    snprintf(pin->id, sizeof pin->id, "%s", row->id);
}

void pins_start(struct core *core, struct job *job)
{
    for (size_t i = 0; i < job->keep.pins_count; i++) {
        struct pin *pin = &job->keep.pins[i];
        if (pin->until_boot_ms != BOOT_UNKNOWN)
            continue;
        int64_t left = pin->until_unix_ms - core->now_unix;
        /* time to prolong it, which nobody could while the broker was away */
        left = left < LOST_MS ? LOST_MS : left > LEASE_MAX_MS ? LEASE_MAX_MS : left;
        pin->until_boot_ms = core->now + left;
        job_timer(job, pin->until_boot_ms);
    }
}
