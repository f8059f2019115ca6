/* dir_names - the names of checkpoints' directories, and where the one of a round is; see dir.h. */
#include "node/shard/dir.h"

#include "schema/error.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool dir_prefix_ok(const char *prefix)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-";
    static const char all[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-0123456789";
    size_t length = strlen(prefix);

    return length == 0 || (length <= DIR_PREFIX_MAX && strspn(prefix, all) == length &&
                           strchr(letters, prefix[length - 1]) != NULL);
}

void dir_final_name(const struct dir_names *names, int64_t step, uint64_t generation,
                    uint64_t round, bool taken, char ret_name[DIR_NAME_SIZE])
{
    static const struct dir_names plain = {.padding = 0};
    size_t used;

    if (names == NULL)
        names = &plain;
    snprintf(ret_name, DIR_NAME_SIZE, "%.*s%0*" PRId64, DIR_PREFIX_MAX, names->prefix,
             names->padding, step + names->offset);
    used = strlen(ret_name);
    if (taken)
        snprintf(ret_name + used, DIR_NAME_SIZE - used, ".%" PRIu64 "-%" PRIu64, generation, round);
}

bool dir_take_number(const char **at, const char *before, uint64_t *ret_number)
{
    size_t length = strlen(before);
    char *end;

    if (strncmp(*at, before, length) != 0 || (*at)[length] < '0' || (*at)[length] > '9')
        return false;
    errno = 0;
    *ret_number = strtoull(*at + length, &end, 10);
    *at = end;
    return errno == 0;
}

bool dir_round_name(const char *name, uint64_t *ret_generation, uint64_t *ret_round)
{
    const char *at = name;
    char own[DIR_NAME_SIZE];

    if (!dir_take_number(&at, "", ret_generation) || !dir_take_number(&at, "-", ret_round))
        return false;
    snprintf(own, sizeof own, "%" PRIu64 "-%" PRIu64, *ret_generation, *ret_round);
    return strcmp(name, own) == 0;
}

bool dir_name_step(const char *name, const struct dir_names *names, int64_t *ret_step)
{
    const char *at = name;
    char own[DIR_NAME_SIZE];
    uint64_t number = 0, generation = 0, round = 0;
    bool taken;

    if (!dir_take_number(&at, names != NULL ? names->prefix : "", &number) ||
        number > INT64_MAX / 2)
        return false;
    taken = dir_take_number(&at, ".", &generation) && dir_take_number(&at, "-", &round);
    *ret_step = (int64_t)number - (names != NULL ? names->offset : 0);
    dir_final_name(names, *ret_step, generation, round, taken, own);
    return *ret_step >= 0 && strcmp(name, own) == 0;
}

/* Another user's directory (lost+found) is none of ours. */
static enum muster_status dir_names_is_it(const char *path, const char *job, uint64_t generation,
                                          uint64_t round, bool *ret_is, struct muster_error *err)
{
    struct muster_error why = {0};
    enum muster_status status = dir_look_round(path, job, generation, round, ret_is, &why);

    if (status == MUSTER_OK || why.code == EACCES || why.code == EPERM)
        return MUSTER_OK;
    if (err != NULL)
        *err = why;
    return status;
}

/* A directory that cannot be read does not hide the others. */
static enum muster_status dir_scan_for(const char *root, const char *job, uint64_t generation,
                                       uint64_t round, bool *ret_found, char ret_path[FS_PATH_MAX],
                                       struct muster_error *err)
{
    DIR *dir = fs_opendir(root);
    const struct dirent *entry;
    enum muster_status status = MUSTER_OK;

    *ret_found = false;
    if (dir == NULL)
        return errno == ENOENT ? MUSTER_OK : fs_fail(err, MUSTER_E_IO, errno, "list", root);
    while (!*ret_found && (entry = fs_readdir(dir)) != NULL)
        if (entry->d_name[0] != '.' &&
            fs_path(ret_path, NULL, "%s/%s", root, entry->d_name) == MUSTER_OK &&
            dir_names_is_it(ret_path, job, generation, round, ret_found, err) != MUSTER_OK)
            status = MUSTER_E_IO;
    if (!*ret_found && status == MUSTER_OK && errno != 0)
        status = fs_fail(err, MUSTER_E_IO, errno, "list", root);
    closedir(dir);
    return *ret_found ? MUSTER_OK : status;
}

bool dir_scan(const char *root, const char *job, uint64_t generation, uint64_t round,
              char ret_path[FS_PATH_MAX])
{
    bool found = false;

    return dir_scan_for(root, job, generation, round, &found, ret_path, NULL) == MUSTER_OK && found;
}

enum muster_status dir_find(const char *root, const char *job, uint64_t generation, uint64_t round,
                            int64_t step, enum dir_place *ret_place, char ret_path[FS_PATH_MAX],
                            struct muster_error *err)
{
    char path[FS_PATH_MAX];
    char name[DIR_NAME_SIZE];
    bool is = false;
    enum muster_status status = MUSTER_OK;

    for (int i = 0; i < 3 && status == MUSTER_OK; i++) {
        if (i < 2) {
            dir_final_name(NULL, step, generation, round, i == 1, name);
            status = fs_path(path, err, "%s/%s", root, name);
        } else {
            status = dir_round_path(root, generation, round, path, err);
        }
        if (status == MUSTER_OK)
            status = dir_look_round(path, job, generation, round, &is, err);
        if (status == MUSTER_OK && is) {
            *ret_place = i < 2 ? DIR_PLACE_FINAL : DIR_PLACE_ROUND;
            return fs_path(ret_path, err, "%s", path);
        }
    }
    if (status == MUSTER_OK)
        status = dir_scan_for(root, job, generation, round, &is, path, err);
    if (status != MUSTER_OK)
        return status;
    if (is) {
        *ret_place = DIR_PLACE_FINAL;
        return fs_path(ret_path, err, "%s", path);
    }
    return error_set(err, MUSTER_E_NOT_FOUND,
                     "no directory of generation %" PRIu64 ", round %" PRIu64 " (step %" PRId64
                     ") is in %.600s",
                     generation, round, step, root);
}
