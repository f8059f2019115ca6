/* sim_tasks_private - one world of tasks, behind sim_tasks.h.
 * sim_tasks.c the world as a whole, sim_tasks_user.c what users' threads do, sim_tasks_threads.c
 * several of them, sim_tasks_coordinator.c the life of their coordinator, sim_tasks_broker.c the
 * broker, sim_tasks_worker.c the workers' processes, sim_tasks_node.c the node that one of them
 * lives in, sim_tasks_servers.c parameter servers, sim_tasks_link.c the network and what stands in
 * for client/tasks/task_link.c. */
#ifndef TESTS_SIM_SIM_TASKS_PRIVATE_H
#define TESTS_SIM_SIM_TASKS_PRIVATE_H

#include "broker/core/contract/core.h"
#include "broker/store/store_internal.h"
#include "client/tasks/coordinator_private.h"
#include "client/tasks/worker_private.h"
#include "tests/sim/sim_tasks.h"
#include "tests/support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

#define WORKERS 4
#define SERVERS 2 /* parameter servers, where there are any */
#define USERS 3   /* threads, where there are several */
#define BESIDE 0  /* this worker lives in the node of a training */
#define TASKS 80
#define PER_WORKER 4  /* values: those that every worker can make, and ... */
#define CANNOT_MAKE 3 /* ... the last, which this worker cannot */
#define STEP_MS 10
#define FAULTS_MS 40000 /* how long things break */
#define QUIET_MS 200000 /* by then all has ended */
#define FRAMES_MAX 4096
#define NUMBERS_MAX 512
#define FAULTS_UNTIL_MS (1000000 + FAULTS_MS)
#define SIM_TASKS_LIMIT_MS 800
#define SIM_TASKS_BLOCKS_AT 6 /* tasks that have not ended */
#define CAUGHT 7              /* exit code */

struct frame {
    int64_t at_ms;
    bool up;
    uint64_t route;
    uint8_t *bytes;
    size_t size;
};

struct task_link { /* in place of client/tasks/task_link.c */
    struct task_link_owner owner;
    uint64_t route;
    int64_t next_ms, up_last_ms, down_last_ms;
    bool woken;
};

struct running {
    struct muster_task *task;
    int64_t until_ms;
};

struct process { /* a worker */
    muster_worker_t *worker;
    struct running running[4];
    int64_t back_ms;    /* dead until then */
    int64_t paused_ms;  /* stands still until then */
    int64_t unheard_ms; /* since then the broker may not have heard it */
};

struct node { /* of the training, as far as tasks need one */
    uint64_t role, rank, incarnation, generation;
    int64_t next_ms;
};

struct server {
    struct node node;
    bool there;      /* its process is */
    uint64_t was;    /* the last one that had joined; 0 = none */
    uint64_t before; /* the one before it */
    bool joined;     /* it lives */
    int64_t joined_ms;
    bool missed; /* it does not, and had not finished ... */
    bool heard;  /* ... which it said itself */
    int64_t ended_ms;
    int64_t back_ms;         /* the next process comes then */
    enum wire_leave_why why; /* it is leaving, which is said until it is heard */
    int64_t leaves_ms;       /* ... since then; 0 = it is not */
};

enum user_state { USER_THINKS, USER_LEADS, USER_WAITS };

struct user { /* a thread of the user's, with the coordinator that all share */
    pthread_t thread;
    bool is_thread; /* of its own: else the world's, which passes time where it waits */
    sem_t turn;
    enum user_state state;
    const void *condition; /* that it waits for, ... */
    int64_t until_ms;      /* ... at most until then */
    bool woken;
    bool waits; /* its call may take time */
    int64_t timeout_ms;
    int64_t began_ms; /* its call; 0 = it is in none */
    uint64_t alives;
};

struct sim_tasks_world {
    uint64_t seed, random;
    int64_t now;
    struct core *core; /* NULL: it is dead */
    struct store *store;
    struct actions out;
    int64_t broker_back_ms, broker_since_ms, coordinator_since_ms;
    uint64_t starts, routes, incarnations;
    char dir[SCRATCH_PATH_MAX];
    struct frame frames[FRAMES_MAX];
    size_t frames_count;
    muster_coordinator_t *coordinator;
    uint64_t queue; /* the coordinator's; tasks of a former one may still run */
    muster_remote_value_t *values[NUMBERS_MAX];
    bool freed[NUMBERS_MAX]; /* the user asked for the value no more */
    muster_per_worker_t *per_worker[PER_WORKER];
    size_t per_worker_count; /* there are */
    struct process processes[WORKERS];
    struct node node; /* that worker BESIDE lives in */
    bool has_servers;
    struct server servers[SERVERS];
    struct user users[USERS],
        here; /* the threads; and the world's own, which is a user where they are none */
    size_t users_count;
    struct user *me;                                   /* who runs */
    sem_t turn;                                        /* of the world's own thread */
    bool ending;                                       /* nobody calls any more */
    bool all_ended;                                    /* one of them has seen it */
    bool one_stays_away;                               /* of the servers; it was chosen */
    size_t owner[NUMBERS_MAX];                         /* whose value it is */
    struct task_link *links[WORKERS + 1];              /* the last is the coordinator's */
    uint64_t began[NUMBERS_MAX], excused[NUMBERS_MAX]; /* attempts; and those that do not count */
    uint64_t poisoned[NUMBERS_MAX];                    /* workers that it ended */
    bool begun[NUMBERS_MAX][TASK_TRIES_MAX + 1];       /* this attempt */
    bool ended[NUMBERS_MAX];
    uint64_t to_schedule;
    bool faults;
    bool poison; /* some tasks end their worker's process, and nothing else does */
    bool blocks; /* the coordinator's calls wait */
    enum sim_tasks_break broken;
    const char *expected; /* what it is to fail with */
    struct sim_tasks_stats *stats;
};

extern struct sim_tasks_world sim_tasks_world;
#define w sim_tasks_world

uint64_t sim_tasks_below(uint64_t count); /* a random number */
bool sim_tasks_one_in(
    uint64_t count); /* of so many steps of the world one, on average; never without faults */
/* Its bytes: an attempt's differ from another's, the first is the longest. */
size_t sim_tasks_result_size(uint64_t number, uint64_t attempt);
void sim_tasks_expected(const char *text); /* a control has failed, as it must or otherwise */
void sim_tasks_failed(const char *condition);

#define INSIST(condition, ...)                                                     \
    do {                                                                           \
        if (!(condition)) {                                                        \
            char insisted[256];                                                    \
            snprintf(insisted, sizeof insisted, __VA_ARGS__);                      \
            sim_tasks_expected(insisted);                                          \
            fprintf(stderr, "seed %llu, at %lld ms: ", (unsigned long long)w.seed, \
                    (long long)w.now);                                             \
            fprintf(stderr, __VA_ARGS__);                                          \
            fprintf(stderr, "\n");                                                 \
            sim_tasks_failed(#condition);                                          \
        }                                                                          \
    } while (0)

/* sim_tasks_link.c */
void sim_tasks_put_frame(bool up, struct task_link *link, const uint8_t *bytes, size_t size);
bool sim_tasks_take_frame(bool up, uint64_t route,
                          struct frame *ret_frame); /* the first that is due, by time */
void sim_tasks_drop_frames(uint64_t route);         /* 0: all */
void sim_tasks_reconnect(struct task_link *link);
void sim_tasks_link_turns(struct task_link *link);

/* sim_tasks_broker.c */
void sim_tasks_broker_starts(void);
void sim_tasks_broker_passes(void);
void sim_tasks_broker_hears(uint64_t route, const struct wire_msg *message); /* it is not dead */
void sim_tasks_check_rows(void);

/* sim_tasks_coordinator.c */
void sim_tasks_coordinator_begins(bool fresh);
void sim_tasks_coordinator_dies(void);
void sim_tasks_coordinator_passes(void); /* nobody is in a call: maybe another comes in its place */

/* sim_tasks_user.c; as w.me */
void sim_tasks_make_per_worker(size_t from, size_t count);
void sim_tasks_fetch_long_results(void);
bool sim_tasks_user_passes(void);   /* one deed or none; true: all has ended */
bool sim_tasks_thread_passes(void); /* the same of one of several threads: one deed */

/* sim_tasks_threads.c */
void sim_tasks_users_begin(void);
bool sim_tasks_users_pass(void); /* true: all has ended */
void sim_tasks_users_end(void);
/* A call that may take so long: -1 = any time. Behind it the call has kept to that. */
void sim_tasks_call_begins(int64_t timeout_ms);
void sim_tasks_call_ended(void);
void sim_tasks_user_leads(void); /* in place of the wait of client/tasks/task_link.c */

/* sim_tasks_worker.c */
void sim_tasks_worker_begins(size_t i);
void sim_tasks_worker_dies(size_t i);
void sim_tasks_process_passes(size_t i);
void sim_tasks_check_nothing_runs(void);

/* sim_tasks_node.c */
uint64_t sim_tasks_node_begins(struct node *node, enum wire_role role, uint64_t rank);
bool sim_tasks_node_passes(struct node *node); /* false: its launch goes on without it */
void sim_tasks_node_says(struct node *node, enum wire_type type, enum wire_leave_why why);
const struct peer *sim_tasks_node_peer(const struct node *node); /* NULL: not known */

/* sim_tasks_servers.c */
void sim_tasks_servers_pass(void);
void sim_tasks_check_unavailable(const struct muster_error *err); /* a call said so */
void sim_tasks_check_available(void);                             /* one did not */

/* sim_tasks.c */
void sim_tasks_others_pass(void);
/* One step of everybody but the user's own thread, which may be waiting. */
void sim_tasks_time_passes(void);

#endif
