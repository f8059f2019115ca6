/* What is told of a broker's address before anybody is asked. */
#include "client/query/query_address.h"
#include "client/query/query_door.h"

#include "schema/error.h"
#include "tests/support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void an_address_that_no_broker_can_have_is_refused(void **state)
{
    static const char *const cases[][2] = {
        {"localhost:7070", "is not a broker's address"},
        {"http://localhost:7070", "is not a broker's address"},
        {"tcp://localhost", "tcp://localhost has no port: give tcp://host:port"},
        {"tcp://[::1]", "has no port"},
        {"tcp://localhost:", "with a port from 1 to 65535"},
        {"tcp://localhost:http", "with a port from 1 to 65535"},
        {"tcp://localhost:70000", "with a port from 1 to 65535"},
        {"tcp://:7070", "is not tcp://host:port"},
        {"ipc://", "names no socket"},
    };
    struct muster_error err;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(query_address_check(cases[i][0], &err), MUSTER_E_ARGUMENT);
        assert_non_null(strstr(err.text, cases[i][1]));
    }
    assert_int_equal(query_address_check("tcp://localhost:7070", &err), MUSTER_OK);
    assert_int_equal(query_address_check("tcp://[::1]:7070", &err), MUSTER_OK);
    assert_int_equal(query_address_check("ipc:///run/muster/broker.sock", &err), MUSTER_OK);
    assert_int_equal(query_address_check("ipc://relative", &err), MUSTER_OK);
}

static void a_socket_that_is_not_there_is_named(void **state)
{
    char trouble[ADDRESS_TROUBLE_MAX], directory[SCRATCH_PATH_MAX], address[512];
    const char *path;

    (void)state;
    scratch_make(directory);
    path = scratch_path(directory, "broker.sock");
    assert_true(query_address_trouble("ipc://nowhere/broker.sock", trouble));
    assert_string_equal(trouble, "no such socket: nowhere/broker.sock (a relative path; "
                                 "ipc:///path is absolute)");
    assert_true(query_address_trouble("ipc:///nowhere/broker.sock", trouble));
    assert_string_equal(trouble, "no such socket: /nowhere/broker.sock");
    scratch_write(path, "", 0);
    snprintf(address, sizeof address, "ipc://%.500s", path);
    assert_false(query_address_trouble(address, trouble));
    assert_string_equal(trouble, "");
    scratch_remove(directory);
}

/* In a child, which root's rights do not help. */
static bool trouble_of_another_user(const char *address, const char *expected)
{
    char trouble[ADDRESS_TROUBLE_MAX] = "";
    pid_t child = fork();
    int status;

    assert_true(child >= 0);
    if (child == 0) {
        const bool other = getuid() != 0 || setresuid(65534, 65534, 65534) == 0;

        _exit(other && query_address_trouble(address, trouble) && strcmp(trouble, expected) == 0
                  ? 0
                  : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void a_socket_of_another_user_is_named(void **state)
{
    char directory[SCRATCH_PATH_MAX], address[512], expected[ADDRESS_TROUBLE_MAX];
    const char *path;

    (void)state;
    scratch_make(directory);
    assert_int_equal(chmod(directory, 0755), 0);
    path = scratch_path(directory, "broker.sock");
    scratch_write(path, "", 0);
    assert_int_equal(chmod(path, 0), 0);
    snprintf(address, sizeof address, "ipc://%.500s", path);
    snprintf(expected, sizeof expected, "permission denied: %.300s is another user's", path);
    assert_true(trouble_of_another_user(address, expected));
    scratch_remove(directory);
}

/* The resolver refuses such a name without asking anybody. */
static void a_host_that_is_not_there_is_named(void **state)
{
    char trouble[ADDRESS_TROUBLE_MAX];

    (void)state;
    assert_true(query_address_trouble("tcp://-bad-.:7070", trouble));
    assert_string_equal(trouble, "no such host: -bad-.");
}

static void a_host_that_is_a_number_has_no_trouble(void **state)
{
    char trouble[ADDRESS_TROUBLE_MAX];

    (void)state;
    assert_false(query_address_trouble("tcp://127.0.0.1:7070", trouble));
    assert_false(query_address_trouble("tcp://[::1]:7070", trouble));
}

static void only_the_word_that_no_broker_answered_is_explained(void **state)
{
    struct muster_error err;

    (void)state;
    error_set(&err, MUSTER_E_BROKER, "no broker answered");
    assert_int_equal(query_door_explain("ipc:///nowhere/s", MUSTER_E_BROKER, &err),
                     MUSTER_E_BROKER);
    assert_string_equal(err.text, "no such socket: /nowhere/s: no broker answered");
    error_set(&err, MUSTER_E_STALE, "taken over");
    assert_int_equal(query_door_explain("ipc:///nowhere/s", MUSTER_E_STALE, &err), MUSTER_E_STALE);
    assert_string_equal(err.text, "taken over");
    query_door_explain("ipc:///nowhere/s", MUSTER_E_BROKER, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_that_no_broker_can_have_is_refused),
        cmocka_unit_test(a_socket_that_is_not_there_is_named),
        cmocka_unit_test(a_socket_of_another_user_is_named),
        cmocka_unit_test(a_host_that_is_not_there_is_named),
        cmocka_unit_test(a_host_that_is_a_number_has_no_trouble),
        cmocka_unit_test(only_the_word_that_no_broker_answered_is_explained),
    };

    return cmocka_run_group_tests_name("query_address", tests, NULL, NULL);
}
