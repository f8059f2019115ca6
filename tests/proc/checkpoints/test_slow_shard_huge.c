/* A tensor of over 8 GiB, beyond every number of 32 bits: saved with less than 64 MiB of memory
 * beside it, and restored. Its memory is empty pages but for some bytes, so only the restore needs
 * as much. */
#include "node/shard/safetensors.h"
#include "tests/support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define GIB ((uint64_t)1 << 30)
#define BYTES (8 * GIB + 4097)
#define BESIDE_KB (64L * 1024)
#define NEEDS_KB (10L * 1024 * 1024)

/* Around each border that a number of 31, 32 or 33 bits has. */
static const uint64_t marks[] = {0,       2 * GIB - 1, 2 * GIB,     4 * GIB - 1,
                                 4 * GIB, 8 * GIB - 1, 8 * GIB + 1, BYTES - 1};
#define MARKS (sizeof marks / sizeof *marks)

/* A line of /proc, such as "VmHWM:   1234 kB". */
static long kb_of(const char *path, const char *name)
{
    char line[256];
    long kb = -1;
    FILE *file = fopen(path, "re");

    assert_non_null(file);
    while (kb < 0 && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, name, strlen(name)) == 0)
            kb = strtol(line + strlen(name), NULL, 10);
    fclose(file);
    return kb;
}

static uint8_t *empty_pages(void)
{
    void *pages = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    assert_true(pages != MAP_FAILED);
    return pages;
}

static struct muster_state *state_of(void *data)
{
    struct muster_state *state;
    struct state_item item = {.name = "huge",
                              .kind = STATE_KIND_TENSOR,
                              .dtype = STATE_DTYPE_U8,
                              .dim_count = 1,
                              .shape = {(int64_t)BYTES},
                              .data = data};

    assert_int_equal(state_create(&state, NULL), MUSTER_OK);
    assert_int_equal(state_add(state, &item, NULL), MUSTER_OK);
    return state;
}

static void comes_back(const char *path, uint64_t bytes, const char *checksum)
{
    static const uint8_t nothing[1 << 20];
    uint8_t *data = empty_pages();
    struct muster_state *state = state_of(data);
    struct muster_error err = {0};

    if (safetensors_restore(path, bytes, checksum, state, NULL, &err) != MUSTER_OK)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < MARKS; i++) {
        assert_int_equal(data[marks[i]], i + 1);
        data[marks[i]] = 0;
    }
    for (uint64_t at = 0; at < BYTES; at += sizeof nothing) {
        size_t size = BYTES - at < sizeof nothing ? (size_t)(BYTES - at) : sizeof nothing;

        if (memcmp(data + at, nothing, size) != 0)
            fail_msg("a byte behind %llu is not as it was saved", (unsigned long long)at);
    }
    state_destroy(&state);
    munmap(data, BYTES);
}

static void a_tensor_beyond_32_bits_is_saved_in_64_mib_and_comes_back(void **unused)
{
    char dir[SCRATCH_PATH_MAX], path[SCRATCH_PATH_MAX], checksum[MANIFEST_CHECKSUM_SIZE];
    uint8_t *data = empty_pages();
    struct muster_state *state = state_of(data);
    struct safetensors_watch watch = {0};
    struct muster_error err = {0};
    uint64_t bytes;
    long before;

    (void)unused;
    if (kb_of("/proc/meminfo", "MemAvailable:") < NEEDS_KB) {
        print_message("skipped: a restore of 8 GiB needs 10 GiB of memory\n");
        skip();
    }
    for (size_t i = 0; i < MARKS; i++)
        data[marks[i]] = (uint8_t)(i + 1);
    scratch_make(dir);
    snprintf(path, sizeof path, "%s", scratch_path(dir, "shard"));
    before = kb_of("/proc/self/status", "VmHWM:");
    if (safetensors_save(path, state, NULL, 0, &watch, CHECKSUM_XXH3, &bytes, checksum, &err) !=
        MUSTER_OK)
        fail_msg("%s", err.text);
    assert_true(bytes > BYTES);
    assert_in_range(kb_of("/proc/self/status", "VmHWM:") - before, 0, BESIDE_KB);
    state_destroy(&state);
    munmap(data, BYTES);
    comes_back(path, bytes, checksum);
    scratch_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tensor_beyond_32_bits_is_saved_in_64_mib_and_comes_back),
    };

    return cmocka_run_group_tests_name("slow_shard_huge", tests, NULL, NULL);
}
