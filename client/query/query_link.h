/* query_link - asks a broker: one DEALER socket for all its addresses, one question at a time.
 * Owns: a libzmq context of its own, the socket, request numbers, resending (200 ms doubling to 1 s
 * with the same number, so that an order is never carried out twice), the wait.
 * Never: threads of ours, SQLite. Bytes from outside are checked before anything is allocated. */
#ifndef CLIENT_QUERY_LINK_H
#define CLIENT_QUERY_LINK_H

#include "client/query/dbread.h"
#include "schema/wire/wire.h"

struct query_link;

/* Connects to each address of a list (schema/brokers.h), which never fails for lack of a broker,
 * and asks over the connection that stands. MUSTER_E_ARGUMENT: not an address, or no such list. */
enum muster_status query_link_open(const char *address, int timeout_ms,
                                   struct query_link **ret_link, struct muster_error *err);
/* For the questions from here on. */
void query_link_set_timeout(struct query_link *link, int timeout_ms);
/* A wait for an answer is broken off, with MUSTER_E_BROKER, as soon as over(arg) is true: the
 * caller knows why. Borrows arg. */
void query_link_set_over(struct query_link *link, bool (*over)(const void *arg), const void *arg);
/* Its address is what muster_client_open was given, or the tool: its errors say so, and that a
 * database would do, too. Without this it is the option `broker` of a struct. */
void query_link_set_client(struct query_link *link);
void query_link_close(struct query_link **link); /* NULL-safe; nulls; does not wait */

/* One page of rows, as dbread_page. Blocks at most the timeout. */
enum muster_status query_link_page(struct query_link *link, const struct question *question,
                                   muster_rows_t *rows, bool *ret_more, struct muster_error *err);

/* Sends an order; its head is filled here but for the job. MUSTER_OK once it is committed;
 * *ret_value is what the broker gave with its answer, also with a refusal, which is returned with
 * its code and text. */
enum muster_status query_link_order(struct query_link *link, struct wire_msg *order,
                                    uint64_t *ret_value, struct muster_error *err);

/* Gives the broker the manifest of the checkpoint at `path`, in parts. *ret_new (may be NULL): the
 * broker did not know it; with MUSTER_E_BUSY, the job runs. Fails as query_link_order. */
enum muster_status query_link_import(struct query_link *link, const char *job, const char *path,
                                     const char *manifest, size_t size, bool *ret_new,
                                     struct muster_error *err);

/* Appends the rows of a ROWS message's cells. Exported for its tests. */
enum muster_status query_link_cells(const uint8_t *bytes, size_t size, size_t columns, size_t count,
                                    muster_rows_t *rows, struct muster_error *err);

/* For tools: from now on all rows but those of jobs tell steps as the program of `job` counts them.
 * That is steps done and *ret_offset (schema/paths.h), which is 0 until a checkpoint has its final
 * name. */
enum muster_status client_count_as(muster_client_t *client, const char *job, int64_t *ret_offset,
                                   struct muster_error *err);
/* Tells the broker of a host that has ranks for the job's next launch, for `muster run --nodes`.
 * MUSTER_OK: it is in *ret_launch, whose places muster_client_hosts tells. MUSTER_E_BUSY: not yet.
 * The next two tell *ret_launch, too. MUSTER_E_PEER: a host of its launch is gone.
 * MUSTER_PREEMPTED: hosts wait for which its launch has room. */
enum muster_status client_host(muster_client_t *client, const char *job,
                               const struct wire_host *host, int64_t *ret_launch,
                               struct muster_error *err);
/* The number that the rows of this client add to the steps that a manifest counts. */
int64_t client_step_offset(const muster_client_t *client);

#endif
