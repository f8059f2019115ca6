/* asleep - jobs that have ended leave memory, and the rows of some go for good.
 * Owns: who goes to sleep, and who is forgotten first. The list of those who sleep is
 * state/sleepers.c. What always holds: a job is in memory or asleep, never both. It goes to sleep
 * at a tick, when all its rows are in the batch that is written next. It wakes when
 * the driver hands its rows to the core (core_lacks). */
#include "broker/core/members/members.h"
#include "broker/core/state/sleepers.h"
#include "schema/keys/keys.h"

#include <stdio.h>

#define FORGET_TICK_MAX 256 /* jobs that one tick forgets */

/* --- going to sleep --------------------------------------------------------------------------- */

/* No process of it lives, not even a ps or an evaluator. */
static bool asleep_is_over(const struct core *core, const struct job *job)
{
    if (job_runs(job))
        return false;
    for (size_t i = 0; i < ROUNDS_ACTIVE_MAX; i++)
        if (job->rounds[i].used)
            return false;
    for (size_t i = 0; i < job->peers_count; i++)
        if (peer_is_live(job->peers[i]))
            return false;
    return !import_is_due(core);
}

/* ... and no lease of it is to fall, which its rows show. */
static bool asleep_is_idle(const struct core *core, const struct job *job)
{
    for (size_t i = 0; i < job->keep.pins_count; i++)
        if (job->keep.pins[i].until_unix_ms > 0)
            return false;
    return asleep_is_over(core, job);
}

/* If some are to be forgotten, all are put to sleep, so that the choice is among all. */
static size_t asleep_held_max(const struct core *core, size_t idle)
{
    size_t asleep = core->asleep != NULL ? core->asleep->count : 0;

    if (core->options.ended_held < 0 ||
        (core->options.keep_jobs > 0 && idle + asleep > core->options.keep_jobs))
        return 0;
    return core->options.ended_held > 0 ? (size_t)core->options.ended_held : CORE_ENDED_MAX;
}

static bool asleep_is_pinned(const struct job *job)
{
    for (size_t i = 0; i < job->keep.pins_count; i++)
        if (job->keep.pins[i].until_unix_ms == 0)
            return true;
    return false;
}

static void asleep_sleep_now(struct core *core, struct job *job)
{
    for (size_t i = 0; i < job->peers_count; i++)
        if (job->peers[i]->progress_dirty)
            persist_progress(core, job->peers[i]);
    if (job_has_row(job))
        asleep_add(core, &(struct record_job_asleep){.job = job->name,
                                                     .since_unix_ms = job->state_unix_ms,
                                                     .saved = job->checkpoints_count > 0,
                                                     .pinned = asleep_is_pinned(job)});
    job_drop(core, job);
}

static bool asleep_is_old(const struct core *core, int64_t since_unix_ms)
{
    return core->options.keep_jobs_days > 0 &&
           core->now_unix - since_unix_ms > core->options.keep_jobs_days * DAY_MS;
}

static struct job *asleep_oldest_idle(const struct core *core, size_t *ret_count)
{
    struct job *oldest = NULL;

    *ret_count = 0;
    for (struct job *job = core->jobs; job != NULL; job = job->next) {
        if (!asleep_is_idle(core, job))
            continue;
        ++*ret_count;
        if (oldest == NULL || job->state_unix_ms < oldest->state_unix_ms)
            oldest = job;
    }
    return oldest;
}

static bool asleep_too_many(const struct core *core, size_t idle)
{
    return idle > asleep_held_max(core, idle) || core->peers_count > CORE_NODES_MAX / 4 * 3;
}

static void asleep_put_to_sleep(struct core *core)
{
    size_t idle;
    struct job *job = asleep_oldest_idle(core, &idle);

    while (job != NULL &&
           (asleep_too_many(core, idle) || asleep_is_old(core, job->state_unix_ms))) {
        asleep_sleep_now(core, job);
        job = asleep_oldest_idle(core, &idle);
    }
}

/* --- forgetting ------------------------------------------------------------------------------- */

static int asleep_compare_worth(const void *a, const void *b)
{
    return asleep_compare(*(const struct asleep_job *const *)a,
                          *(const struct asleep_job *const *)b);
}

static size_t asleep_beyond(const struct core *core)
{
    size_t keep = core->options.keep_jobs;

    return keep > 0 && core->asleep->count > keep ? core->asleep->count - keep : 0;
}

static void asleep_forget_some(struct core *core, size_t too_many_by)
{
    struct asleep_job **all = calloc(core->asleep->count, sizeof *all);
    size_t count = 0, forgotten = 0;

    MUST(all != NULL);
    for (size_t i = 0; i < SLEEPERS_SLOTS; i++)
        for (struct asleep_job *job = core->asleep->jobs[i]; job != NULL; job = job->next)
            if (!job->pinned)
                all[count++] = job;
    qsort(all, count, sizeof *all, asleep_compare_worth);
    for (size_t i = 0; i < count && forgotten < FORGET_TICK_MAX; i++) {
        if (forgotten >= too_many_by && !asleep_is_old(core, all[i]->since_unix_ms))
            continue;
        asleep_forget(core, all[i]->name, "");
        forgotten++;
    }
    free(all);
}

void asleep_tick(struct core *core)
{
    asleep_put_to_sleep(core);
    if (core->asleep == NULL || core->asleep->count == 0)
        return;
    if (asleep_beyond(core) == 0 && core->now < core->asleep->look_boot_ms)
        return;
    core->asleep->look_boot_ms = core->now + 60000;
    asleep_forget_some(core, asleep_beyond(core));
}

static struct asleep_job asleep_worth_of(const struct job *job)
{
    struct asleep_job worth = {.since_unix_ms = job->state_unix_ms,
                               .saved = job->checkpoints_count > 0,
                               .pinned = asleep_is_pinned(job)};

    snprintf(worth.name, sizeof worth.name, "%s", job->name);
    return worth;
}

/* Of the key's jobs that have ended and are in memory, but for this one. Adds to *own and *all. */
static struct job *asleep_first_awake(const struct core *core, const struct job *begun,
                                      const char *key_jobs, size_t *own, size_t *all)
{
    struct asleep_job worth, first_worth = {.name = ""};
    struct job *first = NULL;

    for (struct job *job = core->jobs; job != NULL; job = job->next) {
        if (job == begun || !asleep_is_idle(core, job))
            continue;
        ++*all;
        if (!key_covers(key_jobs, job->name))
            continue;
        ++*own;
        worth = asleep_worth_of(job);
        if (!worth.pinned && (first == NULL || asleep_compare(&worth, &first_worth) < 0)) {
            first = job;
            first_worth = worth;
        }
    }
    return first;
}

/* Nobody is put to sleep here: its rows may be of this pass, and are not written yet. */
void asleep_make_room(struct core *core, const struct job *begun, const char *key_jobs)
{
    size_t own = 0, all = core->asleep != NULL ? core->asleep->count : 0;
    const struct asleep_job *asleep;
    struct asleep_own slept;
    struct asleep_job worth = {.name = ""};
    struct job *awake;

    if (core->options.keep_jobs == 0 || all + core->jobs_count < core->options.keep_jobs / 2)
        return; /* below half of the places no share can be used up */
    awake = asleep_first_awake(core, begun, key_jobs, &own, &all);
    asleep = asleep_first_of(core->asleep, key_jobs, &slept);
    if (share_is_left(own + slept.count, all, core->options.keep_jobs))
        return;
    if (awake != NULL)
        worth = asleep_worth_of(awake);
    if (awake != NULL && (asleep == NULL || asleep_compare(&worth, asleep) < 0)) {
        asleep_forget(core, awake->name, "");
        job_drop(core, awake);
    } else if (asleep != NULL) {
        asleep_forget(core, asleep->name, "");
    }
}

/* --- waking ----------------------------------------------------------------------------------- */

/* Any other sender has said HELLO, or is told to. */
static bool asleep_is_about_its_job(const struct wire_msg *message)
{
    return message->type == WIRE_HELLO ||
           (message->up.role == ROLE_TOOL && wire_is_request(message->type));
}

const char *core_lacks(const struct core *core, const struct wire_msg *message)
{
    if (!asleep_is_about_its_job(message) || core->jobs_count >= CORE_JOBS_MAX ||
        !asleep_holds(core, message->up.job))
        return NULL;
    return message->up.job;
}

/* --- the order -------------------------------------------------------------------------------- */

struct answer asleep_take(struct core *core, struct job *job, const char *by)
{
    size_t kept = job->checkpoints_count;
    const char *text;

    if (!asleep_is_over(core, job))
        return (struct answer){MUSTER_E_BUSY,
                               out_printf(core,
                                          "job '%s' still runs; end it first (`muster nodes --job "
                                          "%s` lists its processes)",
                                          job->name, job->name),
                               0};
    text = kept > 0
               ? out_printf(core,
                            "%zu checkpoints stay in %s; `muster import %s --job %s` brings them "
                            "back",
                            kept, job->gen.checkpoint_dir, job->gen.checkpoint_dir, job->name)
               : "";
    asleep_forget(core, job->name, by != NULL ? by : "");
    job_drop(core, job);
    return (struct answer){MUSTER_OK, text, kept};
}
