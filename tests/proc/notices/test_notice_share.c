/* One poller a host: two processes ask once, and who asks is replaced within two seconds when he
 * dies or hangs. */
#include "node/notice/base/share.h"
#include "tests/support/notice_fixture.h"

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define TOKEN "/latest/api/token"
#define SPOT "/latest/meta-data/spot/instance-action"
#define TTL "X-aws-ec2-metadata-token-ttl-seconds: 21600\r\n"
#define LIMIT_MS 20000

/* Runs beside a test: by how much the machine was late with what was due in TICK_MS. That, and
 * nothing else, may come on top of a bound in real time. */
#define TICK_MS 10
static _Atomic bool ticking;
static _Atomic int64_t late_ms;

static void *tick(void *arg)
{
    while (atomic_load(&ticking)) {
        int64_t began = notice_clocks().boot_ms, late;

        poll(NULL, 0, TICK_MS);
        late = notice_clocks().boot_ms - began - TICK_MS;
        if (late > 1)
            atomic_fetch_add(&late_ms, late);
    }
    return arg;
}

static struct notice_fixture fixture;
static char **program; /* argv: this program is its own other process */

static int set_up(void **state)
{
    *state = &fixture;
    notice_fixture_open(&fixture, "ec2");
    http_server_on(fixture.server, "PUT", TOKEN, (struct http_script){.headers = TTL, .body = "T"});
    return 0;
}

static int tear_down(void **state)
{
    notice_fixture_close(*state);
    return 0;
}

/* The other process: asks for ec2's notices, and says "forked" before, if it is to leave a child
 * behind. */
_Noreturn static void be_the_other(bool with_child)
{
    struct notice_fixture f = {.wake_fd = -1};

    notice_fixture_watch(&f, "ec2");
    if (with_child && fork() == 0) /* as a data loader's: lives on, with all that it inherits */
        for (;;)
            pause();
    for (;;)
        pause();
}

static pid_t start_other(struct notice_fixture *f, const char *how)
{
    pid_t pid = fork();

    if (pid == 0) {
        setpgid(0, 0);
        execl(program[0], program[0], how, (char *)NULL);
        _exit(127);
    }
    setpgid(pid, pid);
    assert_true(http_server_await(f->server, SPOT, 1, LIMIT_MS));
    return pid;
}

static void end_other(pid_t pid)
{
    kill(-pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void only_one_of_a_host_asks_and_the_others_know(void **state)
{
    struct notice_fixture *f = *state;
    pid_t other = start_other(f, "other");
    size_t hits;

    notice_fixture_watch(f, "ec2");
    notice_state(f, "ec2", SOURCE_HEALTHY, "", LIMIT_MS);
    hits = http_server_hits(f->server, TOKEN);
    assert_int_equal(hits, 1); /* we have never asked */
    http_server_on(f->server, "GET", SPOT,
                   (struct http_script){
                       .body = "{\"action\":\"terminate\",\"time\":\"2020-01-01T00:00:00Z\"}"});
    assert_int_equal(notice_await(f, LIMIT_MS).item.kind, NOTICE_PREEMPT);
    assert_int_equal(http_server_hits(f->server, TOKEN), 1);
    end_other(other);
}

static void takes_over(struct notice_fixture *f, const char *how, int signo)
{
    pid_t other = start_other(f, how);
    int64_t died, took;
    pthread_t ticker;

    notice_fixture_watch(f, "ec2");
    notice_state(f, "ec2", SOURCE_HEALTHY, "", LIMIT_MS);
    assert_int_equal(http_server_hits(f->server, TOKEN), 1);
    atomic_store(&ticking, true);
    atomic_store(&late_ms, 0);
    assert_int_equal(pthread_create(&ticker, NULL, tick, NULL), 0);
    died = notice_clocks().boot_ms;
    kill(other, signo);
    assert_true(http_server_await(f->server, TOKEN, 2, LIMIT_MS)); /* our own first question */
    took = http_server_last_boot_ms(f->server, TOKEN) - died;
    atomic_store(&ticking, false);
    pthread_join(ticker, NULL);
    printf("handed over within %lld ms; the machine was late by %lld ms\n", (long long)took,
           (long long)late_ms);
    assert_in_range(took, 0, SHARE_HANDOVER_MS + late_ms);
    notice_state(f, "ec2", SOURCE_HEALTHY, "", LIMIT_MS);
    end_other(other);
}

static void the_death_of_the_one_who_asks_hands_over(void **state)
{
    takes_over(*state, "other", SIGKILL);
}

static void a_child_that_he_left_behind_does_not_keep_the_place(void **state)
{
    takes_over(*state, "other-with-child", SIGKILL);
}

static void one_who_is_stopped_is_not_waited_for(void **state)
{
    takes_over(*state, "other", SIGSTOP);
}

static void another_users_directory_is_not_used(void **state)
{
    struct notice_fixture *f = *state; /* everybody may write there: not ours alone */
    char path[100];

    snprintf(path, sizeof path, "chmod 0777 '%s'", f->directory);
    assert_int_equal(system(path), 0);
    notice_fixture_watch(f, "ec2");
    notice_state(f, "ec2", SOURCE_HEALTHY, "", LIMIT_MS);
    snprintf(path, sizeof path, "test -z \"$(ls '%s')\"", f->directory);
    assert_int_equal(system(path), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CASE(only_one_of_a_host_asks_and_the_others_know),
        CASE(the_death_of_the_one_who_asks_hands_over),
        CASE(a_child_that_he_left_behind_does_not_keep_the_place),
        CASE(one_who_is_stopped_is_not_waited_for),
        CASE(another_users_directory_is_not_used),
    };

    program = argv;
    if (argc > 1)
        be_the_other(strcmp(argv[1], "other-with-child") == 0);
    return cmocka_run_group_tests_name("notice_share", tests, NULL, NULL);
}
