/* sleepers - see sleepers.h. A job is in memory or here, never both. */
#include "broker/core/state/sleepers.h"

#include "schema/keys/keys.h"

#include <stdio.h>

static struct asleep_job **asleep_slot(struct asleep *asleep, const char *name)
{
    uint32_t hash = 2166136261U;

    for (const char *at = name; *at != '\0'; at++)
        hash = (hash ^ (uint8_t)*at) * 16777619U;
    return &asleep->jobs[hash % SLEEPERS_SLOTS];
}

static struct asleep_job **asleep_find(const struct core *core, const char *name)
{
    struct asleep_job **at;

    if (core->asleep == NULL)
        return NULL;
    for (at = asleep_slot(core->asleep, name); *at != NULL; at = &(*at)->next)
        if (strcmp((*at)->name, name) == 0)
            return at;
    return NULL;
}

bool asleep_holds(const struct core *core, const char *name)
{
    return asleep_find(core, name) != NULL;
}

void asleep_add(struct core *core, const struct record_job_asleep *row)
{
    struct asleep_job **at, *job = calloc(1, sizeof *job);

    if (core->asleep == NULL)
        core->asleep = calloc(1, sizeof *core->asleep);
    MUST(core->asleep != NULL && job != NULL);
    snprintf(job->name, sizeof job->name, "%s", row->job);
    job->since_unix_ms = row->since_unix_ms;
    job->saved = row->saved;
    job->pinned = row->pinned;
    at = asleep_slot(core->asleep, job->name);
    job->next = *at;
    *at = job;
    core->asleep->count++;
}

void asleep_remove(struct core *core, const char *name)
{
    struct asleep_job **at = asleep_find(core, name);
    struct asleep_job *job;

    if (at == NULL)
        return;
    job = *at;
    *at = job->next;
    free(job);
    core->asleep->count--;
}

void asleep_forget(struct core *core, const char *name, const char *by)
{
    struct action *action = action_add(core, ACTION_PERSIST);

    action->record.kind = RECORD_FORGET;
    action->record.u.forget.job = out_text(core, name);
    action->record.u.forget.by = out_text(core, by);
    asleep_remove(core, name);
}

/* --- who is forgotten first ------------------------------------------------------------------- */

int asleep_compare(const struct asleep_job *a, const struct asleep_job *b)
{
    if (a->saved != b->saved)
        return a->saved ? 1 : -1;
    if (a->since_unix_ms != b->since_unix_ms)
        return a->since_unix_ms < b->since_unix_ms ? -1 : 1;
    return strcmp(a->name, b->name);
}

const struct asleep_job *asleep_first_of(const struct asleep *asleep, const char *key_jobs,
                                         struct asleep_own *ret_own)
{
    const struct asleep_job *first = NULL;

    *ret_own = (struct asleep_own){0};
    for (size_t i = 0; asleep != NULL && i < SLEEPERS_SLOTS; i++)
        for (const struct asleep_job *job = asleep->jobs[i]; job != NULL; job = job->next) {
            if (!key_covers(key_jobs, job->name))
                continue;
            ret_own->count++;
            ret_own->pinned += job->pinned;
            if (!job->pinned && (first == NULL || asleep_compare(job, first) < 0))
                first = job;
        }
    return first;
}

bool asleep_has_room(const struct core *core, const char *key_jobs)
{
    size_t all = core->asleep != NULL ? core->asleep->count : 0, keep = core->options.keep_jobs;
    struct asleep_own own;

    if (!key_is_bounded(key_jobs) || keep == 0 || all < keep / 2)
        return true; /* below half of the places no share can be used up */
    asleep_first_of(core->asleep, key_jobs, &own);
    return share_is_left(own.pinned, all, keep);
}

void asleep_free(struct core *core)
{
    for (size_t i = 0; core->asleep != NULL && i < SLEEPERS_SLOTS; i++)
        while (core->asleep->jobs[i] != NULL) {
            struct asleep_job *next = core->asleep->jobs[i]->next;
            free(core->asleep->jobs[i]);
            core->asleep->jobs[i] = next;
        }
    free(core->asleep);
    core->asleep = NULL;
}

bool job_has_row(const struct job *job)
{
    return job->gen.generation > 0 || job->seq > 0 || job->round > 0;
}
