/* story - a broker's life, told by broker/core and broker/store while calls fail under them. It has
 * three plots.
 * story_preempt: two ranks, `sharded`; a notice, one checkpoint, the next generation.
 * story_keep: the same ranks; a keep policy, two saves by an operator, and a pin that holds the
 * older one. It is deleted once the pin is gone, and a checkpoint of another job is imported.
 * story_tasks: a coordinator and a worker; a value for each worker, a long result, a loss, an
 * error that is raised, pages, a release, a queue that begins again.
 * Owns: the driver that stands for broker/loop (write, then tell; keep and retry what had no room;
 * end the process on everything else) and for nodes that repeat until they are answered; and the
 * ledger of all that was told, which no later life may have forgotten.
 * Never: a clock, a socket, a random number; a failure of a fault's choosing is never its own. */
#ifndef TESTS_FAULTS_STORY_H
#define TESTS_FAULTS_STORY_H

#include "broker/store/store.h"
#include "tests/support/core_fixture.h"

#define STORY_NODES 2
#define STORY_EVENTS_MAX 64
#define STORY_LIVES_MAX 4 /* of a broker; one fault costs at most one */
#define STORY_KEEP "latest 1"
#define STORY_TASKS 6 /* numbers from 1 on */
#define STORY_HELD_MAX 4

struct story;

struct story_plot {
    enum muster_status (*turn)(struct story *story); /* one saying, or one look */
    void (*again)(struct story *story);              /* a life of the broker begins; or NULL */
    void (*note)(struct story *story, const struct action *action); /* it was sent; or NULL */
    void (*verify)(struct story *story);             /* more than story_verify; or NULL */
    int64_t (*save_step)(const struct story *story); /* of the next round */
};
extern const struct story_plot story_preempt, story_keep, story_tasks;

struct story_hooks {
    /* The process has ended without closing anything: what is on the disk stays. Called with the
     * store still open; close it and make the files ready for the next process. */
    void (*killed)(struct story *story);
    /* Is the machine still there? A power cut is noticed by nobody, least of all by a COMMIT that
     * had been synced before it. */
    bool (*alive)(const struct story *story);
    /* The disk is mended, the memory is back: no fault from here on. */
    void (*mend)(struct story *story);
    /* While the story looks into the database itself. */
    void (*look)(struct story *story, bool begin);
};

/* What a node says; kept until it is answered. */
enum story_word {
    WORD_NONE,
    WORD_HELLO,
    WORD_BEAT,
    WORD_TICK,
    WORD_RESTORED,
    WORD_NOTICE,
    WORD_REPORT,
    WORD_AT_STEP,
    WORD_FILES,
    WORD_SAVED,
    WORD_MANIFEST_DONE,
    WORD_LEAVE,
    WORD_POLICIES,
    WORD_DELETED,
    WORD_SWEEP,
};
struct story_saying {
    enum story_word word;
    int node;
    uint64_t round;
    int64_t step;
    uint64_t request;
};

struct story_told { /* an event that somebody has heard */
    uint64_t seq;
    size_t size;
    uint8_t body[1024];
};

/* What the speakers of a plot know; without a pointer, since a next life may be another process. */
struct story_of_keep {
    bool policies_told, unpinning;
    uint64_t first, second; /* checkpoints */
    bool told_to_delete;
    unsigned waits, looks;
};
struct story_held { /* an attempt that the worker has */
    uint64_t number, attempt;
    enum wire_task_kind kind;
};
struct story_of_tasks {
    bool opened, welcomed; /* by this life */
    uint64_t queue, coordinator, worker;
    struct story_held held[STORY_HELD_MAX];
    size_t held_count;
    bool made; /* the value for each worker */
    uint64_t parts_have;
    uint64_t taken;                              /* told */
    enum wire_task_state ended[STORY_TASKS + 1]; /* told */
    bool released, left;                         /* told */
};

struct story {
    const struct story_plot *plot;
    struct core_fixture f;
    struct store *store;
    struct store_options options;
    const char *path;
    const struct story_hooks *hooks;
    void *arg;            /* of the hooks */
    const char *settings; /* SQL after each open, "" = none */
    bool tell_first;      /* a control: what is sent does not wait for its transaction */
    struct muster_error err;

    bool welcomed[STORY_NODES]; /* by this life */
    struct story_saying pending[STORY_NODES];
    bool beaten;
    bool noticed;
    unsigned generation; /* of the nodes: 0 the preempted one, 1 the resumed one */
    unsigned stage;      /* of the plot */
    bool asked;          /* in this life and stage: who asked waits now */
    struct story_of_keep keep;
    struct story_of_tasks tasks;
    bool over;
    bool mended;

    /* the ledger */
    struct story_told events[STORY_EVENTS_MAX];
    size_t events_count;
    uint64_t answered[STORY_NODES]; /* highest request number, of this generation's incarnations */
    uint64_t epoch;
    int64_t saved_step; /* of a commit that was told, -1 = none */

    unsigned lives;
    unsigned retries;  /* batches that had no room */
    unsigned exits;    /* lives that ended by a failure */
    unsigned refusals; /* starts that failed */
    char wrong[1024];  /* "" = nothing; the first that was found */
};

/* All are borrowed. */
void story_begin(struct story *story, const struct story_plot *plot, const char *path,
                 const struct story_hooks *hooks, void *arg);
/* From there to the end, through as many lives as it takes. False: see wrong. */
bool story_tell(struct story *story);
void story_end(struct story *story);
/* What was told and what nodes know, into a story that has begun in another process. */
void story_carry_over(struct story *to, const struct story *from);

/* --- for the plots --- */
/* The batch in story->f.out is written, with patience when there is no room, and only then told. */
enum muster_status story_write_and_tell(struct story *story);
/* What a read's failure means to the broker: no room is MUSTER_OK, and it is asked for again. */
enum muster_status story_read_again(struct story *story, enum muster_status status);

/* --- story_nodes.c --- */
struct story_saying story_of_node(enum story_word word, int node, uint64_t round, int64_t step);
/* What two ranks say until no round is open; WORD_NONE: nothing by themselves. */
struct story_saying story_next_of_nodes(const struct story *story);
enum muster_status story_say(struct story *story, struct story_saying saying);

/* --- story_preempt.c --- */
/* The manifest that the writer asks for, and what a node asks for that missed everything. */
enum muster_status story_read_back(struct story *story);

/* --- story_ledger.c --- */
void story_wrong(struct story *story, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The batch in story->f.out has been sent. */
void story_note(struct story *story);
/* Whatever failed before, the next commit will be synced. */
void story_verify_synced(struct story *story);
/* Compares the open database with the ledger; fills wrong. */
void story_verify(struct story *story);
/* A number that a query gives, ?1 being `parameter`, must be `least` or more. */
void story_verify_number(struct story *story, const char *what, const char *sql, uint64_t parameter,
                         int64_t least);

#endif
