/* interrupt - asks a program whether it has to end (Ctrl-C), while its thread reads or writes for
 * long. Never: asks on another thread than the one that calls, or more often than INTERRUPT_MS: the
 * answer may cost a wait for the host's own lock. */
#ifndef NODE_SHARD_INTERRUPT_H
#define NODE_SHARD_INTERRUPT_H

#include <stdbool.h>
#include <stdint.h>

#define INTERRUPT_MS 90 /* between two questions */

struct interrupt {          /* of one read or write: said false, asked_ms 0 */
    bool (*ask)(void *arg); /* NULL: nobody is asked */
    void *arg;
    int64_t asked_ms; /* CLOCK_MONOTONIC; 0: not yet */
    bool said;        /* the answer was yes: nobody is asked again */
};

/* true: break off. NULL-safe. */
bool interrupt_look(struct interrupt *interrupt);
/* The same at a given time. */
bool interrupt_look_at(struct interrupt *interrupt, int64_t now_ms);
/* As the `went` of a struct fs_watcher, whose arg it is. */
bool interrupt_went(uint64_t bytes, void *interrupt);

#endif
