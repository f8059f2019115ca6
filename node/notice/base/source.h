/* source - the interface of every source of termination notices, as the node that listens sees it.
 *
 * HOW TO ADD A PROVIDER (a cloud's metadata service). It is one pure file, without socket, clock or
 * thread:
 *   1. node/notice/providers/NAME.h, NAME.c: `const struct provider provider_NAME` (see provider.h:
 *      address, headers, token, one struct provider_path for each thing that is asked), and for
 *      each path one pure function `parse_X(reply, context, set)`. A parser gets one answer with
 *      status 200. It writes into an empty set all that the answer announces: the whole truth about
 *      that path at this moment. A notice that is missing in a later set is withdrawn, if it was
 *      cancellable. A time that moves later is ignored; one that moves earlier is told. The parser
 *      does nothing of that, and knows no tokens, retries, backing off, states or 404 (an empty
 *      set): provider.c does. A key names the notice within its source, and must not hold what
 *      changes (no times).
 *   2. One line in providers[] of node/notice/sources.c. providers/platform.c has the DMI texts of
 *      the platform, and probe.c tells what proves it without DMI.
 *   3. tests/unit/node/notice/test_notice_NAME.c tests the parsers, byte by byte.
 *      tests/proc/notices/test_notice_NAME.c tests each reply and trap against
 *      tests/support/http_server.h, with notice_fixture.h.
 *   4. Nothing in schema/wire/: sources are names on the wire.
 * A source that is no HTTP service implements struct source_ops below (file.c is the pattern).
 *
 * HOW IT RUNS. One background thread of the node (watch.c) runs all sources with `run`. `run` never
 * waits: it starts work, takes what is ready, and says by `wakeup` and `fds` when it wants to run
 * again. The agent only takes records (watch_take). Several sources are active at once. ledger.c
 * turns sets into records, so that a later or absent notice never postpones one that was told.
 *
 * Owns: types only. Pure. */
#ifndef NODE_NOTICE_SOURCE_H
#define NODE_NOTICE_SOURCE_H

#include "schema/limits.h"
#include "schema/status.h"
#include "schema/wire/wire.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct http;

#define SOURCES_MAX 12          /* of one node */
#define SOURCE_FDS_MAX 2        /* descriptors that one source waits for */
#define SOURCE_NAME_MAX 31      /* bytes */
#define SOURCE_TEXT_MAX 160     /* bytes of a state's text */
#define SOURCE_ARGUMENT_MAX 511 /* bytes: a path, a command */
#define NOTICE_KEY_MAX 95       /* bytes */
#define NOTICE_TEXT_MAX 255     /* bytes of raw text that are kept */
#define NOTICE_SET_MAX 16       /* notices that one answer may announce: the most urgent ones */

enum source_state {
    SOURCE_OFF,      /* not asked for, or given up by its own rule */
    SOURCE_PROBING,  /* no answer yet */
    SOURCE_HEALTHY,  /* the last answer was a good one: also "no notice" */
    SOURCE_DEGRADED, /* it has worked, or is there, and does not work now: retried for ever */
    SOURCE_ABSENT,   /* nothing that could be this source is there: retried rarely, for ever */
    SOURCE_STATE_COUNT
};
const char *source_state_name(enum source_state state);

struct source_status {
    char name[SOURCE_NAME_MAX + 1];
    enum source_state state;
    int64_t last_ok_boot_ms;        /* -1: never */
    int64_t retry_boot_ms;          /* when it is asked next; -1: it is woken by what happens */
    char text[SOURCE_TEXT_MAX + 1]; /* the last error, or what it stands on; "" = nothing to say */
};

struct notice_now { /* one reading of the clocks for a whole pass */
    int64_t boot_ms;
    int64_t unix_ms;
};

struct notice_item { /* one notice as its source says it now */
    char key[NOTICE_KEY_MAX + 1];
    enum wire_notice_kind kind;
    int64_t deadline_boot_ms; /* -1: unknown */
    bool hard;                /* at the deadline the end comes by force, whatever we do */
    bool cancellable;         /* it is withdrawn when its source stops saying it */
    char text[NOTICE_TEXT_MAX + 1];
};
struct notice_set {
    struct notice_item items[NOTICE_SET_MAX];
    size_t count;
};
/* Adds a copy; if there are too many, the least urgent is left out. Bytes of key and text that are
 * not printable ASCII become '?'. */
void notice_set_add(struct notice_set *set, const struct notice_item *item);
void notice_text(char ret_text[NOTICE_TEXT_MAX + 1], const char *bytes, size_t size);

struct notice_record { /* what the agent gets */
    char source[SOURCE_NAME_MAX + 1];
    uint64_t number; /* names it within the node; a withdrawal has its notice's. 0: said again, says
                        nothing new */
    bool withdrawn;
    struct notice_item item;
};

/* --- a source that is run by the watch thread ------------------------------------------------- */

struct source_config {
    const char *argument;    /* after the colon of "file:/path"; "" = none. Borrowed for open */
    const char *endpoint;    /* instead of the provider's own; NULL = that one. Borrowed for open */
    const char *runtime_dir; /* where pollers of one host meet; NULL = nowhere. Borrowed for open */
    int64_t period_ms;       /* 0 = the source's own */
    struct http *http;       /* the thread's; NULL where there is none. Borrowed until close */
    uint64_t seed;           /* of the jitter */
    int64_t pace_waits, pace_timeouts; /* see struct provider_pace */
    bool acknowledge; /* it may tell its service to go ahead, once the job is saved */
};

/* run() puts here what the source says now. topic: 0.. within the source; each topic has its own
 * set. */
struct source_out {
    void (*say)(void *arg, unsigned topic, const struct notice_set *set);
    void *arg;
};

struct source_ops {
    /* Reads nothing but its configuration: no I/O that may wait. */
    enum muster_status (*open)(const struct source_config *config, void **ret_self,
                               struct muster_error *err);
    void (*run)(void *self, const struct notice_now *now, const struct source_out *out);
    size_t (*fds)(const void *self, struct pollfd fds[SOURCE_FDS_MAX]); /* may be NULL */
    int64_t (*wakeup_boot_ms)(const void *self);
    void (*status)(const void *self, struct source_status *ret_status); /* all but the name */
    void (*close)(void *self);
    /* Both may be NULL. The job's checkpoint for this end is committed; is there an acknowledgement
     * to be sent? */
    void (*committed)(void *self);
    bool (*acknowledging)(const void *self);
};

#endif
