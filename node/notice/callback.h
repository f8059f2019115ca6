/* callback - the user's own question "is there a notice?", asked at a steady pace.
 * Owns: when to ask next; one yes is one notice, after which nobody is asked any more.
 * Never: a thread or a clock; the agent asks with no lock held. */
#ifndef NODE_NOTICE_CALLBACK_H
#define NODE_NOTICE_CALLBACK_H

#include <stdbool.h>
#include <stdint.h>

struct callback_source {
    bool (*ask)(void *arg); /* NULL = no such source */
    void *arg;
    int64_t period_ms;
    int64_t next_boot_ms; /* INT64_MAX = never again */
    bool fresh;           /* said yes, not taken yet */
};

void callback_open(struct callback_source *source, bool (*ask)(void *arg), void *arg,
                   int64_t period_ms, int64_t now_boot_ms);
/* Asks if it is time. */
void callback_poll(struct callback_source *source, int64_t now_boot_ms);
/* True once. */
bool callback_take(struct callback_source *source);

#endif
