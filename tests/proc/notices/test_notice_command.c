/* The command that is asked: what it says, and every way not to come back. */
#include "tests/support/notice_fixture.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define LIMIT_MS 30000

static struct notice_fixture fixture;

static int set_up(void **state)
{
    *state = &fixture;
    notice_fixture_open(&fixture, NULL);
    assert_int_equal(chdir(fixture.directory), 0);
    return 0;
}

static int tear_down(void **state)
{
    assert_int_equal(chdir("/"), 0);
    notice_fixture_close(*state);
    return 0;
}

static bool has(const char *name)
{
    return access(name, F_OK) == 0;
}

static void await_file(const char *name)
{
    int64_t until = notice_clocks().boot_ms + LIMIT_MS;

    while (!has(name)) {
        if (notice_clocks().boot_ms > until)
            fail_msg("%s did not come", name);
        poll(NULL, 0, 20);
    }
}

static void silence_with_exit_code_0_is_no_notice(void **state)
{
    struct notice_fixture *f = *state;

    notice_fixture_watch(f, "command:touch asked");
    notice_state(f, "command", SOURCE_HEALTHY, "", LIMIT_MS);
    assert_true(has("asked"));
    notice_none(f);
}

static void a_line_is_a_notice_and_a_comma_is_escaped(void **state)
{
    struct notice_fixture *f = *state;
    struct notice_record record;

    notice_fixture_watch(f, "command:echo preempt +60 by hand\\, now");
    record = notice_await(f, LIMIT_MS);
    assert_string_equal(record.source, "command");
    assert_int_equal(record.item.kind, NOTICE_PREEMPT);
    assert_string_equal(record.item.text, "preempt +60 by hand, now");
    assert_in_range(record.item.deadline_boot_ms - notice_clocks().boot_ms, 60000 - LIMIT_MS,
                    60000);
}

static void another_exit_code_is_trouble_and_no_notice(void **state)
{
    struct notice_fixture *f = *state;

    notice_fixture_watch(f, "command:echo stop; exit 3");
    notice_state(f, "command", SOURCE_DEGRADED,
                 "exited with 3 (to say that there is none: exit with 0 and print nothing)",
                 LIMIT_MS);
    notice_none(f);
}

static void a_command_that_does_not_exist_is_trouble(void **state)
{
    struct notice_fixture *f = *state;

    notice_fixture_watch(f, "command:/no/such/program");
    notice_state(f, "command", SOURCE_DEGRADED, "exited with 127", LIMIT_MS);
}

static void one_that_hangs_is_killed_with_its_children(void **state)
{
    struct notice_fixture *f = *state;
    pid_t child = 0;
    FILE *file;

    notice_fixture_watch(f, "command:sleep 600 & echo $! >pid.new; mv pid.new pid; wait");
    await_file("pid");
    file = fopen("pid", "r");
    assert_int_equal(fscanf(file, "%d", &child), 1);
    fclose(file);
    notice_state(f, "command", SOURCE_DEGRADED, "did not end within 10 s", LIMIT_MS);
    for (int i = 0; kill(child, 0) == 0 && i < 500; i++)
        poll(NULL, 0, 20);
    assert_int_not_equal(kill(child, 0), 0);
}

static void a_child_left_behind_is_not_waited_for(void **state)
{
    struct notice_fixture *f = *state;

    notice_fixture_watch(f, "command:sleep 600 & echo stop");
    assert_int_equal(notice_await(f, 5000).item.kind, NOTICE_STOP); /* not COMMAND_LIMIT_MS */
}

static void much_output_is_cut_and_does_not_block_it(void **state)
{
    struct notice_fixture *f = *state;

    notice_fixture_watch(f, "command:echo stop; head -c 1000000 /dev/zero");
    assert_int_equal(notice_await(f, LIMIT_MS).item.kind, NOTICE_STOP);
}

static void a_host_that_reaps_all_children_changes_nothing(void **state)
{
    struct notice_fixture *f = *state;

    signal(SIGCHLD, SIG_IGN);
    notice_fixture_watch(f, "command:echo stop");
    assert_int_equal(notice_await(f, LIMIT_MS).item.kind, NOTICE_STOP);
    signal(SIGCHLD, SIG_DFL);
    notice_state(f, "command", SOURCE_HEALTHY, "", LIMIT_MS);
}

static void it_has_default_signals_and_no_descriptor_of_the_hosts(void **state)
{
    struct notice_fixture *f = *state;
    int fd = dup2(1, 77); /* not closed on exec, as a careless host's */
    struct notice_record record;
    const char *ignored;

    signal(SIGTERM, SIG_IGN);
    notice_fixture_watch(f, "command:ls /proc/self/fd | tr '\\n' ' ' >fds; "
                            "grep -E 'SigBlk|SigIgn' /proc/self/status | tr -s '\\n\\t' ' '");
    record = notice_await(f, LIMIT_MS);
    signal(SIGTERM, SIG_DFL);
    close(fd);
    assert_non_null(strstr(record.item.text, "SigBlk: 0000000000000000"));
    ignored = strstr(record.item.text, "SigIgn: ");
    assert_non_null(ignored);
    assert_int_equal(strtoull(ignored + 8, NULL, 16) & 0x7fffffff, 0); /* those beyond are libc's */
    assert_int_equal(system("grep -q 77 fds"), 256);                   /* exit code 1 */
}

static void closing_kills_the_one_that_runs(void **state)
{
    struct notice_fixture *f = *state;
    int64_t began;

    notice_fixture_watch(f, "command:touch runs; sleep 600");
    await_file("runs");
    began = notice_clocks().boot_ms;
    watch_close(&f->watch, 5000);
    assert_true(notice_clocks().boot_ms - began < 3000);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* nothing is left of it */
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(silence_with_exit_code_0_is_no_notice),
        CASE(a_line_is_a_notice_and_a_comma_is_escaped),
        CASE(another_exit_code_is_trouble_and_no_notice),
        CASE(a_command_that_does_not_exist_is_trouble),
        CASE(one_that_hangs_is_killed_with_its_children),
        CASE(a_child_left_behind_is_not_waited_for),
        CASE(much_output_is_cut_and_does_not_block_it),
        CASE(a_host_that_reaps_all_children_changes_nothing),
        CASE(it_has_default_signals_and_no_descriptor_of_the_hosts),
        CASE(closing_kills_the_one_that_runs),
    };

    return cmocka_run_group_tests_name("notice_command", tests, NULL, NULL);
}
