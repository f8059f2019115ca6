/* What is no frame is refused by the scan or by the decoder: damaged frames, hostile ones, text
 * that is no UTF-8. */
#include "tests/unit/schema/wire/wire_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void every_truncation_is_refused(void **state)
{
    (void)state;
    for (size_t t = 0; t < sample_types_count; t++) {
        struct wire_msg msg;
        size_t size = wire_golden(&msg, sample_types[t]);

        for (size_t cut = 0; cut < size; cut++)
            wire_assert_refused(wire_buffer, cut, MUSTER_E_PROTOCOL, "");
        wire_buffer[size] = 0xc0;
        wire_assert_refused(wire_buffer, size + 1, MUSTER_E_PROTOCOL, "bytes follow its end");
    }
}

static void text_must_be_utf8_in_both_directions(void **state)
{
    static const struct {
        const char *text;
        bool ok;
    } rows[] = {
        {"plain", true},
        {"\xc3\xa9", true},
        {"\xe2\x82\xac", true},
        {"\xed\x9f\xbf", true},
        {"\xf4\x8f\xbf\xbf", true},
        {"\xf0\x90\x80\x80", true},
        {"\x80", false},
        {"a\xc3", false},
        {"\xc0\x80", false},
        {"\xc1\xbf", false},
        {"\xe0\x80\x80", false},
        {"\xed\xa0\x80", false},
        {"\xf0\x80\x80\x80", 0},
        {"\xf4\x90\x80\x80", false},
        {"\xf5\x80\x80\x80", false},
        {"\xe2\x82", false},
        {"\xe2\x28\xa1", false},
        {"\xff", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct wire_msg msg = {.type = WIRE_ERROR, .u.error.text = rows[i].text};
        size_t size = wire_encode(&msg, wire_buffer, sizeof wire_buffer);

        assert_true((size > 0) == rows[i].ok);
        if (size == 0)
            wire_assert_refused(wire_other, sample_pack(&msg, NULL, wire_other, sizeof wire_other),
                                MUSTER_E_PROTOCOL, "message ERROR: field text is not UTF-8");
    }
}

static void bombs_are_refused_by_the_scan(void **state)
{
    static const struct {
        const char *what;
        uint8_t bytes[16];
        size_t size;
    } rows[] = {
        {"nothing", {0}, 0},
        {"a number", {0x01}, 1},
        {"an empty list", {0x90}, 1},
        {"version alone", {0x91, 0x01}, 2},
        {"4 Gi elements", {0xdd, 0xff, 0xff, 0xff, 0xff, 0x01}, 6},
        {"4 GiB of text", {0x93, 0x01, 0x06, 0xdb, 0xff, 0xff, 0xff, 0xff}, 8},
        {"4 GiB of bytes", {0x93, 0x01, 0x06, 0xc6, 0xff, 0xff, 0xff, 0xff}, 8},
        {"one element too many", {0x93, 0x01, 0x06}, 3},
        {"five deep", {0x93, 0x01, 0x06, 0x91, 0x91, 0x91, 0x91, 0x00}, 8},
        {"a map of 4 Gi", {0x93, 0x01, 0x06, 0xdf, 0xff, 0xff, 0xff, 0xff}, 8},
        {"never used", {0x93, 0x01, 0x06, 0xc1}, 4},
        {"half a length", {0x93, 0x01, 0x06, 0xdb, 0x00}, 5},
        {"version as text", {0x92, 0xa1, '1', 0x06}, 4},
        {"type as text", {0x92, 0x01, 0xa1, '6'}, 4},
        {"type below zero", {0x92, 0x01, 0xff}, 3},
        {"version below zero", {0x92, 0xff, 0x06}, 3},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        wire_assert_refused(rows[i].bytes, rows[i].size, MUSTER_E_PROTOCOL, "");
}

static void size_depth_and_items_are_bounded(void **state)
{
    (void)state;
    memset(wire_buffer, 0x91, sizeof wire_buffer); /* a list in a list in a list ... */
    wire_assert_refused(wire_buffer, WIRE_EVENT_MAX, MUSTER_E_PROTOCOL, "too deeply");
    memset(wire_buffer, 0, sizeof wire_buffer);
    memcpy(wire_buffer, (uint8_t[]){0xdd, 0x00, 0x02, 0x00, 0x00, 0x01},
           6); /* 131072, and the list */
    wire_assert_refused(wire_buffer, 5 + 131072, MUSTER_E_PROTOCOL, "too many items");
    wire_buffer[2] = 0x01, wire_buffer[3] = 0xff, wire_buffer[4] = 0xff;
    wire_assert_refused(wire_buffer, 5 + 131071, MUSTER_E_PROTOCOL,
                        "type 0 is not known"); /* scan passed */
    wire_assert_refused(wire_buffer, WIRE_EVENT_MAX + 1, MUSTER_E_PROTOCOL,
                        "is larger than 262144");
    /* The same count spread over many lists. */
    memset(wire_buffer, 0x90, sizeof wire_buffer);
    memcpy(wire_buffer, (uint8_t[]){0xdd, 0x00, 0x03, 0xff, 0xfb}, 5);
    wire_assert_refused(wire_buffer, WIRE_EVENT_MAX, MUSTER_E_PROTOCOL, "too many items");
}

static void the_fullest_decision_fits_a_frame(void **state)
{
    static struct wire_member members[WORLD_SIZE_MAX];
    struct wire_msg msg;
    char text[TEXT_MAX + 1] = {0};
    char path[PATH_BYTES_MAX + 1] = {0};
    size_t size;

    (void)state;
    for (size_t i = 0; i < WORLD_SIZE_MAX; i++)
        members[i] = (struct wire_member){i, UINT64_MAX - i, MEMBER_FLAG_WRITER};
    memset(text, 't', TEXT_MAX);
    memset(path, 'p', PATH_BYTES_MAX);
    sample_fill(&msg, WIRE_EVENT, 0, &wire_arena);
    msg.u.event.members.items = members;
    msg.u.event.members.count = WORLD_SIZE_MAX;
    msg.u.event.text = text;
    msg.u.event.path = path;
    size = wire_encode(&msg, wire_buffer, sizeof wire_buffer);
    assert_true(size > 229376 && size <= WIRE_EVENT_MAX);
    wire_assert_decodes_to(wire_buffer, size, &msg);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(every_truncation_is_refused, wire_fresh),
        cmocka_unit_test_setup(text_must_be_utf8_in_both_directions, wire_fresh),
        cmocka_unit_test_setup(bombs_are_refused_by_the_scan, wire_fresh),
        cmocka_unit_test_setup(size_depth_and_items_are_bounded, wire_fresh),
        cmocka_unit_test_setup(the_fullest_decision_fits_a_frame, wire_fresh),
    };

    return cmocka_run_group_tests_name("wire_bytes", tests, NULL, wire_done);
}
