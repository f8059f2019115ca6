/* Signals as notices in forked children, which have them as before the node, whether they open one
 * of their own or not; and threads that stand still where a signal is told. */
#include "node/notice/signal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define TOO_LONG_S 20 /* what hangs is killed by then */
#define LAST_FD 40    /* no descriptor of these tests is above it */

static volatile sig_atomic_t host_calls;
static struct sigaction under;
static int wake_fd;
static struct signal_watch *parents, *others; /* the watches that a child finds */

static void host_handler(int signo)
{
    (void)signo;
    host_calls++;
}

static void over_handler(int signo, siginfo_t *info, void *context)
{
    under.sa_sigaction(signo, info, context);
}

static void set_plain(int signo, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler};

    sigemptyset(&action.sa_mask);
    sigaction(signo, &action, NULL);
}

static bool handled_by(int signo, void (*handler)(int))
{
    struct sigaction action;

    return sigaction(signo, NULL, &action) == 0 && action.sa_handler == handler;
}

static int setup(void **state)
{
    (void)state;
    host_calls = 0;
    wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    set_plain(SIGTERM, SIG_DFL);
    set_plain(SIGUSR1, SIG_DFL);
    set_plain(SIGUSR2, SIG_DFL);
    alarm(TOO_LONG_S);
    return wake_fd < 0;
}

static int teardown(void **state)
{
    (void)state;
    signal_unwatch(&parents);
    signal_unwatch(&others);
    alarm(0);
    return close(wake_fd);
}

static bool readable(int fd)
{
    struct pollfd item = {.fd = fd, .events = POLLIN};

    return poll(&item, 1, 0) == 1;
}

static struct signal_watch *watch_one(int signo, int fd)
{
    struct signal_watch *watch = NULL;

    return signal_watch(&signo, 1, fd, &watch, NULL) == MUSTER_OK ? watch : NULL;
}

static struct signal_watch *watch_two(int signo, int other, int fd)
{
    struct signal_watch *watch = NULL;

    return signal_watch((const int[]){signo, other}, 2, fd, &watch, NULL) == MUSTER_OK ? watch
                                                                                       : NULL;
}

static int run_child(int (*in_child)(void))
{
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        alarm(TOO_LONG_S / 2);
        _exit(in_child());
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void must_exit_0(int (*in_child)(void))
{
    int status = run_child(in_child);

    if (WIFSIGNALED(status))
        fail_msg("the child was killed by signal %d", WTERMSIG(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void must_die(int (*in_child)(void), int signo)
{
    int status = run_child(in_child);

    if (WIFEXITED(status))
        fail_msg("the child lived, and exits with %d", WEXITSTATUS(status));
    assert_int_equal(WTERMSIG(status), signo);
}

/* --- a child without a node ------------------------------------------------------------------- */

static int finds_its_signals(void)
{
    return handled_by(SIGTERM, SIG_DFL) && handled_by(SIGUSR1, SIG_IGN) &&
                   handled_by(SIGUSR2, host_handler)
               ? 0
               : 1;
}

/* An ignored one, too: a program that the child executes would find a default action in its place.
 */
static void a_child_has_the_signals_of_the_time_before_the_node(void **state)
{
    (void)state;
    set_plain(SIGUSR1, SIG_IGN);
    set_plain(SIGUSR2, host_handler);
    parents = watch_two(SIGTERM, SIGUSR1, wake_fd);
    others = watch_two(SIGTERM, SIGUSR2, wake_fd);
    assert_true(parents != NULL && others != NULL);
    must_exit_0(finds_its_signals);
    assert_false(handled_by(SIGTERM, SIG_DFL)); /* the parent's stay */
    assert_false(handled_by(SIGUSR2, host_handler));
}

/* --- a child with a node of its own ----------------------------------------------------------- */

static int watches_and_is_told(void)
{
    int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    struct signal_watch *own = watch_two(SIGTERM, SIGUSR2, fd);
    struct signal_seen seen;

    if (own == NULL)
        return 1;
    raise(SIGTERM); /* to the node, which leaves in its own time */
    if (!readable(fd) || !signal_take(own, &seen) || seen.signo != SIGTERM ||
        seen.from_pid != getpid())
        return 2;
    raise(SIGUSR2);
    if (!signal_take(own, &seen) || seen.signo != SIGUSR2 || host_calls != 1)
        return 3;
    signal_unwatch(&own);
    return handled_by(SIGTERM, SIG_DFL) && handled_by(SIGUSR2, host_handler) ? 0 : 4;
}

static void a_child_s_node_is_told_and_its_parent_s_is_not(void **state)
{
    struct signal_seen seen;

    (void)state;
    set_plain(SIGUSR2, host_handler);
    parents = watch_two(SIGTERM, SIGUSR2, wake_fd);
    must_exit_0(watches_and_is_told);
    assert_false(readable(wake_fd));
    assert_false(signal_take(parents, &seen));
    raise(SIGTERM);
    assert_true(signal_take(parents, &seen));
    assert_int_equal(seen.signo, SIGTERM);
}

static int closes_its_own_and_is_ended(void)
{
    struct signal_watch *own = watch_one(SIGTERM, eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));

    if (own == NULL)
        return 1;
    signal_unwatch(&own);
    raise(SIGTERM);
    return 9;
}

static void a_child_that_closed_its_own_node_can_be_ended(void **state)
{
    (void)state;
    parents = watch_one(SIGTERM, wake_fd);
    must_die(closes_its_own_and_is_ended, SIGTERM);
}

static void so_can_one_where_a_host_s_handler_chains_to_ours(void **state)
{
    struct sigaction over = {.sa_sigaction = over_handler, .sa_flags = SA_SIGINFO};

    (void)state;
    parents = watch_one(SIGTERM, wake_fd);
    sigemptyset(&over.sa_mask);
    assert_int_equal(sigaction(SIGTERM, &over, &under), 0);
    must_die(closes_its_own_and_is_ended, SIGTERM);
    assert_int_equal(sigaction(SIGTERM, &under, NULL), 0);
}

static int watches_another_signal(void)
{
    if (watch_one(SIGUSR1, eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) == NULL)
        return 1;
    raise(SIGTERM);
    return 9;
}

static void a_signal_that_the_child_s_node_does_not_watch_ends_it(void **state)
{
    (void)state;
    parents = watch_one(SIGTERM, wake_fd);
    must_die(watches_another_signal, SIGTERM);
}

/* As a daemon does with what it inherited: where the parent's descriptors were are files of its
 * own. */
static int has_other_files_there(void)
{
    int file = memfd_create("log", MFD_CLOEXEC), own_fd, high;
    struct signal_watch *own;

    high = fcntl(file, F_DUPFD_CLOEXEC, LAST_FD + 1);
    own_fd = fcntl(eventfd(0, EFD_NONBLOCK), F_DUPFD_CLOEXEC, LAST_FD + 1);
    for (int fd = STDERR_FILENO + 1; fd <= LAST_FD; fd++)
        if (dup2(high, fd) != fd)
            return 1;
    own = watch_one(SIGTERM, own_fd);
    if (own == NULL)
        return 2;
    raise(SIGTERM);
    signal_report(SIGUSR2);
    if (!readable(own_fd))
        return 3;
    signal_unwatch(&own);
    return lseek(high, 0, SEEK_END) == 0 ? 0 : 4;
}

static void nothing_is_written_where_the_parent_s_descriptors_were(void **state)
{
    (void)state;
    parents = watch_one(SIGTERM, wake_fd);
    must_exit_0(has_other_files_there);
    assert_false(readable(wake_fd));
}

/* --- a thread that stands still while it tells a signal --------------------------------------- */

struct full_pipe {
    int in, out;
};

/* A watch's descriptor that takes nothing: who tells it a signal stands still. */
static struct full_pipe full_pipe(void)
{
    static const char room[4096];
    int fds[2];

    assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    while (write(fds[1], room, sizeof room) > 0)
        continue;
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(fcntl(fds[1], F_SETFL, 0), 0); /* and now it waits */
    return (struct full_pipe){.in = fds[1], .out = fds[0]};
}

static void drain(struct full_pipe pipe)
{
    char room[4096];

    while (read(pipe.out, room, sizeof room) > 0)
        continue;
}

static void *raise_usr1(void *arg)
{
    (void)arg;
    pthread_kill(pthread_self(), SIGUSR1);
    return NULL;
}

/* A thread marks the watch before it writes, so whoever has been told by a full one knows that it
 * stands there. */
static pthread_t stand_still(struct signal_watch *watch, void *(*body)(void *))
{
    struct signal_seen seen;
    pthread_t thread;

    assert_non_null(watch);
    assert_int_equal(pthread_create(&thread, NULL, body, NULL), 0);
    while (!signal_take(watch, &seen))
        poll(NULL, 0, 1);
    return thread;
}

static bool nobody_writes_any_more(struct full_pipe pipe)
{
    struct pollfd item = {.fd = pipe.out, .events = POLLIN};

    return poll(&item, 1, 0) == 1 && (item.revents & POLLHUP) != 0;
}

static int opens_and_closes_its_own(void)
{
    struct signal_watch *own = watch_two(SIGTERM, SIGUSR1, eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));

    if (own == NULL)
        return 1;
    signal_unwatch(&own);
    return handled_by(SIGTERM, SIG_DFL) && handled_by(SIGUSR1, SIG_DFL) ? 0 : 2;
}

static void a_child_of_the_moment_when_a_thread_tells_a_signal_goes_on(void **state)
{
    struct full_pipe pipe = full_pipe();
    pthread_t thread;

    (void)state;
    parents = watch_one(SIGUSR1, pipe.in);
    thread = stand_still(parents, raise_usr1);
    must_exit_0(opens_and_closes_its_own);
    drain(pipe);
    pthread_join(thread, NULL);
    signal_unwatch(&parents);
    close(pipe.in);
    assert_true(nobody_writes_any_more(pipe));
    close(pipe.out);
}

static void *unwatch(void *arg)
{
    signal_unwatch(arg);
    return NULL;
}

static void so_does_a_child_of_the_moment_when_a_thread_closes_a_node(void **state)
{
    struct full_pipe pipe = full_pipe();
    pthread_t thread, closing;

    (void)state;
    parents = watch_one(SIGUSR1, pipe.in);
    thread = stand_still(parents, raise_usr1);
    assert_int_equal(pthread_create(&closing, NULL, unwatch, &parents), 0);
    while (!handled_by(SIGUSR1, SIG_DFL)) /* then it waits for the thread that stands still */
        poll(NULL, 0, 1);
    must_exit_0(opens_and_closes_its_own);
    drain(pipe);
    pthread_join(thread, NULL);
    pthread_join(closing, NULL);
    close(pipe.in);
    close(pipe.out);
}

/* It may write whenever it goes on: so the descriptor stays what it is. */
static void a_thread_that_stands_still_holds_up_no_close(void **state)
{
    struct full_pipe pipe = full_pipe();
    pthread_t thread;

    (void)state;
    parents = watch_one(SIGUSR1, pipe.in);
    thread = stand_still(parents, raise_usr1);
    signal_unwatch(&parents);
    close(pipe.in);
    drain(pipe);
    pthread_join(thread, NULL);
    drain(pipe);
    assert_false(nobody_writes_any_more(pipe));
    close(pipe.out);
}

static sigjmp_buf out_of_handler;
static _Atomic bool jumped;

static void jumping_handler(int signo)
{
    (void)signo;
    atomic_store(&jumped, true);
    siglongjmp(out_of_handler, 1);
}

static void *raise_usr1_and_jump(void *arg)
{
    if (sigsetjmp(out_of_handler, 1) == 0)
        raise_usr1(arg);
    return NULL;
}

static void a_handler_that_jumps_out_of_another_s_leaves_no_trace(void **state)
{
    struct full_pipe pipe = full_pipe();
    pthread_t thread;

    (void)state;
    set_plain(SIGUSR2, jumping_handler);
    parents = watch_one(SIGUSR1, pipe.in);
    thread = stand_still(parents, raise_usr1_and_jump);
    assert_int_equal(pthread_kill(thread, SIGUSR2), 0);
    for (int i = 0; i < 20 && !atomic_load(&jumped);
         i++) /* it comes now, or when it has been told */
        poll(NULL, 0, 1);
    drain(pipe);
    pthread_join(thread, NULL);
    assert_true(atomic_load(&jumped));
    signal_unwatch(&parents);
    close(pipe.in);
    drain(pipe);
    assert_true(nobody_writes_any_more(pipe));
    close(pipe.out);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_child_has_the_signals_of_the_time_before_the_node),
        TEST(a_child_s_node_is_told_and_its_parent_s_is_not),
        TEST(a_child_that_closed_its_own_node_can_be_ended),
        TEST(so_can_one_where_a_host_s_handler_chains_to_ours),
        TEST(a_signal_that_the_child_s_node_does_not_watch_ends_it),
        TEST(nothing_is_written_where_the_parent_s_descriptors_were),
        TEST(a_child_of_the_moment_when_a_thread_tells_a_signal_goes_on),
        TEST(so_does_a_child_of_the_moment_when_a_thread_closes_a_node),
        TEST(a_handler_that_jumps_out_of_another_s_leaves_no_trace),
        TEST(a_thread_that_stands_still_holds_up_no_close),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
