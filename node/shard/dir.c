/* dir - the directory of a round: opened, known by its ROUND file, removed; see dir.h. Preparing
 * the root is in dir_prepare.c, committing in dir_commit.c. */
#include "node/shard/dir.h"

#include "node/shard/checksum.h"
#include "node/shard/shard.h"
#include "schema/error.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

#define ROUND_SEAL "checksum "

/* --- ROUND ---------------------------------------------------------------------------------- */

/* Returns the length of what is before its last line, the checksum of it. */
static size_t dir_claim_text(const struct dir_claim *claim, char ret_text[DIR_OWNER_BYTES_MAX])
{
    unsigned char sum[CHECKSUM_RAW_BYTES];
    char digits[MANIFEST_CHECKSUM_SIZE];
    size_t length;

    snprintf(ret_text, DIR_OWNER_BYTES_MAX,
             "muster_round 1\njob %s\ngeneration %" PRIu64 "\nround %" PRIu64 "\nnonce %016" PRIx64
             "\n",
             claim->job, claim->generation, claim->round, claim->nonce);
    length = strlen(ret_text);
    checksum_raw(ret_text, length, sum);
    manifest_checksum_text(sum, digits);
    snprintf(ret_text + length, DIR_OWNER_BYTES_MAX - length, ROUND_SEAL "%s\n", digits);
    return length;
}

static bool dir_claim_parse(const char *text, struct dir_claim *ret_claim)
{
    static const char begin[] = "muster_round 1\njob ", nonce[] = "\nnonce ";
    const char *at = text + sizeof begin - 1;
    size_t length;

    if (strncmp(text, begin, sizeof begin - 1) != 0)
        return false;
    length = strcspn(at, "\n");
    if (length > JOB_NAME_MAX)
        return false;
    snprintf(ret_claim->job, sizeof ret_claim->job, "%.*s", (int)length, at);
    at += length;
    if (!dir_take_number(&at, "\ngeneration ", &ret_claim->generation) ||
        !dir_take_number(&at, "\nround ", &ret_claim->round) ||
        strncmp(at, nonce, sizeof nonce - 1) != 0)
        return false;
    ret_claim->nonce = strtoull(at + sizeof nonce - 1, NULL, 16);
    return true;
}

/* Written again it must give the same bytes, with its checksum or, of an older muster, without. */
static bool dir_claim_is_whole(const char *text, size_t size, struct dir_claim *ret_claim)
{
    char again[DIR_OWNER_BYTES_MAX];
    size_t length;

    if (!dir_claim_parse(text, ret_claim))
        return false;
    length = dir_claim_text(ret_claim, again);
    return (size == strlen(again) || size == length) && memcmp(text, again, size) == 0;
}

enum muster_status dir_claim_read(const char *dir, struct dir_claim *ret_claim,
                                  struct muster_error *err)
{
    struct dir_claim claim;
    char path[FS_PATH_MAX];
    char *text;
    size_t size;
    bool is_whole;
    enum muster_status status = fs_path(path, err, "%s/ROUND", dir);

    if (status == MUSTER_OK)
        status = fs_read_small(path, DIR_OWNER_BYTES_MAX, &text, &size, err);
    if (status != MUSTER_OK)
        return status;
    is_whole = dir_claim_is_whole(text, size, &claim);
    free(text);
    if (!is_whole)
        return error_set(
            err, MUSTER_E_CORRUPT,
            "%.600s is damaged: its text and the checksum in its last line do not agree", path);
    *ret_claim = claim;
    return MUSTER_OK;
}

/* --- a round's directory -------------------------------------------------------------------- */

static enum muster_status dir_other_owner(const char *dir, const char *job, const char *found,
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
static enum muster_status dir_claim_round(const char *muster, const char *dir, const char *job,
                                          const char *text, struct muster_error *err)
{
    char path[FS_PATH_MAX];
    char *found;
    size_t size;
    enum muster_status status = fs_path(path, err, "%s/ROUND", dir);

    if (status == MUSTER_OK)
        status = fs_claim(muster, path, text, strlen(text), err);
    if (status == MUSTER_OK)
        status = fs_read_small(path, DIR_OWNER_BYTES_MAX, &found, &size, err);
    if (status != MUSTER_OK)
        return status;
    if (strcmp(found, text) != 0)
        status = dir_other_owner(dir, job, found, err);
    free(found);
    /* The rank that made it may have died before its sync. */
    return status == MUSTER_OK ? fs_sync_dir(dir, err) : status;
}

/* The job has both since it was opened. Whoever took them away has to restore them: a process never
 * creates them a second time. */
static enum muster_status dir_no_round(const char *root, const char *muster, const char *path,
                                       int code, struct muster_error *err)
{
    if (code != ENOENT)
        return fs_fail(err, MUSTER_E_SAVE, code, "create the round directory", path);
    return error_set_code(err, MUSTER_E_SAVE, code,
                          "cannot create the round directory %.600s: %.600s is gone, and was there "
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
    struct dir_claim claim = {.generation = generation, .round = round, .nonce = nonce};
    enum muster_status status = dir_muster_path(root, muster, err);

    if (status == MUSTER_OK)
        status = dir_round_path(root, generation, round, path, err);
    if (status != MUSTER_OK)
        return status;
    if (mkdir(path, 0777) != 0 && errno != EEXIST)
        return dir_no_round(root, muster, path, errno, err);
    snprintf(claim.job, sizeof claim.job, "%s", job);
    dir_claim_text(&claim, text);
    status = fs_sync_dir(muster, err);
    if (status == MUSTER_OK)
        status = dir_claim_round(muster, path, job, text, err);
    if (status == MUSTER_OK)
        return fs_path(ret_path, err, "%s", path);
    if (status != MUSTER_E_IO)
        return status;
    if (err != NULL)
        err->status = MUSTER_E_SAVE;
    return MUSTER_E_SAVE;
}

static bool dir_is_of(const struct dir_claim *claim, const char *job, uint64_t generation,
                      uint64_t round)
{
    return strcmp(claim->job, job) == 0 && claim->generation == generation && claim->round == round;
}

/* False: it has none that can be read. */
static bool dir_look_at_manifest(const char *dir, const char *job, uint64_t generation,
                                 uint64_t round, bool *ret_is)
{
    struct manifest *manifest = NULL;

    if (shard_manifest_read(dir, &manifest, NULL) != MUSTER_OK)
        return false;
    *ret_is = strcmp(manifest->job, job) == 0 && manifest->generation == generation &&
              manifest->round == round;
    manifest_destroy(&manifest);
    return true;
}

enum muster_status dir_look_round(const char *dir, const char *job, uint64_t generation,
                                  uint64_t round, bool *ret_is, struct muster_error *err)
{
    struct dir_claim claim;
    struct muster_error why = {0};
    enum muster_status status = dir_claim_read(dir, &claim, &why);

    *ret_is = status == MUSTER_OK && dir_is_of(&claim, job, generation, round);
    if (status == MUSTER_OK ||
        ((status == MUSTER_E_NOT_FOUND || status == MUSTER_E_CORRUPT) &&
         dir_look_at_manifest(dir, job, generation, round, ret_is)) ||
        status == MUSTER_E_NOT_FOUND)
        return MUSTER_OK;
    return error_pass(err, status, &why);
}

bool dir_is_round(const char *dir, const char *job, uint64_t generation, uint64_t round)
{
    bool is = false;

    return dir_look_round(dir, job, generation, round, &is, NULL) == MUSTER_OK && is;
}

bool dir_round_of(const char *dir, const char *job, uint64_t *ret_generation, uint64_t *ret_round)
{
    struct dir_claim claim;

    if (dir_claim_read(dir, &claim, NULL) != MUSTER_OK || strcmp(claim.job, job) != 0)
        return false;
    *ret_generation = claim.generation, *ret_round = claim.round;
    return true;
}

/* Out of sight by one rename, so that a writer that still runs cannot add to what is removed. */
static enum muster_status dir_remove_by_trash(const char *muster, const char *path,
                                              uint64_t generation, uint64_t round,
                                              struct muster_error *err)
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

/* Whether a round's directory may go: it has no manifest, and its ROUND file, if it has one, names
 * this life of it. A directory that cannot be looked at is no answer. */
static enum muster_status dir_may_remove(const char *path, const struct dir_claim *ours,
                                         bool *ret_claimed, struct muster_error *err)
{
    char manifest[FS_PATH_MAX];
    struct dir_claim claim;
    struct muster_error why = {0};
    bool committed = false;
    enum muster_status status = fs_path(manifest, err, "%s/" MANIFEST_FILE_NAME, path);

    if (status == MUSTER_OK)
        status = fs_look(manifest, &committed, err);
    if (status != MUSTER_OK)
        return status;
    status = dir_claim_read(path, &claim, &why);
    if (status != MUSTER_OK && status != MUSTER_E_NOT_FOUND && status != MUSTER_E_CORRUPT)
        return error_pass(err, status, &why);
    *ret_claimed = status == MUSTER_OK;
    if (!committed &&
        (status == MUSTER_E_NOT_FOUND ||
         (status == MUSTER_OK && dir_is_of(&claim, ours->job, ours->generation, ours->round) &&
          (ours->nonce == 0 || claim.nonce == ours->nonce))))
        return MUSTER_OK;
    return error_set(err, MUSTER_E_EXISTS, "the round directory %.600s is kept: %s", path,
                     committed ? "it has a manifest, so it was committed"
                     : status == MUSTER_E_CORRUPT
                         ? "its ROUND file is damaged"
                         : "it belongs to another job or life of this round");
}

enum muster_status dir_remove_round(const char *root, const char *job, uint64_t generation,
                                    uint64_t round, uint64_t nonce, struct muster_error *err)
{
    struct dir_claim ours = {.generation = generation, .round = round, .nonce = nonce};
    char muster[FS_PATH_MAX];
    char path[FS_PATH_MAX];
    bool there = false, claimed = false;
    enum muster_status status = dir_muster_path(root, muster, err);

    snprintf(ours.job, sizeof ours.job, "%s", job);
    if (status == MUSTER_OK)
        status = dir_round_path(root, generation, round, path, err);
    if (status == MUSTER_OK)
        status = fs_look(path, &there, err);
    if (status == MUSTER_OK && there)
        status = dir_may_remove(path, &ours, &claimed, err);
    if (status != MUSTER_OK || !there)
        return status;
    if (claimed)
        return dir_remove_by_trash(muster, path, generation, round, err);
    /* Without ROUND its maker died between mkdir and the claim: rmdir takes it only if empty. */
    if (rmdir(path) == 0 || errno == ENOENT)
        return MUSTER_OK;
    return fs_fail(err, MUSTER_E_IO, errno, "remove the round directory", path);
}
