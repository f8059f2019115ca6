#include "tools/run/host_relay.h"

#include "node/clock.h"
#include "tools/run/supervise_options.h"
#include "tools/setup/setup.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define START_MS 10000
#define STOP_MS 2000
#define LOOK_MS 10

static void relay_path_in(const struct host_relay *relay, const char *name,
                          char ret_path[PATH_MAX + 16])
{
    snprintf(ret_path, PATH_MAX + 16, "%s/%s", relay->dir, name);
}

static void relay_exec(const struct host_relay *relay, const char *musterd, const char *broker)
{
    const char *key = getenv("MUSTER_KEY_FILE");
    char listen[PATH_MAX + 32], port[PATH_MAX + 16];

    setsid(); /* a terminal's Ctrl-C is for the ranks */
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    snprintf(listen, sizeof listen, "ipc://%s/relay", relay->dir);
    relay_path_in(relay, "port", port);
    execl(musterd, musterd, "--relay", broker, "--listen", listen, "--port-file", port,
          "--log-level", "warning", key != NULL && *key != '\0' ? "--key-file" : NULL, key,
          (char *)NULL);
    fprintf(stderr, "muster run: cannot execute %s: %s\n", musterd, strerror(errno));
    _exit(127);
}

/* False: it has ended, or the time is over. */
static bool relay_listens(struct host_relay *relay)
{
    const int64_t until_ms = clock_ms(CLOCK_BOOTTIME) + START_MS;
    char port[PATH_MAX + 16];

    relay_path_in(relay, "port", port);
    while (access(port, F_OK) != 0) {
        if (waitpid(relay->pid, NULL, WNOHANG) != 0) {
            relay->pid = 0;
            return false;
        }
        if (clock_ms(CLOCK_BOOTTIME) >= until_ms)
            return false;
        poll(NULL, 0, LOOK_MS);
    }
    return true;
}

static bool relay_folder(struct host_relay *relay)
{
    const char *parent = getenv("TMPDIR");

    snprintf(relay->dir, sizeof relay->dir, "%s/muster-XXXXXX",
             parent != NULL && *parent != '\0' ? parent : "/tmp");
    if (mkdtemp(relay->dir) != NULL)
        return true;
    run_fail("cannot make a folder for the relay, %s: %s; set TMPDIR to one that you may write",
             relay->dir, strerror(errno));
    relay->dir[0] = '\0';
    return false;
}

bool host_relay_start(struct host_relay *relay, const char *broker)
{
    char musterd[PATH_MAX];

    if (broker == NULL)
        return run_usage_error("--relay is for a broker on another host: say where it is, by "
                               "--broker or MUSTER_BROKER");
    if (!setup_find("musterd", musterd))
        return run_fail("--relay needs musterd, which is neither beside this program nor in PATH: "
                        "install it, or leave --relay away");
    if (!relay_folder(relay))
        return false;
    relay->pid = fork();
    if (relay->pid == 0)
        relay_exec(relay, musterd, broker);
    if (relay->pid < 0) {
        relay->pid = 0;
        return run_fail("cannot start a process for the relay: %s", strerror(errno));
    }
    if (!relay_listens(relay))
        return run_fail("the relay did not start%s; leave --relay away, and the ranks speak to the "
                        "broker themselves",
                        relay->pid == 0 ? ": what it said is above" : " within 10 s");
    snprintf(relay->broker, sizeof relay->broker, "ipc://%s/relay,%s", relay->dir, broker);
    return true;
}

void host_relay_stop(struct host_relay *relay)
{
    static const char *const names[] = {"port", "relay", "relay.events"};
    const int64_t until_ms = clock_ms(CLOCK_BOOTTIME) + STOP_MS;
    char path[PATH_MAX + 16];

    if (relay->pid > 0) {
        kill(relay->pid, SIGTERM);
        while (waitpid(relay->pid, NULL, WNOHANG) == 0) {
            if (clock_ms(CLOCK_BOOTTIME) >= until_ms)
                kill(relay->pid, SIGKILL);
            poll(NULL, 0, LOOK_MS);
        }
        relay->pid = 0;
    }
    if (relay->dir[0] == '\0')
        return;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        relay_path_in(relay, names[i], path);
        unlink(path);
    }
    rmdir(relay->dir);
}
