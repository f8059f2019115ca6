/* postgres - asks a PostgreSQL database one question at a time, at the host of its address that
 * takes writes, or at any for who only reads.
 * Owns: the connection, which host's turn it is, what a refusal means.
 *
 * A question blocks for POSTGRES_WAIT_MS at most, or while bytes go over a slow link, for
 * POSTGRES_MOST_MS. Without a connection it blocks for a quarter of POSTGRES_WAIT_MS, and the next
 * question goes on with the attempt. An attempt tries one host after another, a
 * second each, beginning where the last connection was. libpq itself would wait without a limit for
 * a host, and for its name. One thread. */
#ifndef FENCED_POSTGRES_H
#define FENCED_POSTGRES_H

#include "schema/status.h"

#include <libpq-fe.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define POSTGRES_WAIT_MS 2000
#define POSTGRES_MOST_MS 3500 /* less than a lease */
#define POSTGRES_NAME_MAX 256
#define PARAMS_MAX 4

struct postgres;

struct question {
    const char *sql;
    int count;
    struct param {
        char number[24];
        const char *data; /* NULL: the number */
        int size;         /* of bytes; 0: it is text */
    } params[PARAMS_MAX];
    const char *doing;
    bool replicated; /* MUSTER_E_STORAGE if the server gave up waiting for its replicas */
};

struct postgres_use {
    const char *option; /* that the user gave the address with, for error texts; a literal */
    bool known;         /* this address was the right one before */
    int read_ms;        /* > 0: only reads, of a replica, too, and waits so long for a connection */
};

/* Copies the address. Nothing is connected yet. */
enum muster_status postgres_open(const char *uri, const struct postgres_use *use,
                                 struct postgres **ret_postgres, struct muster_error *err);
/* NULL-safe, nulls. */
void postgres_close(struct postgres **postgres);

/* "DATABASE on HOST", without a password. Borrowed. */
const char *postgres_name(const struct postgres *postgres);

/* This is the database that was meant: from here on a refusal is MUSTER_E_STORAGE. */
void postgres_is_known(struct postgres *postgres);
bool postgres_was_right(const struct postgres *postgres); /* it is known */

/* The caller clears the result. MUSTER_E_STORAGE: no answer; ask again. MUSTER_E_ARGUMENT: the
 * database refuses for good (password, role, rights, name). */
enum muster_status postgres_ask(struct postgres *postgres, const struct question *ask,
                                PGresult **ret_result, struct muster_error *err);
/* A bigint of the rows that came. */
int64_t postgres_int(const PGresult *result, int row, int column);

/* The text and the bytes are borrowed. */
struct param postgres_number(uint64_t value);
struct param postgres_text(const char *text);
struct param postgres_bytes(const void *data, size_t size);

#endif
