/* member_fixture - a node's core on a table: virtual time, a broker that is one line of C a frame,
 * a gate that is two numbers, and the actions of a step as text.
 *
 * member_feed() clears the actions and feeds one input; a CLOSE_GATE is answered at once, as the
 * driver does, and the actions of that step are added. Texts of actions, joined by "; ":
 *   SEND    HELLO  REPORT #3 r1 5/4  NOOP #3  HEARTBEAT ...
 *   gate    close  view wait  view step_to 5  view capture 5  view open  view end E_PEER
 *   others  subscribe ipc:///e  on_error rank 1  manifest r1 S5 4 bytes  discard r1  exit restart
 *           log */
#ifndef TESTS_SUPPORT_MEMBER_FIXTURE_H
#define TESTS_SUPPORT_MEMBER_FIXTURE_H

#include "node/core/member_state.h"

#define MEMBER_START_MS 1000000
#define MEMBER_INCARNATION 77

struct member_fixture {
    struct member *m;
    struct member_actions out;
    int64_t now;
    int64_t begun;
    int64_t done;
    bool in_hold;
    bool gate_closed;
    bool was_open;               /* the training thread has been let go at least once */
    int64_t fed_begun, fed_done; /* of the input before */
    bool fed_in_hold;
    /* the broker */
    uint64_t start_id;
    uint64_t epoch;
    uint64_t generation;
    uint64_t seq;          /* of the last event told */
    uint64_t last_request; /* taken */
    uint64_t awaited;      /* the round that its answers to heartbeats name */
    uint64_t rank;
    struct wire_member members[3]; /* ranks 0, 1, 2; number `rank` is this node */
    struct {                       /* what each MEMBER_VIEW of the actions showed */
        enum view_mode mode;
        int64_t step;
        enum muster_status status;
        bool restart;
    } views[256];
    size_t views_count;
    int said_level; /* of the last line for the log */
    char said[1024];
    char text[65536];
};

/* Created, nothing fed. Rank `rank` of a world of 3. */
void member_fixture_open(struct member_fixture *f, uint64_t rank, enum wire_layout layout);
/* Joined, restored and started: VIEW_OPEN, requests answered, no actions kept. */
void member_fixture_running(struct member_fixture *f, uint64_t rank, enum wire_layout layout);
void member_fixture_close(struct member_fixture *f);

/* Of a test of cmocka: *state is such a fixture, rank 1 of a replicated job that runs. */
int member_set_up(void **state);
int member_tear_down(void **state);
void member_anew(struct member_fixture *f); /* it is once more */

void member_feed(struct member_fixture *f, struct member_input input);
void member_tick_at(struct member_fixture *f, int64_t now);
/* Time passes in the core's own wakeups; ALIVE answers are given if `broker`. Actions are kept. */
void member_pass(struct member_fixture *f, int64_t ms, bool broker);

/* Frames of the broker. */
struct wire_msg member_down(const struct member_fixture *f, enum wire_type type);
void member_frame(struct member_fixture *f, struct wire_msg message);
void member_welcome(struct member_fixture *f, bool snapshot);
struct wire_snapshot member_snapshot_made(const struct member_fixture *f);
void member_snapshot(struct member_fixture *f, struct wire_snapshot snapshot);
struct wire_event member_event(const struct member_fixture *f, enum wire_event_kind kind);
void member_tell(struct member_fixture *f, struct wire_event event); /* with the next seq */
void member_ack(struct member_fixture *f, uint64_t request, unsigned code);
void member_ack_all(struct member_fixture *f);
void member_alive(struct member_fixture *f);

/* Events in one line. Members are all three ranks; the lowest bit of writers is rank 0. */
void member_freeze(struct member_fixture *f, uint64_t round, enum wire_cause cause,
                   bool abort_mode);
void member_decision(struct member_fixture *f, uint64_t round, enum wire_cause cause, int64_t step,
                     unsigned writers);
void member_commit(struct member_fixture *f, uint64_t round, enum wire_cause cause, int64_t step,
                   bool manifest);
void member_abort(struct member_fixture *f, uint64_t round, bool retry);
void member_peer_error(struct member_fixture *f, int64_t rank, bool follows);
/* A round follows: that one, or 0: one that is not open yet. */
void member_peer_error_before(struct member_fixture *f, int64_t rank, uint64_t round);

/* Round 1 at step 5, and this node, its writer, has saved. */
void member_capture(struct member_fixture *f, enum wire_cause cause);

/* What the training thread does. */
void member_arrive(struct member_fixture *f);              /* begun == done at a closed boundary */
void member_stand(struct member_fixture *f, int64_t step); /* the gate's counts, nothing is fed */
void member_in_step(struct member_fixture *f, int64_t step); /* begun = step, done = step - 1 */
void member_saved(struct member_fixture *f, uint64_t round, size_t files);
void member_save_failed(struct member_fixture *f, uint64_t round, int64_t code);
void member_step_failed(struct member_fixture *f);
void member_policy(struct member_fixture *f);
void member_notice(struct member_fixture *f, const char *id, int64_t left_ms);
void member_close(struct member_fixture *f, enum wire_leave_why why);

const char *member_text_of(struct member_fixture *f);
const struct wire_msg *member_sent(const struct member_fixture *f, enum wire_type type);
const struct member_action *member_did(const struct member_fixture *f,
                                       enum member_action_kind kind);
size_t member_sent_count(const struct member_fixture *f, enum wire_type type);
const struct member_view *member_seen(const struct member_fixture *f);

#define assert_member(f, expected) assert_string_equal(member_text_of(f), expected)

#endif
