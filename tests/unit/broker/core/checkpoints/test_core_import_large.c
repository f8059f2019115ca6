/* The broker's core: a manifest of many files becomes rows pass by pass, and may be cut short. */
#include "schema/manifest/manifest.h"
#include "tests/support/core_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#define SUM "xxh3-128:00112233445566778899aabbccddeeff"

enum { MANY = 1100, SLICE_MAX = 1024 + 8 };

/* Rank 0 wrote `count` files, and rank 1 none. */
static char *manifest_of(uint64_t round, int64_t step, size_t count, size_t *ret_size)
{
    static char paths[MANY][32];
    static struct wire_file files[MANY];
    const struct manifest_shard shards[2] = {{0, 50, files, count}, {1, 51, NULL, 0}};
    const struct manifest manifest = {.job = "train",
                                      .generation = 1,
                                      .round = round,
                                      .step = step,
                                      .layout = LAYOUT_SHARDED,
                                      .world_size = 2,
                                      .epoch = -1,
                                      .step_in_epoch = -1,
                                      .data_position = -1,
                                      .total_run_calls = step,
                                      .created_unix_ms = 1700000000000,
                                      .cause = "policy",
                                      .shards = shards,
                                      .shard_count = 2};
    struct muster_error err;
    char *text = NULL;

    for (int i = 0; i < MANY; i++) {
        snprintf(paths[i], sizeof paths[i], "shard-00000/%05d", i);
        files[i] = (struct wire_file){paths[i], 10, SUM};
    }
    if (manifest_render(&manifest, &text, ret_size, &err) != MUSTER_OK)
        fail_msg("%s", err.text);
    return text;
}

static void say_quietly(struct core_fixture *f, const char *text, size_t offset, size_t size,
                        size_t total, uint64_t request)
{
    struct wire_msg message = {.type = WIRE_IMPORT};

    message.u.import.path = "/ckpt/7";
    message.u.import.offset = offset;
    message.u.import.total = total;
    message.u.import.bytes.data = (const uint8_t *)text + offset;
    message.u.import.bytes.size = size;
    core_clear(f);
    core_tool(f, message, request);
}

static const struct wire_ack *ack_of(const struct core_fixture *f)
{
    for (size_t i = 0; i < f->out.count; i++)
        if (f->out.items[i].kind == ACTION_SEND && f->out.items[i].message.type == WIRE_ACK)
            return &f->out.items[i].message.u.ack;
    return NULL;
}

/* One of two files. Returns the answer's code; its value goes to *ret_value. */
static unsigned import(struct core_fixture *f, uint64_t round, int64_t step, uint64_t *ret_value)
{
    size_t total;
    char *text = manifest_of(round, step, 2, &total);

    say_quietly(f, text, 0, total, total, 1);
    free(text);
    assert_non_null(ack_of(f));
    *ret_value = ack_of(f)->value;
    return (unsigned)ack_of(f)->code;
}

static size_t rows_in(const struct core_fixture *f)
{
    size_t rows = 0;

    for (size_t i = 0; i < f->out.count; i++)
        rows += f->out.items[i].kind == ACTION_PERSIST;
    return rows;
}

/* Parts of 40,000 bytes, to the first of the rows. Returns the text. */
static char *begin_large(struct core_fixture *f, uint64_t round, size_t *ret_total)
{
    char *text = manifest_of(round, 7, MANY, ret_total);
    const size_t total = *ret_total;

    for (size_t at = 0; at < total; at += 40000) {
        say_quietly(f, text, at, total - at < 40000 ? total - at : 40000, total, 2);
        assert_true(rows_in(f) <= SLICE_MAX);
        assert_int_equal(ack_of(f) != NULL, at + 40000 < total);
    }
    return text;
}

static const struct wire_ack *end_large(struct core_fixture *f)
{
    for (int pass = 0; pass < 10; pass++) {
        core_clear(f);
        core_tick(f);
        assert_true(rows_in(f) <= SLICE_MAX);
        if (ack_of(f) != NULL)
            return ack_of(f);
    }
    fail_msg("not answered");
    return NULL;
}

/* It held the broker up for seconds, in which no other job was answered. */
static void the_files_of_a_large_one_become_rows_pass_by_pass(void **state)
{
    struct core_fixture *f = *state;
    size_t total;
    char *text = begin_large(f, 5, &total);

    assert_int_equal(core_checkpoint(f, 5)->state, CHECKPOINT_FAILED);
    assert_true(core_wakeup_boot_ms(f->core) <= f->now);
    say_quietly(f, text, total - 100, 100, total, 3); /* the tool asks again */
    assert_null(ack_of(f));
    say_quietly(f, text, 0, 100, total - 1, 4); /* another tool */
    assert_int_equal(ack_of(f)->code, MUSTER_E_BUSY);
    const struct wire_ack *ack = end_large(f);
    assert_int_equal(ack->code, MUSTER_OK);
    assert_int_equal(ack->value, 1);
    assert_int_equal(ack->request, 3);
    assert_int_equal(core_checkpoint(f, 5)->state, CHECKPOINT_COMMITTED);
    assert_int_equal(core_checkpoint(f, 5)->bytes, MANY * 10);
    assert_int_equal(core_count_rows(f, RECORD_FILE), MANY);
    say_quietly(f, text, total - 100, 100, total, 5); /* its answer was lost */
    assert_int_equal(ack_of(f)->value, 1);
    assert_int_equal(import(f, 6, 8, &(uint64_t){0}), MUSTER_OK);
    free(text);
}

/* R11.5 */
static void a_large_one_that_was_cut_short_counts_for_nothing_and_is_taken_again(void **state)
{
    struct core_fixture *f = *state;
    size_t total;
    char *text;

    core_leave(f, 0, LEAVE_FINISHED, 0);
    core_leave(f, 1, LEAVE_FINISHED, 0); /* a job with rounds of its own */
    text = begin_large(f, 5, &total);
    free(text);
    core_tick(f);
    core_restart(f, false);
    assert_null(registry_find(core_job(f), 5));
    assert_int_equal(core_job(f)->round, 5); /* never given away again */
    text = begin_large(f, 5, &total);
    assert_int_equal(end_large(f)->value, 1);
    assert_int_equal(core_checkpoint(f, 5)->state, CHECKPOINT_COMMITTED);
    assert_int_equal(core_count_rows(f, RECORD_FILE), MANY);
    free(text);
    uint64_t value = 0;
    assert_int_equal(import(f, 5, 6, &value), MUSTER_E_EXISTS); /* but another one is not */
}

/* Both lives of the job had a round 5: rows of the first stood among those of the second. */
static void what_one_that_was_cut_short_left_is_in_no_other_of_its_round(void **state)
{
    struct core_fixture *f = *state;
    uint64_t value = 0;
    size_t total;

    free(begin_large(f, 5, &total));
    core_tick(f);
    assert_in_range(core_count_rows(f, RECORD_FILE), 1000, MANY);
    core_restart(f, false);
    assert_int_equal(import(f, 5, 9, &value), MUSTER_OK);
    assert_int_equal(value, 1);
    assert_int_equal(core_count_rows(f, RECORD_FILE), 2);
    assert_int_equal(core_checkpoint(f, 5)->state, CHECKPOINT_COMMITTED);
    assert_int_equal(core_checkpoint(f, 5)->step, 9);
}

static void each_that_was_cut_short_is_known_after_a_start(void **state)
{
    struct core_fixture *f = *state;
    uint64_t value = 0;
    size_t total;

    core_leave(f, 0, LEAVE_FINISHED, 0);
    core_leave(f, 1, LEAVE_FINISHED, 0); /* a job with rounds of its own */
    for (uint64_t round = 5; round <= 6; round++) {
        free(begin_large(f, round, &total));
        core_tick(f);
        core_restart(f, false);
    }
    for (uint64_t round = 5; round <= 6; round++) {
        assert_int_equal(import(f, round, (int64_t)round, &value), MUSTER_OK);
        assert_int_equal(value, 1);
        assert_int_equal(import(f, round, 9, &value), MUSTER_E_EXISTS); /* no longer */
    }
}

static void a_job_that_starts_meanwhile_does_without_it(void **state)
{
    struct core_fixture *f = *state;
    size_t total;
    char *text = begin_large(f, 5, &total);

    free(text);
    for (int n = 0; n < 2; n++)
        core_hello(f, n);
    assert_int_equal(core_job(f)->gen.generation, 2);
    assert_int_equal(end_large(f)->code, MUSTER_E_BUSY);
    assert_int_equal(core_checkpoint(f, 5)->state, CHECKPOINT_FAILED);
    assert_null(registry_find(core_job(f), 5));
    assert_int_equal(core_job(f)->gen.resume_step, 0);
}

int main(void)
{
#define TEST(test, setup) cmocka_unit_test_setup_teardown(test, setup, core_close)
    const struct CMUnitTest tests[] = {
        TEST(the_files_of_a_large_one_become_rows_pass_by_pass, core_open_two_sharded),
        TEST(a_large_one_that_was_cut_short_counts_for_nothing_and_is_taken_again,
             core_run_two_sharded),
        TEST(what_one_that_was_cut_short_left_is_in_no_other_of_its_round, core_open_two_sharded),
        TEST(each_that_was_cut_short_is_known_after_a_start, core_run_two_sharded),
        TEST(a_job_that_starts_meanwhile_does_without_it, core_open_two_sharded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
