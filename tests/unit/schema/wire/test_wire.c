/* The codec against golden frames, random messages, and frames of older and newer senders.
 * With MUSTER_WRITE_VECTORS=1 in the environment the program writes schema/vectors/ and the
 * fuzzer's corpus again instead of testing; look at the difference before you keep it. */
#include "tests/unit/schema/wire/wire_fixture.h"

#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ROUNDS 40 /* random messages of each type */

/* --- golden frames ---------------------------------------------------------------------------- */

static const char *path_of(const char *folder, unsigned type, const char *suffix)
{
    char *name = arena_strdup(&wire_arena, wire_type_name(type));

    for (char *at = name; *at != '\0'; at++)
        *at = (char)(*at >= 'A' && *at <= 'Z' ? *at - 'A' + 'a' : *at);
    return arena_printf(&wire_arena, "%s/%s/%s%s", SOURCE_DIR, folder, name, suffix);
}

static const char *vector_of(const struct wire_msg *msg, const uint8_t *frame, size_t size)
{
    char *hex = arena_alloc(&wire_arena, 2 * size + 1);

    for (size_t i = 0; i < size; i++)
        snprintf(hex + 2 * i, 3, "%02x", frame[i]);
    return arena_printf(&wire_arena, "message: %s\nframe: %s\ndecode: %s\n",
                        wire_type_name(msg->type), hex, sample_text(msg, &wire_arena));
}

static char *read_text(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = arena_alloc(&wire_arena, 1 << 18);

    if (file == NULL)
        fail_msg("%s: %s", path, strerror(errno));
    assert_true(fread(text, 1, (1 << 18) - 1, file) > 0);
    fclose(file);
    return text;
}

static void write_bytes(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "w");

    if (file == NULL || fwrite(bytes, 1, size, file) != size || fclose(file) != 0) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        exit(1);
    }
}

static int write_vectors(void)
{
    arena_init(&wire_arena, 0);
    for (size_t t = 0; t < sample_types_count; t++) {
        struct wire_msg msg;
        size_t size = wire_golden(&msg, sample_types[t]);
        const char *text = vector_of(&msg, wire_buffer, size);

        write_bytes(path_of("schema/vectors", sample_types[t], ".txt"), text, strlen(text));
        write_bytes(path_of("tests/fuzz/corpus/wire", sample_types[t], ""), wire_buffer, size);
    }
    arena_free(&wire_arena);
    return 0;
}

static void encode_makes_the_golden_frames_byte_by_byte(void **state)
{
    (void)state;
    for (size_t t = 0; t < sample_types_count; t++) {
        struct wire_msg msg;
        size_t size = wire_golden(&msg, sample_types[t]);

        assert_string_equal(vector_of(&msg, wire_buffer, size),
                            read_text(path_of("schema/vectors", sample_types[t], ".txt")));
    }
}

static void golden_frames_decode_to_what_their_files_say(void **state)
{
    (void)state;
    for (size_t t = 0; t < sample_types_count; t++) {
        char *text = read_text(path_of("schema/vectors", sample_types[t], ".txt"));
        const char *hex = strstr(text, "\nframe: ");
        const char *expected = strstr(text, "\ndecode: ");
        struct wire_msg msg;
        size_t size = 0;

        assert_non_null(hex);
        assert_non_null(expected);
        for (hex += 8; sscanf(hex, "%2" SCNx8, &wire_buffer[size]) == 1 && *hex != '\n'; hex += 2)
            size++;
        assert_int_equal(wire_decode_exactly(wire_buffer, size, &msg, NULL), MUSTER_OK);
        assert_int_equal(msg.type, sample_types[t]);
        text[strlen(text) - 1] = '\0'; /* the last end of line */
        assert_string_equal(sample_text(&msg, &wire_arena), expected + 9);
    }
}

/* --- round trips ------------------------------------------------------------------------------ */

static void random_messages_come_back_as_they_were(void **state)
{
    (void)state;
    for (size_t t = 0; t < sample_types_count; t++) {
        for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
            struct wire_msg msg;
            size_t size;

            arena_reset(&wire_arena);
            sample_fill(&msg, sample_types[t], seed * 1000 + t, &wire_arena);
            size = wire_encode(&msg, wire_buffer, sizeof wire_buffer);
            assert_true(size > 0 && size <= wire_longest(sample_types[t]));
            assert_int_equal(sample_pack(&msg, NULL, wire_other, sizeof wire_other), size);
            assert_memory_equal(wire_buffer, wire_other, size);
            wire_assert_decodes_to(wire_buffer, size, &msg);
        }
    }
}

static void a_copy_lives_longer_than_its_original(void **state)
{
    (void)state;
    for (size_t t = 0; t < sample_types_count; t++) {
        struct wire_msg msg;
        struct wire_msg copy;
        const char *before;

        arena_reset(&wire_in_arena);
        sample_fill(&msg, sample_types[t], 77 + t, &wire_in_arena);
        before = sample_text(&msg, &wire_arena);
        assert_true(wire_copy(&copy, &msg, &wire_arena));
        arena_free(&wire_in_arena);
        arena_init(&wire_in_arena, WIRE_ARENA_BYTES);
        assert_string_equal(sample_text(&copy, &wire_arena), before);
    }
}

static void null_strings_and_lists_are_sent_as_empty(void **state)
{
    struct wire_msg msg = {.type = WIRE_HELLO};
    struct wire_msg back;

    (void)state;
    assert_int_equal(wire_decode_exactly(wire_buffer,
                                         wire_encode(&msg, wire_buffer, sizeof wire_buffer), &back,
                                         NULL),
                     MUSTER_OK);
    assert_string_equal(back.up.job, "");
    assert_string_equal(back.u.hello.host, "");
    assert_int_equal(back.u.hello.notices.count, 0);
}

static void encode_needs_exactly_its_size(void **state)
{
    (void)state;
    for (size_t t = 0; t < sample_types_count; t++) {
        struct wire_msg msg;
        size_t size = wire_golden(&msg, sample_types[t]);

        for (size_t capacity = 0; capacity <= size; capacity++) {
            uint8_t *exact = malloc(capacity + (capacity == 0));

            assert_non_null(exact);
            assert_int_equal(wire_encode(&msg, exact, capacity), capacity < size ? 0 : size);
            free(exact);
        }
    }
}

static void a_full_arena_is_no_malformed_frame(void **state)
{
    (void)state;
    for (size_t t = 0; t < sample_types_count; t++) {
        struct wire_msg msg;
        struct wire_msg back;
        struct wire_msg copy;
        struct arena small;
        size_t size = wire_golden(&msg, sample_types[t]);
        size_t full;

        assert_int_equal(wire_decode_exactly(wire_buffer, size, &back, NULL), MUSTER_OK);
        full = wire_in_arena.used_bytes;
        for (size_t limit = 1; limit <= full; limit += limit + 8 < full ? 8 : 1) {
            arena_init(&small, limit);
            assert_int_equal(wire_decode(wire_buffer, size, &small, &back, NULL),
                             limit < full ? MUSTER_E_NOMEM : MUSTER_OK);
            arena_reset(&small);
            assert_true(wire_copy(&copy, &msg, &small) == (limit >= full));
            arena_free(&small);
        }
    }
}

/* --- frames of another age ---------------------------------------------------------------------
 */

/* Whatever a mutation still decodes to can be encoded again: decode is never laxer than encode. */
static void a_changed_byte_is_refused_or_gives_a_valid_message(void **state)
{
    static const uint8_t values[] = {0x00, 0x7f, 0x80, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1,
                                     0xc2, 0xc4, 0xc6, 0xc7, 0xca, 0xcb, 0xcf, 0xd3, 0xd4,
                                     0xd9, 0xdb, 0xdc, 0xdd, 0xde, 0xdf, 0xe0, 0xff};

    (void)state;
    for (size_t t = 0; t < sample_types_count; t++) {
        struct wire_msg msg;
        struct wire_msg back;
        size_t size = wire_golden(&msg, sample_types[t]);

        for (size_t at = 0; at < size; at++) {
            uint8_t good = wire_buffer[at];

            for (size_t v = 0; v < 16;
                 v++) { /* each bit; of the values every third, each at some place */
                wire_buffer[at] = (uint8_t)(good ^ 1u << v % 8);
                if (v >= 8)
                    wire_buffer[at] = values[((v - 8) * 3 + at) % sizeof values];
                if (wire_decode_exactly(wire_buffer, size, &back, NULL) == MUSTER_OK)
                    assert_true(wire_encode(&back, wire_other, sizeof wire_other) > 0);
            }
            wire_buffer[at] = good;
        }
    }
}

static void a_frame_must_be_complete_in_its_head_only(void **state)
{
    (void)state;
    for (size_t t = 0; t < sample_types_count; t++) {
        struct wire_msg msg;
        struct sample_field fields[SAMPLE_FIELDS_MAX];
        size_t count;
        size_t head = 0;
        size_t body = 0;

        wire_golden(&msg, sample_types[t]);
        count = sample_fields(&msg, fields);
        for (size_t i = 0; i < count; i++) {
            head += fields[i].in_head;
            body += !fields[i].in_head && !fields[i].in_entry;
        }
        for (size_t keep = 0; keep <= head + body; keep++) {
            struct sample_tweak tweak = {.cut = true, .keep = keep};
            struct wire_msg expected = msg;
            size_t size = sample_pack(&msg, &tweak, wire_buffer, sizeof wire_buffer);

            sample_clear_from(&expected, keep < head ? 0 : keep - head);
            if (keep < head)
                wire_assert_refused(wire_buffer, size, MUSTER_E_PROTOCOL, wire_type_name(msg.type));
            else
                wire_assert_decodes_to(wire_buffer, size, &expected);
        }
    }
}

static void entries_may_lack_their_last_fields(void **state)
{
    struct wire_member member = {5, 6, 7};
    struct wire_msg msg = {.type = WIRE_EVENT, .u.event.members = {&member, 1}};
    struct wire_file file = {"a", 1, "b"};
    struct wire_msg files = {.type = WIRE_FILES, .u.files.files = {&file, 1}};
    struct sample_tweak tweak = {.cut_entries = true, .keep = 2};

    (void)state;
    size_t size = sample_pack(&msg, &tweak, wire_buffer, sizeof wire_buffer);
    member.flags = 0;
    wire_assert_decodes_to(wire_buffer, size, &msg);
    tweak.keep = 0;
    size = sample_pack(&files, &tweak, wire_buffer, sizeof wire_buffer);
    file = (struct wire_file){"", 0, ""};
    wire_assert_decodes_to(wire_buffer, size, &files);
}

static void elements_of_a_newer_sender_are_skipped(void **state)
{
    static const struct {
        uint8_t bytes[8];
        size_t size;
    } extras[] = {
        {{0xc0}, 1},          {{0x05}, 1},
        {{0xc3}, 1},          {{0xa2, 'h', 'i'}, 3},
        {{0xc4, 1, 0xff}, 3}, {{0x91, 0x92, 0x90, 0x01}, 4}, /* three deep, four with the message */
    };

    (void)state;
    for (size_t t = 0; t < sample_types_count; t++) {
        for (size_t e = 0; e < sizeof extras / sizeof *extras; e++) {
            struct sample_tweak tweak = {.extra = extras[e].bytes, .extra_size = extras[e].size};
            struct wire_msg msg;

            wire_golden(&msg, sample_types[t]);
            wire_assert_decodes_to(
                wire_buffer, sample_pack(&msg, &tweak, wire_buffer, sizeof wire_buffer), &msg);
            tweak.extra_in_entries = true;
            if (extras[e].bytes[0] != 0x91) /* inside an entry that is too deep */
                wire_assert_decodes_to(
                    wire_buffer, sample_pack(&msg, &tweak, wire_buffer, sizeof wire_buffer), &msg);
        }
    }
}

/* --- versions and types ----------------------------------------------------------------------- */

static void another_version_is_told_whatever_else_the_frame_holds(void **state)
{
    static const struct {
        uint8_t bytes[16];
        size_t size;
        unsigned type;
        const char *text;
    } rows[] = {
        {{0x92, 0x02, 0x01}, 3, WIRE_HELLO, "version 2,"},
        {{0x92, 0x00, 0x0a}, 3, WIRE_ACK, "version 0,"},
        {{0x91, 0x02}, 2, WIRE_NONE, "version 2,"},
        {{0x93, 0x02, 0x01, 0x80}, 4, WIRE_HELLO, "version 2,"}, /* it may have maps */
        {{0x93, 0x02, 0xa1, 'x', 0xc0}, 5, WIRE_NONE, "version 2,"},
        {{0xdc, 0x00, 0x02, 0xcc, 0x02, 0xcd, 0x00, 0x07}, 8, WIRE_HEARTBEAT, "version 2,"},
        {{0xdd, 0, 0, 0, 2, 0xcf, 0, 0, 0, 1, 0, 0, 0, 0, 0x07}, 15, WIRE_HEARTBEAT, "4294967296,"},
        {{0x92, 0xce, 0xff, 0xff, 0xff, 0xff, 0xcd, 0xff, 0xff}, 9, WIRE_NONE, "4294967295,"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct wire_msg msg = {.type = WIRE_NONE};
        struct muster_error err = {0};

        assert_int_equal(wire_decode_exactly(rows[i].bytes, rows[i].size, &msg, &err),
                         MUSTER_E_VERSION);
        assert_int_equal(msg.type, rows[i].type);
        assert_non_null(strstr(err.text, rows[i].text));
    }
}

static void a_version_and_type_in_a_longer_form_are_read(void **state)
{
    static const uint8_t frame[] = {0xdd, 0, 0, 0, 11,   0xcd, 0, 1, 0xcf, 0, 0, 0, 0, 0,
                                    0,    0, 4, 0, 0xa1, 'j',  5, 0, 0,    0, 0, 0, 9};
    struct wire_msg msg;

    (void)state;
    assert_int_equal(wire_decode_exactly(frame, sizeof frame, &msg, NULL), MUSTER_OK);
    assert_int_equal(msg.type, WIRE_PROBE_GET);
    assert_int_equal(msg.up.role, ROLE_TOOL);
    assert_int_equal(msg.u.probe_get.nonce, 9);
}

static void unknown_types_are_refused(void **state)
{
    struct wire_msg msg = {.type = (enum wire_type)63};

    (void)state;
    assert_int_equal(wire_encode(&msg, wire_buffer, sizeof wire_buffer), 0);
    for (unsigned type = 0; type < 256; type++) {
        uint8_t frame[] = {0x93, 0x01, 0xcc, (uint8_t)type, 0x00};
        bool known = false;

        for (size_t t = 0; t < sample_types_count; t++)
            known |= sample_types[t] == type;
        wire_assert_refused(frame, sizeof frame, MUSTER_E_PROTOCOL,
                            known ? "head" : "is not known");
        assert_true((strcmp(wire_type_name(type), "unknown") == 0) == !known);
    }
    wire_assert_refused((uint8_t[]){0x92, 0x01, 0xcf, 0, 0, 0, 1, 0, 0, 0, 1}, 11,
                        MUSTER_E_PROTOCOL, "type 4294967297 is not known");
}

static void directions_and_requests_are_as_in_the_table(void **state)
{
    static const unsigned requests[] = {
        WIRE_LEAVE, WIRE_NOOP,     WIRE_NOTICE,         WIRE_CANCEL,        WIRE_AT_STEP,
        WIRE_FILES, WIRE_SAVED,    WIRE_SAVE_FAILED,    WIRE_PAST,          WIRE_SAVE_AT,
        WIRE_ERROR, WIRE_RESTORED, WIRE_RESTORE_FAILED, WIRE_MANIFEST_DONE, WIRE_SAVE_NOW,
        WIRE_GONE,  WIRE_POLICIES, WIRE_SAVE_WISH,      WIRE_SWEEP,         WIRE_DELETED,
        WIRE_DROP,  WIRE_PIN,      WIRE_UNPIN,          WIRE_IMPORT,        WIRE_FORGET,
        WIRE_HOST};
    size_t found = 0;

    (void)state;
    for (unsigned type = 0; type < 256; type++)
        found += wire_is_request(type);
    assert_int_equal(found, sizeof requests / sizeof *requests);
    for (size_t i = 0; i < found; i++) {
        assert_true(wire_is_request(requests[i]));
        assert_true(wire_is_up(requests[i]));
    }
    assert_true(wire_is_up(WIRE_HELLO));
    assert_true(wire_is_up(WIRE_QUERY));
    assert_false(wire_is_up(WIRE_ACK));
    assert_false(wire_is_up(WIRE_EVENT));
    assert_false(wire_is_up(WIRE_NONE));
    assert_false(wire_is_up(63));
    for (unsigned type = 0; type < 256; type++)
        assert_int_equal(wire_is_task(type), type >= 70 && type <= 96);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(encode_makes_the_golden_frames_byte_by_byte, wire_fresh),
        cmocka_unit_test_setup(golden_frames_decode_to_what_their_files_say, wire_fresh),
        cmocka_unit_test_setup(random_messages_come_back_as_they_were, wire_fresh),
        cmocka_unit_test_setup(a_copy_lives_longer_than_its_original, wire_fresh),
        cmocka_unit_test_setup(null_strings_and_lists_are_sent_as_empty, wire_fresh),
        cmocka_unit_test_setup(encode_needs_exactly_its_size, wire_fresh),
        cmocka_unit_test_setup(a_full_arena_is_no_malformed_frame, wire_fresh),
        cmocka_unit_test_setup(a_changed_byte_is_refused_or_gives_a_valid_message, wire_fresh),
        cmocka_unit_test_setup(a_frame_must_be_complete_in_its_head_only, wire_fresh),
        cmocka_unit_test_setup(entries_may_lack_their_last_fields, wire_fresh),
        cmocka_unit_test_setup(elements_of_a_newer_sender_are_skipped, wire_fresh),
        cmocka_unit_test_setup(another_version_is_told_whatever_else_the_frame_holds, wire_fresh),
        cmocka_unit_test_setup(a_version_and_type_in_a_longer_form_are_read, wire_fresh),
        cmocka_unit_test_setup(unknown_types_are_refused, wire_fresh),
        cmocka_unit_test_setup(directions_and_requests_are_as_in_the_table, wire_fresh),
    };

    if (getenv("MUSTER_WRITE_VECTORS") != NULL)
        return write_vectors();
    return cmocka_run_group_tests_name("wire", tests, NULL, wire_done);
}
