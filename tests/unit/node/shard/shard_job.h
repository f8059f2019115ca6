/* shard_job - a sharded job of three ranks and its checkpoint directory, in one process.
 * Owns: the directory, the state, the manifest of the round under way. Failures end the test. */
#ifndef TESTS_UNIT_SHARD_JOB_H
#define TESTS_UNIT_SHARD_JOB_H

#include <muster/checkpoint.h>

#include "node/shard/dir.h"
#include "node/shard/shard.h"
#include "tests/support/scratch.h"
#include "tests/support/signed_text.h"

#include <stddef.h>
#include <stdint.h>

#define JOB "words"
#define NONCE 0xfeedu
#define WORLD 3

/* A sharded job of three ranks at step 12, in one process: rank r's state is the number r. */
struct shard_job {
    char dir[SCRATCH_PATH_MAX];
    char root[SCRATCH_PATH_MAX];
    char round_dir[FS_PATH_MAX];
    struct shard_files files[WORLD];
    struct manifest_shard shards[WORLD];
    struct manifest manifest;
    struct muster_state *state;
    int64_t value;
    bool same;                   /* each rank's state is the number 5 */
    enum checksum_kind checksum; /* of files */
    const struct sign_key *key;  /* NULL: its manifests get no signature */
    char *text;
    size_t text_size;
    char path[FS_PATH_MAX];
};

/* setup and teardown of a test; *state is a struct shard_job. */
int shard_job_make(void **state);
int shard_job_drop(void **state);

uint64_t shard_job_incarnation(uint64_t rank);
void shard_job_must(enum muster_status status, const struct muster_error *err);
void shard_job_save_rank(struct shard_job *f, uint64_t rank); /* into f->round_dir */
void shard_job_render(struct shard_job *f);                   /* the manifest, to f->text */
/* The whole way to a round that only wants its commit. */
void shard_job_write_round(struct shard_job *f);
enum muster_status shard_job_commit(struct shard_job *f, struct muster_error *err);
struct shard_restore shard_job_request(struct shard_job *f, uint64_t rank);
void shard_job_assert_restores(struct shard_job *f, uint64_t rank, int64_t value);

#endif
