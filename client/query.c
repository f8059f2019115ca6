/* query - the public face of libmuster-query: a client that asks a broker or reads its database.
 * Owns: argument checks, the choice between the two, the paging. */
#include "client/query_link.h"

#include "schema/error.h"
#include "schema/queries.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct muster_client {
    struct dbread *db; /* one of these two */
    struct query_link *link;
};

static bool is_address(const char *text)
{
    return strncmp(text, "tcp://", 6) == 0 || strncmp(text, "ipc://", 6) == 0;
}

enum muster_status muster_client_open(const char *address_or_path, int timeout_ms,
                                      muster_client_t **ret_client, struct muster_error *ret_error)
{
    muster_client_t *client;
    enum muster_status status;

    if (ret_client == NULL || address_or_path == NULL || address_or_path[0] == '\0' ||
        timeout_ms < 0)
        return error_set(
            ret_error, MUSTER_E_ARGUMENT,
            "muster_client_open needs an address or a path, a timeout of 0 or more and "
            "a place for the client");
    if (!is_address(address_or_path) && strstr(address_or_path, "://") != NULL)
        return error_set(ret_error, MUSTER_E_ARGUMENT,
                         "%s is not a broker's address: give tcp://host:port or ipc://path",
                         address_or_path);
    client = calloc(1, sizeof *client);
    if (client == NULL)
        return error_set(ret_error, MUSTER_E_NOMEM, "no memory for a client");
    if (timeout_ms == 0)
        timeout_ms = MUSTER_CLIENT_TIMEOUT_MS;
    if (is_address(address_or_path))
        status = query_link_open(address_or_path, timeout_ms, &client->link, ret_error);
    else
        status = dbread_open(address_or_path, timeout_ms, &client->db, ret_error);
    if (status != MUSTER_OK) {
        free(client);
        return status;
    }
    *ret_client = client;
    return MUSTER_OK;
}

void muster_client_close(muster_client_t **client)
{
    if (client == NULL || *client == NULL)
        return;
    dbread_close(&client[0]->db);
    query_link_close(&client[0]->link);
    free(*client);
    *client = NULL;
}

bool muster_client_is_database(const muster_client_t *client)
{
    return client != NULL && client->db != NULL;
}

/* --- questions ----------------------------------------------------------------------------------- */

static enum muster_status run(muster_client_t *client, struct question question,
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
        question.after = (int64_t)muster_rows_count(rows);
        if (client->db != NULL)
            status = dbread_page(client->db, &question, rows, &more, err);
        else
            status = query_link_page(client->link, &question, rows, &more, err);
    }
    if (status != MUSTER_OK) {
        muster_rows_destroy(&rows);
        return status;
    }
    *ret_rows = rows;
    return MUSTER_OK;
}

enum muster_status muster_client_jobs(muster_client_t *client, const char *job,
                                      muster_rows_t **ret_rows, struct muster_error *ret_error)
{
    return run(client, (struct question){.query = "jobs", .job = job}, ret_rows, ret_error);
}

/* The questions about one job and a number. */
#define QUESTION(name)                                                                          \
    enum muster_status muster_client_##name(muster_client_t *client, const char *job,           \
                                            int64_t number, muster_rows_t **ret_rows,           \
                                            struct muster_error *ret_error)                     \
    {                                                                                           \
        return run(client, (struct question){.query = #name, .job = job, .number_arg = number}, \
                   ret_rows, ret_error);                                                        \
    }
QUESTION(nodes)
QUESTION(rounds)
QUESTION(round)
QUESTION(attempts)
QUESTION(participants)
QUESTION(checkpoints)
QUESTION(checkpoint)
QUESTION(shards)
QUESTION(files)
QUESTION(incidents)
QUESTION(generations)

enum muster_status muster_client_latest(muster_client_t *client, const char *job,
                                        muster_rows_t **ret_rows, struct muster_error *ret_error)
{
    return run(client, (struct question){.query = "latest", .job = job}, ret_rows, ret_error);
}

enum muster_status muster_client_events(muster_client_t *client, const char *job, int64_t after_seq,
                                        const char *kind, muster_rows_t **ret_rows,
                                        struct muster_error *ret_error)
{
    struct question question = {
        .query = "events", .job = job, .text_arg = kind, .number_arg = after_seq};

    return run(client, question, ret_rows, ret_error);
}

enum muster_status muster_client_notices(muster_client_t *client, const char *job, const char *id,
                                         int64_t generation, muster_rows_t **ret_rows,
                                         struct muster_error *ret_error)
{
    struct question question = {
        .query = "notices", .job = job, .text_arg = id, .number_arg = generation};

    return run(client, question, ret_rows, ret_error);
}

/* --- orders -------------------------------------------------------------------------------------- */

static enum muster_status order(muster_client_t *client, struct wire_msg *msg, const char *id,
                                int64_t *ret_value, struct muster_error *err)
{
    uint64_t value = 0;
    enum muster_status status;

    if (client == NULL || msg->up.job == NULL || !wire_job_name_ok(msg->up.job) || id == NULL ||
        id[0] == '\0')
        return error_set(err, MUSTER_E_ARGUMENT,
                         "an order needs a client, the name of a job and an id");
    if (client->link == NULL)
        return error_set(err, MUSTER_E_UNSUPPORTED,
                         "a database is only read, never written: give the broker's address "
                         "(--broker) to have something done");
    status = query_link_order(client->link, msg, &value, err);
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
    return order(client, &msg, id, ret_round, ret_error);
}

enum muster_status muster_client_cancel(muster_client_t *client, const char *job, const char *id,
                                        struct muster_error *ret_error)
{
    struct wire_msg msg = {.type = WIRE_CANCEL, .up.job = job, .u.cancel.id = id};

    return order(client, &msg, id, NULL, ret_error);
}

enum muster_status muster_client_save_now(muster_client_t *client, const char *job, const char *id,
                                          int64_t *ret_round, struct muster_error *ret_error)
{
    struct wire_msg msg = {.type = WIRE_SAVE_NOW, .up.job = job, .u.save_now.id = id};

    return order(client, &msg, id, ret_round, ret_error);
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
    status = order(client, &msg, incarnation, &value, ret_error);
    if (status == MUSTER_OK && ret_lived != NULL)
        *ret_lived = value != 0;
    return status;
}
