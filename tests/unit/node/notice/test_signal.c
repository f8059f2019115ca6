/* Signals as notices: observed, chained, given back; and forked children. */
#include "node/notice/signal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t host_calls, over_calls;
static struct sigaction under;

static void host_handler(int signo)
{
    (void)signo;
    host_calls++;
}

/* A host's handler that was put over ours and chains to it. */
static void over_handler(int signo, siginfo_t *info, void *context)
{
    over_calls++;
    if (under.sa_flags & SA_SIGINFO)
        under.sa_sigaction(signo, info, context);
}

static void set_plain(int signo, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler};

    sigemptyset(&action.sa_mask);
    assert_int_equal(sigaction(signo, &action, NULL), 0);
}

static void (*current(int signo))(int)
{
    struct sigaction action;

    assert_int_equal(sigaction(signo, NULL, &action), 0);
    return action.sa_handler;
}

static int wake_fd;

static int setup(void **state)
{
    (void)state;
    host_calls = over_calls = 0;
    wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    set_plain(SIGTERM, SIG_DFL);
    set_plain(SIGUSR1, SIG_DFL);
    return wake_fd < 0;
}

static int teardown(void **state)
{
    (void)state;
    return close(wake_fd);
}

static bool readable(int fd)
{
    struct pollfd item = {.fd = fd, .events = POLLIN};

    return poll(&item, 1, 0) == 1;
}

static struct signal_watch *watch_term(void)
{
    struct signal_watch *watch = NULL;

    assert_int_equal(signal_watch((const int[]){SIGTERM}, 1, wake_fd, &watch, NULL), MUSTER_OK);
    return watch;
}

static void a_signal_is_told_once_and_names_its_sender(void **state)
{
    struct signal_watch *watch = watch_term();
    struct signal_seen seen = {0};

    (void)state;
    assert_false(signal_take(watch, &seen));
    raise(SIGTERM); /* the default action is swallowed: we live */
    raise(SIGTERM); /* as slurmstepd and mpirun do */
    assert_true(readable(wake_fd));
    assert_true(signal_take(watch, &seen));
    assert_int_equal(seen.signo, SIGTERM);
    assert_int_equal(seen.from_pid, getpid());
    assert_true(seen.at_boot_ms > 0);
    raise(SIGTERM);
    assert_false(signal_take(watch, &seen));
    signal_unwatch(&watch);
    assert_true(current(SIGTERM) == SIG_DFL);
}

/* That the real clock gets there: tests/proc/preempt/test_signal_again.c. */
static void a_burst_is_counted_from_its_first_signal(void **state)
{
    static const struct {
        int64_t first_ms, now_ms;
        bool begins;
    } cases[] = {
        {0, 1, true}, /* none has come yet */
        {5000, 5000, false},
        {5000, 5000 + SIGNAL_BURST_MS - 1, false},
        {5000, 5000 + SIGNAL_BURST_MS, true},
        {5000, INT64_MAX, true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(signal_begins_burst(cases[i].first_ms, cases[i].now_ms), cases[i].begins);
}

static void the_hosts_handler_still_runs_and_is_given_back(void **state)
{
    struct signal_watch *watch;

    (void)state;
    set_plain(SIGTERM, host_handler);
    watch = watch_term();
    raise(SIGTERM);
    assert_int_equal(host_calls, 1);
    signal_unwatch(&watch);
    assert_true(current(SIGTERM) == host_handler);
    raise(SIGTERM);
    assert_int_equal(host_calls, 2);
}

/* --- a handler that does not return ----------------------------------------------------------- */

static sigjmp_buf out_of_handler;

static void jumping_handler(int signo)
{
    (void)signo;
    host_calls++;
    siglongjmp(out_of_handler, 1);
}

static __attribute__((noinline)) void raise_below(int frames)
{
    volatile char room[256];

    room[0] = (char)frames;
    if (frames > 0)
        raise_below(frames - 1);
    else
        raise(SIGUSR1);
    room[1] = room[0];
}

static void a_handler_that_jumps_out_runs_and_is_heard_each_time(void **state)
{
    static const int below[] = {0, 0, 3, 9, 30, 5, 0, 60}; /* frames, deeper and less deep */
    const int usr1 = SIGUSR1;
    struct signal_watch *watch = NULL;
    uint64_t woken;

    (void)state;
    set_plain(SIGUSR1, jumping_handler);
    assert_int_equal(signal_watch(&usr1, 1, wake_fd, &watch, NULL), MUSTER_OK);
    for (volatile size_t i = 0; i < sizeof below / sizeof *below; i++) {
        if (sigsetjmp(out_of_handler, 1) == 0)
            raise_below(below[i]);
        assert_int_equal(host_calls, i + 1);
        assert_int_equal(read(wake_fd, &woken, sizeof woken), sizeof woken);
    }
    signal_unwatch(&watch);
    set_plain(SIGUSR1, SIG_DFL);
}

/* --- the same signal in two threads at once --------------------------------------------------- */

static sem_t inside[2], go_on[2], came_out;
static _Atomic int turns;

/* Holds the first two that come, each until it is let go. */
static void slow_handler(int signo)
{
    int turn = atomic_fetch_add(&turns, 1);

    (void)signo;
    if (turn >= 2)
        return;
    sem_post(&inside[turn]);
    while (sem_wait(&go_on[turn]) != 0)
        continue;
}

static void *raise_here(void *arg)
{
    (void)arg;
    pthread_kill(pthread_self(), SIGUSR1);
    sem_post(&came_out);
    return NULL;
}

static void *raise_twice(void *arg)
{
    sem_t *again = arg;

    raise_here(NULL);
    while (sem_wait(again) != 0)
        continue;
    return raise_here(NULL);
}

/* One enters, another enters, the first leaves, the second leaves: no trace of them may stay. */
static void two_threads_in_the_handler_hide_no_later_signal(void **state)
{
    struct signal_watch *watch = NULL;
    pthread_t first, second;
    sem_t again;

    (void)state;
    for (int i = 0; i < 2; i++) {
        sem_init(&inside[i], 0, 0);
        sem_init(&go_on[i], 0, 0);
    }
    sem_init(&came_out, 0, 0);
    sem_init(&again, 0, 0);
    set_plain(SIGUSR1, slow_handler);
    assert_int_equal(signal_watch((const int[]){SIGUSR1}, 1, wake_fd, &watch, NULL), MUSTER_OK);
    assert_int_equal(pthread_create(&first, NULL, raise_twice, &again), 0);
    sem_wait(&inside[0]);
    assert_int_equal(pthread_create(&second, NULL, raise_here, NULL), 0);
    sem_wait(&inside[1]);
    for (int i = 0; i < 2; i++) {
        sem_post(&go_on[i]);
        sem_wait(&came_out);
    }
    assert_int_equal(atomic_load(&turns), 2);
    sem_post(&again);
    pthread_join(first, NULL);
    pthread_join(second, NULL);
    assert_int_equal(atomic_load(&turns), 3); /* the host's handler ran for the third too */
    signal_unwatch(&watch);
}

static void no_other_signal_is_touched(void **state)
{
    struct signal_watch *watch = watch_term(), *none = NULL;

    (void)state;
    assert_true(current(SIGUSR1) == SIG_DFL);
    assert_int_equal(signal_watch(NULL, 0, wake_fd, &none, NULL), MUSTER_OK);
    assert_true(current(SIGINT) == SIG_DFL);
    signal_unwatch(&none);
    assert_true(current(SIGTERM) != SIG_DFL); /* the other one watches still */
    signal_unwatch(&watch);
    assert_true(current(SIGTERM) == SIG_DFL);
}

static void a_later_handler_stays_and_the_chain_holds(void **state)
{
    struct sigaction over = {.sa_sigaction = over_handler, .sa_flags = SA_SIGINFO};
    struct signal_watch *watch;
    struct signal_seen seen;

    (void)state;
    set_plain(SIGTERM, host_handler);
    watch = watch_term();
    sigemptyset(&over.sa_mask);
    assert_int_equal(sigaction(SIGTERM, &over, &under), 0);
    signal_unwatch(&watch);
    raise(SIGTERM); /* over, then ours, then the host's */
    assert_int_equal(over_calls, 1);
    assert_int_equal(host_calls, 1);

    watch = watch_term(); /* now ours is on both sides of it: no ring */
    raise(SIGTERM);
    assert_int_equal(over_calls, 2);
    assert_int_equal(host_calls, 2);
    assert_true(signal_take(watch, &seen));
    signal_unwatch(&watch);
    assert_int_equal(sigaction(SIGTERM, NULL, &over), 0);
    assert_true(over.sa_sigaction == over_handler);
}

static void put_over(void)
{
    struct sigaction over = {.sa_sigaction = over_handler, .sa_flags = SA_SIGINFO};

    sigemptyset(&over.sa_mask);
    assert_int_equal(sigaction(SIGTERM, &over, &under), 0);
}

static void a_handler_that_the_program_sets_later_is_called_by_ours(void **state)
{
    struct signal_watch *watch = watch_term();
    struct signal_seen seen;

    (void)state;
    assert_int_equal(signal_put_back(watch), 0);
    for (int i = 1; i <= 20; i++) { /* again and again the same one: the chain does not grow */
        set_plain(SIGTERM, host_handler);
        assert_int_equal(signal_put_back(watch), SIGTERM);
        assert_int_equal(signal_displaced(watch), 0);
        raise(SIGTERM);
        assert_int_equal(host_calls, i);
    }
    assert_true(signal_take(watch, &seen));
    assert_int_equal(seen.signo, SIGTERM);
    signal_unwatch(&watch);
    assert_true(current(SIGTERM) == host_handler);
}

/* Of all nodes of the process, and no signal that none of them watches. */
static void a_handler_that_the_program_sets_later_goes_below_ours_when_it_asks(void **state)
{
    struct signal_watch *watch = watch_term();
    struct signal_seen seen;

    (void)state;
    set_plain(SIGTERM, host_handler);
    set_plain(SIGUSR1, host_handler);
    signal_put_all_back();
    assert_int_equal(signal_displaced(watch), 0);
    assert_int_equal(signal_put_back(watch), SIGTERM); /* it was done, and is told once */
    assert_int_equal(signal_put_back(watch), 0);
    assert_true(current(SIGUSR1) == host_handler);
    raise(SIGTERM);
    assert_int_equal(host_calls, 1);
    assert_true(signal_take(watch, &seen));
    set_plain(SIGTERM, SIG_IGN);
    signal_put_all_back();
    assert_true(current(SIGTERM) == SIG_IGN);
    signal_unwatch(&watch);
    set_plain(SIGTERM, host_handler);
    signal_put_all_back();
    assert_true(current(SIGTERM) == host_handler);
}

static void each_handler_of_the_chain_is_called_once(void **state)
{
    struct signal_watch *watch;
    struct signal_seen seen;

    (void)state;
    set_plain(SIGTERM, host_handler);
    watch = watch_term();
    put_over(); /* chains to ours */
    assert_int_equal(signal_put_back(watch), SIGTERM);
    raise(SIGTERM);
    assert_int_equal(over_calls, 1);
    assert_int_equal(host_calls, 1);
    assert_true(signal_take(watch, &seen));
    signal_unwatch(&watch);
    raise(SIGTERM); /* over, then ours, which tells nobody, then the host's */
    assert_int_equal(over_calls, 2);
    assert_int_equal(host_calls, 2);
}

static void a_signal_that_the_program_ignores_later_stays_ignored(void **state)
{
    struct signal_watch *watch = watch_term();

    (void)state;
    set_plain(SIGTERM, SIG_IGN);
    assert_int_equal(signal_put_back(watch), 0);
    assert_int_equal(signal_displaced(watch), SIGTERM);
    assert_true(current(SIGTERM) == SIG_IGN);
    signal_unwatch(&watch);
}

static void the_host_may_report_a_signal_itself(void **state)
{
    struct signal_watch *watch = NULL;
    struct signal_seen seen;

    (void)state;
    assert_int_equal(signal_watch(NULL, 0, wake_fd, &watch, NULL), MUSTER_OK);
    signal_report(SIGUSR1);
    signal_report(0);
    signal_report(1000);
    assert_true(signal_take(watch, &seen));
    assert_int_equal(seen.signo, SIGUSR1);
    assert_false(signal_take(watch, &seen));
    signal_unwatch(&watch);
}

static void every_node_of_the_process_is_told(void **state)
{
    int other_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    struct signal_watch *watch = watch_term(), *other = NULL;
    struct signal_seen seen;

    (void)state;
    assert_int_equal(signal_watch((const int[]){SIGTERM, SIGUSR1}, 2, other_fd, &other, NULL),
                     MUSTER_OK);
    raise(SIGUSR1);
    assert_false(readable(wake_fd));
    assert_true(readable(other_fd));
    raise(SIGTERM);
    assert_true(signal_take(watch, &seen));
    assert_true(signal_take(other, &seen));
    assert_true(signal_take(other, &seen));
    signal_unwatch(&watch);
    signal_unwatch(&other);
    assert_int_equal(close(other_fd), 0);
}

static int wait_for(pid_t child)
{
    int status = 0;

    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void a_forked_child_dies_of_its_signal_and_its_parent_hears_nothing(void **state)
{
    struct signal_watch *watch = watch_term();
    struct signal_seen seen;
    pid_t child = fork();
    int status;

    (void)state;
    if (child == 0) {
        raise(SIGTERM);
        _exit(9); /* it should not live to see this */
    }
    status = wait_for(child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGTERM);
    assert_false(readable(wake_fd));
    assert_false(signal_take(watch, &seen));
    signal_unwatch(&watch);
}

static void a_signal_is_described_with_its_sender(void **state)
{
    char text[SIGNAL_TEXT_SIZE];

    (void)state;
    signal_describe(&(struct signal_seen){.signo = SIGTERM, .from_pid = 4711}, text);
    assert_string_equal(text, "SIGTERM from pid 4711");
    signal_describe(&(struct signal_seen){.signo = SIGUSR2}, text);
    assert_string_equal(text, "SIGUSR2");
    signal_describe(&(struct signal_seen){.signo = 50, .from_pid = 1}, text);
    assert_string_equal(text, "signal 50 from pid 1");
}

static void a_signal_that_cannot_be_watched_is_refused_whole(void **state)
{
    static const int wrong[] = {SIGKILL, SIGSTOP, 0, -1, 65};
    struct signal_watch *watch = NULL;
    struct muster_error err;

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const int both[] = {SIGTERM, wrong[i]};

        assert_int_equal(signal_watch(both, 2, wake_fd, &watch, &err), MUSTER_E_ARGUMENT);
        assert_non_null(strstr(err.text, "cannot be watched"));
        assert_null(watch);
        assert_true(current(SIGTERM) == SIG_DFL);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_signal_is_told_once_and_names_its_sender),
        TEST(a_burst_is_counted_from_its_first_signal),
        TEST(the_hosts_handler_still_runs_and_is_given_back),
        TEST(a_handler_that_jumps_out_runs_and_is_heard_each_time),
        TEST(two_threads_in_the_handler_hide_no_later_signal),
        TEST(no_other_signal_is_touched),
        TEST(a_handler_that_the_program_sets_later_is_called_by_ours),
        TEST(a_handler_that_the_program_sets_later_goes_below_ours_when_it_asks),
        TEST(each_handler_of_the_chain_is_called_once),
        TEST(a_signal_that_the_program_ignores_later_stays_ignored),
        TEST(the_host_may_report_a_signal_itself),
        TEST(every_node_of_the_process_is_told),
        TEST(a_forked_child_dies_of_its_signal_and_its_parent_hears_nothing),
        TEST(a_signal_is_described_with_its_sender),
        TEST(a_signal_that_cannot_be_watched_is_refused_whole),
        TEST(a_later_handler_stays_and_the_chain_holds), /* last: it leaves its handler */
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
