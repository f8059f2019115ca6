/* How several saves that failed are told, by a manager whose node knows how they went. */
#include "client/manager_private.h"
#include "node/agent_state.h"
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
    (void)state;
    memset(&agent, 0, sizeof agent);
    memset(&node, 0, sizeof node);
    memset(&manager, 0, sizeof manager);
    logged[0] = '\0';
    node.agent = &agent;
    node.options.log = take_log;
    manager.node = &node;
    return pthread_mutex_init(&agent.mutex, NULL);
}

static int teardown(void **state)
{
    (void)state;
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
    atomic_store(&agent.unheard, true);
    saved(1, OUTCOME_OPEN, "");
    saved(2, OUTCOME_ABORTED, "the disk");
    assert_int_equal(manager_outcome_end(&manager, &error), MUSTER_E_SAVE);
    assert_true(clock_ms(CLOCK_MONOTONIC) - began_ms < 5000);
    assert_non_null(strstr(logged, "step 10"));
    assert_non_null(strstr(logged, "no broker is heard"));
    assert_int_equal(manager.pending_count, 1);
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
    assert_int_equal(manager_outcome_end(&manager, &error), MUSTER_E_TIMEOUT);
    assert_non_null(strstr(error.text, "no broker is heard"));
    assert_null(strstr(error.text, "`muster rounds`")); /* nobody would answer it */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_first_is_returned_and_each_other_is_in_the_log, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(nobody_waits_at_the_end_for_a_broker_that_is_gone, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(one_that_does_not_end_is_told_beside_one_that_failed, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_broker_that_is_gone_is_what_a_save_waits_for, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
