/* A copy of a state that stays as it was. */
#include "node/shard/snapshot.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

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
    assert_int_equal(snapshot_take(&snapshot, s, &copied, NULL), MUSTER_OK);
    assert_int_equal(copied, 7 + sizeof a + sizeof b);
    strcpy(a, "....");
    strcpy(b, "second");
    assert_int_equal(snapshot.state->count, 3);
    assert_int_equal(snapshot.state->size_bytes, s->size_bytes);
    assert_string_equal(state_find(snapshot.state, "a")->data, "abcd");
    assert_string_equal(state_find(snapshot.state, "b")->data, "first");
    memory = snapshot.memory;
    assert_int_equal(state_remove(s, "a", NULL), MUSTER_OK);
    assert_int_equal(snapshot_take(&snapshot, s, NULL, NULL), MUSTER_OK);
    assert_ptr_equal(snapshot.memory, memory); /* kept */
    assert_null(state_find(snapshot.state, "a"));
    assert_string_equal(state_find(snapshot.state, "b")->data, "second");
    snapshot_clear(&snapshot);
    snapshot_clear(&snapshot);
    state_destroy(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copy_stays_while_the_state_changes_and_follows_when_taken_again),
    };

    return cmocka_run_group_tests_name("snapshot", tests, NULL, NULL);
}
