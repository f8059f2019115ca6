/* Whole clusters without and with faults, the seeds of the past; sanitized. The fixed set is in
 * plain_fixed_set.c. */
#include "tests/sim/sim_test.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#define SQLITE_SEEDS 30
#define SEEDS_OF_THE_PAST_MIN 70 /* of regressions.txt; more may come */

static void without_faults_every_notice_ends_in_a_checkpoint(void **state)
{
    static const unsigned sizes[] = {1, 2, 4, 8, 64};
    struct sim_stats stats = {0};
    uint64_t seed = 0;

    (void)state;
    for (size_t size = 0; size < sizeof sizes / sizeof sizes[0]; size++)
        for (int layout = LAYOUT_REPLICATED; layout <= LAYOUT_SHARDED; layout++)
            for (int async = 0; async <= 1; async++)
                for (unsigned count = sizes[size] > 8 ? 1 : 5; count > 0; count--) {
                    struct sim_options options = {.seed = ++seed,
                                                  .healthy = true,
                                                  .nodes = sizes[size],
                                                  .layout = (enum wire_layout)layout,
                                                  .async = async};
                    assert_true(sim_run_told(&options, &stats));
                }
    assert_int_equal(stats.aborts, 0);
    assert_int_equal(stats.not_saved, 0);
    assert_true(stats.commits_of[CAUSE_TERMINATION] > 50);
    assert_true(stats.commits_of[CAUSE_OPERATOR] > 5);
    assert_true(stats.commits_of[CAUSE_POLICY] > 50);
}

/* What a fresh seed runs. */
static void the_worlds_of_chance_are_large_and_faulty(void **state)
{
    enum { COUNT = 300 };
    struct sim_stats stats = {0};
    static uint64_t nodes[COUNT], faults[COUNT];

    (void)state;
    for (unsigned seed = 1; seed <= COUNT; seed++) {
        struct sim_options options = {.seed = 50000 + seed, .async = -1};
        uint64_t nodes_before = stats.nodes, faults_before = stats.faults_met;
        assert_true(sim_run_told(&options, &stats));
        nodes[seed - 1] = stats.nodes - nodes_before;
        faults[seed - 1] = stats.faults_met - faults_before;
    }
    assert_true(sim_median(nodes, COUNT) >= 8);
    assert_true(sim_median(faults, COUNT) >= 5);
    assert_true(stats.jobs_large > 0 && stats.steps_short > 0 && stats.steps_long > 0);
}

/* Of lines that hold the words and end as told. */
static unsigned lines_with(const char *story, const char *words, const char *ending)
{
    unsigned count = 0;
    size_t size = strlen(ending);

    for (const char *at = strstr(story, words); at != NULL; at = strstr(at + 1, words)) {
        const char *end = strchr(at, '\n') + 1;
        count += (size_t)(end - at) >= size && memcmp(end - size, ending, size) == 0;
    }
    return count;
}

/* Each of these lasts until something meets it: its time comes more often than it strikes, and its
 * strikes are told. */
static void a_fault_is_counted_where_it_strikes(void **state)
{
    static const struct {
        enum sim_fault kind;
        const char *words, *ending;
    } kinds[] = {{FAULT_STEP_FAILS, " step ", "fails: the step function returned 7\n"},
                 {FAULT_SAVE_FAILS, "save of round", " fails\n"},
                 {FAULT_MANIFEST_FAILS, " manifest of", ": the disk said no\n"},
                 {FAULT_DATABASE_OLD, "BROKER's database", "older copy\n"},
                 {FAULT_NOTICE_WITHDRAWN, "NOTICE n", " withdrawn\n"}};
    enum { COUNT = 60, KINDS = sizeof kinds / sizeof kinds[0] };
    struct sim_stats stats = {0};
    unsigned come[KINDS] = {0}, struck[KINDS] = {0}, all_come = 0, all_struck = 0;
    char words[64];

    (void)state;
    for (unsigned seed = 1; seed <= COUNT; seed++) {
        char *story = NULL;
        size_t size = 0;
        struct sim_options options = {.seed = seed, .focused = true, .async = -1};
        options.story = open_memstream(&story, &size);
        assert_non_null(options.story);
        assert_true(sim_run_told(&options, &stats));
        fclose(options.story);
        for (size_t i = 0; i < KINDS; i++) {
            snprintf(words, sizeof words, "FAULT %s on", sim_fault_name(kinds[i].kind));
            come[i] += lines_with(story, words, "\n");
            struck[i] += lines_with(story, kinds[i].words, kinds[i].ending);
        }
        free(story);
    }
    for (size_t i = 0; i < KINDS; i++) {
        assert_int_equal(stats.faults[kinds[i].kind], struck[i]);
        assert_in_range(struck[i], 1, come[i]);
        all_come += come[i];
        all_struck += struck[i];
    }
    assert_true(all_struck < all_come);
}

/* The fixed set has many more of them (plain_fixed_set.c); these are sanitized. */
static void the_real_store_is_a_disk_that_forgets_nothing(void **state)
{
    struct sim_stats stats = {0};

    (void)state;
    for (unsigned seed = 1; seed <= SQLITE_SEEDS; seed++) {
        struct sim_options options = {.seed = seed, .async = -1, .sqlite = true};
        assert_true(sim_run_told(&options, &stats));
    }
    assert_true(stats.broker_starts > SQLITE_SEEDS + 10);
}

/* --- seeds of the past ------------------------------------------------------------------------ */

static void seeds_that_once_broke_something_break_nothing(void **state)
{
    FILE *file = fopen(SOURCE_DIR "/tests/sim/regressions.txt", "r");
    char line[512];
    unsigned count = 0;

    (void)state;
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        struct sim_options options = {.async = -1};
        struct sim_stats stats = {0};
        if (line[0] == '#' || line[0] == '\n')
            continue;
        const char *number = strstr(line, "--seed ");
        assert_non_null(number);
        options.seed = strtoull(number + 7, NULL, 10);
        char *what = strchr(line, ':');
        assert_non_null(what); /* what it was */
        *what = '\0';
        options.sqlite = strstr(line, "--sqlite") != NULL;
        options.focused = strstr(line, "--focused") != NULL;
        options.put_back = strstr(line, "--put-back") != NULL;
        options.hasty = strstr(line, "--hasty") != NULL;
        options.slow_disk = strstr(line, "--slow-disk") != NULL;
        options.power_cuts = strstr(line, "--power-cuts") != NULL;
        options.relays = strstr(line, "--relays") != NULL;
        options.shared = strstr(line, "--shared") != NULL;
        options.lasting = strstr(line, "--lasting") != NULL;
        if (strstr(line, "--keeps ") != NULL)
            options.keeps = strstr(line, "--keeps 0") != NULL ? SIM_WITHOUT : SIM_WITH;
        assert_true(sim_run_told(&options, &stats));
        count++;
    }
    fclose(file);
    printf("%u seeds of the past\n", count);
    assert_true(count >= SEEDS_OF_THE_PAST_MIN);
}

static char *story_of(uint64_t seed, bool sqlite)
{
    struct sim_options options = {.seed = seed, .async = -1, .sqlite = sqlite};
    struct sim_stats stats = {0};
    struct sim_failure failure;
    char *text = NULL;
    size_t size = 0;

    options.story = open_memstream(&text, &size);
    assert_non_null(options.story);
    sim_run(&options, &stats, &failure);
    fclose(options.story);
    return text;
}

static void one_seed_tells_one_story(void **state)
{
    (void)state;
    for (uint64_t seed = 11; seed < 15; seed++) {
        bool sqlite = seed % 2 == 0; /* its calls fail at the same places */
        char *first = story_of(seed, sqlite), *second = story_of(seed, sqlite);
        assert_string_equal(first, second);
        assert_true(strlen(first) > 1000);
        free(first);
        free(second);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_faults_every_notice_ends_in_a_checkpoint),
        cmocka_unit_test(seeds_that_once_broke_something_break_nothing),
        cmocka_unit_test(the_worlds_of_chance_are_large_and_faulty),
        cmocka_unit_test(a_fault_is_counted_where_it_strikes),
        cmocka_unit_test(the_real_store_is_a_disk_that_forgets_nothing),
        cmocka_unit_test(one_seed_tells_one_story),
    };

    sim_guard_aborts();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
