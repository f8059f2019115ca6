/* manifest_text - manifest.json as text, piece by piece: the broker renders one of 100,000 files
 * between other work. Owns: the text so far. Equal pieces give equal bytes, those of
 * manifest_render. */
#ifndef SCHEMA_MANIFEST_TEXT_H
#define SCHEMA_MANIFEST_TEXT_H

#include "schema/manifest/manifest.h"

struct manifest_text;
struct sign_key;

/* Its shards are not looked at, and told below. Borrows nothing beyond the call. E_ARGUMENT: it
 * breaks a rule. E_NOMEM. */
enum muster_status manifest_text_begin(const struct manifest *head, struct manifest_text **ret_text,
                                       struct muster_error *err);
/* Behind begin: it gets the signature of this key, if all its files have cryptographic checksums.
 * Borrows the key until the end. E_NOMEM. */
enum muster_status manifest_text_sign(struct manifest_text *text, const struct sign_key *key,
                                      struct muster_error *err);
/* In ascending order of rank; then its files, in ascending order of path. The same errors. */
enum muster_status manifest_text_shard(struct manifest_text *text, uint64_t rank,
                                       uint64_t incarnation, struct muster_error *err);
enum muster_status manifest_text_file(struct manifest_text *text, const struct wire_file *file,
                                      struct muster_error *err);
/* Returns owned, free with free(); *ret_size is without the final NUL. */
enum muster_status manifest_text_end(struct manifest_text *text, char **ret_text, size_t *ret_size,
                                     struct muster_error *err);
void manifest_text_destroy(struct manifest_text **text); /* NULL-safe */

#endif
