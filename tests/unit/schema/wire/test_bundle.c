/* Bundles: what goes in comes out, and bytes that a relay of ours never sends have no effect. */
#include "schema/wire/bundle.h"
#include "schema/wire/wire.h"
#include "schema/wire/wire_bytes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct bundle made;

/* Opens from memory of exactly that size, so that a read behind it is found. */
static enum bundle_kind opened(const uint8_t *data, size_t size, unsigned *ret_entries)
{
    uint8_t *exact = malloc(size + (size == 0));
    struct bundle_reader reader = {.left = 77};
    struct bundle_entry entry;
    enum bundle_kind kind;

    assert_non_null(exact);
    if (size > 0)
        memcpy(exact, data, size);
    kind = bundle_open(exact, size, &reader);
    *ret_entries = 0;
    if (kind != BUNDLE_WHOLE)
        assert_int_equal(reader.left, 77); /* nothing of it was given out */
    else
        while (bundle_next(&reader, &entry)) {
            assert_true(entry.frame >= exact && entry.frame + entry.size <= exact + size);
            assert_int_not_equal(entry.peer, BUNDLE_SELF);
            ++*ret_entries;
        }
    free(exact);
    return kind;
}

static void make_three(void)
{
    bundle_begin(&made, WIRE_FRAME_MAX);
    assert_true(bundle_add(&made, 2, (const uint8_t *)"one", 3));
    assert_true(bundle_add(&made, UINT32_MAX, (const uint8_t *)"", 0));
    assert_true(bundle_add(&made, 7, (const uint8_t *)"three", 5));
}

static void frames_come_out_in_their_order_with_their_peers(void **state)
{
    struct bundle_reader reader;
    struct bundle_entry entry;

    (void)state;
    make_three();
    assert_int_equal(bundle_open(made.bytes, made.size, &reader), BUNDLE_WHOLE);
    assert_true(bundle_next(&reader, &entry));
    assert_int_equal(entry.peer, 2);
    assert_int_equal(entry.size, 3);
    assert_memory_equal(entry.frame, "one", 3);
    assert_true(bundle_next(&reader, &entry));
    assert_int_equal(entry.peer, UINT32_MAX);
    assert_int_equal(entry.size, 0);
    assert_true(bundle_next(&reader, &entry));
    assert_int_equal(entry.peer, 7);
    assert_memory_equal(entry.frame, "three", 5);
    assert_false(bundle_next(&reader, &entry));
}

static void the_largest_frame_fits_alone_and_nothing_beside_it(void **state)
{
    static const size_t longest[] = {WIRE_FRAME_MAX, WIRE_EVENT_MAX};
    static const uint8_t large[WIRE_EVENT_MAX + 1];
    unsigned entries;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        bundle_begin(&made, longest[i]);
        assert_false(bundle_add(&made, 2, large, longest[i] + 1));
        assert_true(bundle_add(&made, 2, large, longest[i]));
        assert_false(bundle_add(&made, 3, large, 0));
        assert_int_equal(made.size, longest[i] + BUNDLE_AROUND_BYTES);
        assert_int_equal(opened(made.bytes, made.size, &entries), BUNDLE_WHOLE);
        assert_int_equal(entries, 1);
    }
    assert_true(BUNDLE_AROUND_BYTES + 33 <= WIRE_SEAL); /* inside CURVE, too */
    bundle_begin(&made, WIRE_EVENT_MAX);
    assert_true(bundle_add(&made, 2, large, 1));
    assert_false(bundle_add(&made, 2, large, WIRE_FRAME_MAX)); /* company is short */
}

static void a_bundle_has_so_many_entries_and_no_more(void **state)
{
    unsigned entries;

    (void)state;
    bundle_begin(&made, WIRE_FRAME_MAX);
    for (int i = 0; i < BUNDLE_ENTRIES_MAX; i++)
        assert_true(bundle_add(&made, 2, (const uint8_t *)"x", 1));
    assert_false(bundle_add(&made, 2, (const uint8_t *)"x", 1));
    assert_int_equal(opened(made.bytes, made.size, &entries), BUNDLE_WHOLE);
    assert_int_equal(entries, BUNDLE_ENTRIES_MAX);
}

static void a_bundle_that_is_cut_off_anywhere_gives_nothing(void **state)
{
    unsigned entries;

    (void)state;
    make_three();
    for (size_t size = 0; size < made.size; size++) {
        enum bundle_kind kind = opened(made.bytes, size, &entries);

        assert_true(kind == BUNDLE_BROKEN || (kind == BUNDLE_NONE && size < BUNDLE_HEAD_BYTES));
        assert_int_equal(entries, 0);
    }
    made.bytes[made.size] = 0;
    assert_int_equal(opened(made.bytes, made.size + 1, &entries), BUNDLE_BROKEN);
}

static void a_bundle_that_was_changed_anywhere_gives_all_or_nothing(void **state)
{
    uint8_t changed[64];
    unsigned entries;

    (void)state;
    make_three();
    assert_true(made.size < sizeof changed);
    for (size_t at = 0; at < made.size; at++)
        for (unsigned byte = 0; byte < 256; byte++) {
            memcpy(changed, made.bytes, made.size);
            changed[at] = (uint8_t)byte;
            if (opened(changed, made.size, &entries) == BUNDLE_WHOLE)
                assert_int_equal(entries, 3);
        }
}

/* The head says how many come: no memory is taken for them, and they have to be there. */
static void counts_and_lengths_that_lie_are_refused(void **state)
{
    static const struct {
        const char *what;
        size_t size;
        uint8_t bytes[20];
    } lies[] = {
        {"no number of items", 3, {0xdc, 0xff, 0xff}},
        {"more entries than bytes", 6, {0xdc, 0xff, 0xff, 0xcd, 1, 1}},
        {"a peer without a frame", 6, {0xdc, 0, 2, 0xcd, 1, 1}},
        {"no version's item", 6, {0xdc, 0, 0, 0xcd, 1, 1}},
        {"another form of list", 4, {0x91, 0xcd, 1, 1}},
        {"another form of number", 8, {0xdc, 0, 1, 0xce, 0, 0, 1, 1}},
        {"a frame of 4 GiB",
         16,
         {0xdc, 0, 3, 0xcd, 1, 1, 0xce, 0, 0, 0, 2, 0xc6, 255, 255, 255, 255}},
        {"a frame behind the end", 14, {0xdc, 0, 3, 0xcd, 1, 1, 0xce, 0, 0, 0, 2, 0xc5, 0, 1}},
        {"peer 1", 14, {0xdc, 0, 3, 0xcd, 1, 1, 0xce, 0, 0, 0, 1, 0xc5, 0, 0}},
        {"a string for a frame", 14, {0xdc, 0, 3, 0xcd, 1, 1, 0xce, 0, 0, 0, 2, 0xda, 0, 0}},
    };
    unsigned entries;

    (void)state;
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        enum bundle_kind kind = opened(lies[i].bytes, lies[i].size, &entries);

        if (kind != BUNDLE_BROKEN && !(i == 0 && kind == BUNDLE_NONE))
            fail_msg("%s: %d", lies[i].what, (int)kind);
    }
}

static void other_versions_are_known_and_frames_are_none(void **state)
{
    static const uint8_t newer[] = {0xdc, 0, 1, 0xcd, 1, 2}, oldest[] = {0xdc, 0, 1, 0xcd, 1, 0};
    static const uint8_t frame[] = {0x92, 1, 2}, topic[] = {1, 'j', 0};
    unsigned entries;

    (void)state;
    assert_int_equal(opened(newer, sizeof newer, &entries), BUNDLE_OTHER);
    assert_int_equal(opened(oldest, sizeof oldest, &entries), BUNDLE_OTHER);
    assert_int_equal(opened(frame, sizeof frame, &entries), BUNDLE_NONE);
    assert_int_equal(opened(topic, sizeof topic, &entries), BUNDLE_NONE);
    assert_int_equal(opened(NULL, 0, &entries), BUNDLE_NONE);
}

/* So a broker that knows no bundles answers one by name, instead of with silence. */
static void a_reader_of_frames_refuses_a_bundle_by_its_version(void **state)
{
    struct wire_msg message;
    struct muster_error err;
    struct arena arena;

    (void)state;
    make_three();
    arena_init(&arena, 1 << 16);
    assert_int_equal(wire_decode(made.bytes, made.size, &arena, &message, &err), MUSTER_E_VERSION);
    arena_free(&arena);
}

static void a_hello_is_read_as_it_was_written(void **state)
{
    struct bundle_hello hello = {.sender = 0x0123456789abcdef, .depth = 3}, read = {0};
    uint8_t bytes[BUNDLE_HELLO_MAX];
    size_t size;

    (void)state;
    memset(hello.endpoint, 'e', ENDPOINT_MAX);
    size = bundle_hello_write(&hello, bytes);
    assert_true(bundle_hello_read(bytes, size, &read));
    assert_memory_equal(&hello, &read, sizeof hello);
    assert_false(bundle_hello_read(bytes, 11, &read));
    bytes[20] = '\0';
    assert_false(bundle_hello_read(bytes, size, &read)); /* an address ends where it ends */
}

/* --- WELCOME ---------------------------------------------------------------------------------- */

static size_t welcome(uint8_t ret_frame[WIRE_FRAME_MAX])
{
    struct wire_msg message = {.type = WIRE_WELCOME};

    message.down = (struct wire_down){
        .start_id = UINT64_MAX, .broker_epoch = 3, .job = "j", .generation = 2, .last_seq = 9};
    message.u.welcome = (struct wire_welcome){.nonce = 1,
                                              .generation = 2,
                                              .world_size = 8,
                                              .events_endpoint = "tcp://10.0.0.1:7701",
                                              .heartbeat_ms = 1000,
                                              .speaks = WIRE_SPEAKS,
                                              .signer = "s",
                                              .database = 77};
    return wire_encode(&message, ret_frame, WIRE_FRAME_MAX);
}

static void a_welcome_names_the_relays_events_and_is_the_same_otherwise(void **state)
{
    static uint8_t frame[WIRE_FRAME_MAX], moved[WIRE_FRAME_MAX], back[WIRE_FRAME_MAX];
    char longest[ENDPOINT_MAX + 2];
    struct wire_msg message;
    struct muster_error err;
    struct arena arena;
    size_t size = welcome(frame), moved_size;

    (void)state;
    moved_size = bundle_welcome_at(frame, size, "ipc:///run/relay.sock.events", moved);
    arena_init(&arena, 1 << 16);
    assert_int_equal(wire_decode(moved, moved_size, &arena, &message, &err), MUSTER_OK);
    assert_string_equal(message.u.welcome.events_endpoint, "ipc:///run/relay.sock.events");
    assert_int_equal(message.u.welcome.database, 77);
    message.u.welcome.events_endpoint = "tcp://10.0.0.1:7701";
    assert_int_equal(wire_encode(&message, back, sizeof back), size);
    assert_memory_equal(back, frame, size);
    arena_free(&arena);
    memset(longest, 'x', ENDPOINT_MAX);
    longest[ENDPOINT_MAX] = '\0';
    assert_int_not_equal(bundle_welcome_at(frame, size, longest, moved), 0);
    longest[ENDPOINT_MAX] = 'x';
    longest[ENDPOINT_MAX + 1] = '\0';
    assert_int_equal(bundle_welcome_at(frame, size, longest, moved), 0);
}

/* A broker of tomorrow says more than we know. */
static void what_follows_in_a_welcome_stays(void **state)
{
    static uint8_t frame[WIRE_FRAME_MAX], moved[WIRE_FRAME_MAX];
    size_t size = welcome(frame), at = 0, end = 0, moved_size, before;

    (void)state;
    assert_true((frame[0] & 0xf0) == 0x90 || frame[0] == 0xdc);
    if (frame[0] == 0xdc)
        frame[2]++;
    else if (frame[0] == 0x9f)
        fail_msg("give the frame another form of list");
    else
        frame[0]++;
    frame[size++] = 0x2a;
    for (before = 0; wire_element(frame, size, before, &at, &end); before++)
        continue;
    moved_size = bundle_welcome_at(frame, size, "ipc:///e", moved);
    assert_int_equal(moved[moved_size - 1], 0x2a);
    assert_true(wire_element(moved, moved_size, before - 1, &at, &end));
    assert_int_equal(end, moved_size);
    assert_false(wire_element(moved, moved_size, before, &at, &end));
}

static void only_a_whole_welcome_is_changed(void **state)
{
    static uint8_t frame[WIRE_FRAME_MAX], moved[WIRE_FRAME_MAX];
    size_t size = welcome(frame);

    (void)state;
    for (size_t cut = 0; cut < size; cut++)
        assert_int_equal(bundle_welcome_at(frame, cut, "ipc:///e", moved), 0);
    frame[frame[0] == 0xdc ? 4 : 2] = WIRE_ACK;
    assert_int_equal(bundle_welcome_at(frame, size, "ipc:///e", moved), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_come_out_in_their_order_with_their_peers),
        cmocka_unit_test(the_largest_frame_fits_alone_and_nothing_beside_it),
        cmocka_unit_test(a_bundle_has_so_many_entries_and_no_more),
        cmocka_unit_test(a_bundle_that_is_cut_off_anywhere_gives_nothing),
        cmocka_unit_test(a_bundle_that_was_changed_anywhere_gives_all_or_nothing),
        cmocka_unit_test(counts_and_lengths_that_lie_are_refused),
        cmocka_unit_test(other_versions_are_known_and_frames_are_none),
        cmocka_unit_test(a_reader_of_frames_refuses_a_bundle_by_its_version),
        cmocka_unit_test(a_hello_is_read_as_it_was_written),
        cmocka_unit_test(a_welcome_names_the_relays_events_and_is_the_same_otherwise),
        cmocka_unit_test(what_follows_in_a_welcome_stays),
        cmocka_unit_test(only_a_whole_welcome_is_changed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
