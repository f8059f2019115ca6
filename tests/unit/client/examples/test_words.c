/* test_words - the parts of the real example: model, data, and who averages which slice. The ranks
 * themselves are in tests/proc/node/test_words_ranks.c. */
#include "client/examples/words_allreduce.h"
#include "client/examples/words_data.h"
#include "client/examples/words_model.h"
#include "tests/support/scratch.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ------------------------------------------------------------------------------------- data */

/* Kept are those that are a to z throughout. */
static const char list[] =
    "apple\nBob\nbanana\nit's\n\ncherry\r\nnaïve\nfig\nkiwi\nA\nplum\nzo2o\nok";
#define LIST_WORDS 7
#define LIST_EXAMPLES (5 + 6 + 6 + 3 + 4 + 4 + 2 + LIST_WORDS)

static void open_list(struct words_data *data, const char *text, uint64_t seed)
{
    char directory[SCRATCH_PATH_MAX];
    const char *path;

    scratch_make(directory);
    path = scratch_path(directory, "words");
    scratch_write(path, text, strlen(text));
    assert_int_equal(words_data_open(data, path, seed), 0);
    scratch_remove(directory);
}

static void only_words_of_a_to_z_are_kept(void **state)
{
    struct words_data data;

    (void)state;
    open_list(&data, list, 1);
    assert_int_equal(data.word_count, LIST_WORDS);
    assert_int_equal(data.example_count, LIST_EXAMPLES);
    words_data_close(&data);
}

static void a_list_without_words_is_refused(void **state)
{
    struct words_data data;

    (void)state;
    assert_int_equal(words_data_open(&data, "/dev/null", 1), -ENODATA);
    assert_int_equal(words_data_open(&data, "/nonexistent/words", 1), -ENOENT);
}

/* Counts how often each (context, target) comes, by the bytes of both. */
static int count_same(const uint8_t *all, size_t size, uint64_t count, const uint8_t *one)
{
    int same = 0;

    for (uint64_t i = 0; i < count; i++)
        same += memcmp(all + i * size, one, size) == 0;
    return same;
}

static void take(const struct words_data *data, uint64_t step, uint32_t rank, uint32_t world_size,
                 uint32_t batch, uint8_t *ret_examples)
{
    struct words_place place = {
        .step = step, .rank = rank, .world_size = world_size, .batch = batch, .context = 8};
    uint8_t contexts[LIST_EXAMPLES * 8], targets[LIST_EXAMPLES];

    words_data_batch(data, &place, contexts, targets);
    for (uint32_t i = 0; i < batch; i++) {
        memcpy(ret_examples + i * 9, contexts + i * 8, 8);
        ret_examples[i * 9 + 8] = targets[i];
    }
}

static void an_epoch_visits_every_example_once_and_the_next_in_another_order(void **state)
{
    struct words_data data;
    uint8_t first[LIST_EXAMPLES * 9], second[LIST_EXAMPLES * 9], other[LIST_EXAMPLES * 9];

    (void)state;
    open_list(&data, list, 1);
    take(&data, 0, 0, 1, LIST_EXAMPLES, first);
    take(&data, 1, 0, 1, LIST_EXAMPLES, second);
    for (size_t i = 0; i < LIST_EXAMPLES; i++)
        assert_int_equal(count_same(first, 9, LIST_EXAMPLES, first + i * 9), 1);
    for (size_t i = 0; i < LIST_EXAMPLES; i++)
        assert_int_equal(count_same(second, 9, LIST_EXAMPLES, first + i * 9), 1);
    assert_memory_not_equal(first, second, sizeof(first));
    words_data_close(&data);
    open_list(&data, list, 2);
    take(&data, 0, 0, 1, LIST_EXAMPLES, other);
    assert_memory_not_equal(first, other, sizeof(first));
    words_data_close(&data);
}

static void the_batch_depends_on_step_and_rank_alone(void **state)
{
    struct words_data data, again;
    uint8_t whole[LIST_EXAMPLES * 9], part[9 * 3];

    (void)state;
    open_list(&data, list, 7);
    open_list(&again, list, 7);
    take(&data, 0, 0, 1, 24, whole);
    for (uint32_t k = 8; k-- > 0;) { /* step k / 4 of rank k % 4, asked for in reverse order */
        take(&again, k / 4, k % 4, 4, 3, part);
        assert_memory_equal(part, whole + k * 27, sizeof(part));
    }
    words_data_close(&data);
    words_data_close(&again);
}

static void a_context_ends_at_the_word_before(void **state)
{
    static const uint8_t wanted[][4] = {
        {0, 0, 0, 1}, {0, 0, 1, 2}, {0, 1, 2, 0}, /* ab */
        {0, 0, 0, 3}, {0, 0, 3, 0},               /* c */
    };
    struct words_data data;
    struct words_place place = {.world_size = 1, .batch = 5, .context = 3};
    uint8_t contexts[15], targets[5], examples[20];

    (void)state;
    open_list(&data, "ab\nc\n", 1);
    words_data_batch(&data, &place, contexts, targets);
    for (size_t i = 0; i < 5; i++) {
        memcpy(examples + i * 4, contexts + i * 3, 3);
        examples[i * 4 + 3] = targets[i];
    }
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(count_same(examples, 4, 5, wanted[i]), 1);
    words_data_close(&data);
}

/* ------------------------------------------------------------------------------------ model */

static const struct words_shape small = {.context = 3, .dim = 5, .hidden = 11};

static void gradient_is_the_slope_of_the_loss(void **state)
{
    struct words_model model;
    uint8_t contexts[12] = {0, 0, 1, 5, 5, 2, 26, 0, 3, 9, 8, 7}, targets[4] = {3, 0, 26, 1};
    float *gradient;
    const float nudge = 1.0f / 128;

    (void)state;
    assert_int_equal(words_model_open(&model, &small, 3), 0);
    gradient = calloc(model.count, sizeof(float));
    assert_non_null(gradient);
    words_model_loss(&model, contexts, targets, 4, gradient);
    for (size_t i = 0; i < model.count; i++) {
        float kept = model.weights[i];
        double above, below, slope;

        model.weights[i] = kept + nudge;
        above = words_model_loss(&model, contexts, targets, 4, NULL);
        model.weights[i] = kept - nudge;
        below = words_model_loss(&model, contexts, targets, 4, NULL);
        model.weights[i] = kept;
        slope = (above - below) / (2.0 * (double)nudge);
        if (fabs(slope - (double)gradient[i]) > 2e-4 + 1e-2 * fabs(slope))
            fail_msg("parameter %zu: slope %g, gradient %g", i, slope, (double)gradient[i]);
    }
    free(gradient);
    words_model_close(&model);
}

static uint64_t train(uint64_t seed, uint64_t steps, double *ret_first, double *ret_last)
{
    struct words_shape shape = {.context = 4, .dim = 8, .hidden = 16};
    struct words_place place = {.world_size = 1, .batch = LIST_EXAMPLES, .context = 4};
    struct words_data data;
    struct words_model model;
    uint8_t contexts[LIST_EXAMPLES * 4], targets[LIST_EXAMPLES];
    float *gradient;
    uint64_t hash;

    open_list(&data, list, seed);
    assert_int_equal(words_model_open(&model, &shape, seed), 0);
    gradient = calloc(model.count, sizeof(float));
    assert_non_null(gradient);
    for (place.step = 0; place.step < steps; place.step++) {
        words_data_batch(&data, &place, contexts, targets);
        *ret_last = words_model_loss(&model, contexts, targets, place.batch, gradient);
        if (place.step == 0)
            *ret_first = *ret_last;
        words_model_update(&model, gradient, 0.05f, 0.9f);
    }
    hash = words_model_hash(&model);
    free(gradient);
    words_model_close(&model);
    words_data_close(&data);
    return hash;
}

static void loss_falls_over_two_hundred_steps(void **state)
{
    double first = 0, last = 0;

    (void)state;
    train(1, 200, &first, &last);
    assert_true(first > 3.0 && first < 3.6); /* about log 27: it knows nothing */
    assert_true(last < 0.5 * first);
}

static void equal_seeds_give_equal_bits_and_others_do_not(void **state)
{
    double first, last;
    uint64_t one, same, other;

    (void)state;
    one = train(1, 20, &first, &last);
    same = train(1, 20, &first, &last);
    other = train(2, 20, &first, &last);
    assert_true(one == same);
    assert_true(one != other);
}

/* ----------------------------------------------------------------------------------- slices */

#define RANKS 4

static void slices_are_a_partition(void **state)
{
    static const size_t counts[] = {1, 3, 4, 5, 1003, 14283};

    (void)state;
    for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++) {
        size_t next = 0;

        for (int rank = 0; rank < RANKS; rank++) {
            size_t begin, end;

            words_allreduce_slice(counts[k], rank, RANKS, &begin, &end);
            assert_int_equal(begin, next);
            assert_true(end - begin <= counts[k] / RANKS + 1);
            next = end;
        }
        assert_int_equal(next, counts[k]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_words_of_a_to_z_are_kept),
        cmocka_unit_test(a_list_without_words_is_refused),
        cmocka_unit_test(an_epoch_visits_every_example_once_and_the_next_in_another_order),
        cmocka_unit_test(the_batch_depends_on_step_and_rank_alone),
        cmocka_unit_test(a_context_ends_at_the_word_before),
        cmocka_unit_test(gradient_is_the_slope_of_the_loss),
        cmocka_unit_test(loss_falls_over_two_hundred_steps),
        cmocka_unit_test(equal_seeds_give_equal_bits_and_others_do_not),
        cmocka_unit_test(slices_are_a_partition),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
