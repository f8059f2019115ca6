/* member_state - what the node's core remembers, and who of its files does what.
 *   member.c         create, dispatch, the view, time
 *   member_link.c    HELLO, gaps, heartbeats
 *   member_requests.c  what is sent again until it is answered
 *   member_notice.c  own notices
 *   member_events.c  what each event of the journal does
 *   member_outcome.c what became of the rounds in which it captured
 *   member_save.c    what this node's own save came to
 *   member_round.c   this node's part in a round
 *   member_keep.c    what the program asks the broker for, and what the broker has deleted here
 *   member_manifest.c  the manifests that it writes
 *   member_error.c   errors of others, a step that does not return
 *   member_leave.c   when a node that closes may leave
 *   member_unheard.c what a person is told when no broker is heard */
#ifndef NODE_CORE_MEMBER_STATE_H
#define NODE_CORE_MEMBER_STATE_H

#include "node/core/member.h"
#include "node/core/pace.h"

#include <stdlib.h>
#include <string.h>

#define NEVER INT64_MAX
#define GAP_PATIENCE_MS 20 /* what was announced may be on its way by the faster path */
#define GAP_REPEAT_MS 200
#define PENDING_POLICY_MAX 16 /* beyond: no policy save. The rest is for notices */
#define PENDING_NOTICE_MAX \
    48 /* beyond: notices wait. The rest is for a round, its shard's FILES above all */
_Static_assert(PENDING_MAX >=
                   PENDING_NOTICE_MAX +
                       2 * (FILES_SHARD_MAX / FILES_FRAME_MAX + 1 + 2 /* AT_STEP, SAVED */) +
                       4 /* ERROR, LEAVE, MANIFEST_DONE, DELETED */,
               "a save behind and the last one find room while no broker answers");
#define MANIFEST_ASKS_MAX (ENDING_MS / RESEND_MIN_MS)
#define DELETES_MAX 16 /* at once; the broker repeats the others */
/* Saves of a policy may come faster than a disk takes manifests. */
#define MANIFESTS_WAITING_MAX 64
#define ROUND_TO_COME UINT64_MAX                     /* a round that is not open yet */
#define GIVE_UP_MS (STUCK_MS + STUCK_MS + FREEZE_MS) /* verdict: way to S + save + an answer */
uint64_t link_step_p95(const struct member *m);      /* 0 = none measured */

enum link_state { LINK_HELLO, LINK_SNAPSHOT, LINK_JOINED, LINK_OVER };

/* This node's part in the round `round`. */
enum part_state {
    PART_NONE,      /* no member, or it does not concern this node any more */
    PART_FROZEN,    /* gate closed, report on its way */
    PART_THAWED,    /* waited in vain: trains on; the decision may still come */
    PART_TO_STEP,   /* decided: walks to S */
    PART_CAPTURING, /* at S, the writer's save runs */
    PART_CAPTURED,  /* at S and saved (or nothing to save): waits for the verdict */
    PART_COMMITTED  /* termination: waits for the manifest, then leaves */
};

enum gate_use { GATE_NO_USE, GATE_FREEZE, GATE_DECISION }; /* why MEMBER_CLOSE_GATE was asked */

struct pending { /* a request without an answer */
    struct wire_msg message;
    struct arena arena;
};

struct own_notice {
    char id[NOTICE_ID_MAX + 1];
    unsigned kind;
    char source[NAME_MAX_BYTES + 1];
    int64_t deadline_boot_ms; /* 0 = unknown */
    bool cancellable;
    bool termination;
    bool unsaid;    /* neither NOTICE nor CANCEL had room: said as soon as there is */
    bool withdrawn; /* its CANCEL is to be said; it counts no more */
    char text[NOTICES_HELLO_BYTES];
    uint64_t flags;
};

struct save_told { /* what came of a save of this node's */
    uint64_t round;
    int64_t step;
    unsigned code; /* MUSTER_OK: SAVED */
};

struct member {
    struct member_options options; /* strings owned */
    struct member_view view;
    bool view_changed;

    /* of the present step */
    int64_t now;
    int64_t begun;
    int64_t done;
    bool in_hold;
    struct member_actions *out;
    bool starved;              /* see member_is_starved */
    struct member_action lost; /* written to when there is no memory for one, and never read */

    /* link */
    enum link_state link;
    uint64_t nonce;
    int64_t hello_at;
    int64_t hello_every;
    bool hello_open; /* one is on its way, or its answer */
    uint64_t start_id;
    int64_t heard_at; /* the broker, last */
    bool unheard_said;
    bool strange_said; /* something came that is for another job */
    bool silence_said;
    uint64_t broker_epoch;
    uint64_t generation;
    uint64_t applied_seq;
    uint64_t history; /* start_id of the broker whose events that counts */
    uint64_t known_seq;
    int64_t ack_at;    /* a heartbeat then, if nothing else told applied_seq before */
    int64_t gap_since; /* NEVER = none */
    int64_t gap_asked_at;
    uint64_t probe_nonce; /* 0 = not waiting for the echo */
    int64_t probe_until;
    int64_t heartbeat_at;
    int64_t suspects_since; /* NEVER = it suspects nobody */
    int64_t suspects_every; /* the next heartbeat asks about the others again, so much later */
    int64_t snapshot_until;
    int64_t join_until;

    /* requests */
    struct pending *pending[PENDING_MAX];
    size_t pending_count;
    uint64_t next_request;
    int64_t resend_at;
    int64_t resend_every;

    uint64_t ask_request;          /* of the program's question, 0 = none is open */
    uint64_t deletes[DELETES_MAX]; /* under way */
    size_t deletes_count;

    struct own_notice notices[NOTICES_NODE_MAX];
    struct member_announced told;        /* by the broker's last ALIVE */
    char sources[SOURCES_BYTES_MAX + 1]; /* what they stand at, for heartbeats */
    uint64_t saving_round, saving_bytes; /* as the driver told last, or 0 since its end was */
    size_t notices_count;

    /* round */
    uint64_t round;
    uint64_t round_generation;
    enum part_state part;
    bool moved_wrong; /* see member_moves.c */
    enum gate_use gate_use;
    enum wire_cause cause;
    int64_t step; /* S */
    uint64_t round_nonce;
    bool writer;
    bool abort_mode;
    bool reported;
    int64_t reported_begun;
    int64_t reported_done;
    int64_t report_at; /* frozen: when it is said again */
    int64_t thaw_at;
    int64_t give_up_at;
    struct save_told
        saves[ROUNDS_ACTIVE_MAX]; /* the newest, a ring: the broker may wait for so many */
    size_t saves_count;           /* told so far */
    uint64_t behind_round; /* captured, and being written while the thread trains on; 0 = none */
    int64_t behind_step;
    uint64_t written_behind; /* as the driver does it: also of a round that is over; 0 = nothing */
    uint64_t outcomes_count; /* captured so far */
    uint64_t commits_count;  /* of view.committed, so far */
    bool policy_wait;
    uint64_t policy_request;
    int64_t policy_until;

    /* manifest */
    uint64_t manifest; /* checkpoint being fetched or written, 0 = none */
    bool manifest_writing;
    int64_t manifest_late; /* who closes waits no longer for it; the next launch repairs it */
    uint64_t manifests_waiting[MANIFESTS_WAITING_MAX];
    size_t manifests_waiting_count;
    uint64_t manifest_generation;
    int64_t manifest_step;
    uint8_t *manifest_bytes;
    size_t manifest_total;
    size_t manifest_have;
    int64_t manifest_ask_at;
    unsigned manifest_asked; /* of a broker that is there, and not answered */
    int64_t manifest_until;  /* PART_COMMITTED: leave then, with or without it */

    /* the end */
    struct muster_error error; /* first error heard, status OK = none */
    int64_t error_until;       /* a round was announced to come first; NEVER = none awaited */
    uint64_t error_round;      /* that round, or ROUND_TO_COME */
    int64_t exit_at;           /* the step does not return: end the process */
    bool exit_restart;
    bool exit_asked; /* the process was to be ended; where that may not be it is not asked again */
    int64_t exit_begun;  /* the step that does not return */
    uint64_t exit_bytes; /* that its save had then */
    bool own_failure;
    bool restored;   /* open has returned, or is about to */
    bool broken_off; /* on_error was asked to free the running step */
    /* It closed inside a step, or after its own save failed: its state is that of no step, so it
     * takes part in nothing. */
    bool unfit;
    bool closing;
    enum wire_leave_why why;
    int64_t exit_code;
    uint64_t leave_request;
    int64_t stays_until; /* closing: no longer for what it still waits for; see member_leave.c */

    /* step times */
    int64_t last_begun;
    int64_t last_begun_at;
    int64_t step_from_at; /* when the running step was seen to begin with the gate open, else 0 */
    int64_t held_from_at; /* the same of a step that runs on since the gate closed; and which */
    int64_t held_begun;
    struct pace pace;
    bool stepped; /* began a step with the gate open */
    enum wire_phase phase;
    int64_t phase_since;
};

/* member.c */
struct member_action *member_add(struct member *m, enum member_action_kind kind);
char *member_text(struct member *m, const char *text);
void member_log(struct member *m, int level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void view_set(struct member *m, enum view_mode mode);
void view_open_or_end(struct member *m); /* nothing concerns this node any more: go on, or end */
void member_end(struct member *m, enum muster_status status, bool restart, int rank, int code,
                int64_t step, const char *text);
void close_gate(struct member *m, enum gate_use use);

/* member_keep.c */
void ask_put(struct member *m, const struct member_input *in);
void ask_answered(struct member *m, const struct wire_ack *ack);
void ask_lost(struct member *m); /* requests were taken whose answers nobody heard */
void delete_take(struct member *m, const struct wire_delete *told);
void delete_done(struct member *m, const struct member_input *in);

/* member_link.c */
void link_frame(struct member *m, const struct wire_msg *message);
void link_tick(struct member *m);
void link_rehello(struct member *m);
void link_connected(struct member *m);
void link_suspects(struct member *m);
struct wire_msg message_make(enum wire_type type);
void message_send(struct member *m, const struct wire_msg *message, uint64_t request);
int64_t link_wakeup(const struct member *m);

/* member_requests.c */
/* Queues a request and sends it. Returns its number, 0 if too many wait already. */
uint64_t request_put(struct member *m, const struct wire_msg *message);
void request_withdraw(struct member *m, uint64_t request);
bool request_waits(const struct member *m, uint64_t request);
void requests_pop(struct member *m, uint64_t through); /* they are answered */
void requests_send(struct member *m);                  /* all that wait */
uint64_t requests_answered(const struct member *m);
void requests_renumber(struct member *m, uint64_t last_request);

/* member_notice.c */
void notice_put(struct member *m, const struct member_input *in);
void notices_say(struct member *m); /* what is unsaid, as far as there is room */
void notices_told(struct member *m, const struct wire_alive *alive); /* by the broker */
/* A rank's end, of which an event tells before the next ALIVE. left_ms -1: at a time that is not
 * known. */
void notices_heard(struct member *m, uint64_t kind, int64_t rank, int64_t left_ms);
void notices_announce(struct member *m); /* into the view, what comes first of these and its own */
void notice_drop(struct member *m, const char *id);   /* withdrawn here: the broker is told */
bool notice_forget(struct member *m, const char *id); /* was it known? */
#define NOTICE_WORDS_MAX 400
void notice_words(const struct member *m, char *ret_text,
                  size_t size);                              /* unless no own one ends it */
bool notice_is_being_told(struct member *m, const char *id); /* it has no answer yet */
int64_t notice_own_deadline(const struct member *m);         /* earliest, NEVER = none */

/* member_unheard.c */
void unheard_tick(struct member *m);

/* member_events.c */
void events_apply(struct member *m, const struct wire_event *event);
void events_snapshot(struct member *m, const struct wire_snapshot *snapshot);
void restore_refused(struct member *m, const char *text); /* an observer's: its own end */

/* member_outcome.c */
void outcome_captured(struct member *m, uint64_t round, int64_t step);
/* This step is on disk, whoever captured it. */
void outcome_on_disk(struct member *m, int64_t step);
void outcome_saved(struct member *m, uint64_t round);
/* member_save.c: what was told of saves; the last (round 0: none was), and whether one was of that
 * round */
const struct save_told *save_last(const struct member *m);
bool save_was_told(const struct member *m, uint64_t round);
/* Of a round that has this node's shard, and whose end will be heard, sooner or later. */
bool outcome_awaited(const struct member *m);
void outcome_event(struct member *m, const struct wire_event *event);
void outcome_snapshot(struct member *m, const struct wire_snapshot *snapshot);
void outcomes_forget(struct member *m, const char *why); /* this process was refused */
/* As the user counts steps. */
static inline long long member_shown(const struct member *m, int64_t step)
{
    return (long long)step + m->options.step_offset;
}
/* "it resumes at step 384 and computes 495 steps again": what an end without a save costs now. */
struct outcome_cost {
    char text[128];
};
struct outcome_cost outcome_cost(const struct member *m);

/* member_save.c */
void round_captured(struct member *m, const struct member_input *in);
void round_saved(struct member *m, const struct member_input *in);
void round_save_failed(struct member *m, const struct member_input *in);

/* member_moves.c */
extern const struct moves link_moves, part_moves;
void link_move(struct member *m, enum link_state to);
void part_move(struct member *m, enum part_state to);

/* member_round.c */
void round_freeze(struct member *m, uint64_t round, enum wire_cause cause, bool abort_mode);
void round_decision(struct member *m, uint64_t round, uint64_t generation, enum wire_cause cause,
                    int64_t step, bool writer, uint64_t nonce);
void round_gate_closed(struct member *m);
void round_arrived(struct member *m);
void report_if_quiet(struct member *m);
void hold_or_go(struct member *m); /* captured: a termination holds the thread until the verdict */
void round_policy(struct member *m, int64_t step);
void policy_again(struct member *m); /* a start of the broker may have forgotten what it took */
void policy_over(
    struct member *m); /* nothing will come of it: the thread goes on if no round holds it */
void round_committed(struct member *m, uint64_t round, enum wire_cause cause, bool writes_manifest);
void round_aborted(struct member *m, uint64_t round, uint64_t generation, bool again,
                   bool journaled);
void part_unchanged(struct member *m, uint64_t round, enum wire_cause cause, int64_t step);
void round_over_for_me(struct member *m);
void round_is_awaited(struct member *m, uint64_t round); /* the broker says so */
/* Any other wait may let the thread go: it takes part in no round, or is captured and free. */
bool no_round_holds(const struct member *m);
void part_tick(struct member *m);
int64_t round_wakeup(const struct member *m);

/* member_manifest.c */
void manifest_begin(struct member *m, uint64_t checkpoint);
void manifest_chunk(struct member *m, const struct wire_manifest_chunk *chunk);
void manifest_done(struct member *m, const struct member_input *in, bool written);
void manifest_look(struct member *m); /* is it time to ask for more? */

/* member_error.c */
/* on_error is to be called: the step of the training thread should end. */
void error_ask(struct member *m, enum muster_status status, int rank, int code, int64_t step,
               const char *text);
void error_break_off(struct member *m, const struct muster_error *why, bool restart);
bool error_in_setup(const struct member *m);
bool error_in_save(const struct member *m);
/* With an error: a round was announced with it, and may come still. */
bool error_awaits_round(const struct member *m);
void error_exit(struct member *m);
void error_exit_look(struct member *m);
void error_heard(struct member *m, int rank, int code, int64_t step, const char *text,
                 uint64_t round_follows);

/* member_round.c */
void step_failed(struct member *m, const struct member_input *in);

/* member_leave.c */
void member_leave(struct member *m); /* if closing and not needed any more: LEAVE */
int64_t leave_wakeup(const struct member *m);
void hearing_look(struct member *m, int64_t now); /* who did not run has not listened */

#endif
