/* `muster why` against what happened: in simulated worlds it tells of each launch from where the
 * next one went on and which steps that cost, and the simulator knows both from the processes
 * themselves. Controls: rows that are not true, and a checker that has to see it. */
#include "tests/sim/sim_test.h"

#include "tools/tool.h"
#include "tools/verbs.h"

#include <sqlite3.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define WORLDS 44 /* on the real database */

int cmd_why(struct tool *tool);
int cmd_run(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return -1;
}

/* What the checker has seen, of all worlds of a test. */
static struct {
    const char *untrue; /* SQL for a control; NULL: the rows stay */
    unsigned stories, resumed, none_lost, some_lost, at_least, finished;
    char false_words[640]; /* the first that are not so; "" = all were */
} seen;

static void false_words(const struct sim_truth *launch, const char *line, const char *what,
                        int64_t said, int64_t is)
{
    if (seen.false_words[0] != '\0')
        return;
    snprintf(seen.false_words, sizeof seen.false_words,
             "%s, generation %" PRIu64 ": \"%s\": %s is %" PRId64 ", not %" PRId64, launch->job,
             launch->generation, line, what, is, said);
}

static const struct sim_truth *launch_of(const struct sim_truths *truths, const char *job,
                                         uint64_t generation)
{
    for (size_t i = 0; i < truths->count; i++)
        if (truths->launches[i].generation == generation &&
            strcmp(truths->launches[i].job, job) == 0)
            return &truths->launches[i];
    return NULL;
}

/* --- the words -------------------------------------------------------------------------------- */

/* "No step is lost.", "No step is known to be lost: ...", "At least 3 steps (from step 4 on) are
 * lost: ...": behind `resume`. */
static void check_lost(const struct sim_truth *launch, const char *line, const char *words,
                       int64_t resume)
{
    const char *at_least = strstr(words, "At least ");
    const char *number = strstr(words, " step"); /* behind the number */
    int64_t lost = launch->done > resume ? launch->done - resume : 0, said = 0;

    if (strstr(words, "No step is lost.") != NULL) {
        seen.none_lost++;
        if (lost != 0)
            false_words(launch, line, "the number of lost steps", 0, lost);
        return;
    }
    if (strstr(words, "No step is known to be lost") != NULL) {
        seen.at_least++;
        return;
    }
    while (number != NULL && (number == words || number[-1] < '0' || number[-1] > '9'))
        number = strstr(number + 1, " step");
    assert_non_null(number);
    while (number > words && number[-1] >= '0' && number[-1] <= '9')
        number--;
    said = strtoll(number, NULL, 10);
    seen.at_least += at_least != NULL;
    seen.some_lost += at_least == NULL;
    if (at_least != NULL ? said > lost : said != lost)
        false_words(launch, line, "the number of lost steps", said, lost);
}

/* "Generation 3 resumed at step 40, from checkpoint 7. No step is lost." */
static void check_resumed(const struct sim_truths *truths, const struct sim_truth *launch,
                          const char *line)
{
    uint64_t generation = 0;
    int64_t step = 0;
    const struct sim_truth *next;

    if (sscanf(line, "Generation %" SCNu64 " resumed at step %" SCNd64, &generation, &step) != 2 &&
        (generation == 0 || strstr(line, " began from the start,") == NULL))
        return;
    next = launch_of(truths, launch->job, generation);
    assert_non_null(next);
    seen.resumed++;
    if (next->restored >= 0 && next->restored != step)
        false_words(next, line, "the step where it began", step, next->restored);
    check_lost(launch, line, strchr(line, '.') + 1, step);
}

/* "The job will resume from the newest committed checkpoint, step 40 (checkpoint 7, /x/7). ..." */
static void check_will_resume(const struct sim_truth *launch, const char *line)
{
    int64_t step = 0;
    const char *words = strstr(line, "). ");

    if (sscanf(line, "The job will resume from the newest committed checkpoint, step %" SCNd64,
               &step) == 1 &&
        words != NULL)
        check_lost(launch, line, words + 3, step);
    words = "There is no committed checkpoint: the job will start from the beginning. ";
    if (strncmp(line, words, strlen(words)) == 0)
        check_lost(launch, line, line + strlen(words), 0);
}

/* "The job has finished. Its newest committed checkpoint is step 40 (...): what came after it, up
 * to step 50, is in none." */
static void check_finished(const struct sim_truth *launch, const char *line)
{
    int64_t saved = 0, done = 0;
    const char *behind = strstr(line, ": what came after it, up to step ");

    if (sscanf(line, "The job has finished. Its newest committed checkpoint is step %" SCNd64,
               &saved) != 1)
        return;
    seen.finished++;
    done = behind != NULL ? strtoll(behind + strlen(": what came after it, up to step "), NULL, 10)
                          : saved;
    if (done != launch->done)
        false_words(launch, line, "the last step", done, launch->done);
}

/* --- the stories ------------------------------------------------------------------------------ */

static char *story_of(const char *database, const char *job, int64_t round)
{
    struct muster_error err;
    struct tool tool = {.verb = "why", .timeout_ms = 1000, .now_unix_ms = INT64_C(4000000000000)};
    char number[32], *text = NULL;
    size_t size = 0;

    snprintf(number, sizeof number, "%" PRId64, round);
    tool.values[OPTION_JOB] = job;
    tool.args[0] = "round", tool.args[1] = number, tool.args_count = 2;
    if (muster_client_open(database, 1000, &tool.client, &err) != MUSTER_OK)
        fail_msg("%s", err.text);
    tool.out = open_memstream(&text, &size);
    assert_non_null(tool.out);
    assert_int_equal(cmd_why(&tool), TOOL_DONE);
    fclose(tool.out);
    muster_client_close(&tool.client, NULL);
    return text;
}

static void check_story(const struct sim_truths *truths, const struct sim_truth *launch, char *text)
{
    char *rest = NULL;

    seen.stories++;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        check_resumed(truths, launch, line);
        check_will_resume(launch, line);
        check_finished(launch, line);
    }
}

static void change_rows(const char *database)
{
    sqlite3 *sqlite = NULL;
    char *why = NULL;

    if (seen.untrue == NULL)
        return;
    assert_int_equal(sqlite3_open_v2(database, &sqlite, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    if (sqlite3_exec(sqlite, seen.untrue, NULL, NULL, &why) != SQLITE_OK)
        fail_msg("%s", why);
    sqlite3_close(sqlite);
}

/* The last round of each launch that had one. */
static void check_world(const struct sim_truths *truths, void *arg)
{
    struct muster_error err;
    muster_client_t *client = NULL;

    (void)arg;
    change_rows(truths->database);
    for (size_t i = 0; i < truths->count; i++) {
        const struct sim_truth *launch = &truths->launches[i];
        muster_rows_t *rounds = NULL;
        int64_t last = 0;

        assert_int_equal(muster_client_open(truths->database, 1000, &client, &err), MUSTER_OK);
        assert_int_equal(muster_client_rounds(client, launch->job, 0, &rounds, &err), MUSTER_OK);
        for (size_t k = 0; k < muster_rows_count(rounds); k++)
            if ((uint64_t)muster_rows_rounds(rounds)[k].generation == launch->generation)
                last = muster_rows_rounds(rounds)[k].round;
        muster_rows_destroy(&rounds);
        muster_client_close(&client, NULL);
        if (last == 0)
            continue;
        char *text = story_of(truths->database, launch->job, last);
        check_story(truths, launch, text);
        free(text);
    }
}

/* --- the tests -------------------------------------------------------------------------------- */

static void run_worlds(unsigned first, unsigned count, bool focused, const char *untrue)
{
    memset(&seen, 0, sizeof seen);
    seen.untrue = untrue;
    for (unsigned seed = first; seed < first + count && seen.false_words[0] == '\0'; seed++) {
        struct sim_options options = {.seed = seed,
                                      .async = -1,
                                      .sqlite = true,
                                      .focused = focused,
                                      .keeps = SIM_WITHOUT,
                                      .over_fn = check_world};
        struct sim_stats stats = {0};

        assert_true(sim_run_told(&options, &stats));
        if (seen.false_words[0] != '\0' && untrue == NULL) {
            printf("seed %u%s: %s\n", seed, focused ? " --focused" : "", seen.false_words);
            fflush(stdout);
        }
    }
}

static void the_steps_that_why_calls_lost_are_those_that_were(void **state)
{
    (void)state;
    run_worlds(1, WORLDS, false, NULL);
    assert_string_equal(seen.false_words, "");
    printf("%u stories: %u tell where a launch resumed, %u that no step is lost, %u how many are, "
           "%u how many at least, %u of the end\n",
           seen.stories, seen.resumed, seen.none_lost, seen.some_lost, seen.at_least,
           seen.finished);
    assert_true(seen.resumed > 10 && seen.none_lost > 5 && seen.some_lost > 2 &&
                seen.at_least > 5 && seen.finished > 5);
}

static void so_are_those_of_rare_ends(void **state)
{
    (void)state;
    run_worlds(1000, WORLDS / 2, true, NULL);
    assert_string_equal(seen.false_words, "");
    assert_true(seen.resumed > 5);
}

/* False words were seen, of this kind. */
static void assert_seen(const char *words)
{
    struct sim_failure failure = {.invariant = "why"};

    assert_non_null(strstr(seen.false_words, words));
    snprintf(failure.text, sizeof failure.text, "%.599s", seen.false_words);
    sim_bug_seen(&failure, 1);
}

static void a_step_that_nobody_did_is_seen(void **state)
{
    (void)state;
    run_worlds(1, WORLDS, false, "UPDATE progress SET done = done + 1");
    assert_seen("step");
}

static void a_loss_that_is_called_known_is_seen(void **state)
{
    (void)state;
    run_worlds(1, WORLDS, false, "UPDATE node SET state = 'left' WHERE state = 'lost'");
    assert_seen("the number of lost steps");
}

static void a_wrong_step_to_resume_from_is_seen(void **state)
{
    (void)state;
    run_worlds(1, WORLDS, false, "UPDATE generation SET resume_step = resume_step + 1");
    assert_seen("the step where it began");
}

#define BUGS_MIN 3 /* that are seen: may grow, never fall */

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_steps_that_why_calls_lost_are_those_that_were),
        cmocka_unit_test(so_are_those_of_rare_ends),
        cmocka_unit_test(a_step_that_nobody_did_is_seen),
        cmocka_unit_test(a_loss_that_is_called_known_is_seen),
        cmocka_unit_test(a_wrong_step_to_resume_from_is_seen),
    };

    sim_guard_aborts();
    return sim_bugs_end(cmocka_run_group_tests_name("the truth of why", tests, NULL, NULL),
                        BUGS_MIN);
}
