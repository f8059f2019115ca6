/* watch - all notice sources of one node, behind one door.
 * Owns: the signals watched, the callback's thread, one thread for what is asked over HTTP and one
 * for each source that may hang; the ledger; what each source stands at. Never: a wait of the
 * caller's but watch_close's, which is bounded; a thread where no source needs one; anything in a
 * forked child. A source that hangs stops no other, and not the node. */
#ifndef NODE_NOTICE_WATCH_H
#define NODE_NOTICE_WATCH_H

#include "node/notice/base/source.h"
#include "node/notice/sources.h"

struct watch;

struct watch_options {
    const int *signals; /* borrowed for open */
    size_t signal_count;
    bool usual_grace; /* a signal's time is the one that is usual here (usual.h); else unknown */
    bool (*ask)(void *arg); /* the user's callback; NULL = none */
    void *arg;
    int64_t ask_period_ms;
    const struct source_list *sources; /* borrowed for open; NULL = none */
    uint64_t seed;                     /* differs from node to node */
    struct provider_pace pace;         /* a test's; {0} = the real one */
    int wake_fd; /* an eventfd: readable when there is something to take. Borrowed until close */
};

/* Reads the environment (endpoints, prefixes), asks nobody. Statuses of signal_watch; E_ARGUMENT,
 * E_NOMEM, E_BUSY. */
enum muster_status watch_open(const struct watch_options *options, struct watch **ret_watch,
                              struct muster_error *err);
/* Waits at most limit_ms in all for threads that are in the middle of something; what does not end
 * keeps what it uses. NULL-safe. */
void watch_close(struct watch **watch, int64_t limit_ms);

/* Any thread. The job's last checkpoint is committed: a source that may tell its service to go
 * ahead now does so. */
void watch_committed(struct watch *watch);
/* Waits at most limit_ms until that was said. NULL-safe. */
void watch_settle(struct watch *watch, int64_t limit_ms);

/* Signals have their former effect again, and nobody is woken; threads go on. For a node whose own
 * thread hangs. NULL-safe. */
void watch_silence(struct watch *watch);

/* --- one thread at a time: the agent's --- */
/* Takes one record; false: none. */
bool watch_take(struct watch *watch, struct notice_record *ret_record);
/* The record of this number was cancelled from outside: what says it again is told again. */
void watch_forget(struct watch *watch, uint64_t number);
/* Takes one source whose state or text has changed; false: none. */
bool watch_take_change(struct watch *watch, struct source_status *ret_status);
/* The states of all, as JSON for people and programs:
 * [{"name","state","ok_unix_ms","retry_ms","text"}]. Cut to whole sources. */
#define WATCH_JSON_MAX SOURCES_BYTES_MAX
void watch_json(struct watch *watch, const struct notice_now *now,
                char ret_json[WATCH_JSON_MAX + 1]);

#endif
