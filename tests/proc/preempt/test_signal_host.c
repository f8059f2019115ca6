/* What a host sees of our signal handlers: its threads, its children, its own handlers, and being
 * process 1. */
#include "node/notice/signal.h"
#include "tests/support/lone_node.h"
#include "tests/support/notice_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define DISPLACED_MS 2000 /* seen within a second, heard with the heartbeat after it */

static const int signals[] = {SIGTERM, SIGUSR1};

static struct watch *open_watch(int fd)
{
    struct watch *watch = NULL;
    struct muster_error err;

    if (watch_open(&(struct watch_options){.signals = signals, .signal_count = 2, .wake_fd = fd},
                   &watch, &err) != MUSTER_OK)
        fail_msg("%s", err.text);
    return watch;
}

/* As slurmstepd and mpirun send them. */
static void two_signals_6_ms_apart_are_one_notice(void **state)
{
    int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    struct watch *watch = open_watch(fd);
    struct notice_record record;
    int notices = 0;

    (void)state;
    kill(getpid(), SIGTERM);
    while (watch_take(watch, &record)) /* the first was taken before the second comes */
        notices += record.number != 0;
    poll(NULL, 0, 6);
    kill(getpid(), SIGTERM);
    while (watch_take(watch, &record))
        notices += record.number != 0;
    assert_int_equal(notices, 1);
    watch_close(&watch, 1000);
    close(fd);
}

/* A data loader's worker is killed, by number and with a group of its own: not the trainer's end */
static void a_childs_signal_is_not_the_parents_notice(void **state)
{
    int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), status = 0;
    struct watch *watch = open_watch(fd);
    struct notice_record record;
    pid_t child = fork();

    (void)state;
    if (child == 0)
        for (;;)
            pause();
    assert_int_equal(kill(child, SIGTERM), 0);
    assert_int_equal(waitpid(child, &status, 0), child); /* its default action: killable */
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGTERM);
    assert_false(watch_take(watch, &record));
    assert_int_equal(poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 0), 0);
    watch_close(&watch, 1000);
    close(fd);
}

static void *mask_of_new_thread(void *arg)
{
    pthread_sigmask(SIG_SETMASK, NULL, arg);
    return NULL;
}

static void nothing_is_blocked_for_the_hosts_threads(void **state)
{
    int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    sigset_t before, during, thread_mask;
    struct sigaction action;
    struct watch *watch;
    pthread_t thread;

    (void)state;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    watch = open_watch(fd);
    pthread_sigmask(SIG_SETMASK, NULL, &during);
    assert_int_equal(pthread_create(&thread, NULL, mask_of_new_thread, &thread_mask), 0);
    pthread_join(thread, NULL);
    for (int signo = 1; signo <= SIGNAL_NUMBER_MAX; signo++) {
        assert_int_equal(sigismember(&during, signo), sigismember(&before, signo));
        assert_int_equal(sigismember(&thread_mask, signo), sigismember(&before, signo));
    }
    assert_int_equal(sigaction(SIGTERM, NULL, &action), 0);
    assert_int_equal(action.sa_flags & (SA_SIGINFO | SA_RESTART | SA_ONSTACK),
                     SA_SIGINFO | SA_RESTART | SA_ONSTACK);
    watch_close(&watch, 1000);
    close(fd);
}

static void masks_of_a_program(char *ret_text, size_t size)
{
    FILE *file = popen("exec grep -E 'SigBlk|SigIgn' /proc/self/status", "r");
    size_t used = fread(ret_text, 1, size - 1, file);

    ret_text[used] = '\0';
    assert_int_equal(pclose(file), 0);
}

static void a_program_that_is_started_inherits_nothing_blocked_or_ignored(void **state)
{
    int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), status = 0;
    char before[256], during[256];
    struct watch *watch;
    pid_t child;

    (void)state;
    masks_of_a_program(before, sizeof before);
    watch = open_watch(fd);
    masks_of_a_program(during, sizeof during);
    assert_string_equal(during, before);
    child = fork();
    if (child == 0) {
        execlp("sleep", "sleep", "600", (char *)NULL);
        _exit(9);
    }
    kill(child, SIGTERM); /* before or after its exec: it dies */
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    watch_close(&watch, 1000);
    close(fd);
}

/* Process 1 has no default actions: without a handler a signal is lost. From outside its sender has
 * no number. */
static int as_process_1(int ready)
{
    int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    struct watch *watch = open_watch(fd);
    struct notice_record record;

    if (getpid() != 1 || write(ready, "x", 1) != 1)
        return 2;
    while (poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 20000) != 1)
        if (errno != EINTR)
            return 3;
    if (!watch_take(watch, &record) || strcmp(record.item.text, "SIGTERM") != 0)
        return 4;
    return 0;
}

static void process_1_hears_a_signal_from_outside(void **state)
{
    int ready[2], status = 0;
    pid_t between, child;
    char byte;

    (void)state;
    assert_int_equal(pipe(ready), 0);
    between = fork();
    if (between == 0) {
        if (unshare(CLONE_NEWPID) != 0)
            _exit(77);
        child = fork();
        if (child == 0)
            _exit(as_process_1(ready[1]));
        if (read(ready[0], &byte, 1) != 1)
            _exit(5);
        kill(child, SIGTERM);
        waitpid(child, &status, 0);
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 6);
    }
    assert_int_equal(waitpid(between, &status, 0), between);
    close(ready[0]);
    close(ready[1]);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) {
        print_message("no pid namespace can be made here\n");
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* --- a whole node ----------------------------------------------------------------------------- */

static void await_signal_source(const char *state_name, int limit_ms)
{
    int64_t until = lone_now_ms() + limit_ms;
    char wanted[64];

    snprintf(wanted, sizeof wanted, "\"name\":\"signal\",\"state\":\"%s\"", state_name);
    while (lone_await(WIRE_HEARTBEAT)->u.heartbeat.sources == NULL ||
           strstr(lone.heard.u.heartbeat.sources, wanted) == NULL)
        if (lone_now_ms() > until)
            fail_msg("the heartbeats do not say %s", wanted);
}

static volatile sig_atomic_t their_calls;

static void theirs(int signo)
{
    (void)signo;
    their_calls++;
}

static void await_put_back(void)
{
    int64_t until = lone_now_ms() + DISPLACED_MS;
    struct sigaction now;

    do {
        assert_true(lone_now_ms() < until);
        poll(NULL, 0, 10);
        assert_int_equal(sigaction(SIGUSR1, NULL, &now), 0);
    } while (now.sa_handler == theirs);
}

static void a_handler_that_the_program_sets_after_open_takes_no_notice_from_the_node(void **state)
{
    struct sigaction over = {.sa_handler = theirs}, now;

    (void)state;
    their_calls = 0;
    lone_start();
    lone_welcome_and_start();
    await_signal_source("healthy", LONE_DEADLINE_MS);
    assert_int_equal(sigaction(SIGUSR1, &over, NULL), 0);
    await_put_back();
    assert_int_equal(kill(getpid(), SIGUSR1), 0);
    assert_string_equal(lone_await(WIRE_NOTICE)->u.notice.source, "signal");
    assert_int_equal(their_calls, 1);
    lone_await_leave();
    assert_int_equal(sigaction(SIGUSR1, NULL, &now), 0);
    assert_true(now.sa_handler == theirs);
    signal(SIGUSR1, SIG_DFL);
}

static void a_signal_that_the_program_ignores_after_open_is_told_at_once(void **state)
{
    struct sigaction over = {.sa_handler = SIG_IGN}, ours, now;

    (void)state;
    lone_start();
    lone_welcome_and_start();
    await_signal_source("healthy", LONE_DEADLINE_MS);
    assert_int_equal(sigaction(SIGUSR1, &over, &ours), 0);
    await_signal_source("degraded", DISPLACED_MS);
    assert_non_null(strstr(lone.heard.u.heartbeat.sources, "SIGUSR1"));
    assert_int_equal(sigaction(SIGUSR1, &ours, NULL), 0);
    await_signal_source("healthy", DISPLACED_MS);
    assert_int_equal(sigaction(SIGUSR1, &over, NULL), 0);
    lone_end();
    assert_int_equal(sigaction(SIGUSR1, NULL, &now), 0);
    assert_true(now.sa_handler == SIG_IGN);
    signal(SIGUSR1, SIG_DFL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, lone_setup, lone_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_signals_6_ms_apart_are_one_notice),
        cmocka_unit_test(a_childs_signal_is_not_the_parents_notice),
        cmocka_unit_test(nothing_is_blocked_for_the_hosts_threads),
        cmocka_unit_test(a_program_that_is_started_inherits_nothing_blocked_or_ignored),
        cmocka_unit_test(process_1_hears_a_signal_from_outside),
        TEST(a_handler_that_the_program_sets_after_open_takes_no_notice_from_the_node),
        TEST(a_signal_that_the_program_ignores_after_open_is_told_at_once),
    };

    return cmocka_run_group_tests_name("signal_host", tests, NULL, NULL);
}
