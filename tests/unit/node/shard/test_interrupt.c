/* A program that has to go, while its state is read, written or copied: it is asked between two
 * pieces, and what was broken off is told as that. */
#include "node/shard/interrupt.h"

#include "node/shard/snapshot.h"
#include "schema/error.h"
#include "tests/unit/node/shard/shard_job.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define LONG_AGO 1 /* asked last: the next look asks */
#define BIG_BYTES (40 << 20)

struct program {
    struct shard_job *job;
    int asked, yes_from;         /* yes from that question on; 0 = never */
    struct interrupt *impatient; /* is asked at each look; NULL = as often as others */
    pthread_t thread;
    unsigned char *big;
};

static bool ask(void *arg)
{
    struct program *p = arg;

    assert_true(pthread_equal(p->thread, pthread_self()));
    p->asked++;
    if (p->impatient != NULL)
        p->impatient->asked_ms = LONG_AGO;
    return p->asked == p->yes_from;
}

static struct interrupt interrupt_of(struct program *p)
{
    p->asked = 0;
    return (struct interrupt){.ask = ask, .arg = p, .asked_ms = LONG_AGO};
}

/* Round 4 of three ranks, each with a number and a big blob; nobody is asked. */
static int setup(void **state)
{
    struct program *p = calloc(1, sizeof *p);
    void *job = NULL;

    assert_non_null(p);
    if (shard_job_make(&job) != 0)
        return -1;
    p->job = job;
    p->thread = pthread_self();
    p->yes_from = 1;
    p->big = malloc(BIG_BYTES);
    assert_non_null(p->big);
    memset(p->big, 7, BIG_BYTES);
    p->job->same = true;
    *state = p;
    return muster_state_add_blob(p->job->state, "big", p->big, BIG_BYTES, NULL) == MUSTER_OK ? 0
                                                                                             : -1;
}

static int teardown(void **state)
{
    struct program *p = *state;
    void *job = p->job;

    shard_job_drop(&job);
    free(p->big);
    free(p);
    return 0;
}

static void what_is_short_asks_nobody_and_what_is_long_asks_now_and_then(void **state)
{
    struct program *p = *state;
    struct interrupt i = {.ask = ask, .arg = p};

    p->yes_from = 3;
    assert_false(interrupt_look_at(&i, 1000));
    assert_false(interrupt_look_at(&i, 1000 + INTERRUPT_MS - 1));
    assert_int_equal(p->asked, 0);
    assert_false(interrupt_look_at(&i, 1000 + INTERRUPT_MS));
    assert_false(interrupt_look_at(&i, 1000 + INTERRUPT_MS + 1));
    assert_int_equal(p->asked, 1);
    assert_false(interrupt_look_at(&i, 1000 + 2 * INTERRUPT_MS));
    assert_true(interrupt_look_at(&i, 1000 + 3 * INTERRUPT_MS));
    assert_true(interrupt_look_at(&i, 1000 + 9 * INTERRUPT_MS)); /* as Ctrl-C, which says so once */
    assert_int_equal(p->asked, 3);
    assert_false(interrupt_look_at(&(struct interrupt){.ask = NULL}, 5000));
    assert_false(interrupt_look(NULL));
}

static void assert_broken_off(struct program *p, struct shard_restore *request)
{
    struct interrupt i = interrupt_of(p);
    struct muster_error err = {0};

    request->interrupt = &i;
    assert_int_equal(shard_restore(request, NULL, &err), MUSTER_E_INTERRUPTED);
    assert_non_null(strstr(err.text, "do not train on it"));
    assert_int_equal(p->asked, 1);
    p->yes_from = 0; /* asked and not broken off, it is whole */
    memset(p->big, 0, BIG_BYTES);
    i = interrupt_of(p);
    shard_job_must(shard_restore(request, NULL, &err), &err);
    assert_true(p->asked >= 1);
    p->yes_from = 1;
}

static int fill(void *arg, const struct shard_found *found)
{
    (void)arg;
    (void)found;
    return 0;
}

static void a_restore_of_each_kind_is_broken_off(void **state)
{
    struct program *p = *state;
    struct shard_restore request;
    struct muster_error err = {0};

    shard_job_write_round(p->job);
    shard_job_must(shard_job_commit(p->job, &err), &err);
    request = shard_job_request(p->job, 1); /* large: read once, into the state */
    assert_broken_off(p, &request);
    assert_int_equal(p->big[BIG_BYTES - 1], 7);
    request.world_size = 2; /* by pieces, from the shards of three */
    assert_broken_off(p, &request);
    assert_int_equal(p->big[BIG_BYTES - 1], 7);
}

/* Its headers first: nothing was found to lack yet. Then between its pieces. */
static void a_restore_by_pieces_is_broken_off_wherever_it_is(void **state)
{
    struct program *p = *state;
    struct shard_restore request;
    struct muster_error err = {0};
    int64_t lacking = 0;
    struct interrupt i;

    shard_job_write_round(p->job);
    shard_job_must(shard_job_commit(p->job, &err), &err);
    request = shard_job_request(p->job, 1);
    request.world_size = 2;
    p->impatient = request.interrupt = &i;
    for (p->yes_from = WORLD + 1; p->yes_from <= WORLD + 3; p->yes_from++) {
        i = interrupt_of(p);
        assert_int_equal(shard_restore(&request, NULL, &err), MUSTER_E_INTERRUPTED);
        assert_int_equal(p->asked, p->yes_from);
    }
    shard_job_must(muster_state_add_i64(p->job->state, "lacking", &lacking, &err), &err);
    for (p->yes_from = 1; p->yes_from <= WORLD; p->yes_from++) {
        i = interrupt_of(p);
        assert_int_equal(shard_restore(&request, NULL, &err), MUSTER_E_INTERRUPTED);
        assert_int_equal(p->asked, p->yes_from);
    }
    i = interrupt_of(p);
    assert_int_equal(shard_restore(&request, NULL, &err), MUSTER_E_RESTORE);
}

/* Small enough to be verified before any of it is used. */
static void a_small_restore_is_broken_off_before_it_reaches_memory(void **state)
{
    struct program *p = *state;
    struct shard_restore request;
    struct muster_error err = {0};

    assert_int_equal(muster_state_remove(p->job->state, "big", NULL), MUSTER_OK);
    shard_job_write_round(p->job);
    shard_job_must(shard_job_commit(p->job, &err), &err);
    request = shard_job_request(p->job, 1);
    p->job->value = -1;
    request.interrupt = &(struct interrupt){.ask = ask, .arg = p, .asked_ms = LONG_AGO};
    assert_int_equal(shard_restore(&request, NULL, &err), MUSTER_E_INTERRUPTED);
    assert_int_equal(p->job->value, -1);
}

static void files_of_a_save_fn_are_verified_until_it_is_broken_off(void **state)
{
    struct program *p = *state;
    struct shard_job *f = p->job;
    struct shard_restore request;
    struct muster_error err = {0};
    char dir[FS_PATH_MAX];

    shard_job_must(dir_round_open(f->root, JOB, 1, 4, NONCE, f->round_dir, &err), &err);
    for (uint64_t rank = 0; rank < WORLD; rank++) {
        shard_job_must(shard_dir_begin(f->round_dir, rank, shard_job_incarnation(rank), dir, &err),
                       &err);
        scratch_write(scratch_path(dir, "model"), p->big, BIG_BYTES);
        shard_job_must(shard_dir_seal(f->round_dir, rank, shard_job_incarnation(rank), NULL,
                                      CHECKSUM_XXH3, &f->files[rank], &err),
                       &err);
        f->shards[rank] = (struct manifest_shard){.rank = rank,
                                                  .incarnation = shard_job_incarnation(rank),
                                                  .files = f->files[rank].files,
                                                  .file_count = f->files[rank].count};
    }
    shard_job_render(f);
    shard_job_must(shard_job_commit(f, &err), &err);
    request = shard_job_request(f, 1);
    request.state = NULL;
    request.restore_fn = fill;
    assert_broken_off(p, &request);
}

static void a_save_is_broken_off_and_leaves_no_file(void **state)
{
    struct program *p = *state;
    struct shard_job *f = p->job;
    struct muster_error err = {0};
    const enum checksum_kind kinds[] = {CHECKSUM_XXH3, CHECKSUM_STRONG};

    shard_job_must(dir_round_open(f->root, JOB, 1, 4, NONCE, f->round_dir, &err), &err);
    for (size_t k = 0; k < 2; k++) {
        const struct shard_facts facts = {.job = JOB,
                                          .generation = 1,
                                          .round = 4,
                                          .step = 12,
                                          .layout = LAYOUT_SHARDED,
                                          .incarnation = shard_job_incarnation(0),
                                          .world_size = WORLD,
                                          .checksum = kinds[k]};
        struct interrupt i = interrupt_of(p);
        struct safetensors_watch watch = {.interrupt = &i};
        struct shard_files files = {0};

        assert_int_equal(shard_save_state(f->round_dir, &facts, f->state, &watch, &files, &err),
                         MUSTER_E_SAVE);
        assert_int_equal(err.code, ECANCELED);
        assert_int_equal(p->asked, 1);
        assert_null(files.files);
        p->yes_from = 0;
        watch = (struct safetensors_watch){.interrupt = &i};
        i = interrupt_of(p);
        shard_job_must(shard_save_state(f->round_dir, &facts, f->state, &watch, &files, &err),
                       &err);
        shard_discard(f->round_dir, 0, shard_job_incarnation(0));
        shard_files_clear(&files);
        p->yes_from = 1;
    }
}

static void the_sums_of_a_save_fns_files_are_broken_off(void **state)
{
    struct program *p = *state;
    struct shard_job *f = p->job;
    struct interrupt i = interrupt_of(p);
    struct safetensors_watch watch = {.interrupt = &i};
    struct shard_files files = {0};
    struct muster_error err = {0};
    char dir[FS_PATH_MAX];

    shard_job_must(dir_round_open(f->root, JOB, 1, 4, NONCE, f->round_dir, &err), &err);
    shard_job_must(shard_dir_begin(f->round_dir, 0, shard_job_incarnation(0), dir, &err), &err);
    scratch_write(scratch_path(dir, "model"), p->big, BIG_BYTES);
    assert_int_equal(shard_dir_seal(f->round_dir, 0, shard_job_incarnation(0), &watch,
                                    CHECKSUM_XXH3, &files, &err),
                     MUSTER_E_SAVE);
    assert_int_equal(err.code, ECANCELED);
    assert_false(scratch_exists(dir));
}

static void a_copy_is_broken_off(void **state)
{
    struct program *p = *state;
    struct interrupt i = interrupt_of(p);
    struct snapshot snapshot = {0};
    struct muster_error err = {0};

    assert_int_equal(snapshot_take(&snapshot, p->job->state, NULL, &i, &err), MUSTER_E_INTERRUPTED);
    assert_null(snapshot.state);
    p->yes_from = 0;
    i = interrupt_of(p);
    shard_job_must(snapshot_take(&snapshot, p->job->state, NULL, &i, &err), &err);
    assert_int_equal(snapshot.state->count, 2);
    snapshot_clear(&snapshot);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(what_is_short_asks_nobody_and_what_is_long_asks_now_and_then),
        T(a_restore_of_each_kind_is_broken_off),
        T(a_restore_by_pieces_is_broken_off_wherever_it_is),
        T(a_small_restore_is_broken_off_before_it_reaches_memory),
        T(files_of_a_save_fn_are_verified_until_it_is_broken_off),
        T(a_save_is_broken_off_and_leaves_no_file),
        T(the_sums_of_a_save_fns_files_are_broken_off),
        T(a_copy_is_broken_off),
    };

    return cmocka_run_group_tests_name("interrupt", tests, NULL, NULL);
}
