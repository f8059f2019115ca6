/* A command in a process group of its own: what it says, how it ends, and that nothing of it stays.
 */
#include "node/clock.h"
#include "node/notice/base/child.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

static struct child child;

static int setup(void **state)
{
    (void)state;
    child_init(&child, CHILD_LIMIT_MS);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    child_end(&child);
    return 0;
}

/* Waits for its descriptors, as who asks for it does; its clock stands at 0. */
static enum child_state await(long *ret_code)
{
    enum child_state is;

    while ((is = child_look(&child, 0, ret_code)) == CHILD_RUNS) {
        struct pollfd fds[SOURCE_FDS_MAX];

        assert_true(poll(fds, child_fds(&child, fds), 30000) > 0);
    }
    return is;
}

static void assert_says(const char *command, const char *output, long code)
{
    long is = -2;

    assert_int_equal(child_start(&child, command, 0), 0);
    assert_int_equal(await(&is), CHILD_ENDED);
    assert_int_equal(is, code);
    assert_int_equal(child.output.size, strlen(output));
    assert_memory_equal(child.output.bytes, output, strlen(output));
    assert_int_equal(child_look(&child, 0, &is), CHILD_NONE);
}

static void its_output_and_its_exit_code_are_told(void **state)
{
    (void)state;
    assert_says("echo soon; exit 7", "soon\n", 7);
    assert_says("printf again; echo no >&2", "again", 0);
    assert_says("cat; exit 1", "", 1); /* its input is empty */
    assert_says("kill -TERM $$", "", 128 + SIGTERM);
}

static void it_begins_with_default_signals_and_without_the_hosts_descriptors(void **state)
{
    sigset_t usr1, before;

    (void)state;
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    sigprocmask(SIG_BLOCK, &usr1, &before);
    signal(SIGUSR1, SIG_IGN);
    assert_says("kill -USR1 $$; echo ignored", "", 128 + SIGUSR1);
    assert_says("grep -c 'SigBlk:.0*$' /proc/self/status", "1\n", 0);
    signal(SIGUSR1, SIG_DFL);
    sigprocmask(SIG_SETMASK, &before, NULL);
    assert_true(fcntl(2, F_DUPFD, 20) == 20); /* stays open over an exec */
    assert_says("[ -e /proc/$$/fd/2 ]; echo $?; [ -e /proc/$$/fd/20 ]; echo $?", "0\n1\n", 0);
    assert_says("[ -e /proc/$$/fd/3 ]; echo $?", "1\n", 0);
    close(20);
}

static void what_is_beyond_the_cap_is_left_out(void **state)
{
    long code = -2;

    (void)state;
    assert_int_equal(child_start(&child, "head -c 100000 /dev/zero | tr '\\0' x; exit 3", 0), 0);
    assert_int_equal(await(&code), CHILD_ENDED);
    assert_int_equal(code, 3);
    assert_int_equal(child.output.size, CHILD_OUTPUT_MAX);
    assert_int_equal(child.output.bytes[CHILD_OUTPUT_MAX - 1], 'x');
}

static void one_that_is_late_is_killed_with_its_group(void **state)
{
    long code = -2;
    pid_t group;

    (void)state;
    child_init(&child, 500);
    assert_int_equal(child_start(&child, "sleep 1000 & sleep 1000", 1000), 0);
    group = child.group;
    assert_int_equal(child_wakeup_boot_ms(&child), 1500);
    assert_int_equal(child_look(&child, 1499, &code), CHILD_RUNS);
    assert_int_equal(kill(-group, 0), 0);
    assert_int_equal(child_look(&child, 1500, &code), CHILD_LATE);
    assert_int_equal(code, -1);
    for (int64_t until_ms = clock_ms(CLOCK_MONOTONIC) + 30000; kill(-group, 0) == 0;)
        assert_true(clock_ms(CLOCK_MONOTONIC) < until_ms && poll(NULL, 0, 1) == 0);
    assert_int_equal(errno, ESRCH);
    assert_int_equal(child_fds(&child, (struct pollfd[SOURCE_FDS_MAX]){{0}}), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(its_output_and_its_exit_code_are_told, setup, teardown),
        cmocka_unit_test_setup_teardown(
            it_begins_with_default_signals_and_without_the_hosts_descriptors, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_beyond_the_cap_is_left_out, setup, teardown),
        cmocka_unit_test_setup_teardown(one_that_is_late_is_killed_with_its_group, setup, teardown),
    };

    return cmocka_run_group_tests_name("notice_child", tests, NULL, NULL);
}
