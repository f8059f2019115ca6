/* brokers - the addresses of the brokers that take over from each other: "tcp://a:7700", or
 * "tcp://a:7700,tcp://b:7700". One of them is active. Pure. */
#ifndef SCHEMA_BROKERS_H
#define SCHEMA_BROKERS_H

#include "schema/limits.h"
#include "schema/status.h"

#include <stdbool.h>
#include <stddef.h>

struct brokers {
    size_t count; /* 1 to BROKERS_MAX */
    char address[BROKERS_MAX][ENDPOINT_MAX + 1];
};

/* Splits the text at its commas. MUSTER_E_ARGUMENT: an address is empty, too long or there twice,
 * or there are too many. It looks at no scheme, host or port. */
enum muster_status brokers_read(const char *text, struct brokers *ret_brokers,
                                struct muster_error *err);

/* Where a SUB connects if a broker at `command` tells `events`: an endpoint without a host
 * ("tcp://0.0.0.0:7701", a host of star) is at the host of the command endpoint. False: it does not
 * fit or cannot be understood. */
bool brokers_events_at(const char *command, const char *events,
                       char ret_endpoint[ENDPOINT_MAX + 1]);

#endif
