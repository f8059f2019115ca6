/* Default places. */
#include "schema/paths.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

static void the_default_broker_is_where_musterd_listens(void **state)
{
    static const struct {
        unsigned uid;
        const char *runtime, *expected;
    } cases[] = {
        {0, "/run/user/0", "ipc:///run/muster/broker.sock"},
        {0, NULL, "ipc:///run/muster/broker.sock"},
        {1000, "/run/user/1000", "ipc:///run/user/1000/muster/broker.sock"},
        {1000, NULL, "ipc:///tmp/muster-1000/broker.sock"},
        {1000, "", "ipc:///tmp/muster-1000/broker.sock"},
        {1000, "relative", "ipc:///tmp/muster-1000/broker.sock"},
    };
    char endpoint[ENDPOINT_MAX + 1];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_true(paths_default_endpoint(cases[i].uid, cases[i].runtime, endpoint));
        assert_string_equal(endpoint, cases[i].expected);
    }
}

static void a_path_that_does_not_fit_is_refused(void **state)
{
    char runtime[400], endpoint[ENDPOINT_MAX + 1] = "untouched";

    (void)state;
    memset(runtime, '/', sizeof runtime);
    runtime[sizeof runtime - 1] = '\0';
    assert_false(paths_default_endpoint(1000, runtime, endpoint));
    assert_string_equal(endpoint, "untouched");
}

static void a_checkpoint_without_its_name_lies_right_below_the_directory_s_own_folder(void **state)
{
    static const struct {
        const char *path, *under_way;
    } cases[] = {
        {"/ckpt/.muster/2-5", "/.muster/2-5"},
        {"/home/u/.muster/ck/.muster/2-5", "/.muster/2-5"},
        {"/home/u/.muster/ck/9", NULL},
        {"/home/u.muster/2-5", NULL},
        {"/muster/2-5", NULL},
        {"2-5", NULL},
        {"", NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *found = paths_under_way(cases[i].path);

        assert_int_equal(found != NULL, cases[i].under_way != NULL);
        if (found != NULL)
            assert_ptr_equal(found,
                             cases[i].path + strlen(cases[i].path) - strlen(cases[i].under_way));
    }
}

static void a_checkpoint_s_name_tells_how_its_program_counts(void **state)
{
    static const struct {
        const char *path;
        int64_t step, offset;
    } cases[] = {
        {"/ck/47", 47, 0},
        {"/ck/46", 47, -1},
        {"/ck/step_0046", 47, -1},
        {"/ck/46.3-12", 47, -1},
        {"/ck/47.3-12", 47, 0},
        {"/ck/.muster/1-46", 47, 0},
        {"/ck/mine", 47, 0},
        {"46", 47, -1},
        {"/ck/0", 1, -1},
        {"/ck/1234567890123456789", 47, 0},
        {"", 47, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(paths_step_offset(cases[i].path, cases[i].step), cases[i].offset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_checkpoint_s_name_tells_how_its_program_counts),
        cmocka_unit_test(the_default_broker_is_where_musterd_listens),
        cmocka_unit_test(a_path_that_does_not_fit_is_refused),
        cmocka_unit_test(a_checkpoint_without_its_name_lies_right_below_the_directory_s_own_folder),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
