/* bus_endpoint - see bus_endpoint.h. */
#include "broker/bus_endpoint.h"

#include "broker/base/dirs.h"
#include "schema/error.h"
#include "schema/limits.h"
#include "schema/number.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define EVENTS_SUFFIX ".events"

static bool endpoint_starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static enum muster_status endpoint_check_ipc(const char *listen, struct muster_error *err)
{
    const char *path = listen + strlen("ipc://");
    const size_t path_max = sizeof((struct sockaddr_un *)NULL)->sun_path - sizeof EVENTS_SUFFIX;

    if (path[0] == '@')
        return error_set(err, MUSTER_E_ARGUMENT,
                         "listen address %s: an abstract socket can be used by every user of this "
                         "host; use a path, as ipc:///run/muster/broker.sock",
                         listen);
    if (path[0] != '/')
        return error_set(
            err, MUSTER_E_ARGUMENT,
            "listen address %s: nodes run in other directories, so the path must begin "
            "with '/', as ipc:///run/muster/broker.sock",
            listen);
    if (path[strlen(path) - 1] == '/')
        return error_set(err, MUSTER_E_ARGUMENT, "listen address %s names no file", listen);
    if (strlen(path) > path_max)
        return error_set(err, MUSTER_E_ARGUMENT,
                         "listen address %.120s: its path has %zu bytes, at most %zu fit into a "
                         "socket's name; use a shorter one",
                         listen, strlen(path), path_max);
    return MUSTER_OK;
}

static bool endpoint_is_loopback(const char *host, size_t length)
{
    static const char *const names[] = {"localhost", "[::1]", "lo", "::1"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strlen(names[i]) == length && strncmp(host, names[i], length) == 0)
            return true;
    }
    return endpoint_starts(host, "127.") && strspn(host, "0123456789.") == length;
}

long bus_endpoint_port(const char *text)
{
    int64_t port;

    if (strcmp(text, "*") == 0 || strcmp(text, "0") == 0)
        return -1;
    return number_read_digits(text, 1, 65534, &port) ? port : -2;
}

static enum muster_status endpoint_check_tcp(const char *listen, const char *db,
                                             struct muster_error *err)
{
    const char *host = listen + strlen("tcp://");
    const char *colon = strrchr(host, ':');

    if (colon == NULL || colon == host || bus_endpoint_port(colon + 1) == -2)
        return error_set(
            err, MUSTER_E_ARGUMENT,
            "listen address %s: write tcp://HOST:PORT with a port from 1 to 65534 (the "
            "next one is for events), or * for any",
            listen);
    if (db == NULL || endpoint_is_loopback(host, (size_t)(colon - host)))
        return MUSTER_OK;
    return error_set(err, MUSTER_E_ARGUMENT,
                     "listen address %s can be reached from other hosts, and this broker has no "
                     "keys, so anybody there could command it. Make one, then start it: "
                     "`muster key add NAME --job JOB --db %s` and `musterd --db %s --listen %s`; "
                     "or listen on ipc:///PATH or tcp://127.0.0.1:PORT",
                     listen, db, db, listen);
}

enum muster_status bus_check_listen(const char *listen, const char *db, struct muster_error *err)
{
    if (strlen(listen) > ENDPOINT_MAX - sizeof EVENTS_SUFFIX)
        return error_set(err, MUSTER_E_ARGUMENT, "listen address %.60s... is too long", listen);
    if (endpoint_starts(listen, "ipc://") && listen[6] != '\0')
        return endpoint_check_ipc(listen, err);
    if (endpoint_starts(listen, "tcp://"))
        return endpoint_check_tcp(listen, db, err);
    return error_set(err, MUSTER_E_ARGUMENT,
                     "listen address %s: write ipc:///PATH or tcp://HOST:PORT", listen);
}

void bus_endpoint_of_events(const char *listen, char ret_endpoint[ENDPOINT_MAX + 1])
{
    const char *colon = strrchr(listen, ':');

    if (endpoint_starts(listen, "ipc://"))
        snprintf(ret_endpoint, ENDPOINT_MAX + 1, "%s" EVENTS_SUFFIX, listen);
    else if (bus_endpoint_port(colon + 1) == -1)
        snprintf(ret_endpoint, ENDPOINT_MAX + 1, "%s", listen);
    else
        snprintf(ret_endpoint, ENDPOINT_MAX + 1, "%.*s:%ld", (int)(colon - listen), listen,
                 bus_endpoint_port(colon + 1) + 1);
}

/* libzmq unlinks whatever is at an ipc path. The state lock shows that no musterd with our database
 * lives. But a musterd with another database, or any other program, would silently lose its
 * socket. */
static enum muster_status endpoint_ipc_path_is_free(const char *path, struct muster_error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat info;
    int fd;
    bool answered;

    if (lstat(path, &info) != 0)
        return MUSTER_OK;
    if (!S_ISSOCK(info.st_mode))
        return error_set(err, MUSTER_E_BUSY,
                         "%s exists and is not a socket; remove it, or listen elsewhere", path);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return error_set_code(err, MUSTER_E_IO, errno, "cannot make a socket: %s", strerror(errno));
    memcpy(address.sun_path, path, strlen(path) + 1);
    answered = connect(fd, (struct sockaddr *)&address, sizeof address) == 0 || errno == EAGAIN;
    close(fd);
    if (answered)
        return error_set(err, MUSTER_E_BUSY,
                         "another process listens at %s; stop it, or listen elsewhere", path);
    return MUSTER_OK;
}

/* The owner of the directory can put another socket in place of ours. */
static enum muster_status endpoint_ipc_directory_is_ours(const char *path, struct muster_error *err)
{
    char directory[PATH_MAX];
    struct stat info;
    enum muster_status status = dirs_parent(path, directory, sizeof directory, err);

    if (status != MUSTER_OK)
        return status;
    if (stat(directory, &info) != 0)
        return error_set_code(err, MUSTER_E_IO, errno, "cannot look at directory %s: %s", directory,
                              strerror(errno));
    if (info.st_uid == geteuid() || info.st_uid == 0)
        return MUSTER_OK;
    return error_set(err, MUSTER_E_AUTH,
                     "directory %s belongs to another user, who could take over the socket; choose "
                     "another with --listen ipc:///PATH",
                     directory);
}

bool bus_endpoint_is_ipc(const char *endpoint)
{
    return endpoint_starts(endpoint, "ipc://");
}

enum muster_status bus_endpoint_take_path(const char *path, struct muster_error *err)
{
    enum muster_status status = dirs_make_parent(path, err);

    if (status == MUSTER_OK)
        status = endpoint_ipc_directory_is_ours(path, err);
    return status == MUSTER_OK ? endpoint_ipc_path_is_free(path, err) : status;
}
