/* test_words - the parts of the real example: model, data, and averages across processes. */
#include "client/examples/words_allreduce.h"
#include "client/examples/words_data.h"
#include "client/examples/words_model.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define RANKS 4
#define COUNT 1003    /* not a multiple of RANKS */
#define LONG_MS 20000 /* a wait that a passing test never waits out */

/* ------------------------------------------------------------------------------------- data */

/* Kept are those that are a to z throughout. */
static const char list[] =
    "apple\nBob\nbanana\nit's\n\ncherry\r\nnaïve\nfig\nkiwi\nA\nplum\nzo2o\nok";
#define LIST_WORDS 7
#define LIST_EXAMPLES (5 + 6 + 6 + 3 + 4 + 4 + 2 + LIST_WORDS)

static void open_list(struct words_data *data, const char *text, uint64_t seed)
{
    char path[] = "/tmp/test_words_XXXXXX";
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    assert_int_equal(words_data_open(data, path, seed), 0);
    unlink(path);
}

static void only_words_of_a_to_z_are_kept(void **state)
{
    struct words_data data;

    (void)state;
    open_list(&data, list, 1);
    assert_int_equal(data.word_count, LIST_WORDS);
    assert_int_equal(data.example_count, LIST_EXAMPLES);
    words_data_close(&data);
}

static void a_list_without_words_is_refused(void **state)
{
    struct words_data data;

    (void)state;
    assert_int_equal(words_data_open(&data, "/dev/null", 1), -ENODATA);
    assert_int_equal(words_data_open(&data, "/nonexistent/words", 1), -ENOENT);
}

/* Counts how often each (context, target) comes, by the bytes of both. */
static int count_same(const uint8_t *all, size_t size, uint64_t count, const uint8_t *one)
{
    int same = 0;

    for (uint64_t i = 0; i < count; i++)
        same += memcmp(all + i * size, one, size) == 0;
    return same;
}

static void take(const struct words_data *data, uint64_t step, uint32_t rank, uint32_t world_size,
                 uint32_t batch, uint8_t *ret_examples)
{
    struct words_place place = {
        .step = step, .rank = rank, .world_size = world_size, .batch = batch, .context = 8};
    uint8_t contexts[LIST_EXAMPLES * 8], targets[LIST_EXAMPLES];

    words_data_batch(data, &place, contexts, targets);
    for (uint32_t i = 0; i < batch; i++) {
        memcpy(ret_examples + i * 9, contexts + i * 8, 8);
        ret_examples[i * 9 + 8] = targets[i];
    }
}

static void an_epoch_visits_every_example_once_and_the_next_in_another_order(void **state)
{
    struct words_data data;
    uint8_t first[LIST_EXAMPLES * 9], second[LIST_EXAMPLES * 9], other[LIST_EXAMPLES * 9];

    (void)state;
    open_list(&data, list, 1);
    take(&data, 0, 0, 1, LIST_EXAMPLES, first);
    take(&data, 1, 0, 1, LIST_EXAMPLES, second);
    for (size_t i = 0; i < LIST_EXAMPLES; i++)
        assert_int_equal(count_same(first, 9, LIST_EXAMPLES, first + i * 9), 1);
    for (size_t i = 0; i < LIST_EXAMPLES; i++)
        assert_int_equal(count_same(second, 9, LIST_EXAMPLES, first + i * 9), 1);
    assert_memory_not_equal(first, second, sizeof(first));
    words_data_close(&data);
    open_list(&data, list, 2);
    take(&data, 0, 0, 1, LIST_EXAMPLES, other);
    assert_memory_not_equal(first, other, sizeof(first));
    words_data_close(&data);
}

static void the_batch_depends_on_step_and_rank_alone(void **state)
{
    struct words_data data, again;
    uint8_t whole[LIST_EXAMPLES * 9], part[9 * 3];

    (void)state;
    open_list(&data, list, 7);
    open_list(&again, list, 7);
    take(&data, 0, 0, 1, 24, whole);
    for (uint32_t k = 8; k-- > 0;) { /* step k / 4 of rank k % 4, asked for in reverse order */
        take(&again, k / 4, k % 4, 4, 3, part);
        assert_memory_equal(part, whole + k * 27, sizeof(part));
    }
    words_data_close(&data);
    words_data_close(&again);
}

static void a_context_ends_at_the_word_before(void **state)
{
    static const uint8_t wanted[][4] = {
        {0, 0, 0, 1}, {0, 0, 1, 2}, {0, 1, 2, 0}, /* ab */
        {0, 0, 0, 3}, {0, 0, 3, 0},               /* c */
    };
    struct words_data data;
    struct words_place place = {.world_size = 1, .batch = 5, .context = 3};
    uint8_t contexts[15], targets[5], examples[20];

    (void)state;
    open_list(&data, "ab\nc\n", 1);
    words_data_batch(&data, &place, contexts, targets);
    for (size_t i = 0; i < 5; i++) {
        memcpy(examples + i * 4, contexts + i * 3, 3);
        examples[i * 4 + 3] = targets[i];
    }
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(count_same(examples, 4, 5, wanted[i]), 1);
    words_data_close(&data);
}

/* ------------------------------------------------------------------------------------ model */

static const struct words_shape small = {.context = 3, .dim = 5, .hidden = 11};

static void gradient_is_the_slope_of_the_loss(void **state)
{
    struct words_model model;
    uint8_t contexts[12] = {0, 0, 1, 5, 5, 2, 26, 0, 3, 9, 8, 7}, targets[4] = {3, 0, 26, 1};
    float *gradient;
    const float nudge = 1.0f / 128;

    (void)state;
    assert_int_equal(words_model_open(&model, &small, 3), 0);
    gradient = calloc(model.count, sizeof(float));
    assert_non_null(gradient);
    words_model_loss(&model, contexts, targets, 4, gradient);
    for (size_t i = 0; i < model.count; i++) {
        float kept = model.weights[i];
        double above, below, slope;

        model.weights[i] = kept + nudge;
        above = words_model_loss(&model, contexts, targets, 4, NULL);
        model.weights[i] = kept - nudge;
        below = words_model_loss(&model, contexts, targets, 4, NULL);
        model.weights[i] = kept;
        slope = (above - below) / (2.0 * (double)nudge);
        if (fabs(slope - (double)gradient[i]) > 2e-4 + 1e-2 * fabs(slope))
            fail_msg("parameter %zu: slope %g, gradient %g", i, slope, (double)gradient[i]);
    }
    free(gradient);
    words_model_close(&model);
}

static uint64_t train(uint64_t seed, uint64_t steps, double *ret_first, double *ret_last)
{
    struct words_shape shape = {.context = 4, .dim = 8, .hidden = 16};
    struct words_place place = {.world_size = 1, .batch = LIST_EXAMPLES, .context = 4};
    struct words_data data;
    struct words_model model;
    uint8_t contexts[LIST_EXAMPLES * 4], targets[LIST_EXAMPLES];
    float *gradient;
    uint64_t hash;

    open_list(&data, list, seed);
    assert_int_equal(words_model_open(&model, &shape, seed), 0);
    gradient = calloc(model.count, sizeof(float));
    assert_non_null(gradient);
    for (place.step = 0; place.step < steps; place.step++) {
        words_data_batch(&data, &place, contexts, targets);
        *ret_last = words_model_loss(&model, contexts, targets, place.batch, gradient);
        if (place.step == 0)
            *ret_first = *ret_last;
        words_model_update(&model, gradient, 0.05f, 0.9f);
    }
    hash = words_model_hash(&model);
    free(gradient);
    words_model_close(&model);
    words_data_close(&data);
    return hash;
}

static void loss_falls_over_two_hundred_steps(void **state)
{
    double first = 0, last = 0;

    (void)state;
    train(1, 200, &first, &last);
    assert_true(first > 3.0 && first < 3.6); /* about log 27: it knows nothing */
    assert_true(last < 0.5 * first);
}

static void equal_seeds_give_equal_bits_and_others_do_not(void **state)
{
    double first, last;
    uint64_t one, same, other;

    (void)state;
    one = train(1, 20, &first, &last);
    same = train(1, 20, &first, &last);
    other = train(2, 20, &first, &last);
    assert_true(one == same);
    assert_true(one != other);
}

/* -------------------------------------------------------------------------------- allreduce */

/* What a forked rank tells its parent: its exit code is only whether it got to the end. */
struct outcome {
    int status, late_rank;
    int64_t took_ms;
    float values[COUNT];
};

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static struct outcome *outcomes_new(void)
{
    void *at = mmap(NULL, RANKS * sizeof(struct outcome), PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_true(at != MAP_FAILED);
    return at;
}

static struct words_group group_of(char name[64], int rank, uint64_t nonce)
{
    snprintf(name, 64, "test_words-%ld", (long)getppid());
    return (struct words_group){.name = name, .nonce = nonce, .rank = rank, .world_size = RANKS};
}

/* Numbers whose sum depends on the order in which they are added. */
static float value_of(int rank, size_t i)
{
    static const float scale[RANKS] = {1.0e8f, 1.0f, -1.0e8f, 1.0f / 3};

    return scale[rank] * (float)(i + 1);
}

static void fill(float *values, int rank)
{
    for (size_t i = 0; i < COUNT; i++)
        values[i] = value_of(rank, i);
}

/* Runs body(rank, arg, outcome) in a process each and waits for all. */
static void run_ranks(void (*body)(int, uint64_t, struct outcome *), uint64_t arg,
                      struct outcome *outcomes)
{
    pid_t pids[RANKS];

    for (int rank = 0; rank < RANKS; rank++) {
        pids[rank] = fork();
        assert_true(pids[rank] >= 0);
        if (pids[rank] == 0) {
            alarm(60);
            body(rank, arg, &outcomes[rank]);
            _exit(0);
        }
    }
    for (int rank = 0; rank < RANKS; rank++) {
        int status;

        assert_int_equal(waitpid(pids[rank], &status, 0), pids[rank]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

static void average_many(int rank, uint64_t arg, struct outcome *outcome)
{
    static struct words_allreduce all;
    char name[64];
    struct words_group group = group_of(name, rank, arg);

    outcome->status = words_allreduce_open(&all, &group, COUNT, LONG_MS);
    for (int i = 0; i < 300 && outcome->status == 0; i++) {
        fill(outcome->values, rank);
        outcome->values[0] += (float)i;
        outcome->status = words_allreduce_mean(&all, outcome->values);
    }
    words_allreduce_close(&all);
}

static void assert_averaged(const struct outcome *outcomes)
{
    for (int rank = 0; rank < RANKS; rank++) {
        assert_int_equal(outcomes[rank].status, 0);
        for (size_t i = 1; i < COUNT; i++) {
            float sum = value_of(0, i);

            for (int r = 1; r < RANKS; r++)
                sum += value_of(r, i);
            assert_true(outcomes[rank].values[i] == sum / RANKS);
        }
    }
}

static void all_ranks_get_the_sum_in_rank_order(void **state)
{
    struct outcome *outcomes = outcomes_new();

    (void)state;
    run_ranks(average_many, 1, outcomes);
    assert_averaged(outcomes);
    munmap(outcomes, RANKS * sizeof(*outcomes));
}

static void gather_values(int rank, uint64_t arg, struct outcome *outcome)
{
    static struct words_allreduce all;
    char name[64];
    struct words_group group = group_of(name, rank, arg);
    size_t begin, end;

    outcome->status = words_allreduce_open(&all, &group, COUNT, LONG_MS);
    words_allreduce_slice(COUNT, rank, RANKS, &begin, &end);
    for (size_t i = 0; i < COUNT; i++)
        outcome->values[i] = i >= begin && i < end ? -0.0f * (float)i : 99.0f;
    if (outcome->status == 0)
        outcome->status = words_allreduce_gather(&all, outcome->values, COUNT);
    words_allreduce_close(&all);
}

static void gather_joins_the_slices_bit_for_bit(void **state)
{
    struct outcome *outcomes = outcomes_new();

    (void)state;
    run_ranks(gather_values, 1, outcomes);
    for (int rank = 0; rank < RANKS; rank++) {
        assert_int_equal(outcomes[rank].status, 0);
        for (size_t i = 0; i < COUNT; i++)
            assert_true(outcomes[rank].values[i] == 0.0f && signbit(outcomes[rank].values[i]));
    }
    munmap(outcomes, RANKS * sizeof(*outcomes));
}

/* Rank 2 dies after its tenth average, without a word. */
static void lose_one(int rank, uint64_t arg, struct outcome *outcome)
{
    static struct words_allreduce all;
    char name[64];
    struct words_group group = group_of(name, rank, arg);
    int64_t began_ms;

    outcome->status = words_allreduce_open(&all, &group, COUNT, LONG_MS);
    all.timeout_ms = 300;
    for (int i = 0; outcome->status == 0; i++) {
        if (rank == 2 && i == 10)
            _exit(0);
        fill(outcome->values, rank);
        began_ms = now_ms();
        outcome->status = words_allreduce_mean(&all, outcome->values);
        outcome->took_ms = now_ms() - began_ms;
    }
    outcome->late_rank = all.late_rank;
}

static void a_dead_rank_is_an_error_for_the_others_within_the_timeout(void **state)
{
    struct outcome *outcomes = outcomes_new();

    (void)state;
    run_ranks(lose_one, 1, outcomes);
    for (int rank = 0; rank < RANKS; rank++) {
        if (rank == 2)
            continue;
        assert_int_equal(outcomes[rank].status, -ETIMEDOUT);
        assert_int_equal(outcomes[rank].late_rank, 2);
        assert_in_range(outcomes[rank].took_ms, 250, LONG_MS / 2);
        for (size_t i = 0; i < COUNT; i++) /* untouched */
            assert_true(outcomes[rank].values[i] == value_of(rank, i));
    }
    munmap(outcomes, RANKS * sizeof(*outcomes));
}

/* Is this process's first thread asleep? */
static bool main_thread_sleeps(void)
{
    char path[64], line[256] = "";
    const char *state;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/self/task/%ld/stat", (long)getpid());
    file = fopen(path, "re");
    if (!file || !fgets(line, sizeof(line), file))
        _exit(9);
    fclose(file);
    state = strrchr(line, ')');
    return state && state[2] == 'S';
}

static void *abort_when_waiting(void *arg)
{
    while (!main_thread_sleeps()) /* bounded by the process's alarm */
        sched_yield();
    words_allreduce_abort(arg);
    return NULL;
}

static void abort_from_thread(int rank, uint64_t arg, struct outcome *outcome)
{
    static struct words_allreduce all;
    char name[64];
    struct words_group group = group_of(name, rank, arg);
    pthread_t thread;

    outcome->status = words_allreduce_open(&all, &group, COUNT, LONG_MS);
    if (outcome->status || rank == 2)
        return;
    if (pthread_create(&thread, NULL, abort_when_waiting, &all) != 0)
        _exit(9);
    outcome->took_ms = -now_ms();
    outcome->status = words_allreduce_mean(&all, outcome->values);
    outcome->took_ms += now_ms();
    pthread_join(thread, NULL);
    if (words_allreduce_mean(&all, outcome->values) != outcome->status)
        outcome->status = 1; /* a broken group must stay broken */
}

static void abort_ends_the_wait_of_another_thread(void **state)
{
    struct outcome *outcomes = outcomes_new();

    (void)state;
    run_ranks(abort_from_thread, 1, outcomes);
    for (int rank = 0; rank < RANKS; rank++) {
        if (rank == 2)
            continue;
        assert_int_equal(outcomes[rank].status, -ECANCELED);
        assert_true(outcomes[rank].took_ms < LONG_MS / 2);
    }
    munmap(outcomes, RANKS * sizeof(*outcomes));
}

static void abort_before_open_ends_the_meeting(void **state)
{
    struct words_group group = {.name = "test_words-lonely", .world_size = 2};
    struct words_allreduce all = {0};

    (void)state;
    words_allreduce_abort(&all);
    assert_int_equal(words_allreduce_open(&all, &group, COUNT, LONG_MS), -ECANCELED);
    assert_int_equal(words_allreduce_mean(&all, (float[COUNT]){0}), -ENOTCONN);
}

static void a_rank_that_never_comes_is_named(void **state)
{
    struct words_group group = {.name = "test_words-lonely", .world_size = 2};
    struct words_allreduce all = {0};

    (void)state;
    assert_int_equal(words_allreduce_open(&all, &group, COUNT, 50), -ETIMEDOUT);
    assert_int_equal(all.late_rank, 1);
    group.rank = 1;
    assert_int_equal(words_allreduce_open(&all, &group, COUNT, 50), -ETIMEDOUT);
    assert_int_equal(all.late_rank, 0);
}

/* The third word of a segment: how many ranks have claimed a place. NULL: no segment is there. */
static _Atomic uint32_t *map_claimed_count(long launcher)
{
    char name[96];
    struct stat file;
    void *at = MAP_FAILED;
    int fd;

    snprintf(name, sizeof(name), "/muster-%lu-test_words-%ld", (unsigned long)getuid(), launcher);
    fd = shm_open(name, O_RDWR, 0);
    if (fd < 0)
        return NULL;
    if (fstat(fd, &file) == 0 && file.st_size >= 4096)
        at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return at == MAP_FAILED ? NULL : (_Atomic uint32_t *)at + 2;
}

/* Rank 0 of a launch that is killed while it waits for the others. */
static void leave_a_leftover(uint64_t nonce)
{
    int64_t deadline_ms = now_ms() + LONG_MS;
    _Atomic uint32_t *words = NULL;
    pid_t pid = fork();
    int status;

    assert_true(pid >= 0);
    if (pid == 0) {
        static struct words_allreduce all;
        char name[64];
        struct words_group group = group_of(name, 0, nonce);

        words_allreduce_open(&all, &group, COUNT, LONG_MS);
        _exit(0);
    }
    while ((!words || !atomic_load(words - 2)) && now_ms() < deadline_ms)
        words = words ? words : map_claimed_count((long)getpid());
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_non_null(words);
    assert_int_equal(atomic_load(words - 2), 1); /* ready, and still under its name */
    munmap(words - 2, 4096);
}

/* Rank 0 comes when the others have taken their places in the leftover. */
static void average_with_rank_0_last(int rank, uint64_t arg, struct outcome *outcome)
{
    _Atomic uint32_t *claimed_count = rank == 0 ? map_claimed_count((long)getppid()) : NULL;

    while (claimed_count && atomic_load(claimed_count) < RANKS - 1)
        sched_yield();
    average_many(rank, arg, outcome);
}

static void ranks_that_joined_a_killed_launch_go_over_to_the_new_one(void **state)
{
    struct outcome *outcomes = outcomes_new();

    (void)state;
    leave_a_leftover(1);
    run_ranks(average_with_rank_0_last, 1, outcomes);
    assert_averaged(outcomes);
    munmap(outcomes, RANKS * sizeof(*outcomes));
}

static void open_alone(int rank, uint64_t arg, struct outcome *outcome)
{
    static struct words_allreduce all;
    char name[64];
    struct words_group group = group_of(name, rank, arg);

    if (rank == 1)
        outcome->status = words_allreduce_open(&all, &group, COUNT, 50);
    outcome->late_rank = all.late_rank;
}

static void another_launch_is_not_joined(void **state)
{
    struct outcome *outcomes = outcomes_new();
    _Atomic uint32_t *claimed_count;

    (void)state;
    leave_a_leftover(1);
    run_ranks(open_alone, 2, outcomes);
    assert_int_equal(outcomes[1].status, -ETIMEDOUT);
    assert_int_equal(outcomes[1].late_rank, 0);
    claimed_count = map_claimed_count((long)getpid());
    assert_non_null(claimed_count);
    assert_int_equal(atomic_load(claimed_count), 0);
    munmap(claimed_count - 2, 4096);
    run_ranks(average_many, 2, outcomes);
    assert_averaged(outcomes);
    munmap(outcomes, RANKS * sizeof(*outcomes));
}

static void slices_are_a_partition(void **state)
{
    static const size_t counts[] = {1, 3, 4, 5, 1003, 14283};

    (void)state;
    for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++) {
        size_t next = 0;

        for (int rank = 0; rank < RANKS; rank++) {
            size_t begin, end;

            words_allreduce_slice(counts[k], rank, RANKS, &begin, &end);
            assert_int_equal(begin, next);
            assert_true(end - begin <= counts[k] / RANKS + 1);
            next = end;
        }
        assert_int_equal(next, counts[k]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_words_of_a_to_z_are_kept),
        cmocka_unit_test(a_list_without_words_is_refused),
        cmocka_unit_test(an_epoch_visits_every_example_once_and_the_next_in_another_order),
        cmocka_unit_test(the_batch_depends_on_step_and_rank_alone),
        cmocka_unit_test(a_context_ends_at_the_word_before),
        cmocka_unit_test(gradient_is_the_slope_of_the_loss),
        cmocka_unit_test(loss_falls_over_two_hundred_steps),
        cmocka_unit_test(equal_seeds_give_equal_bits_and_others_do_not),
        cmocka_unit_test(slices_are_a_partition),
        cmocka_unit_test(all_ranks_get_the_sum_in_rank_order),
        cmocka_unit_test(gather_joins_the_slices_bit_for_bit),
        cmocka_unit_test(a_dead_rank_is_an_error_for_the_others_within_the_timeout),
        cmocka_unit_test(abort_ends_the_wait_of_another_thread),
        cmocka_unit_test(abort_before_open_ends_the_meeting),
        cmocka_unit_test(a_rank_that_never_comes_is_named),
        cmocka_unit_test(ranks_that_joined_a_killed_launch_go_over_to_the_new_one),
        cmocka_unit_test(another_launch_is_not_joined),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
