/* The word that was probably meant. */
#include "schema/nearest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const char *meant(const char *word)
{
    static const char *const known[] = {"status", "nodes", "round", "rounds", "run", "job", "db"};
    struct nearest nearest = {.word = word, .length = strlen(word)};

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        nearest_offer(&nearest, known[i]);
    return nearest.best != NULL ? nearest.best : "";
}

static void a_slip_of_the_fingers_is_known(void **state)
{
    (void)state;
    assert_string_equal(meant("stauts"), "status");
    assert_string_equal(meant("statsu"), "status");
    assert_string_equal(meant("node"), "nodes");
    assert_string_equal(meant("ronuds"), "rounds");
    assert_string_equal(meant("jbo"), "job");
    assert_string_equal(meant("rn"), "run");
}

static void another_word_is_no_slip(void **state)
{
    (void)state;
    assert_string_equal(meant("checkpoints"), "");
    assert_string_equal(meant("xyz"), "");
    assert_string_equal(meant(""), "");
    assert_string_equal(meant("x"), "");
    assert_string_equal(meant("a-word-of-more-letters-than-any-verb-or-option-has"), "");
}

static void the_hint_names_it(void **state)
{
    struct nearest nearest = {.word = "jbo", .length = 3};
    char hint[NEAREST_HINT_MAX];

    (void)state;
    nearest_hint(&nearest, "--", hint);
    assert_string_equal(hint, "");
    nearest_offer(&nearest, "job");
    nearest_hint(&nearest, "--", hint);
    assert_string_equal(hint, " (did you mean --job?)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slip_of_the_fingers_is_known),
        cmocka_unit_test(another_word_is_no_slip),
        cmocka_unit_test(the_hint_names_it),
    };

    return cmocka_run_group_tests_name("nearest", tests, NULL, NULL);
}
