/* safetensors_header - see safetensors_header.h. */
#include "node/shard/safetensors_header.h"

#include "node/shard/sums.h"
#include "schema/error.h"
#include "schema/manifest/json_sure.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "tensors are stored as they lie in memory, and the format is little-endian"
#endif

#define METADATA_KEY "__metadata__"
#define SPLITS_FACT "muster_splits"

struct safetensors_index {
    json_t *root; /* owns the names */
    struct safetensors_tensor *tensors;
    size_t count;
};

/* --- render -------------------------------------------------------------------------------- */

static int header_by_width_then_name(const void *a, const void *b)
{
    const struct state_item *x = *(const struct state_item *const *)a;
    const struct state_item *y = *(const struct state_item *const *)b;
    size_t x_size = state_dtype_size(x->dtype);
    size_t y_size = state_dtype_size(y->dtype);

    if (x_size != y_size)
        return x_size > y_size ? -1 : 1;
    return strcmp(x->name, y->name);
}

static json_t *header_range_json(enum state_dtype dtype, const int64_t *dims, size_t dim_count,
                                 uint64_t begin, uint64_t bytes)
{
    json_t *shape = json_array();

    for (size_t i = 0; i < dim_count; i++)
        json_array_append_new(shape, json_integer(dims[i]));
    if (json_array_size(shape) != dim_count) { /* no memory on the way */
        json_decref(shape);
        return NULL;
    }
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", state_dtype_name(dtype), "shape", shape,
                     "data_offsets", (json_int_t)begin, (json_int_t)begin + (json_int_t)bytes);
}

/* An empty object or array says nothing. */
static int header_set_text_of(json_t *metadata, const char *key, json_t *value)
{
    bool empty = json_array_size(value) == 0 && json_object_size(value) == 0;
    char *text = empty ? NULL : json_sure_write(value, JSON_COMPACT);
    int failed = value == NULL || (!empty && text == NULL);

    if (text != NULL)
        failed |= json_object_set_new(metadata, key, json_string(text));
    free(text);
    json_decref(value);
    return failed;
}

static json_t *header_split_json(const struct state_split *split)
{
    return json_pack("[I, I, I]", (json_int_t)split->axis, (json_int_t)split->begin,
                     (json_int_t)split->global_count);
}

/* The facts, and the names of the blobs: another reader sees them as U8 tensors. */
static json_t *header_metadata_json(const struct safetensors_layout *layout, size_t count,
                                    const struct safetensors_fact *facts, size_t fact_count)
{
    const struct state_item *const *order = layout->order;
    json_t *metadata = json_object();
    json_t *blobs = json_array();
    json_t *splits = json_object();
    char number[24];
    int failed = 0;

    snprintf(number, sizeof number, "%" PRIu64, layout->piece_bytes);
    failed |= json_object_set_new(metadata, SUMS_FACT, json_string(number));
    for (size_t i = 0; i < fact_count; i++)
        failed |= json_object_set_new(metadata, facts[i].key, json_string(facts[i].text));
    for (size_t i = 0; i < count; i++) {
        if (order[i]->kind == STATE_KIND_BLOB)
            failed |= json_array_append_new(blobs, json_string(order[i]->name));
        if (order[i]->split.is)
            failed |=
                json_object_set_new(splits, order[i]->name, header_split_json(&order[i]->split));
    }
    failed |= header_set_text_of(metadata, "muster_blobs", blobs);
    failed |= header_set_text_of(metadata, SPLITS_FACT, splits);
    if (failed == 0)
        return metadata;
    json_decref(metadata);
    return NULL;
}

static char *header_json(const struct muster_state *state, const struct safetensors_layout *layout,
                         const struct safetensors_fact *facts, size_t fact_count)
{
    const int64_t table_shape[1] = {(int64_t)layout->table_bytes};
    json_t *root = json_object();
    uint64_t begin = 0;
    char *text = NULL;
    int failed = json_object_set_new(root, METADATA_KEY,
                                     header_metadata_json(layout, state->count, facts, fact_count));

    for (size_t i = 0; i < state->count && failed == 0; i++) {
        const struct state_item *item = layout->order[i];

        failed = json_object_set_new(
            root, item->name,
            header_range_json(item->dtype, item->shape, item->dim_count, begin, item->size_bytes));
        begin += item->size_bytes;
    }
    if (failed == 0)
        failed = json_object_set_new(
            root, SUMS_NAME,
            header_range_json(STATE_DTYPE_U8, table_shape, 1, begin, layout->table_bytes));
    if (failed == 0)
        text = json_sure_write(root, JSON_COMPACT); /* in the order of insertion */
    json_decref(root);
    return text;
}

static char *header_frame(const char *json, size_t *ret_size)
{
    size_t length = strlen(json);
    size_t padded = (length + 7) & ~(size_t)7;
    uint64_t prefix = padded;
    char *header = malloc(SAFETENSORS_PREFIX_BYTES + padded);

    if (header == NULL)
        return NULL;
    memcpy(header, &prefix, sizeof prefix);
    memset(header + SAFETENSORS_PREFIX_BYTES, ' ', padded);
    for (size_t i = 0; i < length; i++) /* no string: its size stands before it */
        header[SAFETENSORS_PREFIX_BYTES + i] = json[i];
    *ret_size = SAFETENSORS_PREFIX_BYTES + padded;
    return header;
}

static void header_lay_out(const struct muster_state *state, struct safetensors_layout *layout)
{
    uint64_t sums = 0;

    for (size_t i = 0; i < state->count; i++)
        layout->order[i] = &state->items[i];
    qsort(layout->order, state->count, sizeof *layout->order, header_by_width_then_name);
    layout->piece_bytes = sums_piece_bytes(state->size_bytes);
    for (size_t i = 0; i < state->count; i++)
        sums += sums_count(state->items[i].size_bytes, layout->piece_bytes);
    layout->table_bytes = (size_t)sums * CHECKSUM_RAW_BYTES + SUMS_TAIL_BYTES;
}

void safetensors_layout_clear(struct safetensors_layout *layout)
{
    free(layout->order);
    free(layout->header);
    *layout = (struct safetensors_layout){0};
}

enum muster_status safetensors_layout_make(const struct muster_state *state,
                                           const struct safetensors_fact *facts, size_t fact_count,
                                           struct safetensors_layout *ret_layout,
                                           struct muster_error *err)
{
    struct safetensors_layout layout = {.order = calloc(state->count + 1, sizeof *layout.order)};
    char *json;

    if (layout.order == NULL)
        return error_set(err, MUSTER_E_NOMEM, "no memory for the header of a shard");
    header_lay_out(state, &layout);
    json = header_json(state, &layout, facts, fact_count);
    layout.header = json == NULL ? NULL : header_frame(json, &layout.header_size);
    free(json);
    if (layout.header == NULL) {
        safetensors_layout_clear(&layout);
        return error_set(
            err, MUSTER_E_NOMEM,
            "the header of a shard could not be made: no memory, or a fact is not UTF-8");
    }
    if (layout.header_size > SAFETENSORS_HEADER_MAX) {
        safetensors_layout_clear(&layout);
        return error_set(err, MUSTER_E_ARGUMENT,
                         "the header of a shard would have over %d bytes; use fewer entries or "
                         "shorter names",
                         SAFETENSORS_HEADER_MAX);
    }
    *ret_layout = layout;
    return MUSTER_OK;
}

/* --- parse --------------------------------------------------------------------------------- */

static enum muster_status header_bad(struct muster_error *err, enum muster_status status,
                                     const char *name, const char *what)
{
    return error_set(err, status, "tensor \"%.255s\" %s", name, what);
}

static enum muster_status header_parse_shape(const json_t *list, struct safetensors_tensor *tensor,
                                             struct muster_error *err)
{
    if (!json_is_array(list))
        return header_bad(err, MUSTER_E_CORRUPT, tensor->name, "has no shape");
    tensor->dim_count = json_array_size(list);
    if (tensor->dim_count > STATE_DIMS_MAX)
        return header_bad(err, MUSTER_E_UNSUPPORTED, tensor->name, "has more than 8 dimensions");
    for (size_t i = 0; i < tensor->dim_count; i++) {
        const json_t *dim = json_array_get(list, i);

        if (!json_is_integer(dim) || json_integer_value(dim) < 0)
            return header_bad(err, MUSTER_E_CORRUPT, tensor->name,
                              "has a dimension that is no count");
        tensor->shape[i] = json_integer_value(dim);
    }
    return MUSTER_OK;
}

static enum muster_status header_parse_tensor(const char *name, const json_t *object,
                                              uint64_t data_bytes,
                                              struct safetensors_tensor *tensor,
                                              struct muster_error *err)
{
    const char *dtype = json_string_value(json_object_get(object, "dtype"));
    const json_t *offsets = json_object_get(object, "data_offsets");
    const json_t *begin = json_array_get(offsets, 0);
    const json_t *end = json_array_get(offsets, 1);
    uint64_t bytes;
    enum muster_status status;

    tensor->name = name;
    if (dtype == NULL)
        return header_bad(err, MUSTER_E_CORRUPT, name, "has no element type");
    tensor->dtype = state_dtype_of(dtype);
    if (tensor->dtype == STATE_DTYPE_NONE)
        return error_set(err, MUSTER_E_UNSUPPORTED,
                         "tensor \"%.255s\" has the element type \"%.32s\", which muster does not "
                         "know",
                         name, dtype);
    status = header_parse_shape(json_object_get(object, "shape"), tensor, err);
    if (status != MUSTER_OK)
        return status;
    if (json_array_size(offsets) != 2 || !json_is_integer(begin) || !json_is_integer(end) ||
        json_integer_value(begin) < 0 || json_integer_value(end) < json_integer_value(begin))
        return header_bad(err, MUSTER_E_CORRUPT, name, "has no valid data_offsets");
    tensor->begin = (uint64_t)json_integer_value(begin);
    tensor->end = (uint64_t)json_integer_value(end);
    if (tensor->end > data_bytes)
        return header_bad(err, MUSTER_E_CORRUPT, name, "reaches beyond the end of the file");
    if (!state_shape_bytes(tensor->dtype, tensor->shape, tensor->dim_count, &bytes))
        return header_bad(err, MUSTER_E_CORRUPT, name, "has an impossible shape");
    if (bytes != tensor->end - tensor->begin)
        return header_bad(err, MUSTER_E_CORRUPT, name,
                          "has a range that is not as long as its shape says");
    return MUSTER_OK;
}

static int safetensors_header_by_place(const void *a, const void *b)
{
    const struct safetensors_tensor *x = a;
    const struct safetensors_tensor *y = b;

    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end); /* empty ones first */
}

static enum muster_status header_check_tiling(const struct safetensors_index *index,
                                              uint64_t data_bytes, struct muster_error *err)
{
    uint64_t place = 0;

    for (size_t i = 0; i < index->count; i++) {
        const struct safetensors_tensor *tensor = &index->tensors[i];

        if (tensor->begin < place)
            return header_bad(err, MUSTER_E_CORRUPT, tensor->name, "overlaps the one before it");
        if (tensor->begin > place)
            return header_bad(err, MUSTER_E_CORRUPT, tensor->name, "leaves a hole before it");
        place = tensor->end;
    }
    if (place == data_bytes)
        return MUSTER_OK;
    return error_set(err, MUSTER_E_CORRUPT, "%llu bytes behind the last tensor belong to none",
                     (unsigned long long)(data_bytes - place));
}

static enum muster_status header_check_metadata(const json_t *metadata, struct muster_error *err)
{
    void *iter;

    if (metadata != NULL && !json_is_object(metadata))
        return error_set(err, MUSTER_E_CORRUPT, "__metadata__ is no object");
    for (iter = json_object_iter((json_t *)(uintptr_t)metadata); iter != NULL;
         iter = json_object_iter_next((json_t *)(uintptr_t)metadata, iter)) {
        if (!json_is_string(json_object_iter_value(iter)))
            return error_set(err, MUSTER_E_CORRUPT, "__metadata__ holds more than texts");
    }
    return MUSTER_OK;
}

static enum muster_status header_parse_split(const json_t *object,
                                             struct safetensors_tensor *tensor,
                                             struct muster_error *err)
{
    const json_t *list = json_object_get(object, tensor->name);
    const json_t *numbers[] = {json_array_get(list, 0), json_array_get(list, 1),
                               json_array_get(list, 2)};

    if (list == NULL)
        return MUSTER_OK;
    tensor->split = (struct state_split){.is = true,
                                         .axis = (size_t)json_integer_value(numbers[0]),
                                         .begin = json_integer_value(numbers[1]),
                                         .global_count = json_integer_value(numbers[2])};
    if (json_array_size(list) == 3 && json_is_integer(numbers[0]) && json_is_integer(numbers[1]) &&
        json_is_integer(numbers[2]) &&
        state_split_ok(&tensor->split, tensor->shape, tensor->dim_count))
        return MUSTER_OK;
    return header_bad(err, MUSTER_E_CORRUPT, tensor->name,
                      "is a part that its whole does not have");
}

static enum muster_status header_parse_splits(struct safetensors_index *index,
                                              struct muster_error *err)
{
    const char *text = safetensors_index_fact(index, SPLITS_FACT);
    json_error_t why;
    bool nomem = false;
    json_t *object = text != NULL ? json_sure_read(text, strlen(text), &why, &nomem) : NULL;
    enum muster_status status = MUSTER_OK;

    if (nomem)
        return error_set(err, MUSTER_E_NOMEM, "no memory for the header of a shard");
    if (text != NULL && !json_is_object(object))
        status = error_set(err, MUSTER_E_CORRUPT, SPLITS_FACT " in __metadata__ is no object");
    for (size_t i = 0; object != NULL && i < index->count && status == MUSTER_OK; i++)
        status = header_parse_split(object, &index->tensors[i], err);
    json_decref(object);
    return status;
}

static enum muster_status safetensors_header_parse_root(struct safetensors_index *index,
                                                        uint64_t data_bytes,
                                                        struct muster_error *err)
{
    void *iter;
    enum muster_status status;

    if (!json_is_object(index->root))
        return error_set(err, MUSTER_E_CORRUPT, "the header is no object");
    index->tensors = calloc(json_object_size(index->root) + 1, sizeof *index->tensors);
    if (index->tensors == NULL)
        return error_set(err, MUSTER_E_NOMEM, "no memory for the header of a shard");
    status = header_check_metadata(json_object_get(index->root, METADATA_KEY), err);
    for (iter = json_object_iter(index->root); iter != NULL && status == MUSTER_OK;
         iter = json_object_iter_next(index->root, iter)) {
        const char *name = json_object_iter_key(iter);

        if (strcmp(name, METADATA_KEY) == 0)
            continue;
        status = header_parse_tensor(name, json_object_iter_value(iter), data_bytes,
                                     &index->tensors[index->count++], err);
    }
    if (status != MUSTER_OK)
        return status;
    qsort(index->tensors, index->count, sizeof *index->tensors, safetensors_header_by_place);
    status = header_check_tiling(index, data_bytes, err);
    return status == MUSTER_OK ? header_parse_splits(index, err) : status;
}

enum muster_status safetensors_index_parse(const char *json, size_t size, uint64_t data_bytes,
                                           struct safetensors_index **ret_index,
                                           struct muster_error *err)
{
    struct safetensors_index *index;
    json_error_t why;
    enum muster_status status;
    bool nomem;

    if (size > SAFETENSORS_HEADER_MAX || data_bytes > (uint64_t)INT64_MAX)
        return error_set(err, MUSTER_E_CORRUPT, "the header is larger than %d bytes",
                         SAFETENSORS_HEADER_MAX);
    if (size == 0 || json[0] != '{')
        return error_set(err, MUSTER_E_CORRUPT, "the header does not begin with {");
    index = calloc(1, sizeof *index);
    if (index == NULL)
        return error_set(err, MUSTER_E_NOMEM, "no memory for the header of a shard");
    index->root = json_sure_read(json, size, &why, &nomem);
    if (index->root == NULL) {
        safetensors_index_destroy(&index);
        if (nomem)
            return error_set(err, MUSTER_E_NOMEM, "no memory for the header of a shard");
        return error_set(err, MUSTER_E_CORRUPT, "the header is not JSON (at byte %d: %s)",
                         why.position, why.text);
    }
    status = safetensors_header_parse_root(index, data_bytes, err);
    if (status != MUSTER_OK)
        safetensors_index_destroy(&index);
    else
        *ret_index = index;
    return status;
}

void safetensors_index_destroy(struct safetensors_index **index)
{
    if (index == NULL || *index == NULL)
        return;
    json_decref((*index)->root);
    free((*index)->tensors);
    free(*index);
    *index = NULL;
}

size_t safetensors_index_count(const struct safetensors_index *index)
{
    return index->count;
}

const struct safetensors_tensor *safetensors_index_tensor(const struct safetensors_index *index,
                                                          size_t position)
{
    return &index->tensors[position];
}

const char *safetensors_index_fact(const struct safetensors_index *index, const char *key)
{
    return json_string_value(json_object_get(json_object_get(index->root, METADATA_KEY), key));
}
