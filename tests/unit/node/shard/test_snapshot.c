/* A copy of a state that stays as it was. */
#include "node/shard/snapshot.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add(struct muster_state *s, const char *name, int64_t count, void *data)
{
    struct state_item item = {.name = name,
                              .kind = STATE_KIND_TENSOR,
                              .dtype = STATE_DTYPE_U8,
                              .dim_count = 1,
                              .shape = {count},
                              .data = data};

    assert_int_equal(state_add(s, &item, NULL), MUSTER_OK);
}

static void copy_stays_while_the_state_changes_and_follows_when_taken_again(void **state)
{
    struct muster_state *s = NULL;
    struct snapshot snapshot = {0};
    char a[5] = "abcd", b[100] = "first";
    const char *memory;
    _Atomic uint64_t copied = 7;

    (void)state;
    assert_int_equal(state_create(&s, NULL), MUSTER_OK);
    add(s, "a", 5, a);
    add(s, "none", 0, NULL);
    add(s, "b", sizeof b, b);
    assert_int_equal(snapshot_take(&snapshot, s, &copied, NULL, NULL), MUSTER_OK);
    assert_int_equal(copied, 7 + sizeof a + sizeof b);
    strcpy(a, "....");
    strcpy(b, "second");
    assert_int_equal(snapshot.state->count, 3);
    assert_int_equal(snapshot.state->size_bytes, s->size_bytes);
    assert_string_equal(state_find(snapshot.state, "a")->data, "abcd");
    assert_string_equal(state_find(snapshot.state, "b")->data, "first");
    memory = snapshot.memory;
    assert_int_equal(state_remove(s, "a", NULL), MUSTER_OK);
    assert_int_equal(snapshot_take(&snapshot, s, NULL, NULL, NULL), MUSTER_OK);
    assert_ptr_equal(snapshot.memory, memory); /* kept */
    assert_null(state_find(snapshot.state, "a"));
    assert_string_equal(state_find(snapshot.state, "b")->data, "second");
    snapshot_clear(&snapshot);
    snapshot_clear(&snapshot);
    state_destroy(&s);
}

/* Threads share it out by bytes: their borders lie inside entries of any size. */
static void a_large_state_of_uneven_entries_is_copied_whole(void **state)
{
    enum { ENTRIES = 301, LARGE = 7 };
    struct muster_state *s = NULL;
    struct snapshot snapshot = {0};
    unsigned char *entries[ENTRIES];
    size_t sizes[ENTRIES];
    char name[16];
    _Atomic uint64_t copied = 0;

    (void)state;
    assert_int_equal(state_create(&s, NULL), MUSTER_OK);
    for (size_t i = 0; i < ENTRIES; i++) {
        sizes[i] = i == LARGE ? (size_t)70 << 20 : 1 + i * i * 11 % 99991;
        entries[i] = malloc(sizes[i]);
        assert_non_null(entries[i]);
        for (size_t at = 0; at < sizes[i]; at++)
            entries[i][at] = (unsigned char)(at * 31 + at / 257 + i);
        snprintf(name, sizeof name, "e%zu", i);
        add(s, name, (int64_t)sizes[i], entries[i]);
    }
    assert_int_equal(snapshot_take(&snapshot, s, &copied, NULL, NULL), MUSTER_OK);
    assert_int_equal(copied, s->size_bytes);
    for (size_t i = 0; i < ENTRIES; i++) {
        snprintf(name, sizeof name, "e%zu", i);
        assert_memory_equal(state_find(snapshot.state, name)->data, entries[i], sizes[i]);
        free(entries[i]);
    }
    snapshot_clear(&snapshot);
    state_destroy(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_large_state_of_uneven_entries_is_copied_whole),
        cmocka_unit_test(copy_stays_while_the_state_changes_and_follows_when_taken_again),
    };

    return cmocka_run_group_tests_name("snapshot", tests, NULL, NULL);
}
