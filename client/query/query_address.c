/* query_address - see query_address.h. */
#include "client/query/query_address.h"

#include "schema/brokers.h"
#include "schema/error.h"
#include "schema/number.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SCHEME_SIZE 6 /* "tcp://", "ipc://" */

static bool address_is_tcp(const char *address)
{
    return strncmp(address, "tcp://", SCHEME_SIZE) == 0;
}

bool query_address_is(const char *text)
{
    return address_is_tcp(text) || strncmp(text, "ipc://", SCHEME_SIZE) == 0;
}

static enum muster_status address_check_one(const char *address, struct muster_error *err)
{
    const char *rest = address + SCHEME_SIZE, *colon;
    int64_t port;

    if (!query_address_is(address))
        return error_set(err, MUSTER_E_ARGUMENT,
                         "\"%.200s\" is not a broker's address: give tcp://host:port or ipc://path",
                         address);
    if (!address_is_tcp(address))
        return rest[0] != '\0' ? MUSTER_OK
                               : error_set(err, MUSTER_E_ARGUMENT,
                                           "\"%s\" names no socket: give ipc:///path", address);
    colon = strrchr(rest, ':');
    if (colon == NULL || (rest[0] == '[' && colon[-1] != ']'))
        return error_set(err, MUSTER_E_ARGUMENT, "%.200s has no port: give tcp://host:port",
                         address);
    if (colon == rest || !number_read_digits(colon + 1, 1, 65535, &port))
        return error_set(err, MUSTER_E_ARGUMENT,
                         "%.200s is not tcp://host:port with a port from 1 to 65535", address);
    return MUSTER_OK;
}

enum muster_status query_address_check(const char *brokers, struct muster_error *err)
{
    struct brokers list;
    enum muster_status status = brokers_read(brokers, &list, err);

    for (size_t i = 0; status == MUSTER_OK && i < list.count; i++)
        status = address_check_one(list.address[i], err);
    return status;
}

bool query_address_host(const char *address, char ret_host[ADDRESS_HOST_MAX + 1],
                        const char **ret_port)
{
    const char *host = address + SCHEME_SIZE, *colon;
    size_t length;

    if (!address_is_tcp(address))
        return false;
    length = strcspn(host, ",");
    colon = memrchr(host, ':', length);
    length = colon != NULL ? (size_t)(colon - host) : length;
    if (length > 1 && host[0] == '[' && host[length - 1] == ']')
        host++, length -= 2;
    if (length == 0 || length > ADDRESS_HOST_MAX)
        return false;
    memcpy(ret_host, host, length);
    ret_host[length] = '\0';
    *ret_port = colon != NULL ? colon + 1 : NULL;
    return true;
}

static bool address_trouble_of_host(const char *address, char ret_text[ADDRESS_TROUBLE_MAX])
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    char name[ADDRESS_HOST_MAX + 1];
    const char *port;
    int code;

    if (!query_address_host(address, name, &port))
        return false; /* libzmq says what it thinks of it */
    code = getaddrinfo(name, NULL, &hints, &found);
    if (code == 0)
        freeaddrinfo(found);
    if (code != EAI_NONAME && code != EAI_NODATA)
        return false;
    snprintf(ret_text, ADDRESS_TROUBLE_MAX, "no such host: %s", name);
    return true;
}

static bool address_trouble_of_socket(const char *path, char ret_text[ADDRESS_TROUBLE_MAX])
{
    const char *note = path[0] != '/' ? " (a relative path; ipc:///path is absolute)" : "";

    if (path[0] == '@' || access(path, R_OK | W_OK) == 0)
        return false; /* '@': a name that is no file */
    if (errno == ENOENT || errno == ENOTDIR)
        snprintf(ret_text, ADDRESS_TROUBLE_MAX, "no such socket: %.300s%s", path, note);
    else if (errno == EACCES)
        snprintf(ret_text, ADDRESS_TROUBLE_MAX, "permission denied: %.300s is another user's",
                 path);
    return ret_text[0] != '\0';
}

bool query_address_trouble(const char *address, char ret_text[ADDRESS_TROUBLE_MAX])
{
    int error = errno;
    bool trouble;

    ret_text[0] = '\0';
    trouble = address_is_tcp(address) ? address_trouble_of_host(address, ret_text)
                                      : address_trouble_of_socket(address + SCHEME_SIZE, ret_text);
    errno = error;
    return trouble;
}
