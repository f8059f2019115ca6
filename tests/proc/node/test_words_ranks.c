/* The example's averages across processes: real ranks that share memory, die, come late or never */
#include "client/examples/words_allreduce.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
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

int main(void)
{
    const struct CMUnitTest tests[] = {
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
