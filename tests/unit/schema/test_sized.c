/* A structure for a program that was built with another muster: no byte behind its size is written,
 * and it can tell what the library filled. */
#include "schema/sized.h"

#include <muster/node.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct told {
    int old;
    int new;
};

static void an_older_program_gets_what_it_knows_and_no_byte_more(void **state)
{
    const struct told own = {1, 2};
    struct told ret = {8, 9};

    (void)state;
    sized_give(&ret, offsetof(struct told, new), &own, sizeof own);
    assert_int_equal(ret.old, 1);
    assert_int_equal(ret.new, 9);
}

static void a_newer_program_gets_zeros_for_what_the_library_does_not_know(void **state)
{
    const int own = 1;
    struct told ret = {8, 9};

    (void)state;
    sized_give(&ret, sizeof ret, &own, sizeof own);
    assert_int_equal(ret.old, 1);
    assert_int_equal(ret.new, 0);
}

static void nothing_is_given_to_null(void **state)
{
    (void)state;
    sized_give(NULL, 4, &(int){1}, sizeof(int));
}

static void a_program_sees_which_members_an_older_library_filled(void **state)
{
    const struct muster_restore_context older = {
        .struct_size = offsetof(struct muster_restore_context, saved_world_size)};
    const struct muster_restore_context *context = &older;

    (void)state;
    assert_true(MUSTER_HAS(context, checkpoint_directory));
    assert_false(MUSTER_HAS(context, saved_world_size));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_older_program_gets_what_it_knows_and_no_byte_more),
        cmocka_unit_test(a_newer_program_gets_zeros_for_what_the_library_does_not_know),
        cmocka_unit_test(nothing_is_given_to_null),
        cmocka_unit_test(a_program_sees_which_members_an_older_library_filled),
    };

    return cmocka_run_group_tests_name("sized", tests, NULL, NULL);
}
