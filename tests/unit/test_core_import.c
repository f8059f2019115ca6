/* The broker's core: manifests that were found on disk become rows again. */
#include "schema/manifest.h"
#include "tests/support/core_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUM "xxh3-128:00112233445566778899aabbccddeeff"

static int no_job(void **state)
{
    static struct core_fixture f;

    core_fixture_open(&f, 2, LAYOUT_SHARDED);
    *state = &f;
    return 0;
}

static int two_running(void **state)
{
    static struct core_fixture f;

    core_fixture_running(&f, 2, LAYOUT_SHARDED);
    *state = &f;
    return 0;
}

static int close_core(void **state)
{
    core_fixture_close(*state);
    return 0;
}

static char *manifest_of(uint64_t generation, uint64_t round, int64_t step, size_t *ret_size)
{
    static const struct wire_file files[2] = {
        {"shard-00000-0000000000000032.safetensors", 30, SUM},
        {"shard-00001-0000000000000033.safetensors", 40, SUM}};
    const struct manifest_shard shards[2] = {{0, 50, &files[0], 1}, {1, 51, &files[1], 1}};
    const struct manifest manifest = {.job = "train",
                                      .generation = generation,
                                      .round = round,
                                      .step = step,
                                      .layout = LAYOUT_SHARDED,
                                      .world_size = 2,
                                      .epoch = 3,
                                      .step_in_epoch = 4,
                                      .data_position = -1,
                                      .total_run_calls = step,
                                      .created_unix_ms = 1700000000000 + step,
                                      .cause = "termination",
                                      .metrics = "{\"loss\": 0.5}",
                                      .custom = "{\"who\": \"me\"}",
                                      .shards = shards,
                                      .shard_count = 2};
    struct muster_error err;
    char *text = NULL;

    if (manifest_render(&manifest, &text, ret_size, &err) != MUSTER_OK)
        fail_msg("%s", err.text);
    return text;
}

static const struct wire_ack *say_part(struct core_fixture *f, const char *path, const char *text,
                                       size_t offset, size_t size, size_t total)
{
    struct wire_msg message = {.type = WIRE_IMPORT, .up = {.job = "train", .role = ROLE_TOOL}};

    message.u.import.path = path;
    message.u.import.offset = offset;
    message.u.import.total = total;
    message.u.import.bytes.data = (const uint8_t *)text + offset;
    message.u.import.bytes.size = size;
    core_tool(f, message, 1);
    for (size_t i = 0; i < f->out.count; i++)
        if (f->out.items[i].kind == ACTION_SEND && f->out.items[i].message.type == WIRE_ACK)
            return &f->out.items[i].message.u.ack;
    fail_msg("not answered");
    return NULL;
}

/* In parts of 200 bytes. Returns the last answer's code; its value goes to *ret_value. */
static unsigned import(struct core_fixture *f, uint64_t generation, uint64_t round, int64_t step,
                       uint64_t *ret_value)
{
    size_t total;
    char *text = manifest_of(generation, round, step, &total);
    char path[64];
    const struct wire_ack *ack = NULL;

    snprintf(path, sizeof path, "/ckpt/%lld", (long long)step);
    for (size_t at = 0; at < total; at += 200)
        ack = say_part(f, path, text, at, total - at < 200 ? total - at : 200, total);
    free(text);
    *ret_value = ack->value;
    return (unsigned)ack->code;
}

static void a_lost_database_is_rebuilt(void **state)
{
    struct core_fixture *f = *state;
    uint64_t value = 0;

    assert_int_equal(import(f, 2, 5, 12, &value), MUSTER_OK);
    assert_int_equal(value, 1);
    assert_core(f, "+job; +job; +generation ended; +round 5 committed; +checkpoint 5 committed; "
                   "+custom {\"who\":\"me\"}; +shard 5.0; "
                   "+file shard-00000-0000000000000032.safetensors; +shard 5.1; "
                   "+file shard-00001-0000000000000033.safetensors; @500:ack #1 MUSTER_OK=1");
    const struct record_checkpoint *row = core_checkpoint(f, 5);
    assert_int_equal(row->step, 12);
    assert_int_equal(row->bytes, 70);
    assert_int_equal(row->epoch, 3);
    assert_string_equal(row->path, "/ckpt/12");
    assert_string_equal(row->metrics, "{\"loss\":0.5}");
    assert_int_equal(import(f, 1, 2, 7, &value), MUSTER_OK); /* older, whatever the order */
    assert_int_equal(import(f, 2, 5, 12, &value), MUSTER_OK);
    assert_int_equal(value, 0); /* it is there */

    core_restart(f, false);
    for (int n = 0; n < 2; n++)
        core_hello(f, n);
    const struct generation *gen = &core_job(f)->gen;
    assert_int_equal(gen->generation, 3);
    assert_int_equal(gen->resume_step, 12);
    assert_int_equal(gen->resume_checkpoint, 5);
    assert_true(gen->resume_ready);
    for (int n = 0; n < 2; n++)
        core_restored(f, n, 5, 12);
    core_save_now(f, "a");
    assert_int_equal(core_job(f)->round, 6); /* numbers go on behind those that were found */
}

static void parts_come_in_order_and_may_be_repeated(void **state)
{
    struct core_fixture *f = *state;
    size_t total;
    char *text = manifest_of(1, 2, 7, &total);

    assert_int_equal(say_part(f, "/c/7", text, 100, 100, total)->code, MUSTER_E_ARGUMENT);
    assert_int_equal(say_part(f, "/c/7", text, 0, 100, total)->code, MUSTER_OK);
    assert_int_equal(say_part(f, "/c/7", text, 200, 100, total)->code, MUSTER_E_ARGUMENT);
    assert_int_equal(say_part(f, "/c/8", text, 100, 100, total)->code, MUSTER_E_ARGUMENT);
    assert_int_equal(say_part(f, "/c/7", text, 100, total - 100, total)->value, 1);
    assert_int_equal(say_part(f, "/c/7", text, 100, total - 100, total)->value, 1); /* a repeat */
    assert_int_equal(say_part(f, "c/7", text, 0, total, total)->code, MUSTER_E_ARGUMENT);
    text[total / 2] = '\0';
    assert_int_equal(say_part(f, "/c/7", text, 0, total, total)->code, MUSTER_E_CORRUPT);
    free(text);
}

static void a_running_job_and_numbers_of_its_own_refuse(void **state)
{
    struct core_fixture *f = *state; /* running */
    uint64_t value = 0;

    assert_int_equal(import(f, 1, 2, 7, &value), MUSTER_E_BUSY);
    core_save_now(f, "a");
    core_report(f, 0, 1, 4, 4);
    core_report(f, 1, 1, 4, 4);
    core_save(f, 0, 1, 4);
    core_save(f, 1, 1, 4);
    core_leave(f, 0, LEAVE_FINISHED, 0);
    core_leave(f, 1, LEAVE_FINISHED, 0);
    assert_int_equal(import(f, 1, 1, 7, &value), MUSTER_E_EXISTS); /* its round 1 was at step 4 */
    assert_int_equal(core_checkpoint(f, 1)->step, 4);
    assert_int_equal(import(f, 1, 1, 4, &value), MUSTER_OK); /* that is the one that is here */
    assert_int_equal(value, 0);
}

int main(void)
{
#define TEST(test, setup) cmocka_unit_test_setup_teardown(test, setup, close_core)
    const struct CMUnitTest tests[] = {
        TEST(a_lost_database_is_rebuilt, no_job),
        TEST(parts_come_in_order_and_may_be_repeated, no_job),
        TEST(a_running_job_and_numbers_of_its_own_refuse, two_running),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
