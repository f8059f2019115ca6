/* query_place - which broker or database answers when none is named: one rule for the tool, the
 * library and Python. Reads the environment and looks for files. Connects to nothing. */
#ifndef CLIENT_QUERY_PLACE_H
#define CLIENT_QUERY_PLACE_H

#include "schema/limits.h"
#include <muster/status.h>

#include <stdbool.h>

#define QUERY_PLACE_MAX BROKERS_TEXT_MAX /* a path is shorter */

/* MUSTER_BROKER, else MUSTER_DB, else the socket of a musterd without options if it is there, else
 * that musterd's database if it is there. That can be read while no broker runs.
 * MUSTER_E_BROKER: there is none of these; the text names what was looked for. MUSTER_E_ARGUMENT: a
 * variable names nothing that can be a place. */
enum muster_status query_place_find(char ret_place[QUERY_PLACE_MAX + 1], struct muster_error *err);

/* The socket of a musterd without options alone. False: it is not there. ret_endpoint is written in
 * either case; "" = XDG_RUNTIME_DIR is too long. */
bool query_place_broker(char ret_endpoint[ENDPOINT_MAX + 1]);

/* How error texts name what tells a place. For the tool, before its first thread: by its options
 * from now on, and not by the library's argument. */
void query_place_name_options(void);
const char *query_place_broker_word(void); /* "argument address" */
const char *query_place_db_word(void);     /* "argument address", too: it takes both */
#endif
