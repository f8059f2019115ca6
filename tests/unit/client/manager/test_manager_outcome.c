/* How several saves that failed are told, by a manager whose node knows how they went. */
#include "client/manager/manager_private.h"
#include "node/agent/agent_state.h"
#include "node/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

static struct agent agent;
static struct muster_node node;
static struct muster_manager manager;
static char logged[4096];

static void take_log(int level, const char *text, void *arg)
{
    (void)level;
    (void)arg;
    snprintf(logged + strlen(logged), sizeof logged - strlen(logged), "%s\n", text);
}

static int setup(void **state)
{
    pthread_condattr_t monotonic;

    (void)state;
    memset(&agent, 0, sizeof agent);
    memset(&node, 0, sizeof node);
    memset(&manager, 0, sizeof manager);
    logged[0] = '\0';
    node.agent = &agent;
    node.options.log = take_log;
    node.log_level = 3;
    manager.node = &node;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    if (pthread_cond_init(&agent.changed, &monotonic) != 0)
        return 1;
    return pthread_mutex_init(&agent.mutex, NULL);
}

static int teardown(void **state)
{
    (void)state;
    pthread_cond_destroy(&agent.changed);
    return pthread_mutex_destroy(&agent.mutex);
}

static void saved(uint64_t round, enum member_outcome_state how, const char *text)
{
    struct member_outcome *outcome = &agent.view.outcomes[manager.pending_count];

    *outcome = (struct member_outcome){.round = round,
                                       .step = (int64_t)round * 10 + 1,
                                       .state = how,
                                       .code = how == OUTCOME_ABORTED ? MUSTER_E_SAVE : MUSTER_OK,
                                       .rank = -1};
    snprintf(outcome->text, sizeof outcome->text, "%s", text);
    manager_outcome_add(&manager, round, (int64_t)round * 10);
}

static void the_first_is_returned_and_each_other_is_in_the_log(void **state)
{
    struct muster_error error;

    (void)state;
    saved(1, OUTCOME_ABORTED, "the first disk");
    saved(2, OUTCOME_COMMITTED, "");
    saved(3, OUTCOME_ABORTED, "the second disk");
    saved(4, OUTCOME_ABORTED, "the third disk");
    assert_int_equal(manager_outcome_end(&manager, &error), MUSTER_E_SAVE);
    assert_non_null(strstr(error.text, "step 10 was not saved"));
    assert_null(strstr(logged, "the first disk"));
    assert_non_null(strstr(logged, "step 30 was not saved (round 3): the second disk"));
    assert_non_null(strstr(logged, "step 40 was not saved (round 4): the third disk"));
    assert_int_equal(manager.pending_count, 0);
    assert_int_equal(manager.latest, 20);
    assert_int_equal(manager.failed, 40);
}

/* Its close stood for save_timeout_ms, 600 s, though nobody was there to commit anything. */
static void nobody_waits_at_the_end_for_a_broker_that_is_gone(void **state)
{
    struct muster_error error;
    int64_t began_ms = clock_ms(CLOCK_MONOTONIC);

    (void)state;
    manager.save_timeout_ms = 600000;
    manager.silence_ms = 300;
    atomic_store(&agent.unheard, true);
    saved(1, OUTCOME_OPEN, "");
    saved(2, OUTCOME_ABORTED, "the disk");
    saved(3, OUTCOME_OPEN, "");
    assert_int_equal(manager_outcome_end(&manager, &error), MUSTER_E_SAVE);
    assert_in_range(clock_ms(CLOCK_MONOTONIC) - began_ms, 300, 5000);
    assert_non_null(strstr(logged, "step 10"));
    assert_non_null(strstr(logged, "no broker is heard"));
    assert_non_null(strstr(logged, "given up")); /* of who leaves nothing is committed later */
    assert_int_equal(manager.pending_count, 2);
}

static void nobody_waits_for_a_broker_once_the_job_is_over_for_it(void **state)
{
    struct muster_error error;
    int64_t began_ms = clock_ms(CLOCK_MONOTONIC);

    (void)state;
    manager.save_timeout_ms = manager.silence_ms = 600000;
    atomic_store(&agent.unheard, true);
    agent.view.mode = VIEW_END;
    saved(1, OUTCOME_OPEN, "");
    assert_int_equal(manager_outcome_end(&manager, &error), MUSTER_E_TIMEOUT);
    assert_true(clock_ms(CLOCK_MONOTONIC) - began_ms < 5000);
}

static void *come_back(void *arg)
{
    const struct timespec moment = {.tv_nsec = 200000000};

    nanosleep(&moment, NULL);
    pthread_mutex_lock(&agent.mutex);
    atomic_store(&agent.unheard, false);
    agent.view.outcomes[0].state = OUTCOME_COMMITTED;
    pthread_cond_broadcast(&agent.changed);
    pthread_mutex_unlock(&agent.mutex);
    return arg;
}

/* Its close gave the job's last save up at once. */
static void a_broker_that_starts_again_meanwhile_is_waited_for(void **state)
{
    struct muster_error error;
    pthread_t broker;

    (void)state;
    manager.save_timeout_ms = 600000;
    manager.silence_ms = 30000;
    atomic_store(&agent.unheard, true);
    saved(1, OUTCOME_OPEN, "");
    assert_int_equal(pthread_create(&broker, NULL, come_back, NULL), 0);
    assert_int_equal(manager_outcome_end(&manager, &error), MUSTER_OK);
    pthread_join(broker, NULL);
    assert_int_equal(manager.latest, 10);
    assert_int_equal(manager.pending_count, 0);
}

/* It was not found out: each look began to be patient again. Seconds of a condition of the other
 * clock are over at once. */
static void a_node_thread_that_hangs_is_found_at_the_end_as_well(void **state)
{
    struct muster_error error;
    int64_t began_ms = clock_ms(CLOCK_MONOTONIC);

    (void)state;
    pthread_cond_destroy(&agent.changed);
    assert_int_equal(pthread_cond_init(&agent.changed, NULL), 0);
    manager.save_timeout_ms = manager.silence_ms = 20000;
    saved(1, OUTCOME_OPEN, "");
    saved(2, OUTCOME_OPEN, "");
    assert_int_equal(manager_outcome_end(&manager, &error), MUSTER_E_FAULT);
    assert_non_null(strstr(error.text, "callback"));
    assert_true(clock_ms(CLOCK_MONOTONIC) - began_ms < 10000);
}

/* It aborted with the same code that a wait ends with. */
static void one_that_took_too_long_is_told_beside_others(void **state)
{
    struct muster_error error;

    (void)state;
    saved(1, OUTCOME_ABORTED, "it stood still");
    agent.view.outcomes[0].code = MUSTER_E_TIMEOUT;
    saved(2, OUTCOME_ABORTED, "the disk");
    assert_int_equal(manager_outcome_end(&manager, &error), MUSTER_E_TIMEOUT);
    assert_non_null(strstr(error.text, "it stood still"));
    assert_non_null(strstr(logged, "the disk"));
    assert_int_equal(manager.pending_count, 0);
}

static void one_that_does_not_end_is_told_beside_one_that_failed(void **state)
{
    struct muster_error error;

    (void)state; /* and save_timeout_ms is 0 */
    saved(1, OUTCOME_OPEN, "");
    saved(2, OUTCOME_ABORTED, "the disk");
    assert_int_equal(manager_outcome_end(&manager, &error), MUSTER_E_SAVE);
    assert_non_null(strstr(error.text, "the disk"));
    assert_non_null(strstr(logged, "the save of step 10 (round 1) is still being written"));
    assert_non_null(strstr(logged, "`muster rounds`"));
}

static void a_broker_that_is_gone_is_what_a_save_waits_for(void **state)
{
    struct muster_error error;

    (void)state;
    atomic_store(&agent.unheard, true);
    saved(1, OUTCOME_OPEN, "");
    assert_int_equal(manager_outcome_await(&manager, 0, 1, 0, &error), MUSTER_E_TIMEOUT);
    assert_non_null(strstr(error.text, "no broker is heard; what is written is committed once"));
    assert_null(strstr(error.text, "`muster rounds`")); /* nobody would answer it */
    manager.silence_ms = 1;
    assert_int_equal(manager_outcome_end(&manager, &error), MUSTER_E_TIMEOUT);
    assert_non_null(strstr(error.text, "no broker is heard to commit"));
    assert_null(strstr(error.text, "`muster rounds`")); /* nobody would answer it */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_first_is_returned_and_each_other_is_in_the_log, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(nobody_waits_at_the_end_for_a_broker_that_is_gone, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(nobody_waits_for_a_broker_once_the_job_is_over_for_it,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_broker_that_starts_again_meanwhile_is_waited_for, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_node_thread_that_hangs_is_found_at_the_end_as_well, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(one_that_took_too_long_is_told_beside_others, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(one_that_does_not_end_is_told_beside_one_that_failed, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_broker_that_is_gone_is_what_a_save_waits_for, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
