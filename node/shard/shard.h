/* shard - one rank's part of a checkpoint: written into a round's directory, and restored from a
 * checkpoint.
 * Owns: what the rank writes under its own name (rank and incarnation), until it is reported.
 * Never: another rank's files, the manifest's writing, the decision that a checkpoint is good.
 * Invariants: whatever is reported in struct shard_files is durable, with its directory; whatever
 * could not be written whole is gone. All calls block for the disk; they read or write the state's
 * memory, so no step may run meanwhile. */
#ifndef NODE_SHARD_SHARD_H
#define NODE_SHARD_SHARD_H

#include "node/shard/checksum.h"
#include "node/shard/dir.h"
#include "node/shard/safetensors.h"
#include "node/shard/state.h"

/* Facts for the shard file's own metadata, so that a file found alone tells what it is. */
struct shard_facts {
    const char *job;
    uint64_t generation;
    uint64_t round;
    int64_t step;
    enum wire_layout layout;
    uint64_t rank;
    uint64_t incarnation;
    uint64_t world_size;
    int64_t total_run_calls;
    int64_t epoch; /* this and the next two: -1 = not known */
    int64_t step_in_epoch;
    int64_t data_position;
    enum checksum_kind checksum; /* not a fact of the file: what the manifest is to have of it */
};

/* What SAVED reports. Paths are relative to the round's directory. */
struct shard_files {
    struct wire_file *files;
    size_t count;
    uint64_t bytes; /* the sum */
};
void shard_files_clear(struct shard_files *files); /* NULL-safe, idempotent */

/* The default save: the state into "shard-<rank>-<incarnation>.safetensors". On success *ret_files
 * is owned by the caller: shard_files_clear. watch may be NULL.
 * E_SAVE: the disk. E_EXISTS: this incarnation has written this round before. E_NOMEM. */
enum muster_status shard_save_state(const char *round_dir, const struct shard_facts *facts,
                                    const struct muster_state *state,
                                    struct safetensors_watch *watch, struct shard_files *ret_files,
                                    struct muster_error *err);

/* The user's own save_fn: begin makes "shard-<rank>-<incarnation>/" for it to write into; seal,
 * after it returned, finds what it wrote, makes it durable and sums it up. No file at all is legal
 * (the job writes elsewhere). Links and special files, more than FILES_SHARD_MAX files, and paths
 * that no manifest can hold are refused (E_UNSUPPORTED), and the directory is removed. watch may be
 * NULL. */
enum muster_status shard_dir_begin(const char *round_dir, uint64_t rank, uint64_t incarnation,
                                   char ret_dir[FS_PATH_MAX], struct muster_error *err);
enum muster_status shard_dir_seal(const char *round_dir, uint64_t rank, uint64_t incarnation,
                                  struct safetensors_watch *watch, enum checksum_kind kind,
                                  struct shard_files *ret_files, struct muster_error *err);

/* Removes the own shard, file or directory (save_fn failed). Never another's. */
void shard_discard(const char *round_dir, uint64_t rank, uint64_t incarnation);

/* The files that save_fn wrote: this rank verifies those that it is the one to verify. */
struct shard_found {
    int64_t step;
    const char *dir; /* of the rank with this number; NULL: fewer ranks saved it */
    const char *checkpoint_dir;
    uint64_t world_size; /* that saved it */
};
typedef int shard_restore_fn(void *arg, const struct shard_found *found); /* non-zero = failed */

struct shard_restore {
    const char *checkpoint_path; /* the committed directory, as dir_commit returned it */
    const char *job; /* NULL: for shard_reshard only, where a missing name is E_NOT_FOUND */
    enum wire_layout layout;
    uint64_t rank;
    uint64_t world_size;
    int64_t step;       /* the step that the checkpoint must have; -1 = any */
    uint64_t round;     /* the round that it must be of; 0 = any */
    const char *signer; /* the key that it must be signed by; NULL: by none */
    bool wholes; /* sharded: an entry that is not split takes the whole of one that is; for readers
                  */
    bool own_parts; /* one shard is read, and such an entry takes the part that this shard has */
    const struct muster_state *state; /* either this ... */
    shard_restore_fn *restore_fn;     /* ... or this */
    struct interrupt *interrupt;      /* NULL: nobody is asked whether to break it off */
    bool any_world_size;              /* restore_fn reads what any number of ranks saved */
    void *arg;
    char *ret_left; /* may be NULL; else STATE_NAME_MAX + 1 bytes for a tensor that was saved and
                       that `state` has no entry for, "" = none: it was not restored, and what is
                       saved next has it no more */
};

/* Restores this rank's part: `replicated` the one shard there is, whatever the rank and the world;
 * `sharded` the rank's own, or, if another number of ranks saved it or its tensors are split
 * otherwise, its parts of all (shard_reshard.h). Every file's size and checksum is checked against
 * the manifest. *ret_manifest (may be NULL; else owned, manifest_destroy) has epoch, position and
 * run calls. E_NOT_FOUND: no such checkpoint. E_RESTORE: unfinished, another step, kind, tensor; or
 * restore_fn failed (its code in err). E_LAYOUT, E_JOB: not this one's. E_CORRUPT: damage, with the
 * file. E_SIGNATURE: not signed by `signer`. E_INTERRUPTED: `interrupt` said so. E_IO, E_NOMEM. The
 * state's memory is as before, see safetensors_restore. */
enum muster_status shard_restore(const struct shard_restore *request,
                                 struct manifest **ret_manifest, struct muster_error *err);

/* Re-reads every file of one shard against the manifest; the first bad one is named. */
enum muster_status shard_verify(const char *checkpoint_path, const struct manifest_shard *shard,
                                struct muster_error *err);

/* *ret_is_dir: save_fn wrote the shard; else it is one safetensors file. E_CORRUPT: it is neither,
 * or its names are not this shard's, so a manifest cannot send a rank to another's files. */
enum muster_status shard_kind(const struct manifest_shard *shard, bool *ret_is_dir,
                              struct muster_error *err);
/* Turns E_NOT_FOUND into E_CORRUPT: a file that the manifest names and the disk lacks is damage. */
enum muster_status shard_damage(enum muster_status status, struct muster_error *err);

/* Reads and parses <checkpoint_path>/manifest.json. Returned owned. E_NOT_FOUND: no such directory.
 * E_RESTORE: it has no manifest, so it was never finished. E_CORRUPT, E_VERSION, E_IO, E_NOMEM.
 * The signature is not checked: manifest_check_signer does that. */
enum muster_status shard_manifest_read(const char *checkpoint_path, struct manifest **ret_manifest,
                                       struct muster_error *err);
/* The same, and checks the signature. E_SIGNATURE: it is not signer's. signer NULL: none is needed.
 */
enum muster_status shard_manifest_signed(const char *checkpoint_path, const char *signer,
                                         struct manifest **ret_manifest, struct muster_error *err);
/* Its text as it is there, owned (free). The same failures, but for those of the parse. */
enum muster_status shard_manifest_text(const char *checkpoint_path, char **ret_text,
                                       size_t *ret_size, struct muster_error *err);

#endif
