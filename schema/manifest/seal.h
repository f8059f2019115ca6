/* seal - the last member of manifest.json: the checksum of all bytes before it.
 * Owns: its form, one and no other, so that no changed bit of it can be taken for a text without
 * one:
 *
 *     ,\n "checksum": "xxh3-128:…32 digits…"\n}
 *
 * Never: what the text means. */
#ifndef SCHEMA_SEAL_H
#define SCHEMA_SEAL_H

#include "schema/manifest/manifest.h"

#define SEAL_KEY "checksum"
#define SEAL_BEGIN ",\n \"" SEAL_KEY "\": \""
#define SEAL_END "\"\n}"
#define SEAL_SUM_SIZE (sizeof MANIFEST_CHECKSUM_PREFIX + 32) /* with the final NUL */
#define SEAL_BYTES (sizeof SEAL_BEGIN + SEAL_SUM_SIZE + sizeof SEAL_END - 3)

/* The seal of a text that lacks its last line break and brace; with a final NUL. */
void seal_make(const char *text, size_t size, char ret_seal[SEAL_BYTES + 1]);

struct seal; /* of a text that comes in pieces */

struct seal *seal_create(void); /* NULL: no memory */
void seal_feed(struct seal *seal, const char *text, size_t size);
bool seal_is_there(const struct seal *seal); /* the text so far ends with one, right or wrong */
bool seal_is_right(const struct seal *seal);
void seal_destroy(struct seal **seal); /* NULL-safe */

#endif
