/* story - a preemption from the first HELLO to the next generation, told by broker/core and broker/store
 * while calls fail under them: two ranks, `sharded`, one notice, one checkpoint.
 * Owns: the driver that stands for broker/loop (write, then tell; keep and retry what had no room; end
 * the process on everything else) and for nodes that repeat until they are answered; and the ledger of
 * all that was told, which no later life may have forgotten.
 * Never: a clock, a socket, a random number; a failure of a fault's choosing is never its own. */
#ifndef TESTS_FAULTS_STORY_H
#define TESTS_FAULTS_STORY_H

#include "broker/store.h"
#include "tests/support/core_fixture.h"

#define STORY_NODES 2
#define STORY_EVENTS_MAX 64
#define STORY_LIVES_MAX 4 /* of a broker; one fault costs at most one */

struct story;

struct story_hooks {
    /* The process has ended without closing anything: what is on the disk stays. Called with the store
     * still open; close it and make the files ready for the next process. */
    void (*killed)(struct story *story);
    /* Is the machine still there? A power cut is noticed by nobody, least of all by a COMMIT that had
     * been synced before it. */
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

struct story {
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

/* `path` and `hooks` are borrowed. */
void story_begin(struct story *story, const char *path, const struct story_hooks *hooks, void *arg);
/* From there to the end, through as many lives as it takes. False: see wrong. */
bool story_tell(struct story *story);
void story_end(struct story *story);

/* --- story_ledger.c --- */
void story_wrong(struct story *story, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The batch in story->f.out has been sent. */
void story_note(struct story *story);
/* Whatever failed before, the next commit will be synced. */
void story_verify_synced(struct story *story);
/* Compares the open database with the ledger; fills wrong. */
void story_verify(struct story *story);

#endif
