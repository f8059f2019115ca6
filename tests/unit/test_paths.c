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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_default_broker_is_where_musterd_listens),
        cmocka_unit_test(a_path_that_does_not_fit_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
