#include "client/tasks/task_link.h"

#include "client/query/query_address.h"

#include "node/clock.h"
#include "node/link.h"
#include "node/thread.h"
#include "schema/error.h"
#include "schema/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#define TURN_FRAMES_MAX 256

/* How long the link's thread keeps away once a user's thread has led, and after which time it looks
 * again whatever it was told. */
#define REST_MS 5
#ifndef REST_MAX_MS /* a test's is endless */
#define REST_MAX_MS 1000
#endif

struct task_link {
    struct task_link_owner owner;
    struct link *link;
    int wake_fd;
    pthread_t thread;
    bool started;
    atomic_bool stop;

    pthread_mutex_t
        turns; /* who holds it has the turn, and waits on the connection: all up to `due_ms` */
    struct arena arena; /* of one frame */
    uint8_t frame[WIRE_FRAME_MAX];
    int64_t due_ms; /* the next turn by the owner's word */

    atomic_uint_fast64_t calls;  /* how often a turn was asked for ... */
    atomic_uint_fast64_t heeded; /* ... up to which one was taken */
    atomic_bool pushed;          /* somebody was told of a call, and has not come yet */
    atomic_uint_fast64_t events; /* calls, and frames that were handed over */
    atomic_bool led;             /* a user's thread waits on the connection, or is about to */
    atomic_uint_fast64_t leads;

    pthread_mutex_t rest; /* of the link's thread, while it keeps away */
    pthread_cond_t called;
    atomic_bool resting, parked; /* for a moment; until who leads goes */
    bool call;
};

int64_t task_now_ms(void)
{
    return clock_ms(CLOCK_MONOTONIC);
}

uint64_t task_incarnation(void)
{
    uint64_t number = 0;

    while (number == 0)
        if (getrandom(&number, sizeof number, 0) < 0)
            number = (uint64_t)task_now_ms() ^ (uint64_t)getpid() << 32;
    return number;
}

/* --- identity --------------------------------------------------------------------------------- */

static bool task_link_copy(char *to, size_t size, const char *from)
{
    size_t length = strlen(from);

    if (length >= size)
        return false;
    memcpy(to, from, length + 1);
    return true;
}

enum muster_status task_identity(const char *broker, const char *job,
                                 char ret_broker[BROKERS_TEXT_MAX + 1],
                                 char ret_job[JOB_NAME_MAX + 1], struct muster_error *err)
{
    if (broker == NULL)
        broker = getenv("MUSTER_BROKER");
    if (job == NULL)
        job = getenv("MUSTER_JOB");
    if (job == NULL || !wire_job_name_ok(job))
        return error_set(err, MUSTER_E_ARGUMENT,
                         "option job is \"%s\": give the job's name (letters, digits, '.', '_' and "
                         "'-', at most %d), or set MUSTER_JOB",
                         job == NULL ? "" : job, JOB_NAME_MAX);
    if (!task_link_copy(ret_job, JOB_NAME_MAX + 1, job))
        return error_set(err, MUSTER_E_ARGUMENT, "option job is too long");
    if (broker != NULL && broker[0] != '\0') {
        enum muster_status status = query_address_check(broker, err);

        if (status == MUSTER_OK) /* what was checked fits */
            task_link_copy(ret_broker, BROKERS_TEXT_MAX + 1, broker);
        return status;
    }
    if (!paths_default_endpoint((unsigned)geteuid(), getenv("XDG_RUNTIME_DIR"), ret_broker))
        return error_set(err, MUSTER_E_ARGUMENT,
                         "musterd's default address is too long; set MUSTER_BROKER");
    return MUSTER_OK;
}

/* --- repeating -------------------------------------------------------------------------------- */

bool task_again_due(struct task_again *again, int64_t now_ms, int64_t *wait_ms)
{
    bool due = now_ms >= again->at_ms;

    if (due) {
        again->every_ms = again->every_ms == 0                 ? RESEND_MIN_MS
                          : again->every_ms * 2 > HEARTBEAT_MS ? HEARTBEAT_MS
                                                               : again->every_ms * 2;
        again->at_ms = now_ms + again->every_ms;
    }
    if (again->at_ms - now_ms < *wait_ms)
        *wait_ms = again->at_ms - now_ms;
    return due;
}

void task_again_reset(struct task_again *again)
{
    *again = (struct task_again){0, 0};
}

/* --- turns ------------------------------------------------------------------------------------ */

static void task_link_receive_all(struct task_link *link)
{
    for (int i = 0; i < TURN_FRAMES_MAX; i++) { /* what is left wakes the next wait */
        struct wire_msg message;
        size_t size;
        const uint8_t *frame = link_receive(link->link, &size);

        if (frame == NULL)
            return;
        arena_reset(&link->arena);
        if (wire_decode(frame, size, &link->arena, &message, NULL) == MUSTER_OK) {
            link_heard(link->link);
            link->owner.take(link->owner.arg, &message, task_now_ms());
        }
        atomic_fetch_add(&link->events, 1); /* behind it: who saw less looks again */
    }
}

/* With the turn. */
static void task_link_turn(struct task_link *link)
{
    int64_t now_ms;

    atomic_store(&link->pushed, false); /* first: who still sees it set is among the calls */
    atomic_store(&link->heeded, atomic_load(&link->calls));
    task_link_receive_all(link);
    now_ms = task_now_ms();
    link->due_ms = now_ms + link->owner.turn(link->owner.arg, now_ms);
}

static bool task_link_is_asked(struct task_link *link)
{
    return atomic_load(&link->calls) != atomic_load(&link->heeded);
}

static bool task_link_take_turn(struct task_link *link)
{
    return pthread_mutex_trylock(&link->turns) == 0;
}

static void task_link_call_thread(struct task_link *link)
{
    pthread_mutex_lock(&link->rest);
    link->call = true;
    pthread_cond_signal(&link->called);
    pthread_mutex_unlock(&link->rest);
}

/* Whoever asked for a turn meanwhile and could not take it relies on this one. */
static void task_link_leave_turn(struct task_link *link)
{
    pthread_mutex_unlock(&link->turns);
    while (task_link_is_asked(link) && task_link_take_turn(link)) {
        task_link_turn(link);
        pthread_mutex_unlock(&link->turns);
    }
}

/* At most until then. With the turn. */
static void task_link_wait_for_frames(struct task_link *link, int64_t timeout_ms)
{
    int64_t due_ms = link->due_ms - task_now_ms();
    uint64_t count;
    ssize_t got = 0;

    if (link_wait(link->link, link->wake_fd, due_ms < timeout_ms ? due_ms : timeout_ms))
        got = read(link->wake_fd, &count, sizeof count);
    (void)got;
}

static void task_link_nudge(struct task_link *link)
{
    uint64_t one = 1;
    ssize_t written = write(link->wake_fd, &one, sizeof one);

    (void)written; /* full: it is awake already */
}

/* --- users' threads --------------------------------------------------------------------------- */

void task_link_ask(struct task_link *link)
{
    atomic_fetch_add(&link->calls, 1);
    atomic_fetch_add(&link->events, 1);
}

/* The link's thread rests, and nobody leads: it is for it. Else who has the turn sees the
 * descriptor, or sees the call when it leaves. */
void task_link_push(struct task_link *link)
{
    if (!task_link_is_asked(link) || atomic_exchange(&link->pushed, true))
        return;
    task_link_nudge(link);
    if (atomic_load(&link->resting) && !atomic_load(&link->led))
        task_link_call_thread(link);
}

void task_link_wake(struct task_link *link)
{
    task_link_ask(link);
    task_link_push(link);
}

void task_link_drive(struct task_link *link)
{
    if (!task_link_is_asked(link))
        return;
    if (!task_link_take_turn(link)) {
        task_link_push(link);
        return;
    }
    task_link_turn(link);
    task_link_leave_turn(link);
}

uint64_t task_link_seen(struct task_link *link)
{
    return atomic_load(&link->events);
}

void task_link_lead(struct task_link *link, uint64_t seen, int64_t timeout_ms)
{
    atomic_store(&link->led, true);
    atomic_fetch_add(&link->leads, 1);
    if (!task_link_take_turn(
            link)) { /* the link's thread has it and gives way, or another's that is soon done */
        task_link_ask(link);
        task_link_nudge(link);
        pthread_mutex_lock(&link->turns);
    }
    if (task_link_is_asked(link) || task_now_ms() >= link->due_ms)
        task_link_turn(link);
    if (atomic_load(&link->events) == seen) {
        task_link_wait_for_frames(link, timeout_ms);
        task_link_turn(link);
    }
    atomic_store(&link->led, false);
    task_link_leave_turn(link);
    if (atomic_load(&link->parked))
        task_link_call_thread(link);
}

/* --- the link's thread ------------------------------------------------------------------------ */

/* With `task_link_rest`. Until it is called, or that long. */
static void task_link_sleep_for(struct task_link *link, int64_t ms)
{
    struct timespec until = thread_time_after(ms);
    int code = 0;

    while (!link->call && !atomic_load(&link->stop) && code == 0)
        code = pthread_cond_timedwait(&link->called, &link->rest, &until);
}

/* Keeps away as long as users' threads come and go: with every task, maybe, so that waking this one
 * each time would cost more than it does. Ends when none came for a moment, or when a turn is asked
 * for and nobody leads. */
static void task_link_rest(struct task_link *link)
{
    pthread_mutex_lock(&link->rest);
    atomic_store(&link->resting, true);
    for (;;) {
        uint64_t leads = atomic_load(&link->leads);

        link->call = false;
        if (atomic_load(&link->stop) || (task_link_is_asked(link) && !atomic_load(&link->led)))
            break;
        task_link_sleep_for(link, REST_MS);
        if (link->call)
            continue;
        if (!atomic_load(&link->led) && leads == atomic_load(&link->leads))
            break;
        atomic_store(&link->parked, true);
        if (atomic_load(&link->led)) /* else it went, and may not have seen `parked` */
            task_link_sleep_for(link, REST_MAX_MS);
        atomic_store(&link->parked, false);
    }
    atomic_store(&link->resting, false);
    pthread_mutex_unlock(&link->rest);
}

static void *task_link_run(void *arg)
{
    struct task_link *link = arg;

    while (!atomic_load(&link->stop)) {
        if (task_link_take_turn(link)) {
            while (!atomic_load(&link->stop) && !atomic_load(&link->led)) {
                task_link_turn(link);
                task_link_wait_for_frames(link, REST_MAX_MS);
            }
            task_link_leave_turn(link);
        }
        task_link_rest(link);
    }
    return NULL;
}

bool task_link_send(struct task_link *link, struct wire_msg *message)
{
    size_t size;

    message->up = (struct wire_up){.job = link->owner.job,
                                   .role = link->owner.role,
                                   .rank = link->owner.index,
                                   .incarnation = link->owner.incarnation};
    size = wire_encode(message, link->frame, sizeof link->frame);
    return size > 0 && link_send(link->link, link->frame, size);
}

/* --- life ------------------------------------------------------------------------------------- */

enum muster_status task_link_open(const char *broker, const struct task_link_owner *owner,
                                  struct task_link **ret_link, struct muster_error *err)
{
    struct task_link *link = calloc(1, sizeof *link);
    enum muster_status status = MUSTER_OK;
    pthread_condattr_t attributes;

    if (link == NULL)
        return error_set(err, MUSTER_E_NOMEM, "no memory for a connection to the broker");
    link->owner = *owner;
    arena_init(&link->arena, (size_t)1 << 21);
    pthread_mutex_init(&link->turns, NULL);
    pthread_mutex_init(&link->rest, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&link->called, &attributes);
    pthread_condattr_destroy(&attributes);
    link->wake_fd = owner->wake_fd != NULL ? fcntl(*owner->wake_fd, F_DUPFD_CLOEXEC, 0)
                                           : eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (link->wake_fd < 0)
        status = error_set_code(err, MUSTER_E_IO, errno,
                                "no file descriptor is left: %s; raise the limit (ulimit -n)",
                                strerror(errno));
    if (status == MUSTER_OK)
        status = link_open(broker, owner->job, &link->link, err);
    if (status != MUSTER_OK) {
        task_link_close(&link);
        return status;
    }
    *ret_link = link;
    return MUSTER_OK;
}

enum muster_status task_link_start(struct task_link *link, struct muster_error *err)
{
    int code = thread_start(&link->thread, task_link_run, link);

    if (code != 0)
        return error_set_code(err, MUSTER_E_NOMEM, code, "cannot start a thread: %s",
                              strerror(code));
    link->started = true;
    return MUSTER_OK;
}

void task_link_close(struct task_link **link)
{
    struct task_link *l = *link;

    if (l == NULL)
        return;
    if (l->started) {
        atomic_store(&l->stop, true);
        task_link_wake(l);
        task_link_call_thread(l);
        pthread_join(l->thread, NULL); /* its turns do not block */
    }
    *link = NULL; /* only now: its turns use it */
    link_close(&l->link);
    if (l->wake_fd >= 0)
        close(l->wake_fd);
    pthread_mutex_destroy(&l->turns);
    pthread_mutex_destroy(&l->rest);
    pthread_cond_destroy(&l->called);
    arena_free(&l->arena);
    free(l);
}
