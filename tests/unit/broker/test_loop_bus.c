/* The real loop between a scripted bus and a scripted core: what no timing of real sockets shows
 * surely. */
#include "broker/loop.h"
#include "broker/turns.h"

#include "tests/support/scratch.h"
#include "tests/unit/broker/no_core.h"
#include "tests/unit/broker/store/store_samples.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

/* --- the bus ---------------------------------------------------------------------------------- */

static struct {
    uint8_t frame[WIRE_FRAME_MAX]; /* what comes */
    size_t size;
    long left; /* how often; below 0: for ever */
    long received;
    const struct key_grant *grant; /* of whoever sends; NULL: nobody is asked for a key */
    struct wire_msg sent[64], published[64];
    size_t sent_count, published_count;
    struct arena arena;
} bus;

bool bus_wait(struct bus *unused, int fd, int64_t timeout_ms)
{
    const struct timespec pause = {.tv_nsec = 1000000};

    (void)unused;
    (void)fd;
    if (bus.left == 0 && timeout_ms > 0)
        nanosleep(&pause, NULL);
    return false;
}

enum bus_received bus_receive(struct bus *unused, struct bus_frame *ret_frame)
{
    (void)unused;
    if (bus.left == 0)
        return BUS_NOTHING;
    bus.left -= bus.left > 0;
    bus.received++;
    *ret_frame =
        (struct bus_frame){.route = 5, .data = bus.frame, .size = bus.size, .grant = bus.grant};
    return BUS_FRAME;
}

static void keep(struct wire_msg *list, size_t *count, const uint8_t *frame, size_t size)
{
    struct muster_error err;

    if (*count < 64)
        assert_int_equal(wire_decode(frame, size, &bus.arena, &list[(*count)++], &err), MUSTER_OK);
}

bool bus_send(struct bus *unused, uint64_t route, const uint8_t *frame, size_t size)
{
    (void)unused;
    (void)route;
    keep(bus.sent, &bus.sent_count, frame, size);
    return true;
}

void bus_flush(struct bus *unused)
{
    (void)unused;
}

void bus_publish(struct bus *unused, const char *job, const uint8_t *frame, size_t size)
{
    (void)unused;
    (void)job;
    keep(bus.published, &bus.published_count, frame, size);
}

void bus_look_at_keys(struct bus *unused, int64_t now_unix_ms)
{
    (void)unused;
    (void)now_unix_ms;
}

void bus_sender(struct bus *unused, const struct bus_frame *frame, char *ret_text, size_t size)
{
    (void)unused;
    (void)frame;
    snprintf(ret_text, size, "a test");
}

void bus_refused_key(struct bus *unused, uint64_t route)
{
    (void)unused;
    (void)route;
}

const struct key_grant *bus_grant(const struct bus *unused, const char *public_key)
{
    (void)unused;
    (void)public_key;
    return bus.grant;
}

const struct bus_counters *bus_counters(const struct bus *unused)
{
    static const struct bus_counters none;

    (void)unused;
    return &none;
}

const char *bus_command_endpoint(const struct bus *unused)
{
    (void)unused;
    return "";
}

const char *bus_events_endpoint(const struct bus *unused)
{
    (void)unused;
    return "";
}

bool bus_asks_for_keys(const struct bus *unused)
{
    (void)unused;
    return bus.grant != NULL;
}

/* --- the core --------------------------------------------------------------------------------- */

static struct {
    long messages, ticks, loaded, jobs;
    bool writes; /* each input gives a row, and an answer if it is a message */
    const char *lacks;
} core;

struct core *core_create(const struct core_options *options)
{
    (void)options;
    return (struct core *)&core;
}

void core_destroy(struct core **gone)
{
    *gone = NULL;
}

void core_load(struct core *unused, const struct record *row)
{
    (void)unused;
    core.loaded += row->kind == RECORD_JOB;
}

static struct action *add(struct actions *out, enum action_kind kind)
{
    if (out->count == out->capacity) {
        out->capacity = out->capacity == 0 ? 16 : 2 * out->capacity;
        out->items = realloc(out->items, out->capacity * sizeof *out->items);
        assert_non_null(out->items);
    }
    out->items[out->count] = (struct action){.kind = kind, .job = SAMPLE_JOB};
    return &out->items[out->count++];
}

void core_step(struct core *unused, const struct input *input, struct actions *out)
{
    (void)unused;
    core.messages += input->kind == INPUT_MESSAGE;
    core.ticks += input->kind == INPUT_TICK;
    core.jobs += input->kind == INPUT_JOB;
    if (core.writes && input->kind != INPUT_TICK)
        add(out, ACTION_PERSIST)->record = *sample_of(RECORD_JOB);
    if (core.writes && input->kind == INPUT_MESSAGE) {
        struct action *action = add(out, ACTION_SEND);
        action->route = input->route;
        action->message.type = WIRE_ACK;
        action->message.down.job = "";
    }
}

int64_t core_wakeup_boot_ms(const struct core *unused)
{
    (void)unused;
    return INT64_MAX;
}

bool core_input_is_free(const struct wire_msg *message)
{
    return message->type == WIRE_HEARTBEAT;
}

const char *core_lacks(const struct core *unused, const struct wire_msg *message)
{
    (void)unused;
    (void)message;
    return core.lacks;
}

uint64_t core_epoch(const struct core *unused)
{
    (void)unused;
    return 1;
}

uint64_t core_start_id(const struct core *unused)
{
    (void)unused;
    return 2;
}

uint64_t core_last_seq(const struct core *unused, const char *job)
{
    (void)unused;
    (void)job;
    return 0;
}

void core_fill_down(const struct core *unused, const char *job, struct wire_down *ret_down)
{
    (void)unused;
    *ret_down = (struct wire_down){.start_id = 2, .broker_epoch = 1, .job = job, .last_seq = 900};
}

/* --- the disk --------------------------------------------------------------------------------- */

static bool over_quota;
static sqlite3_syscall_ptr real_pwrite;

static ssize_t pwrite_or_quota(int fd, const void *data, size_t size, off_t offset)
{
    if (over_quota) {
        errno = EDQUOT;
        return -1;
    }
    return ((ssize_t(*)(int, const void *, size_t, off_t))real_pwrite)(fd, data, size, offset);
}

static void limit_file_size(rlim_t bytes)
{
    struct rlimit limit = {.rlim_cur = bytes, .rlim_max = RLIM_INFINITY};

    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* --- fixture ---------------------------------------------------------------------------------- */

struct fixture {
    char dir[SCRATCH_PATH_MAX];
    char db[SCRATCH_PATH_MAX + 32];
    struct store *store;
    struct core *core;
    struct loop *loop;
    struct muster_error err;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct store_options options = {.allow_network_fs = true};
    sqlite3_vfs *vfs;

    memset(&bus, 0, sizeof bus);
    memset(&core, 0, sizeof core);
    arena_init(&bus.arena, 0);
    scratch_make(f->dir);
    snprintf(f->db, sizeof f->db, "%s/muster.db", f->dir);
    assert_int_equal(sqlite3_initialize(), SQLITE_OK);
    vfs = sqlite3_vfs_find(NULL);
    real_pwrite = vfs->xGetSystemCall(vfs, "pwrite64");
    assert_non_null(real_pwrite);
    assert_int_equal(vfs->xSetSystemCall(vfs, "pwrite64", (sqlite3_syscall_ptr)pwrite_or_quota),
                     SQLITE_OK);
    assert_int_equal(store_open(f->db, &options, &f->store, &f->err), MUSTER_OK);
    f->core = core_create(NULL);
    f->loop = loop_create(f->store, (struct bus *)&bus, f->core, -1);
    *state = f;
    return 0;
}

static int setup_with_keys(void **state)
{
    static const struct key_grant grant = {
        .name = "a", .role = KEY_NODE, .jobs = "*", .public_key = "a"};
    struct fixture *f;

    setup(state);
    f = *state;
    bus.grant = &grant;
    loop_destroy(&f->loop);
    f->loop = loop_create(f->store, (struct bus *)&bus, f->core, -1);
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);

    limit_file_size(RLIM_INFINITY);
    over_quota = false;
    loop_destroy(&f->loop);
    store_close(&f->store);
    vfs->xSetSystemCall(vfs, "pwrite64", NULL);
    arena_free(&bus.arena);
    scratch_remove(f->dir);
    free(f);
    return 0;
}

static void start(struct fixture *f)
{
    if (loop_start(f->loop, &f->err) != MUSTER_OK)
        fail_msg("%s", f->err.text);
    bus.sent_count = bus.published_count = 0;
}

static void pass(struct fixture *f)
{
    bool stop = false;

    if (loop_pass(f->loop, 5, &stop, &f->err) != MUSTER_OK)
        fail_msg("%s", f->err.text);
}

static void come(enum wire_type type, long times)
{
    struct wire_msg message = {.type = type,
                               .up = {.request = type == WIRE_HEARTBEAT ? 0 : 7,
                                      .job = SAMPLE_JOB,
                                      .role = ROLE_WORKER,
                                      .incarnation = 3}};

    if (type == WIRE_NOTICE)
        message.u.notice = (struct wire_notice){
            .id = "n", .source = "s", .text = "", .kind = NOTICE_PREEMPT, .left_ms = 30000};
    bus.size = wire_encode(&message, bus.frame, sizeof bus.frame);
    assert_true(bus.size > 0);
    bus.left = times;
}

/* --- the tests -------------------------------------------------------------------------------- */

static void under_a_flood_that_never_ends_time_goes_on_with_each_fifth_pass(void **state)
{
    struct fixture *f = *state;

    start(f);
    core.ticks = 0;
    come(WIRE_HEARTBEAT, -1);
    for (int i = 1; i <= 15; i++) {
        long before = bus.received;

        pass(f);
        assert_int_equal(bus.received - before, 4096); /* then it writes and sends what there is */
        assert_int_equal(core.ticks, i / 5);
    }
    bus.left = 10; /* a queue that is drained is time's at once, however late it was */
    pass(f);
    assert_int_equal(core.ticks, 4);
    pass(f);
    assert_int_equal(core.ticks, 5);
    come(WIRE_HEARTBEAT, -1);
    for (int i = 0; i < 4; i++)
        pass(f);
    assert_int_equal(core.ticks, 5);
}

/* Whose words wait for the next turn is not silent. */
static void what_a_key_said_beyond_its_turn_is_taken_before_time_goes_on(void **state)
{
    struct fixture *f = *state;

    start(f);
    core.messages = core.ticks = 0;
    come(WIRE_HEARTBEAT, 2 * TURN_WORK + 1);
    for (int i = 1; i <= 2; i++) {
        pass(f);
        assert_int_equal(core.messages, i * TURN_WORK);
        assert_int_equal(core.ticks, 0);
    }
    pass(f);
    assert_int_equal(core.messages, 2 * TURN_WORK + 1);
    assert_int_equal(core.ticks, 1);
    come(WIRE_HEARTBEAT, 7 * TURN_WORK); /* however many they are, time goes on */
    for (int i = 0; i < 5; i++)
        pass(f);
    assert_int_equal(core.ticks, 2);
}

static void a_start_on_a_full_disk_is_none_and_says_nothing(void **state)
{
    struct fixture *f = *state;

    core.writes = true;
    over_quota = true;
    assert_int_equal(loop_start(f->loop, &f->err), MUSTER_E_STORAGE);
    assert_non_null(strstr(f->err.text, f->db));
    assert_int_equal(bus.sent_count + bus.published_count, 0);
}

static void block(struct fixture *f)
{
    start(f);
    core.writes = true;
    over_quota = true;
    come(WIRE_AT_STEP, 1);
    pass(f);
    assert_int_equal(bus.sent_count, 0);
}

static void a_quota_that_is_full_is_tried_again_until_there_is_room(void **state)
{
    struct fixture *f = *state;
    long messages;

    block(f);
    messages = core.messages;
    for (int i = 0; i < 150; i++) /* of a millisecond: the first retry is in vain */
        pass(f);
    assert_int_equal(bus.sent_count, 0);
    over_quota = false;
    for (int i = 0; i < 3000 && bus.sent_count == 0; i++)
        pass(f);
    assert_int_equal(bus.sent_count, 1); /* the answer of the batch that had waited */
    assert_int_equal(bus.sent[0].type, WIRE_ACK);
    assert_int_equal(core.messages, messages); /* taken once */
    assert_int_equal(store_job_seq(f->store, SAMPLE_JOB), sample_of(RECORD_JOB)->u.job.seq);
}

static void a_notice_that_comes_while_nothing_can_be_written_is_hinted_and_not_taken(void **state)
{
    struct fixture *f = *state;
    long messages;

    block(f);
    messages = core.messages;
    come(WIRE_NOTICE, 1);
    pass(f);
    assert_int_equal(core.messages, messages);
    assert_int_equal(bus.published_count, 1);
    assert_int_equal(bus.published[0].type, WIRE_HINT);
    assert_int_equal(bus.published[0].u.hint.left_ms, 30000);
    assert_int_equal(bus.published[0].down.last_seq, 0); /* nothing that is not written is told */
    assert_int_equal(bus.sent_count, 1);
    assert_int_equal(bus.sent[0].u.ack.code, MUSTER_E_STORAGE);
    assert_int_equal(bus.sent[0].u.ack.request, 7);
}

static void while_nothing_can_be_written_no_time_passes_and_no_job_is_woken(void **state)
{
    struct fixture *f = *state;
    long ticks;

    block(f);
    ticks = core.ticks;
    core.lacks = SAMPLE_JOB;
    come(WIRE_HELLO, 1);
    pass(f);
    assert_int_equal(core.jobs, 0);
    assert_int_equal(core.ticks, ticks);
    assert_int_equal(bus.sent[0].type, WIRE_REFUSED);
    assert_true(bus.sent[0].u.refused.retry);
}

static void a_job_that_has_left_memory_is_loaded_before_the_message(void **state)
{
    struct fixture *f = *state;

    start(f);
    core.writes = true;
    come(WIRE_AT_STEP, 1);
    pass(f); /* its row is there */
    core.loaded = core.jobs = 0;
    core.lacks = SAMPLE_JOB;
    come(WIRE_HELLO, 1);
    pass(f);
    assert_int_equal(core.loaded, 1);
    assert_int_equal(core.jobs, 1);
    assert_int_equal(core.messages, 2);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(under_a_flood_that_never_ends_time_goes_on_with_each_fifth_pass),
        cmocka_unit_test_setup_teardown(
            what_a_key_said_beyond_its_turn_is_taken_before_time_goes_on, setup_with_keys,
            teardown),
        TEST(a_start_on_a_full_disk_is_none_and_says_nothing),
        TEST(a_quota_that_is_full_is_tried_again_until_there_is_room),
        TEST(a_notice_that_comes_while_nothing_can_be_written_is_hinted_and_not_taken),
        TEST(while_nothing_can_be_written_no_time_passes_and_no_job_is_woken),
        TEST(a_job_that_has_left_memory_is_loaded_before_the_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
