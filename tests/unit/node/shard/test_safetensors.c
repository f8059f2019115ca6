/* test_safetensors - shard files: exact bytes, round trips, and damage that must not reach memory.
 */
#include <muster/checkpoint.h>

#include "node/shard/safetensors.h"

#include "node/shard/checksum.h"
#include "node/shard/fs.h"
#include "tests/support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#define LARGE_COUNT (3 * 262144 + 5) /* F32: three chunks and a bit, ends on no boundary */

/* One of everything; memory that a restore must fill, or leave alone. */
struct fixture {
    char dir[SCRATCH_PATH_MAX];
    struct muster_state *state;
    unsigned char small[MUSTER_DTYPE_COUNT][48]; /* [2, 3] of each type */
    float *large;
    char blob[11];
    int64_t count;
    double rate;
    char path[SCRATCH_PATH_MAX];
    uint64_t bytes;
    char checksum[MANIFEST_CHECKSUM_SIZE];
};

static const struct safetensors_fact facts[] = {{"job", "wörds"}, {"step", "7"}};

static void fill(struct fixture *f, unsigned char with)
{
    memset(f->small, with, sizeof f->small);
    memset(f->large, with, LARGE_COUNT * sizeof *f->large);
    memset(f->blob, with, sizeof f->blob);
    f->count = with;
    f->rate = with;
}

/* Different bytes everywhere, so that a swapped offset is seen. */
static void fill_different(struct fixture *f)
{
    unsigned char *large = (unsigned char *)f->large;

    for (size_t d = 0; d < MUSTER_DTYPE_COUNT; d++) {
        for (size_t i = 0; i < sizeof f->small[d]; i++)
            f->small[d][i] = (unsigned char)(d * 16 + i);
    }
    for (size_t i = 0; i < LARGE_COUNT * sizeof *f->large; i++)
        large[i] = (unsigned char)(i * 2654435761u >> 13);
    memcpy(f->blob, "opaque\0\xff\xfe!", sizeof f->blob);
    f->count = -123456789012345;
    f->rate = 0.1;
}

static bool is_filled(const struct fixture *f, unsigned char with)
{
    const unsigned char *large = (const unsigned char *)f->large;

    for (size_t i = 0; i < sizeof f->small; i++) {
        if (((const unsigned char *)f->small)[i] != with)
            return false;
    }
    return large[0] == with && memcmp(large, large + 1, LARGE_COUNT * sizeof *f->large - 1) == 0 &&
           f->blob[0] == (char)with && memcmp(f->blob, f->blob + 1, sizeof f->blob - 1) == 0 &&
           f->count == with && f->rate == with;
}

static void add_all(struct fixture *f, bool with_large)
{
    static const int64_t shape[2] = {2, 3};
    static const int64_t empty[3] = {4, 0, 2};
    static const int64_t large[1] = {LARGE_COUNT};
    struct muster_state *s = f->state;

    for (int d = MUSTER_DTYPE_NONE + 1; d < MUSTER_DTYPE_COUNT; d++)
        assert_int_equal(muster_state_add_tensor(s, state_dtype_name((enum state_dtype)d),
                                                 (enum muster_dtype)d, shape, 2, f->small[d], NULL),
                         MUSTER_OK);
    assert_int_equal(muster_state_add_tensor(s, "empty", MUSTER_DTYPE_BF16, empty, 3, NULL, NULL),
                     0);
    assert_int_equal(muster_state_add_blob(s, "blob ✓", f->blob, sizeof f->blob, NULL), 0);
    assert_int_equal(muster_state_add_blob(s, "no blob", NULL, 0, NULL), 0);
    assert_int_equal(muster_state_add_i64(s, "count", &f->count, NULL), 0);
    assert_int_equal(muster_state_add_f64(s, "rate \"quoted\"", &f->rate, NULL), 0);
    if (with_large)
        assert_int_equal(
            muster_state_add_tensor(s, "large", MUSTER_DTYPE_F32, large, 1, f->large, NULL),
            MUSTER_OK);
}

static int make(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    f->large = malloc(LARGE_COUNT * sizeof *f->large);
    assert_non_null(f->large);
    scratch_make(f->dir);
    snprintf(f->path, sizeof f->path, "%s", scratch_path(f->dir, "shard"));
    assert_int_equal(muster_state_create(&f->state, NULL), MUSTER_OK);
    *state = f;
    return 0;
}

static int drop(void **state)
{
    struct fixture *f = *state;

    scratch_remove(f->dir);
    muster_state_destroy(&f->state);
    free(f->large);
    free(f);
    return 0;
}

static enum muster_status save(struct fixture *f, struct muster_error *err)
{
    return safetensors_save(f->path, f->state, facts, 2, NULL, CHECKSUM_XXH3, &f->bytes,
                            f->checksum, err);
}

static enum muster_status restore(struct fixture *f, struct muster_error *err)
{
    return safetensors_restore(f->path, f->bytes, f->checksum, f->state, NULL, err);
}

/* Puts header and data into f->path, with the size and checksum that a manifest would have. */
static void put_file(struct fixture *f, uint64_t length, const char *json, size_t data_size)
{
    size_t json_size = strlen(json);
    char *bytes = calloc(1, 8 + json_size + data_size + 1);

    assert_non_null(bytes);
    memcpy(bytes, &length, 8);
    memcpy(bytes + 8, json, json_size);
    scratch_write(f->path, bytes, 8 + json_size + data_size);
    free(bytes);
    assert_int_equal(checksum_file(f->path, CHECKSUM_XXH3, NULL, &f->bytes, f->checksum, NULL),
                     MUSTER_OK);
}

static void assert_sum_is(const char *at, const void *data, size_t size)
{
    unsigned char sum[CHECKSUM_RAW_BYTES];

    checksum_raw(data, size, sum);
    assert_memory_equal(at, sum, sizeof sum);
}

static void bytes_of_a_small_state_are_exactly_these(void **state)
{
    static const char header[] =
        "{\"__metadata__\":{\"muster_sums\":\"1048576\",\"job\":\"w\xc3\xb6rds\",\"step\":\"7\"},"
        "\"n\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]},"
        "\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,16]},"
        "\"muster.sums\":{\"dtype\":\"U8\",\"shape\":[64],\"data_offsets\":[16,80]}}";
    static const int64_t shape[1] = {2};
    struct fixture *f = *state;
    float w[2] = {1.0f, -2.0f};
    char *bytes;
    size_t size;
    uint64_t length;

    f->count = 0x0102030405060708;
    assert_int_equal(muster_state_add_tensor(f->state, "w", MUSTER_DTYPE_F32, shape, 1, w, NULL),
                     0);
    assert_int_equal(muster_state_add_i64(f->state, "n", &f->count, NULL), 0);
    assert_int_equal(save(f, NULL), MUSTER_OK);
    bytes = scratch_read(f->path, &size);
    assert_int_equal(size, f->bytes);
    memcpy(&length, bytes, 8);
    assert_int_equal(length % 8, 0);
    assert_int_equal(length, (sizeof header - 1 + 7) / 8 * 8);
    assert_memory_equal(bytes + 8, header, sizeof header - 1);
    for (size_t i = sizeof header - 1; i < length; i++)
        assert_int_equal(bytes[8 + i], ' ');
    assert_int_equal(size, 8 + length + 16 + 64);
    assert_memory_equal(bytes + 8 + length, "\x08\x07\x06\x05\x04\x03\x02\x01", 8);
    assert_memory_equal(bytes + 8 + length + 8, w, 8);
    assert_sum_is(bytes + 8 + length + 16, &f->count, 8); /* of each tensor in their order ... */
    assert_sum_is(bytes + 8 + length + 32, w, 8);
    assert_sum_is(bytes + 8 + length + 48, bytes, 8 + length);           /* ... of the header ... */
    assert_sum_is(bytes + 8 + length + 64, bytes + 8 + length + 16, 48); /* ... of the sums */
    free(bytes);
}

static void every_kind_of_entry_comes_back_as_it_was(void **state)
{
    struct fixture *f = *state;
    unsigned char small[MUSTER_DTYPE_COUNT][48];
    float *large = malloc(LARGE_COUNT * sizeof *large);
    struct muster_error err = {0};
    char checksum[MANIFEST_CHECKSUM_SIZE];
    uint64_t bytes;

    assert_non_null(large);
    add_all(f, true);
    fill_different(f);
    memcpy(small, f->small, sizeof small);
    memcpy(large, f->large, LARGE_COUNT * sizeof *large);
    assert_int_equal(save(f, NULL), MUSTER_OK);
    assert_int_equal(checksum_file(f->path, CHECKSUM_XXH3, NULL, &bytes, checksum, NULL),
                     MUSTER_OK);
    assert_int_equal(bytes, f->bytes);
    assert_string_equal(checksum, f->checksum);
    fill(f, 0xee);
    if (restore(f, &err) != MUSTER_OK)
        fail_msg("%s", err.text);
    for (int d = MUSTER_DTYPE_NONE + 1; d < MUSTER_DTYPE_COUNT; d++) {
        size_t size = 6 * state_dtype_size((enum state_dtype)d);

        assert_memory_equal(f->small[d], small[d], size);
        for (size_t i = size; i < sizeof small[d]; i++)
            assert_int_equal(f->small[d][i], 0xee); /* not a byte beyond */
    }
    assert_memory_equal(f->large, large, LARGE_COUNT * sizeof *large);
    assert_memory_equal(f->blob, "opaque\0\xff\xfe!", sizeof f->blob);
    assert_true(f->count == -123456789012345 && f->rate == 0.1);
    free(large);
}

static void every_tensor_lies_aligned_and_without_a_hole(void **state)
{
    struct fixture *f = *state;
    struct safetensors_index *index = NULL;
    uint64_t length;
    uint64_t place = 0;
    size_t size;
    char *bytes;

    add_all(f, false);
    fill_different(f);
    assert_int_equal(save(f, NULL), MUSTER_OK);
    bytes = scratch_read(f->path, &size);
    memcpy(&length, bytes, 8);
    assert_int_equal(safetensors_index_parse(bytes + 8, length, size - 8 - length, &index, NULL),
                     MUSTER_OK);
    assert_int_equal(safetensors_index_count(index), muster_state_count(f->state) + 1); /* sums */
    for (size_t i = 0; i < safetensors_index_count(index); i++) {
        const struct safetensors_tensor *tensor = safetensors_index_tensor(index, i);

        assert_int_equal(tensor->begin, place);
        assert_int_equal((8 + length + tensor->begin) % state_dtype_size(tensor->dtype), 0);
        place = tensor->end;
    }
    assert_int_equal(8 + length + place, size);
    assert_string_equal(safetensors_index_fact(index, "job"), "wörds");
    assert_string_equal(safetensors_index_fact(index, "muster_blobs"), "[\"blob ✓\",\"no blob\"]");
    assert_null(safetensors_index_fact(index, "none"));
    safetensors_index_destroy(&index);
    free(bytes);
}

static void empty_state_makes_a_file_that_restores(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(save(f, NULL), MUSTER_OK);
    assert_int_equal(restore(f, NULL), MUSTER_OK);
}

static void every_flipped_byte_is_found_and_reaches_no_memory(void **state)
{
    struct fixture *f = *state;

    add_all(f, false);
    fill_different(f);
    assert_int_equal(save(f, NULL), MUSTER_OK);
    fill(f, 0xee);
    for (size_t i = 0; i < f->bytes; i++) {
        struct muster_error err = {0};

        scratch_flip_bit(f->path, i, (int)(i % 8));
        assert_int_equal(restore(f, &err), MUSTER_E_CORRUPT);
        assert_non_null(strstr(err.text, f->path));
        assert_non_null(strstr(err.text, "damaged"));
        scratch_flip_bit(f->path, i, (int)(i % 8));
    }
    assert_true(is_filled(f, 0xee));
    assert_int_equal(restore(f, NULL), MUSTER_OK);
    assert_false(is_filled(f, 0xee));
}

/* The place of each class of bytes, and what the error calls it. */
static void damage_is_named_by_what_it_is_in(void **state)
{
    static const int64_t shape[1] = {3};
    struct fixture *f = *state;
    float a[3] = {1, 2, 3};
    float b[3] = {4, 5, 6};
    char *bytes;
    uint64_t length;
    size_t size;

    assert_int_equal(muster_state_add_tensor(f->state, "a", MUSTER_DTYPE_F32, shape, 1, a, NULL),
                     0);
    assert_int_equal(muster_state_add_tensor(f->state, "b", MUSTER_DTYPE_F32, shape, 1, b, NULL),
                     0);
    assert_int_equal(save(f, NULL), MUSTER_OK);
    bytes = scratch_read(f->path, &size);
    memcpy(&length, bytes, 8);
    free(bytes);
    const struct {
        uint64_t byte;
        const char *words;
    } rows[] = {
        {0, "in its header"},
        {7, "in its header"},
        {8, "in its header"},
        {8 + 20, "in its header"},
        {8 + length, "in tensor \"a\""},
        {8 + length + 11, "in tensor \"a\""},
        {8 + length + 12, "in tensor \"b\" (from its byte 0 on)"},
        {8 + length + 24, "in its table of checksums"},
        {size - 1, "in its table of checksums"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct muster_error err = {0};

        scratch_flip_bit(f->path, rows[i].byte, 1);
        assert_int_equal(restore(f, &err), MUSTER_E_CORRUPT);
        if (strstr(err.text, rows[i].words) == NULL || strstr(err.text, f->path) == NULL)
            fail_msg("byte %d: %s", (int)rows[i].byte, err.text);
        scratch_flip_bit(f->path, rows[i].byte, 1);
    }
    assert_int_equal(restore(f, NULL), MUSTER_OK);
}

static void every_cut_is_found_and_reaches_no_memory(void **state)
{
    struct fixture *f = *state;
    struct muster_error err = {0};

    add_all(f, true);
    fill_different(f);
    assert_int_equal(save(f, NULL), MUSTER_OK);
    fill(f, 0xee);
    scratch_cut(f->path, f->bytes + 1); /* longer, too */
    assert_int_equal(restore(f, &err), MUSTER_E_CORRUPT);
    assert_non_null(strstr(err.text, "added to"));
    for (size_t size = f->bytes - 1;; size = size > 4096 ? size - size / 7 : size - 1) {
        scratch_cut(f->path, size);
        assert_int_equal(restore(f, &err), MUSTER_E_CORRUPT);
        assert_non_null(strstr(err.text, "cut"));
        if (size == 0)
            break;
    }
    assert_true(is_filled(f, 0xee));
}

static void entry_that_differs_is_named_and_nothing_is_restored(void **state)
{
    static const int64_t good[2] = {2, 2};
    static const int64_t turned[1] = {4};
    static const struct {
        const char *name;
        enum muster_dtype dtype;
        const int64_t *shape;
        size_t dim_count;
        const char *text;
    } rows[] = {
        {"b", MUSTER_DTYPE_I32, good, 2, "\"b\" is F32 [2, 2] in the file and I32 [2, 2]"},
        {"b", MUSTER_DTYPE_F32, turned, 1, "\"b\" is F32 [2, 2] in the file and F32 [4]"},
        {"b", MUSTER_DTYPE_F32, NULL, 0, "\"b\" is F32 [2, 2] in the file and F32 []"},
        {"c", MUSTER_DTYPE_F32, good, 2, "\"c\" is not in the file"},
    };
    struct fixture *f = *state;
    float a[4] = {1, 2, 3, 4};
    float b[4] = {5, 6, 7, 8};

    assert_int_equal(muster_state_add_tensor(f->state, "a", MUSTER_DTYPE_F32, good, 2, a, NULL), 0);
    assert_int_equal(muster_state_add_tensor(f->state, "b", MUSTER_DTYPE_F32, good, 2, b, NULL), 0);
    assert_int_equal(save(f, NULL), MUSTER_OK);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct muster_error err = {0};

        a[0] = 99;
        muster_state_destroy(&f->state);
        assert_int_equal(muster_state_create(&f->state, NULL), MUSTER_OK);
        assert_int_equal(muster_state_add_tensor(f->state, "a", MUSTER_DTYPE_F32, good, 2, a, NULL),
                         MUSTER_OK);
        assert_int_equal(muster_state_add_tensor(f->state, rows[i].name, rows[i].dtype,
                                                 rows[i].shape, rows[i].dim_count, b, NULL),
                         MUSTER_OK);
        assert_int_equal(restore(f, &err), MUSTER_E_RESTORE);
        if (strstr(err.text, rows[i].text) == NULL || strstr(err.text, f->path) == NULL)
            fail_msg("%s", err.text);
        assert_true(a[0] == 99);
    }
}

static void blob_of_another_size_is_refused(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(muster_state_add_blob(f->state, "rng", f->blob, 10, NULL), MUSTER_OK);
    assert_int_equal(save(f, NULL), MUSTER_OK);
    assert_int_equal(muster_state_remove(f->state, "rng", NULL), MUSTER_OK);
    assert_int_equal(muster_state_add_blob(f->state, "rng", f->blob, 11, NULL), MUSTER_OK);
    assert_int_equal(restore(f, NULL), MUSTER_E_RESTORE);
}

static void file_of_another_writer_is_read_in_any_order_and_extras_are_skipped(void **state)
{
    static const char json[] =
        "{\"z\":{\"data_offsets\":[5,9],\"dtype\":\"F32\",\"shape\":[1],\"later\":true},"
        "\"extra\":{\"dtype\":\"U8\",\"shape\":[5],\"data_offsets\":[0,5]},"
        "\"n\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[9,17]}}   ";
    static const int64_t one[1] = {1};
    struct fixture *f = *state;
    float z = 7;

    f->count = 7;
    put_file(f, sizeof json - 1, json, 17);
    assert_int_equal(muster_state_add_i64(f->state, "n", &f->count, NULL), MUSTER_OK);
    assert_int_equal(muster_state_add_tensor(f->state, "z", MUSTER_DTYPE_F32, one, 1, &z, NULL), 0);
    assert_int_equal(restore(f, NULL), MUSTER_OK);
    assert_true(z == 0 && f->count == 0);
}

/* Headers that a checksum does not protect from: the manifest may be hostile as well. The state has
 * "a": U8 [4]; each file has 4 bytes of data. */
#define A "\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}"
static const struct {
    const char *json;
    enum muster_status status;
} headers[] = {
    {"{" A "}", MUSTER_OK},
    {"", MUSTER_E_CORRUPT},
    {"{", MUSTER_E_CORRUPT},
    {" {" A "}", MUSTER_E_CORRUPT},
    {"{" A "} x", MUSTER_E_CORRUPT},
    {"[]", MUSTER_E_CORRUPT},
    {"{}", MUSTER_E_CORRUPT}, /* four bytes of nobody */
    {"{" A "," A "}", MUSTER_E_CORRUPT},
    {"{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}",
     MUSTER_E_CORRUPT},
    {"{\"a\":[]}", MUSTER_E_CORRUPT},
    {"{\"a\":{\"dtype\":8,\"shape\":[4],\"data_offsets\":[0,4]}}", MUSTER_E_CORRUPT},
    {"{\"a\":{\"dtype\":\"F8_E5M2FNUZ\",\"shape\":[4],\"data_offsets\":[0,4]}}",
     MUSTER_E_UNSUPPORTED},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1,4],\"data_offsets\":[0,4]}}",
     MUSTER_E_UNSUPPORTED},
    {"{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,4]}}", MUSTER_E_CORRUPT},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":4,\"data_offsets\":[0,4]}}", MUSTER_E_CORRUPT},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4.0],\"data_offsets\":[0,4]}}", MUSTER_E_CORRUPT},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[-4],\"data_offsets\":[0,4]}}", MUSTER_E_CORRUPT},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[-2,-2],\"data_offsets\":[0,4]}}", MUSTER_E_CORRUPT},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,4]}}", MUSTER_E_CORRUPT},
    {"{\"a\":{\"dtype\":\"U32\",\"shape\":[4],\"data_offsets\":[0,4]}}", MUSTER_E_CORRUPT},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4611686018427387904,4,1],\"data_offsets\":[0,4]}}",
     MUSTER_E_CORRUPT}, /* 2^64 = 0 */
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[99999999999999999999],\"data_offsets\":[0,4]}}",
     MUSTER_E_CORRUPT},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4]}}", MUSTER_E_CORRUPT},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4,4]}}", MUSTER_E_CORRUPT},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[\"0\",4]}}", MUSTER_E_CORRUPT},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[4,0]}}", MUSTER_E_CORRUPT},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[-4,0]}}", MUSTER_E_CORRUPT},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[5],\"data_offsets\":[0,5]}}", MUSTER_E_CORRUPT},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[9223372036854775803,"
     "9223372036854775807]}}",
     MUSTER_E_CORRUPT},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]}}", MUSTER_E_CORRUPT},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[1,4]}}", MUSTER_E_CORRUPT},
    {"{" A ",\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[3,4]}}", MUSTER_E_CORRUPT},
    {"{" A ",\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", MUSTER_E_CORRUPT},
    {"{" A ",\"b\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[2,2]}}", MUSTER_E_CORRUPT},
    {"{" A ",\"b\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}", MUSTER_OK},
    {"{" A ",\"b\":{\"dtype\":\"U8\",\"shape\":[9,0],\"data_offsets\":[4,4]}}", MUSTER_OK},
    {"{\"__metadata__\":{\"k\":\"v\"}," A "}", MUSTER_OK},
    {"{\"__metadata__\":{\"k\":1}," A "}", MUSTER_E_CORRUPT},
    {"{\"__metadata__\":[]," A "}", MUSTER_E_CORRUPT},
    {"{\"a\\u0000\":1," A "}", MUSTER_E_CORRUPT},
    {"{\"\xff\":1," A "}", MUSTER_E_CORRUPT},
    {"{\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", MUSTER_E_RESTORE},
};
#undef A

static void hostile_header_is_refused(void **state)
{
    static const int64_t four[1] = {4};
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++) {
        unsigned char a[4] = {9, 9, 9, 9};
        struct muster_error err = {0};
        enum muster_status status;

        muster_state_destroy(&f->state);
        assert_int_equal(muster_state_create(&f->state, NULL), MUSTER_OK);
        assert_int_equal(muster_state_add_tensor(f->state, "a", MUSTER_DTYPE_U8, four, 1, a, NULL),
                         MUSTER_OK);
        put_file(f, strlen(headers[i].json), headers[i].json, 4);
        status = restore(f, &err);
        if (status != headers[i].status)
            fail_msg("row %zu: %s: %s", i, muster_status_name(status), err.text);
        assert_int_equal(a[0], status == MUSTER_OK ? 0 : 9);
        if (status != MUSTER_OK)
            assert_non_null(strstr(err.text, f->path));
    }
}

static void header_length_beyond_the_file_or_the_limit_is_refused(void **state)
{
    static const uint64_t lengths[] = {
        0, 3, 11, 1000, 100000000, 100000001u, UINT32_MAX, INT64_MAX, UINT64_MAX - 7, UINT64_MAX};
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        put_file(f, lengths[i], "{}", 8);
        assert_int_equal(restore(f, NULL), MUSTER_E_CORRUPT);
    }
    put_file(f, 2, "{}", 0);
    assert_int_equal(restore(f, NULL), MUSTER_OK);
}

/* The state's memory is a mapping of the file itself, so that restoring the first tensor changes
 * the second one after the file was found whole: as another process might, but at a known moment */
static void file_that_changes_while_it_is_restored_is_noticed(void **state)
{
    static const int64_t one[1] = {1};
    struct fixture *f = *state;
    struct muster_error err = {0};
    uint64_t first = 111;
    uint64_t second = 222;
    char *map;
    int fd;

    assert_int_equal(muster_state_add_tensor(f->state, "a", MUSTER_DTYPE_U64, one, 1, &first, NULL),
                     MUSTER_OK);
    assert_int_equal(
        muster_state_add_tensor(f->state, "b", MUSTER_DTYPE_U64, one, 1, &second, NULL), MUSTER_OK);
    assert_int_equal(save(f, NULL), MUSTER_OK);
    fd = open(f->path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    map = mmap(NULL, f->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(map, MAP_FAILED);
    close(fd);
    assert_int_equal(muster_state_remove(f->state, "a", NULL), MUSTER_OK);
    assert_int_equal(muster_state_add_tensor(f->state, "a", MUSTER_DTYPE_U64, one, 1,
                                             map + f->bytes - sizeof second, NULL),
                     MUSTER_OK);
    assert_int_equal(restore(f, &err), MUSTER_E_CORRUPT);
    assert_non_null(strstr(err.text, "do not train on it"));
    munmap(map, f->bytes);
}

static void file_that_is_there_already_is_never_touched(void **state)
{
    struct fixture *f = *state;
    struct muster_error err;
    char *found;

    scratch_write(f->path, "precious", 8);
    assert_int_equal(save(f, &err), MUSTER_E_EXISTS);
    assert_non_null(strstr(err.text, f->path));
    found = scratch_read(f->path, NULL);
    assert_string_equal(found, "precious");
    free(found);
}

static void file_size_limit_in_the_middle_leaves_no_file(void **state)
{
    struct fixture *f = *state;
    struct muster_error err = {0};
    struct rlimit old;
    struct rlimit low;
    void (*handler)(int) = signal(SIGXFSZ, SIG_DFL); /* would end this program */
    enum muster_status status;

    add_all(f, true);
    fill_different(f);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    low = (struct rlimit){.rlim_cur = 1500000, .rlim_max = old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
    status = save(f, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, handler);
    assert_int_equal(status, MUSTER_E_SAVE);
    assert_int_equal(err.code, EFBIG);
    assert_non_null(strstr(err.text, f->path));
    assert_int_equal(scratch_count(f->dir), 0);
    assert_int_equal(save(f, &err), MUSTER_OK);
}

static void full_disk_leaves_no_file_and_says_so(void **state)
{
    struct fixture *f = *state;
    struct muster_error err = {0};
    const char *small = scratch_path(f->dir, "small");
    enum muster_status status;
    size_t left;

    assert_int_equal(fs_make_dirs(small, NULL), MUSTER_OK);
    /* A mount of this process alone. Without the right to it, the case above shows the same path */
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("tmpfs", small, "tmpfs", 0, "size=1m") != 0)
        skip();
    snprintf(f->path, sizeof f->path, "%s/shard", small);
    add_all(f, true);
    fill_different(f);
    status = save(f, &err);
    left = scratch_count(small);
    umount(small);
    assert_int_equal(status, MUSTER_E_SAVE);
    assert_int_equal(err.code, ENOSPC);
    assert_non_null(strstr(err.text, "No space left"));
    assert_non_null(strstr(err.text, "free disk space"));
    assert_int_equal(left, 0);
}

static void directory_that_is_gone_is_named(void **state)
{
    struct fixture *f = *state;
    struct muster_error err = {0};

    snprintf(f->path, sizeof f->path, "%s", scratch_path(f->dir, "none/shard"));
    assert_int_equal(save(f, &err), MUSTER_E_SAVE);
    assert_int_equal(err.code, ENOENT);
    assert_non_null(strstr(err.text, "none/shard"));
    assert_int_equal(restore(f, &err), MUSTER_E_NOT_FOUND);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, make, drop)
    const struct CMUnitTest tests[] = {
        T(bytes_of_a_small_state_are_exactly_these),
        T(every_kind_of_entry_comes_back_as_it_was),
        T(every_tensor_lies_aligned_and_without_a_hole),
        T(empty_state_makes_a_file_that_restores),
        T(every_flipped_byte_is_found_and_reaches_no_memory),
        T(damage_is_named_by_what_it_is_in),
        T(every_cut_is_found_and_reaches_no_memory),
        T(entry_that_differs_is_named_and_nothing_is_restored),
        T(blob_of_another_size_is_refused),
        T(file_of_another_writer_is_read_in_any_order_and_extras_are_skipped),
        T(hostile_header_is_refused),
        T(header_length_beyond_the_file_or_the_limit_is_refused),
        T(file_that_changes_while_it_is_restored_is_noticed),
        T(file_that_is_there_already_is_never_touched),
        T(file_size_limit_in_the_middle_leaves_no_file),
        T(full_disk_leaves_no_file_and_says_so),
        T(directory_that_is_gone_is_named),
    };

    return cmocka_run_group_tests_name("safetensors", tests, NULL, NULL);
}
