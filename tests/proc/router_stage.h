/* router_stage - a ROUTER on a thread of its own that answers each frame as it is told: a broker
 * for those who test one side of a link. */
#ifndef TESTS_PROC_ROUTER_STAGE_H
#define TESTS_PROC_ROUTER_STAGE_H

#include "schema/wire/wire.h"

#include <pthread.h>
#include <stdatomic.h>

/* On the stage's thread, which holds the stage meanwhile. False: no answer. */
typedef bool router_answer_fn(const struct wire_msg *asked, struct wire_msg *answer);

struct router_stage {
    char endpoint[256]; /* bound there; of "tcp://...:*" what was found */
    router_answer_fn *answer;
    void *context, *router;
    pthread_t thread;
    pthread_mutex_t mutex;
    atomic_bool stop;
};

void router_stage_begin(struct router_stage *stage, const char *endpoint, router_answer_fn *answer);
void router_stage_end(struct router_stage *stage);
/* What answers are made of is changed and looked at by other threads in between. */
void router_stage_hold(struct router_stage *stage);
void router_stage_release(struct router_stage *stage);

#endif
