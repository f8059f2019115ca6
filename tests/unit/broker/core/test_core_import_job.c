/* The broker's core: an import counts for the job that its sender named, and for no other. */
#include "schema/manifest/manifest.h"
#include "tests/support/core_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

static char *manifest_of(const char *job, size_t *ret_size)
{
    static const struct wire_file file = {"shard-00000-0000000000000032.safetensors", 30,
                                          "xxh3-128:0123456789abcdef0123456789abcdef"};
    const struct manifest_shard shard = {0, 50, &file, 1};
    const struct manifest manifest = {.job = job,
                                      .generation = 1,
                                      .round = 5,
                                      .step = 7,
                                      .layout = LAYOUT_SHARDED,
                                      .world_size = 1,
                                      .epoch = -1,
                                      .step_in_epoch = -1,
                                      .data_position = -1,
                                      .total_run_calls = 7,
                                      .created_unix_ms = 1700000000000,
                                      .cause = "policy",
                                      .shards = &shard,
                                      .shard_count = 1};
    struct muster_error err;
    char *text = NULL;

    if (manifest_render(&manifest, &text, ret_size, &err) != MUSTER_OK)
        fail_msg("%s", err.text);
    return text;
}

/* The answer to an order that names `named`, with a manifest of job "secret". */
static unsigned import_as(const char *named)
{
    static struct core_fixture f;
    struct wire_msg message = {.type = WIRE_IMPORT,
                               .up = {.job = named, .role = ROLE_TOOL, .request = 1}};
    unsigned code = MUSTER_STATUS_COUNT;
    size_t size;
    char *text = manifest_of("secret", &size);

    core_fixture_running(&f, 2, LAYOUT_SHARDED);
    message.u.import.path = "/ckpt/7";
    message.u.import.total = size;
    message.u.import.bytes.data = (const uint8_t *)text;
    message.u.import.bytes.size = size;
    core_feed(&f, 500, &message);
    for (size_t i = 0; i < f.out.count; i++)
        if (f.out.items[i].kind == ACTION_SEND && f.out.items[i].message.type == WIRE_ACK)
            code = (unsigned)f.out.items[i].message.u.ack.code;
    core_fixture_close(&f);
    free(text);
    return code;
}

static void a_manifest_of_another_job_than_named_is_refused(void **state)
{
    (void)state;
    assert_int_equal(import_as("train"), MUSTER_E_ARGUMENT);
    assert_int_equal(import_as("secre"), MUSTER_E_ARGUMENT);
    assert_int_equal(import_as("secret"), MUSTER_OK);
    assert_int_equal(import_as(""), MUSTER_OK); /* who may name none may name all */
}

/* A part of one sender's manifest never comes from who may not give that order. */
static void a_part_of_another_job_is_none_of_this_import(void **state)
{
    static struct core_fixture f;
    struct wire_msg message = {.type = WIRE_IMPORT,
                               .up = {.job = "secret", .role = ROLE_TOOL, .request = 1}};
    size_t size, half;
    char *text = manifest_of("secret", &size);

    (void)state;
    half = size / 2;
    core_fixture_running(&f, 2, LAYOUT_SHARDED);
    message.u.import.path = "/ckpt/7";
    message.u.import.total = size;
    message.u.import.bytes.data = (const uint8_t *)text;
    message.u.import.bytes.size = half;
    core_feed(&f, 500, &message);
    assert_int_equal(core_sent(&f, 500, WIRE_ACK)->u.ack.code, MUSTER_OK);
    message.up.job = "other";
    message.u.import.offset = half;
    message.u.import.bytes.size = size - half;
    core_feed(&f, 501, &message);
    assert_int_equal(core_sent(&f, 501, WIRE_ACK)->u.ack.code, MUSTER_E_ARGUMENT);
    message.up.job = "secret";
    message.u.import.bytes.data = (const uint8_t *)text + half;
    core_feed(&f, 500, &message);
    assert_int_equal(core_sent(&f, 500, WIRE_ACK)->u.ack.code, MUSTER_OK);
    core_fixture_close(&f);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_manifest_of_another_job_than_named_is_refused),
        cmocka_unit_test(a_part_of_another_job_is_none_of_this_import),
    };

    return cmocka_run_group_tests_name("core_import_job", tests, NULL, NULL);
}
