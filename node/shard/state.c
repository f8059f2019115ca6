/* state - see state.h. */
#include "node/shard/state.h"

#include "node/shard/sums.h"
#include "schema/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define SLOTS_FIRST 64

static const struct {
    const char *name;
    size_t size_bytes;
} dtypes[STATE_DTYPE_COUNT] = {
    [STATE_DTYPE_NONE] = {"?", 0},          [STATE_DTYPE_BOOL] = {"BOOL", 1},
    [STATE_DTYPE_I8] = {"I8", 1},           [STATE_DTYPE_U8] = {"U8", 1},
    [STATE_DTYPE_I16] = {"I16", 2},         [STATE_DTYPE_U16] = {"U16", 2},
    [STATE_DTYPE_F16] = {"F16", 2},         [STATE_DTYPE_BF16] = {"BF16", 2},
    [STATE_DTYPE_I32] = {"I32", 4},         [STATE_DTYPE_U32] = {"U32", 4},
    [STATE_DTYPE_F32] = {"F32", 4},         [STATE_DTYPE_I64] = {"I64", 8},
    [STATE_DTYPE_U64] = {"U64", 8},         [STATE_DTYPE_F64] = {"F64", 8},
    [STATE_DTYPE_F8_E4M3] = {"F8_E4M3", 1}, [STATE_DTYPE_F8_E5M2] = {"F8_E5M2", 1},
    [STATE_DTYPE_F8_E8M0] = {"F8_E8M0", 1}, [STATE_DTYPE_C64] = {"C64", 8},
};

size_t state_dtype_size(enum state_dtype dtype)
{
    return (unsigned)dtype < STATE_DTYPE_COUNT ? dtypes[dtype].size_bytes : 0;
}

const char *state_dtype_name(enum state_dtype dtype)
{
    return (unsigned)dtype < STATE_DTYPE_COUNT ? dtypes[dtype].name : "?";
}

enum state_dtype state_dtype_of(const char *name)
{
    for (int i = STATE_DTYPE_NONE + 1; i < STATE_DTYPE_COUNT; i++) {
        if (strcmp(dtypes[i].name, name) == 0)
            return (enum state_dtype)i;
    }
    return STATE_DTYPE_NONE;
}

bool state_shape_bytes(enum state_dtype dtype, const int64_t *shape, size_t dim_count,
                       uint64_t *ret_bytes)
{
    int64_t bytes = (int64_t)state_dtype_size(dtype);

    if (bytes == 0 || dim_count > STATE_DIMS_MAX)
        return false;
    for (size_t i = 0; i < dim_count; i++) {
        if (shape[i] < 0 || __builtin_mul_overflow(bytes, shape[i], &bytes))
            return false;
    }
    *ret_bytes = (uint64_t)bytes;
    return true;
}

bool state_split_ok(const struct state_split *split, const int64_t *shape, size_t dim_count)
{
    return !split->is || (split->axis < dim_count && split->begin >= 0 &&
                          split->global_count >= 0 && shape[split->axis] <= split->global_count &&
                          split->begin <= split->global_count - shape[split->axis]);
}

void state_shape_text(enum state_dtype dtype, const int64_t *shape, size_t dim_count, char *text,
                      size_t text_size)
{
    size_t used = 0;

    for (size_t i = 0; i <= dim_count; i++) {
        int n;

        if (i == 0)
            n = snprintf(text, text_size, "%s [%s", state_dtype_name(dtype),
                         dim_count == 0 ? "]" : "");
        else
            n = snprintf(text + used, text_size - used, "%lld%s", (long long)shape[i - 1],
                         i == dim_count ? "]" : ", ");
        if (n < 0 || (size_t)n >= text_size - used)
            return;
        used += (size_t)n;
    }
}

/* The length of the UTF-8 sequence at s, or 0: bad, overlong, a surrogate, or above U+10FFFF. */
static size_t state_utf8_length(const unsigned char *s)
{
    size_t length;

    if (s[0] < 0x80)
        return 1;
    if (s[0] < 0xc2 || s[0] > 0xf4)
        return 0;
    length = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    for (size_t i = 1; i < length; i++) {
        if ((s[i] & 0xc0) != 0x80) /* also stops at the final NUL */
            return 0;
    }
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
        (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return length;
}

const char *state_name_problem(const char *name)
{
    const unsigned char *s = (const unsigned char *)name;

    if (*s == '\0')
        return "is empty";
    if (strlen(name) > STATE_NAME_MAX)
        return "is longer than 255 bytes";
    if (strcmp(name, "__metadata__") == 0 || strcmp(name, SUMS_NAME) == 0)
        return "is taken by the file format";
    while (*s != '\0') {
        size_t length = state_utf8_length(s);

        if (length == 0)
            return "is not UTF-8";
        if (*s < 0x20 || *s == 0x7f)
            return "has a control character";
        s += length;
    }
    return NULL;
}

enum muster_status state_create(struct muster_state **ret_state, struct muster_error *err)
{
    struct muster_state *state = calloc(1, sizeof *state);

    if (state != NULL)
        state->slots = calloc(SLOTS_FIRST, sizeof *state->slots);
    if (state == NULL || state->slots == NULL) {
        free(state);
        return error_set(err, MUSTER_E_NOMEM, "no memory for a state; free memory");
    }
    state->slot_count = SLOTS_FIRST;
    *ret_state = state;
    return MUSTER_OK;
}

void state_destroy(struct muster_state **state)
{
    if (state == NULL || *state == NULL)
        return;
    for (size_t i = 0; i < (*state)->count; i++)
        free((void *)(uintptr_t)(*state)->items[i].name);
    free((*state)->items);
    free((*state)->slots);
    free(*state);
    *state = NULL;
}

/* The slot that holds name, or the empty one where it would go. */
static size_t state_slot_of(const struct muster_state *state, const char *name)
{
    size_t mask = state->slot_count - 1;
    size_t slot = (size_t)XXH3_64bits(name, strlen(name)) & mask;

    while (state->slots[slot] != 0 && strcmp(state->items[state->slots[slot] - 1].name, name) != 0)
        slot = (slot + 1) & mask;
    return slot;
}

static void state_index_rebuild(struct muster_state *state)
{
    memset(state->slots, 0, state->slot_count * sizeof *state->slots);
    for (size_t i = 0; i < state->count; i++)
        state->slots[state_slot_of(state, state->items[i].name)] = (uint32_t)(i + 1);
}

/* Makes room for one more entry. */
static bool state_grow(struct muster_state *state)
{
    if (state->items == NULL || state->count == state->capacity) {
        size_t capacity = state->capacity == 0 ? 32 : state->capacity * 2;
        struct state_item *items = realloc(state->items, capacity * sizeof *items);

        if (items == NULL)
            return false;
        state->items = items;
        state->capacity = capacity;
    }
    if ((state->count + 1) * 2 > state->slot_count) {
        size_t slot_count = state->slot_count * 2;
        uint32_t *slots = calloc(slot_count, sizeof *slots);

        if (slots == NULL)
            return false;
        free(state->slots);
        state->slots = slots;
        state->slot_count = slot_count;
        state_index_rebuild(state);
    }
    return true;
}

const struct state_item *state_find(const struct muster_state *state, const char *name)
{
    uint32_t entry = state->slots[state_slot_of(state, name)];

    return entry == 0 ? NULL : &state->items[entry - 1];
}

/* Why state_shape_bytes takes it for none. */
static enum muster_status state_bad_shape(const struct state_item *item, struct muster_error *err)
{
    if (state_dtype_size(item->dtype) == 0)
        return error_set(err, MUSTER_E_ARGUMENT,
                         "\"%s\": there is no element type %d; use one of enum muster_dtype",
                         item->name, (int)item->dtype);
    if (item->dim_count > STATE_DIMS_MAX)
        return error_set(err, MUSTER_E_ARGUMENT, "\"%s\" has %zu dimensions; give at most %d",
                         item->name, item->dim_count, STATE_DIMS_MAX);
    for (size_t i = 0; i < item->dim_count; i++)
        if (item->shape[i] < 0)
            return error_set(err, MUSTER_E_ARGUMENT,
                             "\"%s\": dimension %zu has the length %lld; give 0 or more",
                             item->name, i, (long long)item->shape[i]);
    return error_set(err, MUSTER_E_ARGUMENT,
                     "\"%s\": the shape has 2^63 bytes or more; give a smaller one", item->name);
}

enum muster_status state_add(struct muster_state *state, const struct state_item *item,
                             struct muster_error *err)
{
    const char *problem = state_name_problem(item->name);
    struct state_item new_item = *item;
    char *name;

    if (problem != NULL)
        return error_set(err, MUSTER_E_ARGUMENT, "the name \"%.64s\" %s; give the entry another",
                         item->name, problem);
    if (!state_shape_bytes(item->dtype, item->shape, item->dim_count, &new_item.size_bytes))
        return state_bad_shape(item, err);
    if (!state_split_ok(&item->split, item->shape, item->dim_count))
        return error_set(
            err, MUSTER_E_ARGUMENT,
            "\"%s\": the part does not lie inside the whole tensor; give an axis of it, "
            "and begin + count of at most its length there",
            item->name);
    if (item->data == NULL && new_item.size_bytes != 0)
        return error_set(err, MUSTER_E_ARGUMENT,
                         "\"%s\": data is NULL but has %llu bytes; give its address", item->name,
                         (unsigned long long)new_item.size_bytes);
    if (state->size_bytes + new_item.size_bytes > (uint64_t)INT64_MAX)
        return error_set(err, MUSTER_E_ARGUMENT, "\"%s\": all entries together pass 2^63 bytes",
                         item->name);
    if (state_find(state, item->name) != NULL)
        return error_set(err, MUSTER_E_EXISTS,
                         "the state has an entry \"%s\" already; give each entry its own name",
                         item->name);
    name = strdup(item->name);
    if (name == NULL || state->count >= UINT32_MAX / 4 || !state_grow(state)) {
        free(name);
        return error_set(err, MUSTER_E_NOMEM, "no memory for the entry \"%s\"", item->name);
    }
    new_item.name = name;
    state->items[state->count] = new_item;
    state->size_bytes += new_item.size_bytes;
    state->slots[state_slot_of(state, name)] = (uint32_t)(++state->count);
    return MUSTER_OK;
}

enum muster_status state_set_own(struct muster_state *state, const char *name,
                                 struct muster_error *err)
{
    uint32_t entry = state->slots[state_slot_of(state, name)];

    if (entry == 0)
        return error_set(err, MUSTER_E_NOT_FOUND,
                         "the state has no entry \"%.255s\"; give the name of one that was added",
                         name);
    state->items[entry - 1].own = true;
    return MUSTER_OK;
}

enum muster_status state_refuse_own(const struct muster_state *state, enum muster_status status,
                                    struct muster_error *err)
{
    for (size_t i = 0; i < state->count; i++)
        if (state->items[i].own)
            return error_set(err, status,
                             "entry \"%s\" is each rank's own, and layout replicated would give "
                             "one rank's to all; use layout sharded",
                             state->items[i].name);
    return MUSTER_OK;
}

enum muster_status state_remove(struct muster_state *state, const char *name,
                                struct muster_error *err)
{
    uint32_t entry = state->slots[state_slot_of(state, name)];
    struct state_item *item;

    if (entry == 0)
        return error_set(err, MUSTER_E_NOT_FOUND,
                         "the state has no entry \"%.255s\"; give the name of one that was added",
                         name);
    item = &state->items[entry - 1];
    free((void *)(uintptr_t)item->name);
    state->size_bytes -= item->size_bytes;
    memmove(item, item + 1, (state->count - entry) * sizeof *item);
    state->count--;
    state_index_rebuild(state);
    return MUSTER_OK;
}
