/* coordinator_stage - a coordinator, and a broker of this program that answers it as each test
 * wants. Owns: the one of them that there is at a time. */
#ifndef TESTS_PROC_COORDINATOR_STAGE_H
#define TESTS_PROC_COORDINATOR_STAGE_H

#include "schema/wire/wire.h"

#include <muster/muster.h>

#include <stdatomic.h>

#define STAGE_PATIENCE_S 60
#define STAGE_QUEUE 7
#define STAGE_BROKER_MS 3000 /* beats come each second, on a busy machine later */
#define STAGE_RESULT_BYTES 5000

extern struct coordinator_stage {
    muster_coordinator_t *coordinator;
    struct muster_error err; /* of the last call */
    /* the broker's, which answers on a thread of its own */
    atomic_bool full;          /* it can write nothing */
    atomic_bool unreadable;    /* it can read neither pages nor results */
    atomic_uint bad_result;    /* of this task, alone */
    atomic_uint done;          /* so many tasks have ended well, with long results */
    atomic_bool failed;        /* task 1 has ... */
    atomic_bool raised;        /* ... and was raised: the others were cancelled */
    atomic_bool server_lost;   /* beats tell so */
    atomic_bool busy;          /* its queue is full */
    atomic_bool silent;        /* it answers nothing, ... */
    atomic_uint raised_status; /* of the error; 0 = MUSTER_E_TASK */
    atomic_uint no_answer;     /* ... or not to this type */
    atomic_uint raises;        /* how often it was asked to raise */
    atomic_uint resource; /* the number of the value that it was last asked to put on record, ... */
    atomic_bool other_made;   /* ... which another call made */
    atomic_uint queue, start; /* of its present database, ... */
    atomic_uint taken;        /* ... which has so many tasks when it is opened */
    atomic_uint beats;
} stage;

/* For cmocka, of each test: all answers are good, and a hang ends by SIGALRM. */
int stage_begin(void **state);
int stage_end(void **state);

enum muster_status stage_open(int64_t connect_ms, int64_t broker_ms);
/* Closes it first; it must open. */
void stage_open_again(int64_t connect_ms, int64_t broker_ms);
/* A broker that has taken so many tasks comes in its place; it does not answer to no_answer. */
void stage_broker_is_another(unsigned taken, enum wire_type no_answer);

/* Of function "fail"; must be taken. Returned owned. */
muster_remote_value_t *stage_schedule(void);
enum muster_status stage_join(int64_t timeout_ms);
/* That stage.err's text has this in it. */
void assert_says(const char *text);

#endif
