/* test_checksum - the running sum, and files against it. */
#include "node/shard/checksum.h"
#include "node/shard/fs.h"
#include "tests/support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void text_of(const void *data, size_t size, size_t piece, char text[MANIFEST_CHECKSUM_SIZE])
{
    struct checksum *sum = checksum_create(CHECKSUM_XXH3);

    assert_non_null(sum);
    for (size_t at = 0; at < size; at += piece)
        checksum_update(sum, (const char *)data + at, size - at < piece ? size - at : piece);
    checksum_text(sum, text);
    checksum_destroy(&sum);
    assert_null(sum);
    checksum_destroy(&sum);
}

static void text_is_the_canonical_form_of_xxh3_128(void **state)
{
    /* Published values of XXH3-128 (seed 0), as `xxhsum -H2` prints them. */
    static const struct {
        const char *data;
        const char *text;
    } rows[] = {
        {"", "xxh3-128:99aa06d3014798d86001c324468d497f"},
        {"a", "xxh3-128:a96faf705af16834e6c632b61e964e1f"},
        {"abc", "xxh3-128:06b05ab6733a618578af5f94892f3950"},
    };
    char text[MANIFEST_CHECKSUM_SIZE];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        text_of(rows[i].data, strlen(rows[i].data), 1, text);
        assert_string_equal(text, rows[i].text);
        assert_true(manifest_checksum_ok(text));
    }
}

static void pieces_do_not_matter_and_order_does(void **state)
{
    static char data[100000];
    char whole[MANIFEST_CHECKSUM_SIZE];
    char pieces[MANIFEST_CHECKSUM_SIZE];

    (void)state;
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (char)(i * 31 >> 3);
    text_of(data, sizeof data, sizeof data, whole);
    text_of(data, sizeof data, 77, pieces);
    assert_string_equal(whole, pieces);
    data[5] ^= 1;
    text_of(data, sizeof data, sizeof data, pieces);
    assert_string_not_equal(whole, pieces);
}

static void file_is_summed_over_all_its_chunks(void **state)
{
    const char *dir = *state;
    size_t size = 3 * (size_t)FS_CHUNK_BYTES + 17;
    char *data = malloc(size);
    char expected[MANIFEST_CHECKSUM_SIZE];
    char found[MANIFEST_CHECKSUM_SIZE];
    uint64_t bytes = 0;

    assert_non_null(data);
    memset(data, 7, size);
    data[size - 1] = 8;
    text_of(data, size, size, expected);
    scratch_write(scratch_path(dir, "big"), data, size);
    free(data);
    assert_int_equal(
        checksum_file(scratch_path(dir, "big"), CHECKSUM_XXH3, NULL, &bytes, found, NULL),
        MUSTER_OK);
    assert_int_equal(bytes, size);
    assert_string_equal(found, expected);
    scratch_write(scratch_path(dir, "empty"), "", 0);
    assert_int_equal(
        checksum_file(scratch_path(dir, "empty"), CHECKSUM_XXH3, NULL, &bytes, found, NULL),
        MUSTER_OK);
    assert_int_equal(bytes, 0);
    assert_string_equal(found, "xxh3-128:99aa06d3014798d86001c324468d497f");
}

static void what_is_no_regular_file_is_refused_by_name(void **state)
{
    const char *dir = *state;
    char text[MANIFEST_CHECKSUM_SIZE] = "untouched";
    uint64_t bytes = 99;
    struct muster_error err;

    assert_int_equal(
        checksum_file(scratch_path(dir, "none"), CHECKSUM_XXH3, NULL, &bytes, text, &err),
        MUSTER_E_NOT_FOUND);
    assert_non_null(strstr(err.text, "/none"));
    assert_int_equal(mkfifo(scratch_path(dir, "fifo"), 0600), 0);
    assert_int_equal(
        checksum_file(scratch_path(dir, "fifo"), CHECKSUM_XXH3, NULL, &bytes, text, &err),
        MUSTER_E_CORRUPT);
    assert_int_equal(symlink("/etc/hostname", scratch_path(dir, "link")), 0);
    assert_int_equal(
        checksum_file(scratch_path(dir, "link"), CHECKSUM_XXH3, NULL, &bytes, text, &err),
        MUSTER_E_CORRUPT);
    assert_non_null(strstr(err.text, "symbolic link"));
    assert_int_equal(checksum_file(dir, CHECKSUM_XXH3, NULL, &bytes, text, &err), MUSTER_E_CORRUPT);
    assert_int_equal(bytes, 99);
    assert_string_equal(text, "untouched");
}

static int make(void **state)
{
    static char dir[SCRATCH_PATH_MAX];

    scratch_make(dir);
    *state = dir;
    return 0;
}

static int drop(void **state)
{
    scratch_remove(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_the_canonical_form_of_xxh3_128),
        cmocka_unit_test(pieces_do_not_matter_and_order_does),
        cmocka_unit_test_setup_teardown(file_is_summed_over_all_its_chunks, make, drop),
        cmocka_unit_test_setup_teardown(what_is_no_regular_file_is_refused_by_name, make, drop),
    };

    return cmocka_run_group_tests_name("checksum", tests, NULL, NULL);
}
