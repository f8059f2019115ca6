/* dir - the directory that a job's checkpoints live in, and its discipline.
 *
 *   <root>/.muster/JOB              whose directory this is: "<job>\n"
 *   <root>/.muster/NUMBER           by which it is known: 16 hexadecimal digits, see dir_number
 *   <root>/.muster/LONE             of a process without a broker: see node/local/local_left.h
 *   <root>/.muster/tmp-*, trash-*   on their way in or out; nobody reads them
 *   <root>/.muster/<g>-<r>/         round r of generation g while it is being written; in it:
 *     ROUND                         which life of which round writes here (struct dir_claim), and a
 *                                   checksum of that
 *     shard-<rank>-<incarnation>.safetensors   one rank's shard, or
 *     shard-<rank>-<incarnation>/…             what a save_fn wrote
 *   <root>/<step>/                  committed: the round's directory, with manifest.json in it
 *   <root>/<step>.<g>-<r>/          the same, when another round has the step's name
 *
 * A job may name them otherwise (struct dir_names). A round is found by its ROUND file.
 *
 * Owns: these names and the order of the steps that give them. The ranks of a round share one
 * directory (a network file system, or one host), and any of them may die at any point.
 * Never: a shard's content; a decision: rounds are removed only when the caller says that an abort
 * was journaled, and a directory with a manifest in it not even then.
 * Invariant: a directory outside .muster whose manifest.json parses is a whole, durable checkpoint.
 * A file that another process made counts as durable once this one has synced it, too: that process
 * may have died before its fsync. All calls block for the disk; none keeps a descriptor or memory.
 */
#ifndef NODE_SHARD_DIR_H
#define NODE_SHARD_DIR_H

#include "node/shard/fs.h"
#include "schema/manifest/manifest.h"

#define DIR_NAME_SIZE 112 /* "<name>.<g>-<r>" or "shard-<rank>-<incarnation>" with its NUL */
#define DIR_PREFIX_MAX 31
#define DIR_PADDING_MAX 18 /* digits */
#define DIR_SHARD_SUFFIX ".safetensors"
#define DIR_OWNER_BYTES_MAX 1024 /* JOB, NUMBER and ROUND hold a name and three numbers at most */

/* Which of them this call made: of what was there, or what another rank made first, neither. */
struct dir_made {
    bool root, muster;
    uint64_t number; /* of the directory as it was prepared */
};
/* Creates root with its parents and .muster, proves that both can be written, claims the directory
 * for the job, and clears what a crash left under way (tmp-* older than an hour, trash-*).
 * E_IO: path and cause. E_JOB: it is another job's, both named, and how to have it if nothing but
 * that claim is in it. ret_made (may be NULL) is filled in in any case. */
enum muster_status dir_prepare(const char *root, const char *job, struct dir_made *ret_made,
                               struct muster_error *err);
/* The random number that it got when it was first claimed by a library that gives one: two hosts
 * that see different directories under one path see different numbers. 0: it has none, or it cannot
 * be read. */
uint64_t dir_number(const char *root);

/* For a launch that finds its checkpoints gone: what it made in their place is in the way of a
 * person who returns them. Takes back what dir_prepare made, if nothing else has come into it and
 * its number is still the same: another launch's has another. Best effort; not at all where the
 * file system lends no locks on directories. Ranks that each made a part of it may do so at once,
 * or one after the other in any order. It waits, a second at most, for a rank that prepares the
 * directory just then. */
void dir_take_back(const char *root, const struct dir_made *made);

/* Opens the round's directory for writing; every writer of the round calls it, in any order.
 * nonce comes with the decision and differs between lives of a job's database: wire_round_nonce.
 * E_EXISTS: the directory was left by another life of this round number. E_JOB: by another job.
 * E_SAVE: the disk. */
enum muster_status dir_round_open(const char *root, const char *job, uint64_t generation,
                                  uint64_t round, uint64_t nonce, char ret_path[FS_PATH_MAX],
                                  struct muster_error *err);

/* "<root>/.muster"; E_ARGUMENT: too long. */
enum muster_status dir_muster_path(const char *root, char ret_path[FS_PATH_MAX],
                                   struct muster_error *err);

/* "<root>/.muster/<g>-<r>"; E_ARGUMENT: too long. */
enum muster_status dir_round_path(const char *root, uint64_t generation, uint64_t round,
                                  char ret_path[FS_PATH_MAX], struct muster_error *err);

/* How a job names its checkpoints: "<prefix><step + offset, with leading zeros up to padding>". */
struct dir_names {
    char prefix[DIR_PREFIX_MAX + 1]; /* see dir_prefix_ok */
    int padding;                     /* 0 to DIR_PADDING_MAX */
    int64_t offset;                  /* added to the step: -1 names it by its index */
};
/* Letters, digits, _ and -; it does not end with a digit (14 of "s1" is not 4 of "s11"). "" is
 * good. */
bool dir_prefix_ok(const char *prefix);
/* "<step>", or with taken "<step>.<g>-<r>". names NULL: the plain form. */
void dir_final_name(const struct dir_names *names, int64_t step, uint64_t generation,
                    uint64_t round, bool taken, char ret_name[DIR_NAME_SIZE]);

/* Whether a name is one that dir_final_name gives, and for which step. */
bool dir_name_step(const char *name, const struct dir_names *names, int64_t *ret_step);

/* Reads a decimal number after `before`, and moves on to what follows it. */
bool dir_take_number(const char **at, const char *before, uint64_t *ret_number);

/* Whether a name is one that dir_round_path gives, "<g>-<r>" and nothing else. */
bool dir_round_name(const char *name, uint64_t *ret_generation, uint64_t *ret_round);

/* "shard-<rank, 5 digits>-<incarnation, 16 hexadecimal digits>". */
void dir_shard_name(uint64_t rank, uint64_t incarnation, char ret_name[DIR_NAME_SIZE]);

/* Makes a committed round's directory the checkpoint: manifest in, renamed, all durable. The
 * manifest is the broker's text, and names generation, round and step. May be called again after a
 * crash at any point, also by another process at the same time. The ROUND file tells which round
 * was done already, and the shards' names, which carry the incarnations, tell which life of it.
 * E_CORRUPT: the text is no valid manifest. E_NOT_FOUND: a shard is in neither place, named.
 * E_EXISTS: both names are taken by others. E_IO. names NULL: the plain ones. */
enum muster_status dir_commit_as(const char *root, const struct dir_names *names,
                                 const char *manifest_text, size_t manifest_size,
                                 char ret_path[FS_PATH_MAX], struct muster_error *err);

/* The first half of dir_commit_as, for tests of a crash behind it. */
enum muster_status dir_commit_manifest(const char *root, const struct manifest *manifest,
                                       const char *text, size_t size, struct muster_error *err);

/* The contents of a ROUND file. */
struct dir_claim {
    char job[JOB_NAME_MAX + 1];
    uint64_t generation, round, nonce;
};
/* E_NOT_FOUND: there is none. E_CORRUPT: it is not what was written. E_IO, E_NOMEM. */
enum muster_status dir_claim_read(const char *dir, struct dir_claim *ret_claim,
                                  struct muster_error *err);
/* Whether a directory is that of this round, wherever it was renamed to: by its ROUND file or, if
 * that is lost or damaged, by its manifest. */
bool dir_is_round(const char *dir, const char *job, uint64_t generation, uint64_t round);
/* Which round of the job's a directory is of, by its ROUND file; false: of none, or it cannot be
 * told. */
bool dir_round_of(const char *dir, const char *job, uint64_t *ret_generation, uint64_t *ret_round);
/* dir_is_round where "it is not" has consequences: E_IO or E_CORRUPT when it cannot be told. */
enum muster_status dir_look_round(const char *dir, const char *job, uint64_t generation,
                                  uint64_t round, bool *ret_is, struct muster_error *err);

enum dir_place { DIR_PLACE_NONE, DIR_PLACE_ROUND, DIR_PLACE_FINAL, DIR_PLACE_COUNT };

/* Where the directory of a round is: under its final name, whatever that is, or still in .muster.
 * E_NOT_FOUND: everything was looked at. E_IO: it cannot be told. */
enum muster_status dir_find(const char *root, const char *job, uint64_t generation, uint64_t round,
                            int64_t step, enum dir_place *ret_place, char ret_path[FS_PATH_MAX],
                            struct muster_error *err);

/* Looks through the root for the final directory of a round, by its ROUND file. */
bool dir_scan(const char *root, const char *job, uint64_t generation, uint64_t round,
              char ret_path[FS_PATH_MAX]);

/* Removes the directory of a round whose abort was journaled. Ranks that still write there fail.
 * Several ranks may call it, and it may be gone already. nonce 0: of whatever life, for a later
 * generation that clears up and does not know the members.
 * E_EXISTS: it belongs to another life or job, or has a manifest; it is kept. E_IO. */
enum muster_status dir_remove_round(const char *root, const char *job, uint64_t generation,
                                    uint64_t round, uint64_t nonce, struct muster_error *err);

#endif
