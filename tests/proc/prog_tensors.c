/* prog_tensors - one state of every element type, written as a shard or found in a file.
 *   prog_tensors write PATH     writes it
 *   prog_tensors read PATH      restores PATH, whoever wrote it, and compares
 *   prog_tensors list           "NAME DTYPE BYTES [DIM...]" a line, for who writes or compares it
 * Byte i of an entry is (31 i + 7 × length of its name + its first byte) mod 256, of BOOL mod 2. */
#include <muster/checkpoint.h>

#include "node/shard/checksum.h"
#include "node/shard/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_MAX 64

static const struct entry {
    const char *name;
    enum muster_dtype dtype;
    size_t dim_count;
    int64_t shape[4];
} entries[] = {
    {"bool", MUSTER_DTYPE_BOOL, 2, {2, 3}}, {"i8", MUSTER_DTYPE_I8, 2, {2, 3}},
    {"u8", MUSTER_DTYPE_U8, 1, {5}},        {"i16", MUSTER_DTYPE_I16, 2, {2, 3}},
    {"u16", MUSTER_DTYPE_U16, 2, {2, 3}},   {"f16", MUSTER_DTYPE_F16, 2, {3, 2}},
    {"bf16", MUSTER_DTYPE_BF16, 2, {2, 3}}, {"i32", MUSTER_DTYPE_I32, 3, {2, 1, 3}},
    {"u32", MUSTER_DTYPE_U32, 2, {2, 3}},   {"f32", MUSTER_DTYPE_F32, 4, {1, 2, 1, 3}},
    {"i64", MUSTER_DTYPE_I64, 1, {3}},      {"u64", MUSTER_DTYPE_U64, 2, {2, 3}},
    {"f64", MUSTER_DTYPE_F64, 2, {2, 3}},   {"empty", MUSTER_DTYPE_BF16, 3, {4, 0, 2}},
    {"scalar", MUSTER_DTYPE_F64, 0, {0}},   {"empty blob", MUSTER_DTYPE_U8, 1, {0}},
    {"wörter ✓", MUSTER_DTYPE_I32, 1, {7}},
};
#define ENTRIES (sizeof entries / sizeof entries[0])

static unsigned char memory[ENTRIES][BYTES_MAX];

static uint64_t bytes_of(const struct entry *entry)
{
    uint64_t bytes = 0;

    state_shape_bytes((enum state_dtype)entry->dtype, entry->shape, entry->dim_count, &bytes);
    return bytes;
}

static unsigned char pattern(const struct entry *entry, uint64_t i)
{
    unsigned char byte =
        (unsigned char)(31 * i + 7 * strlen(entry->name) + (unsigned char)entry->name[0]);

    return entry->dtype == MUSTER_DTYPE_BOOL ? byte % 2 : byte;
}

static muster_state_t *make_state(void)
{
    muster_state_t *state = NULL;

    if (muster_state_create(&state, NULL) != MUSTER_OK)
        exit(EXIT_FAILURE);
    for (size_t i = 0; i < ENTRIES; i++)
        if (muster_state_add_tensor(state, entries[i].name, entries[i].dtype, entries[i].shape,
                                    entries[i].dim_count, memory[i], NULL) != MUSTER_OK)
            exit(EXIT_FAILURE);
    return state;
}

static int write_file(const char *path)
{
    const struct safetensors_fact fact = {"format", "test"};
    muster_state_t *state = make_state();
    char checksum[MANIFEST_CHECKSUM_SIZE];
    struct muster_error err = {0};
    uint64_t bytes;

    for (size_t i = 0; i < ENTRIES; i++)
        for (uint64_t k = 0; k < bytes_of(&entries[i]); k++)
            memory[i][k] = pattern(&entries[i], k);
    if (safetensors_save(path, state, &fact, 1, NULL, CHECKSUM_XXH3, &bytes, checksum, &err) !=
        MUSTER_OK)
        printf("%s\n", err.text);
    muster_state_destroy(&state);
    return err.status == MUSTER_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int read_file(const char *path)
{
    muster_state_t *state = make_state();
    char checksum[MANIFEST_CHECKSUM_SIZE];
    struct muster_error err = {0};
    uint64_t bytes;
    int wrong = 0;

    if (checksum_file(path, CHECKSUM_XXH3, NULL, &bytes, checksum, &err) != MUSTER_OK ||
        safetensors_restore(path, bytes, checksum, state, NULL, &err) != MUSTER_OK)
        wrong += printf("%s\n", err.text);
    for (size_t i = 0; i < ENTRIES; i++)
        for (uint64_t k = 0; k < bytes_of(&entries[i]); k++)
            if (memory[i][k] != pattern(&entries[i], k))
                wrong += printf("byte %d of \"%s\" is wrong\n", (int)k, entries[i].name);
    muster_state_destroy(&state);
    return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int list(void)
{
    for (size_t i = 0; i < ENTRIES; i++) {
        printf("%s\t%s\t%d\t", entries[i].name,
               state_dtype_name((enum state_dtype)entries[i].dtype), (int)bytes_of(&entries[i]));
        for (size_t k = 0; k < entries[i].dim_count; k++)
            printf("%s%d", k == 0 ? "" : " ", (int)entries[i].shape[k]);
        printf("\n");
    }
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "write") == 0)
        return write_file(argv[2]);
    if (argc == 3 && strcmp(argv[1], "read") == 0)
        return read_file(argv[2]);
    return argc == 2 && strcmp(argv[1], "list") == 0 ? list() : 2;
}
