/* jobs - the tables of the jobs and of their processes: who is there, by name, rank and
 * incarnation. */
#include "broker/core/state/state.h"

#include "schema/keys/keys.h"
#include "schema/room.h"

struct job *job_find(const struct core *core, const char *name)
{
    for (struct job *job = core->jobs; job != NULL; job = job->next)
        if (strcmp(job->name, name) == 0)
            return job;
    return NULL;
}

struct job *job_create(struct core *core, const char *name)
{
    if (core->jobs_count == CORE_JOBS_MAX || asleep_holds(core, name))
        return NULL;
    struct job *job = calloc(1, sizeof *job);
    if (job == NULL)
        return NULL;
    strncpy(job->name, name, sizeof job->name - 1);
    job->gen.error_rank = -1;
    job->policy_step = -1;
    job->policy_pending = -1;
    job->created_unix_ms = job->state_unix_ms = core->now_unix;
    job->timer_boot_ms = INT64_MAX;
    if (core->started)
        lineage_begin(core, job);
    job->next = core->jobs;
    core->jobs = job;
    core->jobs_count++;
    return job;
}

bool job_runs(const struct job *job)
{
    return (job->gen.state != GENERATION_NONE && job->gen.state != GENERATION_ENDED) ||
           (job->hosts != NULL && job->hosts->count > 0);
}

static bool jobs_have_room(const struct core *core, const struct job *job, const char *key_jobs)
{
    size_t own = 0, all = 0;

    if (!key_is_bounded(key_jobs) || (job != NULL && job->gen.state != GENERATION_ENDED))
        return true;
    for (const struct job *other = core->jobs; other != NULL; other = other->next) {
        all += job_runs(other);
        own += job_runs(other) && key_covers(key_jobs, other->name);
    }
    return own < CORE_JOBS_MAX - all;
}

bool share_is_left(size_t own, size_t all, size_t most)
{
    return own < (all < most ? most - all : 0) ||
           own < (most + KEY_SHARE_LEAST - 1) / KEY_SHARE_LEAST;
}

const char *jobs_refusal(const struct core *core, const struct job *job, const char *key_jobs)
{
    if (!jobs_have_room(core, job, key_jobs))
        return TOO_MANY_OF_KEY;
    return job != NULL || asleep_has_room(core, key_jobs) ? NULL : TOO_MANY_KEPT_OF_KEY;
}

static size_t jobs_nodes_max(const struct core *core)
{
    return core->options.nodes_max > 0 ? core->options.nodes_max : CORE_NODES_MAX;
}

/* As jobs_have_room. Below half of the places no share can be full: nothing is counted. */
bool peers_have_room(const struct core *core, const char *key_jobs)
{
    const size_t most = jobs_nodes_max(core);
    size_t own = 0;

    if (!key_is_bounded(key_jobs) || core->peers_count < most / 2)
        return true;
    for (const struct job *job = core->jobs; job != NULL; job = job->next)
        own += key_covers(key_jobs, job->name) ? job->peers_count : 0;
    return own < most - core->peers_count;
}

void job_drop(struct core *core, struct job *job)
{
    struct job **at = &core->jobs;

    while (*at != job)
        at = &(*at)->next;
    *at = job->next;
    core->jobs_count--;
    job_free(core, job);
}

static struct peer **jobs_hash_slot(struct core *core, uint64_t incarnation)
{
    size_t size = sizeof core->hash / sizeof core->hash[0];

    return &core->hash[(incarnation ^ (incarnation >> 29)) % size];
}

struct peer *peer_find(const struct core *core, uint64_t incarnation)
{
    struct peer *peer = *jobs_hash_slot((struct core *)core, incarnation);

    while (peer != NULL && peer->incarnation != incarnation)
        peer = peer->next_hash;
    return peer;
}

struct peer *peer_create(struct core *core, struct job *job, uint64_t incarnation)
{
    if (core->peers_count >= jobs_nodes_max(core))
        return NULL;
    struct peer **peers =
        room_for_one(job->peers, job->peers_count, &job->peers_capacity, 16, sizeof(struct peer *));
    if (peers == NULL)
        return NULL;
    job->peers = peers;
    struct peer *peer = calloc(1, sizeof *peer);
    if (peer == NULL)
        return NULL;
    struct peer **slot = jobs_hash_slot(core, incarnation);
    peer->job = job;
    peer->incarnation = incarnation;
    peer->next_hash = *slot;
    *slot = peer;
    job->peers[job->peers_count++] = peer;
    core->peers_count++;
    return peer;
}

static void peer_free(struct core *core, struct peer *peer)
{
    struct peer **slot = jobs_hash_slot(core, peer->incarnation);

    while (*slot != peer)
        slot = &(*slot)->next_hash;
    *slot = peer->next_hash;
    free(peer);
    core->peers_count--;
}

void peers_forget(struct core *core, struct job *job)
{
    size_t kept = 0;

    for (size_t i = 0; i < job->peers_count; i++) {
        if (job->peers[i]->kept)
            job->peers[kept++] = job->peers[i];
        else {
            if (job->peers[i]->state == NODE_LEFT)
                departed_add(&core->departed, job->peers[i]->incarnation);
            peer_free(core, job->peers[i]);
        }
    }
    job->peers_count = kept;
    for (size_t r = 0; r < ROUNDS_ACTIVE_MAX; r++)
        for (size_t i = 0; job->rounds[r].used && i < job->rounds[r].count; i++)
            job->rounds[r].parts[i].peer = NULL;
    for (uint64_t rank = 0; job->trainers != NULL && rank < job->gen.world_size; rank++)
        job->trainers[rank] = NULL;
}

bool peer_is_live(const struct peer *peer)
{
    return peer->state == NODE_JOINED || peer->state == NODE_RESTORED;
}

struct peer *peer_of_rank(const struct job *job, int64_t rank)
{
    return rank >= 0 && (uint64_t)rank < job->gen.world_size ? job->trainers[rank] : NULL;
}

bool peer_has_finished(const struct peer *peer)
{
    return peer->state == NODE_LEFT && peer->leave_why == LEAVE_FINISHED;
}

bool step_ok(int64_t step)
{
    return step >= 0 && step < STEP_MAX;
}

void job_timer(struct job *job, int64_t at_boot_ms)
{
    if (at_boot_ms < job->timer_boot_ms)
        job->timer_boot_ms = at_boot_ms;
}

void core_fill_down(const struct core *core, const char *name, struct wire_down *ret_down)
{
    const struct job *job = name[0] ? job_find(core, name) : NULL;

    *ret_down = (struct wire_down){
        .start_id = core->options.start_id,
        .broker_epoch = core->epoch,
        .job = name,
        .generation = job ? job->gen.generation : 0,
        .last_seq = job ? job->seq : 0,
    };
}
