/* task_link - the thread between a coordinator or a worker and the broker.
 * Owns: the connection, the thread, the clock of its turns. One turn: wait for frames, a wake or the time that the
 * owner named; hand over each frame; let the owner send what is due.
 * Never: knows a queue or a task; sends by itself. */
#ifndef CLIENT_TASK_LINK_H
#define CLIENT_TASK_LINK_H

#include "schema/wire.h"

struct task_link;

struct task_link_owner {
    void *arg;
    /* Both on the link's thread, without a lock of the link's. `turn` returns ms until the next one. */
    void (*take)(void *arg, const struct wire_msg *message, int64_t now_ms);
    int64_t (*turn)(void *arg, int64_t now_ms);
    const char *job; /* borrowed */
    uint64_t role, index, incarnation;
};

enum muster_status task_link_open(const char *broker, const struct task_link_owner *owner,
                                  struct task_link **ret_link, struct muster_error *err);
enum muster_status task_link_start(struct task_link *link, struct muster_error *err);
void task_link_wake(struct task_link *link); /* any thread */
/* On the link's thread only. Fills the head. False: dropped. */
bool task_link_send(struct task_link *link, struct wire_msg *message);
/* Ends the thread behind its turn. NULL-safe. */
void task_link_close(struct task_link **link);

int64_t task_now_ms(void);
uint64_t task_incarnation(void); /* random, not 0 */
/* Broker and job as options, environment and default say. */
enum muster_status task_identity(const char *broker, const char *job,
                                 char ret_broker[ENDPOINT_MAX + 1], char ret_job[JOB_NAME_MAX + 1],
                                 struct muster_error *err);

/* When to repeat what was not answered: 200 ms, doubling to 1 s. */
struct task_again {
    int64_t at_ms; /* 0 = now */
    int64_t every_ms;
};
bool task_again_due(struct task_again *again, int64_t now_ms, int64_t *wait_ms);
void task_again_reset(struct task_again *again);

#endif
