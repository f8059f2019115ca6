#include "schema/brokers.h"

#include "schema/error.h"

#include <string.h>

static enum muster_status brokers_add(struct brokers *brokers, const char *text, size_t size,
                                      struct muster_error *err)
{
    if (size > ENDPOINT_MAX)
        return error_set(err, MUSTER_E_ARGUMENT, "a broker's address has at most %d bytes",
                         ENDPOINT_MAX);
    if (brokers->count == BROKERS_MAX)
        return error_set(err, MUSTER_E_ARGUMENT,
                         "\"%.*s\" is one broker's address too many: give at most %d", (int)size,
                         text, BROKERS_MAX);
    for (size_t i = 0; i < brokers->count; i++)
        if (strncmp(brokers->address[i], text, size) == 0 && brokers->address[i][size] == '\0')
            return error_set(err, MUSTER_E_ARGUMENT,
                             "the broker's address %.*s is there twice: give each once", (int)size,
                             text);
    memcpy(brokers->address[brokers->count], text, size);
    brokers->address[brokers->count++][size] = '\0';
    return MUSTER_OK;
}

enum muster_status brokers_read(const char *text, struct brokers *ret_brokers,
                                struct muster_error *err)
{
    struct brokers brokers = {.count = 0};

    for (const char *at = text;;) {
        size_t size = strcspn(at, ",");
        enum muster_status status;

        if (size == 0)
            return error_set(err, MUSTER_E_ARGUMENT,
                             "\"%.200s\" has an empty broker's address: give tcp://HOST:PORT, or "
                             "several with a comma between them and no space",
                             text);
        status = brokers_add(&brokers, at, size, err);
        if (status != MUSTER_OK)
            return status;
        if (at[size] == '\0')
            break;
        at += size + 1;
    }
    *ret_brokers = brokers;
    return MUSTER_OK;
}

bool brokers_events_at(const char *command, const char *events, char ret_endpoint[ENDPOINT_MAX + 1])
{
    static const char *const anywhere[] = {"*:", "0.0.0.0:", "[::]:", ":"};
    const char *rest = events + strlen("tcp://"), *port = strrchr(events, ':');
    const char *host_end = strrchr(command, ':');
    size_t host_size, port_size;
    bool unspecified = false;

    if (strlen(events) > ENDPOINT_MAX || strstr(events, "://") == NULL)
        return false;
    if (strncmp(events, "tcp://", strlen("tcp://")) == 0)
        for (size_t i = 0; i < sizeof anywhere / sizeof *anywhere; i++)
            unspecified |= strncmp(rest, anywhere[i], strlen(anywhere[i])) == 0;
    if (!unspecified) {
        memcpy(ret_endpoint, events, strlen(events) + 1);
        return true;
    }
    if (strncmp(command, "tcp://", strlen("tcp://")) != 0 || host_end < command + strlen("tcp://"))
        return false;
    host_size = (size_t)(host_end - command);
    port_size = strlen(port) + 1;
    if (host_size + port_size > ENDPOINT_MAX + 1)
        return false;
    memmove(ret_endpoint, command, host_size);
    memcpy(ret_endpoint + host_size, port, port_size);
    return true;
}
