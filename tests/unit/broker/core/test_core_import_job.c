/* The broker's core: an import counts for the job that its sender named, and for no other. */
#include "schema/manifest/manifest.h"
#include "tests/support/core_fixture.h"
#include "tests/support/signed_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

static char *manifest_by(const char *job, const struct sign_key *key, size_t *ret_size)
{
    const struct wire_file file = {"shard-00000-0000000000000032.safetensors", 30,
                                   key != NULL ? STRONG_SUM
                                               : "xxh3-128:0123456789abcdef0123456789abcdef"};
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

    if (key != NULL)
        return signed_text(&manifest, key, ret_size);
    if (manifest_render(&manifest, &text, ret_size, &err) != MUSTER_OK)
        fail_msg("%s", err.text);
    return text;
}

static char *manifest_of(const char *job, size_t *ret_size)
{
    return manifest_by(job, NULL, ret_size);
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
    assert_int_equal(core_sent(&f, 501, WIRE_ACK)->u.ack.code, MUSTER_E_BUSY);
    message.up.job = "secret";
    message.u.import.bytes.data = (const uint8_t *)text + half;
    core_feed(&f, 500, &message);
    assert_int_equal(core_sent(&f, 500, WIRE_ACK)->u.ack.code, MUSTER_OK);
    core_fixture_close(&f);
    free(text);
}

/* What comes in may be written again later, and then it would have this broker's signature. */
static unsigned import_to_signer(const char *text, size_t size)
{
    static struct core_fixture f;
    const struct sign_key own = signed_key(1);
    struct wire_msg message = {.type = WIRE_IMPORT,
                               .up = {.job = "secret", .role = ROLE_TOOL, .request = 1}};
    unsigned code;

    core_fixture_running(&f, 2, LAYOUT_SHARDED);
    f.options.signer = own.public_text;
    core_restart(&f, false);
    message.u.import.path = "/ckpt/7";
    message.u.import.total = size;
    message.u.import.bytes.data = (const uint8_t *)text;
    message.u.import.bytes.size = size;
    core_feed(&f, 500, &message);
    code = (unsigned)core_sent(&f, 500, WIRE_ACK)->u.ack.code;
    core_fixture_close(&f);
    return code;
}

static void a_broker_that_signs_takes_only_what_it_signed(void **state)
{
    const struct sign_key own = signed_key(1), foreign = signed_key(2);
    size_t size;
    char *text = manifest_by("secret", &own, &size);

    (void)state;
    assert_int_equal(import_to_signer(text, size), MUSTER_OK);
    strstr(text, "\"step\": 7")[8] = '8';
    signed_text_reseal(text, size);
    assert_int_equal(import_to_signer(text, size), MUSTER_E_CORRUPT);
    free(text);
    text = manifest_by("secret", &foreign, &size);
    assert_int_equal(import_to_signer(text, size), MUSTER_E_SIGNATURE);
    free(text);
    text = manifest_of("secret", &size);
    assert_int_equal(import_to_signer(text, size), MUSTER_E_SIGNATURE);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_manifest_of_another_job_than_named_is_refused),
        cmocka_unit_test(a_part_of_another_job_is_none_of_this_import),
        cmocka_unit_test(a_broker_that_signs_takes_only_what_it_signed),
    };

    return cmocka_run_group_tests_name("core_import_job", tests, NULL, NULL);
}
