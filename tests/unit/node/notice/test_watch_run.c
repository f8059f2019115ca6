/* A runner's pass: each source has its turn, its state is told when it changes, and what it says
 * becomes records. No thread runs: the test calls the pass. */
#include "node/notice/watch_run.c" /* NOLINT(bugprone-suspicious-include) */
#include "tests/support/ledger_pending.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <sys/eventfd.h>

static struct shared *shared;
static struct runner *runner;
static struct source_status now_is;
static struct notice_set says;
static int runs, commits;
static bool acknowledges;

static void source_run(void *self, const struct notice_now *now, const struct source_out *out)
{
    (void)self, (void)now;
    runs++;
    out->say(out->arg, 0, &says);
}

static void source_status_of(const void *self, struct source_status *ret_status)
{
    (void)self;
    *ret_status = now_is;
}

static void source_committed(void *self)
{
    (void)self;
    commits++;
}

static bool source_acknowledging(const void *self)
{
    (void)self;
    return acknowledges;
}

static const struct source_ops ops = {.run = source_run,
                                      .status = source_status_of,
                                      .committed = source_committed,
                                      .acknowledging = source_acknowledging};

static int setup(void **state)
{
    (void)state;
    shared = calloc(1, sizeof *shared);
    pthread_mutex_init(&shared->mutex, NULL);
    ledger_init(&shared->ledger);
    shared->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    runner = &shared->runners[0];
    runner->shared = shared;
    runner->slots[runner->slot_count++] = watch_new_slot(shared, "one", &ops, NULL, SOURCE_PROBING);
    now_is = (struct source_status){.state = SOURCE_PROBING};
    says = (struct notice_set){.count = 0};
    runs = commits = 0;
    acknowledges = false;
    return shared->wake_fd < 0;
}

static int teardown(void **state)
{
    (void)state;
    close(shared->wake_fd);
    pthread_mutex_destroy(&shared->mutex);
    free(shared);
    return 0;
}

/* Was the agent woken since the last look? */
static bool woken(void)
{
    uint64_t count;

    return read(shared->wake_fd, &count, sizeof count) > 0;
}

static struct notice_item notice(const char *key)
{
    struct notice_item item = {.kind = NOTICE_PREEMPT, .deadline_boot_ms = -1, .text = "an end"};

    snprintf(item.key, sizeof item.key, "%s", key);
    return item;
}

static void what_a_source_says_is_one_record_and_wakes_once(void **state)
{
    const struct notice_item item = notice("a");

    (void)state;
    run_sources(runner);
    assert_false(woken());
    notice_set_add(&says, &item);
    run_sources(runner);
    run_sources(runner);
    assert_int_equal(runs, 3);
    assert_true(woken());
    assert_int_equal(shared->count, 1);
    assert_string_equal(shared->records[0].source, "one");
    assert_string_equal(shared->records[0].item.text, "an end");
}

static void a_state_that_changes_wakes_and_its_text_is_printable(void **state)
{
    (void)state;
    now_is = (struct source_status){.state = SOURCE_DEGRADED, .text = "a\n\x1b[2J b"};
    run_sources(runner);
    assert_true(woken());
    assert_string_equal(shared->slots[0].status.text, "a??[2J b");
    assert_string_equal(shared->slots[0].status.name, "one");
    shared->slots[0].told = shared->slots[0].status;
    run_sources(runner);
    assert_false(woken());
}

static void two_sources_of_one_name_do_not_speak_for_each_other(void **state)
{
    struct notice_item item = notice("a");
    struct said_by first = {shared, "file", 0, 1000};
    struct said_by second = {shared, "file", TOPICS_MAX, 1000};
    struct notice_set none = {.count = 0};

    (void)state;
    item.cancellable = true; /* it is withdrawn when its source says it no more */
    notice_set_add(&says, &item);
    watch_run_say(&first, 0, &says);
    assert_int_equal(shared->count, 1);
    watch_run_say(&second, 0, &none); /* the other file says nothing: the first's notice stands */
    assert_int_equal(shared->count, 1);
    assert_true(ledger_pending(&shared->ledger, "file"));
}

static void a_commit_reaches_each_source_and_what_is_to_be_acknowledged_is_known(void **state)
{
    (void)state;
    runner->http = (struct http *)shared; /* the first runner's; nobody uses it here */
    acknowledges = true;
    run_sources(runner);
    assert_int_equal(commits, 0);
    assert_false(atomic_load(&shared->acknowledging));
    atomic_store(&shared->committed, true);
    run_sources(runner);
    assert_int_equal(commits, 1);
    assert_true(atomic_load(&shared->acknowledging));
    acknowledges = false;
    run_sources(runner);
    assert_false(atomic_load(&shared->acknowledging));
}

static void records_that_nobody_takes_are_bounded(void **state)
{
    (void)state;
    for (int i = 0; i < 3 * RECORDS_MAX; i++) {
        char key[16];
        struct notice_set set = {.count = 0};
        struct notice_item item;

        snprintf(key, sizeof key, "k%d", i);
        item = notice(key);
        notice_set_add(&set, &item);
        watch_say(shared, "one", 0, &set, 1000);
    }
    assert_true(shared->count <= RECORDS_MAX);
}

static void a_provider_that_its_platform_switches_off_is_never_asked(void **state)
{
    const struct provider *provider = sources_provider(0);
    struct muster_error err;

    (void)state;
    shared->off[0] = true;
    assert_int_equal(watch_add_remote(shared, runner, provider, &err), MUSTER_OK);
    assert_int_equal(runner->slot_count, 1); /* it has no turn */
    assert_int_equal(shared->slots[1].status.state, SOURCE_OFF);
    assert_string_equal(shared->slots[1].status.name, provider->name);
}

static void more_sources_than_there_is_room_for_are_refused(void **state)
{
    struct muster_error err = {.text = ""};

    (void)state;
    runner->slot_count = sizeof runner->slots / sizeof *runner->slots;
    assert_int_equal(watch_add_remote(shared, runner, sources_provider(0), &err),
                     MUSTER_E_ARGUMENT);
    assert_string_equal(err.text, "more than 12 notice sources; name fewer");
    runner->slot_count = 1;
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(what_a_source_says_is_one_record_and_wakes_once),
        T(a_state_that_changes_wakes_and_its_text_is_printable),
        T(two_sources_of_one_name_do_not_speak_for_each_other),
        T(a_commit_reaches_each_source_and_what_is_to_be_acknowledged_is_known),
        T(records_that_nobody_takes_are_bounded),
        T(a_provider_that_its_platform_switches_off_is_never_asked),
        T(more_sources_than_there_is_room_for_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
