/* store_internal - what the files of the store share.
 *
 *   store.c            the connection and its transactions
 *   store_open.c       lock, checks and migrations
 *   store_log.c        the log and its syncs
 *   store_mark.c       what tells an older copy of the file
 *   store_rows.c       rows to columns and back
 *   store_load.c       which rows a start needs
 *   store_read.c       journal and queries
 *   store_manifest.c   manifests
 *   store_tasks.c      rows of tasks, and what is read of them
 *   store_tidy.c       rows of tasks that nobody reads any more
 *   store_trim.c       rounds that ended long ago
 *   store_forget.c     jobs that are forgotten
 *   store_past.c       what befell the broker itself
 *   shared.c           what goes into the log of several brokers (fenced/fenced_log.c) */
#ifndef BROKER_STORE_INTERNAL_H
#define BROKER_STORE_INTERNAL_H

#include "broker/store/store.h"

#include <sqlite3.h>

#define BOOT_ID_MAX 64

enum store_task { /* store_tasks.c's statements */
                  STORE_TASK_QUEUE,
                  STORE_TASK_ADD,
                  STORE_TASK_ADD_GIVEN,
                  STORE_TASK_STATE,
                  STORE_TASK_END,
                  STORE_TASK_TEXT,
                  STORE_TASK_PART,
                  STORE_TASK_PARTS_OTHER,
                  STORE_TASK_CANCEL,
                  STORE_TASK_DROP_RESOURCES,
                  STORE_TASK_DROP_QUEUE,
                  STORE_TASK_RESOURCE,
                  STORE_TASK_WORKER,
                  STORE_TASK_PAGE,
                  STORE_TASK_RESULT,
                  STORE_TASK_RESULT_PART,
                  STORE_TASK_COUNT
};

enum store_tidy { /* store_tidy.c's */
                  STORE_TIDY_FIRST,
                  STORE_TIDY_LOOK,
                  STORE_TIDY_TASKS,
                  STORE_TIDY_PARTS,
                  STORE_TIDY_REST,
                  STORE_TIDY_OVER,
                  STORE_TIDY_COUNT
};

/* A number of limits.h inside a statement. */
#define STRING(number) #number
#define STRING_OF(macro) STRING(macro)

#define STORE_FORGET_TABLES 17 /* store_forget.c's statements */
#define STORE_TRIM_TABLES 6    /* store_trim.c's */
#define STORE_ENDED_TABLES 2   /* store_ended.c's */

struct store_past { /* a row of broker_past that goes with the next batch */
    bool wanted;
    int64_t unix_ms;
    char text[MUSTER_ERROR_TEXT_MAX + 64];
};

#define QUERY_LOOK_STEPS 1000 /* of SQLite's machine */
#define QUERY_LOOKS_MAX 50000 /* a second's worth or less: nodes wait while the broker answers */

struct store {
    sqlite3 *db;
    char *path;
    int lock_fd;
    bool created;      /* the file is of this life */
    bool created_lock; /* so is its lock file ... */
    bool created_mark; /* ... and its mark */
    int mark_fd;
    uint64_t ends;      /* of checkpoints, as the database counts them ... */
    uint64_t ends_told; /* ... and as its mark does */
    bool older;         /* it was restored from a backup */
    char boot_id[BOOT_ID_MAX];
    uint64_t journal_events_max;
    int checkpoint_frames;
    bool sync_failed; /* of a checkpoint: nothing may be told any more */
    struct {          /* how much of the log is surely on the disk: store_log.c */
        bool known;
        bool cut;
        int frames;
        uint64_t salt; /* of the log's present beginning */
    } synced;

    bool unsynced; /* commits are not synced: while held progress is written, and of a copy */
    uint64_t commits;
    sqlite3_stmt *begin, *commit, *rollback;
    sqlite3_stmt *writes[RECORD_KIND_COUNT];
    sqlite3_stmt *files_gone; /* with writes[RECORD_SHARDS_GONE] */
    sqlite3_stmt *job_seq, *events, *prune_look, *prune, *mark_count;
    sqlite3_stmt *query; /* the last that was asked: a list asks it again for each page */
    const char *query_sql;
    int query_looks_max; /* a query that needs more of QUERY_LOOK_STEPS is broken off */
    sqlite3_stmt *tasks[STORE_TASK_COUNT];
    sqlite3_stmt *tidy[STORE_TIDY_COUNT];
    struct store_past past[STORE_PAST_COUNT];
    sqlite3_stmt *past_add, *past_drop;
    sqlite3_stmt *forget[STORE_FORGET_TABLES], *forget_add, *forget_over, *forget_first;
    bool forgets; /* there may be rows in job_garbage */
    bool untidy;  /* there may be rows in task_garbage */
    sqlite3_stmt *trim_job, *trim_last, *trim_rounds, *trim[STORE_TRIM_TABLES];
    sqlite3_stmt *ended_next, *ended_add, *ended_oldest, *ended[STORE_ENDED_TABLES];
    bool trims; /* old rows may remain: in this job after this round, and in later jobs */
    char trim_at_job[JOB_NAME_MAX + 1];
    int64_t trim_at_round, trim_to_round, trim_kept;
    int64_t tidy_due_boot_ms;

    /* lazy progress, not yet written; the strings are in held_arena */
    struct record *held;
    size_t held_count, held_capacity;
    struct arena held_arena;
    int64_t held_due_boot_ms; /* not written before */

    struct arena arena; /* of one event, one manifest */
    uint8_t body[WIRE_EVENT_MAX];

    struct store_manifests *manifests; /* store_manifest.c */
    const struct sign_key *sign;       /* NULL: they get no signature */
    struct shared *shared;             /* NULL: this database is this broker's alone */
};

/* --- store_sql.c --- */
/* The meaning of an SQLite result to the broker; names the file and SQLite's own words. */
enum muster_status store_failed(struct store *store, int result, const char *doing,
                                struct muster_error *err);
enum muster_status store_prepare(struct store *store, const char *sql, sqlite3_stmt **ret_statement,
                                 struct muster_error *err);
/* From now on commits are not synced, until the store syncs them again. */
enum muster_status store_unsync(struct store *store, struct muster_error *err);
enum muster_status store_exec(struct store *store, const char *sql, struct muster_error *err);
/* A statement that gives no row, once. */
enum muster_status store_step(struct store *store, sqlite3_stmt *statement, const char *doing,
                              struct muster_error *err);
/* First column of the first row. */
enum muster_status store_get_int(struct store *store, const char *sql, int64_t *ret_value,
                                 struct muster_error *err);
enum muster_status store_damaged(const struct store *store, const char *finding,
                                 struct muster_error *err);

/* --- store_open.c --- */
enum muster_status store_connect(struct store *store, const struct store_options *options,
                                 struct muster_error *err);
/* ret_created: the lock file was not there before. */
enum muster_status store_lock(const char *path, int64_t wait_ms, int *ret_fd, bool *ret_created,
                              struct muster_error *err);
/* Of a statfs magic; NULL = it is a local one. */
const char *store_network_name(unsigned long magic);
/* Replaces an owned path by the one without links. */
enum muster_status store_real_path(char **path, struct muster_error *err);
enum muster_status store_refuse_network(const char *path, struct muster_error *err);

/* --- store_log.c --- */
/* Settings of the connection; what the log holds is in the file when it returns. */
enum muster_status store_log_begin(struct store *store, struct muster_error *err);
/* A commit failed, and maybe its sync: takes what was never acknowledged off the log, if that can
 * be done. The connection must not be used any more. */
void store_log_cut(struct store *store);
/* All of it into the file, so that a reader without write permission needs no -wal file. */
void store_log_end(struct store *store);

/* --- store_check.c --- */
/* Of the newest schema. MUSTER_E_CORRUPT: the rows do not fit together; err names the first that
 * does not. */
enum muster_status store_check_rows(struct store *store, struct muster_error *err);

/* --- store_manifest.c --- */
void store_manifests_free(struct store *store);

/* --- store_mark.c --- */
enum muster_status store_mark_open(struct store *store, struct muster_error *err);
/* In the transaction of a batch: what store_mark_tell is to be given after its commit. */
enum muster_status store_mark_count(struct store *store, const struct actions *actions,
                                    uint64_t *ret_ends, struct muster_error *err);
enum muster_status store_mark_tell(struct store *store, uint64_t ends, struct muster_error *err);

/* --- store_forget.c: in a transaction, but for the last --- */
enum muster_status store_forget_prepare(struct store *store, struct muster_error *err);
enum muster_status store_forget(struct store *store, const char *job, struct muster_error *err);
enum muster_status store_forget_slice(struct store *store, struct muster_error *err);
/* The rest of a job that was forgotten, or ("") of all. */
enum muster_status store_forget_rest(struct store *store, const char *job,
                                     struct muster_error *err);
/* Called at a start: a job that is deleted by half breaks the rules of store_check_rows. */
enum muster_status store_forget_begun(struct store *store, struct muster_error *err);

/* --- store_tasks.c --- */
enum muster_status store_tasks_prepare(struct store *store, struct muster_error *err);
bool store_task_is(enum record_kind kind);
enum muster_status store_task_write(struct store *store, const struct record *row,
                                    struct muster_error *err);
/* The row by which the batch gives the new task of the row at `at` to a worker; NULL: none, or one
 * that does not follow. */
const struct record *store_task_given(const struct actions *actions, size_t at);
/* Both rows at once: it costs what one does. */
enum muster_status store_task_write_given(struct store *store, const struct record *row,
                                          const struct record *given, struct muster_error *err);
enum muster_status store_tasks_load(struct store *store, store_row_fn *row_fn, void *arg,
                                    struct muster_error *err);

/* --- store_tidy.c --- */
enum muster_status store_tidy_prepare(struct store *store, struct muster_error *err);
/* Deletes tasks of these numbers, or a slice of them and the rest later. As everything here, in a
 * transaction. */
enum muster_status store_tidy_range(struct store *store, uint64_t queue, uint64_t first,
                                    uint64_t last, bool ended_only, struct muster_error *err);
enum muster_status store_tidy_slice(struct store *store, struct muster_error *err);

/* --- store_trim.c --- */
enum muster_status store_trim_prepare(struct store *store, struct muster_error *err);
/* Called for each row that is written. Begins a look for old ones at every TRIM_EVERY-th round of a
 * job, and at every TRIM_LAUNCHES-th launch. */
void store_trim_look(struct store *store, const struct record *row);
/* From the first job on, since a slice may have been rolled back. */
void store_trim_again(struct store *store);
/* In a transaction. */
enum muster_status store_trim_slice(struct store *store, struct muster_error *err);

/* --- store_ended.c --- */
enum muster_status store_ended_prepare(struct store *store, struct muster_error *err);
/* The job's next launch that ended gets its row, or ranks beyond those of the newest `kept`
 * launches go. In a transaction. ret_more: false once nothing was left to do. */
enum muster_status store_ended_slice(struct store *store, const char *job, int64_t kept,
                                     bool *ret_more, struct muster_error *err);

/* --- store_past.c --- */
enum muster_status store_past_prepare(struct store *store, struct muster_error *err);
/* In the transaction of a batch; store_past_written after its commit. */
enum muster_status store_past_write(struct store *store, struct muster_error *err);
void store_past_written(struct store *store);

/* --- store_rows.c --- */
enum muster_status store_rows_prepare(struct store *store, struct muster_error *err);
enum muster_status store_row_write(struct store *store, const struct record *row,
                                   struct muster_error *err);
/* Rows of one kind. ?1 is the job and ?2 its newest generation, where `rest` uses them. */
enum muster_status store_rows_load(struct store *store, enum record_kind kind, const char *rest,
                                   const char *job, uint64_t generation, store_row_fn *row_fn,
                                   void *arg, struct muster_error *err);

#endif
