/* signal - see signal.h.
 * Two tables of atomics that a handler may read at any time: `signals`, by number, and `watches`.
 * A watch's slot is taken and given back under table_mutex; a handler that runs meanwhile sees it
 * either as taken or as free. */
#include "node/notice/signal.h"

#include "node/clock.h"
#include "schema/error.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define INSIDE_MAX 16 /* threads in the handler of one signal at once, beyond sense */
#define RECORD_MS 100 /* after it a thread that stands in record is not waited for any more */
#define CHAIN_MAX 8   /* handlers of the host that ours was put over */
#define NESTED_MAX 8  /* calls of ours from the lowest handler of the chain */

struct signal_watch {
    _Atomic int wake_fd_1; /* a descriptor of our own + 1; 0: the slot is free */
    bool taken;
    bool watched[SIGNAL_NUMBER_MAX + 1];
    int put_back; /* the handler of this signal is ours again, which is not told yet; 0: none */
    _Atomic uint64_t watched_bits;
    _Atomic uint64_t seen_bits; /* came, for this watch, since the last signal_take */
    int64_t
        told_boot_ms[SIGNAL_NUMBER_MAX + 1]; /* signal_take's: the first of the burst told last */
};

/* A thread that runs our handler: finds a chain that is a ring. A handler that we chain to may
 * leave by siglongjmp, and then the slot stays: what is called from within it has a deeper frame
 * than it, what comes later mostly not. */
struct inside {
    _Atomic long thread; /* 0 = free */
    uintptr_t frame;     /* these two: that thread's */
    int depth;
};

struct signal_entry {
    unsigned watch_count;
    bool installed; /* our handler is the current one, or is chained to by a later one */
    /* The handlers that ours was set over, oldest first. A handler that chains to ours calls the
     * one below it */
    struct sigaction chain[CHAIN_MAX];
    _Atomic int chain_count;       /* an entry is complete before it is counted */
    _Atomic int64_t first_boot_ms; /* of the last burst; 0: has not come */
    _Atomic int first_pid;
    struct inside inside[INSIDE_MAX];
};

static pthread_mutex_t table_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct signal_watch watches[SIGNAL_WATCHES_MAX];
static struct signal_entry signals[SIGNAL_NUMBER_MAX + 1];
static bool fork_known; /* under table_mutex: signal_start_again is called in forked children */
static _Atomic int owner_pid; /* 0: nobody of this process watches yet */
static _Atomic int recording; /* handlers that may be about to write to a watch's descriptor */

static uint64_t signal_bit_of(int signo)
{
    return UINT64_C(1) << (signo - 1);
}

static void signal_wake(int fd)
{
    const uint64_t one = 1;
    ssize_t written = write(fd, &one, sizeof one); /* full: it is readable already */

    (void)written;
}

static bool signal_tell_all(int signo, bool to_all)
{
    bool told = false;

    for (size_t i = 0; i < SIGNAL_WATCHES_MAX; i++) {
        struct signal_watch *watch = &watches[i];
        int fd = atomic_load(&watch->wake_fd_1) - 1;

        if (fd < 0 || (!to_all && (atomic_load(&watch->watched_bits) & signal_bit_of(signo)) == 0))
            continue;
        atomic_fetch_or(&watch->seen_bits, signal_bit_of(signo));
        signal_wake(fd);
        told = true;
    }
    return told;
}

/* Async-signal-safe. to_all: also to watches that did not ask for this signal. False: no watch of
 * this process was told. All signals are blocked meanwhile: no handler forks in the middle of it,
 * or leaves it by siglongjmp. */
static bool signal_record(int signo, int pid, bool to_all)
{
    struct signal_entry *entry = &signals[signo];
    int64_t first_ms, now_ms;
    sigset_t all, before;
    bool told = false;

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    if (getpid() == atomic_load(&owner_pid)) { /* else the watches are the parent's */
        atomic_fetch_add(&recording, 1);
        now_ms = clock_ms(CLOCK_BOOTTIME);
        first_ms = atomic_load(&entry->first_boot_ms);
        if (signal_begins_burst(first_ms, now_ms) &&
            atomic_compare_exchange_strong(&entry->first_boot_ms, &first_ms, now_ms))
            atomic_store(&entry->first_pid, pid);
        told = signal_tell_all(signo, to_all);
        atomic_fetch_sub(&recording, 1);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return told;
}

static void signal_take_default_action(int signo)
{
    struct sigaction action = {.sa_handler = SIG_DFL};

    sigemptyset(&action.sa_mask);
    sigaction(signo, &action, NULL);
    raise(signo); /* blocked while we run: it is delivered when we return */
}

static void signal_chain(const struct sigaction *old, int signo, siginfo_t *info, void *context,
                         bool told)
{
    if (old->sa_flags & SA_SIGINFO)
        old->sa_sigaction(signo, info, context);
    else if (old->sa_handler == SIG_DFL) {
        if (!told) /* no node is there that would leave */
            signal_take_default_action(signo);
    } else if (old->sa_handler != SIG_IGN)
        old->sa_handler(signo);
}

/* This thread's slot, taken if it has none: each its own, so that threads which come and go in any
 * order leave nothing behind. NULL: all are taken; then a ring would not be found. */
static struct inside *signal_slot_of(struct signal_entry *entry, long self)
{
    for (size_t i = 0; i < INSIDE_MAX; i++)
        if (atomic_load(&entry->inside[i].thread) == self)
            return &entry->inside[i];
    for (size_t i = 0; i < INSIDE_MAX; i++) {
        long nobody = 0;

        if (atomic_compare_exchange_strong(&entry->inside[i].thread, &nobody, self)) {
            entry->inside[i].depth = 0;
            return &entry->inside[i];
        }
    }
    return NULL;
}

static void signal_slot_set(struct inside *slot, uintptr_t frame, int depth)
{
    slot->frame = frame;
    slot->depth = depth;
    if (depth == 0)
        atomic_store(&slot->thread, 0);
}

static void signal_handle(int signo, siginfo_t *info, void *context)
{
    int saved_errno = errno, depth, outer_depth = 0;
    struct signal_entry *entry = &signals[signo];
    uintptr_t frame = (uintptr_t)__builtin_frame_address(0), outer_frame = 0;
    struct inside *slot;
    int count = atomic_load(&entry->chain_count);
    bool told;

    slot = signal_slot_of(entry, syscall(SYS_gettid));
    if (slot != NULL && slot->depth > 0 && frame < slot->frame) {
        outer_depth = slot->depth;
        outer_frame = slot->frame;
    }
    depth = outer_depth + 1;
    /* called from our own chain it is still told once: a burst */
    told = signal_record(signo, info != NULL && depth == 1 ? (int)info->si_pid : 0, false);
    if (count > 0 && depth < count + NESTED_MAX) {
        if (slot != NULL)
            signal_slot_set(slot, frame, depth);
        signal_chain(&entry->chain[depth < count ? count - depth : 0], signo, info, context, told);
        if (slot != NULL)
            signal_slot_set(slot, outer_frame, outer_depth);
    }
    errno = saved_errno;
}

void signal_report(int signo)
{
    int saved_errno = errno;

    if (signo > 0 && signo <= SIGNAL_NUMBER_MAX)
        signal_record(signo, 0, true);
    errno = saved_errno;
}

static bool signal_is_ours(int signo)
{
    struct sigaction current;

    return sigaction(signo, NULL, &current) == 0 && (current.sa_flags & SA_SIGINFO) != 0 &&
           current.sa_sigaction == signal_handle;
}

static bool signal_is_same(const struct sigaction *one, const struct sigaction *other)
{
    return ((one->sa_flags ^ other->sa_flags) & SA_SIGINFO) == 0 &&
           one->sa_handler == other->sa_handler;
}

/* Counts *old in the chain, unless the host set its newest handler again. False: it is full. */
static bool signal_chain_push(struct signal_entry *entry, const struct sigaction *old)
{
    int count = entry->installed ? atomic_load(&entry->chain_count) : 0;

    if (count > 0 && signal_is_same(&entry->chain[count - 1], old))
        return true;
    if (count == CHAIN_MAX) {
        errno = EBUSY;
        return false;
    }
    entry->chain[count] = *old;
    atomic_store(&entry->chain_count, count + 1); /* a handler reads it before the entry */
    return true;
}

/* Under table_mutex. */
static bool signal_install(int signo)
{
    struct signal_entry *entry = &signals[signo];
    struct sigaction ours = {.sa_sigaction = signal_handle,
                             .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
    struct sigaction old;

    if (signal_is_ours(signo)) /* left over: restored by the host from a copy of it */
        return true;
    if (sigaction(signo, NULL, &old) != 0 || !signal_chain_push(entry, &old))
        return false;
    ours.sa_mask = old.sa_mask; /* what the chained handler was promised */
    entry->installed = true;
    return sigaction(signo, &ours, NULL) == 0;
}

/* Under table_mutex. */
static void signal_uninstall(int signo)
{
    struct signal_entry *entry = &signals[signo];
    int count = atomic_load(&entry->chain_count);

    if (!entry->installed || !signal_is_ours(signo))
        return; /* somebody chains to us: keep our part of the chain */
    sigaction(signo, &entry->chain[count - 1], NULL);
    entry->installed = count > 1; /* the handler that is back may chain to us */
    if (count > 1)
        atomic_store(&entry->chain_count, count - 1);
}

/* Nobody is in record any more who may write to what was a watch's descriptor until now. */
static bool signal_records_return(void)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    int64_t until_ms = clock_ms(CLOCK_MONOTONIC) + RECORD_MS;

    while (atomic_load(&recording) > 0 && clock_ms(CLOCK_MONOTONIC) < until_ms)
        nanosleep(&pause, NULL);
    return atomic_load(&recording) == 0;
}

/* Under table_mutex. */
static void signal_forget(struct signal_watch *watch)
{
    int fd;

    for (int signo = 1; signo <= SIGNAL_NUMBER_MAX; signo++)
        if (watch->watched[signo] && --signals[signo].watch_count == 0)
            signal_uninstall(signo);
    fd = atomic_exchange(&watch->wake_fd_1, 0) - 1;
    if (signal_records_return() &&
        fd >= 0) /* else its number must not become another's: it stays open */
        close(fd);
    memset(watch->watched, 0, sizeof watch->watched);
    watch->put_back = 0;
    watch->taken = false;
}

/* In a forked child, on its only thread: the watches are the parent's, and so are the threads that
 * were at them, and what they held. Signals are again what they were before; where somebody chains
 * to us, our part of the chain stays. The descriptors are left, as the parent's others are. */
static void signal_start_again(void)
{
    atomic_store(&owner_pid, 0);
    pthread_mutex_init(&table_mutex, NULL);
    atomic_store(&recording, 0);
    for (size_t i = 0; i < SIGNAL_WATCHES_MAX; i++) {
        atomic_store(&watches[i].wake_fd_1, 0);
        memset(watches[i].watched, 0, sizeof watches[i].watched);
        watches[i].taken = false;
    }
    for (int signo = 1; signo <= SIGNAL_NUMBER_MAX; signo++) {
        signals[signo].watch_count = 0;
        for (size_t i = 0; i < INSIDE_MAX; i++)
            atomic_store(&signals[signo].inside[i].thread, 0);
        signal_uninstall(signo);
    }
}

/* Under table_mutex. */
static enum muster_status signal_know_forks(struct muster_error *err)
{
    if (!fork_known && pthread_atfork(NULL, NULL, signal_start_again) != 0)
        return error_set(err, MUSTER_E_NOMEM, "no memory for the node; free some");
    fork_known = true;
    return MUSTER_OK;
}

static struct signal_watch *signal_free_slot(void)
{
    struct signal_watch *slot = NULL;
    bool first = true;

    for (size_t i = 0; i < SIGNAL_WATCHES_MAX; i++)
        if (watches[i].taken)
            first = false;
        else if (slot == NULL)
            slot = &watches[i];
    if (first) /* what came in the time of former nodes is over */
        for (int signo = 1; signo <= SIGNAL_NUMBER_MAX; signo++)
            atomic_store(&signals[signo].first_boot_ms, 0);
    return slot;
}

static enum muster_status signal_watch_all(struct signal_watch *watch, const int *numbers,
                                           size_t count, struct muster_error *err)
{
    for (size_t i = 0; i < count; i++) {
        int signo = numbers[i];

        if (signo < 1 || signo > SIGNAL_NUMBER_MAX || signo == SIGKILL || signo == SIGSTOP)
            return error_set(err, MUSTER_E_ARGUMENT,
                             "signal %d cannot be watched; name others in termination.signals",
                             signo);
        if (watch->watched[signo])
            continue;
        watch->watched[signo] = true;
        atomic_fetch_or(&watch->watched_bits, signal_bit_of(signo));
        if (signals[signo].watch_count++ == 0 && !signal_install(signo))
            return error_set_code(err, MUSTER_E_ARGUMENT, errno,
                                  "signal %d cannot be watched: %s; name others in "
                                  "termination.signals",
                                  signo, strerror(errno));
    }
    return MUSTER_OK;
}

/* Under table_mutex. */
static enum muster_status signal_open_slot(int wake_fd, struct signal_watch **ret_watch,
                                           struct muster_error *err)
{
    struct signal_watch *watch = signal_free_slot();
    int fd = -1;

    if (watch == NULL)
        return error_set(err, MUSTER_E_BUSY,
                         "%d nodes of this process watch signals already; close one first",
                         SIGNAL_WATCHES_MAX);
    if (wake_fd >= 0) /* else nobody is woken */
        fd = fcntl(wake_fd, F_DUPFD_CLOEXEC, 0);
    if (wake_fd >= 0 && fd < 0)
        return error_set_code(err, MUSTER_E_IO, errno,
                              "no file descriptor for the node: %s; raise the limit (ulimit -n)",
                              strerror(errno));
    watch->taken = true;
    memset(watch->told_boot_ms, 0, sizeof watch->told_boot_ms);
    atomic_store(&watch->watched_bits, 0);
    atomic_store(&watch->seen_bits, 0);
    atomic_store(&watch->wake_fd_1, fd + 1);
    *ret_watch = watch;
    return MUSTER_OK;
}

enum muster_status signal_watch(const int *numbers, size_t count, int wake_fd,
                                struct signal_watch **ret_watch, struct muster_error *err)
{
    struct signal_watch *watch = NULL;
    enum muster_status status;

    pthread_mutex_lock(&table_mutex);
    status = signal_know_forks(err);
    if (status == MUSTER_OK)
        status = signal_open_slot(wake_fd, &watch, err);
    if (status == MUSTER_OK) {
        atomic_store(&owner_pid, (int)getpid());
        status = signal_watch_all(watch, numbers, count, err);
    }
    if (status == MUSTER_OK)
        *ret_watch = watch;
    else if (watch != NULL)
        signal_forget(watch);
    pthread_mutex_unlock(&table_mutex);
    return status;
}

void signal_unwatch(struct signal_watch **watch)
{
    if (*watch == NULL)
        return;
    pthread_mutex_lock(&table_mutex);
    signal_forget(*watch);
    pthread_mutex_unlock(&table_mutex);
    *watch = NULL;
}

bool signal_take(struct signal_watch *watch, struct signal_seen *ret_seen)
{
    uint64_t seen;

    while ((seen = atomic_load(&watch->seen_bits)) != 0) {
        int signo = __builtin_ctzll(seen) + 1;
        int64_t first_ms;

        atomic_fetch_and(&watch->seen_bits,
                         ~signal_bit_of(signo)); /* first: what comes now sets it again */
        first_ms = atomic_load(&signals[signo].first_boot_ms);
        if (first_ms == watch->told_boot_ms[signo])
            continue; /* of a burst that was told */
        watch->told_boot_ms[signo] = first_ms;
        *ret_seen = (struct signal_seen){.signo = signo,
                                         .from_pid = atomic_load(&signals[signo].first_pid),
                                         .at_boot_ms = first_ms};
        return true;
    }
    return false;
}

/* A handler can be called from ours. SIG_DFL and SIG_IGN are a program's wish to have no handler */
static bool signal_can_be_chained(int signo)
{
    struct sigaction current;

    return sigaction(signo, NULL, &current) == 0 &&
           ((current.sa_flags & SA_SIGINFO) != 0 ||
            (current.sa_handler != SIG_DFL && current.sa_handler != SIG_IGN));
}

/* Under table_mutex. Each watch of such a signal is to tell of it. */
static void signal_put_back_any(void)
{
    for (int signo = 1; signo <= SIGNAL_NUMBER_MAX; signo++) {
        if (signals[signo].watch_count == 0 || signal_is_ours(signo) ||
            !signal_can_be_chained(signo) || !signal_install(signo))
            continue;
        for (size_t i = 0; i < SIGNAL_WATCHES_MAX; i++)
            if (watches[i].watched[signo])
                watches[i].put_back = signo;
    }
}

int signal_put_back(struct signal_watch *watch)
{
    int found;

    pthread_mutex_lock(&table_mutex);
    signal_put_back_any();
    found = watch->put_back;
    watch->put_back = 0;
    pthread_mutex_unlock(&table_mutex);
    return found;
}

void signal_put_all_back(void)
{
    pthread_mutex_lock(&table_mutex);
    signal_put_back_any();
    pthread_mutex_unlock(&table_mutex);
}

int signal_displaced(const struct signal_watch *watch)
{
    for (int signo = 1; signo <= SIGNAL_NUMBER_MAX; signo++)
        if (watch->watched[signo] && !signal_is_ours(signo))
            return signo;
    return 0;
}

void signal_describe(const struct signal_seen *seen, char ret_text[SIGNAL_TEXT_SIZE])
{
    const char *name = sigabbrev_np(seen->signo);
    char number[16], sender[32] = "";

    snprintf(number, sizeof number, "signal %d", seen->signo);
    if (seen->from_pid > 0)
        snprintf(sender, sizeof sender, " from pid %d", seen->from_pid);
    snprintf(ret_text, SIGNAL_TEXT_SIZE, "%s%s%s", name != NULL ? "SIG" : "",
             name != NULL ? name : number, sender);
}
