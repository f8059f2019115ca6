/* member - what a node does, as a pure function of (state, input, now).
 * Owns: joining, the order of events and their gaps, requests and their resending, this node's part
 * in rounds, the verdict its training thread gets.
 * Never: socket, file, clock, lock, log, thread, randomness. Time comes in; work comes out.
 *
 * The driver (node/agent/agent.c, and the simulator) feeds inputs one at a time and carries out the
 * actions in order. The gate and the training thread belong to the driver:
 *   - MEMBER_CLOSE_GATE: close it now, then feed MEMBER_GATE_CLOSED with the begun and done of the
 *     closing (an already closed gate gives its present begun, exact because only the slow path,
 *     under the driver's mutex, changes it) before any other input.
 *   - MEMBER_VIEW: the training thread's orders changed. When the mode is VIEW_OPEN the driver
 *     opens the gate. In every other mode the gate is closed (the core closed it before).
 *
 * The training thread, in its slow path, under the driver's mutex, obeys the view:
 *   VIEW_OPEN     go on.
 *   VIEW_WAIT     wait for another view.
 *   VIEW_STEP_TO  admit a step while begun < step. At begun == done == step feed MEMBER_ARRIVED
 *                 once a round and wait for another view. (begun > step never happens here.)
 *   VIEW_CAPTURE  begun == done == step: if writer, save into the round's directory, then feed
 *                 MEMBER_SAVED or MEMBER_SAVE_FAILED, once a round; wait for another view. Or take
 *                 a snapshot, feed MEMBER_CAPTURED, and one of the two when it is written. One
 *                 round at a time: the next capture waits for the one that is being written.
 *   VIEW_END      return end_error's status from every boundary, for ever.
 * A thread that comes to a boundary with the gate closed feeds MEMBER_ARRIVED (with begun == done)
 * and then obeys. With the gate open a boundary tells nobody anything. */
#ifndef NODE_CORE_MEMBER_H
#define NODE_CORE_MEMBER_H

#include "schema/arena.h"
#include "schema/error.h"
#include "schema/wire/wire.h"

struct member;

struct member_options { /* strings are copied */
    const char *job;
    enum wire_role role;
    uint64_t rank;
    uint64_t world_size;
    uint64_t incarnation; /* random, not 0 */
    const char *host;
    uint64_t pid;
    enum wire_layout layout;
    const char *checkpoint_dir;
    const char *signer;      /* "": none; else the key by which its manifests have to be signed */
    uint64_t directory;      /* its number, see node/shard/dir.h; 0 = not known */
    int64_t started_boot_ms; /* of the process; 0 = not known, or it had a node before */
    int64_t join_timeout_ms;
    bool join_timeout_default; /* not asked for: HELLO says 0, and the broker's own counts */
    int64_t abort_timeout_ms;
    int64_t grace_period_ms; /* -1: as the notice says; 0: no step more than is needed; else at most
                                this */
    bool save_on_notice;     /* one save at once, one before the end */
    bool restore_fallback;
    int64_t step_offset; /* what the user calls a step: the count of steps done, and this */
    bool exit_allowed;   /* MEMBER_EXIT_PROCESS ends the process: it says LEAVE before */
    int restart_code;
};

enum member_input_kind {
    MEMBER_TICK = 1,    /* time passed; give one at member_wakeup_boot_ms at the latest */
    MEMBER_FRAME,       /* message: a decoded DOWN message, from DEALER or SUB */
    MEMBER_GATE_CLOSED, /* answer to MEMBER_CLOSE_GATE; begun, done of the closing */
    MEMBER_ARRIVED,     /* the training thread waits at a closed boundary; begun == done */
    MEMBER_SAVED,       /* round, files, bytes, save_ms, blocked_ms, epoch .. data_position */
    MEMBER_SAVE_FAILED, /* round, code = status, text */
    MEMBER_POLICY_SAVE, /* all ranks save at step = done; the thread closed the gate and waits */
    MEMBER_STEP_FAILED, /* code, text, step: begun was taken back already */
    MEMBER_NOTICE,      /* id, notice_kind, source, left_ms, cancellable, text */
    MEMBER_NOTICE_CANCELLED, /* id */
    MEMBER_RESTORED,         /* checkpoint, step */
    MEMBER_RESTORE_FAILED,   /* checkpoint, step, text, final */
    MEMBER_MANIFEST_WRITTEN, /* checkpoint, text = path */
    MEMBER_MANIFEST_FAILED,  /* checkpoint, text */
    MEMBER_ASK,       /* ask: a request of the program's, one at a time; answered in the view */
    MEMBER_DELETED,   /* checkpoint, code = status, text: what became of MEMBER_DELETE */
    MEMBER_CLOSE,     /* close() or the exit policy: why, code. A boundary: begun == done */
    MEMBER_CONNECTED, /* to a broker, again: it knows this node on no connection that is new */
    MEMBER_SUSPECTS, /* another rank may be gone: the view tells when all others were heard since */
    MEMBER_CAPTURED, /* round: its state at S is safe in memory; SAVED or SAVE_FAILED follows from
                        behind */
};

struct member_input {
    enum member_input_kind kind;
    int64_t now_boot_ms;
    int64_t begun; /* in every input: the gate's begun and the done count at this moment */
    int64_t done;
    bool in_hold;                   /* between muster_node_hold and release */
    const struct wire_msg *message; /* FRAME: borrowed for the call; so are strings below */
    uint64_t round;
    uint64_t checkpoint;
    int64_t step;
    int64_t code;
    const char *text;
    const char *id;
    const char *source;
    unsigned notice_kind; /* enum wire_notice_kind */
    int64_t left_ms;
    bool cancellable;
    const struct wire_file *files;
    size_t files_count;
    uint64_t bytes;
    uint64_t save_ms;
    uint64_t blocked_ms;
    uint64_t waited_ms;  /* SAVED: for the save before */
    bool held;           /* SAVED: its thread waits for the commit */
    const char *metrics; /* SAVED: JSON, NULL = none; so custom */
    const char *custom;
    const struct wire_msg *ask; /* ASK: type and body; borrowed for the call */
    int64_t epoch;
    int64_t step_in_epoch;
    int64_t data_position;
    enum wire_leave_why why;
    bool final;   /* RESTORE_FAILED: it is whole, and does not fit this program */
    bool imports; /* RESTORE_FAILED: this process imports newer ones, for the next launch */
    bool broken;  /* CLOSE: inside a step that never ended; begun was taken back nevertheless */
};

/* The outcome of a round in which this node captured its state. The newest few are remembered. */
#define MEMBER_OUTCOMES_MAX ROUNDS_ACTIVE_MAX
#define OUTCOME_TEXT_MAX 511
#define MEMBER_COMMITS_MAX                                                 \
    64 /* as the broker remembers rounds; a rank that lags by more asks it \
        */
enum member_outcome_state {
    OUTCOME_NONE,
    OUTCOME_OPEN, /* captured; the round has not ended yet */
    OUTCOME_COMMITTED,
    OUTCOME_ABORTED, /* rank, code, text: whose fault, and what */
    OUTCOME_UNKNOWN  /* the round's end was never heard, and the broker knows of none */
};
#define MEMBER_FAILED_TEXT 320
struct member_outcome {
    uint64_t round;
    int64_t step; /* S */
    enum member_outcome_state state;
    bool saved;    /* this node wrote its part, and the broker is told */
    bool unsure;   /* a snapshot did not tell of it: open, or over and not heard */
    bool in_place; /* committed, with its manifest and its final name */
    int rank;
    int code; /* an enum muster_status */
    char text[OUTCOME_TEXT_MAX + 1];
};

enum view_mode { VIEW_WAIT, VIEW_OPEN, VIEW_STEP_TO, VIEW_CAPTURE, VIEW_END };

/* The facts for other threads; a copy is handed out at each change. */
struct member_announced { /* the end of a process of this job that comes first */
    uint64_t kind;        /* enum wire_notice_kind; NOTICE_NONE: none is announced */
    int64_t rank;
    int64_t deadline_boot_ms; /* 0: not known */
    int64_t save_boot_ms; /* when the save for it is planned; 0: not known, or it is under way */
};

struct member_view {
    enum view_mode mode;
    uint64_t round;
    int64_t step;            /* S */
    uint64_t round_nonce;    /* of the decided round: names its directory, see node/shard/dir.h */
    bool writer;             /* CAPTURE: save; else nothing is to be written by this rank */
    bool termination;        /* the open round's cause */
    struct muster_error end; /* END: status and text */
    bool leave_restart; /* only with END: leave with the restart code (preempted, committed or not)
                         */
    /* joining */
    bool joined;                 /* WELCOME and its snapshot were taken */
    struct muster_error refused; /* status != OK: refused, final; open returns it */
    bool refused_retry;          /* refused holds the last "try again" refusal */
    bool resume_known;           /* restore this (checkpoint 0: begin from the start), then feed
                                    MEMBER_RESTORED or _FAILED; a fallback changes it */
    uint64_t resume_checkpoint;
    int64_t resume_step;
    char resume_path[PATH_BYTES_MAX + 1];
    bool started; /* all ranks restored */
    uint64_t generation;
    uint64_t broker_epoch;
    uint64_t broker_start; /* its start id: another number is another start, and maybe another
                              database */
    uint64_t database;     /* that database's number, and its copies' */
    bool broker_signs;     /* manifests: their files need checksums that nobody can forge */
    bool unheard;          /* no broker was heard for LOST_MS */
    bool all_live;         /* each other rank was heard since MEMBER_SUSPECTS */
    bool left;             /* after MEMBER_CLOSE: it may go. Bounded here, not by the driver */
    unsigned
        saves_failed; /* of this launch, whoever's fault; not counted: one that is tried again */
    char save_failed[MEMBER_FAILED_TEXT]; /* the last of them: its step and why */
    bool termination_seen;                /* a termination was announced (hint or event) */
    struct member_announced announced;
    struct member_outcome outcomes[MEMBER_OUTCOMES_MAX]; /* in no order */
    int64_t committed[MEMBER_COMMITS_MAX]; /* steps that were heard to be on disk, whoever captured;
                                              0 = none */
    uint64_t asks_answered; /* MEMBER_ASK: how many; of the last one the next three */
    unsigned ask_code;
    uint64_t ask_value;
    char ask_text[256]; /* code MUSTER_E_HELLO: it was taken, its answer is lost; ask again */
};

enum member_action_kind {
    MEMBER_SEND = 1,   /* message to the broker */
    MEMBER_SUBSCRIBE,  /* text = events endpoint, connect SUB there, topic = job + NUL; replaces a
                          former; at each WELCOME: another broker may name the same "tcp://0.0.0.0"
                        */
    MEMBER_CLOSE_GATE, /* see above */
    MEMBER_VIEW,       /* view */
    MEMBER_ON_ERROR,   /* error: call the user's on_error on this thread */
    MEMBER_WRITE_MANIFEST, /* generation, round (= checkpoint), step, bytes: write, rename; off this
                              thread */
    MEMBER_DISCARD_ROUND,  /* generation, round: the round was aborted by a journaled event; remove
                              own  shards (after a save still running has ended); off this thread */
    MEMBER_DELETE, /* round (= checkpoint), generation, step, text = path or "", trash: remove that
                      checkpoint's directory, then feed MEMBER_DELETED; off this thread */
    MEMBER_NOTICE_WITHDRAWN, /* text = its id: it may be given again */
    MEMBER_EXIT_PROCESS, /* policy EXIT only: the step does not return; end the process from this
                              thread. restart: with the restart code, else as a failure (1) */
    MEMBER_LOG,          /* level, text */
};

struct member_action {
    enum member_action_kind kind;
    struct wire_msg message;
    struct muster_error error;
    uint64_t generation;
    uint64_t round;
    int64_t step;
    const uint8_t *bytes; /* lives in the actions' arena */
    size_t bytes_count;
    const char *text;
    const char *trash; /* DELETE: a folder to move it to, "" = none */
    int level;         /* as muster_log_fn */
    bool restart;
};

struct member_actions { /* all that items point to lives in the arena */
    struct arena arena;
    struct member_action *items;
    size_t count;
    size_t capacity;
};
void member_actions_init(struct member_actions *actions);
void member_actions_clear(struct member_actions *actions);
void member_actions_free(struct member_actions *actions);

/* NULL when memory is out. The core starts unjoined, gate closed, mode VIEW_WAIT; the first
 * MEMBER_TICK sends HELLO. */
struct member *member_create(const struct member_options *options);
void member_destroy(struct member **member);

void member_step(struct member *member, const struct member_input *input,
                 struct member_actions *out);
/* The states of this node's notice sources, for the next heartbeats; JSON of at most
 * SOURCES_BYTES_MAX bytes. Copies. */
void member_set_sources(struct member *member, const char *json);
/* The save that this process writes, for heartbeats and for the end, which breaks off one that the
 * training thread is in: which round's, 0 = none, and how far it came. Told before the frames of a
 * pass. */
void member_set_saving(struct member *member, uint64_t round, uint64_t bytes);
/* The job, or this process, is told to end: what can wait for the next launch is not waited for. */
bool member_view_ends(const struct member_view *view);
/* Is it too late to join? Not for a notice that leaves more than GRACE_DEFAULT_MS: the broker plans
 * for it. */
bool member_ends_soon(const struct member *member, int64_t now_boot_ms, char *ret_why, size_t size);
/* MEMBER_DELETED of this checkpoint will not come: the broker's next DELETE is carried out again.
 */
void member_deletion_lost(struct member *member, uint64_t checkpoint);
/* When this process has to be gone by its own notices, but for the margin: what is still written
 * then is of no use. INT64_MAX: nothing says. */
int64_t member_give_up_boot_ms(const struct member *member);
const struct member_view *member_get_view(const struct member *member);
int64_t member_wakeup_boot_ms(const struct member *member);

/* When the broker was last heard: a frame of a past one does not count. */
int64_t member_heard_boot_ms(const struct member *member);
/* Did a state change as no table of member_moves.c allows? For tests: it never does. */
bool member_moved_wrong(const struct member *member);
/* Was there no memory for a message that the broker has to hear? It would wait for it in vain: the
 * node is of no use. */
bool member_is_starved(const struct member *member);
/* Is the checkpoint of the round that ends the job committed? */
bool member_end_is_committed(const struct member *member);
/* Its phase, for `muster nodes`; set by the core from mode and inputs. */
enum wire_phase member_phase(const struct member *member);

#endif
