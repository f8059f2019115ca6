#include "client/task_link.h"

#include "node/link.h"
#include "node/thread.h"
#include "schema/error.h"
#include "schema/paths.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#define TURN_FRAMES_MAX 256

struct task_link {
    struct task_link_owner owner;
    struct link *link;
    int wake_fd;
    pthread_t thread;
    bool started;
    atomic_bool stop;
    struct arena arena; /* of one frame */
    uint8_t frame[WIRE_FRAME_MAX];
};

int64_t task_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

uint64_t task_incarnation(void)
{
    uint64_t number = 0;

    while (number == 0)
        if (getrandom(&number, sizeof number, 0) < 0)
            number = (uint64_t)task_now_ms() ^ (uint64_t)getpid() << 32;
    return number;
}

/* --- identity ----------------------------------------------------------------------------------- */

static bool copy(char *to, size_t size, const char *from)
{
    size_t length = strlen(from);

    if (length >= size)
        return false;
    memcpy(to, from, length + 1);
    return true;
}

enum muster_status task_identity(const char *broker, const char *job,
                                 char ret_broker[ENDPOINT_MAX + 1], char ret_job[JOB_NAME_MAX + 1],
                                 struct muster_error *err)
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
    if (!copy(ret_job, JOB_NAME_MAX + 1, job))
        return error_set(err, MUSTER_E_ARGUMENT, "option job is too long");
    if (broker != NULL && broker[0] != '\0') {
        if (!copy(ret_broker, ENDPOINT_MAX + 1, broker))
            return error_set(err, MUSTER_E_ARGUMENT, "option broker has more than %d bytes",
                             ENDPOINT_MAX);
        return MUSTER_OK;
    }
    if (!paths_default_endpoint((unsigned)geteuid(), getenv("XDG_RUNTIME_DIR"), ret_broker))
        return error_set(err, MUSTER_E_ARGUMENT,
                         "musterd's default address is too long; set MUSTER_BROKER");
    return MUSTER_OK;
}

/* --- repeating ---------------------------------------------------------------------------------- */

bool task_again_due(struct task_again *again, int64_t now_ms, int64_t *wait_ms)
{
    bool due = now_ms >= again->at_ms;

    if (due) {
        again->every_ms = again->every_ms == 0                  ? RESEND_MIN_MS
                          : again->every_ms * 2 > RESEND_MAX_MS ? RESEND_MAX_MS
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

/* --- the thread --------------------------------------------------------------------------------- */

void task_link_wake(struct task_link *link)
{
    uint64_t one = 1;
    ssize_t written = write(link->wake_fd, &one, sizeof one);

    (void)written; /* full: it is awake already */
}

static void receive_all(struct task_link *link)
{
    for (int i = 0; i < TURN_FRAMES_MAX; i++) {
        struct wire_msg message;
        size_t size;
        const uint8_t *frame = link_receive(link->link, &size);

        if (frame == NULL)
            return;
        arena_reset(&link->arena);
        if (wire_decode(frame, size, &link->arena, &message, NULL) == MUSTER_OK)
            link->owner.take(link->owner.arg, &message, task_now_ms());
    }
    task_link_wake(link); /* there may be more */
}

static void *run(void *arg)
{
    struct task_link *link = arg;
    int64_t wait_ms = 0;

    while (!atomic_load(&link->stop)) {
        uint64_t count;
        ssize_t got;

        link_wait(link->link, link->wake_fd, wait_ms);
        got = read(link->wake_fd, &count, sizeof count);
        (void)got;
        receive_all(link);
        wait_ms = link->owner.turn(link->owner.arg, task_now_ms());
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

/* --- life --------------------------------------------------------------------------------------- */

enum muster_status task_link_open(const char *broker, const struct task_link_owner *owner,
                                  struct task_link **ret_link, struct muster_error *err)
{
    struct task_link *link = calloc(1, sizeof *link);
    enum muster_status status = MUSTER_OK;

    if (link == NULL)
        return error_set(err, MUSTER_E_NOMEM, "no memory for a connection to the broker");
    link->owner = *owner;
    arena_init(&link->arena, (size_t)1 << 21);
    link->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
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
    int code = thread_start(&link->thread, run, link);

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
        pthread_join(l->thread, NULL); /* its turns do not block */
    }
    *link = NULL; /* only now: its turns use it */
    link_close(&l->link);
    if (l->wake_fd >= 0)
        close(l->wake_fd);
    arena_free(&l->arena);
    free(l);
}
