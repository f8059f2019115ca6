/* What a process without a broker leaves when it is killed in the middle of a save, and what the
 * next one clears. */
#include "node/local/local_left.h"

#include "node/shard/dir.h"
#include "tests/support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define NONCE 0xabcdef

static char root[SCRATCH_PATH_MAX], said[4096];

static void take_line(int level, const char *text, void *arg)
{
    size_t used = strlen(said);

    (void)level, (void)arg;
    snprintf(said + used, sizeof said - used, "%s\n", text);
}

static struct local life(void)
{
    return (struct local){.generation = 3,
                          .left_fd = -1,
                          .options = {.save = {.root = root, .job = "lone"}, .log = take_line}};
}

static int setup(void **state)
{
    (void)state;
    scratch_make(root);
    mkdir(scratch_path(root, ".muster"), 0755);
    said[0] = '\0';
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    scratch_remove(root);
    return 0;
}

/* As a save makes it; the nonce names this life of the round. */
static void make_round(uint64_t round, uint64_t nonce)
{
    char path[FS_PATH_MAX];
    struct muster_error err;

    if (dir_round_open(root, "lone", 3, round, nonce, path, &err) != MUSTER_OK)
        fail_msg("%s", err.text);
}

static bool there_is(uint64_t round)
{
    return scratch_exists(scratch_path(root, ".muster/3-%d", (int)round));
}

static size_t line_size(void)
{
    size_t size;

    free(scratch_read(scratch_path(root, ".muster/LONE"), &size));
    return size;
}

static void killed_while_it_writes(uint64_t round, uint64_t nonce)
{
    struct local one = life();

    local_left_open(&one);
    local_left_begin(&one, round, nonce);
    assert_int_not_equal(line_size(), 0);
    local_left_close(&one); /* the kill: nothing ends the round */
}

static void the_next_process_removes_the_unfinished_round(void **state)
{
    struct local next = life();

    (void)state;
    make_round(4, NONCE);
    make_round(5, NONCE);
    killed_while_it_writes(5, NONCE);
    local_left_open(&next);
    assert_false(there_is(5));
    assert_true(there_is(4)); /* that is not named */
    assert_int_equal(line_size(), 0);
    local_left_close(&next);
}

static void a_round_that_was_ended_stays(void **state)
{
    struct local one = life(), next = life();

    (void)state;
    make_round(5, NONCE);
    local_left_open(&one);
    local_left_begin(&one, 5, NONCE);
    local_left_end(&one);
    local_left_close(&one);
    local_left_open(&next);
    assert_true(there_is(5));
    local_left_close(&next);
}

static void a_round_of_another_life_stays(void **state)
{
    struct local next = life();

    (void)state;
    make_round(5, NONCE + 1);
    killed_while_it_writes(5, NONCE);
    local_left_open(&next);
    assert_true(there_is(5));
    assert_string_equal(said, "");
    local_left_close(&next);
}

static void a_line_that_was_cut_names_nothing(void **state)
{
    static const char *const lines[] = {"3 5 0000000000abcdef", "3 5\n", "0 5 0000000000abcdef\n",
                                        "bytes\n", ""};

    (void)state;
    make_round(5, NONCE);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct local next = life();

        scratch_write(scratch_path(root, ".muster/LONE"), lines[i], strlen(lines[i]));
        local_left_open(&next);
        assert_true(there_is(5));
        assert_int_equal(line_size(), 0);
        local_left_close(&next);
    }
}

static void beside_one_that_lives_nothing_is_cleared_and_it_is_told(void **state)
{
    struct local one = life(), other = life();

    (void)state;
    make_round(5, NONCE);
    local_left_open(&one);
    local_left_begin(&one, 5, NONCE);
    local_left_open(&other);
    assert_int_equal(other.left_fd, -1);
    assert_non_null(strstr(said, "another process without a broker uses this checkpoint"));
    assert_true(there_is(5));
    local_left_begin(&other, 6, NONCE); /* names nothing in the other's file */
    local_left_end(&other);
    local_left_close(&other);
    assert_int_not_equal(line_size(), 0);
    local_left_close(&one);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(the_next_process_removes_the_unfinished_round),
        T(a_round_that_was_ended_stays),
        T(a_round_of_another_life_stays),
        T(a_line_that_was_cut_names_nothing),
        T(beside_one_that_lives_nothing_is_cleared_and_it_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
