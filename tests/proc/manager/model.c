/* model - see model.h. */
#include "tests/proc/manager/model.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int64_t contribution(int64_t rank, int64_t step)
{
    return (step * 7919 + rank * 104729 + step % (rank + 3)) % 1009;
}

static int64_t addition(const struct model *model, int64_t step)
{
    int64_t sum = 0;

    if (model->sharded)
        return contribution(model->rank, step);
    for (int rank = 0; rank < model->world_size; rank++)
        sum += contribution(rank, step);
    return sum;
}

void model_step(struct model *model)
{
    int64_t next = model->step + 1;

    model->vector[next % model->cells] += addition(model, next);
    model->step = next;
}

int64_t model_expected_sum(const struct model *model)
{
    int64_t sum = 0;

    for (int64_t step = 1; step <= model->step; step++)
        sum += addition(model, step);
    return sum;
}

int64_t model_sum(const struct model *model)
{
    int64_t sum = 0;

    for (int64_t i = 0; i < model->cells; i++)
        sum += model->vector[i];
    return sum;
}

bool model_is_right(const struct model *model)
{
    static int64_t cells[MODEL_CELLS_MAX];

    memset(cells, 0, sizeof cells);
    for (int64_t step = 1; step <= model->step; step++)
        cells[step % model->cells] += addition(model, step);
    return memcmp(cells, model->vector, sizeof cells) == 0;
}

/* --- files ------------------------------------------------------------------------------------ */

static int write_file(const char *directory, const char *name, const void *bytes, size_t size)
{
    char path[4096];
    FILE *file;
    size_t written;

    snprintf(path, sizeof path, "%s/%s", directory, name);
    file = fopen(path, "wbe");
    if (file == NULL)
        return errno;
    written = fwrite(bytes, 1, size, file);
    return fclose(file) != 0 || written != size ? EIO : 0;
}

static int read_bytes(const char *directory, const char *name, void *bytes, size_t size)
{
    char path[4096];
    FILE *file;
    size_t count;

    snprintf(path, sizeof path, "%s/%s", directory, name);
    file = fopen(path, "rbe");
    if (file == NULL)
        return errno;
    count = fread(bytes, 1, size, file);
    fclose(file);
    return count == size ? 0 : EIO;
}

int model_write_half(const struct model *model, const char *directory)
{
    return write_file(directory, "vector", model->vector, (size_t)model->cells * 4);
}

int model_write(const struct model *model, const char *directory)
{
    int code = write_file(directory, "vector", model->vector, (size_t)model->cells * 8);

    return code != 0 ? code : write_file(directory, "step", &model->step, sizeof model->step);
}

int model_read(struct model *model, const char *directory)
{
    int code = read_bytes(directory, "vector", model->vector, (size_t)model->cells * 8);

    return code != 0 ? code : read_bytes(directory, "step", &model->step, sizeof model->step);
}
