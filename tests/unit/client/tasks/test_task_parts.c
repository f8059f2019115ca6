/* Parts of a long result over connections that are fast, slow or lossy, in a time of their own: a
 * result comes whole, a beat never waits long behind parts, and what waits in a queue is not sent
 * into it again. */
#include "client/tasks/task_parts.h"

#include "schema/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#define QUEUE_MAX 4096
#define SIZE ((uint64_t)TASK_RESULT_MAX / 4)

struct frame {
    uint64_t offset, bytes;
    int64_t at_ms; /* when it is through */
};

/* One way: frames leave one behind the other, so many bytes in a ms; answers are small and need
 * `back_ms`. */
static struct {
    uint64_t bytes_per_ms;
    int64_t back_ms;
    unsigned lost_of; /* one frame in so many; 0 = none */
    bool shut;        /* nothing can be sent */
    unsigned dice;
    int64_t now_ms, free_ms; /* when the last frame is through */
    struct frame way[QUEUE_MAX];
    size_t first, count;
    uint64_t have; /* of the other end */
    struct {
        int64_t at_ms;
        uint64_t have;
    } answers[QUEUE_MAX];
    size_t answers_first, answers_count;
    uint64_t sent_bytes;
    int64_t longest_ms; /* that a beat would have had to wait */
} net;

static struct task_parts parts;
static struct task_window window;

static int setup(void **state)
{
    (void)state;
    memset(&net, 0, sizeof net);
    net.now_ms = 1000000;
    parts = (struct task_parts){0};
    window = (struct task_window){0};
    return 0;
}

static uint64_t send_part(void *arg, uint64_t offset)
{
    struct frame *frame = &net.way[(net.first + net.count) % QUEUE_MAX];
    uint64_t left = SIZE - offset;

    (void)arg;
    if (net.shut)
        return 0;
    assert_true(net.count < QUEUE_MAX);
    *frame = (struct frame){.offset = offset, .bytes = left < TASK_PART_MAX ? left : TASK_PART_MAX};
    net.free_ms = (net.free_ms > net.now_ms ? net.free_ms : net.now_ms) +
                  (int64_t)((frame->bytes + net.bytes_per_ms - 1) / net.bytes_per_ms);
    frame->at_ms = net.free_ms;
    net.count++;
    net.sent_bytes += frame->bytes;
    return frame->bytes;
}

static bool is_lost(void)
{
    net.dice = net.dice * 1103515245 + 12345;
    return net.lost_of > 0 && (net.dice >> 16) % net.lost_of == 0;
}

/* As the broker takes them: in order; each is answered. */
static void arrive(void)
{
    for (; net.count > 0 && net.way[net.first].at_ms <= net.now_ms; net.count--) {
        const struct frame *frame = &net.way[net.first];
        size_t slot = (net.answers_first + net.answers_count) % QUEUE_MAX;

        net.first = (net.first + 1) % QUEUE_MAX;
        if (is_lost())
            continue;
        if (frame->offset == net.have)
            net.have += frame->bytes;
        net.answers[slot].at_ms = net.now_ms + net.back_ms;
        net.answers[slot].have = net.have;
        net.answers_count++;
    }
    for (; net.answers_count > 0 && net.answers[net.answers_first].at_ms <= net.now_ms;
         net.answers_count--) {
        task_parts_have(&parts, &window, net.answers[net.answers_first].have, net.now_ms);
        net.answers_first = (net.answers_first + 1) % QUEUE_MAX;
    }
}

static void step(void)
{
    int64_t wait_ms = HEARTBEAT_MS;
    size_t ahead;

    net.now_ms++;
    arrive();
    ahead = task_parts_ahead(&window);
    task_parts_say(&parts, &window, SIZE, &ahead, net.now_ms, &wait_ms, send_part, NULL);
    assert_in_range(wait_ms, 0, HEARTBEAT_MS);
    if (net.free_ms - net.now_ms > net.longest_ms)
        net.longest_ms = net.free_ms - net.now_ms;
}

/* ms that it took. */
static int64_t run(int64_t most_ms)
{
    int64_t began_ms = net.now_ms;

    while (parts.have < SIZE) {
        step();
        assert_true(net.now_ms - began_ms <= most_ms);
    }
    assert_int_equal(net.have, SIZE);
    return net.now_ms - began_ms;
}

/* Parts that were sent though they were, or were about to be, at their place. */
static size_t spare_parts(void)
{
    return (size_t)((net.sent_bytes - net.have) / TASK_PART_MAX);
}

/* --- tests ------------------------------------------------------------------------------------ */

/* R22.8 */
static void on_a_fast_connection_answers_are_not_waited_for(void **state)
{
    (void)state;
    net.bytes_per_ms = 100000;
    net.back_ms = 40; /* a commit */
    run((int64_t)(SIZE / TASK_PART_MAX / TASK_PARTS_AHEAD + 8) * 41);
    assert_int_equal(window.parts, TASK_PARTS_AHEAD);
    assert_int_equal(spare_parts(), 0);
}

/* 100 KB a second: sixteen parts would be eight seconds, and sent again each 200 ms a queue without
 * end. */
static void on_a_slow_connection_a_beat_waits_a_second_and_parts_are_not_repeated(void **state)
{
    (void)state;
    net.bytes_per_ms = 100;
    net.back_ms = 5;
    run((int64_t)(SIZE / 100 * 11 / 10));
    assert_in_range(net.longest_ms, 0, 3000); /* the first parts, before anything was answered */
    assert_in_range(spare_parts(), 0, 2 * TASK_PARTS_FIRST);
    net.longest_ms = 0;
    parts = (struct task_parts){0};
    net.have = net.sent_bytes = 0;
    net.count = net.answers_count = 0;
    net.free_ms = 0;
    run((int64_t)(SIZE / 100 * 11 / 10));
    assert_in_range(net.longest_ms, 0, TASK_PARTS_SLOW_MS + HEARTBEAT_MS / 2);
    assert_int_equal(spare_parts(), 0);
}

/* So slow that each part takes longer than the broker waits for a word: it is one. */
static void on_the_slowest_one_part_at_a_time_gets_through(void **state)
{
    (void)state;
    net.bytes_per_ms = 10;
    net.back_ms = 5;
    run((int64_t)(SIZE / 10 * 12 / 10));
    assert_int_equal(window.parts, 1);
    assert_in_range(spare_parts(), 0, 3 * TASK_PARTS_FIRST);
}

static void one_that_slows_down_gets_fewer_and_more_again(void **state)
{
    (void)state;
    net.bytes_per_ms = 10000;
    net.back_ms = 5;
    while (parts.have < SIZE / 4)
        step();
    assert_int_equal(window.parts, TASK_PARTS_AHEAD);
    net.bytes_per_ms = 100;
    while (parts.have < SIZE / 2)
        step();
    assert_in_range(window.parts, 1, 3);
    net.bytes_per_ms = 10000;
    run(60000);
    assert_int_equal(window.parts, TASK_PARTS_AHEAD);
    assert_in_range(spare_parts(), 0, 2 * TASK_PARTS_AHEAD);
}

static void what_was_lost_comes_again(void **state)
{
    (void)state;
    net.bytes_per_ms = 10000;
    net.back_ms = 5;
    net.lost_of = 12;
    run(120000);
    assert_in_range(spare_parts(), 1, SIZE / TASK_PART_MAX * 2);
}

static void a_broker_that_begins_anew_gets_all_of_it(void **state)
{
    (void)state;
    net.bytes_per_ms = 10000;
    net.back_ms = 5;
    while (parts.have < SIZE / 2)
        step();
    net.have = 0;
    net.count = net.answers_count = 0;
    window = (struct task_window){0};
    task_parts_again(&parts);
    assert_true(parts.have >= SIZE / 2); /* as far as is known */
    run(5000);
}

/* What cannot be sent is not waited for as if it had been. */
static void a_connection_that_takes_nothing_is_tried_soon_again(void **state)
{
    size_t ahead = task_parts_ahead(&window);
    int64_t wait_ms = HEARTBEAT_MS;

    (void)state;
    net.bytes_per_ms = 10000;
    net.shut = true;
    task_parts_say(&parts, &window, SIZE, &ahead, net.now_ms, &wait_ms, send_part, NULL);
    assert_in_range(wait_ms, 1, RESEND_MIN_MS);
    assert_int_equal(parts.sent, 0);
    net.shut = false;
    run(5000);
}

/* All results of one worker share what may be under way (R22.8). */
static void two_results_share_what_may_be_under_way(void **state)
{
    struct task_parts other = {0};
    size_t ahead = task_parts_ahead(&window);
    int64_t wait_ms = HEARTBEAT_MS;

    (void)state;
    net.bytes_per_ms = 10000;
    task_parts_say(&parts, &window, (uint64_t)3 * TASK_PART_MAX, &ahead, net.now_ms, &wait_ms,
                   send_part, NULL);
    task_parts_say(&other, &window, SIZE, &ahead, net.now_ms, &wait_ms, send_part, NULL);
    assert_int_equal(net.count, TASK_PARTS_FIRST);
    assert_int_equal(other.sent, TASK_PART_MAX);
    assert_int_equal(ahead, 0);
}

static uint64_t count_part(void *arg, uint64_t offset)
{
    (void)offset;
    ++*(unsigned *)arg;
    return TASK_PART_MAX;
}

/* The whole of one result, behind another whose parts do not arrive; whether answers say so. */
static void run_behind(struct task_parts *bad, bool is_answered, unsigned *tries)
{
    net.bytes_per_ms = 10000;
    net.back_ms = 5;
    window.parts = 1;
    for (int64_t began_ms = net.now_ms; parts.have < SIZE; net.now_ms++) {
        int64_t wait_ms = HEARTBEAT_MS;
        size_t ahead = task_parts_ahead(&window);
        unsigned before = *tries;

        arrive();
        task_parts_say(bad, &window, SIZE, &ahead, net.now_ms, &wait_ms, count_part, tries);
        assert_true(wait_ms > 0);
        task_parts_say(&parts, &window, SIZE, &ahead, net.now_ms, &wait_ms, send_part, NULL);
        if (is_answered && *tries > before)
            task_parts_failed(bad, net.now_ms);
        assert_in_range(wait_ms, 0, HEARTBEAT_MS);
        assert_true(net.now_ms - began_ms < 60000);
    }
}

static void try_alone(struct task_parts *bad, unsigned *tries)
{
    int64_t wait_ms = HEARTBEAT_MS;
    size_t ahead = 1;

    task_parts_say(bad, &window, SIZE, &ahead, net.now_ms, &wait_ms, count_part, tries);
}

/* Each answer to the lower one is that it cannot be read. */
static void one_that_always_fails_leaves_the_window_to_others(void **state)
{
    struct task_parts bad = {0};
    unsigned tries = 0;

    (void)state;
    run_behind(&bad, true, &tries);
    net.now_ms += 10 * HEARTBEAT_MS;
    for (unsigned before = tries; tries == before; net.now_ms++)
        try_alone(&bad, &tries);
    task_parts_have(&bad, &window, TASK_PART_MAX, net.now_ms); /* it is well again */
    assert_int_equal(bad.paused_to_ms, 0);
    assert_in_range(tries, 2, 60000 / RESEND_MIN_MS);
}

/* The lower one is heard by nobody: each of its places is held in vain. */
static void one_that_is_never_answered_leaves_the_window_to_others(void **state)
{
    struct task_parts bad = {0};
    unsigned tries = 0, before;

    (void)state;
    run_behind(&bad, false, &tries);
    before = tries;
    for (int64_t began_ms = net.now_ms; tries < before + 3; net.now_ms++) { /* nor is it given up */
        try_alone(&bad, &tries);
        assert_true(net.now_ms - began_ms < 8 * TASK_PARTS_AGAIN_MAX_MS);
    }
    task_parts_have(&bad, &window, TASK_PART_MAX, net.now_ms);
    assert_int_equal(bad.paused_to_ms, 0);
}

enum { UNHEARD = 12 };

/* As many as one worker may well hold: while one leaves the place the next would take it, and the
 * first again. */
static void many_that_are_never_answered_leave_the_window_to_others(void **state)
{
    struct task_parts bad[UNHEARD] = {{0}};
    unsigned tries[UNHEARD] = {0};

    (void)state;
    net.bytes_per_ms = 10000;
    net.back_ms = 5;
    window.parts = 1;
    for (int64_t began_ms = net.now_ms; parts.have < SIZE; net.now_ms++) {
        int64_t wait_ms = HEARTBEAT_MS;
        size_t ahead = task_parts_ahead(&window);

        arrive();
        for (size_t i = 0; i < UNHEARD; i++)
            task_parts_say(&bad[i], &window, SIZE, &ahead, net.now_ms, &wait_ms, count_part,
                           &tries[i]);
        task_parts_say(&parts, &window, SIZE, &ahead, net.now_ms, &wait_ms, send_part, NULL);
        assert_true(net.now_ms - began_ms < 5 * 60000);
    }
    for (size_t i = 0; i < UNHEARD; i++)
        assert_true(tries[i] > 0);
}

/* A broker that took nothing for minutes does again: what was paused for the others' sake is sent
 * with the first answer. */
static void after_an_outage_nobody_waits_for_a_pause(void **state)
{
    struct task_parts all[UNHEARD] = {{0}};
    unsigned tries[UNHEARD], before[UNHEARD] = {0}, left = UNHEARD;
    int64_t heard_ms = net.now_ms + 10 * 60000;

    (void)state;
    memset(tries, 0, sizeof tries);
    window.parts = 1;
    for (; left > 0; net.now_ms++) {
        int64_t wait_ms = HEARTBEAT_MS;
        size_t ahead = task_parts_ahead(&window);

        for (size_t i = 0; i < UNHEARD; i++)
            if (all[i].have == 0)
                task_parts_say(&all[i], &window, TASK_PART_MAX, &ahead, net.now_ms, &wait_ms,
                               count_part, &tries[i]);
        for (size_t i = 0; i < UNHEARD; i++) {
            if (net.now_ms >= heard_ms && tries[i] > before[i]) {
                task_parts_have(&all[i], &window, TASK_PART_MAX, net.now_ms);
                left--;
            }
            before[i] = tries[i];
        }
        assert_true(net.now_ms - heard_ms < 2 * TASK_PARTS_AGAIN_MAX_MS);
    }
}

#define TEST(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(on_a_fast_connection_answers_are_not_waited_for),
        TEST(on_a_slow_connection_a_beat_waits_a_second_and_parts_are_not_repeated),
        TEST(on_the_slowest_one_part_at_a_time_gets_through),
        TEST(one_that_slows_down_gets_fewer_and_more_again),
        TEST(what_was_lost_comes_again),
        TEST(a_broker_that_begins_anew_gets_all_of_it),
        TEST(a_connection_that_takes_nothing_is_tried_soon_again),
        TEST(two_results_share_what_may_be_under_way),
        TEST(one_that_always_fails_leaves_the_window_to_others),
        TEST(one_that_is_never_answered_leaves_the_window_to_others),
        TEST(many_that_are_never_answered_leave_the_window_to_others),
        TEST(after_an_outage_nobody_waits_for_a_pause),
    };

    return cmocka_run_group_tests_name("task_parts", tests, NULL, NULL);
}
