/* paths - the default places of sockets, databases and directories. Pure: the caller reads the
 * environment. */
#ifndef SCHEMA_PATHS_H
#define SCHEMA_PATHS_H

#include "schema/limits.h"

#include <stdbool.h>
#include <stdint.h>

/* The endpoint at which a musterd without options listens, and which nodes and tools without
 * options ask: root "ipc:///run/muster/broker.sock"; else
 * "ipc://$XDG_RUNTIME_DIR/muster/broker.sock"; without that variable (NULL, or not an absolute
 * path) "ipc:///tmp/muster-UID/broker.sock". False: it does not fit. */
bool paths_default_endpoint(unsigned uid, const char *xdg_runtime_dir,
                            char ret_endpoint[ENDPOINT_MAX + 1]);

/* The database of a musterd without options, which tools without options read: root
 * "/var/lib/muster/muster.db"; else "$XDG_STATE_HOME/muster/muster.db", without that variable
 * (NULL, or not an absolute path) "$HOME/.local/state/muster/muster.db". False: no variable says,
 * or it does not fit. */
bool paths_default_db(unsigned uid, const char *xdg_state_home, const char *home,
                      char ret_path[PATH_BYTES_MAX + 1]);

/* "postgresql://..." or "postgres://...", which is no path. */
bool paths_is_postgres(const char *place);

/* Of the directory of a checkpoint: the "/.muster/<name>" that a path of one without its final name
 * ends in; NULL = it has one. */
const char *paths_under_way(const char *path);

/* The number that a job's program gives a step, less the count of steps done: 0, or -1 for a
 * manager's, which counts from 0. The name of a checkpoint's directory has the program's number.
 * One without its final name, or of another name, says 0. */
int64_t paths_step_offset(const char *path, int64_t step);

/* How long an open waits for a broker, unless the user says. Of several brokers one is active again
 * only when a dead one's lease has ended. brokers: their addresses. */
int64_t paths_connect_ms(const char *brokers);

#endif
