/* supervise_guard - kills the ranks' process groups when `muster run` was killed; see the header */
#include "tools/run/supervise_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define GROUPS_MAX 1024

/* Negative: forget the group. Small writes to a pipe are atomic. */
static void guard_tell(const struct guard *guard, pid_t message)
{
    if (guard->pid > 0 && write(guard->fd, &message, sizeof message) < 0)
        return; /* it is gone: there is nobody to tell */
}

void guard_add(const struct guard *guard, pid_t group)
{
    guard_tell(guard, group);
}

void guard_remove(const struct guard *guard, pid_t group)
{
    guard_tell(guard, -group);
}

static void guard_groups_change(pid_t *groups, size_t *count, pid_t message)
{
    if (message > 0) {
        if (*count < GROUPS_MAX)
            groups[(*count)++] = message;
        return;
    }
    for (size_t i = 0; i < *count; i++) {
        if (groups[i] == -message) {
            groups[i] = groups[--*count];
            return;
        }
    }
}

/* The whole life of the guard, with all signals blocked. */
static void guard_main(int fd) __attribute__((noreturn));

static void guard_main(int fd)
{
    pid_t groups[GROUPS_MAX];
    size_t count = 0;
    pid_t message;
    int null;

    setsid(); /* a ^C of the terminal is not for it */
    prctl(PR_SET_NAME, "muster-guard");
    null = open("/dev/null", O_RDWR);
    for (int std = STDIN_FILENO; null >= 0 && std <= STDERR_FILENO; std++)
        dup2(null, std); /* who reads our output must see its end when the supervisor ends */
    for (;;) {
        ssize_t length = read(fd, &message, sizeof message);

        if (length == (ssize_t)sizeof message)
            guard_groups_change(groups, &count, message);
        else if (length >= 0 || errno != EINTR)
            break;
    }
    for (size_t i = 0; i < count; i++)
        kill(-groups[i], SIGKILL);
    _exit(0);
}

bool guard_start(struct guard *ret)
{
    int fds[2];
    sigset_t all, before;
    pid_t pid;

    ret->pid = 0;
    ret->fd = -1;
    if (pipe2(fds, O_CLOEXEC) != 0)
        return false;
    sigfillset(&all); /* no signal to the job may end the guard, not even while it starts */
    sigprocmask(SIG_BLOCK, &all, &before);
    pid = fork();
    if (pid == 0) {
        close(fds[1]);
        guard_main(fds[0]);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    close(fds[0]);
    if (pid < 0) {
        close(fds[1]);
        return false;
    }
    ret->pid = pid;
    ret->fd = fds[1];
    return true;
}

void guard_stop(struct guard *guard)
{
    if (guard->pid <= 0)
        return;
    close(guard->fd);
    while (waitpid(guard->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    guard->pid = 0;
    guard->fd = -1;
}
