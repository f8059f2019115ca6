/* node_allocations - see node_allocations.h.
 * The story: join, three steps, an operator's save, a few steps more, close. */
#include "tests/faults/node_allocations.h"

#include "schema/manifest/manifest.h"
#include "tests/faults/allocations.h"
#include "tests/support/lone_node.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

#define EVENTS_MAX 64
#define LIMIT_MS 40000 /* more than every bound of a node together */
#define ROUND_MS 3000  /* the broker's bound, here */
#define NAME_MS 300    /* who has no manifest by then leaves it to the next generation */
#define EARLY_STEPS 3

static struct {
    struct wire_event events[EVENTS_MAX]; /* by seq - 1; no pointers but `me` */
    struct wire_member me;
    bool started, frozen, decided, committed, given_up, left;
    bool named; /* the checkpoint has its manifest and its name */
    int64_t save_step, round_until, name_until;
    struct wire_file file; /* of FILES */
    char file_path[256], file_checksum[80];
    char wrong[400];
} told;

static void say(struct wire_event event)
{
    assert_true(lone.seq < EVENTS_MAX);
    told.events[lone.seq] = event;
    lone_say(event);
}

static void say_of_round(enum wire_event_kind kind, int64_t step, uint64_t flags)
{
    told.me = (struct wire_member){.rank = 0, .incarnation = lone.incarnation, .flags = flags};
    say((struct wire_event){
        .kind = kind, .round = 1, .cause = CAUSE_OPERATOR, .step = step, .members = {&told.me, 1}});
}

static void say_again(uint64_t from_seq)
{
    for (uint64_t seq = from_seq; seq >= 1 && seq <= lone.seq; seq++) {
        struct wire_msg message = {.type = WIRE_EVENT};

        message.u.event = told.events[seq - 1];
        message.u.event.seq = seq;
        message.u.event.generation = 1;
        lone_transmit(&message, false);
    }
}

static void welcome(const struct wire_msg *hello)
{
    struct wire_msg reply = {.type = WIRE_WELCOME};

    lone.incarnation = hello->up.incarnation;
    reply.u.welcome = (struct wire_welcome){.speaks = WIRE_SPEAKS,
                                            .nonce = hello->u.hello.nonce,
                                            .generation = 1,
                                            .world_size = 2,
                                            .events_endpoint = lone.events,
                                            .heartbeat_ms = 200};
    lone_transmit(&reply, false);
    if (lone.seq == 0)
        say((struct wire_event){.kind = EVENT_RESUME});
}

static void acknowledge(uint64_t request)
{
    struct wire_msg reply = {.type = WIRE_ACK};

    reply.u.ack.request = request;
    if (request > 0)
        lone_transmit(&reply, false);
}

static void keep_file(const struct wire_files *files)
{
    if (files->files.count == 0)
        return;
    told.file = files->files.items[0];
    snprintf(told.file_path, sizeof told.file_path, "%s", told.file.path);
    snprintf(told.file_checksum, sizeof told.file_checksum, "%s", told.file.checksum);
    told.file.path = told.file_path;
    told.file.checksum = told.file_checksum;
}

/* What a broker derives from FILES and SAVED. */
static void send_manifest(void)
{
    const struct manifest_shard shard = {
        .incarnation = lone.incarnation, .files = &told.file, .file_count = 1};
    const struct manifest manifest = {.job = "agent",
                                      .generation = 1,
                                      .round = 1,
                                      .step = told.save_step,
                                      .layout = LAYOUT_REPLICATED,
                                      .world_size = 2,
                                      .epoch = -1,
                                      .step_in_epoch = -1,
                                      .data_position = -1,
                                      .total_run_calls = told.save_step,
                                      .created_unix_ms = 1,
                                      .cause = wire_cause_name(CAUSE_OPERATOR),
                                      .shards = &shard,
                                      .shard_count = 1};
    struct wire_msg reply = {.type = WIRE_MANIFEST_CHUNK};
    char *text = NULL;
    size_t size = 0;

    assert_int_equal(manifest_render(&manifest, &text, &size, NULL), MUSTER_OK);
    reply.u.manifest_chunk = (struct wire_manifest_chunk){.checkpoint = 1,
                                                          .round_generation = 1,
                                                          .step = told.save_step,
                                                          .total = size,
                                                          .bytes = {(const uint8_t *)text, size}};
    lone_transmit(&reply, false);
    free(text);
}

static void saved(int64_t step)
{
    if (step != told.save_step)
        snprintf(told.wrong, sizeof told.wrong, "saved step %" PRId64 " instead of %" PRId64, step,
                 told.save_step);
    if (!told.committed && !told.given_up)
        say((struct wire_event){.kind = EVENT_COMMIT,
                                .round = 1,
                                .cause = CAUSE_OPERATOR,
                                .step = told.save_step,
                                .checkpoint = 1,
                                .incarnation = lone.incarnation});
    if (!told.committed)
        told.name_until = lone_now_ms() + NAME_MS;
    told.committed = true;
}

static void answer(const struct wire_msg *m)
{
    struct wire_msg reply = {.type = WIRE_ALIVE};

    acknowledge(m->up.request);
    switch (m->type) {
    case WIRE_HELLO:
        welcome(m);
        return;
    case WIRE_HEARTBEAT:
        lone_transmit(&reply, false);
        return;
    case WIRE_PROBE_GET:
        reply.type = WIRE_PROBE;
        reply.u.probe.nonce = m->u.probe_get.nonce;
        lone_transmit(&reply, true);
        return;
    case WIRE_EVENTS_GET:
        say_again(m->u.events_get.from_seq);
        return;
    case WIRE_RESTORED:
        if (!told.started)
            say((struct wire_event){.kind = EVENT_STARTED});
        told.started = true;
        return;
    case WIRE_REPORT:
        if (!told.decided) {
            told.save_step = m->u.report.begun + 2;
            say_of_round(EVENT_DECISION, told.save_step, MEMBER_FLAG_WRITER);
        }
        told.decided = true;
        return;
    case WIRE_SAVED:
        saved(m->u.saved.step);
        return;
    case WIRE_FILES:
        keep_file(&m->u.files);
        return;
    case WIRE_MANIFEST_GET:
        send_manifest();
        return;
    case WIRE_MANIFEST_DONE:
        if (!told.named)
            say((struct wire_event){
                .kind = EVENT_MANIFEST, .round = 1, .checkpoint = 1, .step = told.save_step});
        told.named = true;
        return;
    case WIRE_SAVE_FAILED:
        if (!told.committed && !told.given_up)
            say((struct wire_event){.kind = EVENT_ABORT, .round = 1, .rank = 0});
        told.given_up = true;
        return;
    case WIRE_LEAVE:
        told.left = true;
        return;
    default:
        return;
    }
}

static void serve(void)
{
    static uint8_t frame[WIRE_FRAME_MAX];
    zmq_pollitem_t item = {.socket = lone.router, .events = ZMQ_POLLIN};
    char subscription[64];
    int size;

    while (zmq_recv(lone.xpub, subscription, sizeof subscription, ZMQ_DONTWAIT) >= 0)
        continue; /* an XPUB subscribes only when it is read */
    if (zmq_poll(&item, 1, 5) != 1)
        return;
    lone.route_size = zmq_recv(lone.router, lone.route, sizeof lone.route, 0);
    size = zmq_recv(lone.router, frame, sizeof frame, 0);
    arena_reset(&lone.arena);
    assert_int_equal(wire_decode(frame, (size_t)size, &lone.arena, &lone.heard, NULL), MUSTER_OK);
    answer(&lone.heard);
}

static void go_on(void)
{
    if (told.started && !told.frozen && atomic_load(&lone.in_step) >= EARLY_STEPS) {
        say_of_round(EVENT_FREEZE, -1, 0);
        told.frozen = true;
        told.round_until = lone_now_ms() + ROUND_MS;
    }
    if (told.frozen && !told.committed && !told.given_up && lone_now_ms() > told.round_until) {
        say((struct wire_event){.kind = EVENT_ABORT, .round = 1, .rank = 0});
        told.given_up = true;
    }
    if (told.given_up || (told.committed && (told.named || lone_now_ms() > told.name_until) &&
                          atomic_load(&lone.in_step) > told.save_step + EARLY_STEPS))
        atomic_store(&lone.stop, true);
}

/* How the node's life ended must be told by it. */
static void judge(void)
{
    if (lone.open_status != MUSTER_OK && lone.error.text[0] == '\0')
        snprintf(told.wrong, sizeof told.wrong, "open: %s, and not a word",
                 muster_status_name(lone.open_status));
    if (lone.open_status == MUSTER_OK && lone.run_status != MUSTER_OK && lone.error.text[0] == '\0')
        snprintf(told.wrong, sizeof told.wrong, "run: %s, and not a word",
                 muster_status_name(lone.run_status));
    if (lone.open_status == MUSTER_OK && lone.run_status == MUSTER_OK && !told.committed &&
        !told.given_up)
        snprintf(told.wrong, sizeof told.wrong, "nothing was saved, and not a word");
}

static void tell(uint64_t at)
{
    int64_t until;
    bool ended = false;

    memset(&told, 0, sizeof told);
    if (lone_setup(NULL) != 0)
        abort();
    allocations_plan(ALLOCATIONS_OWN, at, false);
    allocations_of_others(true);
    lone_start();
    until = lone_now_ms() + LIMIT_MS;
    while (!ended && lone_now_ms() < until) {
        serve();
        go_on();
        ended = pthread_tryjoin_np(lone.thread, NULL) == 0;
    }
    allocations_of_others(false);
    if (!ended) {
        printf("    WRONG, allocation %" PRIu64
               ": it hangs (started %d, decided %d, committed %d, named %d, given up %d, "
               "left %d; step %d of %" PRId64 ", told to stop %d)\n",
               at, told.started, told.decided, told.committed, told.named, told.given_up, told.left,
               atomic_load(&lone.in_step), told.save_step, atomic_load(&lone.stop));
        fflush(stdout);
        abort();
    }
    judge();
    lone_teardown(NULL);
}

static bool run(uint64_t at, unsigned *failures, bool *good)
{
    const size_t descriptors = scratch_count("/proc/self/fd");
    const size_t threads = scratch_count("/proc/self/task");

    tell(at);
    *failures += lone.open_status != MUSTER_OK || lone.run_status != MUSTER_OK || told.given_up;
    if (told.wrong[0] == '\0' && scratch_count("/proc/self/fd") != descriptors)
        snprintf(told.wrong, sizeof told.wrong, "a descriptor stays open");
    if (told.wrong[0] == '\0' && scratch_count("/proc/self/task") != threads)
        snprintf(told.wrong, sizeof told.wrong, "a thread stays");
    if (told.wrong[0] != '\0') {
        printf("    WRONG, allocation %" PRIu64 ": %s\n", at, told.wrong);
        *good = false;
    }
    return allocations_hits() > 0;
}

static void prepare(void)
{
    unsigned failures = 0;
    bool good = true;

    allocations_prepare();
    if (access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 1);
    run(0, &failures, &good); /* nothing fails, and what is made once is there */
}

int node_allocations_sweep(uint64_t stride, uint64_t points_min)
{
    uint64_t points = 0;
    unsigned failures = 0;
    bool good = true;

    prepare();
    for (uint64_t at = 1; run(at, &failures, &good); at += stride)
        points++;
    printf("%" PRIu64 " points (never below %" PRIu64 "), %u of them ended or failed something\n",
           points, points_min, failures);
    return good && points >= points_min ? 0 : 1;
}

int node_allocations_replay(uint64_t from, uint64_t to)
{
    unsigned failures = 0;
    bool good = true;

    prepare();
    for (uint64_t at = from; at <= to; at++) {
        int64_t since = lone_now_ms();

        run(at, &failures, &good);
        printf("allocation %" PRIu64 ": %" PRId64 " ms, open %s, run %s, committed %d\n", at,
               lone_now_ms() - since, muster_status_name(lone.open_status),
               muster_status_name(lone.run_status), told.committed);
        fflush(stdout);
    }
    return good ? 0 : 1;
}
