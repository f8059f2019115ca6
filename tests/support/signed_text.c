/* signed_text - see signed_text.h. */
#include "tests/support/signed_text.h"

#include "schema/manifest/manifest_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sign_key signed_key(unsigned char number)
{
    unsigned char seed[SIGN_SEED_BYTES] = {number};
    struct sign_key key;

    sign_key_make(seed, &key);
    return key;
}

static void signed_must(enum muster_status status, const struct muster_error *err)
{
    if (status == MUSTER_OK)
        return;
    fprintf(stderr, "signed_text: %s\n", err->text);
    abort();
}

char *signed_text(const struct manifest *manifest, const struct sign_key *key, size_t *ret_size)
{
    struct manifest_text *text = NULL;
    struct muster_error err;
    char *bytes = NULL;

    signed_must(manifest_text_begin(manifest, &text, &err), &err);
    signed_must(manifest_text_sign(text, key, &err), &err);
    for (size_t s = 0; s < manifest->shard_count; s++) {
        const struct manifest_shard *shard = &manifest->shards[s];

        signed_must(manifest_text_shard(text, shard->rank, shard->incarnation, &err), &err);
        for (size_t i = 0; i < shard->file_count; i++)
            signed_must(manifest_text_file(text, &shard->files[i], &err), &err);
    }
    signed_must(manifest_text_end(text, &bytes, ret_size, &err), &err);
    manifest_text_destroy(&text);
    return bytes;
}

void signed_text_reseal(char *text, size_t size)
{
    char seal[SEAL_BYTES + 1];

    seal_make(text, size - SEAL_BYTES, seal);
    memcpy(text + size - SEAL_BYTES, seal, SEAL_BYTES);
}

/* The text with the bytes [from, to) left out, counted from the seal backwards. */
static char *left_out(const char *text, size_t from, size_t to, size_t *ret_size)
{
    const size_t size = strlen(text), seal_at = size - SEAL_BYTES;
    char *copy = malloc(size + 1);

    if (copy == NULL)
        abort();
    memcpy(copy, text, seal_at - from);
    memcpy(copy + seal_at - from, text + seal_at - to, SEAL_BYTES + to + 1);
    *ret_size = size - (from - to);
    signed_text_reseal(copy, *ret_size);
    return copy;
}

char *signed_text_without(const char *text, size_t *ret_size)
{
    return left_out(text, SIGN_BYTES, 0, ret_size);
}

char *signed_text_cut(const char *text, size_t cut, size_t *ret_size)
{
    return left_out(text, cut + 1, 1, ret_size);
}

char *signed_text_of_job(const char *job, const struct sign_key *key, size_t *ret_size)
{
    const struct wire_file file = {"shard-00000-0000000000000032.safetensors", 30,
                                   key != NULL ? STRONG_SUM
                                               : "xxh3-128:0123456789abcdef0123456789abcdef"};
    const struct manifest_shard shard = {0, 50, &file, 1};
    const struct manifest manifest = {.job = job,
                                      .generation = 1,
                                      .round = 5,
                                      .step = 7,
                                      .layout = LAYOUT_SHARDED,
                                      .world_size = 1,
                                      .epoch = -1,
                                      .step_in_epoch = -1,
                                      .data_position = -1,
                                      .total_run_calls = 7,
                                      .created_unix_ms = 1700000000000,
                                      .cause = "policy",
                                      .shards = &shard,
                                      .shard_count = 1};
    struct muster_error err;
    char *text = NULL;

    if (key != NULL)
        return signed_text(&manifest, key, ret_size);
    signed_must(manifest_render(&manifest, &text, ret_size, &err), &err);
    return text;
}
