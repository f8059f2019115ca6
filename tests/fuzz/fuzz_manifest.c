/* A manifest of any text: it is refused with a reason, or it is a manifest that can be written
 * again, byte for byte the same each time, and that keeps the rules that its readers rely on. None
 * but the text that a key has signed counts as signed by it. */
#include "schema/manifest/manifest.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/manifest_same.h"
#include "tests/support/signed_text.h"

static void check_shard(const struct manifest *manifest, size_t i)
{
    const struct manifest_shard *shard = &manifest->shards[i];

    must(shard->rank < manifest->world_size);
    must(i == 0 || manifest->shards[i - 1].rank < shard->rank);
    must(manifest_shard_of(manifest, shard->rank) == shard);
    must(shard->file_count <= FILES_SHARD_MAX);
    for (size_t f = 0; f < shard->file_count; f++) {
        must(manifest_path_ok(shard->files[f].path));
        must(manifest_checksum_ok(shard->files[f].checksum));
        must(f == 0 || strcmp(shard->files[f - 1].path, shard->files[f].path) < 0);
    }
}

static char *render(const struct manifest *manifest, size_t *ret_size)
{
    struct muster_error err = {0};
    char *text = NULL;
    enum muster_status status = manifest_render(manifest, &text, ret_size, &err);

    if (status != MUSTER_OK) {
        fprintf(stderr, "not rendered: %s\n", err.text);
        abort();
    }
    must(strlen(text) == *ret_size);
    return text;
}

static void check_round_trip(const struct manifest *manifest)
{
    struct muster_error err = {0};
    struct manifest *again = NULL;
    size_t size;
    size_t size_again;
    char *text = render(manifest, &size);
    char *text_again;

    must(manifest_parse(text, size, &again, &err) == MUSTER_OK);
    must(manifest_same_checkpoint(manifest, again) && manifest_same_checkpoint(again, manifest));
    text_again = render(again, &size_again);
    must(size == size_again && memcmp(text, text_again, size) == 0);
    manifest_destroy(&again);
    free(text_again);
    free(text);
}

/* Whoever has a text that counts as signed by this key has the text that the key signed. */
static void check_signature(const struct manifest *manifest, const char *text, size_t size)
{
    static struct sign_key key;
    struct muster_error err = {0};
    enum muster_status status;
    char member[SIGN_BYTES + 1];
    struct sign *sign;

    if (key.public_text[0] == '\0')
        key = signed_key(1);
    status = manifest_check_signer(manifest, key.public_text, &err);
    if (status != MUSTER_OK) {
        must(status == MUSTER_E_SIGNATURE || status == MUSTER_E_CORRUPT);
        must(err.status == status && err.text[0] != '\0');
        return;
    }
    must(size > SIGN_BYTES + SEAL_BYTES);
    sign = sign_create();
    sign_add(sign, text, size - SIGN_BYTES - SEAL_BYTES);
    sign_make(sign, &key, member);
    sign_destroy(&sign);
    must(memcmp(text + size - SIGN_BYTES - SEAL_BYTES, member, SIGN_BYTES) == 0);
}

static void read_text(const char *text, size_t size)
{
    struct muster_error err = {0};
    struct manifest *manifest = NULL;
    enum muster_status status = manifest_parse(text, size, &manifest, &err);

    if (status != MUSTER_OK) {
        must(manifest == NULL && err.status == status && err.text[0] != '\0');
        must(status == MUSTER_E_CORRUPT || status == MUSTER_E_VERSION);
        return;
    }
    check_signature(manifest, text, size);
    must(manifest->world_size >= 1 && manifest->world_size <= WORLD_SIZE_MAX);
    for (size_t i = 0; i < manifest->shard_count; i++)
        check_shard(manifest, i);
    check_round_trip(manifest);
    manifest_destroy(&manifest);
}

/* As it is, and with a checksum that is right, which everybody can make. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy;

    read_text((const char *)data, size);
    if (size <= SEAL_BYTES)
        return 0;
    copy = malloc(size);
    must(copy != NULL);
    memcpy(copy, data, size);
    signed_text_reseal(copy, size);
    read_text(copy, size);
    free(copy);
    return 0;
}
