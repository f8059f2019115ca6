/* supervise_progress - the newest checkpoint, by broker or by manifests; see the header. */
#include "tools/run/supervise_progress.h"

#include "node/shard/fs.h"
#include "schema/manifest/manifest.h"
#include "schema/paths.h"
#include "tools/tool.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The step of the checkpoint in one directory; -1: there is none of this job. */
static int64_t progress_step_in(const char *directory, const char *name, const char *job)
{
    struct manifest *manifest = NULL;
    char path[FS_PATH_MAX];
    int64_t step = -1;
    char *text = NULL;
    size_t size;

    if (fs_path(path, NULL, "%s/%s/manifest.json", directory, name) != MUSTER_OK ||
        fs_read_small(path, MANIFEST_BYTES_MAX, &text, &size, NULL) != MUSTER_OK)
        return -1;
    if (manifest_parse(text, size, &manifest, NULL) == MUSTER_OK && strcmp(manifest->job, job) == 0)
        step = manifest->step + paths_step_offset(name, manifest->step);
    manifest_destroy(&manifest);
    free(text);
    return step;
}

bool progress_in_directory(const char *directory, const char *job, int64_t *ret_step)
{
    DIR *dir = fs_opendir(directory);
    const struct dirent *entry;
    int64_t newest = -1;
    bool whole;

    if (dir == NULL)
        return false;
    while ((entry = fs_readdir(dir)) != NULL) {
        int64_t step =
            entry->d_name[0] == '.' ? -1 : progress_step_in(directory, entry->d_name, job);

        if (step > newest)
            newest = step;
    }
    whole = errno == 0; /* else the newest may be what was not read */
    closedir(dir);
    if (whole)
        *ret_step = newest;
    return whole;
}

bool progress_step(const char *broker, const char *job, int64_t *ret_step)
{
    const char *directory = getenv("MUSTER_CHECKPOINT_DIR");

    if (tool_latest_step(broker, job, ret_step) == 0)
        return true;
    return directory != NULL && directory[0] != '\0' &&
           progress_in_directory(directory, job, ret_step);
}
