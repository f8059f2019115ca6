/* import - checkpoints that were found on disk become rows again: of a database that was lost, the manifests
 * are what is left. A tool sends one after another, each in parts.
 *
 * Only a job that is not running takes them, and only numbers that it has not given away itself: a job that
 * went on without its past has rounds of its own. What is here already is left as it is. */
#include "broker/core/state.h"

#include "schema/manifest.h"
#include "schema/metrics.h"

#include <stdio.h>

/* --- parts ------------------------------------------------------------------------------------ */

void import_free(struct core *core)
{
    free(core->import.bytes);
    memset(&core->import, 0, sizeof core->import);
}

static struct answer refuse(unsigned code, const char *text)
{
    return (struct answer){code, text, 0};
}

/* True: *m is the next part, and is taken. */
static bool take_part(struct core *core, const struct wire_import *m)
{
    struct import *import = &core->import;

    if (m->offset == 0) {
        import_free(core);
        snprintf(import->path, sizeof import->path, "%s", m->path);
        import->bytes = malloc(m->total + 1);
        import->total = m->total;
    }
    if (import->bytes == NULL || strcmp(import->path, m->path) != 0 || m->total != import->total ||
        m->offset != import->have || m->bytes.size > import->total - import->have)
        return false;
    memcpy(import->bytes + import->have, m->bytes.data, m->bytes.size);
    import->have += m->bytes.size;
    return true;
}

/* --- rows ------------------------------------------------------------------------------------- */

static enum wire_cause cause_of(const char *name)
{
    for (unsigned cause = 1; cause < CAUSE_COUNT; cause++)
        if (strcmp(wire_cause_name(cause), name) == 0)
            return (enum wire_cause)cause;
    return CAUSE_OPERATOR;
}

static struct record *persist(struct core *core, enum record_kind kind)
{
    struct action *action = action_add(core, ACTION_PERSIST);

    action->record.kind = kind;
    return &action->record;
}

/* The directory that the checkpoint's is in. */
static void parent_of(const char *path, char *ret_dir, size_t size)
{
    const char *slash = strrchr(path, '/');

    snprintf(ret_dir, size, "%.*s", slash != NULL ? (int)(slash - path) : 0, path);
}

static void add_generation(struct core *core, struct job *job, const struct manifest *m,
                           const char *path)
{
    struct record_generation row = {.job = out_text(core, job->name),
                                    .generation = m->generation,
                                    .state = GENERATION_ENDED,
                                    .world_size = m->world_size,
                                    .layout = m->layout,
                                    .resume_step = m->resumed_known ? m->resumed_step : 0,
                                    .end_text = "found on disk",
                                    .error_rank = -1,
                                    .error_text = ""};
    char dir[PATH_BYTES_MAX + 1];

    parent_of(path, dir, sizeof dir);
    row.checkpoint_dir = out_text(core, dir);
    if (m->generation == job->gen.generation)
        return;                                /* its row is here, and knows more */
    if (m->generation < job->gen.generation) { /* overwrites none that knows when it was opened */
        persist(core, RECORD_GENERATION)->u.generation = row;
        return;
    }
    free(job->trainers);
    job->trainers = calloc(m->world_size + 1, sizeof(struct peer *));
    MUST(job->trainers != NULL);
    free(job->gen.error_text);
    job->gen = (struct generation){.generation = m->generation,
                                   .state = GENERATION_ENDED,
                                   .world_size = m->world_size,
                                   .layout = m->layout,
                                   .resume_step = row.resume_step,
                                   .error_rank = -1};
    snprintf(job->gen.checkpoint_dir, sizeof job->gen.checkpoint_dir, "%s", dir);
    snprintf(job->gen.end_text, sizeof job->gen.end_text, "%s", row.end_text);
    if (m->round > job->round)
        job->round = m->round;
    persist_job(core, job);
    persist_generation(core, job);
}

static void add_round(struct core *core, const struct job *job, const struct manifest *m)
{
    persist(core, RECORD_ROUND)->u.round =
        (struct record_round){.job = out_text(core, job->name),
                              .round = m->round,
                              .generation = m->generation,
                              .attempt = 1,
                              .cause = cause_of(m->cause),
                              .state = ROUND_COMMITTED,
                              .step = m->step,
                              .culprit_rank = -1,
                              .reason = "found on disk",
                              .opened_boot_ms = core->now,
                              .opened_unix_ms = m->created_unix_ms,
                              .decided_unix_ms = m->created_unix_ms,
                              .captured_unix_ms = m->created_unix_ms,
                              .ended_unix_ms = m->created_unix_ms,
                              .margin_ms = -1,
                              .plan = ""};
}

static uint64_t bytes_of(const struct manifest_shard *shard)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < shard->file_count; i++)
        bytes += shard->files[i].bytes;
    return bytes;
}

static void add_shards(struct core *core, const struct job *job, const struct manifest *m)
{
    const char *name = out_text(core, job->name);

    for (size_t s = 0; s < m->shard_count; s++) {
        const struct manifest_shard *shard = &m->shards[s];
        persist(core, RECORD_SHARD)->u.shard =
            (struct record_shard){.job = name,
                                  .round = m->round,
                                  .rank = shard->rank,
                                  .incarnation = shard->incarnation,
                                  .files = shard->file_count,
                                  .bytes = bytes_of(shard),
                                  .saved_unix_ms = m->created_unix_ms};
        for (size_t i = 0; i < shard->file_count; i++)
            persist(core, RECORD_FILE)->u.file =
                (struct record_file){.job = name,
                                     .round = m->round,
                                     .rank = shard->rank,
                                     .path = out_text(core, shard->files[i].path),
                                     .bytes = shard->files[i].bytes,
                                     .checksum = out_text(core, shard->files[i].checksum)};
    }
}

/* A later launch that began before a checkpoint gave it up, for good; where it began is in its manifests, or
 * else it saved that step or an earlier one anew. */
static void supersede_older(struct core *core, struct job *job, const struct manifest *m)
{
    int64_t beyond = m->resumed_known ? m->resumed_step : m->step - 1;

    for (size_t i = job->checkpoints_count; i-- > 0;) {
        struct checkpoint *checkpoint = &job->checkpoints[i];

        if (checkpoint->row.generation >= m->generation || checkpoint->row.step <= beyond)
            continue;
        checkpoint->row.state = CHECKPOINT_SUPERSEDED;
        persist_checkpoint(core, &checkpoint->row);
        registry_drop(job, checkpoint->row.round);
    }
}

static bool is_superseded(const struct job *job, const struct manifest *m)
{
    for (size_t i = 0; i < job->checkpoints_count; i++)
        if (job->checkpoints[i].row.generation > m->generation &&
            job->checkpoints[i].row.step <= m->step)
            return true;
    return false;
}

/* False: it is superseded. */
static bool add_checkpoint(struct core *core, struct job *job, const struct manifest *m,
                           const char *path)
{
    const bool counts = !is_superseded(job, m);
    const bool measured = m->metrics != NULL && metrics_ok(m->metrics);
    struct record_checkpoint row = {.job = job->name,
                                    .round = m->round,
                                    .generation = m->generation,
                                    .step = m->step,
                                    .state = counts ? CHECKPOINT_COMMITTED : CHECKPOINT_SUPERSEDED,
                                    .cause = cause_of(m->cause),
                                    .layout = m->layout,
                                    .world_size = m->world_size,
                                    .shards_required = m->shard_count,
                                    .path = path,
                                    .epoch = m->epoch,
                                    .step_in_epoch = m->step_in_epoch,
                                    .data_position = m->data_position,
                                    .metrics = measured ? m->metrics : "",
                                    .committed_unix_ms = m->created_unix_ms,
                                    .blocked_ms = -1,
                                    .total_ms = -1};

    for (size_t s = 0; s < m->shard_count; s++)
        row.bytes += bytes_of(&m->shards[s]);
    persist_checkpoint(core, &row);
    if (m->custom != NULL && m->custom[0] != '\0' && custom_ok(m->custom))
        persist(core, RECORD_CUSTOM)->u.custom =
            (struct record_custom){out_text(core, job->name), m->round, out_long(core, m->custom)};
    add_shards(core, job, m);
    supersede_older(core, job, m);
    if (counts)
        registry_add(job, &row);
    return counts;
}

/* --- a whole manifest --------------------------------------------------------------------------- */

static struct answer add(struct core *core, const struct manifest *m, const char *path)
{
    struct job *job = job_find(core, m->job);

    if (job == NULL && wire_job_name_ok(m->job))
        job = job_create(core, m->job);
    if (job == NULL)
        return refuse(MUSTER_E_NOMEM, "the broker holds as many jobs as it can");
    if (job->gen.generation > 0 && job->gen.state != GENERATION_ENDED)
        return refuse(MUSTER_E_BUSY,
                      "the job is running; end it, then import what was there before");
    const struct checkpoint *known = registry_find(job, m->round);
    if (known != NULL && known->row.generation == m->generation && known->row.step == m->step) {
        supersede_older(core, job, m); /* those that were found after it */
        return (struct answer){MUSTER_OK, "", 0};
    }
    if (known != NULL || (job->seq > 0 && m->round <= job->round))
        return refuse(MUSTER_E_EXISTS,
                      out_printf(core,
                                 "job '%s' has a round %llu of its own here: this database is not "
                                 "one that lost it",
                                 m->job, (unsigned long long)m->round));
    if (m->round > job->round)
        job->round = m->round;
    if (job->gen.generation == 0)
        job->state_unix_ms = core->now_unix;
    persist_job(core, job);
    add_generation(core, job, m, path);
    add_round(core, job, m);
    return (struct answer){MUSTER_OK, "", add_checkpoint(core, job, m, path)};
}

struct answer import_take(struct core *core, const struct wire_import *m)
{
    struct import *import = &core->import;
    struct manifest *manifest = NULL;
    struct muster_error err;

    if (m->path[0] != '/' || m->total == 0 || m->bytes.size == 0)
        return refuse(MUSTER_E_ARGUMENT, "an import needs an absolute path and a manifest");
    if (m->offset < import->have && strcmp(import->path, m->path) == 0 &&
        m->total == import->total && m->offset > 0)
        return (struct answer){MUSTER_OK, "", import->done}; /* a repeat */
    if (!take_part(core, m))
        return m->offset == 0 && import->bytes == NULL
                   ? refuse(MUSTER_E_NOMEM, "no memory for a manifest of that size; repeat it")
                   : refuse(MUSTER_E_ARGUMENT, "a part of the manifest is missing, or another "
                                               "import came between; repeat it");
    if (import->have < import->total)
        return (struct answer){MUSTER_OK, "", 0};
    if (manifest_parse(import->bytes, import->total, &manifest, &err) != MUSTER_OK)
        return refuse(err.status == MUSTER_E_NOMEM ? MUSTER_E_NOMEM : MUSTER_E_CORRUPT,
                      out_text(core, err.text));
    struct answer answer = add(core, manifest, import->path);
    import->done = answer.value;
    manifest_destroy(&manifest);
    free(import->bytes); /* path and counts stay: the last part may be repeated */
    import->bytes = NULL;
    return answer;
}
