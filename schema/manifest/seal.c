/* seal - see seal.h. */
#include "schema/manifest/seal.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

struct seal {
    XXH3_state_t *state;   /* of all but what is held back */
    char held[SEAL_BYTES]; /* the last bytes: the seal, if the text ends here */
    size_t held_size;
};

static void seal_write(XXH128_hash_t hash, char ret_seal[SEAL_BYTES + 1])
{
    char sum[MANIFEST_CHECKSUM_SIZE];
    XXH128_canonical_t bytes;
    char *at = ret_seal;

    XXH128_canonicalFromHash(&bytes, hash);
    manifest_checksum_text(bytes.digest, sum);
    memcpy(at, SEAL_BEGIN, sizeof SEAL_BEGIN - 1);
    at += sizeof SEAL_BEGIN - 1;
    memcpy(at, sum, SEAL_SUM_SIZE - 1);
    at += SEAL_SUM_SIZE - 1;
    memcpy(at, SEAL_END, sizeof SEAL_END);
}

void seal_make(const char *text, size_t size, char ret_seal[SEAL_BYTES + 1])
{
    seal_write(XXH3_128bits(text, size), ret_seal);
}

struct seal *seal_create(void)
{
    struct seal *seal = calloc(1, sizeof *seal);

    if (seal == NULL)
        return NULL;
    seal->state = XXH3_createState();
    if (seal->state == NULL) {
        free(seal);
        return NULL;
    }
    XXH3_128bits_reset(seal->state);
    return seal;
}

void seal_destroy(struct seal **seal)
{
    if (*seal == NULL)
        return;
    XXH3_freeState((*seal)->state);
    free(*seal);
    *seal = NULL;
}

void seal_feed(struct seal *seal, const char *text, size_t size)
{
    const size_t last = size < SEAL_BYTES ? size : SEAL_BYTES; /* of text, to be held */
    const size_t kept = SEAL_BYTES - last < seal->held_size ? SEAL_BYTES - last : seal->held_size;
    const size_t out = seal->held_size - kept;

    XXH3_128bits_update(seal->state, seal->held, out);
    XXH3_128bits_update(seal->state, text, size - last);
    memmove(seal->held, seal->held + out, kept);
    memcpy(seal->held + kept, text + size - last, last);
    seal->held_size = kept + last;
}

bool seal_is_there(const struct seal *seal)
{
    const size_t begin = sizeof SEAL_BEGIN - 1, end = sizeof SEAL_END - 1;
    char sum[SEAL_SUM_SIZE] = "";

    memcpy(sum, seal->held + begin, sizeof sum - 1);
    return seal->held_size == SEAL_BYTES && memcmp(seal->held, SEAL_BEGIN, begin) == 0 &&
           memcmp(seal->held + SEAL_BYTES - end, SEAL_END, end) == 0 && manifest_checksum_ok(sum);
}

bool seal_is_right(const struct seal *seal)
{
    char expected[SEAL_BYTES + 1];

    seal_write(XXH3_128bits_digest(seal->state), expected);
    return seal->held_size == SEAL_BYTES && memcmp(seal->held, expected, SEAL_BYTES) == 0;
}
