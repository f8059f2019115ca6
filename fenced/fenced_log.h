/* fenced_log - the log in a PostgreSQL database that several brokers share (postgres.h asks it).
 *
 * One row is the lease: which broker is active, until when by the database's clock, and its epoch.
 * Each take-over makes the epoch greater. The epoch is the database's time, so it is new even after
 * the database was restored to an earlier state. One statement appends a batch. Its first part is
 * the fence: it changes the lease's row only if the epoch is still ours and the log's end is where
 * we left it. Otherwise nothing is appended. So a broker that was overtaken adds nothing, however
 * long it slept, and a statement that is sent twice counts once.
 *
 *   muster_lease     one row: epoch, seq (the last batch), snapshot (the batch it stands for)
 *   muster_batch     seq, what it changed
 *   muster_snapshot  a whole database, in parts: the batches up to its seq are not needed any more
 *
 * Every call blocks as postgres.h says. One thread. Kinds of failure:
 *   MUSTER_E_STORAGE   the database cannot be reached: nothing is known to be lost, try again
 *   MUSTER_E_LOCKED    another broker is active
 *   MUSTER_E_IO        what the log holds is not what we wrote: end, and read it again
 *   MUSTER_E_ARGUMENT  this is no PostgreSQL address, or the database refuses us for good
 *                      (password, role, rights, name). Once the database has answered, a refusal
 *                      is MUSTER_E_STORAGE: what was right before will be mended */
#ifndef FENCED_FENCED_LOG_H
#define FENCED_FENCED_LOG_H

#include "fenced/postgres.h"
#include "schema/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FENCED_LOG_NAME_MAX 256

struct fenced_log;

struct fenced_log_head {
    char id[64]; /* of the database, made with its tables */
    uint64_t epoch, seq;
    bool has_snapshot; /* false: nobody has written into it yet */
    uint64_t snapshot_epoch, snapshot_seq;
};

/* Copies uri, owner and use. owner: how the other brokers name this one. Nothing is connected yet.
 */
enum muster_status fenced_log_open(const char *uri, const char *owner,
                                   const struct postgres_use *use, struct fenced_log **ret_log,
                                   struct muster_error *err);
/* NULL-safe, nulls. Keeps the lease: see fenced_log_release. */
void fenced_log_close(struct fenced_log **log);

/* "DATABASE on HOST", without a password. Borrowed. */
const char *fenced_log_name(const struct fenced_log *log);

/* Which database this log is with: of its first answer, or what fenced_log_expect said. "": none
 * yet. Any other one, and one without tables, is refused: MUSTER_E_STORAGE, or MUSTER_E_ARGUMENT if
 * this process has not seen the right one. */
void fenced_log_expect(struct fenced_log *log, const char *id);
const char *fenced_log_id(const struct fenced_log *log);

/* The newest schema of the records that this process knows. From then on newer ones give it no
 * lease: MUSTER_E_LOCKED says so, and fenced_log_is_older is of that answer. */
void fenced_log_knows(struct fenced_log *log, int64_t schema);
bool fenced_log_is_older(const struct fenced_log *log);

/* Takes the lease, and makes the tables where there are none. MUSTER_E_LOCKED: who has it, and for
 * how long. */
enum muster_status fenced_log_take(struct fenced_log *log, int64_t lease_ms,
                                   struct fenced_log_head *ret_head, struct muster_error *err);
/* For who only reads. MUSTER_E_NOT_FOUND: no musterd has written into this database.
 * MUSTER_E_SCHEMA: a newer one has. */
enum muster_status fenced_log_head(struct fenced_log *log, struct fenced_log_head *ret_head,
                                   struct muster_error *err);
/* MUSTER_OK: nobody is active. MUSTER_E_LOCKED: who is. */
enum muster_status fenced_log_look(struct fenced_log *log, struct muster_error *err);
/* From now on for lease_ms. Looks at the epoch alone: nobody else appends in it, and a log that was
 * restored to an earlier state is found by the next batch. */
enum muster_status fenced_log_renew(struct fenced_log *log, int64_t lease_ms,
                                    struct muster_error *err);
/* The next one need not wait for its end. Not if it is not ours. */
void fenced_log_release(struct fenced_log *log);

/* Durable in the database when it returns MUSTER_OK. After MUSTER_E_STORAGE it may be there or not:
 * the next call finds out, and is MUSTER_E_IO if it is. */
enum muster_status fenced_log_append(struct fenced_log *log, const void *changes, size_t size,
                                     struct muster_error *err);
uint64_t fenced_log_seq(const struct fenced_log *log);

/* The whole database as it is after batch `seq`: parts in order, from 0, then the end, from which
 * on it counts. Then what it stands for can be deleted, a few rows a call: *ret_more. */
enum muster_status fenced_log_snapshot_part(struct fenced_log *log, uint64_t seq, uint64_t part,
                                            const void *data, size_t size,
                                            struct muster_error *err);
enum muster_status fenced_log_snapshot_end(struct fenced_log *log, uint64_t seq,
                                           struct muster_error *err);
enum muster_status fenced_log_sweep(struct fenced_log *log, bool *ret_more,
                                    struct muster_error *err);
/* This start came to its end: from here on the database is the right one, whatever it refuses. */
void fenced_log_is_known(struct fenced_log *log);

typedef enum muster_status fenced_log_part_fn(void *arg, const void *data, size_t size,
                                              struct muster_error *err);
/* The parts of the snapshot, and the batches after it. Borrowed for the call. The lease holder may
 * delete both. So a reader without the lease asks for the head again afterwards: what it read is
 * whole if the head's snapshot is the same. */
enum muster_status fenced_log_read_snapshot(struct fenced_log *log,
                                            const struct fenced_log_head *head,
                                            fenced_log_part_fn *part_fn, void *arg,
                                            struct muster_error *err);
enum muster_status fenced_log_read_batches(struct fenced_log *log,
                                           const struct fenced_log_head *head,
                                           fenced_log_part_fn *part_fn, void *arg,
                                           struct muster_error *err);

#endif
