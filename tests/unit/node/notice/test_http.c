/* The header of a reply is found whatever its letters, and fits where it is put. */
#include "node/notice/base/http.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const struct http_reply reply = {.headers = "HTTP/1.1 200 OK\r\n"
                                                   "ETag-Old: none\r\n"
                                                   "etag:\t \"a:1\" \t\r\n"
                                                   "ETag: second\r\n"
                                                   "Empty:\r\n"
                                                   "Last: end"};

static void assert_header(const char *name, const char *expected)
{
    char value[64] = "as it was";

    assert_int_equal(http_header(&reply, name, value, sizeof value), expected != NULL);
    assert_string_equal(value, expected != NULL ? expected : "as it was");
}

static void the_first_header_of_that_name_counts_in_any_letters(void **state)
{
    (void)state;
    assert_header("ETag", "\"a:1\"");
    assert_header("ETAG-OLD", "none");
    assert_header("Empty", "");
    assert_header("Last", "end");
}

static void a_part_of_a_name_is_no_name(void **state)
{
    (void)state;
    assert_header("ETa", NULL);
    assert_header("tag", NULL);
    assert_header("ETag-Older", NULL);
    assert_header("HTTP/1.1 200 OK", NULL);
}

static void a_value_is_cut_to_its_room(void **state)
{
    char value[3] = "xx";

    (void)state;
    assert_true(http_header(&reply, "ETag-Old", value, sizeof value));
    assert_string_equal(value, "no");
    assert_true(http_header(&reply, "ETag-Old", value, 1));
    assert_string_equal(value, "");
}

static void a_reply_without_headers_has_none(void **state)
{
    char value[8];

    (void)state;
    assert_false(http_header(&(struct http_reply){.headers = ""}, "ETag", value, sizeof value));
    assert_false(http_header(&(struct http_reply){.headers = NULL}, "ETag", value, sizeof value));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_header_of_that_name_counts_in_any_letters),
        cmocka_unit_test(a_part_of_a_name_is_no_name),
        cmocka_unit_test(a_value_is_cut_to_its_room),
        cmocka_unit_test(a_reply_without_headers_has_none),
    };

    return cmocka_run_group_tests_name("http", tests, NULL, NULL);
}
