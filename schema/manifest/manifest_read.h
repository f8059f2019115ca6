/* manifest_read - manifest.json from text that comes in pieces: the broker reads one of 100,000
 * files between other work. Owns: the text that is not understood yet, at most one shard's; what it
 * gives are a manifest's rules. */
#ifndef SCHEMA_MANIFEST_READ_H
#define SCHEMA_MANIFEST_READ_H

#include "schema/manifest/manifest.h"

#define MANIFEST_SHARD_BYTES_MAX \
    ((size_t)4 << 20) /* of its text: FILES_SHARD_MAX times 1 KiB, of which 255 are a path */
#define MANIFEST_HEAD_BYTES_MAX \
    ((size_t)1 << 20) /* metrics and custom metadata, each byte escaped: 150 KB */

struct manifest_reader;

struct manifest_reader *manifest_reader_create(void); /* NULL: no memory */
/* The next piece. Errors are told at the end. */
void manifest_reader_feed(struct manifest_reader *reader, const char *text, size_t size);
/* As manifest_parse; the reader is gone after it. */
enum muster_status manifest_reader_end(struct manifest_reader **reader,
                                       struct manifest **ret_manifest, struct muster_error *err);
void manifest_reader_destroy(struct manifest_reader **reader); /* NULL-safe */

#endif
