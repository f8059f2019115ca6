/* The signal source as a source: what another handler over ours does to its state. */
#include "tests/support/notice_fixture.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

static const int signals[] = {SIGUSR1};

static struct watch *open_watch(int fd)
{
    struct watch *watch = NULL;
    struct muster_error err;

    if (watch_open(&(struct watch_options){.signals = signals, .signal_count = 1, .wake_fd = fd},
                   &watch, &err) != MUSTER_OK)
        fail_msg("%s", err.text);
    return watch;
}

static void a_signal_that_the_program_ignores_since_is_said_with_the_call_that_helps(void **state)
{
    int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    struct watch *watch = open_watch(fd);
    struct source_status status;
    struct sigaction ours, theirs = {.sa_handler = SIG_IGN};

    (void)state;
    assert_false(watch_take_change(watch, &status));
    assert_int_equal(sigaction(SIGUSR1, &theirs, &ours), 0);
    assert_true(watch_take_change(watch, &status));
    assert_string_equal(status.name, "signal");
    assert_int_equal(status.state, SOURCE_DEGRADED);
    assert_non_null(strstr(status.text, "muster_notify_signal(SIGUSR1)"));
    assert_false(watch_take_change(watch, &status)); /* said once */
    assert_int_equal(sigaction(SIGUSR1, &ours, NULL), 0);
    assert_true(watch_take_change(watch, &status));
    assert_int_equal(status.state, SOURCE_HEALTHY);
    watch_close(&watch, 1000);
    close(fd);
}

static volatile sig_atomic_t program_calls;

static void program_handler(int signo)
{
    (void)signo;
    program_calls++;
}

static void a_handler_over_ours_goes_below_it_and_both_hear_the_signal(void **state)
{
    int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    struct watch *watch = open_watch(fd);
    struct sigaction theirs = {.sa_handler = program_handler}, none = {.sa_handler = SIG_DFL};
    struct source_status status;
    struct notice_record record;

    (void)state;
    assert_int_equal(sigaction(SIGUSR1, &theirs, NULL), 0);
    assert_true(watch_take_change(watch, &status));
    assert_int_equal(status.state, SOURCE_HEALTHY);
    assert_non_null(strstr(status.text, "SIGUSR1"));
    assert_false(watch_take_change(watch, &status)); /* said once */
    raise(SIGUSR1);
    assert_int_equal(program_calls, 1);
    assert_true(watch_take(watch, &record));
    assert_int_equal(record.item.kind, NOTICE_SIGNAL);
    watch_close(&watch, 1000);
    assert_int_equal(sigaction(SIGUSR1, &none, NULL), 0);
    close(fd);
}

static void a_signal_is_one_record(void **state)
{
    int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    struct watch *watch = open_watch(fd);
    struct notice_record record;

    (void)state;
    raise(SIGUSR1);
    assert_true(watch_take(watch, &record));
    assert_string_equal(record.source, "signal");
    assert_int_equal(record.item.kind, NOTICE_SIGNAL);
    assert_int_equal(record.number, 1);
    assert_false(watch_take(watch, &record));
    watch_forget(watch, 1); /* cancelled by an operator */
    assert_false(watch_take(watch, &record));
    watch_close(&watch, 1000);
    close(fd);
}

/* Time and text of the first record of SIGUSR1, with the clock's time of it taken before. */
static struct notice_record record_of(bool usual_grace, int64_t *ret_before_boot_ms)
{
    int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    struct watch *watch = NULL;
    struct notice_record record = {.number = 0};

    assert_int_equal(watch_open(&(struct watch_options){.signals = signals,
                                                        .signal_count = 1,
                                                        .usual_grace = usual_grace,
                                                        .wake_fd = fd},
                                &watch, NULL),
                     MUSTER_OK);
    *ret_before_boot_ms = notice_clocks().boot_ms;
    raise(SIGUSR1);
    assert_true(watch_take(watch, &record));
    watch_close(&watch, 1000);
    close(fd);
    return record;
}

static void a_signal_has_the_launchers_usual_time_unless_the_user_says_one(void **state)
{
    struct notice_record record;
    int64_t before;

    (void)state;
    setenv("OMPI_COMM_WORLD_RANK", "0", 1);
    record = record_of(true, &before);
    assert_in_range(record.item.deadline_boot_ms, before + 2000, notice_clocks().boot_ms + 2000);
    assert_non_null(strstr(record.item.text, "SIGUSR1 from pid "));
    assert_non_null(strstr(record.item.text, "; mpirun gives 2 s"));
    record = record_of(false, &before);
    assert_int_equal(record.item.deadline_boot_ms, -1);
    assert_null(strstr(record.item.text, "gives"));
    unsetenv("OMPI_COMM_WORLD_RANK");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_signal_that_the_program_ignores_since_is_said_with_the_call_that_helps),
        cmocka_unit_test(a_handler_over_ours_goes_below_it_and_both_hear_the_signal),
        cmocka_unit_test(a_signal_is_one_record),
        cmocka_unit_test(a_signal_has_the_launchers_usual_time_unless_the_user_says_one),
    };

    return cmocka_run_group_tests_name("notice_signal", tests, NULL, NULL);
}
