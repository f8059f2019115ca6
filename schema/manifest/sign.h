/* sign - the broker's signature of manifest.json: the member before its seal.
 * Owns: its form, one and no other:
 *
 *     ,\n "signature": "ed25519:…64 digits: the signer's public key…:…128 digits…"
 *
 * It is Ed25519ph (RFC 8032, by libsodium) of all bytes of the text before it, so there is nothing
 * to be brought into a canonical form. Files are covered by their checksums, if these are
 * cryptographic: no other manifest is signed.
 * Pure: keys are made from a seed that the caller has. */
#ifndef SCHEMA_SIGN_H
#define SCHEMA_SIGN_H

#include "schema/manifest/seal.h"

#define SIGN_SEED_BYTES 32
#define SIGN_SECRET_BYTES 64
#define SIGN_PUBLIC_TEXT 64 /* hexadecimal digits of a public key */
#define SIGN_DIGITS 128     /* ... of a signature */

#define SIGN_NAME "signature"
#define SIGN_BEGIN ",\n \"" SIGN_NAME "\": \"ed25519:"
#define SIGN_BYTES (sizeof SIGN_BEGIN - 1 + SIGN_PUBLIC_TEXT + 1 + SIGN_DIGITS + 1)

struct sign_key {
    unsigned char secret[SIGN_SECRET_BYTES]; /* its holder wipes it */
    char public_text[SIGN_PUBLIC_TEXT + 1];
};

#define SIGN_SEED_TEXT 64 /* a seed as its file has it: hexadecimal digits */

bool sign_seed_read(const char *text, unsigned char ret_seed[SIGN_SEED_BYTES]);
void sign_seed_write(const unsigned char seed[SIGN_SEED_BYTES], char ret_text[SIGN_SEED_TEXT + 1]);
void sign_key_make(const unsigned char seed[SIGN_SEED_BYTES], struct sign_key *ret_key);
bool sign_public_ok(const char *text); /* 64 lower-case hexadecimal digits */

struct sign; /* of a text that comes in pieces */

struct sign *sign_create(void); /* NULL: no memory */
void sign_destroy(struct sign **sign);

/* The writer's side: all bytes of the text, then its member, with a final NUL. */
void sign_add(struct sign *sign, const char *text, size_t size);
void sign_make(struct sign *sign, const struct sign_key *key, char ret_member[SIGN_BYTES + 1]);

/* The reader's side: the whole text, with signature and seal. */
void sign_feed(struct sign *sign, const char *text, size_t size);
bool sign_is_there(const struct sign *sign); /* in its form, right or wrong */
/* The signer that it names; "" if there is none. */
void sign_signer(const struct sign *sign, char ret_public[SIGN_PUBLIC_TEXT + 1]);
bool sign_is_right(const struct sign *sign); /* of the signer that it names */

#endif
