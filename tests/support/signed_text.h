/* signed_text - manifests with a signature, and what somebody makes of them who has no key but can
 * write the directory: each change gets a checksum of its own, so that only the signature tells. */
#ifndef TESTS_SUPPORT_SIGNED_TEXT_H
#define TESTS_SUPPORT_SIGNED_TEXT_H

#include "schema/manifest/manifest.h"
#include "schema/manifest/sign.h"

#define STRONG_SUM "blake2b-256:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

/* Of the one broker (1), or of another. */
struct sign_key signed_key(unsigned char number);

/* The manifest with its signature; shards by rank, files by path. Returned owned. Ends the process
 * if it cannot. */
char *signed_text(const struct manifest *manifest, const struct sign_key *key, size_t *ret_size);

/* Of one rank's checkpoint of step 7, round 5. key NULL: it has no signature. Owned. */
char *signed_text_of_job(const char *job, const struct sign_key *key, size_t *ret_size);

/* The text without its signature, or with one of which `cut` digits are missing. Owned. */
char *signed_text_without(const char *text, size_t *ret_size);
char *signed_text_cut(const char *text, size_t cut, size_t *ret_size);
/* Puts the checksum right. */
void signed_text_reseal(char *text, size_t size);

#endif
