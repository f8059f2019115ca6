/* Shards of N ranks read by M: every part comes from where it was saved, damage and gaps are named.
 */
#include "node/shard/shard_reshard.h"
#include "tests/support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RANKS_MAX 6
#define JOB "reshard"

static const int64_t global_shape[3] = {5, 7, 3};

struct world { /* one job's ranks: where their parts of an axis begin; fences[ranks] = the length */
    int ranks;
    int64_t fences[RANKS_MAX + 1];
};

struct fixture {
    char dir[SCRATCH_PATH_MAX];
    struct manifest manifest;
    struct manifest_shard shards[RANKS_MAX];
    struct shard_files files[RANKS_MAX];
};

static int make(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    scratch_make(f->dir);
    *state = f;
    return 0;
}

static void forget(struct fixture *f)
{
    for (int i = 0; i < RANKS_MAX; i++)
        shard_files_clear(&f->files[i]);
    scratch_remove(f->dir);
}

static int drop(void **state)
{
    struct fixture *f = *state;

    forget(f);
    free(f);
    return 0;
}

/* What element (i, j, k) of the whole tensor has, in as many bytes as the type. */
static void element(const int64_t at[3], size_t bytes, unsigned char *to)
{
    uint64_t value = (uint64_t)((at[0] * 7 + at[1]) * 3 + at[2]) * 0x9e3779b97f4a7c15u + 12345;

    memcpy(to, &value, bytes);
}

struct part_of_rank {
    struct muster_state *state;
    unsigned char *data;
    int64_t counter; /* the same on all ranks */
    size_t bytes;
};

static void part_make(struct part_of_rank *p, const struct world *w, int rank,
                      enum state_dtype dtype, size_t axis)
{
    struct state_item item = {.name = "w",
                              .kind = STATE_KIND_TENSOR,
                              .dtype = dtype,
                              .dim_count = 3,
                              .split = {.is = true,
                                        .axis = axis,
                                        .begin = w->fences[rank],
                                        .global_count = global_shape[axis]}};
    struct state_item counter = {.name = "counter",
                                 .kind = STATE_KIND_SCALAR,
                                 .dtype = STATE_DTYPE_I64,
                                 .data = &p->counter};

    memcpy(item.shape, global_shape, sizeof global_shape);
    item.shape[axis] = w->fences[rank + 1] - w->fences[rank];
    p->bytes = state_dtype_size(dtype) * (size_t)(item.shape[0] * item.shape[1] * item.shape[2]);
    p->data = malloc(p->bytes + 1);
    assert_non_null(p->data);
    memset(p->data, 0xee, p->bytes + 1);
    item.data = p->data;
    p->counter = 0;
    assert_int_equal(state_create(&p->state, NULL), MUSTER_OK);
    assert_int_equal(state_add(p->state, &item, NULL), MUSTER_OK);
    assert_int_equal(state_add(p->state, &counter, NULL), MUSTER_OK);
}

static void part_drop(struct part_of_rank *p)
{
    state_destroy(&p->state);
    free(p->data);
}

/* Fills (or compares) the part with what the whole has there. */
static bool part_each(const struct part_of_rank *p, bool fill)
{
    const struct state_item *item = state_find(p->state, "w");
    size_t bytes = state_dtype_size(item->dtype);
    unsigned char *at = p->data;
    unsigned char wanted[8];
    int64_t i[3];

    for (i[0] = 0; i[0] < item->shape[0]; i[0]++)
        for (i[1] = 0; i[1] < item->shape[1]; i[1]++)
            for (i[2] = 0; i[2] < item->shape[2]; i[2]++, at += bytes) {
                int64_t global[3] = {i[0], i[1], i[2]};

                global[item->split.axis] += item->split.begin;
                element(global, bytes, wanted);
                if (fill)
                    memcpy(at, wanted, bytes);
                else if (memcmp(at, wanted, bytes) != 0)
                    return false;
            }
    return p->data[p->bytes] == 0xee;
}

static void save_rank(struct fixture *f, const struct part_of_rank *p, int rank, int ranks)
{
    struct shard_facts facts = {.job = JOB,
                                .generation = 1,
                                .round = 4,
                                .step = 12,
                                .layout = LAYOUT_SHARDED,
                                .rank = (uint64_t)rank,
                                .incarnation = 0xabc0 + (uint64_t)rank,
                                .world_size = (uint64_t)ranks};
    struct muster_error err = {0};

    if (shard_save_state(f->dir, &facts, p->state, NULL, &f->files[rank], &err) != MUSTER_OK)
        fail_msg("%s", err.text);
    f->shards[rank] = (struct manifest_shard){.rank = (uint64_t)rank,
                                              .incarnation = facts.incarnation,
                                              .files = f->files[rank].files,
                                              .file_count = 1};
}

static void save_world(struct fixture *f, const struct world *w, enum state_dtype dtype,
                       size_t axis)
{
    f->manifest = (struct manifest){.job = JOB,
                                    .generation = 1,
                                    .round = 4,
                                    .step = 12,
                                    .layout = LAYOUT_SHARDED,
                                    .world_size = (uint64_t)w->ranks,
                                    .shards = f->shards,
                                    .shard_count = (size_t)w->ranks};
    for (int rank = 0; rank < w->ranks; rank++) {
        struct part_of_rank p;

        part_make(&p, w, rank, dtype, axis);
        part_each(&p, true);
        p.counter = 77;
        save_rank(f, &p, rank, w->ranks);
        part_drop(&p);
    }
}

static enum muster_status reshard(struct fixture *f, struct part_of_rank *p,
                                  struct muster_error *err)
{
    struct shard_restore request = {.checkpoint_path = f->dir,
                                    .job = JOB,
                                    .layout = LAYOUT_SHARDED,
                                    .step = 12,
                                    .state = p->state};

    return shard_reshard(&request, &f->manifest, err);
}

/* Parts of a length, as even as they can be, or (uneven) the first rank's empty and the last one's
 * large. */
static struct world world_of(int ranks, int64_t length, bool uneven)
{
    struct world w = {.ranks = ranks};

    for (int i = 0; i <= ranks; i++) {
        int64_t one_each = i == 0 ? 0 : i - 1 < length ? i - 1 : length;

        w.fences[i] = uneven ? (i == ranks ? length : one_each) : length * i / ranks;
    }
    return w;
}

static void every_part_comes_back_by_any_other_number_of_ranks(void **state)
{
    static const enum state_dtype dtypes[] = {STATE_DTYPE_U8, STATE_DTYPE_BF16, STATE_DTYPE_F64};
    struct fixture *f = *state;
    int worlds = 0;

    for (size_t axis = 0; axis < 3; axis++)
        for (int n = 1; n <= RANKS_MAX; n++)
            for (int m = 1; m <= RANKS_MAX; m++) {
                struct world from = world_of(n, global_shape[axis], m % 2 == 0);
                struct world to = world_of(m, global_shape[axis], n % 3 == 0);
                enum state_dtype dtype = dtypes[(size_t)(n + m) % 3];

                save_world(f, &from, dtype, axis);
                for (int rank = 0; rank < m; rank++) {
                    struct muster_error err = {0};
                    struct part_of_rank p;

                    part_make(&p, &to, rank, dtype, axis);
                    if (reshard(f, &p, &err) != MUSTER_OK)
                        fail_msg("axis %d, %d ranks to %d: %s", (int)axis, n, m, err.text);
                    if (!part_each(&p, false) || p.counter != 77)
                        fail_msg("axis %d, %d ranks to %d: rank %d got other bytes", (int)axis, n,
                                 m, rank);
                    part_drop(&p);
                }
                forget(f);
                scratch_make(f->dir);
                worlds++;
            }
    assert_int_equal(worlds, 3 * RANKS_MAX * RANKS_MAX);
}

/* Who only reads has the tensors as they are, however a job's ranks split them. */
static void a_reader_gets_the_whole_of_what_was_split(void **state)
{
    struct fixture *f = *state;

    for (size_t axis = 0; axis < 3; axis++)
        for (int n = 2; n <= RANKS_MAX; n++) {
            struct world from = world_of(n, global_shape[axis], n % 2 == 0);
            struct world to = world_of(1, global_shape[axis], false);
            struct muster_error err = {0};
            struct part_of_rank p;
            struct shard_restore request = {.checkpoint_path = f->dir,
                                            .job = JOB,
                                            .layout = LAYOUT_SHARDED,
                                            .world_size = 1,
                                            .step = 12};

            save_world(f, &from, STATE_DTYPE_F64, axis);
            part_make(&p, &to, 0, STATE_DTYPE_F64, axis);
            p.state->items[0].split.is = false;
            request.state = p.state;
            assert_int_equal(shard_reshard(&request, &f->manifest, &err), MUSTER_E_RESTORE);
            assert_non_null(strstr(err.text, "split in the file and not in this program"));
            assert_true(p.data[0] == 0xee);
            request.wholes = true;
            assert_int_equal(shard_reshard(&request, &f->manifest, &err), MUSTER_OK);
            assert_true(part_each(&p, false) && p.counter == 77);
            part_drop(&p);
            forget(f);
            scratch_make(f->dir);
        }
}

static void what_does_not_fit_is_named_and_reaches_no_memory(void **state)
{
    struct fixture *f = *state;
    struct world from = world_of(3, 5, false), to = world_of(2, 5, false);
    struct muster_error err = {0};
    struct part_of_rank p;
    struct state_item *w;

    save_world(f, &from, STATE_DTYPE_F64, 0);
    part_make(&p, &to, 1, STATE_DTYPE_F64, 0);
    w = &p.state->items[0];
#define REFUSED(change, status, words, back)            \
    do {                                                \
        change;                                         \
        assert_int_equal(reshard(f, &p, &err), status); \
        if (strstr(err.text, words) == NULL)            \
            fail_msg("%s", err.text);                   \
        assert_true(p.data[0] == 0xee);                 \
        back;                                           \
    } while (0)
    REFUSED(w->dtype = STATE_DTYPE_I64, MUSTER_E_RESTORE, "\"w\" is F64 [1, 7, 3] in the file",
            w->dtype = STATE_DTYPE_F64);
    REFUSED(w->shape[1] = 8, MUSTER_E_RESTORE, "\"w\" is F64", w->shape[1] = 7);
    REFUSED(w->split.is = false, MUSTER_E_RESTORE, "split in the file and not", w->split.is = true);
    REFUSED(w->split.global_count = 6, MUSTER_E_RESTORE, "another length",
            w->split.global_count = 5);
    REFUSED(f->manifest.shard_count = 2, MUSTER_E_RESTORE,
            "\"w\": a part of it is not in the shards", f->manifest.shard_count = 3);
    char *mine, *others = scratch_read(scratch_path(f->dir, "%s", f->files[2].files[0].path), NULL);
    char path[SCRATCH_PATH_MAX];
    size_t size;

    snprintf(path, sizeof path, "%s", scratch_path(f->dir, "%s", f->files[1].files[0].path));
    mine = scratch_read(path, &size);
    REFUSED(scratch_write(path, others, size), MUSTER_E_CORRUPT,
            "not the shard that the manifest means", scratch_write(path, mine, size));
    free(mine);
    free(others);
#undef REFUSED
    assert_int_equal(reshard(f, &p, &err), MUSTER_OK);
    assert_true(part_each(&p, false));
    part_drop(&p);
}

static void parts_that_overlap_and_wholes_that_differ_are_refused(void **state)
{
    struct fixture *f = *state;
    struct world from = world_of(3, 5, false), to = world_of(2, 5, false);
    struct muster_error err = {0};
    struct part_of_rank p, other;

    save_world(f, &from, STATE_DTYPE_F64, 0);
    part_make(&p, &to, 1, STATE_DTYPE_F64, 0);
    shard_files_clear(&f->files[2]);
    shard_discard(f->dir, 2, 0xabc2);
    part_make(&other, &from, 2, STATE_DTYPE_F64, 0);
    other.counter = 78;
    save_rank(f, &other, 2, 3);
    assert_int_equal(reshard(f, &p, &err), MUSTER_E_RESTORE);
    assert_non_null(strstr(err.text, "\"counter\" is not split, and differs"));
    shard_files_clear(&f->files[2]);
    shard_discard(f->dir, 2, 0xabc2);
    other.counter = 77;
    other.state->items[0].split.begin--;
    save_rank(f, &other, 2, 3);
    assert_int_equal(reshard(f, &p, &err), MUSTER_E_RESTORE);
    assert_non_null(strstr(err.text, "ranks 1 and 2 overlap"));
    part_drop(&other);
    part_drop(&p);
}

static void damage_is_named_in_what_is_read_and_only_there(void **state)
{
    struct fixture *f = *state;
    struct world from = world_of(2, 5, false), to = world_of(5, 5, false);
    struct muster_error err = {0};
    struct part_of_rank p;
    const char *path;
    uint64_t length;
    char *bytes;
    char second[SCRATCH_PATH_MAX];

    save_world(f, &from, STATE_DTYPE_F64, 0); /* rows 0 1 | 2 3 4 */
    snprintf(second, sizeof second, "%s", scratch_path(f->dir, "%s", f->files[1].files[0].path));
    bytes = scratch_read(second, NULL);
    memcpy(&length, bytes, 8);
    free(bytes);
    path = second;
    scratch_flip_bit(path, 8 + length + 8 + 100, 2); /* behind the counter: in w */
    for (int rank = 0; rank < 5; rank++) {
        bool reads_it = rank >= 2;

        part_make(&p, &to, rank, STATE_DTYPE_F64, 0);
        assert_int_equal(reshard(f, &p, &err), reads_it ? MUSTER_E_CORRUPT : MUSTER_OK);
        if (reads_it &&
            (strstr(err.text, "tensor \"w\"") == NULL || strstr(err.text, path) == NULL))
            fail_msg("%s", err.text);
        part_drop(&p);
    }
    scratch_flip_bit(path, 8 + length + 8 + 100, 2);
    for (int i = 0; i < 3; i++) { /* header, table, length: known before anything is read */
        part_make(&p, &to, 0, STATE_DTYPE_F64, 0);
        if (i == 2)
            scratch_cut(path, f->files[1].bytes - 1);
        else
            scratch_flip_bit(path, i == 0 ? 60 : f->files[1].bytes - 1, 1);
        assert_int_equal(reshard(f, &p, &err), MUSTER_E_CORRUPT);
        assert_true(p.data[0] == 0xee);
        if (i < 2)
            scratch_flip_bit(path, i == 0 ? 60 : f->files[1].bytes - 1, 1);
        part_drop(&p);
    }
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, make, drop)
    const struct CMUnitTest tests[] = {
        T(every_part_comes_back_by_any_other_number_of_ranks),
        T(a_reader_gets_the_whole_of_what_was_split),
        T(what_does_not_fit_is_named_and_reaches_no_memory),
        T(parts_that_overlap_and_wholes_that_differ_are_refused),
        T(damage_is_named_in_what_is_read_and_only_there),
    };

    return cmocka_run_group_tests_name("shard_reshard", tests, NULL, NULL);
}
