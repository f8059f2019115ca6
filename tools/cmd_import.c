/* cmd_import - `muster import`: tells the broker about the checkpoints in a directory, such as
 * those that a lost database held. */
#include "tools/progress.h"
#include "tools/render.h"
#include "tools/tool.h"
#include "tools/verbs.h"

#include "node/link_key.h"
#include "node/shard/shard.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct found {
    char *path;
    struct manifest *manifest;
};
struct list {
    struct found *items;
    size_t count;
    int unreadable;
    int refused; /* their numbers are others' in the broker's records, or they are not signed */
    char job[JOB_NAME_MAX + 1];  /* whose they are */
    char signer[SIGNER_MAX + 1]; /* by whom they have to be signed; "": by nobody */
};

static void import_list_free(struct list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i].path);
        manifest_destroy(&list->items[i].manifest);
    }
    free(list->items);
}

/* A directory without a manifest is no checkpoint. If a manifest cannot be read, the tool says
 * so. */
static void import_look_at(struct list *list, const char *path)
{
    struct manifest *manifest = NULL;
    struct muster_error err;
    struct found *items;
    enum muster_status status = shard_manifest_read(path, &manifest, &err);

    if (status == MUSTER_E_NOT_FOUND || status == MUSTER_E_RESTORE)
        return;
    if (status != MUSTER_OK) {
        list->unreadable++;
        tool_fail(TOOL_NO, "%s is left out: %s", path, err.text);
        return;
    }
    if (list->signer[0] != '\0' &&
        manifest_check_signer(manifest, list->signer, &err) != MUSTER_OK) {
        list->refused++;
        tool_fail(TOOL_REFUSED, "%s is left out: %s", path, err.text);
        manifest_destroy(&manifest);
        return;
    }
    items = realloc(list->items, (list->count + 1) * sizeof *items);
    if (items != NULL) {
        list->items = items;
        items[list->count] = (struct found){strdup(path), manifest};
        if (items[list->count].path != NULL) {
            snprintf(list->job, sizeof list->job, "%s", manifest->job);
            list->count++;
            return;
        }
    }
    list->unreadable++;
    manifest_destroy(&manifest);
}

/* Entries of one folder; those of .muster are rounds that were committed and never got their name.
 * Returns an errno value if the folder could not be read to its end: what is missing may be the
 * newest. */
static int import_look_into(struct list *list, const char *folder)
{
    DIR *dir = fs_opendir(folder);
    const struct dirent *entry;
    char path[FS_PATH_MAX];
    int code;

    if (dir == NULL)
        return errno;
    while ((entry = fs_readdir(dir)) != NULL)
        if (entry->d_name[0] != '.' && strncmp(entry->d_name, "trash-", 6) != 0 &&
            fs_path(path, NULL, "%s/%s", folder, entry->d_name) == MUSTER_OK && fs_is_dir(path))
            import_look_at(list, path);
    code = errno;
    closedir(dir);
    return code;
}

static int import_by_round(const void *a, const void *b)
{
    const struct manifest *x = ((const struct found *)a)->manifest;
    const struct manifest *y = ((const struct found *)b)->manifest;

    if (x->generation != y->generation)
        return x->generation < y->generation ? -1 : 1;
    return (x->round > y->round) - (x->round < y->round);
}

/* The job that owns the directory. If the directory was copied without its .muster, the last
 * checkpoint's job. */
static void import_read_owner(struct list *list, const char *root)
{
    char path[FS_PATH_MAX];
    char *text = NULL;
    size_t size = 0;

    if (fs_path(path, NULL, "%s/.muster/JOB", root) == MUSTER_OK &&
        fs_read_small(path, sizeof list->job, &text, &size, NULL) == MUSTER_OK && size > 0)
        snprintf(list->job, sizeof list->job, "%.*s", (int)strcspn(text, "\n"), text);
    free(text);
}

/* The absolute form: the broker's rows name it for all. */
static int import_read_directory(const char *name, struct list *list, char *ret_root)
{
    char inner[FS_PATH_MAX];
    char *real = realpath(name, NULL);
    int code = real == NULL ? errno : 0;

    if (code == 0 && fs_path(ret_root, NULL, "%s", real) != MUSTER_OK)
        code = ENAMETOOLONG;
    free(real);
    if (code == 0)
        code = import_look_into(list, ret_root);
    if (code != 0)
        return tool_fail(TOOL_NO,
                         "%s cannot be read: %s; nothing was imported; give the job's checkpoint "
                         "directory",
                         name, strerror(code));
    code = fs_path(inner, NULL, "%s/.muster", ret_root) == MUSTER_OK ? import_look_into(list, inner)
                                                                     : ENAMETOOLONG;
    if (code != 0 && code != ENOENT) /* copied without it, say */
        return tool_fail(TOOL_NO,
                         "%s/.muster cannot be read: %s; nothing was imported: a checkpoint may be "
                         "in it; once it can be read, import again",
                         ret_root, strerror(code));
    import_read_owner(list, ret_root);
    if (list->count == 0 && list->refused > 0)
        return tool_fail(TOOL_REFUSED, "%s holds no checkpoint that is signed as it has to be",
                         ret_root);
    if (list->count == 0)
        return tool_fail(
            TOOL_NO, "%s holds no checkpoint: nothing in it has a manifest.json that can be read",
            ret_root);
    qsort(list->items, list->count, sizeof *list->items, import_by_round);
    return TOOL_DONE;
}

/* Does the record say that the checkpoint was given up by a later launch, or deleted? The core
 * holds only checkpoints that count, so it would not know. NULL: no. */
static const char *import_gone_on_record(struct tool *tool, const struct manifest *manifest)
{
    static const char *const states[] = {"superseded", "deleting", "deleted"};
    const char *found = NULL;
    muster_rows_t *rows = NULL;

    if (muster_client_checkpoint(tool->client, manifest->job, (int64_t)manifest->round, &rows,
                                 NULL) == MUSTER_OK &&
        muster_rows_count(rows) == 1) {
        const struct muster_checkpoint_row *row = muster_rows_checkpoints(rows);
        bool is = row->generation == (int64_t)manifest->generation && row->step == manifest->step;

        for (size_t i = 0; is && i < sizeof states / sizeof *states; i++)
            if (strcmp(row->state, states[i]) == 0)
                found = states[i];
    }
    muster_rows_destroy(&rows);
    return found;
}

/* Such a checkpoint counts as there already. A person who brought its files back is told why no
 * launch will take it. */
static bool import_is_on_record(struct tool *tool, const struct found *found)
{
    const char *state = import_gone_on_record(tool, found->manifest);

    if (state != NULL && strcmp(state, "superseded") != 0)
        tool_fail(TOOL_DONE, "%s is on record as %s: no launch resumes from it, and its files %s",
                  found->path, state,
                  strcmp(state, "deleting") == 0 ? "go with a launch of its job"
                                                 : "can be removed");
    return state != NULL;
}

static enum muster_status import_send(struct tool *tool, const struct found *found, bool *ret_new,
                                      struct muster_error *err)
{
    char *text = NULL;
    size_t size = 0;
    enum muster_status status = found->manifest->signer != NULL /* each byte of it counts */
                                    ? shard_manifest_text(found->path, &text, &size, err)
                                    : manifest_render(found->manifest, &text, &size, err);

    if (status == MUSTER_OK)
        status = muster_client_import(tool->client, found->manifest->job, found->path, text, size,
                                      ret_new, err);
    free(text);
    return status;
}

static int import_print_result(struct tool *tool, const char *root, const struct list *list,
                               int64_t added)
{
    int64_t there = (int64_t)list->count - added - list->refused;
    int code = list->refused > 0 ? TOOL_REFUSED : list->unreadable > 0 ? TOOL_NO : TOOL_DONE;
    json_t *document;

    if (!tool_json(tool)) {
        fprintf(tool->out,
                "%" PRId64
                " checkpoint%s of job %s from %s %s in the broker's records now, %" PRId64
                " %s there already. `muster verify --job %s` reads the shards.\n",
                added, added == 1 ? "" : "s", list->job, root, added == 1 ? "is" : "are", there,
                there == 1 ? "was" : "were", list->job);
        return code;
    }
    document = render_document();
    json_object_set_new(document, "job", json_string(list->job));
    json_object_set_new(document, "imported", json_integer(added));
    json_object_set_new(document, "there", json_integer(there));
    json_object_set_new(document, "unreadable", json_integer(list->unreadable));
    json_object_set_new(document, "refused", json_integer(list->refused));
    if (!render_json(document, tool->out, false))
        return tool_fail(TOOL_NO, "no memory for the answer");
    return code;
}

/* A checkpoint that is refused for its number does not keep the others out. */
static enum muster_status import_send_all(struct tool *tool, struct list *list, int64_t *ret_added,
                                          struct muster_error *err)
{
    struct progress progress;

    progress_begin(&progress, "import", PROGRESS_COUNT, (int64_t)list->count);
    for (size_t i = 0; i < list->count; i++) {
        const struct found *found = &list->items[i];
        bool is_new = false;
        enum muster_status status;

        progress_at(&progress, (int64_t)i);
        if (strcmp(found->manifest->job, list->job) != 0) {
            list->refused++;
            tool_fail(TOOL_REFUSED,
                      "%s is left out: it is of job %s, and the directory is of job %s; move it "
                      "into a directory of its own and import that",
                      found->path, found->manifest->job, list->job);
            continue;
        }
        if (import_is_on_record(tool, found))
            continue;
        status = import_send(tool, found, &is_new, err);
        *ret_added += is_new;
        if (status != MUSTER_OK && status != MUSTER_E_EXISTS && status != MUSTER_E_SIGNATURE) {
            progress_end(&progress);
            return status;
        }
        if (status != MUSTER_OK) {
            list->refused++;
            tool_fail(TOOL_REFUSED, "%s is left out: %s", found->path, err->text);
        }
    }
    progress_end(&progress);
    return MUSTER_OK;
}

int cmd_import(struct tool *tool)
{
    struct list list = {.count = 0};
    struct muster_error err = {.status = MUSTER_OK};
    enum muster_status status = MUSTER_OK;
    char root[FS_PATH_MAX];
    int64_t added = 0;
    int code = tool_check_broker(tool);

    if (code == TOOL_DONE && link_key_signer(list.signer, &err) != MUSTER_OK)
        return tool_fail_status(err.status, &err);
    if (code == TOOL_DONE)
        code = import_read_directory(tool->args[0], &list, root);
    if (code == TOOL_DONE && tool->values[OPTION_JOB] != NULL &&
        strcmp(tool->values[OPTION_JOB], list.job) != 0)
        code = tool_fail(TOOL_REFUSED,
                         "%s is the checkpoint directory of job %s, not of job %s: leave out --job "
                         "(MUSTER_JOB), or name that one",
                         root, list.job, tool->values[OPTION_JOB]);
    if (code == TOOL_DONE) {
        status = import_send_all(tool, &list, &added, &err);
        code = status != MUSTER_OK ? tool_fail_status(status, &err)
                                   : import_print_result(tool, root, &list, added);
    }
    import_list_free(&list);
    /* E_BUSY: a broker that is there says "not now" */
    return status == MUSTER_E_BUSY || (status != MUSTER_OK && code != TOOL_UNREACHABLE)
               ? TOOL_REFUSED
               : code;
}
