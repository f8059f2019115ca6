/* test_sign - the signature of a manifest: made, checked, and not to be had by anybody without the
 * key. Who changes a text here puts its checksum right, as an attacker would. */
#include "tests/support/manifest_same.h"
#include "tests/support/signed_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct wire_file files_0[] = {{"shard-00000-00000000000000a0/a", 0, STRONG_SUM},
                                           {"shard-00000-00000000000000a0/b", 5, STRONG_SUM}};
static const struct wire_file files_1[] = {
    {"shard-00001-ffffffffffffffff.safetensors", 4096, STRONG_SUM}};
static const struct wire_file weak_1[] = {{"shard-00001-ffffffffffffffff.safetensors", 4096,
                                           "xxh3-128:00112233445566778899aabbccddeeff"}};

static struct manifest sample(struct manifest_shard shards[2], const struct wire_file *second)
{
    shards[0] = (struct manifest_shard){0, 0xa0, files_0, 2};
    shards[1] = (struct manifest_shard){1, UINT64_MAX, second, 1};
    return (struct manifest){.job = "words",
                             .generation = 2,
                             .round = 7,
                             .step = 1200,
                             .layout = LAYOUT_SHARDED,
                             .world_size = 2,
                             .epoch = 3,
                             .step_in_epoch = 0,
                             .data_position = -1,
                             .total_run_calls = 1200,
                             .created_unix_ms = 1700000000000,
                             .cause = "termination",
                             .shards = shards,
                             .shard_count = 2};
}

static char *sample_text(unsigned char key_number, const struct wire_file *second, size_t *ret_size)
{
    const struct sign_key key = signed_key(key_number);
    struct manifest_shard shards[2];
    const struct manifest manifest = sample(shards, second);

    return signed_text(&manifest, &key, ret_size);
}

/* What who trusts this signer gets of the text. */
static enum muster_status checked(const char *text, size_t size, const char *signer,
                                  struct muster_error *err)
{
    struct manifest *manifest = NULL;
    enum muster_status status = manifest_parse(text, size, &manifest, err);

    if (status == MUSTER_OK)
        status = manifest_check_signer(manifest, signer, err);
    manifest_destroy(&manifest);
    return status;
}

/* RFC 8032, 7.3: the test vector of Ed25519ph. */
static void it_is_ed25519ph_as_the_rfc_has_it(void **state)
{
    static const char wanted[] =
        SIGN_BEGIN "ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf:"
                   "98a70222f0b8121aa9d30f813d683f809e462b469c7ff87639499bb94e6dae41"
                   "31f85042463c2a355a2003d062adf5aaa10b8c61e636062aaad11c2a26083406\"";
    unsigned char seed[SIGN_SEED_BYTES];
    char member[SIGN_BYTES + 1];
    struct sign *sign = sign_create();
    struct sign_key key;

    (void)state;
    assert_true(
        sign_seed_read("833fe62409237b9d62ec77587520911e9a759cec1d19755b7da901b96dca3d42", seed));
    sign_key_make(seed, &key);
    sign_add(sign, "ab", 2);
    sign_add(sign, "c", 1);
    sign_make(sign, &key, member);
    sign_destroy(&sign);
    assert_string_equal(member, wanted);
}

static void a_seed_is_read_as_it_was_written_and_nothing_else_is(void **state)
{
    static const char *const wrong[] = {"", "00", "g", "ABCDEF"};
    unsigned char seed[SIGN_SEED_BYTES] = {0x01, 0xfe}, read[SIGN_SEED_BYTES];
    char text[SIGN_SEED_TEXT + 2];

    (void)state;
    sign_seed_write(seed, text);
    assert_true(sign_seed_read(text, read));
    assert_memory_equal(seed, read, sizeof seed);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(sign_seed_read(wrong[i], read));
    text[63] = 'G';
    assert_false(sign_seed_read(text, read));
    text[63] = '0';
    text[64] = '0';
    text[65] = '\0';
    assert_false(sign_seed_read(text, read));
}

static void what_the_broker_signed_is_taken_and_parses_as_before(void **state)
{
    const struct sign_key key = signed_key(1);
    struct manifest_shard shards[2];
    const struct manifest manifest = sample(shards, files_1);
    struct manifest *read = NULL;
    struct muster_error err;
    size_t size;
    char *text = sample_text(1, files_1, &size);

    (void)state;
    assert_int_equal(manifest_parse(text, size, &read, &err), MUSTER_OK);
    assert_true(manifest_same_checkpoint(&manifest, read));
    assert_true(read->sealed);
    assert_string_equal(read->signer, key.public_text);
    assert_int_equal(manifest_check_signer(read, key.public_text, &err), MUSTER_OK);
    assert_int_equal(manifest_check_signer(read, NULL, &err), MUSTER_OK);
    manifest_destroy(&read);
    free(text);
}

static void it_is_the_same_in_whatever_pieces_it_comes(void **state)
{
    const struct sign_key key = signed_key(1);
    size_t size;
    char *text = sample_text(1, files_1, &size);

    (void)state;
    for (size_t piece = 1; piece < size; piece += piece < 8 ? 1 : 97) {
        struct sign *sign = sign_create();
        char signer[SIGN_PUBLIC_TEXT + 1];

        for (size_t at = 0; at < size; at += piece)
            sign_feed(sign, text + at, size - at < piece ? size - at : piece);
        sign_signer(sign, signer);
        assert_string_equal(signer, key.public_text);
        assert_true(sign_is_right(sign));
        sign_destroy(&sign);
    }
    free(text);
}

static void another_key_is_told_with_both(void **state)
{
    const struct sign_key other = signed_key(2), own = signed_key(1);
    struct muster_error err;
    size_t size;
    char *text = sample_text(1, files_1, &size);
    char part[17];

    (void)state;
    assert_int_equal(checked(text, size, other.public_text, &err), MUSTER_E_SIGNATURE);
    snprintf(part, sizeof part, "%.16s", own.public_text);
    assert_non_null(strstr(err.text, part));
    snprintf(part, sizeof part, "%.16s", other.public_text);
    assert_non_null(strstr(err.text, part));
    free(text);
}

/* Each byte of the signature, and each third before it, with a checksum that is right. */
static void no_byte_can_be_changed(void **state)
{
    const struct sign_key key = signed_key(1);
    struct muster_error err;
    size_t size;
    char *text = sample_text(1, files_1, &size);

    (void)state;
    for (size_t at = 0; at < size - SEAL_BYTES; at += at < size - SEAL_BYTES - SIGN_BYTES ? 3 : 1) {
        enum muster_status status;

        text[at] ^= 1;
        signed_text_reseal(text, size);
        status = checked(text, size, key.public_text, &err);
        assert_true(status == MUSTER_E_CORRUPT || status == MUSTER_E_SIGNATURE ||
                    status == MUSTER_E_VERSION);
        text[at] ^= 1;
    }
    signed_text_reseal(text, size);
    assert_int_equal(checked(text, size, key.public_text, &err), MUSTER_OK);
    free(text);
}

static void changed_numbers_are_called_changed(void **state)
{
    const struct sign_key key = signed_key(1);
    struct muster_error err;
    size_t size;
    char *text = sample_text(1, files_1, &size);
    char *step = strstr(text, "\"step\": 1200");

    (void)state;
    step[8] = '2';
    signed_text_reseal(text, size);
    assert_int_equal(checked(text, size, NULL, &err),
                     MUSTER_OK); /* who asks for none sees nothing */
    assert_int_equal(checked(text, size, key.public_text, &err), MUSTER_E_CORRUPT);
    assert_non_null(strstr(err.text, "changed since"));
    free(text);
}

static void one_without_a_signature_is_taken_by_who_asks_for_none(void **state)
{
    const struct sign_key key = signed_key(1);
    struct muster_error err;
    size_t size;
    char *text = sample_text(1, files_1, &size), *bare = signed_text_without(text, &size);

    (void)state;
    assert_int_equal(checked(bare, size, NULL, &err), MUSTER_OK);
    assert_int_equal(checked(bare, size, key.public_text, &err), MUSTER_E_SIGNATURE);
    assert_non_null(strstr(err.text, "has no signature"));
    free(bare);
    free(text);
}

/* It is not passed over as a member that a reader does not know. */
static void one_that_is_cut_is_damage_for_everybody(void **state)
{
    struct muster_error err;
    size_t size, cut_size;
    char *text = sample_text(1, files_1, &size);

    (void)state;
    for (size_t cut = 1; cut < SIGN_DIGITS + SIGN_PUBLIC_TEXT; cut++) {
        char *less = signed_text_cut(text, cut, &cut_size);

        assert_int_equal(checked(less, cut_size, NULL, &err), MUSTER_E_CORRUPT);
        assert_non_null(strstr(err.text, "signature that is cut or damaged"));
        free(less);
    }
    free(text);
}

/* XXH3 can be forged: a signature over it would say more than it knows. */
static void what_has_a_weak_checksum_is_not_signed(void **state)
{
    struct manifest *manifest = NULL;
    size_t size;
    char *text = sample_text(1, weak_1, &size);

    (void)state;
    assert_int_equal(manifest_parse(text, size, &manifest, NULL), MUSTER_OK);
    assert_null(manifest->signer);
    manifest_destroy(&manifest);
    free(text);
}

/* No broker of ours makes one. */
static void a_signature_over_weak_checksums_counts_for_nothing(void **state)
{
    const struct sign_key key = signed_key(1);
    struct muster_error err;
    char member[SIGN_BYTES + 1], *forged;
    struct sign *sign = sign_create();
    size_t size;
    char *text = sample_text(1, weak_1, &size);

    (void)state;
    forged = malloc(size + SIGN_BYTES + 1);
    sign_add(sign, text, size - SEAL_BYTES);
    sign_make(sign, &key, member);
    memcpy(forged, text, size - SEAL_BYTES);
    memcpy(forged + size - SEAL_BYTES, member, SIGN_BYTES);
    signed_text_reseal(forged, size + SIGN_BYTES);
    assert_int_equal(checked(forged, size + SIGN_BYTES, key.public_text, &err), MUSTER_E_SIGNATURE);
    assert_non_null(strstr(err.text, "can forge"));
    sign_destroy(&sign);
    free(forged);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_ed25519ph_as_the_rfc_has_it),
        cmocka_unit_test(a_seed_is_read_as_it_was_written_and_nothing_else_is),
        cmocka_unit_test(what_the_broker_signed_is_taken_and_parses_as_before),
        cmocka_unit_test(it_is_the_same_in_whatever_pieces_it_comes),
        cmocka_unit_test(another_key_is_told_with_both),
        cmocka_unit_test(no_byte_can_be_changed),
        cmocka_unit_test(changed_numbers_are_called_changed),
        cmocka_unit_test(one_without_a_signature_is_taken_by_who_asks_for_none),
        cmocka_unit_test(one_that_is_cut_is_damage_for_everybody),
        cmocka_unit_test(what_has_a_weak_checksum_is_not_signed),
        cmocka_unit_test(a_signature_over_weak_checksums_counts_for_nothing),
    };

    return cmocka_run_group_tests_name("sign", tests, NULL, NULL);
}
