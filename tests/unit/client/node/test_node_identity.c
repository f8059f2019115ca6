/* Tests of client/node/node_identity.c: what a program is told before it opens a node. */
#include <muster/node.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int as_rank_2_of_torchrun(void **state)
{
    (void)state;
    clearenv();
    setenv("RANK", "2", 1);
    setenv("WORLD_SIZE", "4", 1);
    setenv("LOCAL_RANK", "0", 1);
    setenv("TORCHELASTIC_RUN_ID", "run7", 1);
    return 0;
}

static void the_environment_says_who_a_node_would_be(void **state)
{
    struct muster_identity who;

    (void)state;
    assert_int_equal(muster_identity_read(&who, sizeof who, NULL), MUSTER_OK);
    assert_int_equal(who.rank, 2);
    assert_int_equal(who.world_size, 4);
    assert_int_equal(who.local_size, -1);
    assert_string_equal(who.launcher, "torchrun");
    assert_string_equal(who.job, "torch-run7");
    assert_string_equal(who.note, "");
}

static void a_contradiction_is_named_and_fills_nothing(void **state)
{
    struct muster_identity who = {.rank = 77};
    struct muster_error err = {.text = ""};

    (void)state;
    setenv("MUSTER_RANK", "0", 1);
    setenv("MUSTER_WORLD_SIZE", "1", 1);
    assert_int_equal(muster_identity_read(&who, sizeof who, &err), MUSTER_E_ARGUMENT);
    assert_non_null(strstr(err.text, "torchrun says rank 2 of 4"));
    assert_int_equal(who.rank, 77);
}

static void a_shorter_and_a_longer_structure_are_filled_to_their_end(void **state)
{
    struct {
        struct muster_identity who;
        char later[8];
    } newer;
    struct muster_identity older = {.local_rank = 77};

    (void)state;
    memset(&newer, 1, sizeof newer);
    assert_int_equal(muster_identity_read(&newer.who, sizeof newer, NULL), MUSTER_OK);
    assert_int_equal(newer.later[7], 0);
    assert_int_equal(
        muster_identity_read(&older, offsetof(struct muster_identity, local_rank), NULL),
        MUSTER_OK);
    assert_int_equal(older.world_size, 4);
    assert_int_equal(older.local_rank, 77);
}

/* Its open told MUSTER_PREEMPTED: there is no node. */
static void a_process_without_a_node_has_a_restart_code(void **state)
{
    static const struct {
        const char *told;
        int code;
    } table[] = {{NULL, 42}, {"75", 75}, {"0", 42}, {"256", 42}, {"93", 42}, {"x", 42}};

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        unsetenv("MUSTER_RESTART_CODE");
        if (table[i].told != NULL)
            setenv("MUSTER_RESTART_CODE", table[i].told, 1);
        assert_int_equal(muster_node_restart_code(NULL), table[i].code);
    }
    unsetenv("MUSTER_RESTART_CODE");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_without_a_node_has_a_restart_code),
        cmocka_unit_test_setup(the_environment_says_who_a_node_would_be, as_rank_2_of_torchrun),
        cmocka_unit_test_setup(a_contradiction_is_named_and_fills_nothing, as_rank_2_of_torchrun),
        cmocka_unit_test_setup(a_shorter_and_a_longer_structure_are_filled_to_their_end,
                               as_rank_2_of_torchrun),
    };

    return cmocka_run_group_tests_name("node_identity", tests, NULL, NULL);
}
