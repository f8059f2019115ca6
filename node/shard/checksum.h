/* checksum - of streams and files, as text: a prefix and hexadecimal digits.
 * Mostly "xxh3-128:" + 32 digits.
 * XXH3-128 because it runs at memory speed, so that a checksum costs a save nothing beside the
 * disk. With 128 bits an accidental collision among all checkpoints ever written is out of the
 * question. It finds damage, not malice: whoever may write the directory may also write manifests.
 * A broker that signs manifests asks for "blake2b-256:" + 64 digits, which nobody can forge; one
 * core hashes some 800 MB a second so.
 * The digits are the canonical form, what `xxhsum -H2` prints. */
#ifndef NODE_SHARD_CHECKSUM_H
#define NODE_SHARD_CHECKSUM_H

#include "schema/manifest/manifest.h" /* MANIFEST_CHECKSUM_SIZE: the text with its NUL */
#include "schema/status.h"

#include <stddef.h>
#include <stdint.h>

struct checksum; /* a running sum; one thread at a time */

enum checksum_kind { CHECKSUM_XXH3, CHECKSUM_STRONG };
enum checksum_kind checksum_kind_of(const char *text);

struct checksum *checksum_create(enum checksum_kind kind); /* NULL: no memory */
void checksum_destroy(struct checksum **sum);
void checksum_reset(struct checksum *sum);
void checksum_update(struct checksum *sum, const void *data, size_t size);
/* The sum of all so far; more may follow. */
void checksum_text(const struct checksum *sum, char ret_text[MANIFEST_CHECKSUM_SIZE]);

/* Of kind XXH3, as it is: the canonical bytes without prefix and digits. */
#define CHECKSUM_RAW_BYTES 16
void checksum_bytes(const struct checksum *sum, unsigned char ret_sum[CHECKSUM_RAW_BYTES]);
/* The same of one block of memory. */
void checksum_raw(const void *data, size_t size, unsigned char ret_sum[CHECKSUM_RAW_BYTES]);

/* Reads a file from its beginning to its end, FS_CHUNK_BYTES at a time. path is for errors only.
 * E_IO (with ECANCELED: the watcher, which may be NULL, broke it off), E_NOMEM. */
struct fs_watcher;
enum muster_status checksum_fd(int fd, const char *path, enum checksum_kind kind,
                               const struct fs_watcher *watcher, uint64_t *ret_bytes,
                               char ret_text[MANIFEST_CHECKSUM_SIZE], struct muster_error *err);
/* The same with open; also E_NOT_FOUND, and E_CORRUPT for what is not a regular file. */
enum muster_status checksum_file(const char *path, enum checksum_kind kind,
                                 const struct fs_watcher *watcher, uint64_t *ret_bytes,
                                 char ret_text[MANIFEST_CHECKSUM_SIZE], struct muster_error *err);

#endif
