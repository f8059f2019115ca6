/* link_key - the key that a client shows to its broker: the file that `muster key` made for it.
 * Owns: the rule where it is (MUSTER_KEY_FILE), who may read it, and the sockets' CURVE options.
 * Never: keeps a secret, or writes one anywhere. */
#ifndef NODE_LINK_KEY_H
#define NODE_LINK_KEY_H

#include "schema/keys/keys.h"
#include "schema/status.h"

#include <stdbool.h>

#define LINK_KEY_VARIABLE "MUSTER_KEY_FILE"

/* Reads a key file. MUSTER_E_AUTH: other users could read it. MUSTER_E_CORRUPT, MUSTER_E_IO: the
 * text names file and remedy. The caller wipes what it got. */
enum muster_status link_key_read(const char *path, struct key_file *ret_file,
                                 struct muster_error *err);

/* The value of MUSTER_KEY_FILE; NULL: none. Borrowed from the environment. */
const char *link_key_path(void);

/* The signer that manifests must have according to that file; "": there is no such line, or no
 * file. Statuses of link_key_read. */
enum muster_status link_key_signer(char ret_signer[SIGNER_MAX + 1], struct muster_error *err);

/* Before connecting: a tcp endpoint is connected with the key in this file, and never without it.
 * path NULL, or a local socket: nothing is done. Statuses of link_key_read, and MUSTER_E_AUTH: the
 * key has expired. */
enum muster_status link_key_use(void *socket, const char *endpoint, const char *path,
                                struct muster_error *err);

#endif
