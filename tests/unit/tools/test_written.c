/* What a program wrote by itself: found in its metadata, and measured. */
#include "tests/support/scratch.h"
#include "tools/written.c" /* NOLINT(bugprone-suspicious-include) */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

static void its_metadata_tell_path_and_bytes(void **state)
{
    static const char *const others[] = {
        "",
        "{}",
        "7",
        "{\"path\": \"/own/8\"}",
        "{\"path\": \"/own/8\", \"bytes\": \"7\"}",
        "{\"path\": \"/own/8\", \"bytes\": -1}",
        "{\"path\": \"\", \"bytes\": 7}",
        "{\"path\": \"/own/\\u001b[2J\", \"bytes\": 7}",
    };
    struct written written;

    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_false(written_find(others[i], &written));
    assert_true(written_find("{\"path\": \"/own/8\", \"bytes\": 7, \"step\": 8}", &written));
    assert_string_equal(written.path, "/own/8");
    assert_int_equal(written.bytes, 7);
    assert_true(written_is_local(&written));
    assert_true(written_find("{\"path\": \"gs://bucket/8\", \"bytes\": 0}", &written));
    assert_false(written_is_local(&written));
}

static void a_person_is_told_the_place_that_has_the_bytes(void **state)
{
    struct muster_checkpoint_row row = {.path = "/checkpoints/8", .custom = ""};
    struct written written;

    (void)state;
    assert_string_equal(written_place(&row, &written), "/checkpoints/8");
    row.custom = "{\"path\": \"/own/8\", \"bytes\": 7}";
    assert_string_equal(written_place(&row, &written), "/own/8");
}

static void its_files_are_counted_and_what_links_lead_to(void **state)
{
    char directory[SCRATCH_PATH_MAX];
    struct written written;
    struct muster_error err;
    int64_t bytes = -1;

    (void)state;
    scratch_make(directory);
    snprintf(written.path, sizeof written.path, "%.1000s/8", directory);
    assert_int_equal(written_measure(&written, &bytes, &err), MUSTER_E_NOT_FOUND);
    assert_int_equal(bytes, -1);
    assert_int_equal(mkdir(written.path, 0777), 0);
    scratch_write(scratch_path(directory, "8/a"), "1234567", 7);
    assert_int_equal(mkdir(scratch_path(directory, "8/more"), 0777), 0);
    scratch_write(scratch_path(directory, "8/more/b"), "12345", 5);
    scratch_write(scratch_path(directory, "beside"), "123", 3);
    assert_int_equal(symlink(scratch_path(directory, "beside"), scratch_path(directory, "8/link")),
                     0);
    assert_int_equal(written_measure(&written, &bytes, &err), MUSTER_OK);
    assert_int_equal(bytes, 15);
    scratch_remove(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_metadata_tell_path_and_bytes),
        cmocka_unit_test(a_person_is_told_the_place_that_has_the_bytes),
        cmocka_unit_test(its_files_are_counted_and_what_links_lead_to),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
