/* manifest - what manifest.json says of one committed checkpoint: a struct and its JSON form.
 * Owns: the format, its check, render and parse. The broker renders it from rows, the commit's
 * writer puts it beside the shards, restore and import read it back.
 * Never: I/O, clock, global state. Text from outside is checked for size, type, range, paths and
 * duplicates before a caller sees any of it.
 *
 * {"muster_manifest": 1, "job": "words", "generation": 2, "round": 7, "step": 1200,
 *  "layout": "sharded", "world_size": 2, "epoch": 3, "step_in_epoch": 0, "data_position": -1,
 *  "total_run_calls": 1200, "created_unix_ms": 1700000000000, "cause": "termination",
 *  "shards": [{"rank": 0, "incarnation": "00112233445566ff",
 *              "files": [{"path": "shard-00000-00112233445566ff.safetensors", "bytes": 4096,
 *                         "checksum": "xxh3-128:…32 digits…"}]}, …],
 *  "metrics": {"loss": 0.5}, "custom": {"anything": ["of", "the", "user's"]}, "resumed_step": 800,
 *  "database": "…16 digits…",
 *  "signature": "ed25519:…64 digits…:…128 digits…", "checksum": "xxh3-128:…32 digits…"}
 *
 * metrics and custom are there only if the save told them. resumed_step is where its launch began,
 * if a broker wrote it. Checkpoints that earlier launches saved beyond that count no more. database
 * is the one whose rows it was made from. A copy of that database gets this manifest back without
 * an operator.
 *
 * The checksum is of all bytes before it (seal.h), and so is the signature (sign.h), if the broker
 * signs. Then files' checksums are "blake2b-256:…64 digits…". Manifests of older musters have
 * neither, and no keys but those above. Paths are relative to the checkpoint's directory. In a text
 * with a checksum, keys that a reader does not know are ignored; a change that a reader must
 * understand raises the number of "muster_manifest". */
#ifndef SCHEMA_MANIFEST_H
#define SCHEMA_MANIFEST_H

#include "schema/limits.h"
#include "schema/status.h"
#include "schema/wire/wire.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MANIFEST_FORMAT 1
#define MANIFEST_FILE_NAME "manifest.json"
#define MANIFEST_CHECKSUM_PREFIX "xxh3-128:"
#define MANIFEST_STRONG_PREFIX "blake2b-256:" /* what a signature can stand for */
#define MANIFEST_CHECKSUM_SIZE                                         \
    (sizeof MANIFEST_STRONG_PREFIX + 64) /* either, with the final NUL \
                                          */

/* Of generations, rounds and steps: a job that goes on from there has as much room again below
 * 2^62, up to which the broker's rows and the nodes' messages go. */
#define MANIFEST_NUMBER_MAX ((int64_t)1 << 61)

struct manifest_shard {
    uint64_t rank;
    uint64_t incarnation;
    const struct wire_file *files; /* none: the job's own save_fn wrote no file here */
    size_t file_count;
};

struct manifest {
    const char *job;
    uint64_t generation;
    uint64_t round;
    int64_t step;
    enum wire_layout layout;
    uint64_t world_size;
    int64_t epoch;         /* this and the next two: -1 = not known */
    int64_t step_in_epoch; /* the batch inside the epoch */
    int64_t data_position;
    int64_t total_run_calls;
    int64_t created_unix_ms;
    const char *cause;   /* wire_cause_name() */
    const char *metrics; /* metrics.h; both as JSON text, NULL or "" = none */
    const char *custom;
    bool resumed_known;
    int64_t resumed_step;
    uint64_t database; /* the one whose rows it was made from; 0 = not known */
    bool sealed;       /* of a parsed one: its text carried its checksum; rendered ones always do */
    const char *signer; /* of a parsed one: the key that its signature names; NULL: it has none */
    const struct manifest_shard *shards;
    size_t shard_count;
};

/* Renders. The order of shards and files in the input does not matter: equal content gives equal
 * bytes, so that a repair after a crash writes what was written before. Returns owned, free with
 * free(); *ret_size is without the final NUL. E_ARGUMENT: the manifest breaks a rule (err says
 * which). E_NOMEM. */
enum muster_status manifest_render(const struct manifest *manifest, char **ret_text,
                                   size_t *ret_size, struct muster_error *err);

/* Parses hostile text. Returns owned, free with manifest_destroy; all it points to lives as long.
 * Shards are sorted by rank, files by path. E_CORRUPT: what is wrong. E_VERSION: a newer format.
 * E_NOMEM. */
enum muster_status manifest_parse(const char *text, size_t size, struct manifest **ret_manifest,
                                  struct muster_error *err);
void manifest_destroy(struct manifest **manifest); /* only of manifest_parse; NULL-safe */

/* The shard of a rank, or NULL. */
const struct manifest_shard *manifest_shard_of(const struct manifest *manifest, uint64_t rank);

/* Is it by this key, all of it and its files? NULL: no signature is asked for. Of a parsed one.
 * E_SIGNATURE: it has none, another key's, or one that cannot cover its files. E_CORRUPT: it was
 * changed since. */
enum muster_status manifest_check_signer(const struct manifest *manifest, const char *signer,
                                         struct muster_error *err);

/* A prefix, and 32 or 64 lower-case hexadecimal digits. */
bool manifest_checksum_ok(const char *text);
bool manifest_checksum_is_strong(const char *text); /* of one that is ok: it is cryptographic */
void manifest_checksum_text(const unsigned char sum[16], char ret_text[MANIFEST_CHECKSUM_SIZE]);
void manifest_strong_text(const unsigned char sum[32], char ret_text[MANIFEST_CHECKSUM_SIZE]);

/* A path that stays inside its directory: relative, no empty, "." or ".." part, no control
 * character or backslash, at most FILE_PATH_MAX bytes. */
bool manifest_path_ok(const char *path);

#endif
