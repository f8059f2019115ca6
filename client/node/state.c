/* state - muster_state_*: checks the arguments, then calls down to node/shard/state. */
#include <muster/checkpoint.h>

#include "node/shard/state.h"
#include "schema/error.h"

#include <string.h>

/* The two enums are one list, in two layers. */
#define SAME(name) _Static_assert((int)MUSTER_DTYPE_##name == (int)STATE_DTYPE_##name, #name)
SAME(NONE);
SAME(BOOL);
SAME(I8);
SAME(U8);
SAME(I16);
SAME(U16);
SAME(F16);
SAME(BF16);
SAME(I32);
SAME(U32);
SAME(F32);
SAME(I64);
SAME(U64);
SAME(F64);
SAME(F8_E4M3);
SAME(F8_E5M2);
SAME(F8_E8M0);
SAME(C64);
SAME(COUNT);
#undef SAME
_Static_assert(MUSTER_STATE_NAME_MAX == STATE_NAME_MAX, "names");
_Static_assert(MUSTER_STATE_DIMS_MAX == STATE_DIMS_MAX, "dimensions");

enum muster_status muster_state_create(muster_state_t **ret_state, struct muster_error *ret_error)
{
    if (ret_state == NULL)
        return error_set(ret_error, MUSTER_E_ARGUMENT,
                         "muster_state_create: ret_state is NULL; give the address of a handle");
    return state_create(ret_state, ret_error);
}

void muster_state_destroy(muster_state_t **state)
{
    state_destroy(state);
}

static enum muster_status state_check(const char *call, const muster_state_t *state,
                                      const char *name, struct muster_error *ret_error)
{
    if (state == NULL)
        return error_set(ret_error, MUSTER_E_ARGUMENT,
                         "%s: state is NULL; create one with muster_state_create", call);
    if (name == NULL)
        return error_set(ret_error, MUSTER_E_ARGUMENT, "%s: name is NULL; give the entry a name",
                         call);
    return MUSTER_OK;
}

enum muster_status muster_state_add_tensor(muster_state_t *state, const char *name,
                                           enum muster_dtype dtype, const int64_t *shape,
                                           size_t dim_count, void *data,
                                           struct muster_error *ret_error)
{
    struct state_item item = {.name = name,
                              .kind = STATE_KIND_TENSOR,
                              .dtype = (enum state_dtype)dtype,
                              .dim_count = dim_count,
                              .data = data};
    enum muster_status status = state_check("muster_state_add_tensor", state, name, ret_error);

    if (status != MUSTER_OK)
        return status;
    if (dim_count > MUSTER_STATE_DIMS_MAX || (dim_count > 0 && shape == NULL))
        return error_set(ret_error, MUSTER_E_ARGUMENT,
                         "muster_state_add_tensor: \"%.255s\": %s; give 0 to %d dimensions", name,
                         shape == NULL ? "shape is NULL" : "too many dimensions",
                         MUSTER_STATE_DIMS_MAX);
    if (dim_count > 0)
        memcpy(item.shape, shape, dim_count * sizeof *shape);
    return state_add(state, &item, ret_error);
}

enum muster_status muster_state_add_split(muster_state_t *state, const char *name,
                                          enum muster_dtype dtype, const int64_t *whole_shape,
                                          size_t dim_count, size_t axis, int64_t begin,
                                          int64_t count, void *data, struct muster_error *ret_error)
{
    const char *call = "muster_state_add_split";
    struct state_item item = {.name = name,
                              .kind = STATE_KIND_TENSOR,
                              .dtype = (enum state_dtype)dtype,
                              .dim_count = dim_count,
                              .data = data};
    enum muster_status status = state_check(call, state, name, ret_error);

    if (status != MUSTER_OK)
        return status;
    if (dim_count > MUSTER_STATE_DIMS_MAX || whole_shape == NULL || axis >= dim_count)
        return error_set(
            ret_error, MUSTER_E_ARGUMENT,
            "%s: \"%.255s\": give a shape of 1 to %d dimensions, and one of them as axis", call,
            name, MUSTER_STATE_DIMS_MAX);
    memcpy(item.shape, whole_shape, dim_count * sizeof *whole_shape);
    item.split = (struct state_split){
        .is = true, .axis = axis, .begin = begin, .global_count = whole_shape[axis]};
    item.shape[axis] = count;
    if (begin < 0 || count < 0 || whole_shape[axis] < 0 || count > whole_shape[axis] ||
        begin > whole_shape[axis] - count) /* said of the part, not of a shape */
        return error_set(ret_error, MUSTER_E_ARGUMENT,
                         "%s: \"%.255s\": the part of %lld from %lld on does not lie inside axis "
                         "%zu of the whole, "
                         "whose length is %lld",
                         call, name, (long long)count, (long long)begin, axis,
                         (long long)whole_shape[axis]);
    return state_add(state, &item, ret_error);
}

void muster_split_range(int64_t length, int rank, int world_size, int64_t *ret_begin,
                        int64_t *ret_count)
{
    int64_t each = world_size > 0 ? length / world_size : 0;
    int64_t more = world_size > 0 ? length % world_size : 0;

    *ret_begin = each * rank + (rank < more ? rank : more);
    *ret_count = each + (rank < more ? 1 : 0);
}

static enum muster_status state_add_scalar(const char *call, muster_state_t *state,
                                           const char *name, enum state_dtype dtype, void *value,
                                           struct muster_error *ret_error)
{
    struct state_item item = {
        .name = name, .kind = STATE_KIND_SCALAR, .dtype = dtype, .data = value};
    enum muster_status status = state_check(call, state, name, ret_error);

    return status != MUSTER_OK ? status : state_add(state, &item, ret_error);
}

enum muster_status muster_state_add_i64(muster_state_t *state, const char *name, int64_t *value,
                                        struct muster_error *ret_error)
{
    return state_add_scalar("muster_state_add_i64", state, name, STATE_DTYPE_I64, value, ret_error);
}

enum muster_status muster_state_add_f64(muster_state_t *state, const char *name, double *value,
                                        struct muster_error *ret_error)
{
    return state_add_scalar("muster_state_add_f64", state, name, STATE_DTYPE_F64, value, ret_error);
}

enum muster_status muster_state_add_blob(muster_state_t *state, const char *name, void *data,
                                         size_t size_bytes, struct muster_error *ret_error)
{
    struct state_item item = {.name = name,
                              .kind = STATE_KIND_BLOB,
                              .dtype = STATE_DTYPE_U8,
                              .dim_count = 1,
                              .data = data};
    enum muster_status status = state_check("muster_state_add_blob", state, name, ret_error);

    if (status != MUSTER_OK)
        return status;
    if (size_bytes > (size_t)INT64_MAX)
        return error_set(ret_error, MUSTER_E_ARGUMENT,
                         "muster_state_add_blob: \"%.255s\": the size passes 2^63 bytes", name);
    item.shape[0] = (int64_t)size_bytes;
    return state_add(state, &item, ret_error);
}

enum muster_status muster_state_set_own(muster_state_t *state, const char *name,
                                        struct muster_error *ret_error)
{
    enum muster_status status = state_check("muster_state_set_own", state, name, ret_error);

    return status != MUSTER_OK ? status : state_set_own(state, name, ret_error);
}

enum muster_status muster_state_remove(muster_state_t *state, const char *name,
                                       struct muster_error *ret_error)
{
    enum muster_status status = state_check("muster_state_remove", state, name, ret_error);

    return status != MUSTER_OK ? status : state_remove(state, name, ret_error);
}

size_t muster_state_count(const muster_state_t *state)
{
    return state == NULL ? 0 : state->count;
}

uint64_t muster_state_size_bytes(const muster_state_t *state)
{
    return state == NULL ? 0 : state->size_bytes;
}
