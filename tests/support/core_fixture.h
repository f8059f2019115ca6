/* core_fixture - a broker core on a table: virtual time, nodes that speak by one line of C, a
 * database of rows that a restart is loaded from, and the actions of a step as text.
 *
 * Nodes are numbered 0..CORE_NODES-1; node n has route 100 + n and says what its struct core_node
 * says. core_say() clears the actions, feeds one message and checks that nothing is published
 * before its row stands in the list. Texts of actions, one a word group, joined by "; ":
 *   PERSIST   +job  +generation running  +node 1 restored #2  +round 1 decided  +part 1.0  +event 5
 *   PUBLISH   !5 freeze r1 termination m0,1
 *   HINT      hint n1
 *   SEND      0:ack #3 ok=1  1:refused ...  0:welcome  0:snapshot  0:events 4  0:manifest 1+0 */
#ifndef TESTS_SUPPORT_CORE_FIXTURE_H
#define TESTS_SUPPORT_CORE_FIXTURE_H

#include "broker/core/dispatch.h"

#define CORE_NODES 8
#define CORE_START_MS 1000000 /* boot time of the fixture's first input */

struct core_node {
    enum wire_role role;
    uint64_t rank;
    uint64_t incarnation;
    uint64_t generation; /* of its WELCOME, 0 = none yet */
    uint64_t request;    /* last number used */
    uint64_t route;
    uint64_t applied_seq;
    uint64_t epoch;
    int64_t begun;
    int64_t done;
    uint64_t saving_round, saving_bytes; /* for its heartbeats */
    uint64_t p95_ms;
    uint64_t round;       /* named in HELLO */
    uint64_t save_failed; /* the same: the round whose save failed */
    uint64_t directory;   /* the number of the one that it sees */
    uint64_t age_ms;      /* the same: of its process, 0 = not known */
    uint64_t history;     /* the same; 0 as of a sender that knows no such field */
    uint64_t answered;    /* the same: of its requests */
    unsigned phase;       /* the same; none: as its generation and steps tell */
    bool silent;          /* core_pass() sends no heartbeat for it */
};

struct core_fixture {
    struct core *core;
    struct core_options options; /* of the next start */
    struct actions out;
    const char *job; /* "train" */
    uint64_t world_size;
    enum wire_layout layout;
    bool fallback;
    const char *metrics; /* of the next SAVED, NULL = none; custom the same */
    const char *custom;
    uint64_t blocked_ms, waited_ms; /* of the next SAVED, so held */
    bool held;
    const char *by; /* who sends what core_tool() and core_feed() say for a tool; NULL: not told */
    const char *key_jobs; /* of the key of whoever core_feed() speaks for; NULL: no key */
    bool plans; /* core_notice() leaves its time to be trained in; else no more steps are wanted */
    int64_t now;
    uint64_t starts;
    struct core_node nodes[CORE_NODES];
    struct record *rows; /* the database: every row written, in order */
    unsigned *boots;     /* in which boot each of them was written last */
    unsigned boot;
    size_t rows_count;
    size_t rows_capacity;
    struct record *copy; /* of the rows */
    size_t copy_count;
    struct arena rows_arena;
    char text[65536];
};

/* A started core without a job. */
void core_fixture_open(struct core_fixture *f, uint64_t world_size, enum wire_layout layout);
void core_fixture_close(struct core_fixture *f);
/* The same with all ranks restored at the start and the clock a second later; no actions kept. */
void core_fixture_running(struct core_fixture *f, uint64_t world_size, enum wire_layout layout);

/* The same as cmocka's setups and their teardown; replicated, if the name does not tell otherwise.
 */
int core_open_one(void **state);
int core_open_two(void **state);
int core_open_two_sharded(void **state);
int core_open_three(void **state);
int core_run_one(void **state);
int core_run_two(void **state);
int core_run_two_sharded(void **state);
int core_run_three(void **state);
int core_run_three_sharded(void **state);
int core_run_four(void **state);
int core_run_four_sharded(void **state);
int core_close(void **state);

/* The broker is killed and started: a new core from the rows. The machine too if `reboot`. */
void core_restart(struct core_fixture *f, bool reboot);

/* An operator keeps a copy of the database; another start is made from that. */
void core_copy(struct core_fixture *f);
void core_restart_from_copy(struct core_fixture *f);
void core_restart_from_older_copy(struct core_fixture *f); /* the store knows that it is one */

struct wire_msg core_msg(const struct core_fixture *f, int node, enum wire_type type);
/* Clears the actions and feeds. core_feed leaves all to the caller, core_say numbers a request. */
void core_feed(struct core_fixture *f, uint64_t route, const struct wire_msg *message);
void core_say(struct core_fixture *f, int node, struct wire_msg message);
void core_hello(struct core_fixture *f, int node);
void core_hello_telling(struct core_fixture *f, int node, struct wire_notice_fact *fact);
void core_tool(struct core_fixture *f, struct wire_msg message, uint64_t request);
void core_tick(struct core_fixture *f); /* clears the actions */
/* Time passes: passes of at most 500 ms, each with a heartbeat of every node that lives and is not
 * silent, then a tick. The actions of all of them are kept, heartbeats' answers and progress left
 * out. */
void core_pass(struct core_fixture *f, int64_t ms);
void core_clear(struct core_fixture *f);

/* What nodes say. */
void core_restored(struct core_fixture *f, int node, uint64_t checkpoint, int64_t step);
void core_report(struct core_fixture *f, int node, uint64_t round, int64_t begun, int64_t done);
void core_report_all(struct core_fixture *f, uint64_t round, int64_t at); /* begun and done */
void core_report_aborted(struct core_fixture *f, int node, uint64_t round, int64_t done);
void core_at_step(struct core_fixture *f, int node, uint64_t round, int64_t step, bool captured);
void core_files(struct core_fixture *f, int node, uint64_t round, int64_t step, size_t count);
void core_saved(struct core_fixture *f, int node, uint64_t round, int64_t step, size_t files);
void core_save(struct core_fixture *f, int node, uint64_t round, int64_t step); /* all three */
void core_save_failed(struct core_fixture *f, int node, uint64_t round, int64_t step,
                      unsigned code);
void core_past(struct core_fixture *f, int node, uint64_t round, int64_t begun);
void core_save_at(struct core_fixture *f, int node, int64_t step);
void core_notice(struct core_fixture *f, int node, const char *id, int64_t left_ms);
void core_cancel(struct core_fixture *f, int node, const char *id);
void core_error(struct core_fixture *f, int node, int64_t step, const char *text);
void core_leave(struct core_fixture *f, int node, enum wire_leave_why why, int64_t code);
void core_heartbeat(struct core_fixture *f, int node);
void core_save_now(struct core_fixture *f, const char *id);
/* A commit of `step` by an operator's save of all (replicated: node 0 writes). */
void core_commit_at(struct core_fixture *f, int64_t step);

/* The actions as text. */
const char *core_text(struct core_fixture *f);    /* all, in order */
const char *core_events(struct core_fixture *f);  /* the published events only, without their seq */
const char *core_answers(struct core_fixture *f); /* what was sent to nodes only */
const struct wire_msg *core_sent(const struct core_fixture *f, uint64_t route, enum wire_type type);
const struct wire_event *core_event(const struct core_fixture *f, enum wire_event_kind kind);
/* Ended checkpoints: how the rows stand. */
const struct record_checkpoint *core_checkpoint(const struct core_fixture *f, uint64_t round);
bool core_counts(const struct core_fixture *f, const struct record_checkpoint *row);
const struct record *core_row(const struct core_fixture *f, enum record_kind kind);
size_t core_count_rows(const struct core_fixture *f, enum record_kind kind);

struct job *core_job(struct core_fixture *f);

#define assert_core(f, expected) assert_string_equal(core_text(f), expected)
#define assert_events(f, expected) assert_string_equal(core_events(f), expected)
#define assert_answers(f, expected) assert_string_equal(core_answers(f), expected)

#endif
