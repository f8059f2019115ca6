/* query - the public face of libmuster-query: a client that asks a broker or reads its database.
 * Owns: argument checks, the choice between the two, the paging. */
#include "client/query/dbread_shared.h"
#include "client/query/query_address.h"
#include "client/query/query_link.h"
#include "client/query/query_place.h"

#include "node/clock.h"
#include "schema/error.h"
#include "schema/paths.h"
#include "schema/sql/queries.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct muster_client {
    struct dbread *db; /* one of these two */
    struct query_link *link;
    char place[QUERY_PLACE_MAX + 1];   /* that it asks */
    int64_t step_offset;               /* what rows but those of jobs add to their steps */
    bool (*interrupted_fn)(void *arg); /* NULL = none */
    void *interrupted_arg;
    bool interrupted; /* it said yes in this call */
};

static bool query_is_interrupted(const void *arg)
{
    muster_client_t *client = (muster_client_t *)arg;

    client->interrupted = client->interrupted || client->interrupted_fn(client->interrupted_arg);
    return client->interrupted;
}

void muster_client_set_interrupted(muster_client_t *client, bool (*interrupted_fn)(void *arg),
                                   void *arg)
{
    if (client == NULL || client->link == NULL)
        return;
    client->interrupted_fn = interrupted_fn;
    client->interrupted_arg = arg;
    query_link_set_over(client->link, interrupted_fn != NULL ? query_is_interrupted : NULL, client);
}

/* A wait that was broken off ends as one without an answer; the caller hears why. */
static enum muster_status query_told_interrupt(muster_client_t *client, enum muster_status status,
                                               struct muster_error *err)
{
    if (!client->interrupted)
        return status;
    client->interrupted = false;
    if (status != MUSTER_E_BROKER)
        return status;
    return error_set(err, MUSTER_E_INTERRUPTED, "the question to the broker was broken off");
}

static enum muster_status client_take_place(muster_client_t *client, const char *place,
                                            struct muster_error *err)
{
    enum muster_status status;

    if (place == NULL) {
        status = query_place_find(client->place, err);
        if (status != MUSTER_OK)
            return status;
    } else if (strlen(place) > QUERY_PLACE_MAX) {
        return error_set(err, MUSTER_E_ARGUMENT,
                         "\"%.200s...\" is longer than %d characters: give an address or a path",
                         place, QUERY_PLACE_MAX);
    } else {
        memcpy(client->place, place, strlen(place) + 1);
    }
    return strstr(client->place, "://") == NULL || paths_is_postgres(client->place)
               ? MUSTER_OK
               : query_address_check(client->place, err);
}

enum muster_status muster_client_open(const char *address_or_path, int timeout_ms,
                                      muster_client_t **ret_client, struct muster_error *ret_error)
{
    muster_client_t *client;
    enum muster_status status;

    if (ret_client == NULL || timeout_ms < 0 ||
        (address_or_path != NULL && address_or_path[0] == '\0'))
        return error_set(
            ret_error, MUSTER_E_ARGUMENT,
            "muster_client_open needs an address or a path, a timeout of 0 or more and "
            "a place for the client");
    client = calloc(1, sizeof *client);
    if (client == NULL)
        return error_set(ret_error, MUSTER_E_NOMEM, "no memory for a client");
    status = client_take_place(client, address_or_path, ret_error);
    if (timeout_ms == 0)
        timeout_ms = MUSTER_CLIENT_TIMEOUT_MS;
    if (status == MUSTER_OK && query_address_is(client->place))
        status = query_link_open(client->place, timeout_ms, &client->link, ret_error);
    else if (status == MUSTER_OK)
        status = dbread_open(client->place, timeout_ms, &client->db, ret_error);
    if (status == MUSTER_OK && client->link != NULL)
        query_link_set_client(client->link);
    if (status == MUSTER_OK && client->db != NULL)
        snprintf(client->place, sizeof client->place, "%s", dbread_name(client->db));
    if (status != MUSTER_OK) {
        free(client);
        return status;
    }
    *ret_client = client;
    return MUSTER_OK;
}

enum muster_status muster_client_close(muster_client_t **client, struct muster_error *ret_error)
{
    (void)ret_error; /* of the other handles' form: a client has nothing that could fail */
    if (client == NULL || *client == NULL)
        return MUSTER_OK;
    dbread_close(&client[0]->db);
    query_link_close(&client[0]->link);
    free(*client);
    *client = NULL;
    return MUSTER_OK;
}

bool muster_client_is_database(const muster_client_t *client)
{
    return client != NULL && client->db != NULL;
}

const char *muster_client_place(const muster_client_t *client)
{
    return client != NULL ? client->place : "";
}

/* --- questions -------------------------------------------------------------------------------- */

static enum muster_status query_run(muster_client_t *client, struct question question,
                                    muster_rows_t **ret_rows, struct muster_error *err)
{
    muster_rows_t *rows;
    enum muster_status status = MUSTER_OK;
    bool more = true;

    if (client == NULL || ret_rows == NULL)
        return error_set(err, MUSTER_E_ARGUMENT, "query %s needs a client and a place for its rows",
                         question.query);
    if (question.job == NULL)
        question.job = "";
    if (question.text_arg == NULL)
        question.text_arg = "";
    rows = rows_create(question.query);
    if (rows == NULL)
        return error_set(err, MUSTER_E_NOMEM, "no memory for the answer to query %s",
                         question.query);
    while (status == MUSTER_OK && more) {
        rows_go_on(rows, &question);
        if (client->db != NULL)
            status = dbread_page(client->db, &question, rows, &more, err);
        else
            status = query_link_page(client->link, &question, rows, &more, err);
    }
    status = query_told_interrupt(client, status, err);
    if (status != MUSTER_OK) {
        muster_rows_destroy(&rows);
        return status;
    }
    if (client->step_offset != 0 && muster_rows_jobs(rows) == NULL)
        rows_shift_steps(rows, client->step_offset);
    *ret_rows = rows;
    return MUSTER_OK;
}

int64_t client_step_offset(const muster_client_t *client)
{
    return client->step_offset;
}

/* Of the newest checkpoint that has its final name. */
static int64_t query_offset_of(const muster_rows_t *rows)
{
    const struct muster_checkpoint_row *row = muster_rows_checkpoints(rows);

    for (size_t i = muster_rows_count(rows); i > 0; i--)
        if (row[i - 1].in_place && strcmp(row[i - 1].state, "failed") != 0)
            return paths_step_offset(row[i - 1].path, row[i - 1].step);
    return 0;
}

enum muster_status client_count_as(muster_client_t *client, const char *job, int64_t *ret_offset,
                                   struct muster_error *err)
{
    muster_rows_t *rows = NULL;
    enum muster_status status;

    client->step_offset = 0;
    status = muster_client_latest(client, job, &rows, err);
    if (status == MUSTER_OK && muster_rows_count(rows) > 0 &&
        !muster_rows_checkpoints(rows)[0].in_place) { /* its name follows: the ones before tell */
        muster_rows_destroy(&rows);
        status = muster_client_checkpoints(client, job, 0, &rows, err);
    }
    if (status == MUSTER_OK)
        *ret_offset = client->step_offset = query_offset_of(rows);
    muster_rows_destroy(&rows);
    return status;
}

enum muster_status muster_client_jobs(muster_client_t *client, const char *job,
                                      muster_rows_t **ret_rows, struct muster_error *ret_error)
{
    return query_run(client, (struct question){.query = "jobs", .job = job}, ret_rows, ret_error);
}

/* The questions about one job and a number. Rows in the order of that number are keyed. There may
 * be tens of thousands: if each page skipped all before it, the answer would take the square of
 * their time. */
#define QUESTION(name, is_keyed)                                                                   \
    enum muster_status muster_client_##name(muster_client_t *client, const char *job,              \
                                            int64_t number, muster_rows_t **ret_rows,              \
                                            struct muster_error *ret_error)                        \
    {                                                                                              \
        return query_run(client,                                                                   \
                         (struct question){                                                        \
                             .query = #name, .job = job, .number_arg = number, .keyed = is_keyed}, \
                         ret_rows, ret_error);                                                     \
    }
QUESTION(nodes, false)
QUESTION(rounds, true)
QUESTION(round, false)
QUESTION(attempts, false)
QUESTION(participants, false)
QUESTION(checkpoints, true)
QUESTION(checkpoint, false)
QUESTION(shards, false)
QUESTION(files, false)
QUESTION(incidents, false)
QUESTION(generations, true)

enum muster_status muster_client_latest(muster_client_t *client, const char *job,
                                        muster_rows_t **ret_rows, struct muster_error *ret_error)
{
    return query_run(client, (struct question){.query = "latest", .job = job}, ret_rows, ret_error);
}

enum muster_status muster_client_events(muster_client_t *client, const char *job, int64_t after_seq,
                                        const char *kind, muster_rows_t **ret_rows,
                                        struct muster_error *ret_error)
{
    struct question question = {
        .query = "events", .job = job, .text_arg = kind, .number_arg = after_seq, .keyed = true};

    return query_run(client, question, ret_rows, ret_error);
}

enum muster_status muster_client_notices(muster_client_t *client, const char *job, const char *id,
                                         int64_t generation, muster_rows_t **ret_rows,
                                         struct muster_error *ret_error)
{
    struct question question = {
        .query = "notices", .job = job, .text_arg = id, .number_arg = generation};

    return query_run(client, question, ret_rows, ret_error);
}

enum muster_status muster_client_task_queues(muster_client_t *client, const char *job,
                                             muster_rows_t **ret_rows,
                                             struct muster_error *ret_error)
{
    return query_run(client, (struct question){.query = "task_queues", .job = job}, ret_rows,
                     ret_error);
}

/* The place of `key` among the columns of a task. */
enum {
#define PLACE(name) TASK_COLUMN_##name,
    COLUMNS_TASK(PLACE, PLACE, PLACE)
#undef PLACE
};

enum muster_status muster_client_tasks(muster_client_t *client, const char *job, const char *state,
                                       int64_t number, muster_rows_t **ret_rows,
                                       struct muster_error *ret_error)
{
    struct question question = {
        .query = "tasks", .job = job, .text_arg = state, .number_arg = number};

    if (number == 0) { /* hundreds of thousands, maybe, of which some are forgotten meanwhile */
        question.query = "tasks_after";
        question.keyed = true;
        question.key_column = TASK_COLUMN_key;
    }
    return query_run(client, question, ret_rows, ret_error);
}

enum muster_status muster_client_task_workers(muster_client_t *client, const char *job,
                                              muster_rows_t **ret_rows,
                                              struct muster_error *ret_error)
{
    return query_run(client, (struct question){.query = "task_workers", .job = job}, ret_rows,
                     ret_error);
}

enum muster_status muster_client_hosts(muster_client_t *client, const char *job, int64_t launch,
                                       muster_rows_t **ret_rows, struct muster_error *ret_error)
{
    return query_run(client, (struct question){.query = "hosts", .job = job, .number_arg = launch},
                     ret_rows, ret_error);
}

enum muster_status muster_client_policies(muster_client_t *client, const char *job,
                                          muster_rows_t **ret_rows, struct muster_error *ret_error)
{
    return query_run(client, (struct question){.query = "policies", .job = job}, ret_rows,
                     ret_error);
}

enum muster_status muster_client_broker(muster_client_t *client, muster_rows_t **ret_rows,
                                        struct muster_error *ret_error)
{
    if (muster_client_is_database(client))
        return error_set(ret_error, MUSTER_E_UNSUPPORTED,
                         "a database knows nothing of the broker's process; ask a broker that "
                         "runs");
    return query_run(client, (struct question){.query = QUERY_BROKER}, ret_rows, ret_error);
}

/* --- orders ----------------------------------------------------------------------------------- */

static enum muster_status query_order_check(const muster_client_t *client, const char *job,
                                            const char *id, struct muster_error *err)
{
    if (client == NULL || job == NULL || !wire_job_name_ok(job) || id == NULL || id[0] == '\0')
        return error_set(err, MUSTER_E_ARGUMENT,
                         "an order needs a client, the name of a job and an id");
    if (client->link == NULL)
        return error_set(err, MUSTER_E_UNSUPPORTED,
                         "a database is only read, never written: give the broker's address "
                         "(%s) to have something done",
                         query_place_broker_word());
    return MUSTER_OK;
}

static enum muster_status query_order(muster_client_t *client, struct wire_msg *msg, const char *id,
                                      int64_t *ret_value, struct muster_error *err)
{
    uint64_t value = 0;
    enum muster_status status = query_order_check(client, msg->up.job, id, err);

    if (status != MUSTER_OK)
        return status;
    status = query_told_interrupt(client, query_link_order(client->link, msg, &value, err), err);
    if (status == MUSTER_OK && ret_value != NULL)
        *ret_value = (int64_t)value;
    return status;
}

enum muster_status muster_client_notify(muster_client_t *client, const char *job, const char *id,
                                        int rank, int64_t grace_ms, const char *text,
                                        int64_t *ret_round, struct muster_error *ret_error)
{
    struct wire_msg msg = {.type = WIRE_NOTICE, .up.job = job};

    if (rank < 0 || rank >= WORLD_SIZE_MAX || grace_ms < -1)
        return error_set(ret_error, MUSTER_E_ARGUMENT,
                         "a notice needs a rank from 0 to %d and a grace of -1 (not known) or more",
                         WORLD_SIZE_MAX - 1);
    msg.u.notice = (struct wire_notice){.id = id,
                                        .kind = NOTICE_USER,
                                        .source = "operator",
                                        .left_ms = grace_ms,
                                        .cancellable = true,
                                        .text = text,
                                        .rank = rank};
    return query_order(client, &msg, id, ret_round, ret_error);
}

enum muster_status muster_client_cancel(muster_client_t *client, const char *job, const char *id,
                                        struct muster_error *ret_error)
{
    struct wire_msg msg = {.type = WIRE_CANCEL, .up.job = job, .u.cancel.id = id};

    return query_order(client, &msg, id, NULL, ret_error);
}

enum muster_status muster_client_save_now(muster_client_t *client, const char *job, const char *id,
                                          int64_t *ret_round, struct muster_error *ret_error)
{
    struct wire_msg msg = {.type = WIRE_SAVE_NOW, .up.job = job, .u.save_now.id = id};

    return query_order(client, &msg, id, ret_round, ret_error);
}

enum muster_status muster_client_gone(muster_client_t *client, const char *job, int rank,
                                      const char *incarnation, int code, int signo, bool *ret_lived,
                                      struct muster_error *ret_error)
{
    struct wire_msg msg = {.type = WIRE_GONE, .up.job = job};
    int64_t value = 0;
    char *end = NULL;
    enum muster_status status;

    errno = 0;
    if (incarnation != NULL)
        msg.u.gone.incarnation = strtoull(incarnation, &end, 16);
    if (rank < 0 || signo < 0 || signo > 127 || end == NULL || end != incarnation + 16 ||
        *end != '\0' || errno != 0)
        return error_set(ret_error, MUSTER_E_ARGUMENT,
                         "a report that a process is gone needs its rank, its incarnation of 16 "
                         "hexadecimal digits, and a signal from 0 to 127");
    msg.u.gone.rank = (uint64_t)rank;
    msg.u.gone.code = code;
    msg.u.gone.signo = (uint64_t)signo;
    status = query_order(client, &msg, incarnation, &value, ret_error);
    if (status == MUSTER_OK && ret_lived != NULL)
        *ret_lived = value != 0;
    return status;
}

/* --- checkpoints that are held, found, awaited ------------------------------------------------ */

enum muster_status muster_client_pin(muster_client_t *client, const char *job, int64_t checkpoint,
                                     const char *id, int64_t lease_ms, int64_t *ret_checkpoint,
                                     struct muster_error *ret_error)
{
    struct wire_msg msg = {.type = WIRE_PIN, .up.job = job};

    if (checkpoint < 0 || lease_ms < 0)
        return error_set(
            ret_error, MUSTER_E_ARGUMENT,
            "a pin needs a checkpoint (0: the newest) and a lease that are not negative");
    msg.u.pin =
        (struct wire_pin){.checkpoint = (uint64_t)checkpoint, .id = id, .lease_ms = lease_ms};
    return query_order(client, &msg, id, ret_checkpoint, ret_error);
}

enum muster_status muster_client_unpin(muster_client_t *client, const char *job, int64_t checkpoint,
                                       const char *id, struct muster_error *ret_error)
{
    struct wire_msg msg = {.type = WIRE_UNPIN, .up.job = job};

    if (checkpoint < 0)
        return error_set(ret_error, MUSTER_E_ARGUMENT, "there is no negative checkpoint");
    msg.u.unpin = (struct wire_unpin){.checkpoint = (uint64_t)checkpoint, .id = id};
    return query_order(client, &msg, id, NULL, ret_error);
}

enum muster_status muster_client_forget(muster_client_t *client, const char *job,
                                        int64_t *ret_checkpoints, struct muster_error *ret_error)
{
    struct wire_msg msg = {.type = WIRE_FORGET, .up.job = job};

    return query_order(client, &msg, job, ret_checkpoints, ret_error);
}

enum muster_status client_host(muster_client_t *client, const char *job,
                               const struct wire_host *host, int64_t *ret_launch,
                               struct muster_error *err)
{
    struct wire_msg msg = {.type = WIRE_HOST, .up.job = job, .u.host = *host};

    uint64_t launch = 0;
    enum muster_status status = client->link == NULL
                                    ? query_order(client, &msg, "host", NULL, err)
                                    : query_link_order(client->link, &msg, &launch, err);

    *ret_launch = (int64_t)launch;
    return status;
}

enum muster_status muster_client_import(muster_client_t *client, const char *job, const char *path,
                                        const char *manifest, size_t size, bool *ret_new,
                                        struct muster_error *ret_error)
{
    enum muster_status status;
    bool is_new = false;

    if (path == NULL || path[0] != '/' || strlen(path) > PATH_BYTES_MAX || size == 0 ||
        size > MANIFEST_BYTES_MAX)
        return error_set(ret_error, MUSTER_E_ARGUMENT,
                         "an import needs an absolute path of at most %d bytes and a manifest",
                         PATH_BYTES_MAX);
    status = query_order_check(client, job, path, ret_error);
    if (status != MUSTER_OK)
        return status;
    status = query_told_interrupt(
        client, query_link_import(client->link, job, path, manifest, size, &is_new, ret_error),
        ret_error);
    if (status == MUSTER_OK && ret_new != NULL)
        *ret_new = is_new;
    return status;
}

#define WAIT_EVERY_MS 200

enum muster_status muster_client_wait_checkpoint(muster_client_t *client, const char *job,
                                                 int64_t after_checkpoint, int64_t timeout_ms,
                                                 muster_rows_t **ret_rows,
                                                 struct muster_error *ret_error)
{
    const struct timespec pause = {.tv_nsec = WAIT_EVERY_MS * 1000000L};
    int64_t began_ms = clock_ms(CLOCK_MONOTONIC);
    muster_rows_t *rows = NULL;

    for (;;) {
        enum muster_status status = muster_client_latest(client, job, &rows, ret_error);
        if (status != MUSTER_OK)
            return status;
        if (muster_rows_count(rows) > 0 &&
            muster_rows_checkpoints(rows)[0].checkpoint > after_checkpoint) {
            *ret_rows = rows;
            return MUSTER_OK;
        }
        muster_rows_destroy(&rows);
        if (clock_ms(CLOCK_MONOTONIC) - began_ms >= timeout_ms)
            return error_set(ret_error, MUSTER_E_TIMEOUT,
                             "job %s has committed no checkpoint after number %lld in %lld ms", job,
                             (long long)after_checkpoint, (long long)timeout_ms);
        nanosleep(&pause, NULL);
    }
}
