/* sign - see sign.h. */
#include "schema/manifest/sign.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#define TAIL_BYTES (SIGN_BYTES + SEAL_BYTES)
#define PUBLIC_AT (sizeof SIGN_BEGIN - 1)
#define DIGITS_AT (PUBLIC_AT + SIGN_PUBLIC_TEXT + 1)

struct sign {
    crypto_sign_state state; /* of all but what is held back */
    char held[TAIL_BYTES];   /* the last bytes: signature and seal, if the text ends here */
    size_t held_size;
};

static void sign_digits(const unsigned char *bytes, size_t size, char *ret_text)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < size; i++) {
        ret_text[2 * i] = digits[bytes[i] >> 4];
        ret_text[2 * i + 1] = digits[bytes[i] & 15];
    }
}

static bool sign_are_digits(const char *text, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (text[i] == '\0' || strchr("0123456789abcdef", text[i]) == NULL)
            return false;
    return true;
}

static void sign_bytes(const char *digits, size_t size, unsigned char *ret_bytes)
{
    for (size_t i = 0; i < size; i++) {
        const char high = digits[2 * i], low = digits[2 * i + 1];

        ret_bytes[i] = (unsigned char)((high <= '9' ? high - '0' : high - 'a' + 10) << 4 |
                                       (low <= '9' ? low - '0' : low - 'a' + 10));
    }
}

bool sign_seed_read(const char *text, unsigned char ret_seed[SIGN_SEED_BYTES])
{
    if (!sign_public_ok(text)) /* as many digits */
        return false;
    sign_bytes(text, SIGN_SEED_BYTES, ret_seed);
    return true;
}

void sign_seed_write(const unsigned char seed[SIGN_SEED_BYTES], char ret_text[SIGN_SEED_TEXT + 1])
{
    sign_digits(seed, SIGN_SEED_BYTES, ret_text);
    ret_text[SIGN_SEED_TEXT] = '\0';
}

void sign_key_make(const unsigned char seed[SIGN_SEED_BYTES], struct sign_key *ret_key)
{
    unsigned char public_key[crypto_sign_PUBLICKEYBYTES];

    crypto_sign_seed_keypair(public_key, ret_key->secret, seed);
    sign_digits(public_key, sizeof public_key, ret_key->public_text);
    ret_key->public_text[SIGN_PUBLIC_TEXT] = '\0';
}

bool sign_public_ok(const char *text)
{
    return strlen(text) == SIGN_PUBLIC_TEXT && sign_are_digits(text, SIGN_PUBLIC_TEXT);
}

struct sign *sign_create(void)
{
    struct sign *sign = calloc(1, sizeof *sign);

    if (sign != NULL)
        crypto_sign_init(&sign->state);
    return sign;
}

void sign_destroy(struct sign **sign)
{
    free(*sign);
    *sign = NULL;
}

void sign_add(struct sign *sign, const char *text, size_t size)
{
    crypto_sign_update(&sign->state, (const unsigned char *)text, size);
}

void sign_make(struct sign *sign, const struct sign_key *key, char ret_member[SIGN_BYTES + 1])
{
    unsigned char signature[crypto_sign_BYTES];

    crypto_sign_final_create(&sign->state, signature, NULL, key->secret);
    memcpy(ret_member, SIGN_BEGIN, PUBLIC_AT);
    memcpy(ret_member + PUBLIC_AT, key->public_text, SIGN_PUBLIC_TEXT);
    ret_member[DIGITS_AT - 1] = ':';
    sign_digits(signature, sizeof signature, ret_member + DIGITS_AT);
    ret_member[SIGN_BYTES - 1] = '"';
    ret_member[SIGN_BYTES] = '\0';
}

void sign_feed(struct sign *sign, const char *text, size_t size)
{
    const size_t last = size < TAIL_BYTES ? size : TAIL_BYTES; /* of text, to be held */
    const size_t kept = TAIL_BYTES - last < sign->held_size ? TAIL_BYTES - last : sign->held_size;
    const size_t out = sign->held_size - kept;

    sign_add(sign, sign->held, out);
    sign_add(sign, text, size - last);
    memmove(sign->held, sign->held + out, kept);
    memcpy(sign->held + kept, text + size - last, last);
    sign->held_size = kept + last;
}

bool sign_is_there(const struct sign *sign)
{
    return sign->held_size == TAIL_BYTES && memcmp(sign->held, SIGN_BEGIN, PUBLIC_AT) == 0 &&
           sign_are_digits(sign->held + PUBLIC_AT, SIGN_PUBLIC_TEXT) &&
           sign->held[DIGITS_AT - 1] == ':' &&
           sign_are_digits(sign->held + DIGITS_AT, SIGN_DIGITS) &&
           sign->held[SIGN_BYTES - 1] == '"';
}

void sign_signer(const struct sign *sign, char ret_public[SIGN_PUBLIC_TEXT + 1])
{
    memset(ret_public, 0, SIGN_PUBLIC_TEXT + 1);
    if (sign_is_there(sign))
        memcpy(ret_public, sign->held + PUBLIC_AT, SIGN_PUBLIC_TEXT);
}

bool sign_is_right(const struct sign *sign)
{
    crypto_sign_state state = sign->state;
    unsigned char public_key[crypto_sign_PUBLICKEYBYTES], signature[crypto_sign_BYTES];

    if (!sign_is_there(sign))
        return false;
    sign_bytes(sign->held + PUBLIC_AT, sizeof public_key, public_key);
    sign_bytes(sign->held + DIGITS_AT, sizeof signature, signature);
    return crypto_sign_final_verify(&state, signature, public_key) == 0;
}
