/* The guard of `muster run`: what it was told of dies with the supervisor, and nothing else. */
#include "tools/run/supervise_guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEADLINE_MS 10000

/* In a process group of its own, as each rank is. */
static pid_t start_group(void)
{
    pid_t pid = fork();

    if (pid == 0) {
        setpgid(0, 0);
        for (;;)
            pause();
    }
    assert_true(pid > 0);
    setpgid(pid, pid);
    return pid;
}

static void is_killed(pid_t pid)
{
    int status, waited_ms = 0;

    for (; waitpid(pid, &status, WNOHANG) == 0; waited_ms++) {
        if (waited_ms == DEADLINE_MS) {
            kill(pid, SIGKILL);
            fail_msg("the guard left it alive");
        }
        poll(NULL, 0, 1);
    }
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
}

static void lives(pid_t pid)
{
    int status;

    assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
}

static void groups_that_it_knows_are_killed_and_forgotten_ones_are_not(void **state)
{
    struct guard guard;
    pid_t known = start_group(), forgotten = start_group(), last = start_group();

    (void)state;
    assert_true(guard_start(&guard));
    guard_add(&guard, known);
    guard_add(&guard, forgotten);
    guard_add(&guard, last);
    guard_remove(&guard, forgotten);
    guard_stop(&guard); /* the pipe ends, as when the supervisor is killed */
    assert_int_equal(guard.pid, 0);
    is_killed(known);
    is_killed(last);
    lives(forgotten);
}

/* A signal that ends the job is not for the guard, from its first moment: it has yet to clean up.
 */
static void signals_do_not_end_it_before(void **state)
{
    sigset_t before, after;

    (void)state;
    sigprocmask(SIG_BLOCK, NULL, &before);
    for (int again = 0; again < 20; again++) {
        pid_t known = start_group();
        struct guard guard;

        assert_true(guard_start(&guard));
        kill(guard.pid, SIGTERM);
        kill(guard.pid, SIGHUP);
        guard_add(&guard, known);
        guard_stop(&guard);
        is_killed(known);
    }
    sigprocmask(SIG_BLOCK, NULL, &after);
    for (int signo = 1; signo < NSIG; signo++) /* the supervisor's own are as they were */
        assert_int_equal(sigismember(&after, signo), sigismember(&before, signo));
}

static void without_a_guard_nothing_is_told(void **state)
{
    struct guard none = {.pid = 0, .fd = -1};

    (void)state;
    guard_add(&none, 1);
    guard_remove(&none, 1);
    guard_stop(&none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_that_it_knows_are_killed_and_forgotten_ones_are_not),
        cmocka_unit_test(signals_do_not_end_it_before),
        cmocka_unit_test(without_a_guard_nothing_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
