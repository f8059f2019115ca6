/* supervise_tell - one report of a death to the broker; see supervise_tell.h. */
#include "tools/run/supervise_tell.h"

#include <muster/client.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

static void tell_main(const struct files_life *life, const struct supervise_exit *exit,
                      pid_t parent) __attribute__((noreturn));

static void tell_main(const struct files_life *life, const struct supervise_exit *exit,
                      pid_t parent)
{
    muster_client_t *client = NULL;
    int null = open("/dev/null", O_RDWR);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "muster-tell");
    if (getppid() != parent)
        _exit(1);
    for (int std = STDIN_FILENO; null >= 0 && std <= STDERR_FILENO; std++)
        dup2(null, std); /* who reads our output must see its end when the supervisor ends */
    if (muster_client_open(life->broker, TELL_LIMIT_MS, &client, NULL) == MUSTER_OK)
        muster_client_gone(client, life->job, life->rank, life->incarnation, exit->code,
                           exit->signo, NULL, NULL);
    _exit(0); /* the answer is there, or will not come: nothing is flushed or freed for it */
}

int tell_gone(const struct files_life *life, const struct supervise_exit *exit)
{
    pid_t parent = getpid();
    pid_t pid = fork();

    if (pid == 0)
        tell_main(life, exit, parent);
    return pid > 0 ? pid : 0;
}
