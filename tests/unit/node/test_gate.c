/* The gate: counting, closing against a running training thread, and forks. */
#include "node/gate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static int setup(void **state)
{
    struct gate *gate = NULL;

    if (gate_create(&gate, NULL) != MUSTER_OK)
        return -1;
    *state = gate;
    return 0;
}

static int teardown(void **state)
{
    struct gate *gate = *state;

    gate_destroy(&gate);
    return gate != NULL;
}

static void a_new_gate_is_closed_and_stands_at_zero(void **state)
{
    struct gate *gate = *state;

    assert_true(gate_is_closed(gate));
    assert_false(gate_begin(gate));
    assert_int_equal(gate_begun(gate), 0);
    assert_int_equal(gate_done(gate), 0);
    assert_false(gate_forked(gate));
}

static void an_open_gate_counts_begun_and_done(void **state)
{
    struct gate *gate = *state;

    gate_open(gate);
    assert_true(gate_begin(gate));
    assert_int_equal(gate_begun(gate), 1);
    assert_int_equal(gate_done(gate), 0);
    gate_finish(gate);
    assert_true(gate_begin(gate));
    assert_int_equal(gate_begun(gate), 2);
    assert_int_equal(gate_done(gate), 1);
}

/* R4.1 */
static void closing_returns_the_begun_of_that_moment(void **state)
{
    struct gate *gate = *state;

    gate_set(gate, 41, 40);
    gate_open(gate);
    assert_int_equal(gate_close(gate), 41);
    assert_false(gate_begin(gate));
    assert_int_equal(gate_begun(gate), 41); /* a refused boundary leaves no trace */
    assert_int_equal(gate_close(gate), 41); /* closing a closed gate */
}

static void a_due_save_is_met_at_its_step_and_not_before(void **state)
{
    struct gate *gate = *state;

    gate_open(gate);
    gate->due = 2;
    for (int step = 0; step < 2; step++) {
        assert_true(gate_begin(gate));
        gate_finish(gate);
    }
    assert_false(gate_begin(gate));
    gate->due = 4;
    assert_true(gate_begin(gate));
}

/* R4.3 */
static void the_slow_path_moves_begun_and_keeps_the_gate_closed(void **state)
{
    struct gate *gate = *state;

    gate_set(gate, 7, 7);
    gate_admit(gate);
    assert_int_equal(gate_begun(gate), 8);
    assert_true(gate_is_closed(gate));
    gate_take_back(gate);
    assert_int_equal(gate_begun(gate), 7);
    assert_true(gate_is_closed(gate));
    gate_open(gate);
    gate_set(gate, 9, 9);
    assert_false(gate_is_closed(gate));
    assert_int_equal(gate_begun(gate), 9);
}

struct trainer {
    struct gate *gate;
    _Atomic bool stop;
    int64_t admitted;
};

static void *train(void *arg)
{
    struct trainer *t = arg;

    while (!atomic_load(&t->stop))
        if (gate_begin(t->gate)) {
            t->admitted++;
            gate_finish(t->gate);
        }
    return NULL;
}

/* R4.1 */
static void no_step_begins_between_a_closing_and_the_next_opening(void **state)
{
    struct trainer t = {.gate = *state};
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, train, &t), 0);
    for (int round = 0; round < 20000 || gate_done(t.gate) < 1000; round++) {
        int64_t begun, before = gate_begun(t.gate);

        gate_open(t.gate);
        for (int spin = 0; spin < round % 50; spin++)
            (void)gate_begun(t.gate);
        begun = gate_close(t.gate);
        assert_true(begun >= before);
        for (int look = 0; look < 5; look++)
            assert_int_equal(gate_begun(t.gate), begun); /* S may be chosen from it */
    }
    atomic_store(&t.stop, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(gate_begun(t.gate), t.admitted); /* none lost, none counted twice */
    assert_int_equal(gate_done(t.gate), t.admitted);
}

static void a_forked_child_knows_that_it_is_one(void **state)
{
    struct gate *gate = *state;
    int status;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0)
        _exit(gate_forked(gate) ? 7 : 8);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 7);
    assert_false(gate_forked(gate));
}

static void without_help_from_the_kernel_the_process_id_tells(void **state)
{
    struct gate *gate = *state;

    gate->ask_pid = (int32_t)getpid();
    assert_false(gate_forked(gate));
    gate->ask_pid = (int32_t)getppid();
    assert_true(gate_forked(gate));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_new_gate_is_closed_and_stands_at_zero),
        TEST(an_open_gate_counts_begun_and_done),
        TEST(closing_returns_the_begun_of_that_moment),
        TEST(a_due_save_is_met_at_its_step_and_not_before),
        TEST(the_slow_path_moves_begun_and_keeps_the_gate_closed),
        TEST(no_step_begins_between_a_closing_and_the_next_opening),
        TEST(a_forked_child_knows_that_it_is_one),
        TEST(without_help_from_the_kernel_the_process_id_tells),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
