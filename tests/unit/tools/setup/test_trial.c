/* What `muster demo` and `muster bench` start: found, started, waited for. */
#include "tests/support/scratch.h"
#include "tools/setup/setup.h"
#include "tools/tool.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>

static void no_word_of_the_environment_reaches_the_trial(void **state)
{
    (void)state;
    setenv("MUSTER_JOB", "of-the-outside", 1);
    setenv("MUSTER_RANK", "7", 1);
    setenv("MUSTERED", "stays", 1);
    trial_clear_environment();
    assert_null(getenv("MUSTER_JOB"));
    assert_null(getenv("MUSTER_RANK"));
    assert_string_equal(getenv("MUSTERED"), "stays");
    unsetenv("MUSTERED");
}

static void a_broker_that_is_named_is_the_one_or_none_is(void **state)
{
    char path[PATH_MAX] = "", said[1024] = "";

    (void)state;
    setenv("MUSTERD", "/bin/true", 1);
    assert_int_equal(trial_find_broker(path), TOOL_DONE);
    assert_string_equal(path, "/bin/true");
    setenv("MUSTERD", "/nowhere/musterd", 1);
    tool_hear(said, sizeof said);
    assert_int_equal(trial_find_broker(path), TOOL_NO);
    tool_hear(NULL, 0);
    assert_string_equal(
        said, "MUSTERD is /nowhere/musterd, which cannot be started; correct or unset it");
    unsetenv("MUSTERD");
}

static void exit_codes_and_both_outputs_come_back(void **state)
{
    char dir[SCRATCH_PATH_MAX], *text;
    const char *const words[] = {"/bin/sh", "-c", "echo out; echo err >&2; exit 7", NULL};
    size_t size;

    (void)state;
    scratch_make(dir);
    assert_int_equal(trial_wait(trial_start(scratch_path(dir, "log"), words)), 7);
    text = scratch_read(scratch_path(dir, "log"), &size);
    assert_string_equal(text, "out\nerr\n");
    free(text);
    scratch_remove(dir);
    assert_int_equal(trial_wait(-1), -1); /* it never was */
}

static void one_that_is_killed_has_no_exit_code(void **state)
{
    const char *const words[] = {"/bin/sh", "-c", "kill -KILL $$", NULL};

    (void)state;
    assert_int_equal(trial_wait(trial_start(NULL, words)), -1);
}

static void one_that_is_stopped_is_gone_when_that_returns(void **state)
{
    const char *const words[] = {"/bin/sleep", "600", NULL};
    pid_t pid = trial_start(NULL, words);

    (void)state;
    trial_stop(pid);
    assert_int_equal(kill(pid, 0), -1);
    trial_stop(-1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_word_of_the_environment_reaches_the_trial),
        cmocka_unit_test(a_broker_that_is_named_is_the_one_or_none_is),
        cmocka_unit_test(exit_codes_and_both_outputs_come_back),
        cmocka_unit_test(one_that_is_killed_has_no_exit_code),
        cmocka_unit_test(one_that_is_stopped_is_gone_when_that_returns),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
