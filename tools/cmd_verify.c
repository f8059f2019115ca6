/* cmd_verify - reads checkpoints again and compares every byte with what was saved: muster verify.
 */
#include "tools/progress.h"
#include "tools/render.h"
#include "tools/tool.h"
#include "tools/verbs.h"
#include "tools/written.h"

#include "client/manager/hold.h"
#include "client/manager/place.h"
#include "node/link_key.h"
#include "node/shard/shard.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#define HOLD_MS 60000 /* prolonged while it is read */
#define HOLD_FROM_BYTES ((int64_t)64 << 20)
#define LISTS_MAX 20

struct newest { /* of the greatest step; 0 = none */
    int64_t checkpoint, step;
};

struct verify {
    struct tool *tool;
    json_t *found;         /* of the checkpoint that is read */
    json_t *damages;       /* of all before it */
    json_t *written;       /* what the program wrote by itself, of all before it */
    int64_t written_bytes; /* those found of what it wrote of the one that is read; -1: none are */
    int64_t checkpoints, damaged;
    struct verify_counts {
        int64_t files, bytes;
        int64_t unsealed;  /* manifests of an older muster */
        int64_t is_signed; /* manifests, by whomever */
    } read;
    char signer[SIGNER_MAX + 1]; /* by whom they have to be; "": by nobody */
    struct newest newest_read;
    struct progress progress; /* in bytes */
};

static void verify_newest_take(struct newest *newest, const struct muster_checkpoint_row *row)
{
    if (newest->checkpoint == 0 || row->step > newest->step ||
        (row->step == newest->step && row->checkpoint > newest->checkpoint))
        *newest = (struct newest){.checkpoint = row->checkpoint, .step = row->step};
}

/* Most reasons begin with the path, or say that the path is damaged. The output says both before
 * the reason, so they are cut. */
static const char *verify_what_else(const char *what, const char *file)
{
    static const char damaged[] = "is damaged";
    size_t length = strlen(file);

    if (strncmp(what, file, length) != 0)
        return what;
    what += length;
    what += strspn(what, ": ");
    if (strncmp(what, damaged, strlen(damaged)) != 0)
        return what;
    what += strlen(damaged);
    return what + strspn(what, ":; ");
}

static void verify_say_damage(struct verify *v, const struct muster_checkpoint_row *checkpoint,
                              const char *file, const char *what)
{
    json_t *damage = json_object();

    json_object_set_new(damage, "checkpoint", json_integer(checkpoint->checkpoint));
    json_object_set_new(damage, "step", json_integer(checkpoint->step));
    json_object_set_new(damage, "file", json_string(file));
    json_object_set_new(damage, "what", json_string(what));
    json_array_append_new(v->found, damage);
}

static void verify_print_damage(struct verify *v, const json_t *damage)
{
    v->damaged++;
    if (!tool_json(v->tool))
        fprintf(v->tool->out,
                "damaged: %s (checkpoint %" JSON_INTEGER_FORMAT ", step %" JSON_INTEGER_FORMAT
                "): %s\n",
                json_string_value(json_object_get(damage, "file")),
                json_integer_value(json_object_get(damage, "checkpoint")),
                json_integer_value(json_object_get(damage, "step")),
                verify_what_else(json_string_value(json_object_get(damage, "what")),
                                 json_string_value(json_object_get(damage, "file"))));
}

/* Not what should be there: what was. */
static void verify_count_read(struct verify *v, const char *path, enum muster_status status)
{
    struct stat info;

    if ((status != MUSTER_OK && status != MUSTER_E_CORRUPT) || stat(path, &info) != 0)
        return;
    v->read.files++;
    v->read.bytes += info.st_size;
    progress_at(&v->progress, v->read.bytes);
}

static void verify_verify_file(struct verify *v, const struct muster_checkpoint_row *checkpoint,
                               const char *place, const struct muster_file_row *row)
{
    const struct wire_file file = {
        .path = row->path, .bytes = (uint64_t)row->bytes, .checksum = row->checksum};
    const struct manifest_shard shard = {
        .rank = (uint64_t)row->rank, .files = &file, .file_count = 1};
    struct muster_error err;
    char path[FS_PATH_MAX];

    enum muster_status status = shard_verify(place, &shard, &err);

    if (fs_path(path, NULL, "%s/%s", place, row->path) != MUSTER_OK)
        snprintf(path, sizeof path, "%.200s", row->path);
    verify_count_read(v, path, status);
    if (status != MUSTER_OK)
        verify_say_damage(v, checkpoint, path, err.text);
}

/* As the manifest counts. */
static int64_t verify_steps_done(const struct verify *v, const struct muster_checkpoint_row *row)
{
    return row->step - v->tool->step_offset;
}

/* NULL: they are the same. */
static const char *verify_number_that_differs(const struct manifest *m,
                                              const struct muster_checkpoint_row *row, int64_t step)
{
    if (m->epoch != row->epoch)
        return "epoch";
    if (m->step_in_epoch != row->step_in_epoch)
        return "step_in_epoch";
    if (m->data_position != row->data_position)
        return "data_position";
    if (m->total_run_calls != step)
        return "total_run_calls";
    if ((int64_t)m->world_size != row->world_size)
        return "world_size";
    return strcmp(wire_layout_name(m->layout), row->layout) != 0 ? "layout" : NULL;
}

/* Both are in order of rank and path. */
static const char *verify_file_that_differs(const struct manifest *m,
                                            const struct muster_file_row *rows, size_t count)
{
    size_t at = 0;

    for (size_t s = 0; s < m->shard_count; s++) {
        for (size_t i = 0; i < m->shards[s].file_count; i++, at++) {
            const struct wire_file *file = &m->shards[s].files[i];

            if (at == count || rows[at].rank != (int64_t)m->shards[s].rank ||
                strcmp(rows[at].path, file->path) != 0 || rows[at].bytes != (int64_t)file->bytes ||
                strcmp(rows[at].checksum, file->checksum) != 0)
                return file->path;
        }
    }
    return at < count ? rows[at].path : NULL;
}

/* A restore relies on what the manifest says, so that has to be what was saved. */
static void verify_compare(struct verify *v, const struct muster_checkpoint_row *checkpoint,
                           const char *path, const struct manifest *m,
                           const struct muster_file_row *files, size_t count)
{
    const char *number =
        verify_number_that_differs(m, checkpoint, verify_steps_done(v, checkpoint));
    const char *file = verify_file_that_differs(m, files, count);
    char what[FILE_PATH_MAX + 128];

    if (number == NULL && file == NULL)
        return;
    if (number != NULL)
        snprintf(what, sizeof what, "its %s is not the one that was saved", number);
    else
        snprintf(what, sizeof what,
                 "what it says of file %s (name, size or checksum) is not what was saved", file);
    verify_say_damage(v, checkpoint, path, what);
}

/* Of a checkpoint with its final name: a restore relies on it. */
static void verify_manifest(struct verify *v, const struct muster_checkpoint_row *checkpoint,
                            const char *place, const struct muster_file_row *files, size_t count)
{
    struct manifest *manifest = NULL;
    struct muster_error err;
    char path[FS_PATH_MAX];
    enum muster_status status = shard_manifest_read(place, &manifest, &err);

    if (fs_path(path, NULL, "%s/" MANIFEST_FILE_NAME, place) != MUSTER_OK)
        snprintf(path, sizeof path, "%.200s", place);
    if (status == MUSTER_E_RESTORE && !checkpoint->in_place)
        return; /* the next launch writes it */
    if (status != MUSTER_OK) {
        verify_say_damage(v, checkpoint, path, err.text);
        return;
    }
    v->read.unsealed += !manifest->sealed;
    v->read.is_signed += manifest->signer != NULL;
    if (v->signer[0] != '\0' && manifest_check_signer(manifest, v->signer, &err) != MUSTER_OK)
        verify_say_damage(v, checkpoint, path, err.text);
    if (strcmp(manifest->job, v->tool->job) != 0 ||
        (int64_t)manifest->round != checkpoint->checkpoint ||
        (int64_t)manifest->generation != checkpoint->generation ||
        manifest->step != verify_steps_done(v, checkpoint))
        verify_say_damage(v, checkpoint, path, "it is the manifest of another checkpoint");
    else
        verify_compare(v, checkpoint, path, manifest, files, count);
    manifest_destroy(&manifest);
}

/* A deletion and the next launch rely on this file. A person who copied a checkpoint by hand may
 * have left it out. */
static void verify_claim(struct verify *v, const struct muster_checkpoint_row *checkpoint,
                         const char *place)
{
    struct dir_claim claim;
    struct muster_error err;
    char path[FS_PATH_MAX];
    enum muster_status status = dir_claim_read(place, &claim, &err);

    if (status == MUSTER_E_NOT_FOUND)
        return;
    if (fs_path(path, NULL, "%s/ROUND", place) != MUSTER_OK)
        snprintf(path, sizeof path, "%.200s", place);
    if (status != MUSTER_OK)
        verify_say_damage(v, checkpoint, path, err.text);
    else if (strcmp(claim.job, v->tool->job) != 0 ||
             (int64_t)claim.round != checkpoint->checkpoint ||
             (int64_t)claim.generation != checkpoint->generation)
        verify_say_damage(v, checkpoint, path, "it is the ROUND file of another checkpoint");
}

/* A program's own checkpoint has no sums. Its size tells whether some of it is gone. */
static void verify_written(struct verify *v, const struct muster_checkpoint_row *checkpoint)
{
    struct written written;
    struct muster_error err;
    char what[128];

    v->written_bytes = -1;
    if (!written_find(checkpoint->custom, &written) || !written_is_local(&written))
        return;
    if (written_measure(&written, &v->written_bytes, &err) != MUSTER_OK) {
        verify_say_damage(v, checkpoint, written.path,
                          err.status == MUSTER_E_NOT_FOUND ? "it is not there" : err.text);
        return;
    }
    if (v->written_bytes >= written.bytes)
        return;
    snprintf(what, sizeof what, "it holds %" PRId64 " of the %" PRId64 " bytes that were written",
             v->written_bytes, written.bytes);
    verify_say_damage(v, checkpoint, written.path, what);
}

static void verify_add_written(struct verify *v, const struct muster_checkpoint_row *checkpoint)
{
    json_t *document = render_written(checkpoint->custom);

    if (json_is_null(document)) {
        json_decref(document);
        return;
    }
    json_object_set_new(document, "checkpoint", json_integer(checkpoint->checkpoint));
    json_object_set_new(document, "step", json_integer(checkpoint->step));
    json_object_set_new(document, "bytes_found", json_integer(v->written_bytes));
    json_array_append_new(v->written, document);
}

static enum muster_status verify_files(struct verify *v,
                                       const struct muster_checkpoint_row *checkpoint,
                                       struct muster_error *err)
{
    muster_rows_t *rows = NULL;
    char place[FS_PATH_MAX];
    bool is_there;
    enum muster_status status =
        muster_client_files(v->tool->client, v->tool->job, checkpoint->checkpoint, &rows, err);

    if (status != MUSTER_OK)
        return status;
    if (checkpoint->in_place ||
        !place_find(v->tool->job, NULL, checkpoint, verify_steps_done(v, checkpoint), place))
        snprintf(place, sizeof place, "%s", checkpoint->path);
    is_there = fs_exists(place);
    if (!is_there)
        verify_say_damage(v, checkpoint, place, "its directory is not there");
    for (size_t i = 0; is_there && i < muster_rows_count(rows); i++)
        verify_verify_file(v, checkpoint, place, &muster_rows_files(rows)[i]);
    if (is_there) {
        verify_manifest(v, checkpoint, place, muster_rows_files(rows), muster_rows_count(rows));
        verify_claim(v, checkpoint, place);
    }
    verify_written(v, checkpoint);
    muster_rows_destroy(&rows);
    return MUSTER_OK;
}

/* The job goes on meanwhile: a checkpoint that was deleted or superseded since the list was made is
 * not damaged, it is gone. *ret_row is owned; NULL: the checkpoint no longer counts. */
static enum muster_status verify_look(struct verify *v, int64_t number, muster_rows_t **ret_row,
                                      struct muster_error *err)
{
    enum muster_status status =
        muster_client_checkpoint(v->tool->client, v->tool->job, number, ret_row, err);

    if (status == MUSTER_OK &&
        (muster_rows_count(*ret_row) == 0 ||
         strcmp(muster_rows_checkpoints(*ret_row)[0].state, "committed") != 0))
        muster_rows_destroy(ret_row);
    return status;
}

static bool verify_same_place(const muster_rows_t *a, const muster_rows_t *b)
{
    return strcmp(muster_rows_checkpoints(a)->path, muster_rows_checkpoints(b)->path) == 0;
}

/* Puts into v->found what is wrong with it. A checkpoint that got its final name meanwhile is read
 * again, at that place. */
static enum muster_status verify_read(struct verify *v, int64_t number, bool *ret_counts,
                                      struct muster_error *err)
{
    const struct verify_counts before = v->read;
    muster_rows_t *row = NULL, *after = NULL;
    enum muster_status status = verify_look(v, number, &row, err);
    bool again = row != NULL;

    while (status == MUSTER_OK && again) {
        json_array_clear(v->found);
        v->read = before;
        status = verify_files(v, muster_rows_checkpoints(row), err);
        again = false;
        if (status == MUSTER_OK && json_array_size(v->found) > 0) {
            status = verify_look(v, number, &after, err);
            again = after != NULL && !verify_same_place(row, after);
            muster_rows_destroy(&row);
            row = after;
            after = NULL;
        }
    }
    *ret_counts = row != NULL;
    muster_rows_destroy(&row);
    return status;
}

/* A pin keeps the checkpoint from being deleted while it is read; a database alone can pin nothing.
 * Without a pin (there may be too many already) a second look at the record has to do. It also has
 * to do for a checkpoint that is read in a moment, because pin and unpin take longer. */
static enum muster_status verify_hold(const struct verify *v,
                                      const struct muster_checkpoint_row *checkpoint,
                                      struct hold **ret_hold, struct muster_error *err)
{
    const struct hold_wish wish = {.broker = v->tool->address,
                                   .job = v->tool->job,
                                   .who = "verify",
                                   .checkpoint = (uint64_t)checkpoint->checkpoint,
                                   .lease_ms = HOLD_MS,
                                   .timeout_ms = v->tool->timeout_ms};
    enum muster_status status =
        muster_client_is_database(v->tool->client) || checkpoint->bytes < HOLD_FROM_BYTES
            ? MUSTER_OK
            : hold_begin(&wish, ret_hold, err);

    return status == MUSTER_E_BROKER ? status : MUSTER_OK;
}

static enum muster_status verify_checkpoint(struct verify *v,
                                            const struct muster_checkpoint_row *checkpoint,
                                            struct muster_error *err)
{
    struct hold *held = NULL;
    bool counts = true;
    enum muster_status status = verify_hold(v, checkpoint, &held, err);

    if (status != MUSTER_OK)
        return status;
    v->found = json_array();
    status = verify_read(v, checkpoint->checkpoint, &counts, err);
    hold_end(&held);
    if (status == MUSTER_OK && counts) {
        v->checkpoints++;
        verify_newest_take(&v->newest_read, checkpoint);
        verify_add_written(v, checkpoint);
        for (size_t i = 0; i < json_array_size(v->found); i++)
            verify_print_damage(v, json_array_get(v->found, i));
        json_array_extend(v->damages, v->found);
    }
    json_decref(v->found);
    return status;
}

static bool verify_is_damaged(const struct verify *v, int64_t checkpoint)
{
    const json_t *damage;
    size_t index;

    json_array_foreach(v->damages, index,
                       damage) if (json_integer_value(json_object_get(damage, "checkpoint")) ==
                                   checkpoint) return true;
    return false;
}

/* The committed checkpoints, as far as they are known. */
struct choice {
    struct newest newest; /* which the job resumes from */
    bool newest_whole;    /* as far as it was read */
    bool older;           /* there is one, not known to be damaged, before a damaged one */
};

/* False: the next launch says what there is. */
static bool verify_find_choice(const struct verify *v, struct choice *ret_choice)
{
    struct choice choice = {.newest_whole = false};
    muster_rows_t *rows = NULL;
    const struct muster_checkpoint_row *at;
    int64_t damaged = -1, least = INT64_MAX;

    if (muster_client_checkpoints(v->tool->client, v->tool->job, 0, &rows, NULL) != MUSTER_OK)
        return false;
    at = muster_rows_checkpoints(rows);
    for (size_t i = 0; i < muster_rows_count(rows); i++) {
        if (strcmp(at[i].state, "committed") != 0)
            continue;
        verify_newest_take(&choice.newest, &at[i]);
        if (!verify_is_damaged(v, at[i].checkpoint))
            least = at[i].step < least ? at[i].step : least;
        else
            damaged = at[i].step > damaged ? at[i].step : damaged;
    }
    muster_rows_destroy(&rows);
    choice.newest_whole =
        choice.newest.checkpoint > 0 && !verify_is_damaged(v, choice.newest.checkpoint);
    choice.older = least < damaged;
    *ret_choice = choice;
    return true;
}

static void verify_print_advice(const struct verify *v)
{
    struct choice choice = {.older = true};
    bool known = verify_find_choice(v, &choice);
    bool whole = known && choice.newest_whole;
    FILE *out = v->tool->out;

    if (whole && choice.newest.checkpoint == v->newest_read.checkpoint) {
        fprintf(out,
                "The job resumes from checkpoint %" PRId64 " (step %" PRId64 "), which is whole: "
                "it needs nothing of what is damaged or not there.\n",
                choice.newest.checkpoint, choice.newest.step);
        return;
    }
    if (!choice.older)
        fprintf(out, "Put what is damaged or not there back from a copy: there is no older "
                     "checkpoint that the job could take instead.\n");
    else
        fprintf(out, "Put what is damaged or not there back from a copy; if there is none, `muster "
                     "run --fallback` (option restore_fallback) lets all ranks take the next older "
                     "checkpoint.\n");
    if (whole)
        fprintf(out,
                "The job needs nothing of it if checkpoint %" PRId64 " (step %" PRId64 "), from "
                "which it resumes, is whole: `muster verify %" PRId64 " --job %s` reads that.\n",
                choice.newest.checkpoint, choice.newest.step, choice.newest.checkpoint,
                v->tool->job);
}

static void verify_print_written(const struct verify *v)
{
    const json_t *written;
    size_t index;

    json_array_foreach(v->written, index, written)
    {
        int64_t found = json_integer_value(json_object_get(written, "bytes_found"));

        fprintf(v->tool->out,
                "checkpoint %" JSON_INTEGER_FORMAT " (step %" JSON_INTEGER_FORMAT
                ") was written by the program, %s in %s: %s\n",
                json_integer_value(json_object_get(written, "checkpoint")),
                json_integer_value(json_object_get(written, "step")),
                render_bytes(json_integer_value(json_object_get(written, "bytes"))).text,
                json_string_value(json_object_get(written, "path")),
                found >= 0 ? "only its size was compared" : "nothing was read there");
    }
}

static void verify_print_text(const struct verify *v)
{
    FILE *out = v->tool->out;

    fprintf(out,
            "%" PRId64 " checkpoint%s of job %s, %" PRId64 " file%s, %s read: %" PRId64
            " damaged\n",
            v->checkpoints, v->checkpoints == 1 ? "" : "s", v->tool->job, v->read.files,
            v->read.files == 1 ? "" : "s", render_bytes(v->read.bytes).text, v->damaged);
    if (v->read.unsealed > 0)
        fprintf(out,
                "%" PRId64 " manifest%s of an older muster carr%s no checksum: a change in it "
                "may not be seen\n",
                v->read.unsealed, v->read.unsealed == 1 ? "" : "s",
                v->read.unsealed == 1 ? "ies" : "y");
    if (v->read.is_signed > 0)
        fprintf(out, "%" PRId64 " manifest%s signed; %s\n", v->read.is_signed,
                v->read.is_signed == 1 ? " is" : "s are",
                v->signer[0] != '\0' ? "the key is that of your key file"
                                     : "your key file names no signer, so the signatures were not "
                                       "checked");
    verify_print_written(v);
    if (v->damaged > 0)
        verify_print_advice(v);
}

static int verify_print_result(struct verify *v)
{
    struct tool *tool = v->tool;
    json_t *document;

    if (!tool_json(tool)) {
        verify_print_text(v);
        json_decref(v->damages);
        json_decref(v->written);
        return v->damaged > 0 ? TOOL_NO : TOOL_DONE;
    }
    document = render_document();
    json_object_set_new(document, "job", json_string(tool->job));
    json_object_set_new(document, "checkpoints", json_integer(v->checkpoints));
    json_object_set_new(document, "files", json_integer(v->read.files));
    json_object_set_new(document, "bytes", json_integer(v->read.bytes));
    json_object_set_new(document, "manifests_without_checksum", json_integer(v->read.unsealed));
    json_object_set_new(document, "manifests_signed", json_integer(v->read.is_signed));
    json_object_set_new(document, "signer", json_string(v->signer));
    json_object_set_new(document, "damaged", v->damages);
    json_object_set_new(document, "written", v->written);
    if (!render_json(document, tool->out, false))
        return tool_fail(TOOL_NO, "no memory for the answer");
    return v->damaged > 0 ? TOOL_NO : TOOL_DONE;
}

/* One of the job's, or all that are committed. */
static enum muster_status verify_fetch(struct tool *tool, int64_t number, muster_rows_t **ret_rows,
                                       struct muster_error *err)
{
    if (number > 0)
        return muster_client_checkpoint(tool->client, tool->job, number, ret_rows, err);
    return muster_client_checkpoints(tool->client, tool->job, 0, ret_rows, err);
}

/* *ret_any: some were committed when the list was made. */
static enum muster_status verify_list(struct verify *v, int64_t number, bool *ret_any,
                                      struct muster_error *err)
{
    muster_rows_t *rows = NULL;
    enum muster_status status = verify_fetch(v->tool, number, &rows, err);

    int64_t bytes = 0;

    for (size_t i = 0; status == MUSTER_OK && i < muster_rows_count(rows); i++)
        if (strcmp(muster_rows_checkpoints(rows)[i].state, "committed") == 0)
            bytes += muster_rows_checkpoints(rows)[i].bytes;
    progress_begin(&v->progress, "verify", PROGRESS_BYTES, bytes);
    *ret_any = false;
    for (size_t i = 0; status == MUSTER_OK && i < muster_rows_count(rows); i++) {
        const struct muster_checkpoint_row *checkpoint = &muster_rows_checkpoints(rows)[i];

        if (strcmp(checkpoint->state, "committed") != 0)
            continue;
        *ret_any = true;
        status = verify_checkpoint(v, checkpoint, err);
    }
    progress_end(&v->progress);
    muster_rows_destroy(&rows);
    return status;
}

int cmd_verify(struct tool *tool)
{
    struct verify v = {.tool = tool};
    struct muster_error err = {.status = MUSTER_OK};
    enum muster_status status = MUSTER_OK;
    int64_t number = 0;
    bool any = true;
    int code = TOOL_DONE;

    if (tool->args_count > 0)
        code = tool_number(tool->args[0], "a checkpoint", 1, INT64_MAX, &number);
    if (code == TOOL_DONE)
        code = tool_find_job(tool);
    if (code != TOOL_DONE)
        return code;
    if (link_key_signer(v.signer, &err) != MUSTER_OK)
        return tool_fail_status(err.status, &err);
    v.damages = json_array();
    v.written = json_array();
    /* A job that keeps few may delete all of a list before one of them is held. */
    for (int i = 0; i < LISTS_MAX && status == MUSTER_OK && any && v.checkpoints == 0; i++)
        status = verify_list(&v, number, &any, &err);
    if (status == MUSTER_OK && v.checkpoints > 0)
        return verify_print_result(&v);
    json_decref(v.damages);
    json_decref(v.written);
    if (status != MUSTER_OK)
        return tool_fail_status(status, &err);
    if (number > 0)
        return tool_fail(TOOL_NO,
                         "job %s has no committed checkpoint %" PRId64
                         ": `muster checkpoints --job %s` lists them",
                         tool->job, number, tool->job);
    return tool_fail(TOOL_NO, "job %s has no committed checkpoint to verify", tool->job);
}
