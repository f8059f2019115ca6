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

/* The answer to an order that names `named`, with a manifest of job "secret". */
static unsigned import_as(const char *named)
{
    static struct core_fixture f;
    struct wire_msg message = {.type = WIRE_IMPORT,
                               .up = {.job = named, .role = ROLE_TOOL, .request = 1}};
    unsigned code = MUSTER_STATUS_COUNT;
    size_t size;
    char *text = signed_text_of_job("secret", NULL, &size);

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
    char *text = signed_text_of_job("secret", NULL, &size);

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
    char *text = signed_text_of_job("secret", &own, &size);

    (void)state;
    assert_int_equal(import_to_signer(text, size), MUSTER_OK);
    strstr(text, "\"step\": 7")[8] = '8';
    signed_text_reseal(text, size);
    assert_int_equal(import_to_signer(text, size), MUSTER_E_CORRUPT);
    free(text);
    text = signed_text_of_job("secret", &foreign, &size);
    assert_int_equal(import_to_signer(text, size), MUSTER_E_SIGNATURE);
    free(text);
    text = signed_text_of_job("secret", NULL, &size);
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
