/* muster_shield: a helper process of a rank outlives the SIGTERM of anybody but its parent. */
#include <muster/node.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEADLINE_MS 60000

struct helper {
    pid_t pid;
    int to, from; /* it gives back each byte that it gets */
};
static int handler_tells;
static bool helper_chains; /* it sets a handler over the shield, which calls that */
static struct sigaction below;

static char hear(const struct helper *helper)
{
    struct pollfd ready = {.fd = helper->from, .events = POLLIN};
    char byte;

    assert_int_equal(poll(&ready, 1, DEADLINE_MS), 1);
    return read(helper->from, &byte, 1) == 1 ? byte : '\0'; /* '\0': it is gone */
}

static char asks(const struct helper *helper, char byte)
{
    assert_int_equal(write(helper->to, &byte, 1), 1);
    return hear(helper);
}

static void give_back(int from, int to)
{
    char byte;

    while (read(from, &byte, 1) == 1 && write(to, &byte, 1) == 1)
        ;
    _exit(0);
}

static void handler(int signo)
{
    (void)signo;
    if (write(handler_tells, "h", 1) != 1)
        _exit(3);
}

static void chaining_handler(int signo, siginfo_t *info, void *context)
{
    below.sa_sigaction(signo, info, context);
}

static void chain(void)
{
    struct sigaction over = {.sa_sigaction = chaining_handler, .sa_flags = SA_SIGINFO};

    sigaction(SIGTERM, &over, &below);
}

/* generations: 2 = a helper of a helper, whose parent waits for it. */
static struct helper start(bool shields, bool handles, int generations)
{
    struct helper helper;
    int to[2], from[2];

    assert_int_equal(pipe(to), 0);
    assert_int_equal(pipe(from), 0);
    helper = (struct helper){.pid = fork(), .to = to[1], .from = from[0]};
    if (helper.pid == 0) {
        close(to[1]);
        close(from[0]);
        handler_tells = from[1];
        if (handles)
            sigaction(SIGTERM, &(struct sigaction){.sa_handler = handler, .sa_flags = SA_RESTART},
                      NULL);
        if (shields)
            muster_shield();
        if (helper_chains)
            chain();
        if (generations > 1) {
            pid_t child = fork();
            if (child > 0) {
                close(from[1]);
                close(to[0]);
                waitpid(child, NULL, 0);
                _exit(0);
            }
            muster_shield();
            muster_shield(); /* once more changes nothing */
            child = getpid();
            if (write(from[1], &child, sizeof child) != sizeof child)
                _exit(3);
        }
        if (write(from[1], "r", 1) != 1)
            _exit(3);
        give_back(to[0], from[1]);
    }
    close(to[0]);
    close(from[1]);
    return helper;
}

/* By a process that is no helper's parent. */
static void stranger_kills(pid_t pid)
{
    pid_t stranger = fork();

    if (stranger == 0)
        _exit(kill(pid, SIGTERM) == 0 ? 0 : 1);
    assert_int_equal(waitpid(stranger, NULL, 0), stranger);
}

static int ended(const struct helper *helper)
{
    int status;

    close(helper->to);
    close(helper->from);
    assert_int_equal(waitpid(helper->pid, &status, 0), helper->pid);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

/* child: the helper of that helper. */
static void ends_without_its_parent(struct helper helper, pid_t child)
{
    kill(helper.pid, SIGKILL);
    assert_int_equal(waitpid(helper.pid, NULL, 0), helper.pid);
    helper.pid = child; /* an orphan, which this process reaps */
    kill(child, SIGTERM);
    assert_int_equal(hear(&helper), '\0');
    assert_int_equal(ended(&helper), SIGTERM);
}

static void a_helper_outlives_a_strangers_signal_and_ends_by_its_parents(void **state)
{
    struct helper helper = start(true, false, 1);

    (void)state;
    assert_int_equal(hear(&helper), 'r');
    stranger_kills(helper.pid);
    assert_int_equal(asks(&helper, 'a'), 'a');
    kill(helper.pid, SIGTERM);
    assert_int_equal(hear(&helper), '\0');
    assert_int_equal(ended(&helper), SIGTERM);
}

static void without_a_shield_it_ends_by_anybodys(void **state)
{
    struct helper helper = start(false, false, 1);

    (void)state;
    assert_int_equal(hear(&helper), 'r');
    stranger_kills(helper.pid);
    assert_int_equal(hear(&helper), '\0');
    assert_int_equal(ended(&helper), SIGTERM);
}

static void the_handler_of_before_hears_the_parents_alone(void **state)
{
    struct helper helper = start(true, true, 1);

    (void)state;
    assert_int_equal(hear(&helper), 'r');
    stranger_kills(helper.pid);
    assert_int_equal(asks(&helper, 'a'), 'a');
    kill(helper.pid, SIGTERM);
    assert_int_equal(hear(&helper), 'h');
    assert_int_equal(asks(&helper, 'b'), 'b');
    assert_int_equal(ended(&helper), 0);
}

static void a_helper_of_a_helper_follows_its_own_parent_and_ends_by_any_without_it(void **state)
{
    struct helper helper = start(true, false, 2);
    pid_t child;

    (void)state;
    assert_int_equal(read(helper.from, &child, sizeof child), sizeof child);
    assert_int_equal(hear(&helper), 'r');
    stranger_kills(child);
    assert_int_equal(asks(&helper, 'a'), 'a');
    ends_without_its_parent(helper, child);
}

/* The shield of the second helper has a handler below that calls this same shield. */
static void a_handler_that_calls_the_shield_below_it_ends(void **state)
{
    struct helper helper;
    pid_t child;

    (void)state;
    helper_chains = true;
    helper = start(true, false, 2);
    helper_chains = false;
    assert_int_equal(read(helper.from, &child, sizeof child), sizeof child);
    assert_int_equal(hear(&helper), 'r');
    ends_without_its_parent(helper, child);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_helper_outlives_a_strangers_signal_and_ends_by_its_parents),
        cmocka_unit_test(without_a_shield_it_ends_by_anybodys),
        cmocka_unit_test(the_handler_of_before_hears_the_parents_alone),
        cmocka_unit_test(a_helper_of_a_helper_follows_its_own_parent_and_ends_by_any_without_it),
        cmocka_unit_test(a_handler_that_calls_the_shield_below_it_ends),
    };

    prctl(PR_SET_CHILD_SUBREAPER, 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
