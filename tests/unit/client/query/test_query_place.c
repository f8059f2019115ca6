/* Where a question goes when nobody names a place: the tool, the library and Python ask the same
 * function. */
#include "client/query/query_place.h"

#include "tests/support/scratch.h"
#include <muster/client.h>
#include <muster/manager.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char runtime[SCRATCH_PATH_MAX], state_home[SCRATCH_PATH_MAX];

/* Root's places are fixed, and a broker may run there: these tests are somebody else's. */
static int set_up(void **state)
{
    (void)state;
    scratch_make(runtime);
    scratch_make(state_home);
    mkdir(scratch_path(runtime, "muster"), 0755);
    mkdir(scratch_path(state_home, "muster"), 0755);
    unsetenv("MUSTER_BROKER");
    unsetenv("MUSTER_DB");
    setenv("XDG_RUNTIME_DIR", runtime, 1);
    setenv("XDG_STATE_HOME", state_home, 1);
    return geteuid() == 0 ? seteuid(65534) : 0;
}

static int tear_down(void **state)
{
    (void)state;
    if (getuid() == 0 && seteuid(0) != 0)
        return -1;
    scratch_remove(runtime);
    scratch_remove(state_home);
    return 0;
}

/* As the user whom the directory belongs to. */
static void leave_file(const char *directory, const char *name)
{
    uid_t mine = geteuid();

    assert_int_equal(seteuid(getuid()), 0);
    scratch_write(scratch_path(directory, "%s", name), "", 0);
    assert_int_equal(seteuid(mine), 0);
}

static void expect_place(const char *expected)
{
    char place[QUERY_PLACE_MAX + 1] = "";
    struct muster_error err = {.text = ""};

    assert_int_equal(query_place_find(place, &err), MUSTER_OK);
    assert_string_equal(place, expected);
}

static void the_nearest_place_that_is_named_or_there_is_asked(void **state)
{
    char socket[SCRATCH_PATH_MAX + 64], db[SCRATCH_PATH_MAX + 64];
    muster_client_t *client = NULL;
    struct muster_error err = {.text = ""};

    (void)state;
    snprintf(socket, sizeof socket, "ipc://%s/muster/broker.sock", runtime);
    snprintf(db, sizeof db, "%s/muster/muster.db", state_home);
    leave_file(state_home, "muster/muster.db");
    expect_place(db);
    leave_file(runtime, "muster/broker.sock");
    expect_place(socket);
    setenv("MUSTER_DB", "/named.db", 1);
    expect_place("/named.db");
    setenv("MUSTER_BROKER", "", 1);
    expect_place("/named.db");
    setenv("MUSTER_BROKER", "tcp://a:1,tcp://b:2", 1);
    expect_place("tcp://a:1,tcp://b:2");
    setenv("MUSTER_BROKER", "tcp://127.0.0.1:9", 1);
    assert_int_equal(muster_client_open(NULL, 10, &client, &err), MUSTER_OK);
    assert_string_equal(muster_client_place(client), "tcp://127.0.0.1:9");
    muster_client_close(&client, NULL);
    assert_string_equal(muster_client_place(NULL), "");
}

static void where_nothing_is_the_text_names_all_that_was_looked_for(void **state)
{
    char place[QUERY_PLACE_MAX + 1] = "untouched", looked_for[2 * SCRATCH_PATH_MAX + 256];
    muster_client_t *client = NULL;
    struct muster_error err = {.text = ""};

    (void)state;
    snprintf(looked_for, sizeof looked_for,
             "MUSTER_BROKER is not set, no broker runs here (no socket %s/muster/broker.sock), and "
             "there is no database %s/muster/muster.db: start `musterd`, or name",
             runtime, state_home);
    assert_int_equal(query_place_find(place, &err), MUSTER_E_BROKER);
    assert_string_equal(place, "untouched");
    assert_non_null(strstr(err.text, looked_for));
    err.text[0] = '\0';
    assert_int_equal(muster_client_open(NULL, 0, &client, &err), MUSTER_E_BROKER);
    assert_non_null(strstr(err.text, looked_for));
    assert_non_null(strstr(err.text, "address (argument address, MUSTER_BROKER) or a database "
                                     "(argument address, MUSTER_DB)"));
    assert_null(client);
    unsetenv("XDG_STATE_HOME");
    unsetenv("HOME");
    assert_int_equal(query_place_find(place, &err), MUSTER_E_BROKER);
    assert_non_null(strstr(err.text, "there is no database, as HOME is not set: start `musterd`"));
}

static void a_variable_that_names_no_address_is_refused_by_name(void **state)
{
    char place[QUERY_PLACE_MAX + 1], longest[QUERY_PLACE_MAX + 32];
    struct muster_error err = {.text = ""};

    (void)state;
    setenv("MUSTER_BROKER", "host:7700", 1);
    assert_int_equal(query_place_find(place, &err), MUSTER_E_ARGUMENT);
    assert_non_null(strstr(err.text, "MUSTER_BROKER is \"host:7700\", which is not a broker's"));
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    unsetenv("MUSTER_BROKER");
    setenv("MUSTER_DB", longest, 1);
    assert_int_equal(query_place_find(place, &err), MUSTER_E_ARGUMENT);
    assert_non_null(strstr(err.text, "MUSTER_DB is longer than"));
}

/* The last one: the program is the tool from here on. */
static void the_tool_is_told_by_its_options(void **state)
{
    char place[QUERY_PLACE_MAX + 1];
    struct muster_error err = {.text = ""};

    (void)state;
    query_place_name_options();
    assert_int_equal(query_place_find(place, &err), MUSTER_E_BROKER);
    assert_non_null(
        strstr(err.text, "address (--broker, MUSTER_BROKER) or a database (--db, MUSTER_DB)"));
}

static void a_manager_that_reads_a_job_finds_the_broker_of_this_host(void **state)
{
    struct muster_manager_options options = MUSTER_MANAGER_OPTIONS_INIT;
    muster_manager_t *manager = NULL;
    struct muster_error err = {.text = ""};

    (void)state;
    options.job = "words";
    assert_int_equal(muster_manager_open(&options, &manager, &err), MUSTER_E_ARGUMENT);
    assert_non_null(strstr(err.text, "a job is given, no broker runs on this host, and neither"));
    leave_file(runtime, "muster/broker.sock");
    assert_int_equal(muster_manager_open(&options, &manager, &err), MUSTER_OK);
    muster_manager_close(&manager, 0, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_nearest_place_that_is_named_or_there_is_asked, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(where_nothing_is_the_text_names_all_that_was_looked_for,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_variable_that_names_no_address_is_refused_by_name, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_manager_that_reads_a_job_finds_the_broker_of_this_host,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_tool_is_told_by_its_options, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
