/* child - see child.h. */
#include "node/notice/base/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* The command sees neither the descriptor nor the variable; its exit code goes where nobody else
 * reads. */
static const char script[] = "sh -c \"$0\" 3>&- </dev/null; echo $? >&3";

void child_init(struct child *child, int64_t limit_ms)
{
    child->group = 0;
    child->limit_ms = limit_ms;
    child->output.fd = child->code.fd = -1;
}

static void child_close_end(struct child_pipe *end)
{
    if (end->fd >= 0)
        close(end->fd);
    end->fd = -1;
}

/* The child: default dispositions, nothing blocked, no descriptor of the host's. */
static int child_spawn(struct child *child, const char *command, int output, int code)
{
    char *argv[] = {"sh", "-c", (char *)(uintptr_t)script, (char *)(uintptr_t)command, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    int failed;

    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                              POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, output, 1);
    posix_spawn_file_actions_adddup2(&actions, code, 3);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addclosefrom_np(&actions, 4);
    failed = posix_spawn(&child->group, "/bin/sh", &actions, &attributes, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    if (failed != 0)
        child->group = 0;
    return failed;
}

/* A descriptor that is not below 4: what the child's are put on must not be one that is yet to be
 * put. */
static bool child_make_pipe(int ret_ends[2])
{
    int low[2];

    if (pipe2(low, O_CLOEXEC) != 0)
        return false;
    ret_ends[0] = fcntl(low[0], F_DUPFD_CLOEXEC, 10);
    ret_ends[1] = fcntl(low[1], F_DUPFD_CLOEXEC, 10);
    close(low[0]);
    close(low[1]);
    if (ret_ends[0] >= 0 && ret_ends[1] >= 0 && fcntl(ret_ends[0], F_SETFL, O_NONBLOCK) == 0)
        return true;
    close(ret_ends[0]);
    close(ret_ends[1]);
    return false;
}

int child_start(struct child *child, const char *command, int64_t now_boot_ms)
{
    int output[2] = {-1, -1}, code[2] = {-1, -1}, failed = EMFILE;

    child->started_boot_ms = now_boot_ms;
    if (child_make_pipe(output) && child_make_pipe(code))
        failed = child_spawn(child, command, output[1], code[1]);
    if (output[1] >= 0)
        close(output[1]);
    if (code[1] >= 0)
        close(code[1]);
    child->output.fd = output[0];
    child->code.fd = code[0];
    child->output.size = child->code.size = 0;
    if (failed != 0) {
        child_close_end(&child->output);
        child_close_end(&child->code);
    }
    return failed;
}

/* False: no more will come. Bytes beyond the cap are read and left out. */
static bool child_take(struct child_pipe *end)
{
    char spare[512];

    for (;;) {
        size_t room = sizeof end->bytes - end->size;
        ssize_t got = read(end->fd, room > 0 ? end->bytes + end->size : spare,
                           room > 0 ? room : sizeof spare);

        if (got > 0 && room > 0)
            end->size += (size_t)got;
        if (got == 0)
            return false;
        if (got < 0)
            return errno == EAGAIN || errno == EINTR;
    }
}

/* The leader is our child until it is waited for, so that the group's number is nobody else's. */
void child_end(struct child *child)
{
    if (child->group == 0)
        return;
    kill(-child->group, SIGKILL);
    waitpid(child->group, NULL, 0); /* killed: at once; or the host has done it */
    child->group = 0;
    child_close_end(&child->output);
    child_close_end(&child->code);
}

static long child_exit_code(struct child *child)
{
    if (child->code.size == 0 || child->code.size >= 8)
        return -1;
    child->code.bytes[child->code.size] = '\0';
    return strtol(child->code.bytes, NULL, 10);
}

enum child_state child_look(struct child *child, int64_t now_boot_ms, long *ret_code)
{
    bool ended;

    if (child->group == 0)
        return CHILD_NONE;
    ended = !child_take(&child->code) ||
            (child->code.size > 0 && child->code.bytes[child->code.size - 1] == '\n');
    if (child->output.fd >= 0 && !child_take(&child->output)) /* what was written before the code */
        child_close_end(&child->output);
    if (!ended && now_boot_ms < child_wakeup_boot_ms(child))
        return CHILD_RUNS;
    *ret_code = ended ? child_exit_code(child) : -1;
    child_end(child);
    return ended ? CHILD_ENDED : CHILD_LATE;
}

size_t child_fds(const struct child *child, struct pollfd ret_fds[SOURCE_FDS_MAX])
{
    if (child->group == 0)
        return 0;
    ret_fds[0] = (struct pollfd){.fd = child->code.fd, .events = POLLIN};
    if (child->output.fd < 0)
        return 1;
    ret_fds[1] = (struct pollfd){.fd = child->output.fd, .events = POLLIN};
    return 2;
}

int64_t child_wakeup_boot_ms(const struct child *child)
{
    return child->started_boot_ms + child->limit_ms;
}
