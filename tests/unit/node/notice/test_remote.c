/* A source over HTTP, without HTTP: what it asks, what it says, and that a node which does not ask
 * says what another one of its host has learnt. */
#define http_start give_start
#define http_take give_take
#define http_abandon give_abandon
#include "node/notice/remote.c" /* NOLINT(bugprone-suspicious-include) */

#include "node/notice/providers/tencent.h"
#include "tests/support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define TIME_PATH "/latest/meta-data/spot/termination-time"

static char asked[4096];
static unsigned asked_slot;
static const char *body; /* of the reply that is there; NULL: none */
static bool full;
static int abandoned;
static struct notice_now now;
static size_t items; /* of the set that was said last */

bool give_start(struct http *http, const struct http_request *request, const void *owner,
                unsigned slot)
{
    (void)http, (void)owner;
    snprintf(asked, sizeof asked, "%s %s", request->method, request->url);
    asked_slot = slot;
    return !full;
}

bool give_take(struct http *http, const void *owner, unsigned *ret_slot,
               struct http_reply *ret_reply)
{
    (void)http, (void)owner;
    if (body == NULL)
        return false;
    *ret_slot = asked_slot;
    *ret_reply = (struct http_reply){
        .result = HTTP_ANSWERED, .status = 200, .headers = "", .body = body, .size = strlen(body)};
    body = NULL;
    return true;
}

void give_abandon(struct http *http, const void *owner)
{
    (void)http, (void)owner;
    abandoned++;
}

static void take_set(void *arg, unsigned topic, const struct notice_set *set)
{
    (void)arg, (void)topic;
    items = set->count;
}

static int setup(void **state)
{
    (void)state;
    now = (struct notice_now){.boot_ms = 5000000, .unix_ms = INT64_C(1587748304000)};
    asked[0] = '\0';
    body = NULL;
    full = false;
    items = 0;
    abandoned = 0;
    return 0;
}

static void *opened(const char *runtime_dir)
{
    const struct source_config config = {.runtime_dir = runtime_dir, .seed = 1};
    struct muster_error err;
    void *self = NULL;

    assert_int_equal(remote_open(&provider_tencent, &config, &self, &err), MUSTER_OK);
    return self;
}

static void run(void *self)
{
    asked[0] = '\0';
    remote_ops.run(self, &now, &(struct source_out){.say = take_set});
}

static enum source_state state_of(const void *self)
{
    struct source_status status;

    remote_ops.status(self, &status);
    return status.state;
}

static void reply(void *self, const char *text)
{
    body = text;
    run(self);
}

/* Until its instance is known and the end of it is asked for. */
static void is_healthy(void *self)
{
    run(self);
    reply(self, "ins-12345678");
    assert_non_null(strstr(asked, TIME_PATH));
}

static void an_address_that_is_none_is_refused(void **state)
{
    const struct source_config config = {.endpoint = "https://h"};
    struct muster_error err;
    void *self = NULL;

    (void)state;
    assert_int_equal(remote_open(&provider_tencent, &config, &self, &err), MUSTER_E_ARGUMENT);
    assert_null(self);
    assert_string_equal(err.text, "notice source tencent: \"https://h\" is no address; give "
                                  "http://HOST[:PORT]");
}

static void what_a_reply_announces_is_said(void **state)
{
    void *self = opened(NULL);

    (void)state;
    run(self);
    assert_string_equal(asked, "GET http://metadata.tencentyun.com/latest/meta-data/instance-id");
    is_healthy(self);
    reply(self, "2020-04-24 17:13:44");
    assert_int_equal(items, 1);
    assert_int_equal(state_of(self), SOURCE_HEALTHY);
    remote_ops.close(self);
    assert_int_equal(abandoned, 1);
}

/* Nobody was asked, so nothing failed: it is tried again. */
static void a_request_that_cannot_start_is_tried_again(void **state)
{
    void *self = opened(NULL);

    (void)state;
    full = true;
    run(self);
    assert_string_not_equal(asked, "");
    full = false;
    now.boot_ms = remote_ops.wakeup_boot_ms(self);
    run(self);
    assert_string_not_equal(asked, "");
    assert_int_equal(state_of(self), SOURCE_PROBING);
    remote_ops.close(self);
}

/* The lock of the one who asks is a process's. */
static void another_process_asks(const char *dir, int ready, int end)
{
    char byte = 0;
    void *asks = opened(dir);

    is_healthy(asks);
    reply(asks, "2020-04-24 17:13:44");
    now.boot_ms += 5000;
    run(asks); /* writes down what it knows */
    if (write(ready, &byte, 1) == 1)
        (void)!read(end, &byte, 1);
    _exit(0);
}

static void one_node_of_a_host_asks_and_the_other_says_what_it_learnt(void **state)
{
    char dir[SCRATCH_PATH_MAX], byte;
    int ready[2], end[2];
    pid_t other;
    void *reads;

    (void)state;
    scratch_make(dir);
    chmod(dir, 0700);
    assert_int_equal(pipe(ready) | pipe(end), 0);
    other = fork();
    if (other == 0) {
        close(end[1]);
        another_process_asks(dir, ready[1], end[0]);
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    reads = opened(dir);
    now.boot_ms += 5000;
    run(reads);
    assert_string_equal(asked, "");
    assert_int_equal(items, 1);
    assert_int_equal(state_of(reads), SOURCE_HEALTHY);
    assert_false(remote_ops.acknowledging(reads));
    close(end[1]); /* the other one leaves */
    waitpid(other, NULL, 0);
    now.boot_ms += 60000;
    run(reads);
    assert_string_not_equal(asked, "");
    remote_ops.close(reads);
    close(ready[0]);
    close(end[0]);
    scratch_remove(dir);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup(test, setup)
    const struct CMUnitTest tests[] = {
        T(an_address_that_is_none_is_refused),
        T(what_a_reply_announces_is_said),
        T(a_request_that_cannot_start_is_tried_again),
        T(one_node_of_a_host_asks_and_the_other_says_what_it_learnt),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
