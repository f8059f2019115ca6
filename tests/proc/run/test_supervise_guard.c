/* The guard of `muster run`: what it was told of dies with the supervisor, and nothing else. */
#include "tools/run/supervise_guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
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

/* It has taken its name, and so blocks all signals. */
static void await_guard(const struct guard *guard)
{
    char path[64], name[32] = "";
    int waited_ms = 0;

    snprintf(path, sizeof path, "/proc/%d/comm", (int)guard->pid);
    while (strcmp(name, "muster-guard\n") != 0) {
        FILE *file = fopen(path, "r");

        assert_non_null(file);
        assert_true(waited_ms++ < DEADLINE_MS);
        if (fgets(name, sizeof name, file) == NULL)
            name[0] = '\0';
        fclose(file);
        poll(NULL, 0, 1);
    }
}

/* A signal that ends the job is not for the guard: it has yet to clean up. */
static void signals_do_not_end_it_before(void **state)
{
    struct guard guard;
    pid_t known = start_group();

    (void)state;
    assert_true(guard_start(&guard));
    guard_add(&guard, known);
    await_guard(&guard);
    kill(guard.pid, SIGTERM);
    kill(guard.pid, SIGHUP);
    guard_stop(&guard);
    is_killed(known);
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
