/* dir - the directory of a round: opened, known by its ROUND file, removed; see dir.h. Preparing the root is in
 * dir_prepare.c, committing in dir_commit.c. */
#include "node/shard/dir.h"

#include "schema/error.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROUND_BEGINS "muster_round 1\njob %s\ngeneration "

void dir_shard_name(uint64_t rank, uint64_t incarnation, char ret_name[DIR_NAME_SIZE])
{
    snprintf(ret_name, DIR_NAME_SIZE, "shard-%05" PRIu64 "-%016" PRIx64, rank, incarnation);
}

enum muster_status dir_round_path(const char *root, uint64_t generation, uint64_t round,
                                  char ret_path[FS_PATH_MAX], struct muster_error *err)
{
    return fs_path(ret_path, err, "%s/.muster/%" PRIu64 "-%" PRIu64, root, generation, round);
}

enum muster_status dir_muster_path(const char *root, char ret_path[FS_PATH_MAX],
                                   struct muster_error *err)
{
    return fs_path(ret_path, err, "%s/.muster", root);
}

/* The first bytes of a ROUND file; all of it but the nonce. */
static void round_text(const char *job, uint64_t generation, uint64_t round,
                       char ret_text[DIR_OWNER_BYTES_MAX])
{
    snprintf(ret_text, DIR_OWNER_BYTES_MAX, ROUND_BEGINS "%" PRIu64 "\nround %" PRIu64 "\nnonce ",
             job, generation, round);
}

static enum muster_status other_owner(const char *dir, const char *job, const char *found,
                                      struct muster_error *err)
{
    const char *name = strstr(found, "\njob ");
    size_t length = name == NULL ? 0 : strcspn(name + 5, "\n");

    if (name != NULL && (strlen(job) != length || strncmp(name + 5, job, length) != 0))
        return error_set(err, MUSTER_E_JOB,
                         "the round directory %.600s belongs to job \"%.*s\", this is job \"%s\"; "
                         "give this job its own checkpoint directory",
                         dir, (int)length, name + 5, job);
    return error_set(
        err, MUSTER_E_EXISTS,
        "the round directory %.600s was left by another life of this round number (an "
        "older database?); it is kept, and the round must be made under another number",
        dir);
}

/* Makes ROUND say what text says; whoever comes second compares. */
static enum muster_status claim_round(const char *muster, const char *dir, const char *job,
                                      const char *text, struct muster_error *err)
{
    char path[FS_PATH_MAX];
    char *found;
    size_t size;
    bool created;
    enum muster_status status = fs_path(path, err, "%s/ROUND", dir);

    if (status == MUSTER_OK)
        status = fs_claim(muster, path, text, strlen(text), &created, err);
    if (status == MUSTER_OK && created)
        return fs_sync_dir(dir, err);
    if (status == MUSTER_OK)
        status = fs_read_small(path, DIR_OWNER_BYTES_MAX, &found, &size, err);
    if (status != MUSTER_OK)
        return status;
    if (strcmp(found, text) != 0)
        status = other_owner(dir, job, found, err);
    free(found);
    return status;
}

/* The job has both since it was opened: whoever took them away puts them back, and nobody creates them anew. */
static enum muster_status no_round(const char *root, const char *muster, const char *path, int code,
                                   struct muster_error *err)
{
    if (code != ENOENT)
        return fs_fail(err, MUSTER_E_SAVE, code, "create the round directory", path);
    return error_set_code(err, MUSTER_E_SAVE, code,
                          "cannot create the round directory %.600s: %.600s is away, and was there "
                          "when the job was opened; put it back, or mount it again",
                          path, access(root, F_OK) != 0 ? root : muster);
}

enum muster_status dir_round_open(const char *root, const char *job, uint64_t generation,
                                  uint64_t round, uint64_t nonce, char ret_path[FS_PATH_MAX],
                                  struct muster_error *err)
{
    char muster[FS_PATH_MAX];
    char path[FS_PATH_MAX];
    char text[DIR_OWNER_BYTES_MAX];
    size_t length;
    enum muster_status status = dir_muster_path(root, muster, err);

    if (status == MUSTER_OK)
        status = dir_round_path(root, generation, round, path, err);
    if (status != MUSTER_OK)
        return status;
    if (mkdir(path, 0777) != 0 && errno != EEXIST)
        return no_round(root, muster, path, errno, err);
    round_text(job, generation, round, text);
    length = strlen(text);
    snprintf(text + length, sizeof text - length, "%016" PRIx64 "\n", nonce);
    status = fs_sync_dir(muster, err);
    if (status == MUSTER_OK)
        status = claim_round(muster, path, job, text, err);
    if (status == MUSTER_OK)
        return fs_path(ret_path, err, "%s", path);
    if (status != MUSTER_E_IO)
        return status;
    if (err != NULL)
        err->status = MUSTER_E_SAVE;
    return MUSTER_E_SAVE;
}

enum round_owner { OWNER_NONE, OWNER_OURS, OWNER_OTHER }; /* NONE: there is no ROUND */

static enum muster_status look_at_round(const char *dir, const char *text,
                                        enum round_owner *ret_owner, struct muster_error *err)
{
    char path[FS_PATH_MAX];
    char *found;
    size_t size;
    enum muster_status status = fs_path(path, err, "%s/ROUND", dir);

    if (status == MUSTER_OK)
        status = fs_read_small(path, DIR_OWNER_BYTES_MAX, &found, &size, err);
    if (status == MUSTER_E_NOT_FOUND || status == MUSTER_E_CORRUPT) {
        *ret_owner = status == MUSTER_E_NOT_FOUND ? OWNER_NONE : OWNER_OTHER;
        return MUSTER_OK;
    }
    if (status != MUSTER_OK)
        return status;
    *ret_owner = strncmp(found, text, strlen(text)) == 0 ? OWNER_OURS : OWNER_OTHER;
    free(found);
    return MUSTER_OK;
}

enum muster_status dir_look_round(const char *dir, const char *job, uint64_t generation,
                                  uint64_t round, bool *ret_is, struct muster_error *err)
{
    char text[DIR_OWNER_BYTES_MAX];
    enum round_owner owner = OWNER_NONE;
    enum muster_status status;

    round_text(job, generation, round, text);
    status = look_at_round(dir, text, &owner, err);
    *ret_is = status == MUSTER_OK && owner == OWNER_OURS;
    return status;
}

bool dir_is_round(const char *dir, const char *job, uint64_t generation, uint64_t round)
{
    bool is = false;

    return dir_look_round(dir, job, generation, round, &is, NULL) == MUSTER_OK && is;
}

bool dir_round_of(const char *dir, const char *job, uint64_t *ret_generation, uint64_t *ret_round)
{
    char path[FS_PATH_MAX], begin[DIR_OWNER_BYTES_MAX];
    char *found = NULL;
    const char *at;
    size_t size;
    uint64_t generation, round;
    bool is;

    if (fs_path(path, NULL, "%s/ROUND", dir) != MUSTER_OK ||
        fs_read_small(path, DIR_OWNER_BYTES_MAX, &found, &size, NULL) != MUSTER_OK)
        return false;
    snprintf(begin, sizeof begin, ROUND_BEGINS, job);
    at = found;
    is = dir_take_number(&at, begin, &generation) && dir_take_number(&at, "\nround ", &round);
    free(found);
    if (is)
        *ret_generation = generation, *ret_round = round;
    return is;
}

/* Out of sight by one rename, so that a writer that still runs cannot add to what is removed. */
static enum muster_status remove_by_trash(const char *muster, const char *path, uint64_t generation,
                                          uint64_t round, struct muster_error *err)
{
    char trash[FS_PATH_MAX];
    uint64_t number = 0;
    enum muster_status status = fs_random_u64(&number, err);

    if (status == MUSTER_OK)
        status = fs_path(trash, err, "%s/trash-%" PRIu64 "-%" PRIu64 "-%016" PRIx64, muster,
                         generation, round, number);
    if (status == MUSTER_OK)
        status = fs_rename_new(path, trash, err);
    if (status == MUSTER_E_NOT_FOUND)
        return MUSTER_OK; /* another rank was quicker */
    if (status == MUSTER_OK)
        status = fs_sync_dir(muster, err);
    if (status == MUSTER_OK)
        status = fs_remove_tree(trash, err);
    return status;
}

/* Whether a round's directory may go: by its ROUND file, and because it has no manifest. What cannot
 * be looked at is no answer. */
static enum muster_status may_remove(const char *path, const char *text, bool *ret_there,
                                     enum round_owner *ret_owner, struct muster_error *err)
{
    char manifest[FS_PATH_MAX];
    bool committed = false;
    enum muster_status status = fs_path(manifest, err, "%s/" MANIFEST_FILE_NAME, path);

    if (status == MUSTER_OK)
        status = fs_look(path, ret_there, err);
    if (status != MUSTER_OK || !*ret_there)
        return status;
    status = fs_look(manifest, &committed, err);
    if (status == MUSTER_OK)
        status = look_at_round(path, text, ret_owner, err);
    if (status != MUSTER_OK || (*ret_owner != OWNER_OTHER && !committed))
        return status;
    return error_set(err, MUSTER_E_EXISTS, "the round directory %.600s is kept: it %s", path,
                     committed ? "has a manifest, so it was committed"
                               : "belongs to another job or life of this round");
}

enum muster_status dir_remove_round(const char *root, const char *job, uint64_t generation,
                                    uint64_t round, uint64_t nonce, struct muster_error *err)
{
    char muster[FS_PATH_MAX];
    char path[FS_PATH_MAX];
    char text[DIR_OWNER_BYTES_MAX];
    size_t length;
    bool there = false;
    enum round_owner owner = OWNER_NONE;
    enum muster_status status = dir_muster_path(root, muster, err);

    if (status == MUSTER_OK)
        status = dir_round_path(root, generation, round, path, err);
    round_text(job, generation, round, text);
    length = strlen(text);
    if (nonce != 0)
        snprintf(text + length, sizeof text - length, "%016" PRIx64 "\n", nonce);
    if (status == MUSTER_OK)
        status = may_remove(path, text, &there, &owner, err);
    if (status != MUSTER_OK || !there)
        return status;
    if (owner == OWNER_OURS)
        return remove_by_trash(muster, path, generation, round, err);
    /* Without ROUND its maker died between mkdir and the claim: rmdir takes it only if empty. */
    if (rmdir(path) == 0 || errno == ENOENT)
        return MUSTER_OK;
    return fs_fail(err, MUSTER_E_IO, errno, "remove the round directory", path);
}
