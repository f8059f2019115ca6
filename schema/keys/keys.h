/* keys - who may say what to a broker over TCP, as text: the broker's list of keys, and the file
 * that a client shows.
 * Pure: the caller opens files, makes keys and reads the clock.
 *
 * The list has a line for each key, seven words between blanks; `#` begins a comment:
 *     NAME ROLE JOBS PUBLIC-KEY NOT-BEFORE EXPIRES REVOKED
 * Times are unix milliseconds, `-` for none. It names public keys only.
 * A client's file has lines `NAME = VALUE`. It holds a secret. */
#ifndef SCHEMA_KEYS_H
#define SCHEMA_KEYS_H

#include "schema/limits.h"
#include "schema/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KEY_TEXT_BYTES 40 /* 32 bytes in Z85, as libzmq writes a CURVE key */
#define KEYS_MAX 4096     /* in a list: some 600 KB */
#define KEYS_BYTES_MAX (1 << 20)
#define KEY_FILE_BYTES_MAX 4096
#define KEY_LINE_BYTES_MAX 512

enum key_role {
    KEY_NOBODY,
    KEY_NODE,     /* what ranks, coordinators, workers and their `muster run` say */
    KEY_OPERATOR, /* what tools ask and order */
    KEY_VIEWER,   /* what tools ask */
    KEY_ROLE_COUNT
};

/* The rights of a key, as the broker's list tells. */
struct key_grant {
    char name[JOB_NAME_MAX + 1];
    enum key_role role;
    char jobs[JOB_NAME_MAX + 1]; /* a job, "prefix*", or "*" */
    char public_key[KEY_TEXT_BYTES + 1];
    int64_t from_unix_ms;    /* 0 = since ever */
    int64_t expires_unix_ms; /* 0 = never */
    int64_t revoked_unix_ms; /* 0 = not */
};

/* The secrets that a client needs to be let in. */
struct key_file {
    char name[JOB_NAME_MAX + 1];
    enum key_role role;
    char jobs[JOB_NAME_MAX + 1];
    int64_t expires_unix_ms;
    char broker_key[KEY_TEXT_BYTES + 1]; /* the broker's public key */
    char public_key[KEY_TEXT_BYTES + 1];
    char secret_key[KEY_TEXT_BYTES + 1]; /* whoever holds this is this client */
    char signer[SIGNER_MAX + 1];         /* by whom manifests have to be signed; "": by nobody */
};

const char *key_role_name(enum key_role role);
enum key_role key_role_named(const char *name); /* KEY_NOBODY: there is no such role */

/* Is it a job's name, a prefix of one and `*`, or `*`? */
bool key_jobs_ok(const char *jobs);
bool key_text_ok(const char *text); /* 40 characters of Z85 */

/* Is this job among them? No job (NULL, "") is only among all, "*". */
bool key_covers(const char *jobs, const char *job);

/* Does the user of this key get only a share of what the broker can hold? NULL: a client without a
 * key. */
bool key_is_bounded(const char *jobs);

/* NULL, or what is wrong with the key now, as "has expired". */
const char *key_trouble(const struct key_grant *grant, int64_t now_unix_ms);

/* All keys of a list. *ret_keys is owned (free) also when there are none; on failure nothing.
 * MUSTER_E_CORRUPT names line and word; two keys may not have one name, nor one public key. */
enum muster_status key_list_read(const char *text, struct key_grant **ret_keys, size_t *ret_count,
                                 struct muster_error *err);
/* One line with its end. Returns its length. */
size_t key_grant_write(const struct key_grant *grant, char ret_line[KEY_LINE_BYTES_MAX]);

/* MUSTER_E_CORRUPT says what is missing or wrong, with the line. */
enum muster_status key_file_read(const char *text, struct key_file *ret_file,
                                 struct muster_error *err);
size_t key_file_write(const struct key_file *file, char ret_text[KEY_FILE_BYTES_MAX]);

#endif
