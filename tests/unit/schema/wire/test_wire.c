/* The codec against golden frames, random messages, damaged frames and hostile ones.
 * With MUSTER_WRITE_VECTORS=1 in the environment the program writes schema/vectors/ and the
 * fuzzer's corpus again instead of testing; look at the difference before you keep it. */
#include "schema/wire/wire.h"
#include "tests/unit/schema/wire/wire_samples.h"

#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ARENA_BYTES ((size_t)1 << 22)
#define ROUNDS 40 /* random messages of each type */

static uint8_t buffer[WIRE_EVENT_MAX + 4096];
static uint8_t other[WIRE_EVENT_MAX + 4096];
static struct arena arena;    /* of the sample */
static struct arena in_arena; /* of the decoded message */

static int fresh(void **state)
{
    (void)state;
    arena_free(&arena);
    arena_free(&in_arena);
    arena_init(&arena, 0);
    arena_init(&in_arena, ARENA_BYTES);
    return 0;
}

static int done(void **state)
{
    (void)state;
    arena_free(&arena);
    arena_free(&in_arena);
    return 0;
}

/* Decodes from memory of exactly the frame's size, so that a read behind it is found. */
static enum muster_status decode(const uint8_t *frame, size_t size, struct wire_msg *ret_msg,
                                 struct muster_error *err)
{
    uint8_t *exact = malloc(size + (size == 0));
    enum muster_status status;

    assert_non_null(exact);
    if (size > 0)
        memcpy(exact, frame, size);
    arena_reset(&in_arena);
    status = wire_decode(exact, size, &in_arena, ret_msg, err);
    free(exact); /* what was decoded does not point into it */
    return status;
}

static void assert_refused(const uint8_t *frame, size_t size, enum muster_status expected,
                           const char *in_text)
{
    struct wire_msg msg;
    struct wire_msg before;
    struct muster_error err = {0};
    enum muster_status status;

    memset(&msg, 0x5a, sizeof msg);
    before = msg;
    status = decode(frame, size, &msg, &err);
    if (status != expected || strstr(err.text, in_text) == NULL)
        fail_msg("got %s \"%s\", expected %s \"%s\"", muster_status_name(status), err.text,
                 muster_status_name(expected), in_text);
    assert_int_equal(err.status, expected);
    assert_memory_equal(&msg, &before, sizeof msg);
}

static void assert_no_null_string(struct wire_msg *msg)
{
    struct sample_field fields[SAMPLE_FIELDS_MAX];
    struct wire_msg small = *msg;
    size_t count;

    if (msg->type == WIRE_EVENT) /* its members have no strings, but are many */
        small.u.event.members.count = 0;
    count = sample_fields(&small, fields);
    for (size_t i = 0; i < count; i++)
        if (fields[i].kind == SAMPLE_S)
            assert_non_null(*(const char **)fields[i].value);
}

static void assert_decodes_to(const uint8_t *frame, size_t size, const struct wire_msg *expected)
{
    struct wire_msg msg;
    struct muster_error err = {0};
    enum muster_status status = decode(frame, size, &msg, &err);

    if (status != MUSTER_OK)
        fail_msg("%s: %s", muster_status_name(status), err.text);
    assert_string_equal(sample_text(&msg, &arena), sample_text(expected, &arena));
    assert_no_null_string(&msg);
}

static size_t golden(struct wire_msg *msg, unsigned type)
{
    size_t size;

    sample_fill(msg, type, 0, &arena);
    size = wire_encode(msg, buffer, sizeof buffer);
    assert_true(size > 0);
    return size;
}

/* --- golden frames ---------------------------------------------------------------------------- */

static const char *path_of(const char *folder, unsigned type, const char *suffix)
{
    char *name = arena_strdup(&arena, wire_type_name(type));

    for (char *at = name; *at != '\0'; at++)
        *at = (char)(*at >= 'A' && *at <= 'Z' ? *at - 'A' + 'a' : *at);
    return arena_printf(&arena, "%s/%s/%s%s", SOURCE_DIR, folder, name, suffix);
}

static const char *vector_of(const struct wire_msg *msg, const uint8_t *frame, size_t size)
{
    char *hex = arena_alloc(&arena, 2 * size + 1);

    for (size_t i = 0; i < size; i++)
        snprintf(hex + 2 * i, 3, "%02x", frame[i]);
    return arena_printf(&arena, "message: %s\nframe: %s\ndecode: %s\n", wire_type_name(msg->type),
                        hex, sample_text(msg, &arena));
}

static char *read_text(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = arena_alloc(&arena, 1 << 18);

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
    arena_init(&arena, 0);
    for (size_t t = 0; t < sample_types_count; t++) {
        struct wire_msg msg;
        size_t size = golden(&msg, sample_types[t]);
        const char *text = vector_of(&msg, buffer, size);

        write_bytes(path_of("schema/vectors", sample_types[t], ".txt"), text, strlen(text));
        write_bytes(path_of("tests/fuzz/corpus/wire", sample_types[t], ""), buffer, size);
    }
    arena_free(&arena);
    return 0;
}

static void encode_makes_the_golden_frames_byte_by_byte(void **state)
{
    (void)state;
    for (size_t t = 0; t < sample_types_count; t++) {
        struct wire_msg msg;
        size_t size = golden(&msg, sample_types[t]);

        assert_string_equal(vector_of(&msg, buffer, size),
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
        for (hex += 8; sscanf(hex, "%2" SCNx8, &buffer[size]) == 1 && *hex != '\n'; hex += 2)
            size++;
        assert_int_equal(decode(buffer, size, &msg, NULL), MUSTER_OK);
        assert_int_equal(msg.type, sample_types[t]);
        text[strlen(text) - 1] = '\0'; /* the last end of line */
        assert_string_equal(sample_text(&msg, &arena), expected + 9);
    }
}

/* --- round trips ------------------------------------------------------------------------------ */

/* A broker takes no longer frames than WIRE_FRAME_MAX, and sends only events that are. */
static size_t longest(enum wire_type type)
{
    return type == WIRE_EVENT ? WIRE_EVENT_MAX : WIRE_FRAME_MAX;
}

static void random_messages_come_back_as_they_were(void **state)
{
    (void)state;
    for (size_t t = 0; t < sample_types_count; t++) {
        for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
            struct wire_msg msg;
            size_t size;

            arena_reset(&arena);
            sample_fill(&msg, sample_types[t], seed * 1000 + t, &arena);
            size = wire_encode(&msg, buffer, sizeof buffer);
            assert_true(size > 0 && size <= longest(sample_types[t]));
            assert_int_equal(sample_pack(&msg, NULL, other, sizeof other), size);
            assert_memory_equal(buffer, other, size);
            assert_decodes_to(buffer, size, &msg);
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

        arena_reset(&in_arena);
        sample_fill(&msg, sample_types[t], 77 + t, &in_arena);
        before = sample_text(&msg, &arena);
        assert_true(wire_copy(&copy, &msg, &arena));
        arena_free(&in_arena);
        arena_init(&in_arena, ARENA_BYTES);
        assert_string_equal(sample_text(&copy, &arena), before);
    }
}

static void null_strings_and_lists_are_sent_as_empty(void **state)
{
    struct wire_msg msg = {.type = WIRE_HELLO};
    struct wire_msg back;

    (void)state;
    assert_int_equal(decode(buffer, wire_encode(&msg, buffer, sizeof buffer), &back, NULL),
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
        size_t size = golden(&msg, sample_types[t]);

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
        size_t size = golden(&msg, sample_types[t]);
        size_t full;

        assert_int_equal(decode(buffer, size, &back, NULL), MUSTER_OK);
        full = in_arena.used_bytes;
        for (size_t limit = 1; limit <= full; limit += limit + 8 < full ? 8 : 1) {
            arena_init(&small, limit);
            assert_int_equal(wire_decode(buffer, size, &small, &back, NULL),
                             limit < full ? MUSTER_E_NOMEM : MUSTER_OK);
            arena_reset(&small);
            assert_true(wire_copy(&copy, &msg, &small) == (limit >= full));
            arena_free(&small);
        }
    }
}

/* --- damaged frames --------------------------------------------------------------------------- */

static void every_truncation_is_refused(void **state)
{
    (void)state;
    for (size_t t = 0; t < sample_types_count; t++) {
        struct wire_msg msg;
        size_t size = golden(&msg, sample_types[t]);

        for (size_t cut = 0; cut < size; cut++)
            assert_refused(buffer, cut, MUSTER_E_PROTOCOL, "");
        buffer[size] = 0xc0;
        assert_refused(buffer, size + 1, MUSTER_E_PROTOCOL, "bytes follow its end");
    }
}

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
        size_t size = golden(&msg, sample_types[t]);

        for (size_t at = 0; at < size; at++) {
            uint8_t good = buffer[at];

            for (size_t v = 0; v < 16;
                 v++) { /* each bit; of the values every third, each at some place */
                buffer[at] = (uint8_t)(good ^ 1u << v % 8);
                if (v >= 8)
                    buffer[at] = values[((v - 8) * 3 + at) % sizeof values];
                if (decode(buffer, size, &back, NULL) == MUSTER_OK)
                    assert_true(wire_encode(&back, other, sizeof other) > 0);
            }
            buffer[at] = good;
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

        golden(&msg, sample_types[t]);
        count = sample_fields(&msg, fields);
        for (size_t i = 0; i < count; i++) {
            head += fields[i].in_head;
            body += !fields[i].in_head && !fields[i].in_entry;
        }
        for (size_t keep = 0; keep <= head + body; keep++) {
            struct sample_tweak tweak = {.cut = true, .keep = keep};
            struct wire_msg expected = msg;
            size_t size = sample_pack(&msg, &tweak, buffer, sizeof buffer);

            sample_clear_from(&expected, keep < head ? 0 : keep - head);
            if (keep < head)
                assert_refused(buffer, size, MUSTER_E_PROTOCOL, wire_type_name(msg.type));
            else
                assert_decodes_to(buffer, size, &expected);
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
    size_t size = sample_pack(&msg, &tweak, buffer, sizeof buffer);
    member.flags = 0;
    assert_decodes_to(buffer, size, &msg);
    tweak.keep = 0;
    size = sample_pack(&files, &tweak, buffer, sizeof buffer);
    file = (struct wire_file){"", 0, ""};
    assert_decodes_to(buffer, size, &files);
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

            golden(&msg, sample_types[t]);
            assert_decodes_to(buffer, sample_pack(&msg, &tweak, buffer, sizeof buffer), &msg);
            tweak.extra_in_entries = true;
            if (extras[e].bytes[0] != 0x91) /* inside an entry that is too deep */
                assert_decodes_to(buffer, sample_pack(&msg, &tweak, buffer, sizeof buffer), &msg);
        }
    }
}

/* --- limits and types ------------------------------------------------------------------------- */

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

        golden(&msg, sample_types[t]);
        count = sample_fields(&msg, fields);
        for (size_t i = 0; i < count; i++) {
            size_t size;

            golden(&msg, sample_types[t]);
            sample_fields(&msg, fields);
            if (set_to_limit(&fields[i], 0)) {
                size = wire_encode(&msg, buffer, sizeof buffer);
                assert_true(size > 0);
                assert_decodes_to(buffer, size, &msg);
            }
            if (set_to_limit(&fields[i], 1)) {
                assert_int_equal(wire_encode(&msg, buffer, sizeof buffer), 0);
                size = sample_pack(&msg, NULL, buffer, sizeof buffer);
                assert_true(size > 0 && size <= longest(sample_types[t]));
                assert_refused(buffer, size, MUSTER_E_PROTOCOL, fields[i].name);
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
    size_t size = sample_pack(msg, &tweak, buffer, sizeof buffer);
    struct wire_msg back;
    struct muster_error err = {0};

    if (names_no_field(wrong)) {
        assert_refused(buffer, size, MUSTER_E_PROTOCOL, "a map, a float, an extension");
    } else if ((wrong->fits & 1u << field->kind) == 0) {
        assert_refused(buffer, size, MUSTER_E_PROTOCOL, field->name);
        assert_refused(buffer, size, MUSTER_E_PROTOCOL, wire_type_name(msg->type));
    } else if (field->kind != SAMPLE_U || field->max == UINT64_MAX || wrong->bytes[0] == 0) {
        if (decode(buffer, size, &back, &err) != MUSTER_OK)
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

        golden(&msg, sample_types[t]);
        count = sample_fields(&msg, fields);
        for (size_t i = 0; i < count; i++)
            for (size_t k = 0; k < sizeof wrongs / sizeof *wrongs; k++)
                try_wrong(&msg, &fields[i], &wrongs[k]);
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
        size_t size = wire_encode(&msg, buffer, sizeof buffer);

        assert_true((size > 0) == rows[i].ok);
        if (size == 0)
            assert_refused(other, sample_pack(&msg, NULL, other, sizeof other), MUSTER_E_PROTOCOL,
                           "message ERROR: field text is not UTF-8");
    }
}

/* --- hostile frames --------------------------------------------------------------------------- */

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
        assert_refused(rows[i].bytes, rows[i].size, MUSTER_E_PROTOCOL, "");
}

static void size_depth_and_items_are_bounded(void **state)
{
    (void)state;
    memset(buffer, 0x91, sizeof buffer); /* a list in a list in a list ... */
    assert_refused(buffer, WIRE_EVENT_MAX, MUSTER_E_PROTOCOL, "too deeply");
    memset(buffer, 0, sizeof buffer);
    memcpy(buffer, (uint8_t[]){0xdd, 0x00, 0x02, 0x00, 0x00, 0x01}, 6); /* 131072, and the list */
    assert_refused(buffer, 5 + 131072, MUSTER_E_PROTOCOL, "too many items");
    buffer[2] = 0x01, buffer[3] = 0xff, buffer[4] = 0xff;
    assert_refused(buffer, 5 + 131071, MUSTER_E_PROTOCOL, "type 0 is not known"); /* scan passed */
    assert_refused(buffer, WIRE_EVENT_MAX + 1, MUSTER_E_PROTOCOL, "is larger than 262144");
    /* The same count spread over many lists. */
    memset(buffer, 0x90, sizeof buffer);
    memcpy(buffer, (uint8_t[]){0xdd, 0x00, 0x03, 0xff, 0xfb}, 5);
    assert_refused(buffer, WIRE_EVENT_MAX, MUSTER_E_PROTOCOL, "too many items");
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
    sample_fill(&msg, WIRE_EVENT, 0, &arena);
    msg.u.event.members.items = members;
    msg.u.event.members.count = WORLD_SIZE_MAX;
    msg.u.event.text = text;
    msg.u.event.path = path;
    size = wire_encode(&msg, buffer, sizeof buffer);
    assert_true(size > 229376 && size <= WIRE_EVENT_MAX);
    assert_decodes_to(buffer, size, &msg);
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

        assert_int_equal(decode(rows[i].bytes, rows[i].size, &msg, &err), MUSTER_E_VERSION);
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
    assert_int_equal(decode(frame, sizeof frame, &msg, NULL), MUSTER_OK);
    assert_int_equal(msg.type, WIRE_PROBE_GET);
    assert_int_equal(msg.up.role, ROLE_TOOL);
    assert_int_equal(msg.u.probe_get.nonce, 9);
}

static void unknown_types_are_refused(void **state)
{
    struct wire_msg msg = {.type = (enum wire_type)63};

    (void)state;
    assert_int_equal(wire_encode(&msg, buffer, sizeof buffer), 0);
    for (unsigned type = 0; type < 256; type++) {
        uint8_t frame[] = {0x93, 0x01, 0xcc, (uint8_t)type, 0x00};
        bool known = false;

        for (size_t t = 0; t < sample_types_count; t++)
            known |= sample_types[t] == type;
        assert_refused(frame, sizeof frame, MUSTER_E_PROTOCOL, known ? "head" : "is not known");
        assert_true((strcmp(wire_type_name(type), "unknown") == 0) == !known);
    }
    assert_refused((uint8_t[]){0x92, 0x01, 0xcf, 0, 0, 0, 1, 0, 0, 0, 1}, 11, MUSTER_E_PROTOCOL,
                   "type 4294967297 is not known");
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
        cmocka_unit_test_setup(encode_makes_the_golden_frames_byte_by_byte, fresh),
        cmocka_unit_test_setup(golden_frames_decode_to_what_their_files_say, fresh),
        cmocka_unit_test_setup(random_messages_come_back_as_they_were, fresh),
        cmocka_unit_test_setup(a_copy_lives_longer_than_its_original, fresh),
        cmocka_unit_test_setup(null_strings_and_lists_are_sent_as_empty, fresh),
        cmocka_unit_test_setup(encode_needs_exactly_its_size, fresh),
        cmocka_unit_test_setup(a_full_arena_is_no_malformed_frame, fresh),
        cmocka_unit_test_setup(every_truncation_is_refused, fresh),
        cmocka_unit_test_setup(a_changed_byte_is_refused_or_gives_a_valid_message, fresh),
        cmocka_unit_test_setup(a_frame_must_be_complete_in_its_head_only, fresh),
        cmocka_unit_test_setup(entries_may_lack_their_last_fields, fresh),
        cmocka_unit_test_setup(elements_of_a_newer_sender_are_skipped, fresh),
        cmocka_unit_test_setup(each_limit_holds_and_one_more_is_refused_on_both_sides, fresh),
        cmocka_unit_test_setup(a_field_of_a_wrong_type_is_named, fresh),
        cmocka_unit_test_setup(text_must_be_utf8_in_both_directions, fresh),
        cmocka_unit_test_setup(bombs_are_refused_by_the_scan, fresh),
        cmocka_unit_test_setup(size_depth_and_items_are_bounded, fresh),
        cmocka_unit_test_setup(the_fullest_decision_fits_a_frame, fresh),
        cmocka_unit_test_setup(another_version_is_told_whatever_else_the_frame_holds, fresh),
        cmocka_unit_test_setup(a_version_and_type_in_a_longer_form_are_read, fresh),
        cmocka_unit_test_setup(unknown_types_are_refused, fresh),
        cmocka_unit_test_setup(directions_and_requests_are_as_in_the_table, fresh),
    };

    if (getenv("MUSTER_WRITE_VECTORS") != NULL)
        return write_vectors();
    return cmocka_run_group_tests_name("wire", tests, NULL, done);
}
