/* What of a broker's answer makes a checkpoint on disk one that its records decided, and how long
 * an import is tried again: the answers and the clock are this test's. */
#include "client/node/node_private.h"
#include "client/query/query_link.h"
#include "client/query/query_rows.h"
#include "node/clock.h"
#include "node/shard/shard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static struct {
    size_t count;
    struct muster_checkpoint_row checkpoint;
    struct muster_round_row round;
} answer;

static size_t answer_count(const muster_rows_t *rows)
{
    (void)rows;
    return answer.count;
}

static const struct muster_checkpoint_row *answer_checkpoints(const muster_rows_t *rows)
{
    (void)rows;
    return &answer.checkpoint;
}

static const struct muster_round_row *answer_rounds(const muster_rows_t *rows)
{
    (void)rows;
    return &answer.round;
}

/* A broker that answers each import alike. */
static struct {
    enum muster_status status;
    bool is_new;
    int until_interrupted; /* pauses after which the process is told to end */
    int imports, pauses;
    int64_t now_ms;
} broker;

static enum muster_status broker_open(const char *address, int timeout_ms, struct query_link **link,
                                      struct muster_error *err)
{
    static char any;

    (void)address;
    (void)timeout_ms;
    (void)err;
    *link = (struct query_link *)&any;
    return MUSTER_OK;
}

static void broker_set_over(struct query_link *link, bool (*over)(const void *arg), const void *arg)
{
    (void)link;
    (void)over;
    (void)arg;
}

static enum muster_status broker_page(struct query_link *link, const struct question *question,
                                      muster_rows_t *rows, bool *ret_more, struct muster_error *err)
{
    (void)link;
    (void)question;
    (void)rows;
    (void)err;
    *ret_more = false;
    return MUSTER_OK;
}

static enum muster_status broker_import(struct query_link *link, const char *job, const char *path,
                                        const char *manifest, size_t size, bool *ret_new,
                                        struct muster_error *err)
{
    (void)link;
    (void)job;
    (void)path;
    (void)manifest;
    (void)size;
    (void)err;
    broker.imports++;
    *ret_new = broker.is_new;
    return broker.status;
}

static enum muster_status a_text(const char *path, char **ret_text, size_t *ret_size,
                                 struct muster_error *err)
{
    (void)path;
    (void)err;
    *ret_text = strdup("{}");
    *ret_size = 2;
    return *ret_text != NULL ? MUSTER_OK : MUSTER_E_NOMEM;
}

static bool told_to_end(struct agent *agent)
{
    (void)agent;
    return broker.pauses >= broker.until_interrupted;
}

static int64_t now_ms(clockid_t clock)
{
    (void)clock;
    return broker.now_ms;
}

static int pause_once(const struct timespec *pause, struct timespec *left)
{
    (void)left;
    broker.pauses++;
    broker.now_ms += pause->tv_nsec / 1000000;
    return 0;
}

#define query_link_open broker_open
#define query_link_set_over broker_set_over
#define query_link_page broker_page
#define query_link_import broker_import
#define shard_manifest_text a_text
#define agent_is_interrupted told_to_end
#define clock_ms now_ms
#define nanosleep pause_once
#define muster_rows_count answer_count
#undef muster_rows_checkpoints
#undef muster_rows_rounds
#define muster_rows_checkpoints answer_checkpoints
#define muster_rows_rounds answer_rounds
#include "client/node/node_lost.c" /* NOLINT(bugprone-suspicious-include) */

/* Of generation 2, at step 40. */
static bool is_known_by(size_t count, int64_t generation, int64_t step, const char *state)
{
    const struct newest newest = {.generation = 2, .round = 3, .step = 40, .whole = true};

    answer.count = count;
    answer.checkpoint = (struct muster_checkpoint_row){
        .checkpoint = 3, .generation = generation, .step = step, .state = state};
    return node_lost_is_known(&newest, NULL);
}

/* R11.6 */
static void a_whole_one_is_known_by_its_launch_its_step_and_what_was_decided(void **state)
{
    (void)state;
    assert_true(is_known_by(1, 2, 40, "committed"));
    assert_true(is_known_by(1, 2, 40, "superseded"));
    assert_true(is_known_by(1, 2, 40, "deleting"));
    assert_true(is_known_by(1, 2, 40, "deleted"));
    assert_false(is_known_by(0, 2, 40, "committed"));
    /* Another database gave its numbers to another save. */
    assert_false(is_known_by(1, 1, 40, "committed"));
    assert_false(is_known_by(1, 2, 20, "committed"));
    /* A whole one was committed: the records forgot that. */
    assert_false(is_known_by(1, 2, 40, "failed"));
    assert_false(is_known_by(1, 2, 40, "writing"));
}

static void a_damaged_one_is_known_by_its_launch_and_its_step(void **state)
{
    const struct newest damaged = {.generation = 2, .round = 3, .step = 40};

    (void)state;
    answer.count = 1;
    answer.round = (struct muster_round_row){.generation = 2, .step = 40};
    assert_true(node_lost_is_known(&damaged, NULL));
    answer.round.generation = 1;
    assert_false(node_lost_is_known(&damaged, NULL));
    answer.round = (struct muster_round_row){.generation = 2, .step = 20};
    assert_false(node_lost_is_known(&damaged, NULL));
    answer.count = 0;
    assert_false(node_lost_is_known(&damaged, NULL));
}

/* How many times an import is tried in a second by a broker that refuses it; -1: it goes on. */
static int tries_of(enum muster_status status, bool is_new, int until_interrupted)
{
    const struct muster_node node = {.job = "train"};
    const struct newest item = {.path = "step-00000040", .generation = 2, .round = 3, .step = 40};
    struct importing importing = {.asking = {.node = &node, .until_ms = 5 * (int64_t)AGAIN_MS},
                                  .imported = -1,
                                  .refused = -1};

    answer.count = 0; /* the broker does not know it */
    broker.status = status;
    broker.is_new = is_new;
    broker.until_interrupted = until_interrupted;
    broker.imports = broker.pauses = 0;
    broker.now_ms = 0;
    return node_lost_import_one(&importing, &item) ? -1 : broker.imports;
}

/* R11.6 */
static void an_import_is_tried_until_another_launch_runs_or_the_process_has_to_end(void **state)
{
    const int never = 1000;

    (void)state;
    assert_int_equal(tries_of(MUSTER_E_BROKER, false, never), 6);
    assert_int_equal(tries_of(MUSTER_E_BUSY, false, never), 6);
    assert_int_equal(tries_of(MUSTER_E_BUSY, true, never), 1); /* the other launch looks itself */
    assert_int_equal(tries_of(MUSTER_E_STORAGE, false, 2), 3);
    assert_int_equal(tries_of(MUSTER_OK, true, never), -1);
    assert_int_equal(tries_of(MUSTER_E_CORRUPT, false, never), -1); /* the others may be whole */
    assert_int_equal(tries_of(MUSTER_E_NOMEM, false, never), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_one_is_known_by_its_launch_its_step_and_what_was_decided),
        cmocka_unit_test(a_damaged_one_is_known_by_its_launch_and_its_step),
        cmocka_unit_test(an_import_is_tried_until_another_launch_runs_or_the_process_has_to_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
