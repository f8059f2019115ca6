/* agent_keep - what the program asks the broker for besides its steps: policies, pins, deletions.
 * It also holds the facts of the state for the next save, and the checkpoints that this node's
 * writer deletes for the broker. */
#ifndef NODE_AGENT_KEEP_H
#define NODE_AGENT_KEEP_H

#include "schema/wire/wire.h"

struct agent;
struct muster_state;

/* Sends one request (type and body of *message; borrowed) and waits for its answer, for timeout_ms
 * at most, through restarts of the broker. One thread at a time. *ret_value (may be NULL) is
 * ACK.value. MUSTER_E_TIMEOUT: nobody answered; it may still be done. Else the broker's status,
 * with its text.
 *   POLICIES    what the job keeps and when the broker saves (schema/rules/policies.h); chief only
 *   SAVE_WISH   a save at an agreed step, now; value = its round, 0 = none
 *   SWEEP       value = deletions that are decided and not done; final: the newest may go too
 *   DROP        deletes one
 *   PIN, UNPIN  hold one, and let it go */
enum muster_status agent_ask(struct agent *agent, const struct wire_msg *message,
                             int64_t timeout_ms, uint64_t *ret_value, struct muster_error *err);

/* SWEEP, again until all deletions are done. MUSTER_E_TIMEOUT: some are not. */
enum muster_status agent_sweep(struct agent *agent, bool final, int64_t timeout_ms,
                               struct muster_error *err);

/* A deletion that failed since the last such call, and was not done meanwhile; MUSTER_OK = there is
 * none. */
enum muster_status agent_deletion_failed(struct agent *agent, struct muster_error *err);
struct writer_result;
void agent_note_deletion(struct agent *agent,
                         const struct writer_result *result); /* its mutex is held */

/* Of the next save that is captured by the training thread, once: JSON objects
 * (schema/manifest/metrics.h), NULL = none. Copies. Training thread. E_ARGUMENT: they are no such
 * objects. E_NOMEM. */
enum muster_status agent_set_facts(struct agent *agent, const char *metrics, const char *custom,
                                   struct muster_error *err);

/* The state that is saved from here on instead of options.save.state; NULL: that again. Borrowed
 * until the next call, or until the node has left. Training thread. */
void agent_give_state(struct agent *agent, const struct muster_state *state);

#endif
