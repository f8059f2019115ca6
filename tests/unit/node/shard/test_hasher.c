/* The second thread that hashes: its sums are those of one thread, and it can be broken off. */
#include "node/shard/fs.h"
#include "node/shard/hasher.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define ENTRIES (HASHER_AHEAD_MAX * 3 + 1) /* more than may be ahead: a push waits */
#define ENTRY_BYTES 5000
#define PIECE_BYTES 2048 /* the last one of an entry is shorter */
#define PIECES 3

static unsigned char data[ENTRIES][ENTRY_BYTES];
static atomic_ullong heard_bytes;
static unsigned long long heard_most;

static int setup(void **state)
{
    (void)state;
    for (size_t i = 0; i < ENTRIES; i++)
        for (size_t k = 0; k < ENTRY_BYTES; k++)
            data[i][k] = (unsigned char)(i * 7 + k * 31 + (k >> 5));
    atomic_store(&heard_bytes, 0);
    heard_most = UINT64_MAX;
    return 0;
}

static bool hears(uint64_t bytes, void *arg)
{
    (void)arg;
    return atomic_fetch_add(&heard_bytes, bytes) + bytes < heard_most;
}

static const struct fs_watcher watcher = {.went = hears};

static void assert_sum_of_all(enum checksum_kind kind, const char *text)
{
    struct checksum *sum = checksum_create(kind);
    char expected[MANIFEST_CHECKSUM_SIZE];

    checksum_update(sum, data, sizeof data);
    checksum_text(sum, expected);
    checksum_destroy(&sum);
    assert_string_equal(text, expected);
}

static void push_all(struct hasher *hasher, unsigned char sums[ENTRIES][PIECES][CHECKSUM_RAW_BYTES])
{
    for (size_t i = 0; i < ENTRIES; i++)
        hasher_push(hasher, &(struct hasher_entry){.data = data[i],
                                                   .size = ENTRY_BYTES,
                                                   .ret_sums = sums != NULL ? sums[i][0] : NULL,
                                                   .piece_bytes = PIECE_BYTES});
}

static void what_is_pushed_is_hashed_in_that_order(void **state)
{
    static const enum checksum_kind kinds[] = {CHECKSUM_XXH3, CHECKSUM_STRONG};

    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct hasher *hasher = hasher_create(kinds[i], &watcher, NULL);
        char text[MANIFEST_CHECKSUM_SIZE];

        assert_non_null(hasher);
        atomic_store(&heard_bytes, 0);
        push_all(hasher, NULL);
        hasher_wait(hasher);
        hasher_text(hasher, text);
        assert_sum_of_all(kinds[i], text);
        assert_int_equal(atomic_load(&heard_bytes), sizeof data);
        assert_false(hasher_gave_up(hasher));
        hasher_destroy(&hasher);
        assert_null(hasher);
    }
    hasher_destroy(&(struct hasher *){NULL});
}

static void more_may_follow_a_wait(void **state)
{
    struct hasher *hasher = hasher_create(CHECKSUM_XXH3, NULL, NULL);
    char text[MANIFEST_CHECKSUM_SIZE];

    (void)state;
    for (size_t i = 0; i < ENTRIES; i++) {
        hasher_push(hasher, &(struct hasher_entry){.data = data[i], .size = ENTRY_BYTES});
        if (i % 5 == 0)
            hasher_wait(hasher);
    }
    hasher_wait(hasher);
    hasher_text(hasher, text);
    assert_sum_of_all(CHECKSUM_XXH3, text);
    hasher_destroy(&hasher);
}

static void each_piece_of_an_entry_has_its_own_sum(void **state)
{
    static unsigned char sums[ENTRIES][PIECES][CHECKSUM_RAW_BYTES];
    struct hasher *hasher = hasher_create(CHECKSUM_XXH3, NULL, NULL);
    char text[MANIFEST_CHECKSUM_SIZE];

    (void)state;
    push_all(hasher, sums);
    hasher_wait(hasher);
    hasher_text(hasher, text);
    assert_sum_of_all(CHECKSUM_XXH3, text);
    for (size_t i = 0; i < ENTRIES; i++)
        for (size_t p = 0; p < PIECES; p++) {
            size_t from = p * PIECE_BYTES;
            size_t size = ENTRY_BYTES - from < PIECE_BYTES ? ENTRY_BYTES - from : PIECE_BYTES;
            unsigned char expected[CHECKSUM_RAW_BYTES];

            checksum_raw(data[i] + from, size, expected);
            assert_memory_equal(sums[i][p], expected, sizeof expected);
        }
    hasher_destroy(&hasher);
}

static void a_watcher_that_has_enough_breaks_it_off(void **state)
{
    struct hasher *hasher = hasher_create(CHECKSUM_XXH3, &watcher, NULL);

    (void)state;
    heard_most = 2 * ENTRY_BYTES;
    push_all(hasher, NULL);
    hasher_wait(hasher); /* it returns: what is left is let go */
    assert_true(hasher_gave_up(hasher));
    assert_int_equal(atomic_load(&heard_bytes), 2 * ENTRY_BYTES);
    hasher_destroy(&hasher);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(what_is_pushed_is_hashed_in_that_order, setup),
        cmocka_unit_test_setup(more_may_follow_a_wait, setup),
        cmocka_unit_test_setup(each_piece_of_an_entry_has_its_own_sum, setup),
        cmocka_unit_test_setup(a_watcher_that_has_enough_breaks_it_off, setup),
    };

    return cmocka_run_group_tests_name("hasher", tests, NULL, NULL);
}
