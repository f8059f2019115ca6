/* Each field has a kind and a limit, which both sides hold. */
#include "tests/unit/schema/wire/wire_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* Sets the field to its limit, plus `over`. */
static bool set_to_limit(const struct sample_field *field, size_t over)
{
    static char text[POLICY_TEXT_MAX + 8]; /* the longest of all */
    static uint8_t bytes[ROWS_BYTES_MAX + 8];
    static struct wire_member members[WORLD_SIZE_MAX + 1];
    static struct wire_file files[FILES_FRAME_MAX + 1];
    static struct wire_notice_fact notices[NOTICES_NODE_MAX + 1];
    static struct wire_ended_entry tasks[TASKS_FRAME_MAX + 1]; /* no other entry is larger */
    struct {
        const void *at;
        size_t count;
    } span = {bytes, field->max + over};
    const char *value = text;

    switch (field->kind) {
    case SAMPLE_U:
        if (over > 0 && field->max == UINT64_MAX)
            return false;
        *(uint64_t *)field->value = field->max + over;
        return true;
    case SAMPLE_S:
        memset(text, 'x', sizeof text);
        text[field->max + over] = '\0';
        memcpy(field->value, &value, sizeof value);
        return true;
    case SAMPLE_R:
        memcpy(field->value, &span, sizeof span);
        return true;
    case SAMPLE_L: /* value is the count, which follows the items */
        span.at = field->max == WORLD_SIZE_MAX    ? (void *)members
                  : field->max == FILES_FRAME_MAX ? (void *)files
                  : field->max == TASKS_FRAME_MAX ? (void *)tasks
                  : field->max == TASK_QUEUES_MAX ? (void *)tasks
                                                  : (void *)notices;
        memcpy((unsigned char *)field->value - offsetof(struct wire_event, members.count) +
                   offsetof(struct wire_event, members.items),
               &span, sizeof span);
        return true;
    default:
        return false;
    }
}

static void each_limit_holds_and_one_more_is_refused_on_both_sides(void **state)
{
    (void)state;
    for (size_t t = 0; t < sample_types_count; t++) {
        struct sample_field fields[SAMPLE_FIELDS_MAX];
        struct wire_msg msg;
        size_t count;

        wire_golden(&msg, sample_types[t]);
        count = sample_fields(&msg, fields);
        for (size_t i = 0; i < count; i++) {
            size_t size;

            wire_golden(&msg, sample_types[t]);
            sample_fields(&msg, fields);
            if (set_to_limit(&fields[i], 0)) {
                size = wire_encode(&msg, wire_buffer, sizeof wire_buffer);
                assert_true(size > 0);
                wire_assert_decodes_to(wire_buffer, size, &msg);
            }
            if (set_to_limit(&fields[i], 1)) {
                assert_int_equal(wire_encode(&msg, wire_buffer, sizeof wire_buffer), 0);
                size = sample_pack(&msg, NULL, wire_buffer, sizeof wire_buffer);
                assert_true(size > 0 && size <= wire_longest(sample_types[t]));
                wire_assert_refused(wire_buffer, size, MUSTER_E_PROTOCOL, fields[i].name);
            }
        }
    }
}

struct wrong {
    const char *what;
    uint8_t bytes[12];
    size_t size;
    unsigned fits; /* bits of enum sample_kind */
};

static const struct wrong wrongs[] = {
    {"nil", {0xc0}, 1, 0},
    {"true", {0xc3}, 1, 1u << SAMPLE_B},
    {"zero", {0x00}, 1, 1u << SAMPLE_U | 1u << SAMPLE_I},
    {"minus one", {0xff}, 1, 1u << SAMPLE_I},
    {"the least integer", {0xd3, 0x80, 0, 0, 0, 0, 0, 0, 0}, 9, 1u << SAMPLE_I},
    {"above any integer", {0xcf, 0x80, 0, 0, 0, 0, 0, 0, 0}, 9, 1u << SAMPLE_U},
    {"a string", {0xa1, '1'}, 2, 1u << SAMPLE_S},
    {"a string that is not UTF-8", {0xa1, 0xff}, 2, 0},
    {"a string with NUL inside", {0xa2, 'a', 0}, 3, 0},
    {"binary", {0xc4, 1, '1'}, 3, 1u << SAMPLE_R},
    {"an empty list", {0x90}, 1, 1u << SAMPLE_L},
    {"a list of a number", {0x91, 0x01}, 2, 0},
    {"a float", {0xcb, 0, 0, 0, 0, 0, 0, 0, 0}, 9, 0},
    {"an empty map", {0x80}, 1, 0},
    {"an extension", {0xd4, 0, 0}, 3, 0},
};

/* The scan refuses these before any field is looked at. */
static bool names_no_field(const struct wrong *wrong)
{
    return wrong->bytes[0] == 0xcb || wrong->bytes[0] == 0x80 || wrong->bytes[0] == 0xd4;
}

static void try_wrong(const struct wire_msg *msg, const struct sample_field *field,
                      const struct wrong *wrong)
{
    struct sample_tweak tweak = {.replace_name = field->name,
                                 .replace_in_head = field->in_head,
                                 .replace_in_entry = field->in_entry,
                                 .replace = wrong->bytes,
                                 .replace_size = wrong->size};
    size_t size = sample_pack(msg, &tweak, wire_buffer, sizeof wire_buffer);
    struct wire_msg back;
    struct muster_error err = {0};

    if (names_no_field(wrong)) {
        wire_assert_refused(wire_buffer, size, MUSTER_E_PROTOCOL, "a map, a float, an extension");
    } else if ((wrong->fits & 1u << field->kind) == 0) {
        wire_assert_refused(wire_buffer, size, MUSTER_E_PROTOCOL, field->name);
        wire_assert_refused(wire_buffer, size, MUSTER_E_PROTOCOL, wire_type_name(msg->type));
    } else if (field->kind != SAMPLE_U || field->max == UINT64_MAX || wrong->bytes[0] == 0) {
        if (wire_decode_exactly(wire_buffer, size, &back, &err) != MUSTER_OK)
            fail_msg("%s in %s: %s", wrong->what, field->name, err.text);
    }
}

static void a_field_of_a_wrong_type_is_named(void **state)
{
    (void)state;
    for (size_t t = 0; t < sample_types_count; t++) {
        struct sample_field fields[SAMPLE_FIELDS_MAX];
        struct wire_msg msg;
        size_t count;

        wire_golden(&msg, sample_types[t]);
        count = sample_fields(&msg, fields);
        for (size_t i = 0; i < count; i++)
            for (size_t k = 0; k < sizeof wrongs / sizeof *wrongs; k++)
                try_wrong(&msg, &fields[i], &wrongs[k]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(each_limit_holds_and_one_more_is_refused_on_both_sides, wire_fresh),
        cmocka_unit_test_setup(a_field_of_a_wrong_type_is_named, wire_fresh),
    };

    return cmocka_run_group_tests_name("wire_limits", tests, NULL, wire_done);
}
