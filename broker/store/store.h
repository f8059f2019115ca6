/* store - the broker's database: the only place in broker/ that knows SQLite.
 * Owns: the state lock (<db>.lock), the mark that knows an older copy (<db>.mark), the one
 * read-write connection, the migrations, the transaction of a loop pass, the journal's bodies and
 * its pruning, the rendered manifest. Never: decides anything; a second connection; creates or
 * repairs a damaged file; sends.
 *
 * Three kinds of failure come out of a write (see store_apply):
 *   MUSTER_E_STORAGE   no room, or another process holds the write lock: rolled back, try again
 *   MUSTER_E_IO        the outcome of the COMMIT is unknown: exit, and the next start reads it
 *   MUSTER_E_CORRUPT, MUSTER_E_FAULT   damaged file, or a row that the schema refuses: exit
 * One thread. Not usable across fork. */
#ifndef BROKER_STORE_H
#define BROKER_STORE_H

#include "broker/core/contract/core.h"
#include "schema/sql/sql.h"

struct store;
struct sign_key;
struct shared;

struct store_options {
    bool allow_network_fs;
    int64_t
        lock_wait_ms; /* a musterd that was killed holds the lock until its sockets are closed */
    uint64_t journal_events_max; /* 0 = JOURNAL_EVENTS_MAX */
    const struct sign_key *sign; /* manifests get its signature; NULL: none; borrowed until close */
    struct shared *shared; /* of which this is the copy; taken; NULL: none; borrowed until close */
    int checkpoint_frames; /* of the log, until they are copied into the file; 0 = 1000 */
    const struct sql_migration
        *migrations; /* NULL = those of schema/sql; else closed by version 0 */
};

/* Before the first store of a process that has one, and uses SQLite in one thread: spares it locks
 * and counts of memory. */
void store_alone_in_process(void);

/* Takes the lock, checks and migrates the file. Creates the parent directory (0700) and the file.
 * Copies path; options may be NULL. Blocks for a quick_check of the whole file.
 * MUSTER_E_LOCKED another broker, named by pid · MUSTER_E_UNSUPPORTED a network file system ·
 * MUSTER_E_CORRUPT damaged, or not a database of ours (kept as it is) · MUSTER_E_SCHEMA newer than
 * this program · MUSTER_E_IO · MUSTER_E_STORAGE no room · MUSTER_E_NOMEM. */
enum muster_status store_open(const char *path, const struct store_options *options,
                              struct store **ret_store, struct muster_error *err);

/* Writes held progress, truncates the WAL, closes, gives up the lock. NULL-safe, nulls. */
void store_close(struct store **store);

/* As store_close, when the start is refused later on: removes the files that store_open created.
 * Only before anybody was told of what is in them. A store_open that fails does this by itself. */
void store_discard(struct store **store);

/* Renews the lease of a shared database when that is due. MUSTER_E_STORAGE: the database has not
 * answered for so long that another broker may be active. Nothing may be decided until it answers.
 * MUSTER_E_LOCKED: another broker is active, or the nodes have to look for one now. */
enum muster_status store_holds(struct store *store, struct muster_error *err);
struct store_lease {
    const char *name; /* of the shared database; borrowed; NULL: there is none */
    int64_t left_ms;  /* until it ends if it is not renewed */
};
struct store_lease store_lease(const struct store *store);
/* A slice of a snapshot of it, to be made as long as it is due. */
bool store_snapshot_is_due(const struct store *store);
enum muster_status store_snapshot_work(struct store *store, struct muster_error *err);

/* Was the file restored from a copy that is older than what was done with it? As RECORD_BROKER
 * tells.
 */
bool store_is_older(const struct store *store);

typedef void store_row_fn(void *arg, const struct record *row);

/* Hands out what core_load wants, in its order; strings are borrowed for the call. A database
 * without an epoch gives a RECORD_BROKER with epoch 0. MUSTER_E_CORRUPT: a word or number that no
 * row may hold, or rows that do not fit together; then none was handed out, or not all. */
enum muster_status store_load(struct store *store, store_row_fn *row_fn, void *arg,
                              struct muster_error *err);

/* The rows of one job that has ended: RECORD_JOB, and what core_load wants of it. None: there is no
 * such job. As store_load, without its checks. */
enum muster_status store_load_job(struct store *store, const char *job, store_row_fn *row_fn,
                                  void *arg, struct muster_error *err);

/* Writes the ACTION_PERSIST rows of a batch in one transaction, in order, synced before it returns.
 * Progress rows marked lazy are held if the batch has nothing else. They are written at most once a
 * HEARTBEAT_MS without a sync, or with the next batch that has more. If there is no room they are
 * dropped, since every node repeats its progress each second.
 * MUSTER_OK, or see above; on MUSTER_E_STORAGE nothing of the batch is in the database. */
enum muster_status store_apply(struct store *store, const struct actions *actions,
                               int64_t now_boot_ms, struct muster_error *err);

enum store_past_kind { STORE_PAST_STARTED, STORE_PAST_BLOCKED, STORE_PAST_COUNT };
/* Incidents of the broker itself, for the stories of its jobs. One goes with the next batch that is
 * written, and replaces one of its kind that waits there. Copies text. */
void store_note(struct store *store, enum store_past_kind kind, int64_t unix_ms, const char *text);

/* Deletes a slice of the task rows that nobody reads any more, if there are any and it is due. Not
 * while a batch is kept. As store_apply; no room is no failure here, it is tried again later. */
enum muster_status store_tidy(struct store *store, int64_t now_boot_ms, struct muster_error *err);

/* When store_apply must be called (also with an empty batch) for held progress, or store_tidy;
 * INT64_MAX = never. */
int64_t store_wakeup_boot_ms(const struct store *store);

/* The job's newest committed event number, 0 for an unknown job. */
uint64_t store_job_seq(struct store *store, const char *job);

typedef void store_event_fn(void *arg, const struct wire_event *event);

/* Up to max events of the journal from from_seq on, without a gap; left_ms as of now (-1 when the
 * deadline was told in another boot). The event is borrowed for the call.
 * MUSTER_E_NOT_FOUND: the journal has no event from_seq. */
enum muster_status store_send_events(struct store *store, const char *job, uint64_t from_seq,
                                     uint64_t max, int64_t now_boot_ms, store_event_fn *event_fn,
                                     void *arg, struct muster_error *err);

struct store_manifest {
    uint64_t generation;
    int64_t step;
    uint64_t offset;
    uint64_t total;
    const uint8_t *data; /* borrowed until the next call */
    size_t size;         /* at most MANIFEST_CHUNK_MAX; 0 at the end */
};

#define STORE_MANIFEST_SLICE \
    4096 /* rows that are read for a manifest before others have their turn: some 10 ms */

/* A chunk of the manifest of a committed checkpoint, rendered from its rows; the last ones are
 * kept. MUSTER_E_NOT_FOUND: no such committed checkpoint, or offset beyond its end. MUSTER_E_BUSY:
 * it is being made, ask again. MUSTER_E_ARGUMENT: these rows make no manifest. */
enum muster_status store_manifest(struct store *store, const char *job, uint64_t round,
                                  uint64_t offset, struct store_manifest *ret_manifest,
                                  struct muster_error *err);

/* A manifest is being made: the next slice is made by store_manifest_work, to be called as long as
 * it is due. Its errors are also those of the next question. */
bool store_manifest_is_due(const struct store *store);
enum muster_status store_manifest_work(struct store *store, struct muster_error *err);

/* Puts the tasks of page->queue from `from` to `next` that have ended into the page, as many as
 * fit, and sets more and next. Lists are borrowed until the next call. */
enum muster_status store_task_page(struct store *store, struct wire_tasks_page *page,
                                   struct muster_error *err);
/* The answer to RESULT_GET: total, bytes. The same. MUSTER_E_NOT_FOUND: no such result. */
enum muster_status store_task_result(struct store *store, const struct wire_result_get *asked,
                                     struct wire_result_chunk *ret_chunk, struct muster_error *err);

struct store_disk {
    const char *path;   /* borrowed */
    int64_t bytes;      /* of the file and its log; -1 = not known */
    int64_t free_bytes; /* for this user, on that file system; -1 = not known */
};
/* Asks the file system: may block as long as that does. */
struct store_disk store_disk(const struct store *store);

/* Transactions that were written since it was opened. */
uint64_t store_commits(const struct store *store);

struct store_query {
    const char *name; /* of schema/sql/queries.def */
    const char *job;
    const char *text;
    int64_t number;
    int64_t after; /* rows to skip */
};
struct store_rows {
    uint8_t cells[ROWS_BYTES_MAX]; /* msgpack, row by row */
    size_t size;
    uint64_t columns;
    uint64_t rows;
    bool more; /* ask again with `after` raised by `rows` */
};

/* Runs a named query. MUSTER_E_NOT_FOUND: no such query. */
enum muster_status store_query(struct store *store, const struct store_query *query,
                               struct store_rows *ret_rows, struct muster_error *err);

#endif
