/* bus_keys - the keys of a broker: its own, and those of the clients that it lets in over TCP.
 * Owns: the copies in memory of DATABASE.key (the broker's secret), DATABASE.keys (the list) and
 * DATABASE.sign (the seed of the key that signs manifests). `muster key` makes all three.
 * They are files beside the database and not rows in it: a database that is restored from a backup
 * must not bring back a key that was revoked since.
 * Never: writes one of them; a secret in a log or an error. One thread. */
#ifndef BROKER_BUS_KEYS_H
#define BROKER_BUS_KEYS_H

#include "schema/keys/keys.h"
#include "schema/manifest/sign.h"

struct bus_keys;

/* Reads the list; one that is not there is empty. The broker's own key is read if the list has
 * one. MUSTER_E_AUTH: another user could write or read what is this broker's alone.
 * MUSTER_E_CORRUPT, MUSTER_E_IO, MUSTER_E_NOMEM. */
enum muster_status bus_keys_open(const char *db, struct bus_keys **ret_keys,
                                 struct muster_error *err);
void bus_keys_close(struct bus_keys **keys); /* NULL-safe; wipes the secret */

size_t bus_keys_count(const struct bus_keys *keys);
const char *bus_keys_secret(const struct bus_keys *keys); /* Z85; "" if the list was empty */

/* Reads DATABASE.sign. MUSTER_E_AUTH: there is none, or another user can read it. */
enum muster_status bus_keys_read_sign(struct bus_keys *keys, struct muster_error *err);
/* Borrowed until close; NULL: bus_keys_read_sign was not called. */
const struct sign_key *bus_keys_sign(const struct bus_keys *keys);

/* Has the list's file changed since it was read? It takes one system call. */
bool bus_keys_changed(const struct bus_keys *keys);
/* Reads the list again if the file has changed. *ret_lost: a key is no longer valid, or has other
 * rights. While the list cannot be read, nobody is let in. */
enum muster_status bus_keys_look(struct bus_keys *keys, int64_t now_unix_ms, bool *ret_lost,
                                 struct muster_error *err);

/* The key that a relay shows to the broker above it: the file that `muster key` made for it.
 * Statuses of bus_keys_open, and MUSTER_E_AUTH: it has expired. The caller wipes what it got. */
enum muster_status bus_keys_read_client(const char *path, int64_t now_unix_ms,
                                        struct key_file *ret_file, struct muster_error *err);

/* NULL: there is none. Borrowed until the next bus_keys_look. */
const struct key_grant *bus_keys_public(const struct bus_keys *keys, const char *text);

#endif
