/* task_link - between a coordinator or a worker and the broker: the connection, and who looks after
 * it. One turn: hand over each frame that came; let the owner send what is due. One thread at a
 * time takes a turn. A user's thread that has something to say, or waits for something, takes it
 * itself (`drive`, `lead`), so that no task is handed from thread to thread on its way. If there is
 * no user's thread, the link's own takes it.
 * Owns: the connection, that thread, the clock of turns.
 * Never: knows a queue or a task; sends by itself. */
#ifndef CLIENT_TASK_LINK_H
#define CLIENT_TASK_LINK_H

#include "schema/wire/wire.h"

struct task_link;

struct task_link_owner {
    void *arg;
    /* Both on whichever thread has the turn: never two at a time, and they may take the owner's
     * lock. `turn` returns ms until the next one. */
    void (*take)(void *arg, const struct wire_msg *message, int64_t now_ms);
    int64_t (*turn)(void *arg, int64_t now_ms);
    const char *job; /* borrowed */
    uint64_t role, index, incarnation;
    const int *wake_fd; /* NULL, or an eventfd of its own: written to, a turn is taken */
};

enum muster_status task_link_open(const char *broker, const struct task_link_owner *owner,
                                  struct task_link **ret_link, struct muster_error *err);
enum muster_status task_link_start(struct task_link *link, struct muster_error *err);

/* Any thread, the owner's lock held or not: something changed, let a turn be taken and waiters look
 * again. */
void task_link_wake(struct task_link *link);
/* The same, said before a drive, push or lead of the same thread, which see to it. */
void task_link_ask(struct task_link *link);
/* If a turn was asked for: sees that who has the turn, or the link's thread, takes it. */
void task_link_push(struct task_link *link);

/* Call the next two never under the owner's lock. */
/* The same, but takes it itself if nobody has the turn. */
void task_link_drive(struct task_link *link);
/* Counts of what was heard or asked for so far: read under the owner's lock where the wait is
 * decided upon ... */
uint64_t task_link_seen(struct task_link *link);
/* ... and waits here until there is more, or the time has passed: then look again. One thread of
 * the owner's at a time; others wait for what `take` signals. */
void task_link_lead(struct task_link *link, uint64_t seen, int64_t timeout_ms);

/* In a turn only. Fills the head. False: dropped. */
bool task_link_send(struct task_link *link, struct wire_msg *message);
/* Ends the thread after its turn; no other thread may be in a call. NULL-safe. */
void task_link_close(struct task_link **link);

int64_t task_now_ms(void);
uint64_t task_incarnation(void); /* random, not 0 */
/* Broker and job as options, environment and default say. */
enum muster_status task_identity(const char *broker, const char *job,
                                 char ret_broker[BROKERS_TEXT_MAX + 1],
                                 char ret_job[JOB_NAME_MAX + 1], struct muster_error *err);

/* When to repeat what was not answered: 200 ms, doubling to 1 s. */
struct task_again {
    int64_t at_ms; /* 0 = now */
    int64_t every_ms;
};
bool task_again_due(struct task_again *again, int64_t now_ms, int64_t *wait_ms);
void task_again_reset(struct task_again *again);

#endif
