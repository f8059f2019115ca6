/* The list of brokers' addresses. */
#include "schema/brokers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

static void addresses_keep_their_order_and_schemes_may_be_mixed(void **state)
{
    struct brokers b;

    (void)state;
    assert_int_equal(brokers_read("tcp://a:7700", &b, NULL), MUSTER_OK);
    assert_int_equal(b.count, 1);
    assert_string_equal(b.address[0], "tcp://a:7700");
    assert_int_equal(brokers_read("tcp://b:7700,ipc:///s,tcp://b:770", &b, NULL), MUSTER_OK);
    assert_int_equal(b.count, 3);
    assert_string_equal(b.address[0], "tcp://b:7700");
    assert_string_equal(b.address[1], "ipc:///s");
    assert_string_equal(b.address[2], "tcp://b:770"); /* no other one's beginning is the same */
}

static void a_wrong_list_is_refused_by_what_is_wrong_with_it(void **state)
{
    static const char *const cases[][2] = {
        {"", "empty"},
        {",tcp://a:1", "empty"},
        {"tcp://a:1,", "empty"},
        {"tcp://a:1,,tcp://b:1", "empty"},
        {"tcp://a:1,tcp://b:1,tcp://a:1", "tcp://a:1 is there twice"},
        {"a,b,c,d,e,f,g,h,i", "\"i\" is one broker's address too many: give at most 8"},
    };
    struct brokers b = {.count = 77};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct muster_error err;

        assert_int_equal(brokers_read(cases[i][0], &b, &err), MUSTER_E_ARGUMENT);
        assert_non_null(strstr(err.text, cases[i][1]));
        assert_int_equal(b.count, 77); /* untouched */
    }
}

static void the_longest_list_fits(void **state)
{
    char text[BROKERS_TEXT_MAX + 2] = "";
    struct brokers b;
    struct muster_error err;

    (void)state;
    for (int i = 0; i < BROKERS_MAX; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%0*d", i == 0 ? "" : ",",
                 ENDPOINT_MAX, i);
    assert_int_equal(strlen(text), BROKERS_TEXT_MAX);
    assert_int_equal(brokers_read(text, &b, NULL), MUSTER_OK);
    assert_int_equal(b.count, BROKERS_MAX);
    strcat(text, "1");
    assert_int_equal(brokers_read(text, &b, &err), MUSTER_E_ARGUMENT);
    assert_non_null(strstr(err.text, "at most 255 bytes"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_keep_their_order_and_schemes_may_be_mixed),
        cmocka_unit_test(a_wrong_list_is_refused_by_what_is_wrong_with_it),
        cmocka_unit_test(the_longest_list_fits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
