#include "tests/unit/schema/wire/wire_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

uint8_t wire_buffer[WIRE_ROOM];
uint8_t wire_other[WIRE_ROOM];
struct arena wire_arena;
struct arena wire_in_arena;

size_t wire_longest(enum wire_type type)
{
    return type == WIRE_EVENT ? WIRE_EVENT_MAX : WIRE_FRAME_MAX;
}

int wire_fresh(void **state)
{
    (void)state;
    arena_free(&wire_arena);
    arena_free(&wire_in_arena);
    arena_init(&wire_arena, 0);
    arena_init(&wire_in_arena, WIRE_ARENA_BYTES);
    return 0;
}

int wire_done(void **state)
{
    (void)state;
    arena_free(&wire_arena);
    arena_free(&wire_in_arena);
    return 0;
}

enum muster_status wire_decode_exactly(const uint8_t *frame, size_t size, struct wire_msg *ret_msg,
                                       struct muster_error *err)
{
    uint8_t *exact = malloc(size + (size == 0));
    enum muster_status status;

    assert_non_null(exact);
    if (size > 0)
        memcpy(exact, frame, size);
    arena_reset(&wire_in_arena);
    status = wire_decode(exact, size, &wire_in_arena, ret_msg, err);
    free(exact); /* what was decoded does not point into it */
    return status;
}

void wire_assert_refused(const uint8_t *frame, size_t size, enum muster_status expected,
                         const char *in_text)
{
    struct wire_msg msg;
    struct wire_msg before;
    struct muster_error err = {0};
    enum muster_status status;

    memset(&msg, 0x5a, sizeof msg);
    before = msg;
    status = wire_decode_exactly(frame, size, &msg, &err);
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

void wire_assert_decodes_to(const uint8_t *frame, size_t size, const struct wire_msg *expected)
{
    struct wire_msg msg;
    struct muster_error err = {0};
    enum muster_status status = wire_decode_exactly(frame, size, &msg, &err);

    if (status != MUSTER_OK)
        fail_msg("%s: %s", muster_status_name(status), err.text);
    assert_string_equal(sample_text(&msg, &wire_arena), sample_text(expected, &wire_arena));
    assert_no_null_string(&msg);
}

size_t wire_golden(struct wire_msg *msg, unsigned type)
{
    size_t size;

    sample_fill(msg, type, 0, &wire_arena);
    size = wire_encode(msg, wire_buffer, sizeof wire_buffer);
    assert_true(size > 0);
    return size;
}
