/* task_parts - a long result on its way in parts: how many may be under way, and when one is sent
 * or asked for again. Both ends that take part in it use this: the worker that sends parts, the
 * coordinator that asks for them. If one were under way at a time, each would wait for a commit of
 * its own. Too many on a slow connection hold up the beat behind them, and if they are sent again
 * while they wait in a queue they make it longer. So the time of an answer decides about both.
 * Never: sends by itself, knows a clock. */
#ifndef CLIENT_TASK_PARTS_H
#define CLIENT_TASK_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TASK_PARTS_FIRST 4      /* under way before the first answer */
#define TASK_PARTS_AHEAD 16     /* ... at most, of all results of one worker or coordinator */
#define TASK_PARTS_SLOW_MS 1000 /* an answer that took longer: half as many; half of it: twice */
#define TASK_PARTS_AGAIN_MAX_MS 10000

struct task_window { /* of one worker or coordinator; zero to begin with, and on a new connection */
    size_t parts;    /* that may be under way; 0 = TASK_PARTS_FIRST */
    int64_t took_ms; /* the last answer that was timed; 0 = none yet */
    int64_t answered_ms; /* when one that was unheard was answered; 0 = never */
    unsigned unheard,
        unheard_now; /* results that are not answered, in the last turn and so far in this */
};

struct task_parts {          /* of one result; zero to begin with */
    uint64_t have;           /* bytes that are at their place */
    uint64_t sent;           /* and up to here on their way, or asked for */
    int64_t at_ms, every_ms; /* when the first without an answer is due again */
    uint64_t timed_to; /* the answer that is awaited for its time: of a part that ends here; 0 =
                          none ... */
    bool late; /* something was sent again meanwhile: that it was lost, or that it takes so long */
    int64_t timed_ms;               /* ... and begins its way at */
    bool again;                     /* the first was sent again, and nothing has come since */
    int64_t left_ms;                /* when it left its place, unheard */
    int64_t pause_ms, paused_to_ms; /* since an answer failed, or did not come; 0 = none did */
};

/* Sends the part that begins at `offset`, or asks for it. Its bytes; 0: it could not. */
typedef uint64_t task_part_fn(void *arg, uint64_t offset);

/* Begins a turn: how many parts may be under way in it, `ahead` of the calls of task_parts_say that
 * follow. */
size_t task_parts_ahead(struct task_window *window);
/* In a turn. *ahead goes down by what is under way; *wait_ms down to when it is to be called again.
 */
void task_parts_say(struct task_parts *parts, struct task_window *window, uint64_t total,
                    size_t *ahead, int64_t now_ms, int64_t *wait_ms, task_part_fn *say, void *arg);
/* An answer: so many bytes are at their place; fewer than before, and the other end began again. */
void task_parts_have(struct task_parts *parts, struct task_window *window, uint64_t have,
                     int64_t now_ms);
/* An answer came, and was of no use: nothing of it is under way, and after a pause it is tried
 * again. */
void task_parts_failed(struct task_parts *parts, int64_t now_ms);
/* Parts that are under way will not be answered: they were another connection's. */
void task_parts_again(struct task_parts *parts);

#endif
