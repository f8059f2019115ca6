#include "tests/bench/broker.h"

#include <signal.h>
#include <stdio.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t broker; /* 0 = none */

bool bench_broker_start(const char *musterd, const char *db, const char *address)
{
    broker = fork();
    if (broker == 0) {
        if (freopen("/dev/null", "w", stderr) == NULL)
            _exit(127);
        execl(musterd, "musterd", "--db", db, "--listen", address, (char *)NULL);
        _exit(127);
    }
    return broker > 0;
}

void bench_broker_stop(void)
{
    kill(broker, SIGTERM);
    waitpid(broker, NULL, 0);
    broker = 0;
}

void bench_broker_kill(void)
{
    if (broker > 0)
        kill(broker, SIGKILL);
}
