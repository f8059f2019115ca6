/* A shard of very many small tensors: each comes back, and one that the file lacks is named. */
#include "node/shard/safetensors.h"
#include "node/shard/state.h"
#include "schema/manifest/manifest.h"
#include "tests/support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TENSORS 100000

struct fixture {
    char dir[SCRATCH_PATH_MAX], path[SCRATCH_PATH_MAX];
    struct muster_state *state;
    uint32_t (*data)[3];
    uint64_t bytes;
    char checksum[MANIFEST_CHECKSUM_SIZE];
};

static void add(struct fixture *f, const char *name, uint32_t *data, int64_t count)
{
    const struct state_item item = {.name = name,
                                    .kind = STATE_KIND_TENSOR,
                                    .dtype = STATE_DTYPE_U32,
                                    .dim_count = 1,
                                    .shape = {count},
                                    .data = data};

    assert_int_equal(state_add(f->state, &item, NULL), MUSTER_OK);
}

static uint32_t value_of(size_t tensor, size_t place)
{
    return (uint32_t)(tensor * 2654435761U + place);
}

static int make(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct safetensors_watch watch = {0};
    struct muster_error err = {0};
    char name[32];

    assert_non_null(f);
    scratch_make(f->dir);
    snprintf(f->path, sizeof f->path, "%s", scratch_path(f->dir, "shard"));
    f->data = calloc(TENSORS, sizeof *f->data);
    assert_non_null(f->data);
    assert_int_equal(state_create(&f->state, NULL), MUSTER_OK);
    for (size_t i = 0; i < TENSORS; i++) {
        for (size_t k = 0; k < 3; k++)
            f->data[i][k] = value_of(i, k);
        snprintf(name, sizeof name, "layer.%zu.weight", i);
        add(f, name, f->data[i], (int64_t)(i % 4)); /* some are empty */
    }
    if (safetensors_save(f->path, f->state, NULL, 0, &watch, CHECKSUM_XXH3, &f->bytes, f->checksum,
                         &err) != MUSTER_OK)
        fail_msg("%s", err.text);
    *state = f;
    return 0;
}

static int drop(void **state)
{
    struct fixture *f = *state;

    scratch_remove(f->dir);
    state_destroy(&f->state);
    free(f->data);
    free(f);
    return 0;
}

static void each_comes_back(void **state)
{
    struct fixture *f = *state;
    struct muster_error err = {0};

    memset(f->data, 0, TENSORS * sizeof *f->data);
    if (safetensors_restore(f->path, f->bytes, f->checksum, f->state, NULL, &err) != MUSTER_OK)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < TENSORS; i++)
        for (size_t k = 0; k < 3; k++)
            if (f->data[i][k] != (k < i % 4 ? value_of(i, k) : 0))
                fail_msg("number %zu of tensor %zu came back as another", k, i);
}

static void one_that_the_file_lacks_is_named(void **state)
{
    struct fixture *f = *state;
    struct muster_error err = {0};
    uint32_t data = 0;

    add(f, "lacking", &data, 1);
    memset(f->data, 0, TENSORS * sizeof *f->data);
    assert_int_equal(safetensors_restore(f->path, f->bytes, f->checksum, f->state, NULL, &err),
                     MUSTER_E_RESTORE);
    assert_non_null(strstr(err.text, "tensor \"lacking\" is not in the file"));
    for (size_t i = 0; i < TENSORS; i++)
        assert_int_equal(f->data[i][0], 0); /* untouched */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_comes_back, make, drop),
        cmocka_unit_test_setup_teardown(one_that_the_file_lacks_is_named, make, drop),
    };

    return cmocka_run_group_tests_name("shard_many", tests, NULL, NULL);
}
