/* written - see written.h. */
#include "tools/written.h"

#include "schema/error.h"

#include <errno.h>
#include <fts.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static bool written_has_control(const char *text)
{
    while ((unsigned char)*text >= ' ' && *text != 0x7f)
        text++;
    return *text != '\0';
}

bool written_find(const char *custom, struct written *ret_written)
{
    json_t *object = json_loads(custom, 0, NULL);
    const char *path = json_string_value(json_object_get(object, "path"));
    const json_t *bytes = json_object_get(object, "bytes");
    bool is_one = path != NULL && path[0] != '\0' && strlen(path) <= PATH_BYTES_MAX &&
                  !written_has_control(path) && json_is_integer(bytes) &&
                  json_integer_value(bytes) >= 0;

    if (is_one) {
        ret_written->bytes = json_integer_value(bytes);
        snprintf(ret_written->path, sizeof ret_written->path, "%s", path);
    }
    json_decref(object);
    return is_one;
}

const char *written_place(const struct muster_checkpoint_row *row, struct written *written)
{
    return written_find(row->custom, written) ? written->path : row->path;
}

bool written_is_local(const struct written *written)
{
    return written->path[0] == '/';
}

/* E_NOT_FOUND: it went while it was looked at. */
static enum muster_status written_count(FTS *tree, int64_t *ret_bytes, struct muster_error *err)
{
    struct stat info;
    int64_t bytes = 0;

    errno = 0;
    for (FTSENT *entry = fts_read(tree); entry != NULL; errno = 0, entry = fts_read(tree)) {
        switch (entry->fts_info) {
        case FTS_F:
            bytes += entry->fts_statp->st_size;
            break;
        case FTS_SL:
            if (stat(entry->fts_accpath, &info) == 0 && S_ISREG(info.st_mode))
                bytes += info.st_size;
            break;
        case FTS_NS:
        case FTS_DNR:
        case FTS_ERR:
            return error_set(err, entry->fts_errno == ENOENT ? MUSTER_E_NOT_FOUND : MUSTER_E_IO,
                             "%s: %s", entry->fts_path, strerror(entry->fts_errno));
        default:
            break;
        }
    }
    if (errno != 0)
        return error_set(err, MUSTER_E_IO, "%s", strerror(errno));
    *ret_bytes = bytes;
    return MUSTER_OK;
}

enum muster_status written_measure(const struct written *written, int64_t *ret_bytes,
                                   struct muster_error *err)
{
    struct written copy = *written;
    char *const paths[] = {copy.path, NULL};
    FTS *tree = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR | FTS_COMFOLLOW, NULL);
    enum muster_status status;

    if (tree == NULL)
        return error_set(err, MUSTER_E_IO, "%s: %s", written->path, strerror(errno));
    status = written_count(tree, ret_bytes, err);
    fts_close(tree);
    return status;
}
