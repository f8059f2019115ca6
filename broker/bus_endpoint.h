/* bus_endpoint - the addresses at which a bus listens: checks that one is allowed, and that nobody
 * else uses it. Never: binds one. */
#ifndef BROKER_BUS_ENDPOINT_H
#define BROKER_BUS_ENDPOINT_H

#include "schema/limits.h"
#include "schema/status.h"

#include <stdbool.h>

/* Is `listen` something that bus_open may bind? db: there are no keys beside this database, so no
 * other host may reach it; NULL: there are. MUSTER_E_ARGUMENT says what to write instead. */
enum muster_status bus_check_listen(const char *listen, const char *db, struct muster_error *err);

bool bus_endpoint_is_ipc(const char *endpoint);

/* The port after the last colon. -1 = any free port, -2 = not a port that can be used. */
long bus_endpoint_port(const char *text);

/* Where events are published, before wildcards are resolved. */
void bus_endpoint_of_events(const char *listen, char ret_endpoint[ENDPOINT_MAX + 1]);

/* Makes the directory of a socket; the directory has to be ours. MUSTER_E_BUSY: something else is
 * at the path, or another process listens there. */
enum muster_status bus_endpoint_take_path(const char *path, struct muster_error *err);

#endif
