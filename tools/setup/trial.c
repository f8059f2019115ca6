/* trial - a broker and a job of one's own, for `muster demo` and `muster bench`; see setup.h. */
#include "tools/setup/setup.h"

#include "tools/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

void trial_clear_environment(void)
{
    for (size_t i = 0; environ[i] != NULL;) {
        char *name = strndup(environ[i], strcspn(environ[i], "="));
        bool gone = name != NULL && strncmp(name, "MUSTER_", 7) == 0 && unsetenv(name) == 0;

        free(name);
        i = gone ? 0 : i + 1;
    }
}

int trial_find_broker(char ret_musterd[PATH_MAX])
{
    const char *named = getenv("MUSTERD");
    bool is_named = named != NULL && named[0] != '\0';

    if (is_named && access(named, X_OK) != 0)
        return tool_fail(TOOL_NO, "MUSTERD is %s, which cannot be started; correct or unset it",
                         named);
    if (is_named)
        snprintf(ret_musterd, PATH_MAX, "%s", named);
    else if (!setup_find("musterd", ret_musterd))
        return tool_fail(TOOL_NO, "there is no musterd beside this program or in PATH; install the "
                                  "package muster-broker, or set MUSTERD");
    return TOOL_DONE;
}

/* apart: a terminal's Ctrl-C does not reach the process. */
static pid_t trial_fork(const char *log, const char *const *words, bool apart)
{
    pid_t pid;

    fflush(stdout);
    pid = fork();
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    signal(SIGINT, SIG_DFL);
    if (apart)
        setpgid(0, 0);
    if (log != NULL) {
        int fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

        dup2(fd, STDOUT_FILENO);
        dup2(fd, STDERR_FILENO);
    }
    execv(words[0], (char *const *)words);
    fprintf(stderr, "muster: cannot start %s: %s\n", words[0], strerror(errno));
    _exit(127);
}

pid_t trial_start(const char *log, const char *const *words)
{
    return trial_fork(log, words, false);
}

pid_t trial_start_broker(const char *log, const char *musterd, const char *address, const char *dir)
{
    char db[PATH_MAX + 16];

    snprintf(db, sizeof db, "%s/muster.db", dir);
    return trial_fork(log, (const char *const[]){musterd, "--listen", address, "--db", db, NULL},
                      true);
}

int trial_wait(pid_t pid)
{
    int status;

    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void trial_stop(pid_t pid)
{
    if (pid <= 0)
        return;
    kill(pid, SIGTERM);
    trial_wait(pid);
}
