/* Which checkpoints a later launch gave up, by their manifests alone. */
#include "schema/rules/counts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

struct saved {
    uint64_t generation;
    int64_t step, began, at; /* began -1: its manifest does not tell */
    const char *job;
};

/* The steps that count, in the order they were given. */
static void counts(const struct saved *saved, size_t count, const char *expected)
{
    struct counts_item items[16];
    char text[128] = "";

    for (size_t i = 0; i < count; i++) {
        const struct manifest manifest = {.job = saved[i].job != NULL ? saved[i].job : "job",
                                          .generation = saved[i].generation,
                                          .step = saved[i].step,
                                          .resumed_known = saved[i].began >= 0,
                                          .resumed_step = saved[i].began,
                                          .created_unix_ms = saved[i].at};
        items[i] = counts_item_of(&manifest);
    }
    counts_mark(items, count);
    for (size_t i = 0; i < count; i++)
        if (items[i].counts)
            snprintf(text + strlen(text), sizeof text - strlen(text), " %d", (int)items[i].step);
    assert_string_equal(text, expected);
}

#define COUNTS(saved, expected) counts(saved, sizeof(saved) / sizeof *(saved), expected)

static void what_lies_behind_a_later_launchs_beginning_is_given_up(void **state)
{
    static const struct saved back[] = {{1, 2, 0, 1, NULL},
                                        {1, 4, 0, 2, NULL},
                                        {1, 6, 0, 3, NULL},
                                        {1, 8, 0, 4, NULL},
                                        {2, 6, 4, 5, NULL}},
                              on[] = {{1, 2, 0, 1, NULL}, {1, 4, 0, 2, NULL}, {2, 6, 4, 3, NULL}},
                              twice[] = {{1, 4, 0, 1, NULL},
                                         {2, 9, 4, 2, NULL},
                                         {3, 6, 2, 3, NULL},
                                         {1, 2, 0, 0, NULL}};

    (void)state;
    COUNTS(back, " 2 4 6");
    COUNTS(on, " 2 4 6");
    COUNTS(twice, " 6 2");
    counts(NULL, 0, "");
}

static void who_does_not_tell_gave_up_what_it_saved_anew(void **state)
{
    static const struct saved untold[] = {
        {1, 2, -1, 1, NULL}, {1, 4, -1, 2, NULL}, {1, 6, -1, 3, NULL}, {2, 4, -1, 4, NULL}};

    (void)state;
    COUNTS(untold, " 2 4");
}

/* Launches are numbered from 1 again: those of the former database are no later ones. */
static void an_older_launch_of_a_greater_number_gives_up_nothing(void **state)
{
    static const struct saved anew[] = {
        {5, 10, 8, 1, NULL}, {1, 5, 0, 2, NULL}, {1, 12, 0, 3, NULL}};

    (void)state;
    COUNTS(anew, " 10 5 12");
}

static void another_jobs_launches_are_its_own(void **state)
{
    static const struct saved two[] = {{1, 6, 0, 1, "a"}, {2, 4, 2, 2, "b"}, {1, 3, 0, 1, "b"}};

    (void)state;
    COUNTS(two, " 6 4");
}

/* R3.4, R11.3: the rule itself, in whatever order the launches come. */
static void a_launch_gives_up_what_earlier_ones_saved_beyond_its_beginning(void **state)
{
    static const struct counts_launch launches[] = {{4, 30}, {2, 10}, {3, 20}};
    static const struct {
        uint64_t generation;
        int64_t step;
        bool counts;
    } saved[] = {{1, 10, true}, {1, 11, false}, {2, 20, true}, {2, 21, false},
                 {3, 30, true}, {3, 31, false}, {4, 31, true}, {5, 99, true}};

    (void)state;
    for (size_t i = 0; i < sizeof saved / sizeof *saved; i++)
        assert_int_equal(counts_among(launches, 3, saved[i].generation, saved[i].step),
                         saved[i].counts);
    assert_true(counts_among(NULL, 0, 1, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_lies_behind_a_later_launchs_beginning_is_given_up),
        cmocka_unit_test(who_does_not_tell_gave_up_what_it_saved_anew),
        cmocka_unit_test(an_older_launch_of_a_greater_number_gives_up_nothing),
        cmocka_unit_test(a_launch_gives_up_what_earlier_ones_saved_beyond_its_beginning),
        cmocka_unit_test(another_jobs_launches_are_its_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
