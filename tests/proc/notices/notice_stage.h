/* notice_stage - notice sources as people see them: a broker, nodes that listen to metadata
 * services, the tool's answers. Each trap is a job of one rank; its node listens to all services of
 * the stage at once, at the real pace. All traps are played at the same time by notice_stage_play;
 * what became of each service is then looked at by a test of its own. Every wait is bounded. */
#ifndef TESTS_PROC_NOTICE_STAGE_H
#define TESTS_PROC_NOTICE_STAGE_H

#include "tests/support/notice_services.h"

#include <jansson.h>
#include <muster/client.h>
#include <muster/node.h>
#include <sys/types.h>

enum { CLOUD_GCE, CLOUD_EC2, CLOUD_AZURE, CLOUD_ALIBABA, CLOUD_TENCENT, CLOUD_COUNT };
#define CLOUD(index) (1U << (index))
#define CLOUDS_ALL (CLOUD(CLOUD_COUNT) - 1)
#define STAGE_TRAPS_MAX 40
#define STAGE_END_IN_S 400 /* an announced end: far enough for a slow machine */

enum stage_retry { RETRY_SOON, RETRY_BACKOFF, RETRY_RARELY };

typedef void stage_act(struct notice_fixture *f);

struct stage_trap {
    const char *name;
    unsigned clouds;   /* for which of them it can be */
    stage_act *before; /* what the service does, before anybody asks */
    /* What `muster nodes` is to say then. */
    enum source_state state;
    const char *text; /* in the source's text */
    enum stage_retry retry;
    bool or_degraded; /* where a token that comes too late (a loaded host) leads to other words, and
                         soon again */
    /* What is announced next, if anything: NULL = no notice may come. */
    stage_act *announce;
    stage_act *announce_again;           /* when the first one was told; NULL = nothing */
    const char *kind, *notice_state;     /* of the notice, NULL = any */
    int64_t records;                     /* of that service; 0 = 1 */
    int64_t left_least_ms, left_most_ms; /* as told last; timed services only */
};

/* One service of one trap. */
struct stage_place {
    const struct stage_trap *trap;
    int cloud;
    struct notice_fixture f; /* its service and server */
    json_t *source;          /* what `muster nodes --json` said at last; NULL = nothing */
    json_t *notice;          /* its row with the least time; NULL = none. "rows": how many */
    bool journaled;          /* `muster events --json` tells of it */
    bool announced;
    size_t hits_again; /* when announce_again was played */
};

struct stage_job {
    const struct stage_trap *trap;
    char name[64];
    struct stage_place places[CLOUD_COUNT];
    muster_state_t *state;
    int64_t weight;
    muster_node_t *node;
};

struct notice_stage {
    char directory[64];
    pid_t broker;
    muster_client_t *client;
    struct stage_job jobs[STAGE_TRAPS_MAX];
    size_t job_count;
};

/* Plays all of them. Fails only where no broker or node can be had. */
void notice_stage_play(struct notice_stage *stage, const struct stage_trap *traps, size_t count);
void notice_stage_end(struct notice_stage *stage);

/* What is not as the trap says, with what was seen; NULL = all is. Good until the next call. */
const char *stage_source_problem(const struct stage_place *place);
const char *stage_notice_problem(const struct stage_place *place);

#endif
