/* A safetensors file of any bytes. The input's first line is a number: with 0 what follows is a
 * whole file, restored into a small state; else it is a header before that many bytes of data, and
 * each header that is taken is made into a state, written by save, read back by restore, and must
 * give the same bytes. */
#include "node/shard/checksum.h"
#include "node/shard/fs.h"
#include "node/shard/safetensors.h"
#include "tests/fuzz/fuzz.h"

#include <unistd.h>

#define DATA_BYTES_MAX 4096 /* of a state that is made for a header */

static const char *path_of_the_file(void)
{
    static char path[64];

    snprintf(path, sizeof path, "%s/muster-fuzz-%d",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp", (int)getpid());
    return path;
}

static void fill(uint8_t *bytes, size_t size, unsigned seed)
{
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(i * 7 + seed);
}

static struct muster_state *state_of(const struct safetensors_index *index, uint8_t *memory)
{
    struct muster_state *state = NULL;
    struct muster_error err;

    must(state_create(&state, &err) == MUSTER_OK);
    for (size_t i = 0; i < safetensors_index_count(index); i++) {
        const struct safetensors_tensor *tensor = safetensors_index_tensor(index, i);
        struct state_item item = {.name = tensor->name,
                                  .kind = STATE_KIND_TENSOR,
                                  .dtype = tensor->dtype,
                                  .dim_count = tensor->dim_count,
                                  .data = memory + tensor->begin};

        memcpy(item.shape, tensor->shape, sizeof item.shape);
        must(state_add(state, &item, &err) == MUSTER_OK);
    }
    return state;
}

/* Another order, alignment and header; the same tensors. */
static void save_and_restore(const struct safetensors_index *index, uint64_t data_bytes)
{
    const struct safetensors_fact fact = {"format", "pt"};
    const char *path = path_of_the_file();
    uint8_t memory[DATA_BYTES_MAX];
    uint8_t wanted[DATA_BYTES_MAX];
    char checksum[MANIFEST_CHECKSUM_SIZE];
    struct muster_state *state = state_of(index, memory);
    struct muster_error err = {0};
    uint64_t bytes = 0;

    fill(memory, (size_t)data_bytes, 3);
    memcpy(wanted, memory, (size_t)data_bytes);
    must(safetensors_save(path, state, &fact, 1, NULL, CHECKSUM_XXH3, &bytes, checksum, &err) ==
         MUSTER_OK);
    memset(memory, 0, (size_t)data_bytes);
    must(safetensors_restore(path, bytes, checksum, state, NULL, &err) == MUSTER_OK);
    must(memcmp(memory, wanted, (size_t)data_bytes) == 0);
    unlink(path);
    state_destroy(&state);
}

static void check_index(const struct safetensors_index *index, uint64_t data_bytes)
{
    uint64_t end = 0;

    for (size_t i = 0; i < safetensors_index_count(index); i++) {
        const struct safetensors_tensor *tensor = safetensors_index_tensor(index, i);
        uint64_t bytes;

        must(tensor->begin == end && tensor->end >= tensor->begin && tensor->end <= data_bytes);
        must(state_shape_bytes(tensor->dtype, tensor->shape, tensor->dim_count, &bytes));
        must(bytes == tensor->end - tensor->begin);
        end = tensor->end;
    }
    must(end == data_bytes);
}

static bool names_can_be_a_states(const struct safetensors_index *index)
{
    for (size_t i = 0; i < safetensors_index_count(index); i++)
        if (state_name_problem(safetensors_index_tensor(index, i)->name) != NULL)
            return false;
    return true;
}

static void try_header(const char *json, size_t size, uint64_t data_bytes)
{
    struct safetensors_index *index = NULL;
    struct muster_error err = {0};
    enum muster_status status = safetensors_index_parse(json, size, data_bytes, &index, &err);

    if (status != MUSTER_OK) {
        must(index == NULL && err.status == status && err.text[0] != '\0');
        must(status == MUSTER_E_CORRUPT || status == MUSTER_E_UNSUPPORTED);
        return;
    }
    check_index(index, data_bytes);
    safetensors_index_fact(index, "format");
    if (data_bytes <= DATA_BYTES_MAX && names_can_be_a_states(index))
        save_and_restore(index, data_bytes);
    safetensors_index_destroy(&index);
}

/* The checksum is right, as it is when somebody wrote the bytes on purpose. */
static void try_file(const uint8_t *data, size_t size)
{
    const char *path = path_of_the_file();
    uint8_t memory[32];
    uint8_t before[32];
    char text[MANIFEST_CHECKSUM_SIZE];
    struct muster_state *state = NULL;
    struct muster_error err = {0};
    struct checksum *sum = checksum_create(CHECKSUM_XXH3);
    enum muster_status status;

    must(sum != NULL && state_create(&state, &err) == MUSTER_OK);
    fill(memory, sizeof memory, 5);
    memcpy(before, memory, sizeof memory);
    must(state_add(state,
                   &(struct state_item){.name = "w",
                                        .kind = STATE_KIND_TENSOR,
                                        .dtype = STATE_DTYPE_F32,
                                        .dim_count = 2,
                                        .shape = {2, 3},
                                        .data = memory},
                   &err) == MUSTER_OK);
    must(state_add(state,
                   &(struct state_item){.name = "s",
                                        .kind = STATE_KIND_SCALAR,
                                        .dtype = STATE_DTYPE_I64,
                                        .data = memory + 24},
                   &err) == MUSTER_OK);
    unlink(path);
    must(fs_write_new(path, data, size, &err) == MUSTER_OK);
    checksum_update(sum, data, size);
    checksum_text(sum, text);
    status = safetensors_restore(path, size, text, state, NULL, &err);
    must(status == MUSTER_OK || status == MUSTER_E_CORRUPT || status == MUSTER_E_RESTORE ||
         status == MUSTER_E_UNSUPPORTED);
    must(status == MUSTER_OK || memcmp(memory, before, sizeof memory) == 0);
    unlink(path);
    checksum_destroy(&sum);
    state_destroy(&state);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes in = {data, size};
    char *line = take_line(&in);
    uint64_t data_bytes = line != NULL ? strtoull(line, NULL, 10) : 0;

    free(line);
    if (data_bytes == 0)
        try_file(in.at, in.left);
    else
        try_header((const char *)in.at, in.left, data_bytes);
    return 0;
}
