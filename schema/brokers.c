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
