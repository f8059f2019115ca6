/* Shards that are too large to be verified before they are restored: read once, found damaged
 * behind. */
#include "node/shard/checksum.h"
#include "node/shard/direct.h"
#include "node/shard/fs.h"
#include "node/shard/reader.h"
#include "node/shard/safetensors.h"
#include "tests/support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define TENSORS 3
#define COUNT (5 * 1024 * 1024 / 4 + 11) /* a little over five pieces each */

struct fixture {
    char dir[SCRATCH_PATH_MAX], path[SCRATCH_PATH_MAX];
    struct muster_state *state;
    uint32_t *data[TENSORS];
    uint64_t bytes;
    char checksum[MANIFEST_CHECKSUM_SIZE];
    uint64_t begin; /* of the data */
};

static void add(struct fixture *f, const char *name, enum state_dtype dtype, void *data)
{
    struct state_item item = {.name = name,
                              .kind = STATE_KIND_TENSOR,
                              .dtype = dtype,
                              .dim_count = 1,
                              .shape = {COUNT},
                              .data = data};

    assert_int_equal(state_add(f->state, &item, NULL), MUSTER_OK);
}

static void fill(struct fixture *f, uint32_t seed)
{
    for (size_t i = 0; i < TENSORS; i++)
        for (uint32_t k = 0; k < COUNT; k++)
            f->data[i][k] = seed == 0 ? 0xeeeeeeee : k * 2654435761U + seed + (uint32_t)i;
}

static bool is_untouched(const struct fixture *f)
{
    for (size_t i = 0; i < TENSORS; i++)
        for (size_t k = 0; k < COUNT; k++)
            if (f->data[i][k] != 0xeeeeeeee)
                return false;
    return true;
}

static int make(void **state)
{
    static const char *const names[TENSORS] = {"a", "b", "c"};
    struct fixture *f = calloc(1, sizeof *f);
    struct safetensors_watch watch = {0};
    struct muster_error err = {0};
    uint64_t length;
    char *bytes;

    assert_non_null(f);
    scratch_make(f->dir);
    snprintf(f->path, sizeof f->path, "%s", scratch_path(f->dir, "shard"));
    assert_int_equal(state_create(&f->state, NULL), MUSTER_OK);
    for (size_t i = 0; i < TENSORS; i++) {
        f->data[i] = malloc(COUNT * sizeof(uint32_t));
        assert_non_null(f->data[i]);
        add(f, names[i], STATE_DTYPE_U32, f->data[i]);
    }
    fill(f, 1);
    if (safetensors_save(f->path, f->state, NULL, 0, &watch, CHECKSUM_XXH3, &f->bytes, f->checksum,
                         &err) != MUSTER_OK)
        fail_msg("%s", err.text);
    assert_int_equal(watch.bytes, 2 * f->bytes); /* written, and on the disk */
    assert_true(f->bytes > SAFETENSORS_VERIFY_FIRST_BYTES);
    bytes = scratch_read(f->path, NULL);
    memcpy(&length, bytes, sizeof length);
    free(bytes);
    f->begin = length + 8;
    *state = f;
    return 0;
}

static int drop(void **state)
{
    struct fixture *f = *state;

    scratch_remove(f->dir);
    state_destroy(&f->state);
    for (size_t i = 0; i < TENSORS; i++)
        free(f->data[i]);
    free(f);
    return 0;
}

static enum muster_status restore(struct fixture *f, struct muster_error *err)
{
    return safetensors_restore(f->path, f->bytes, f->checksum, f->state, NULL, err);
}

static void large_state_comes_back_and_its_checksum_is_the_files(void **state)
{
    struct fixture *f = *state;
    char checksum[MANIFEST_CHECKSUM_SIZE];
    uint64_t bytes;
    struct muster_error err = {0};
    uint32_t *before = malloc(COUNT * sizeof *before);

    assert_non_null(before);
    memcpy(before, f->data[1], COUNT * sizeof *before);
    assert_int_equal(checksum_file(f->path, CHECKSUM_XXH3, NULL, &bytes, checksum, NULL),
                     MUSTER_OK);
    assert_string_equal(checksum, f->checksum);
    assert_int_equal(bytes, f->bytes);
    fill(f, 0);
    assert_int_equal(state_remove(f->state, "a", NULL), MUSTER_OK); /* what it has not is skipped */
    if (restore(f, &err) != MUSTER_OK)
        fail_msg("%s", err.text);
    assert_memory_equal(f->data[1], before, COUNT * sizeof *before);
    assert_int_equal(f->data[0][0], 0xeeeeeeee);
    free(before);
}

static void damage_in_the_data_is_named_and_the_state_is_said_to_be_spoilt(void **state)
{
    struct fixture *f = *state;
    const uint64_t tensor = (uint64_t)COUNT * 4;
    const struct {
        uint64_t byte;
        const char *words;
    } rows[] = {
        {f->begin, "in tensor \"a\" (from its byte 0 on)"},
        {f->begin + tensor - 1, "in tensor \"a\" (from its byte 5242880 on)"},
        {f->begin + tensor + 3000000, "in tensor \"b\" (from its byte 2097152 on)"},
        {f->begin + 3 * tensor - 1, "in tensor \"c\" (from its byte 5242880 on)"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct muster_error err = {0};

        scratch_flip_bit(f->path, rows[i].byte, 5);
        assert_int_equal(restore(f, &err), MUSTER_E_CORRUPT);
        if (strstr(err.text, rows[i].words) == NULL || strstr(err.text, "do not train") == NULL)
            fail_msg("byte %d: %s", (int)rows[i].byte, err.text);
        scratch_flip_bit(f->path, rows[i].byte, 5);
    }
    assert_int_equal(restore(f, NULL), MUSTER_OK);
}

static void damage_in_the_header_or_the_table_reaches_no_memory(void **state)
{
    struct fixture *f = *state;
    char *bytes = scratch_read(f->path, NULL);

    fill(f, 0);
    for (uint64_t i = 0; i < f->begin; i += i < 8 ? 1 : 7) {
        struct muster_error err = {0};

        scratch_flip_bit(f->path, i, (int)(i % 8));
        if (restore(f, &err) != MUSTER_E_CORRUPT)
            fail_msg("byte %d: %s", (int)i, err.text);
        scratch_flip_bit(f->path, i, (int)(i % 8));
    }
    /* also a name that is made another valid one */
    const char *at = strstr(bytes + 8, "\"a\":");
    assert_non_null(at);
    scratch_flip_bit(f->path, (uint64_t)(at + 1 - bytes), 4);
    struct muster_error err = {0};
    assert_int_equal(restore(f, &err), MUSTER_E_CORRUPT);
    assert_non_null(strstr(err.text, "in its header"));
    scratch_flip_bit(f->path, (uint64_t)(at + 1 - bytes), 4);
    scratch_flip_bit(f->path, f->bytes - 1, 4);
    assert_int_equal(restore(f, &err), MUSTER_E_CORRUPT);
    assert_non_null(strstr(err.text, "in its table of checksums"));
    assert_true(is_untouched(f));
    free(bytes);
}

static void what_does_not_fit_reaches_no_memory(void **state)
{
    struct fixture *f = *state;
    struct muster_error err = {0};

    fill(f, 0);
    assert_int_equal(state_remove(f->state, "b", NULL), MUSTER_OK);
    add(f, "b", STATE_DTYPE_F32, f->data[1]);
    assert_int_equal(restore(f, &err), MUSTER_E_RESTORE);
    assert_non_null(strstr(err.text, "\"b\" is U32"));
    assert_int_equal(state_remove(f->state, "b", NULL), MUSTER_OK);
    add(f, "other", STATE_DTYPE_F32, f->data[1]);
    assert_int_equal(restore(f, &err), MUSTER_E_RESTORE);
    assert_non_null(strstr(err.text, "\"other\" is not in the file"));
    scratch_cut(f->path, f->bytes - 1);
    assert_int_equal(restore(f, &err), MUSTER_E_CORRUPT);
    assert_non_null(strstr(err.text, "cut"));
    assert_true(is_untouched(f));
}

static void save_that_is_stopped_leaves_no_file(void **state)
{
    struct fixture *f = *state;
    struct safetensors_watch watch = {.stop = true};
    struct muster_error err = {0};
    char checksum[MANIFEST_CHECKSUM_SIZE];
    const char *path = scratch_path(f->dir, "other");
    uint64_t bytes;

    assert_int_equal(
        safetensors_save(path, f->state, NULL, 0, &watch, CHECKSUM_XXH3, &bytes, checksum, &err),
        MUSTER_E_SAVE);
    assert_int_equal(err.code, ECANCELED);
    assert_false(scratch_exists(path));
}

/* Of the file's pages. */
static size_t count_in_page_cache(int fd, uint64_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = (bytes + page - 1) / page;
    unsigned char *there = malloc(pages);
    void *map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
    size_t count = 0;

    assert_true(there != NULL && map != MAP_FAILED);
    assert_int_equal(mincore(map, bytes, there), 0);
    for (size_t i = 0; i < pages; i++)
        count += there[i] & 1;
    munmap(map, bytes);
    free(there);
    return count;
}

static void huge_file_is_whole_and_stays_out_of_the_page_cache(void **state)
{
    struct fixture *f = *state;
    struct safetensors_watch watch = {0};
    struct muster_error err = {0};
    char wanted[MANIFEST_CHECKSUM_SIZE], found[MANIFEST_CHECKSUM_SIZE];
    const char *path = scratch_path(f->dir, "huge");
    uint64_t *data = malloc(DIRECT_MIN_BYTES);
    const size_t count = DIRECT_MIN_BYTES / sizeof *data;
    const struct state_item item = {.name = "huge",
                                    .kind = STATE_KIND_TENSOR,
                                    .dtype = STATE_DTYPE_U64,
                                    .dim_count = 1,
                                    .shape = {(int64_t)count},
                                    .data = data};
    uint64_t bytes, read_bytes;
    int fd;

    assert_non_null(data);
    for (size_t i = 0; i < count; i++)
        data[i] = i * 0x9e3779b97f4a7c15;
    assert_int_equal(state_add(f->state, &item, NULL), MUSTER_OK);
    if (safetensors_save(path, f->state, NULL, 0, &watch, CHECKSUM_XXH3, &bytes, wanted, &err) !=
        MUSTER_OK)
        fail_msg("%s", err.text);
    assert_int_equal(watch.bytes, 2 * bytes);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    if (direct_gains(fd)) /* but its unaligned end */
        assert_in_range(count_in_page_cache(fd, bytes), 0,
                        DIRECT_PIECE_BYTES / (size_t)sysconf(_SC_PAGESIZE));
    close(fd);
    assert_int_equal(checksum_file(path, CHECKSUM_XXH3, NULL, &read_bytes, found, NULL), MUSTER_OK);
    assert_int_equal(read_bytes, bytes);
    assert_string_equal(found, wanted);
    memset(data, 0, DIRECT_MIN_BYTES);
    if (safetensors_restore(path, bytes, wanted, f->state, NULL, &err) != MUSTER_OK)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < count; i++)
        if (data[i] != i * 0x9e3779b97f4a7c15)
            fail_msg("number %zu came back as another", i);
    free(data);
}

/* More chunks than may wait to be hashed, some skipped, some empty, none of an even size. */
static void reader_reads_and_hashes_in_order_whatever_is_skipped(void **state)
{
    enum { RANGES = 9, BYTES = 3 * 1024 * 1024 + 4711 };
    struct fixture *f = *state;
    const char *path = scratch_path(f->dir, "plain");
    struct reader_range ranges[RANGES];
    size_t size = (size_t)RANGES * BYTES;
    char *bytes = malloc(size), *to = malloc(size);
    char wanted[MANIFEST_CHECKSUM_SIZE], found[MANIFEST_CHECKSUM_SIZE];
    struct checksum *sum = checksum_create(CHECKSUM_XXH3);
    uint64_t count;
    int fd;

    assert_true(bytes != NULL && to != NULL && sum != NULL);
    for (size_t i = 0; i < size; i++)
        bytes[i] = (char)(i * 2654435761U >> 24);
    scratch_write(path, bytes, size);
    assert_int_equal(checksum_file(path, CHECKSUM_XXH3, NULL, &count, wanted, NULL), MUSTER_OK);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    for (int cold = 0; cold < 2; cold++) {
        memset(to, 0xee, size);
        for (size_t i = 0; i < RANGES; i++)
            ranges[i] = (struct reader_range){
                .offset = i * BYTES, .size = BYTES, .to = i % 3 == 1 ? NULL : to + i * BYTES};
        ranges[3].size = 0; /* one is empty, and the next has both */
        ranges[4] = (struct reader_range){
            .offset = (size_t)3 * BYTES, .size = (uint64_t)2 * BYTES, .to = to + (size_t)3 * BYTES};
        if (cold && (fsync(fd) != 0 || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) != 0))
            fail();
        checksum_reset(sum);
        assert_int_equal(reader_read(fd, ranges, RANGES, sum, NULL), 0);
        checksum_text(sum, found);
        assert_string_equal(found, wanted);
        for (size_t i = 0; i < RANGES; i++) {
            bool skipped = i == 1 || i == 7;

            assert_true(skipped ? to[i * BYTES] == (char)0xee
                                : memcmp(to + i * BYTES, bytes + i * BYTES, BYTES) == 0);
        }
    }
    scratch_cut(path, size - 1);
    assert_int_equal(reader_read(fd, ranges, RANGES, sum, NULL), FS_END);
    assert_int_equal(reader_read(fd, ranges, 0, sum, NULL), 0);
    close(fd);
    checksum_destroy(&sum);
    free(bytes);
    free(to);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, make, drop)
    const struct CMUnitTest tests[] = {
        T(large_state_comes_back_and_its_checksum_is_the_files),
        T(damage_in_the_data_is_named_and_the_state_is_said_to_be_spoilt),
        T(damage_in_the_header_or_the_table_reaches_no_memory),
        T(what_does_not_fit_reaches_no_memory),
        T(save_that_is_stopped_leaves_no_file),
        T(huge_file_is_whole_and_stays_out_of_the_page_cache),
        T(reader_reads_and_hashes_in_order_whatever_is_skipped),
    };

    return cmocka_run_group_tests_name("shard_large", tests, NULL, NULL);
}
