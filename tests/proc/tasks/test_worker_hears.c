/* What a worker does with what it hears, against a broker of this program. */
#include "client/tasks/worker_private.h"
#include "tests/proc/router_stage.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define PATIENCE_S 60
#define QUEUE 7
#define PARTS 12

static struct {
    atomic_bool hang_began, hang_ends, hang_ended, made, freed;
    atomic_bool deaf;       /* to ends: who hears one stops the worker */
    uint64_t part_have;     /* of a long result */
    atomic_bool loses;      /* its index, once it has its task */
    atomic_bool taken_over; /* another process has its index */
    atomic_uint given_back; /* the number of an attempt */
    atomic_uint beats;
    bool confirms;                  /* false: an older broker */
    atomic_uint lost_words;         /* answers of so many beats that tell of work are lost */
    struct wire_task_entry work[2]; /* what a beat is answered with, until that was heard */
    size_t work_count;
    struct wire_lease_entry back, gone;
} world;

static struct router_stage broker;
static muster_worker_t *worker;
static struct muster_error err;

/* --- the broker ------------------------------------------------------------------------------- */

/* False: the answer is lost. */
static bool answer_beat(const struct wire_msg *asked, struct wire_msg *answer)
{
    uint64_t received = asked->u.work_beat.received;

    atomic_fetch_add(&world.beats, 1);
    if (received < world.work_count) {
        answer->type = WIRE_WORK;
        answer->u.work.tasks.items = world.work;
        answer->u.work.tasks.count = world.work_count;
        return true;
    }
    if (received > 0 && atomic_load(&world.lost_words) > 0) {
        atomic_fetch_sub(&world.lost_words, 1);
        return false;
    }
    answer->type = WIRE_WORK_ALIVE;
    answer->u.work_alive.confirmed = world.confirms ? received + 1 : 0;
    answer->u.work_alive.back.items = &world.back;
    answer->u.work_alive.back.count = world.back.queue > 0;
    answer->u.work_alive.gone.items = &world.gone;
    answer->u.work_alive.gone.count = world.gone.queue > 0 && atomic_load(&world.made);
    if (atomic_load(&world.loses)) { /* it has its task */
        atomic_store(&world.taken_over, true);
        answer->down.start_id = 2;
    }
    return true;
}

static void answer_done(const struct wire_msg *asked, struct wire_msg *answer)
{
    static struct wire_lease_entry taken[2];
    size_t count = asked->u.work_done.tasks.count;

    for (size_t i = 0; i < count && i < 2; i++) {
        const struct wire_ended_entry *entry = &asked->u.work_done.tasks.items[i];
        taken[i] = (struct wire_lease_entry){entry->queue, entry->number, entry->attempt,
                                             entry->kind, MUSTER_OK};
        if (entry->state == TASK_QUEUED)
            atomic_store(&world.given_back, (unsigned)entry->number);
        if (entry->kind == TASK_KIND_RESOURCE)
            atomic_store(&world.made, true);
    }
    answer->type = WIRE_WORK_TAKEN;
    answer->u.work_taken.tasks.items = taken;
    answer->u.work_taken.tasks.count = count;
}

/* One every so often, longer in all than the worker waits for the next. */
static void answer_part(const struct wire_msg *asked, struct wire_msg *answer)
{
    const struct wire_work_part *m = &asked->u.work_part;

    muster_worker_stop(worker);
    if (m->offset == world.part_have) {
        usleep(200000);
        world.part_have += m->bytes.size;
    }
    answer->type = WIRE_PART_TAKEN;
    answer->u.part_taken = (struct wire_part_taken){
        .queue = m->queue, .number = m->number, .attempt = m->attempt, .have = world.part_have};
}

static bool answer_it(const struct wire_msg *asked, struct wire_msg *answer)
{
    answer->down.job = "train";
    answer->down.start_id = atomic_load(&world.taken_over) ? 2 : 1;
    if (asked->type == WIRE_WORK_HELLO) {
        bool taken = atomic_load(&world.taken_over);

        answer->type = WIRE_WORK_WELCOME;
        answer->u.work_welcome = (struct wire_work_welcome){
            .nonce = asked->u.work_hello.nonce,
            .code = taken ? MUSTER_E_RANK_TAKEN : MUSTER_OK,
            .text = taken ? "worker 0 of job train is process 5 on h, which lives" : "",
            .retry = taken};
    } else if (asked->type == WIRE_WORK_BEAT) {
        return answer_beat(asked, answer);
    } else if (asked->type == WIRE_WORK_DONE && atomic_load(&world.deaf)) {
        muster_worker_stop(worker);
        return false;
    } else if (asked->type == WIRE_WORK_PART) {
        answer_part(asked, answer);
    } else if (asked->type == WIRE_WORK_DONE) {
        answer_done(asked, answer);
    } else if (asked->type == WIRE_WORK_LEAVE) {
        answer->type = WIRE_WORK_LEFT;
        answer->u.work_left.nonce = asked->u.work_leave.nonce;
    } else {
        return false;
    }
    return true;
}

/* --- the worker ------------------------------------------------------------------------------- */

static int hang(muster_task_t *task, void *arg)
{
    (void)arg;
    atomic_store(&world.hang_began, true);
    while (!atomic_load(&world.hang_ends) && !muster_task_cancelled(task))
        usleep(1000);
    atomic_store(&world.hang_ended, true);
    return 0;
}

static int give_long(muster_task_t *task, void *arg)
{
    static uint8_t result[PARTS * TASK_PART_MAX];

    (void)arg;
    return muster_task_set_result(task, result, sizeof result) == MUSTER_OK ? 0 : 1;
}

static int renew(muster_task_t *task, void *arg)
{
    (void)arg;
    while (!atomic_load(&world.hang_ends))
        muster_task_renew(task);
    return 0;
}

static void free_it(void *value)
{
    (void)value;
    atomic_store(&world.freed, true);
}

static int make(muster_task_t *task, void *arg)
{
    muster_task_set_value(task, arg, free_it);
    return 0;
}

static void give(const char *fn, enum wire_task_kind kind)
{
    router_stage_hold(&broker);
    uint64_t number = ++world.work_count;

    world.work[number - 1] = (struct wire_task_entry){.queue = QUEUE,
                                                      .number = number,
                                                      .attempt = kind == TASK_KIND_TASK,
                                                      .kind = (uint64_t)kind,
                                                      .serial = number,
                                                      .fn = fn};
    router_stage_release(&broker);
}

static void tell(struct wire_lease_entry *entry, struct wire_lease_entry told)
{
    router_stage_hold(&broker);
    *entry = told;
    router_stage_release(&broker);
}

static int setup(void **state)
{
    struct muster_worker_options options = MUSTER_WORKER_OPTIONS_INIT;

    (void)state;
    alarm(PATIENCE_S); /* a hang ends so */
    memset(&world, 0, sizeof world);
    world.confirms = true;
    router_stage_begin(&broker, "tcp://127.0.0.1:*", answer_it);
    options.broker = broker.endpoint;
    options.job = "train";
    options.index = 0;
    options.prefetch = 1;
    assert_int_equal(muster_worker_open(&options, &worker, NULL), MUSTER_OK);
    muster_worker_register(worker, "hang", hang, NULL, NULL);
    muster_worker_register(worker, "renew", renew, NULL, NULL);
    muster_worker_register(worker, "make", make, &world, NULL);
    muster_worker_register(worker, "give_long", give_long, NULL, NULL);
    return 0;
}

static int teardown(void **state)
{
    muster_worker_t *closing = worker;

    (void)state;
    atomic_store(&world.hang_ends, true);
    router_stage_hold(&broker);
    worker = NULL; /* the broker stops it no more */
    router_stage_release(&broker);
    muster_worker_close(&closing, NULL);
    router_stage_end(&broker);
    alarm(0);
    return 0;
}

static void await(const atomic_bool *flag)
{
    while (!atomic_load(flag))
        usleep(1000);
}

/* --- tests ------------------------------------------------------------------------------------ */

static void what_was_not_begun_is_given_back_when_it_is_asked_for(void **state)
{
    (void)state;
    give("hang", TASK_KIND_TASK);
    give("make", TASK_KIND_TASK);
    tell(&world.back, (struct wire_lease_entry){.queue = QUEUE, .number = 2, .attempt = 1});
    assert_int_equal(muster_worker_start(worker, &err), MUSTER_OK);
    while (atomic_load(&world.given_back) == 0)
        usleep(1000);
    assert_int_equal(atomic_load(&world.given_back), 2);
}

/* It has one slot: what it was given beyond that has not begun. */
static void what_waits_for_a_slot_can_be_given_back(void **state)
{
    (void)state;
    give("hang", TASK_KIND_TASK);
    give("hang", TASK_KIND_TASK);
    assert_int_equal(muster_worker_start(worker, &err), MUSTER_OK);
    await(&world.hang_began);
    const unsigned beats = atomic_load(&world.beats) + 2; /* both are confirmed */
    while (atomic_load(&world.beats) < beats)
        usleep(1000);
    tell(&world.back, (struct wire_lease_entry){.queue = QUEUE, .number = 2, .attempt = 1});
    while (atomic_load(&world.given_back) == 0)
        usleep(1000);
    assert_int_equal(atomic_load(&world.given_back), 2);
}

static void values_of_a_queue_that_is_gone_are_freed(void **state)
{
    (void)state;
    give("make", TASK_KIND_RESOURCE);
    tell(&world.gone, (struct wire_lease_entry){.queue = QUEUE});
    assert_int_equal(muster_worker_start(worker, &err), MUSTER_OK);
    await(&world.freed);
}

static void but_not_while_an_attempt_of_it_may_look_at_them(void **state)
{
    unsigned beats;

    (void)state;
    give("make", TASK_KIND_RESOURCE);
    give("hang", TASK_KIND_TASK);
    tell(&world.gone, (struct wire_lease_entry){.queue = QUEUE});
    assert_int_equal(muster_worker_start(worker, &err), MUSTER_OK);
    await(&world.made);
    beats = atomic_load(&world.beats);
    while (atomic_load(&world.beats) < beats + 2) /* it has heard of it */
        usleep(1000);
    assert_false(atomic_load(&world.freed));
    atomic_store(&world.hang_ends, true);
    await(&world.freed);
}

/* It is welcomed by one start of the broker, and refused by the next. */
static void who_has_lost_its_index_to_another_process_says_so(void **state)
{
    (void)state;
    give("hang", TASK_KIND_TASK); /* ends when it is cancelled */
    atomic_store(&world.loses, true);
    assert_int_equal(muster_worker_serve(worker, &err), MUSTER_E_RANK_TAKEN);
    assert_non_null(strstr(err.text, "process 5 on h, which lives"));
    atomic_store(&world.taken_over, false); /* that one has ended */
    atomic_store(&world.loses, false);
    assert_int_equal(muster_worker_start(worker, &err), MUSTER_OK);
}

/* One that was started has nobody to tell, and waits for its index: what runs hears that it is for
 * nothing. */
static void functions_hear_that_the_index_is_anothers(void **state)
{
    (void)state;
    give("hang", TASK_KIND_TASK);
    assert_int_equal(muster_worker_start(worker, &err), MUSTER_OK);
    await(&world.hang_began); /* else it is cancelled before it is called */
    atomic_store(&world.loses, true);
    await(&world.hang_ended);
}

static void serve_says_that_ends_were_not_told(void **state)
{
    (void)state;
    give("make", TASK_KIND_TASK);
    atomic_store(&world.deaf, true);
    worker->tell_ends_ms = 300;
    assert_int_equal(muster_worker_serve(worker, &err), MUSTER_E_BROKER);
    assert_non_null(strstr(err.text, "it does not know that 1 tasks have ended"));
}

static void a_long_result_is_told_as_long_as_parts_are_taken(void **state)
{
    (void)state;
    give("give_long", TASK_KIND_TASK);
    worker->tell_ends_ms = 1500;
    assert_int_equal(muster_worker_serve(worker, &err), MUSTER_OK);
    router_stage_hold(&broker);
    uint64_t have = world.part_have;
    router_stage_release(&broker);
    assert_int_equal(have, PARTS * TASK_PART_MAX);
}

static void a_loop_that_renews_is_heard_ten_times_a_second(void **state)
{
    struct timespec begin, end;
    int64_t took_ms;

    (void)state;
    give("renew", TASK_KIND_TASK);
    assert_int_equal(muster_worker_start(worker, &err), MUSTER_OK);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    usleep(500000); /* of a rate: nothing to wait for */
    clock_gettime(CLOCK_MONOTONIC, &end);
    took_ms = (end.tv_sec - begin.tv_sec + 1) * 1000; /* or less */
    assert_in_range(atomic_load(&world.beats), 0, took_ms / 100 + 10);
    assert_in_range(atomic_load(&world.beats), 3, UINT32_MAX);
}

static void an_attempt_begins_when_a_lost_confirmation_was_repeated(void **state)
{
    (void)state;
    give("hang", TASK_KIND_TASK);
    atomic_store(&world.lost_words, 2);
    assert_int_equal(muster_worker_start(worker, &err), MUSTER_OK);
    await(&world.hang_began);
    router_stage_hold(&broker);
    assert_int_equal(atomic_load(&world.lost_words), 0); /* not before it was told */
    router_stage_release(&broker);
}

static void with_a_broker_that_never_confirms_attempts_begin_all_the_same(void **state)
{
    (void)state;
    world.confirms = false;
    give("hang", TASK_KIND_TASK);
    assert_int_equal(muster_worker_start(worker, &err), MUSTER_OK);
    await(&world.hang_began);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_was_not_begun_is_given_back_when_it_is_asked_for),
        TEST(what_waits_for_a_slot_can_be_given_back),
        TEST(values_of_a_queue_that_is_gone_are_freed),
        TEST(but_not_while_an_attempt_of_it_may_look_at_them),
        TEST(who_has_lost_its_index_to_another_process_says_so),
        TEST(functions_hear_that_the_index_is_anothers),
        TEST(serve_says_that_ends_were_not_told),
        TEST(a_long_result_is_told_as_long_as_parts_are_taken),
        TEST(an_attempt_begins_when_a_lost_confirmation_was_repeated),
        TEST(with_a_broker_that_never_confirms_attempts_begin_all_the_same),
        TEST(a_loop_that_renews_is_heard_ten_times_a_second),
    };

    return cmocka_run_group_tests_name("worker_hears", tests, NULL, NULL);
}
