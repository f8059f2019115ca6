/* tasks_fixture - the broker's core and its database on a table, a coordinator, and workers that
 * speak by one line of C. Every input is followed by a tick and written, as in the loop; a restart
 * is made from the file.
 *
 * What was sent is text, joined by "; ": "c" is the coordinator, "w<index>" a worker, N.A task N,
 * attempt A, rN resource N:
 *   c:opened q1 0/0   c:taken 3   c:ended @0 1.1=done 2.1=failed/MUSTER_E_TASK
 *   c:raised 1 #2 MUSTER_E_TASK to 5   c:alive 1/3   c:page 1-4 1.1=done   c:chunk 2 0+4/4
 *   w0:welcome   w0:work 1.1 2.1 r1   w0:taken 1.1 2.1/MUSTER_E_STALE   w0:alive -2.1   w0:left */
#ifndef TESTS_SUPPORT_TASKS_FIXTURE_H
#define TESTS_SUPPORT_TASKS_FIXTURE_H

#include "broker/core/tasks/tasks.h"
#include "broker/store/store.h"
#include "tests/support/scratch.h"

#define TASKS_START_MS 1000000
#define TASKS_WORKERS 10

struct tasks_worker {
    uint64_t incarnation, route, serial;
    uint64_t slots, takes;
    bool silent;      /* tasks_pass sends no beat for it */
    bool unconfirmed; /* it dies before it can say that it has its tasks */
    bool there;
};

struct tasks_fixture {
    char dir[SCRATCH_PATH_MAX];
    char db[SCRATCH_PATH_MAX + 32];
    struct store *store;
    struct core *core;
    struct actions out;
    int64_t now;
    uint64_t starts;
    uint64_t start_high;  /* upper half of the next start's id */
    uint64_t coordinator; /* incarnation */
    uint64_t number;      /* of the last task that was added */
    uint64_t scheduled;   /* that its RAISE tells */
    size_t queues_max;    /* of the next start, 0 = as always */
    uint64_t get_to;      /* up to where its TASKS_GET asks, 0 = all */
    uint64_t told;        /* that its QUEUE_BEAT tells */
    uint64_t queue;
    struct tasks_worker workers[TASKS_WORKERS];
    char unavailable[256]; /* of the last QUEUE_ALIVE */
    char text[16384];
};

/* For cmocka: the file, once a group; each test has empty tables, a started core and a queue. */
int tasks_open_file(void **state);
int tasks_close_file(void **state);
int tasks_with_queue(void **state);
int tasks_without_core(void **state);
void tasks_begin(struct tasks_fixture *f);   /* empty tables, a started core */
void tasks_restart(struct tasks_fixture *f); /* the broker is killed and started */
/* Feeds, ticks, writes; f->text is what was sent since the last call. */
void tasks_feed(struct tasks_fixture *f, uint64_t route, struct wire_msg *message);
void tasks_tick_at(struct tasks_fixture *f);
/* Time passes in steps of half a second, with the beats of workers that live; texts are joined,
 * WORK_ALIVE without a cancelled one left out. */
void tasks_pass(struct tasks_fixture *f, int64_t ms);

void tasks_open_queue(struct tasks_fixture *f, bool fresh, uint64_t max_queued);
void tasks_add(struct tasks_fixture *f, size_t count); /* function "work", arguments "a<number>" */
void tasks_add_one(struct tasks_fixture *f, struct wire_task_entry entry);
void tasks_say(struct tasks_fixture *f, enum wire_type type,
               uint64_t value); /* RAISE, TASK_CANCEL, ... */
/* A process of this index begins; every call is a new one. */
void tasks_worker_begin(struct tasks_fixture *f, int w, uint64_t slots, uint64_t takes);
/* It says WORK_HELLO (again), with what it holds: `held` as "1.1 2.1! r1!", ! = it has ended. */
void tasks_hello(struct tasks_fixture *f, int w, const char *held);
void tasks_done(struct tasks_fixture *f, int w, uint64_t number, uint64_t attempt);
void tasks_fail(struct tasks_fixture *f, int w, uint64_t number, uint64_t attempt, unsigned status);
void tasks_ended_as(struct tasks_fixture *f, int w, struct wire_ended_entry entry);
void tasks_beat(struct tasks_fixture *f, int w, uint64_t received);
struct wire_msg tasks_msg(const struct tasks_fixture *f, int w,
                          enum wire_type type); /* -1: coordinator */
uint64_t tasks_route(const struct tasks_fixture *f, int w);
struct task_queue *tasks_queue(struct tasks_fixture *f);
/* A slice of the rows that nobody reads any more goes. */
void tasks_tidy_slice(struct tasks_fixture *f);
/* A number by SQL from the file. */
int64_t tasks_look(struct tasks_fixture *f, const char *sql);

#define assert_sent(f, expected) assert_string_equal((f)->text, expected)

#endif
