/* import - checkpoints that were found on disk become rows again. When a database was lost, the
 * manifests are what is left of it. A tool sends one after another, each in parts. Only a job that
 * is not running takes them. A manifest whose number belongs to another round here is refused: a
 * job that went on without its past has rounds of its own. Rows that are here stay as they are,
 * with one exception. If a round was aborted, because this database was restored or the import was
 * cut short, it gets the row of one that was found on disk.
 *
 * A checkpoint may have 131,072 files, and other jobs are not to wait for them. So they are read
 * part by part, and beyond IMPORT_SLICE files they become rows pass by pass. Until the last of them
 * is written the checkpoint is a failed one that nobody resumes from, and its round says so. The
 * tool is answered after that. */
#include "broker/core/checkpoints/checkpoints.h"

#include "broker/core/state/orders.h"
#include "schema/manifest/manifest_read.h"
#include "schema/manifest/metrics.h"
#include "schema/paths.h"
#include "schema/room.h"

#include <stdio.h>

/* --- parts ------------------------------------------------------------------------------------ */

#define IMPORT_SLICE 1024 /* files of one pass: some 10 ms */

void import_free(struct core *core)
{
    manifest_reader_destroy(&core->import.reader);
    manifest_destroy(&core->import.manifest);
    memset(&core->import, 0, sizeof core->import);
}

static struct answer import_refuse(unsigned code, const char *text)
{
    return (struct answer){code, text, 0};
}

/* For who says its last part again. */
static void import_keep_answer(struct import *import, const struct answer *answer)
{
    import->code = answer->code;
    import->done = answer->value;
    snprintf(import->text, sizeof import->text, "%s", answer->text);
}

/* Of the same checkpoint for the same job: nobody's order gets a part from who may not give it. */
static bool import_is_same(const struct import *import, const struct wire_msg *order)
{
    return strcmp(import->path, order->u.import.path) == 0 &&
           order->u.import.total == import->total &&
           strcmp(import->job, order->up.job != NULL ? order->up.job : "") == 0;
}

/* True: the message has the next part, and it is taken. */
static bool import_take_part(struct core *core, const struct input *in)
{
    const struct wire_import *m = &in->message->u.import;
    struct import *import = &core->import;

    if (m->offset == 0) {
        import_free(core);
        snprintf(import->path, sizeof import->path, "%s", m->path);
        snprintf(import->job, sizeof import->job, "%s",
                 in->message->up.job != NULL ? in->message->up.job : "");
        snprintf(import->by, sizeof import->by, "%s", in->by != NULL ? in->by : "");
        import->reader = manifest_reader_create();
        import->total = m->total;
    }
    if (import->reader == NULL || !import_is_same(import, in->message) ||
        m->offset != import->have || m->bytes.size > import->total - import->have)
        return false;
    manifest_reader_feed(import->reader, (const char *)m->bytes.data, m->bytes.size);
    import->have += m->bytes.size;
    return true;
}

/* --- rows ------------------------------------------------------------------------------------- */

static enum wire_cause import_cause_of(const char *name)
{
    for (unsigned cause = 1; cause < CAUSE_COUNT; cause++)
        if (strcmp(wire_cause_name(cause), name) == 0)
            return (enum wire_cause)cause;
    return CAUSE_OPERATOR;
}

static struct record *import_persist(struct core *core, enum record_kind kind)
{
    struct action *action = action_add(core, ACTION_PERSIST);

    action->record.kind = kind;
    return &action->record;
}

/* The place where it was written, if its writer died before it could give the checkpoint its final
 * name. The launch that resumes from it then gives the name. NULL: it has one, in a directory of
 * any name. */
static const char *import_unnamed(const struct manifest *m, const char *path)
{
    const char *under_way = paths_under_way(path);
    char name[48];

    snprintf(name, sizeof name, "/%llu-%llu", (unsigned long long)m->generation,
             (unsigned long long)m->round);
    return under_way != NULL && strcmp(strrchr(path, '/'), name) == 0 ? under_way : NULL;
}

/* The directory that the checkpoint's is in. */
static void import_parent_of(const struct manifest *m, const char *path, char *ret_dir, size_t size)
{
    const char *slash =
        import_unnamed(m, path) != NULL ? import_unnamed(m, path) : strrchr(path, '/');

    snprintf(ret_dir, size, "%.*s", slash != NULL ? (int)(slash - path) : 0, path);
}

static void import_tell(struct core *core, struct job *job, const struct manifest *m)
{
    char dir[PATH_BYTES_MAX + 1];

    import_parent_of(m, core->import.path, dir, sizeof dir);
    order_import(core, job, core->import.by, dir);
}

static void import_add_generation(struct core *core, struct job *job, const struct manifest *m,
                                  const char *path)
{
    struct record_generation row = {.job = out_text(core, job->name),
                                    .generation = m->generation,
                                    .state = GENERATION_ENDED,
                                    .world_size = m->world_size,
                                    .layout = m->layout,
                                    .resume_step = m->resumed_known ? m->resumed_step : 0,
                                    .end_text = FOUND_ON_DISK,
                                    .error_rank = -1,
                                    .error_text = ""};
    char dir[PATH_BYTES_MAX + 1];

    import_parent_of(m, path, dir, sizeof dir);
    row.checkpoint_dir = out_text(core, dir);
    if (m->generation == job->gen.generation)
        return; /* its row is here, and knows more */
    if (m->generation < job->gen.generation || job->gen.state == GENERATION_ENDING) {
        /* overwrites no launch that ran here, nor the one whose rank 0 imports */
        import_persist(core, RECORD_GENERATION)->u.generation = row;
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

static void import_add_round(struct core *core, const struct job *job, const struct manifest *m,
                             bool whole)
{
    import_persist(core, RECORD_ROUND)->u.round =
        (struct record_round){.job = out_text(core, job->name),
                              .round = m->round,
                              .generation = m->generation,
                              .attempt = 1,
                              .cause = import_cause_of(m->cause),
                              .state = whole ? ROUND_COMMITTED : ROUND_ABORTED,
                              .step = m->step,
                              .culprit_rank = -1,
                              .reason = whole ? FOUND_ON_DISK : ROUND_FOUND_IN_PART,
                              .opened_boot_ms = core->now_boot,
                              .opened_unix_ms = m->created_unix_ms,
                              .decided_unix_ms = m->created_unix_ms,
                              .captured_unix_ms = m->created_unix_ms,
                              .ended_unix_ms = m->created_unix_ms,
                              .margin_ms = -1,
                              .plan = ""};
}

static uint64_t import_bytes_of(const struct manifest_shard *shard)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < shard->file_count; i++)
        bytes += shard->files[i].bytes;
    return bytes;
}

static void import_add_shard(struct core *core, const char *job, const struct manifest *m,
                             const struct manifest_shard *shard)
{
    import_persist(core, RECORD_SHARD)->u.shard =
        (struct record_shard){.job = job,
                              .round = m->round,
                              .rank = shard->rank,
                              .incarnation = shard->incarnation,
                              .files = shard->file_count,
                              .bytes = import_bytes_of(shard),
                              .saved_unix_ms = m->created_unix_ms};
}

static void import_add_file(struct core *core, const char *job, const struct manifest *m,
                            uint64_t rank, const struct wire_file *file)
{
    import_persist(core, RECORD_FILE)->u.file =
        (struct record_file){.job = job,
                             .round = m->round,
                             .rank = rank,
                             .path = out_text(core, file->path),
                             .bytes = file->bytes,
                             .checksum = out_text(core, file->checksum)};
}

/* From (*shard, *file) on, which it advances. */
static void import_add_files(struct core *core, const struct manifest *m, size_t *shard,
                             size_t *file, size_t max)
{
    const char *name = out_text(core, m->job);

    for (size_t i = 0; i < max && *shard < m->shard_count;) {
        const struct manifest_shard *at = &m->shards[*shard];

        if (*file == 0)
            import_add_shard(core, name, m, at);
        for (; *file < at->file_count && i < max; i++)
            import_add_file(core, name, m, at->rank, &at->files[(*file)++]);
        if (*file == at->file_count) {
            (*shard)++;
            *file = 0;
            i += at->file_count == 0;
        }
    }
}

static size_t import_files_of(const struct manifest *m)
{
    size_t files = 0;

    for (size_t s = 0; s < m->shard_count; s++)
        files += m->shards[s].file_count;
    return files;
}

static struct record_checkpoint import_row_of(const struct job *job, const struct manifest *m,
                                              const char *path, enum wire_checkpoint_state state)
{
    const bool measured = m->metrics != NULL && metrics_ok(m->metrics);
    struct record_checkpoint row = {.job = job->name,
                                    .round = m->round,
                                    .generation = m->generation,
                                    .step = m->step,
                                    .state = state,
                                    .cause = import_cause_of(m->cause),
                                    .layout = m->layout,
                                    .world_size = m->world_size,
                                    .shards_required = m->shard_count,
                                    .path = import_unnamed(m, path) != NULL ? "" : path,
                                    .epoch = m->epoch,
                                    .step_in_epoch = m->step_in_epoch,
                                    .data_position = m->data_position,
                                    .metrics = measured ? m->metrics : "",
                                    .committed_unix_ms = m->created_unix_ms,
                                    .blocked_ms = -1,
                                    .total_ms = -1};

    for (size_t s = 0; s < m->shard_count; s++)
        row.bytes += import_bytes_of(&m->shards[s]);
    return row;
}

/* False: a later launch went back to an earlier step. */
static bool import_add_checkpoint(struct core *core, struct job *job, const struct manifest *m,
                                  const char *path)
{
    const struct record_checkpoint row = import_row_of(job, m, path, CHECKPOINT_COMMITTED);

    persist_checkpoint(core, &row);
    if (m->custom != NULL && m->custom[0] != '\0' && custom_ok(m->custom))
        import_persist(core, RECORD_CUSTOM)->u.custom =
            (struct record_custom){out_text(core, job->name), m->round, out_long(core, m->custom)};
    return registry_take(job, &row);
}

/* --- what was cut short ----------------------------------------------------------------------- */

static size_t import_part_at(const struct job *job, uint64_t round)
{
    size_t i = 0;

    while (i < job->partly_count && job->partly[i] != round)
        i++;
    return i;
}

static bool import_is_in_parts(const struct job *job, uint64_t round)
{
    return import_part_at(job, round) < job->partly_count;
}

static void import_part_add(struct job *job, uint64_t round)
{
    uint64_t *room;

    if (import_is_in_parts(job, round))
        return;
    room =
        room_for_one(job->partly, job->partly_count, &job->partly_capacity, 4, sizeof *job->partly);
    MUST(room != NULL);
    job->partly = room;
    job->partly[job->partly_count++] = round;
}

static void import_part_end(struct job *job, uint64_t round)
{
    if (import_is_in_parts(job, round))
        job->partly[import_part_at(job, round)] = job->partly[--job->partly_count];
}

/* --- a whole manifest ------------------------------------------------------------------------- */

static const struct answer running = {
    MUSTER_E_BUSY, "the job is running; end it, then import what was there before", 1};

/* No step was agreed on, or none was to be saved: its number stands for nothing that could be on
 * disk. A launch that was refused for what is to be imported may have had such a round. */
static bool import_left_nothing(const struct outcome *here)
{
    return here->state == ROUND_UNCHANGED || (here->state == ROUND_ABORTED && here->step < 0);
}

/* Its number is another round's here. One that was jumped over (by nodes that knew more than this
 * database) is nobody's. An aborted round may be the same one, and this database forgot its end: a
 * manifest is written only after a commit. */
static bool import_is_taken(struct job *job, const struct manifest *m)
{
    const struct outcome here = round_outcome(job, m->round);

    if (job->seq == 0 || m->round > job->round || import_is_in_parts(job, m->round))
        return false;
    if (here.cause == CAUSE_NONE) /* nobody knows it */
        return m->round <= round_known_above(job);
    if (import_left_nothing(&here))
        return false;
    return here.state != ROUND_ABORTED || here.generation != m->generation || here.step != m->step;
}

/* Such a launch took no step, so nothing depends on it. Its rank 0 may be the one that imports. */
static bool import_ends_unstarted(const struct job *job)
{
    return job->gen.state == GENERATION_ENDING && job->gen.started_unix_ms == 0;
}

/* MUSTER_OK and 1: it is to be added. */
static struct answer import_judge(struct core *core, struct job *job, const struct manifest *m)
{
    const struct checkpoint *known = registry_find(job, m->round);

    if (job->gen.generation > 0 && job->gen.state != GENERATION_ENDED &&
        !import_ends_unstarted(job))
        return running;
    if (known != NULL && known->row.generation == m->generation && known->row.step == m->step)
        return (struct answer){MUSTER_OK, "", 0};
    if (known != NULL || import_is_taken(job, m))
        return import_refuse(
            MUSTER_E_EXISTS,
            out_printf(core,
                       "this broker's job '%s' has another round %llu of its own here; to go on "
                       "without this checkpoint, move it away",
                       m->job, (unsigned long long)m->round));
    return (struct answer){MUSTER_OK, "", 1};
}

static void import_add_frame(struct core *core, struct job *job, const struct manifest *m,
                             const char *path, bool whole)
{
    if (m->round > job->round)
        job->round = m->round;
    if (job->gen.generation == 0)
        job->state_unix_ms = core->now_unix;
    persist_job(core, job);
    import_add_generation(core, job, m, path);
    registry_launched(core, job, m->generation, counts_began(m));
    import_add_round(core, job, m, whole);
    round_imported(job, &(struct outcome){.round = m->round,
                                          .state = whole ? ROUND_COMMITTED : ROUND_ABORTED,
                                          .cause = import_cause_of(m->cause),
                                          .step = m->step,
                                          .generation = m->generation,
                                          .attempt = 1,
                                          .final = true});
}

/* Of another manifest of that round, which was cut short or given up: it may have other ranks and
 * other files. */
static void import_forget_shards(struct core *core, const struct job *job, const struct manifest *m)
{
    import_persist(core, RECORD_SHARDS_GONE)->u.shards_gone =
        (struct record_shards_gone){out_text(core, job->name), m->round};
}

/* Takes *manifest if its files are to come later; then it returns false. */
static bool import_add(struct core *core, struct manifest **manifest, const char *key_jobs,
                       struct answer *ret_answer)
{
    const struct manifest *m = *manifest;
    const char *path = core->import.path;
    struct job *job = job_find(core, m->job);
    size_t shard = 0;
    size_t file = 0;

    if (job == NULL && !asleep_holds(core, m->job) && !asleep_has_room(core, key_jobs)) {
        *ret_answer = import_refuse(MUSTER_E_BUSY, TOO_MANY_KEPT_OF_KEY);
        return true;
    }
    if (job == NULL && wire_job_name_ok(m->job))
        job = job_create(core, m->job);
    if (job == NULL) {
        *ret_answer =
            asleep_holds(core, m->job)
                ? import_refuse(
                      MUSTER_E_ARGUMENT,
                      out_printf(core, "the manifest is of job '%s'; import it as that", m->job))
                : import_refuse(MUSTER_E_BUSY, TOO_MANY_JOBS);
        return true;
    }
    *ret_answer = import_judge(core, job, m);
    if (ret_answer->code != MUSTER_OK && !job_has_row(job))
        job_drop(core, job);
    if (ret_answer->code != MUSTER_OK || ret_answer->value == 0)
        return true;
    if (m->round <= job->round)
        import_forget_shards(core, job, m);
    if (import_files_of(m) > IMPORT_SLICE) {
        const struct record_checkpoint row = import_row_of(job, m, path, CHECKPOINT_FAILED);
        import_add_frame(core, job, m, path, false);
        persist_checkpoint(core, &row);
        import_part_add(job, m->round);
        core->import.manifest = *manifest;
        *manifest = NULL;
        return false;
    }
    import_add_frame(core, job, m, path, true);
    import_part_end(job, m->round);
    ret_answer->value = import_add_checkpoint(core, job, m, path);
    import_tell(core, job, m);
    import_add_files(core, m, &shard, &file, IMPORT_SLICE + m->shard_count);
    return true;
}

/* --- a large one ------------------------------------------------------------------------------ */

bool import_is_due(const struct core *core)
{
    return core->import.manifest != NULL;
}

void import_load_round(struct job *job, const struct record_round *row)
{
    if (row->state == ROUND_ABORTED && strcmp(row->reason, ROUND_FOUND_IN_PART) == 0)
        import_part_add(job, row->round);
}

/* All its files are rows: now it counts. */
static struct answer import_complete(struct core *core, const struct manifest *m)
{
    struct job *job = job_find(core, m->job);
    struct answer answer;

    if (job == NULL)
        return running;
    answer = import_judge(core, job, m);
    if (answer.code != MUSTER_OK || answer.value == 0)
        return answer;
    import_add_frame(core, job, m, core->import.path, true);
    answer.value = import_add_checkpoint(core, job, m, core->import.path);
    import_tell(core, job, m);
    import_part_end(job, m->round);
    return answer;
}

void import_tick(struct core *core)
{
    struct import *import = &core->import;
    const struct manifest *m = import->manifest;

    if (m == NULL)
        return;
    if (import->shard < m->shard_count) {
        import_add_files(core, m, &import->shard, &import->file, IMPORT_SLICE);
        return;
    }
    struct answer answer = import_complete(core, m);
    send_ack(core, import->route, m->job, import->request, answer.code, answer.text, answer.value);
    import_keep_answer(import, &answer);
    import->shard = import->file = 0;
    manifest_destroy(&import->manifest);
}

/* --- what a tool says ------------------------------------------------------------------------- */

static bool import_is_repeat(const struct import *import, const struct wire_msg *order)
{
    const struct wire_import *m = &order->u.import;

    return import_is_same(import, order) && m->offset < import->have &&
           (m->offset > 0 || import->manifest != NULL);
}

/* The sender was allowed to order what the order names: see authority.h. */
static bool import_is_of_another(const char *job, const struct manifest *manifest)
{
    return job[0] != '\0' && strcmp(job, manifest->job) != 0;
}

/* A manifest that is taken here may be written again, with this broker's signature. */
static bool import_is_signed(struct core *core, const struct manifest *manifest,
                             struct answer *ret_answer)
{
    struct muster_error err;
    enum muster_status status =
        core->signer[0] != '\0' ? manifest_check_signer(manifest, core->signer, &err) : MUSTER_OK;

    if (status == MUSTER_E_SIGNATURE)
        *ret_answer = import_refuse(
            status, "this broker signs manifests, and takes none that it did not sign; if you "
                    "trust this one, import it while musterd runs without --sign");
    else if (status != MUSTER_OK)
        *ret_answer = import_refuse(status, out_text(core, err.text));
    return status == MUSTER_OK;
}

/* The last part is there. */
static bool import_take_whole(struct core *core, const struct input *in, struct answer *ret_answer)
{
    struct import *import = &core->import;
    struct manifest *manifest = NULL;
    struct muster_error err;
    bool answered;

    if (manifest_reader_end(&import->reader, &manifest, &err) != MUSTER_OK) {
        *ret_answer =
            import_refuse(err.status == MUSTER_E_NOMEM ? MUSTER_E_NOMEM : MUSTER_E_CORRUPT,
                          out_text(core, err.text));
        import_keep_answer(import, ret_answer);
        return true;
    }
    import->route = in->route;
    import->request = in->message->up.request;
    if (import_is_of_another(in->message->up.job, manifest)) {
        *ret_answer = import_refuse(
            MUSTER_E_ARGUMENT,
            out_printf(core, "the manifest is of job '%s'; import it as that", manifest->job));
        answered = true;
    } else if (!import_is_signed(core, manifest, ret_answer)) {
        answered = true;
    } else {
        answered = import_add(core, &manifest, in->key_jobs, ret_answer);
    }
    if (answered)
        import_keep_answer(import,
                           ret_answer); /* path and counts stay: the last part may be repeated */
    manifest_destroy(&manifest);
    return answered;
}

bool import_take(struct core *core, const struct input *in, struct answer *ret_answer)
{
    const struct wire_import *m = &in->message->u.import;
    struct import *import = &core->import;

    *ret_answer = (struct answer){MUSTER_OK, "", 0};
    if (m->path[0] != '/' || m->total == 0 || m->bytes.size == 0) {
        *ret_answer =
            import_refuse(MUSTER_E_ARGUMENT, "an import needs an absolute path and a manifest");
    } else if (import_is_repeat(import, in->message)) {
        *ret_answer = (struct answer){import->code, out_text(core, import->text), import->done};
        if (import->manifest == NULL || m->offset + m->bytes.size < m->total)
            return true;
        import->route = in->route;
        import->request = in->message->up.request;
        return false;
    } else if (import->manifest != NULL) {
        *ret_answer =
            import_refuse(MUSTER_E_BUSY, "the files of another checkpoint are being imported; "
                                         "repeat this one in some seconds");
    } else if (!import_take_part(core, in)) {
        *ret_answer =
            m->offset == 0 && import->reader == NULL
                ? import_refuse(MUSTER_E_NOMEM, "no memory for a manifest of that size; repeat it")
                : import_refuse(MUSTER_E_BUSY, "a part of the manifest is missing, or "
                                               "another import came between; repeat it");
    } else if (import->have == import->total) {
        return import_take_whole(core, in, ret_answer);
    }
    return true;
}
