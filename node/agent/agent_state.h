/* agent_state - what agent's files share. Nobody else includes it. */
#ifndef NODE_AGENT_STATE_H
#define NODE_AGENT_STATE_H

#include "node/agent/agent.h"
#include "node/agent/agent_tell.h"
#include "node/agent/behind.h"
#include "node/agent/writer.h"
#include "node/link.h"
#include "node/notice/watch.h"

#include <pthread.h>

#define AGENT_POSTS_MAX 64
#define AGENT_ROUNDS_MAX 16  /* rounds whose directory this node opened: the last ones */
#define AGENT_STUCK_MS 60000 /* the agent thread did not come round for so long: a FAULT */
#define AGENT_POLL_MS 1000   /* the longest sleep of the agent thread */
#define AGENT_CLOSE_MS (HEARTBEAT_MS + 500) /* closing waits so long for each of its threads */
#define HURRY_MS 500 /* a node that was interrupted waits so long to be let go */
#define AGENT_MARGIN_MS                                                                            \
    250                       /* ... and for all so long once the own deadline's margin is reached \
                               */
#define AGENT_LEAST_MS 50     /* ... but so long for each: one that has nothing to do ends in it */
#define AGENT_SETTLE_MS 1000  /* and so long until a metadata service was told to go ahead */
#define AGENT_DRAIN_MS 100    /* and so long, before an exit, until what was logged is said */
#define AGENT_FRAMES_PASS 256 /* frames a pass, so that posts are not starved */

struct post { /* an input for the core from another thread */
    struct post *next;
    struct member_input input; /* strings and files live in arena */
    struct arena arena;
};

struct opened_round {
    uint64_t generation, round, nonce;
};

struct agent {
    struct gate *gate;
    struct agent_options options; /* pointers in it are good only where its comment says so */
    char *broker;

    pthread_mutex_t mutex;  /* all below, unless it says otherwise */
    pthread_cond_t changed; /* view, consumed, passes, faulted */
    struct member_view view;
    bool stop;
    uint64_t undeleted; /* the checkpoint that could not be deleted since this was asked last, 0 =
                           none ... */
    struct muster_error undeleted_why;
    bool
        interrupted; /* hooks.interrupted said yes: no wait lasts until agent_fail or agent_leave */
    bool hurries;    /* it was interrupted once: leaving lasts HURRY_MS at most */
    bool faulted;    /* the view ends with E_FAULT, the core is not fed any more */
    uint64_t passes;
    uint64_t connections; /* of the link, as the core was told */
    uint64_t frames_heard;
    struct muster_error misfit; /* status != OK: the broker speaks another version */
    struct post *first_post, *last_post;
    uint64_t posted, consumed; /* counts; at most AGENT_POSTS_MAX apart */
    bool awaits_commit; /* whoever called stands still until a save of this boundary is committed */
    uint64_t saving_round; /* the training thread, or the one behind it, writes into this round's
                              directory; 0 = none */
    uint64_t told_round;   /* failures of saves up to this round were told to the user */
    bool discard_waits;    /* ... which is to be removed once it has ended */
    bool behind_left;      /* what is written behind was waited for in vain */
    bool error_heard;      /* another rank failed or is lost; a save may still be served first */
    bool over;             /* nobody feeds posts any more: who comes late tells nobody */
    uint64_t captured_round;
    struct save_order turn; /* the caller was told to save this round's step; round 0: it was not */
    struct opened_round opened[AGENT_ROUNDS_MAX];
    size_t opened_count;
    uint64_t notice_count;

    /* training thread only */
    int64_t epoch, step_in_epoch, data_position;
    const struct muster_state *given_state; /* what is saved; NULL: options.save.state */
    char *metrics, *custom;                 /* of the next save, NULL = none */
    char *saving_metrics, *saving_custom;   /* of the one that is captured */
    bool leaving;
    struct safetensors_watch
        foreground;               /* any thread: of the save that the training thread makes */
    struct interrupt interrupt;   /* of that save, and of a copy for one behind it */
    _Atomic uint64_t told_bytes;  /* any thread: how far the user's own save_fn came, as it says */
    _Atomic uint64_t told_in_all; /* the same, grows only */
    struct post *farewell;        /* CLOSE: the last word needs no memory */

    /* agent thread only */
    struct member *core;
    struct link *link; /* NULL once its thread has ended */
    struct member_actions actions;
    struct arena frame_arena;
    uint8_t *frame; /* WIRE_FRAME_MAX bytes */
    struct watch *watch;
    bool end_told;                  /* a boundary has returned the end */
    int64_t sources_boot_ms;        /* when they are asked next what they stand at */
    bool exit_wanted, exit_restart; /* the core's MEMBER_EXIT_PROCESS, done with the mutex free */
    int64_t now_boot_ms;
    uint64_t bad_frames;

    struct writer *writer;
    struct behind *behind; /* NULL: saves are not written behind */
    struct tell *tell;     /* any thread: no lock of ours is needed */
    int wake_fd;
    _Atomic int64_t save_step;
    _Atomic uint64_t broker_start; /* view's */
    _Atomic bool unheard;          /* view's */
    _Atomic int64_t commit_step;   /* the greatest of view.committed */
    _Atomic int64_t outcome_step;  /* ... and of the rounds that were aborted */
    _Atomic int hold_depth;
    pthread_t thread;
    bool thread_started;
    bool thread_left; /* it did not end in time */
};

void agent_wake(struct agent *agent);
/* For how long one who ends waits for what nobody needs any more: most_ms, and within the own
 * deadline's margin. Mutex held. */
int64_t agent_last_wait_ms(const struct agent *agent, int64_t most_ms);

/* --- agent_core.c: agent thread, mutex held --------------------------------------------------- */
void agent_feed(struct agent *agent, struct member_input *input); /* fills in time and counts */
void agent_feed_posts(struct agent *agent);
void agent_tell_saving(struct agent *agent);
void agent_feed_notices(struct agent *agent);
bool agent_feed_frames(struct agent *agent);             /* true: there may be more */
void agent_fault(struct agent *agent, const char *text); /* any thread */
void agent_log(struct agent *agent, int level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void agent_discard(struct agent *agent, uint64_t generation, uint64_t round);

/* --- agent_boundary.c: training thread -------------------------------------------------------- */
/* The record of one boundary call so far. */
struct visit {
    bool begin;
    bool ask;    /* only say whether the state is saved here; the next visit saves it */
    bool failed; /* the step that ends here failed: no other can be begun, only a round be served */
    bool leaving; /* CLOSE was fed: it is an arrival */
    bool unsaved; /* set by agent_turn_ended: it leaves after its own save of this step failed */
    bool arrived; /* for this mode and round */
    enum view_mode mode;
    uint64_t round;
    uint64_t save_round; /* whose save step this is; 0 = none */
    void *call_arg;
    struct agent_patience patience;
    int64_t hurry_until_ms; /* leaving, and deaf: CLOCK_MONOTONIC */
};
/* Stays at the boundary until the view lets it go. Mutex free. */
enum muster_status agent_stay(struct agent *agent, struct visit *visit, struct muster_error *err);

/* --- agent_capture.c: training thread, mutex held --------------------------------------------- */
/* The state at S: saved, or taken and written behind. */
enum muster_status agent_capture(struct agent *agent, const struct visit *visit,
                                 struct muster_error *err);
/* The caller's turn: it saves from here on, in the round's time for a save, until its next
 * boundary. */
enum muster_status agent_turn(struct agent *agent, struct muster_error *err);
/* The turn of a rank that writes nothing: it stands at S, and the others write. */
void agent_turn_beside(struct agent *agent);
/* A boundary was called. A turn whose step this visit does not save is over, and told as a failed
 * save. */
void agent_turn_ended(struct agent *agent, struct visit *visit);
/* Breaks off a save that is of no use any more, and waits for its end. The wait is bounded: a
 * save_fn cannot be broken off, nor a disk that hangs. */
void agent_end_behind(struct agent *agent);
void agent_behind_done(const struct behind_result *result,
                       void *arg); /* behind's thread, mutex free */

/* --- agent_keep.c: agent thread, mutex held --------------------------------------------------- */
void agent_delete(struct agent *agent, const struct member_action *action);
/* The next save's facts become those of the save that is captured now; and into its SAVED. One save
 * is in flight at a time. Training thread; into also behind's. */
uint64_t
agent_saving_bytes(struct agent *agent); /* of the round that saving_round names; mutex held */
void agent_facts_take(struct agent *agent);
void agent_facts_into(struct agent *agent, struct post *post);

/* --- agent_post.c: any thread, mutex held ----------------------------------------------------- */
struct post *post_new(enum member_input_kind kind);
/* Takes the post (NULL: no memory). */
enum muster_status post_put(struct agent *agent, struct post *post, struct muster_error *err);
void post_free(struct post *post);
typedef struct post *post_make_fn(struct agent *agent, const void *arg); /* NULL: no memory */
/* An input that the core waits for: made and put again until there is room, and for two seconds
 * while there is no memory. False: lost, or there is a fault. Not the agent's thread. */
bool post_put_patiently(struct agent *agent, post_make_fn *make, const void *arg);
#define NO_MEMORY_TO_TELL "there was no memory to tell the node's thread what it waits for"
void agent_writer_done(const struct writer_result *result, void *arg); /* writer's thread */

/* Waits for a change, at most a second and at most limit_ms. E_FAULT: the agent thread does not
 * come round. E_INTERRUPTED. */
enum muster_status agent_wait(struct agent *agent, struct agent_patience *patience,
                              int64_t limit_ms, struct muster_error *err);
/* Waits until all that was posted so far was fed. */
enum muster_status agent_wait_fed(struct agent *agent, struct muster_error *err);

#endif
