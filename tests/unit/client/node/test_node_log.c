/* The log of a node: to the program's function, or errors and warnings to stderr. MUSTER_LOG says
 * how much. */
#include "client/node/node_private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char printed[4096]; /* on stderr, by the last log_all */
static int taken;          /* lines that the program's function got */

static void take(int level, const char *text, void *arg)
{
    (void)level, (void)text, (void)arg;
    taken++;
}

/* One line of each level, by a node of that option under that MUSTER_LOG. */
static enum muster_status log_all(muster_log_fn *log, const char *wanted)
{
    struct muster_node node = {.rank = 3, .options = {.log = log}};
    int fds[2], stderr_copy = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    enum muster_status status;
    ssize_t size;

    taken = 0;
    if (wanted != NULL)
        setenv("MUSTER_LOG", wanted, 1);
    else
        unsetenv("MUSTER_LOG");
    status = node_log_configure(&node, NULL);
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    assert_int_equal(dup2(fds[1], STDERR_FILENO), STDERR_FILENO);
    close(fds[1]);
    for (int level = 0; status == MUSTER_OK && level <= 3; level++)
        node_log(&node, level, "line\n%d", level);
    assert_int_equal(dup2(stderr_copy, STDERR_FILENO), STDERR_FILENO);
    close(stderr_copy);
    size = read(fds[0], printed, sizeof printed - 1);
    printed[size > 0 ? size : 0] = '\0';
    close(fds[0]);
    unsetenv("MUSTER_LOG");
    return status;
}

static void without_a_function_errors_and_warnings_are_lines_on_stderr(void **state)
{
    (void)state;
    assert_int_equal(log_all(NULL, NULL), MUSTER_OK);
    assert_string_equal(printed,
                        "muster: error: rank 3: line 0\nmuster: warning: rank 3: line 1\n");
}

static void a_program_that_takes_the_log_gets_all_and_nothing_is_printed(void **state)
{
    (void)state;
    assert_int_equal(log_all(take, NULL), MUSTER_OK);
    assert_string_equal(printed, "");
    assert_int_equal(taken, 4);
}

static void the_environment_says_how_much_is_told(void **state)
{
    (void)state;
    assert_int_equal(log_all(take, "error"), MUSTER_OK);
    assert_int_equal(taken, 1);
    assert_int_equal(log_all(NULL, "debug"), MUSTER_OK);
    assert_non_null(strstr(printed, "muster: debug: rank 3: line 3\n"));
    assert_int_equal(log_all(NULL, "none"), MUSTER_OK);
    assert_string_equal(printed, "");
    assert_int_equal(log_all(NULL, "loud"), MUSTER_E_ARGUMENT);
}

static void a_reader_of_stderr_that_is_gone_ends_nobody(void **state)
{
    struct muster_node node = {.rank = 3, .log_level = 1};
    int fds[2], stderr_copy = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);

    (void)state;
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    assert_int_equal(dup2(fds[1], STDERR_FILENO), STDERR_FILENO);
    close(fds[0]);
    close(fds[1]);
    node_log(&node, 0, "nobody reads this");
    assert_int_equal(dup2(stderr_copy, STDERR_FILENO), STDERR_FILENO);
    close(stderr_copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_function_errors_and_warnings_are_lines_on_stderr),
        cmocka_unit_test(a_program_that_takes_the_log_gets_all_and_nothing_is_printed),
        cmocka_unit_test(the_environment_says_how_much_is_told),
        cmocka_unit_test(a_reader_of_stderr_that_is_gone_ends_nobody),
    };

    return cmocka_run_group_tests_name("node_log", tests, NULL, NULL);
}
