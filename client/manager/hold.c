/* hold - see hold.h. */
#include "client/manager/hold.h"

#include "client/query/query_link.h"
#include "node/thread.h"
#include "schema/error.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#define PROLONG_WAIT_MS \
    2000 /* for the answer of a prolonging, and of the end: the lease falls without it */
/* Without a thread to renew the lease, the lease is this many times longer: nobody can renew it. */
#define LEASE_ALONE_FACTOR 10

struct hold {
    struct query_link *link; /* the thread's while it runs */
    char job[JOB_NAME_MAX + 1];
    char id[NOTICE_ID_MAX + 1];
    uint64_t checkpoint;
    int64_t lease_ms;
    pthread_t thread;
    bool started;
    pthread_mutex_t mutex; /* the rest */
    pthread_cond_t changed;
    bool stop;
};

static enum muster_status hold_pin(struct hold *hold, int64_t lease_ms, struct muster_error *err)
{
    struct wire_msg order = {
        .type = WIRE_PIN,
        .up.job = hold->job,
        .u.pin = {.checkpoint = hold->checkpoint, .id = hold->id, .lease_ms = lease_ms}};
    uint64_t value;

    return query_link_order(hold->link, &order, &value, err);
}

static void hold_unpin(struct hold *hold)
{
    struct wire_msg order = {.type = WIRE_UNPIN,
                             .up.job = hold->job,
                             .u.unpin = {.checkpoint = hold->checkpoint, .id = hold->id}};
    uint64_t value;

    (void)query_link_order(hold->link, &order, &value, NULL); /* else the lease falls */
}

/* False: the thread is to stop. */
static bool hold_pause_ms(struct hold *hold, int64_t ms)
{
    struct timespec until = thread_time_after(ms);
    bool stop;

    pthread_mutex_lock(&hold->mutex);
    while (!hold->stop && pthread_cond_timedwait(&hold->changed, &hold->mutex, &until) == 0)
        continue;
    stop = hold->stop;
    pthread_mutex_unlock(&hold->mutex);
    return !stop;
}

/* While a broker is away or starts again, a lease may run out, and then has a few seconds left: so
 * the broker is asked again soon. */
static void *hold_prolong(void *arg)
{
    struct hold *hold = arg;
    int64_t due_ms = hold->lease_ms / 3;

    while (hold_pause_ms(hold, due_ms)) {
        struct muster_error why = {.status = MUSTER_OK};
        enum muster_status status = hold_pin(hold, hold->lease_ms, &why);

        if (status == MUSTER_E_NOT_FOUND)
            break; /* deleted nevertheless: whoever reads it finds out */
        due_ms = status == MUSTER_OK ? hold->lease_ms / 3 : hold->lease_ms / 30;
    }
    return NULL;
}

static void hold_init_sync(struct hold *hold)
{
    pthread_condattr_t attributes;

    pthread_mutex_init(&hold->mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&hold->changed, &attributes);
    pthread_condattr_destroy(&attributes);
}

static struct hold *hold_new(const struct hold_wish *wish)
{
    struct hold *hold = calloc(1, sizeof *hold);
    uint64_t number = 0;

    if (hold == NULL)
        return NULL;
    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
        number = (uint64_t)(uintptr_t)hold;
    snprintf(hold->id, sizeof hold->id, "%.30s-%016" PRIx64, wish->who, number);
    snprintf(hold->job, sizeof hold->job, "%s", wish->job);
    hold->checkpoint = wish->checkpoint;
    hold->lease_ms = wish->lease_ms;
    hold_init_sync(hold);
    return hold;
}

static void hold_free(struct hold *hold)
{
    query_link_close(&hold->link);
    pthread_cond_destroy(&hold->changed);
    pthread_mutex_destroy(&hold->mutex);
    free(hold);
}

enum muster_status hold_begin(const struct hold_wish *wish, struct hold **ret_hold,
                              struct muster_error *err)
{
    struct hold *hold = hold_new(wish);
    enum muster_status status;

    if (hold == NULL)
        return error_set(err, MUSTER_E_NOMEM, "no memory to hold a checkpoint; free some");
    status = query_link_open(wish->broker, wish->timeout_ms, &hold->link, err);
    if (status == MUSTER_OK) {
        query_link_set_over(hold->link, wish->over, wish->over_arg);
        status = hold_pin(hold, wish->lease_ms, err);
    }
    if (status != MUSTER_OK) {
        hold_free(hold);
        return status;
    }
    query_link_set_over(hold->link, NULL,
                        NULL); /* the thread that prolongs the lease is not broken off */
    query_link_set_timeout(hold->link,
                           wish->timeout_ms < PROLONG_WAIT_MS ? wish->timeout_ms : PROLONG_WAIT_MS);
    hold->started = thread_start(&hold->thread, hold_prolong, hold) == 0;
    if (!hold->started)
        (void)hold_pin(hold, LEASE_ALONE_FACTOR * wish->lease_ms, NULL);
    *ret_hold = hold;
    return MUSTER_OK;
}

void hold_end(struct hold **hold)
{
    struct hold *h = hold != NULL ? *hold : NULL;

    if (h == NULL)
        return;
    *hold = NULL;
    pthread_mutex_lock(&h->mutex);
    h->stop = true;
    pthread_cond_signal(&h->changed);
    pthread_mutex_unlock(&h->mutex);
    if (h->started)
        pthread_join(h->thread, NULL); /* PROLONG_WAIT_MS at most */
    hold_unpin(h);
    hold_free(h);
}
