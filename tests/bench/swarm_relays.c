/* swarm_relays - relays between a swarm and its broker: one for SWARM_RELAY_RANKS nodes, as a host
 * has one; see swarm.h. */
#include "tests/bench/swarm.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_MS 30000

static pid_t relays[WORLD_SIZE_MAX];
static size_t relays_count;

/* watch: an inotify descriptor of the file's directory, made before the server was started. Ends
 * early when the server does. */
void await_port_file(int watch, pid_t process, const char *path, struct door *ret_door)
{
    struct pollfd items[] = {{.fd = watch, .events = POLLIN},
                             {.fd = (int)syscall(SYS_pidfd_open, process, 0), .events = POLLIN}};
    char seen[4096];
    double until = bench_now_ms() + PATIENCE_MS;
    FILE *file;

    while ((file = fopen(path, "re")) == NULL) {
        int ready = poll(items, 2, (int)fmax(until - bench_now_ms(), 0));

        if (ready <= 0 || items[1].revents != 0 || read(watch, seen, sizeof seen) < 0)
            bench_die("musterd did not start; what it said is above");
    }
    close(items[1].fd);
    if (fgets(ret_door->commands, SWARM_ENDPOINT_BYTES, file) == NULL ||
        fgets(ret_door->events, SWARM_ENDPOINT_BYTES, file) == NULL)
        bench_die("musterd wrote no endpoints to %s", path);
    ret_door->commands[strcspn(ret_door->commands, "\n")] = '\0';
    ret_door->events[strcspn(ret_door->events, "\n")] = '\0';
    fclose(file);
}

static pid_t relay_run(const char *musterd, const char *dir, const char *commands, size_t number)
{
    char listen[PATH_MAX + 32], port[PATH_MAX + 32];
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    snprintf(listen, sizeof listen, "ipc://%s/r%zu", dir, number);
    snprintf(port, sizeof port, "%s/r%zu.port", dir, number);
    dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
    execl(musterd, musterd, "--relay", commands, "--listen", listen, "--port-file", port,
          (char *)NULL);
    _exit(127);
}

void relays_start(const char *musterd, const char *dir, const char *commands, size_t count,
                  size_t each, struct door *ret_doors)
{
    char head[SWARM_ENDPOINT_BYTES], port[PATH_MAX + 32];
    int watch = inotify_init1(IN_CLOEXEC);

    snprintf(head, sizeof head, "%s", commands);
    if (inotify_add_watch(watch, dir, IN_CLOSE_WRITE | IN_MOVED_TO) < 0)
        bench_die("cannot watch %s: %s", dir, strerror(errno));
    for (; relays_count * each < count; relays_count++) {
        relays[relays_count] = relay_run(musterd, dir, head, relays_count);
        snprintf(port, sizeof port, "%s/r%zu.port", dir, relays_count);
        await_port_file(watch, relays[relays_count], port, &ret_doors[relays_count]);
    }
    close(watch);
}

void relays_stop(int signo)
{
    for (size_t i = 0; i < relays_count; i++)
        kill(relays[i], signo);
    for (size_t i = 0; i < relays_count; i++)
        waitpid(relays[i], NULL, 0);
    relays_count = 0;
}
