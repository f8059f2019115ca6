/* What of a broker's answer makes a checkpoint on disk one that its records decided: the answers
 * are this test's. */
#include "client/node/node_private.h"
#include "client/query/query_rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct {
    size_t count;
    struct muster_checkpoint_row checkpoint;
    struct muster_round_row round;
} answer;

static size_t answer_count(const muster_rows_t *rows)
{
    (void)rows;
    return answer.count;
}

static const struct muster_checkpoint_row *answer_checkpoints(const muster_rows_t *rows)
{
    (void)rows;
    return &answer.checkpoint;
}

static const struct muster_round_row *answer_rounds(const muster_rows_t *rows)
{
    (void)rows;
    return &answer.round;
}

#define muster_rows_count answer_count
#define muster_rows_checkpoints answer_checkpoints
#define muster_rows_rounds answer_rounds
#include "client/node/node_lost.c" /* NOLINT(bugprone-suspicious-include) */

/* Of generation 2, at step 40. */
static bool is_known_by(size_t count, int64_t generation, int64_t step, const char *state)
{
    const struct newest newest = {.generation = 2, .round = 3, .step = 40, .whole = true};

    answer.count = count;
    answer.checkpoint = (struct muster_checkpoint_row){
        .checkpoint = 3, .generation = generation, .step = step, .state = state};
    return is_known(&newest, NULL);
}

/* R11.6 */
static void a_whole_one_is_known_by_its_launch_its_step_and_what_was_decided(void **state)
{
    (void)state;
    assert_true(is_known_by(1, 2, 40, "committed"));
    assert_true(is_known_by(1, 2, 40, "superseded"));
    assert_true(is_known_by(1, 2, 40, "deleting"));
    assert_true(is_known_by(1, 2, 40, "deleted"));
    assert_false(is_known_by(0, 2, 40, "committed"));
    /* Another database gave its numbers to another save. */
    assert_false(is_known_by(1, 1, 40, "committed"));
    assert_false(is_known_by(1, 2, 20, "committed"));
    /* A whole one was committed: the records forgot that. */
    assert_false(is_known_by(1, 2, 40, "failed"));
    assert_false(is_known_by(1, 2, 40, "writing"));
}

static void a_damaged_one_is_known_by_its_launch_and_its_step(void **state)
{
    const struct newest damaged = {.generation = 2, .round = 3, .step = 40};

    (void)state;
    answer.count = 1;
    answer.round = (struct muster_round_row){.generation = 2, .step = 40};
    assert_true(is_known(&damaged, NULL));
    answer.round.generation = 1;
    assert_false(is_known(&damaged, NULL));
    answer.round = (struct muster_round_row){.generation = 2, .step = 20};
    assert_false(is_known(&damaged, NULL));
    answer.count = 0;
    assert_false(is_known(&damaged, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_one_is_known_by_its_launch_its_step_and_what_was_decided),
        cmocka_unit_test(a_damaged_one_is_known_by_its_launch_and_its_step),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
