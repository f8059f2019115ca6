/* watch_state - what watch's files share: watch.c opens, takes and closes, watch_run.c runs the
 * threads. Nobody else includes it. */
#ifndef NODE_NOTICE_WATCH_STATE_H
#define NODE_NOTICE_WATCH_STATE_H

#include "node/notice/ledger.h"
#include "node/notice/watch.h"

#include <pthread.h>
#include <stdatomic.h>

#define RECORDS_MAX 128
#define SLEEP_MAX_MS 1000
#define PASS_LEAST_MS 10 /* a source that is always due does not take the processor */
#define ENDPOINT_BYTES 256
#define TOPICS_MAX 16                 /* of one source */
#define RUNNERS_MAX (SOURCES_MAX + 2) /* HTTP's, and that of what auto finds */

#define RUNNER_SLOTS_MAX (SOURCES_MAX + 2) /* and auto, what it finds */

struct slot { /* one source */
    const char *name;
    const struct source_ops *ops; /* NULL: a signal, the callback */
    void *self;
    struct source_status status, told; /* mutex */
};

struct runner { /* a thread and its sources */
    struct shared *shared;
    pthread_t thread;
    bool started;
    int wake_fd;       /* -1: none */
    struct http *http; /* the first runner's */
    bool detects;      /* the first runner's: "auto" is one of its sources */
    struct slot *slots[RUNNER_SLOTS_MAX];
    size_t slot_count;
};

/* The memory that threads use; outlives the watch where one of them hangs. */
struct shared {
    pthread_mutex_t mutex;
    struct ledger ledger;
    struct ledger_out out; /* scratch */
    struct notice_record records[RECORDS_MAX];
    size_t first, count;
    int wake_fd; /* -1: nobody listens any more */
    _Atomic bool stop;
    struct slot slots[SOURCES_MAX + 5]; /* and signal, callback, auto, what auto finds */
    size_t slot_count;
    bool slurm; /* there is that source */
    struct runner runners[RUNNERS_MAX];
    size_t runner_count;
    char sys_prefix[256], runtime_dir[512];
    char endpoints[SOURCES_MAX][ENDPOINT_BYTES]; /* by provider; "" = its own */
    bool off[SOURCES_MAX];
    bool acknowledge[SOURCES_MAX], acknowledges; /* by provider; any of them */
    _Atomic bool committed;                      /* the job's last checkpoint */
    _Atomic bool acknowledging;                  /* an acknowledgement is to be sent or under way */
    uint64_t seed;
    struct provider_pace pace;
};

struct notice_now watch_clocks(void);
void watch_wake(int fd);

/* Any thread, mutex free. True: it was news. */
bool watch_say(struct shared *shared, const char *source, unsigned topic,
               const struct notice_set *set, int64_t now_boot_ms);
void watch_queue(struct shared *shared); /* what is in `out`; mutex held */

struct slot *watch_new_slot(struct shared *shared, const char *name, const struct source_ops *ops,
                            void *self, enum source_state state);
enum muster_status watch_add_remote(struct shared *shared, struct runner *runner,
                                    const struct provider *provider, struct muster_error *err);
void *watch_run(void *runner); /* a runner's thread */

#endif
