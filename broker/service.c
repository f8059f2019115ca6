#include "broker/service.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static void service_say(const char *line)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = path != NULL ? strlen(path) : 0;
    int fd;

    if (length < 2 || length >= sizeof address.sun_path || (path[0] != '/' && path[0] != '@'))
        return;
    memcpy(address.sun_path, path, length);
    if (path[0] == '@')
        address.sun_path[0] = '\0'; /* an abstract name */
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return;
    (void)!sendto(fd, line, strlen(line), MSG_NOSIGNAL, (struct sockaddr *)&address,
                  (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length));
    close(fd);
}

void service_ready(void)
{
    service_say("READY=1");
}

void service_stopping(void)
{
    service_say("STOPPING=1");
}

/* 0: nobody watches. */
static int64_t service_watchdog_ms(void)
{
    const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");

    if (usec == NULL || (pid != NULL && strtol(pid, NULL, 10) != getpid()))
        return 0;
    return strtoll(usec, NULL, 10) / 1000;
}

void service_alive(int64_t now_boot_ms)
{
    static _Atomic int64_t every_ms = -1, next_boot_ms;

    if (every_ms < 0)
        every_ms = service_watchdog_ms() / 2;
    if (every_ms == 0 || now_boot_ms < next_boot_ms)
        return;
    next_boot_ms = now_boot_ms + every_ms;
    service_say("WATCHDOG=1");
}
