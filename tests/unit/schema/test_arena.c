/* The arena: alignment, zeroing, limit, growth, reset. */
#include "schema/arena.h"
#include "schema/room.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void nothing_is_allocated_before_the_first_use(void **state)
{
    struct arena arena;

    (void)state;
    arena_init(&arena, 100);
    assert_null(arena.chunks);
    assert_int_equal(arena.used_bytes, 0);
    assert_int_equal(arena.limit_bytes, 100);
    arena_reset(&arena);
    arena_free(&arena);
    assert_null(arena.chunks);
}

static void memory_is_aligned_zeroed_and_apart(void **state)
{
    static unsigned char *blocks[300];
    struct arena arena;

    (void)state;
    arena_init(&arena, 0);
    for (int pass = 0; pass < 3; pass++) { /* later passes get used memory again */
        for (size_t i = 0; i < 300; i++) {
            blocks[i] = arena_alloc(&arena, i);
            assert_non_null(blocks[i]);
            assert_int_equal((uintptr_t)blocks[i] % _Alignof(max_align_t), 0);
            for (size_t at = 0; at < i; at++)
                assert_int_equal(blocks[i][at], 0);
            memset(blocks[i], (int)(i % 255 + 1), i);
        }
        for (size_t i = 0; i < 300; i++)
            for (size_t at = 0; at < i; at++)
                assert_int_equal(blocks[i][at], i % 255 + 1);
        arena_reset(&arena);
        assert_int_equal(arena.used_bytes, 0);
    }
    arena_free(&arena);
}

static void the_limit_is_exact_and_survives_a_refusal(void **state)
{
    struct arena arena;

    (void)state;
    arena_init(&arena, 1024);
    assert_non_null(arena_alloc(&arena, 1000)); /* 1008 with padding */
    assert_int_equal(arena.used_bytes, 1008);
    assert_null(arena_alloc(&arena, 17));
    assert_null(arena_strdup(&arena, "more than sixteen"));
    assert_null(arena_printf(&arena, "%s", "more than sixteen"));
    assert_int_equal(arena.used_bytes, 1008);
    assert_non_null(arena_alloc(&arena, 16));
    assert_null(arena_alloc(&arena, 0)); /* even nothing takes a place of its own */
    assert_null(arena_strdup(&arena, NULL));
    arena_reset(&arena);
    assert_non_null(arena_alloc(&arena, 1024));
    arena_free(&arena);
}

static void absurd_sizes_are_refused(void **state)
{
    struct arena arena;

    (void)state;
    arena_init(&arena, 0);
    assert_null(arena_alloc(&arena, SIZE_MAX));
    assert_null(arena_alloc(&arena, SIZE_MAX - 15));
    assert_null(arena_alloc(&arena, SIZE_MAX / 2 + 1));
    assert_non_null(arena_alloc(&arena, 1));
    arena_free(&arena);
}

static void large_objects_fit_between_small_ones(void **state)
{
    struct arena arena;
    char *small;
    char *large;

    (void)state;
    arena_init(&arena, 0);
    small = arena_strdup(&arena, "small");
    large = arena_alloc(&arena, (size_t)3 << 20);
    assert_non_null(large);
    memset(large, 'x', (size_t)3 << 20);
    assert_string_equal(small, "small");
    assert_string_equal(arena_strdup(&arena, "after"), "after");
    arena_free(&arena);
    assert_null(arena.chunks);
    assert_int_equal(arena.used_bytes, 0);
}

/* A loop that resets each pass must stop asking the system for memory. */
static void a_reset_keeps_one_chunk_for_the_next_pass(void **state)
{
    struct arena arena;
    struct arena_chunk *kept;

    (void)state;
    arena_init(&arena, 0);
    for (int i = 0; i < 1000; i++)
        assert_non_null(arena_alloc(&arena, 100));
    arena_reset(&arena);
    kept = arena.chunks;
    assert_non_null(kept);
    for (int i = 0; i < 500; i++)
        assert_non_null(arena_alloc(&arena, 100));
    assert_ptr_equal(arena.chunks, kept);
    arena_reset(&arena);
    assert_ptr_equal(arena.chunks, kept);
    arena_free(&arena);
}

static void an_oversized_chunk_is_given_back(void **state)
{
    struct arena arena;

    (void)state;
    arena_init(&arena, 0);
    assert_non_null(arena_alloc(&arena, (size_t)8 << 20));
    arena_reset(&arena);
    assert_null(arena.chunks);
    arena_free(&arena);
}

static void strings_are_copied_cut_and_formatted(void **state)
{
    struct arena arena;
    char long_text[10000];

    (void)state;
    arena_init(&arena, 0);
    assert_string_equal(arena_strdup(&arena, "text"), "text");
    assert_string_equal(arena_strdup(&arena, ""), "");
    assert_string_equal(arena_strdup(&arena, NULL), "");
    assert_string_equal(arena_strndup(&arena, "text", 2), "te");
    assert_string_equal(arena_strndup(&arena, "text", 10), "text"); /* as strndup */
    assert_string_equal(arena_strndup(&arena, (const char[]){'a', 'b'}, 2), "ab");
    assert_string_equal(arena_strndup(&arena, NULL, 5), "");
    assert_string_equal(arena_printf(&arena, "%d of %s", 3, "four"), "3 of four");
    assert_string_equal(arena_printf(&arena, "%s", ""), "");
    memset(long_text, 'y', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    assert_string_equal(arena_printf(&arena, "%s", long_text), long_text);
    arena_free(&arena);
}

static void an_array_doubles_and_keeps_what_it_has(void **state)
{
    int *items = NULL;
    size_t capacity = 0, moves = 0;

    (void)state;
    for (int i = 0; i < 100; i++) {
        size_t before = capacity;

        items = room_for_one(items, (size_t)i, &capacity, 3, sizeof *items);
        assert_non_null(items);
        items[i] = i;
        moves += capacity != before;
    }
    assert_int_equal(capacity, 192);
    assert_int_equal(moves, 7);
    for (int i = 0; i < 100; i++)
        assert_int_equal(items[i], i);
    capacity = SIZE_MAX / sizeof *items; /* more than there is: all stays as it is */
    assert_null(room_for_one(items, capacity, &capacity, 3, sizeof *items));
    assert_int_equal(capacity, SIZE_MAX / sizeof *items);
    free(items);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_allocated_before_the_first_use),
        cmocka_unit_test(memory_is_aligned_zeroed_and_apart),
        cmocka_unit_test(the_limit_is_exact_and_survives_a_refusal),
        cmocka_unit_test(absurd_sizes_are_refused),
        cmocka_unit_test(large_objects_fit_between_small_ones),
        cmocka_unit_test(a_reset_keeps_one_chunk_for_the_next_pass),
        cmocka_unit_test(an_oversized_chunk_is_given_back),
        cmocka_unit_test(strings_are_copied_cut_and_formatted),
        cmocka_unit_test(an_array_doubles_and_keeps_what_it_has),
    };

    return cmocka_run_group_tests_name("arena", tests, NULL, NULL);
}
