/* The model of `muster demo`: a run that stops and goes on ends with the very same bits. */
#include "tools/setup/setup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

static void a_stop_at_any_step_changes_no_bit(void **state)
{
    double whole[DEMO_WEIGHTS] = {0};

    (void)state;
    demo_train(whole, 0, DEMO_STEPS);
    for (int stop = 0; stop <= DEMO_STEPS; stop += 50) {
        double parts[DEMO_WEIGHTS] = {0};

        demo_train(parts, 0, stop);
        demo_train(parts, stop, DEMO_STEPS);
        assert_memory_equal(parts, whole, sizeof whole);
    }
}

static void a_step_that_is_left_out_is_seen(void **state)
{
    double whole[DEMO_WEIGHTS] = {0}, lost[DEMO_WEIGHTS] = {0};

    (void)state;
    demo_train(whole, 0, DEMO_STEPS);
    demo_train(lost, 0, 100);
    demo_train(lost, 101, DEMO_STEPS);
    assert_memory_not_equal(lost, whole, sizeof whole);
}

static void it_learns_the_weights(void **state)
{
    double weights[DEMO_WEIGHTS] = {0};

    (void)state;
    demo_train(weights, 0, DEMO_STEPS);
    for (int k = 0; k < DEMO_WEIGHTS; k++)
        assert_true(fabs(weights[k] - (k + 1)) < 0.1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stop_at_any_step_changes_no_bit),
        cmocka_unit_test(a_step_that_is_left_out_is_seen),
        cmocka_unit_test(it_learns_the_weights),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
