/* test_state - muster_state_*: what it takes, what it refuses, and that a refusal changes nothing.
 */
#include <muster/checkpoint.h>

#include "node/shard/state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

static void every_dtype_has_the_size_that_its_name_says(void **state)
{
    static const struct {
        enum state_dtype dtype;
        const char *name;
        size_t size;
    } rows[] = {
        {STATE_DTYPE_BOOL, "BOOL", 1},       {STATE_DTYPE_I8, "I8", 1},
        {STATE_DTYPE_U8, "U8", 1},           {STATE_DTYPE_I16, "I16", 2},
        {STATE_DTYPE_U16, "U16", 2},         {STATE_DTYPE_F16, "F16", 2},
        {STATE_DTYPE_BF16, "BF16", 2},       {STATE_DTYPE_I32, "I32", 4},
        {STATE_DTYPE_U32, "U32", 4},         {STATE_DTYPE_F32, "F32", 4},
        {STATE_DTYPE_I64, "I64", 8},         {STATE_DTYPE_U64, "U64", 8},
        {STATE_DTYPE_F64, "F64", 8},         {STATE_DTYPE_F8_E4M3, "F8_E4M3", 1},
        {STATE_DTYPE_F8_E5M2, "F8_E5M2", 1}, {STATE_DTYPE_F8_E8M0, "F8_E8M0", 1},
        {STATE_DTYPE_C64, "C64", 8},
    };

    (void)state;
    assert_int_equal(sizeof rows / sizeof rows[0], STATE_DTYPE_COUNT - 1);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_string_equal(state_dtype_name(rows[i].dtype), rows[i].name);
        assert_int_equal(state_dtype_size(rows[i].dtype), rows[i].size);
        assert_int_equal(state_dtype_of(rows[i].name), rows[i].dtype);
    }
    assert_int_equal(state_dtype_of("F8_E4M3FNUZ"), STATE_DTYPE_NONE);
    assert_int_equal(state_dtype_of("?"), STATE_DTYPE_NONE);
    assert_int_equal(state_dtype_size(STATE_DTYPE_COUNT), 0);
}

static void entries_are_counted_found_and_taken_out(void **state)
{
    muster_state_t *s = NULL;
    float weights[12] = {0};
    int64_t shape[2] = {3, 4};
    int64_t seen = 0;
    double rate = 0.5;
    char rng[5] = "abcd";
    char name[32];

    (void)state;
    assert_int_equal(muster_state_create(&s, NULL), MUSTER_OK);
    assert_int_equal(muster_state_add_tensor(s, "w", MUSTER_DTYPE_F32, shape, 2, weights, NULL), 0);
    assert_int_equal(muster_state_add_i64(s, "seen", &seen, NULL), 0);
    assert_int_equal(muster_state_add_f64(s, "rate", &rate, NULL), 0);
    assert_int_equal(muster_state_add_blob(s, "rng", rng, sizeof rng, NULL), 0);
    shape[0] = 99; /* was copied */
    assert_int_equal(state_find(s, "w")->shape[0], 3);
    assert_int_equal(muster_state_count(s), 4);
    assert_int_equal(muster_state_size_bytes(s), 48 + 8 + 8 + 5);
    assert_int_equal(muster_state_remove(s, "seen", NULL), MUSTER_OK);
    assert_null(state_find(s, "seen"));
    assert_int_equal(muster_state_remove(s, "seen", NULL), MUSTER_E_NOT_FOUND);
    assert_int_equal(muster_state_size_bytes(s), 48 + 8 + 5);
    for (int i = 0; i < 5000; i++) { /* over several growths of the index */
        snprintf(name, sizeof name, "t%d", i);
        assert_int_equal(muster_state_add_i64(s, name, &seen, NULL), MUSTER_OK);
    }
    for (int i = 0; i < 5000; i++) {
        snprintf(name, sizeof name, "t%d", i);
        assert_non_null(state_find(s, name));
        assert_string_equal(state_find(s, name)->name, name);
    }
    assert_ptr_equal(state_find(s, "rng")->data, rng);
    assert_null(state_find(s, "t5000"));
    muster_state_destroy(&s);
    assert_null(s);
    muster_state_destroy(&s);
    muster_state_destroy(NULL);
    assert_int_equal(muster_state_count(NULL), 0);
    assert_int_equal(muster_state_size_bytes(NULL), 0);
}

static void name_must_be_short_plain_utf8(void **state)
{
    static char longest[MUSTER_STATE_NAME_MAX + 2];
    static const struct {
        const char *name;
        bool good;
    } rows[] = {
        {"w", true},
        {"layer.0/weights [left]", true},
        {"\xc3\xa4\xe2\x82\xac\xf0\x9f\x9a\x80", true},
        {"", false},
        {"__metadata__", false},
        {"muster.sums", false},
        {"__metadata", true},
        {"a\nb", false},
        {"a\x7f", false},
        {"\xc3", false},             /* cut */
        {"\xc0\xaf", false},         /* overlong */
        {"\xe0\x80\x80", false},     /* overlong */
        {"\xed\xa0\x80", false},     /* a surrogate */
        {"\xf4\x90\x80\x80", false}, /* above U+10FFFF */
        {"\xff", false},
    };
    muster_state_t *s = NULL;
    int64_t value = 0;

    (void)state;
    assert_int_equal(muster_state_create(&s, NULL), MUSTER_OK);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(muster_state_add_i64(s, rows[i].name, &value, NULL),
                         rows[i].good ? MUSTER_OK : MUSTER_E_ARGUMENT);
    memset(longest, 'x', MUSTER_STATE_NAME_MAX);
    assert_int_equal(muster_state_add_i64(s, longest, &value, NULL), MUSTER_OK);
    longest[MUSTER_STATE_NAME_MAX] = 'x';
    assert_int_equal(muster_state_add_i64(s, longest, &value, NULL), MUSTER_E_ARGUMENT);
    muster_state_destroy(&s);
}

static void bad_arguments_are_named_and_change_nothing(void **state)
{
    static const int64_t negative[1] = {-1};
    static const int64_t huge[2] = {INT64_MAX / 4, 4};
    static const int64_t huge_then_zero[3] = {INT64_MAX / 4, 8, 0};
    static const int64_t nine[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    static const int64_t zero[2] = {0, 7};
    int64_t value = 0;
    muster_state_t *s = NULL;
    struct muster_error err;

    (void)state;
    assert_int_equal(muster_state_create(NULL, &err), MUSTER_E_ARGUMENT);
    assert_int_equal(muster_state_create(&s, NULL), MUSTER_OK);
    assert_int_equal(muster_state_add_i64(NULL, "a", &value, &err), MUSTER_E_ARGUMENT);
    assert_int_equal(muster_state_add_i64(s, NULL, &value, &err), MUSTER_E_ARGUMENT);
    assert_int_equal(muster_state_add_i64(s, "a", NULL, &err), MUSTER_E_ARGUMENT);
    assert_non_null(strstr(err.text, "\"a\": data is NULL"));
    assert_int_equal(muster_state_add_f64(s, "a", NULL, &err), MUSTER_E_ARGUMENT);
    assert_int_equal(muster_state_add_blob(s, "a", NULL, 1, &err), MUSTER_E_ARGUMENT);
    assert_int_equal(muster_state_add_blob(s, "a", &value, SIZE_MAX, &err), MUSTER_E_ARGUMENT);
#define ADD(dtype, shape, count, data) \
    muster_state_add_tensor(s, "a", dtype, shape, count, data, &err)
    assert_int_equal(ADD(MUSTER_DTYPE_F32, negative, 1, &value), MUSTER_E_ARGUMENT);
    assert_non_null(strstr(err.text, "\"a\": dimension 0 has the length -1"));
    assert_int_equal(ADD(MUSTER_DTYPE_F32, huge, 2, &value), MUSTER_E_ARGUMENT);
    assert_non_null(strstr(err.text, "\"a\": the shape has 2^63 bytes or more"));
    assert_int_equal(ADD(MUSTER_DTYPE_F32, huge_then_zero, 3, &value), MUSTER_E_ARGUMENT);
    assert_int_equal(ADD(MUSTER_DTYPE_F32, nine, 9, &value), MUSTER_E_ARGUMENT);
    assert_int_equal(ADD(MUSTER_DTYPE_F32, NULL, 1, &value), MUSTER_E_ARGUMENT);
    assert_int_equal(ADD(MUSTER_DTYPE_NONE, nine, 1, &value), MUSTER_E_ARGUMENT);
    assert_int_equal(ADD(MUSTER_DTYPE_COUNT, nine, 1, &value), MUSTER_E_ARGUMENT);
    assert_non_null(strstr(err.text, "\"a\": there is no element type 18"));
#define SPLIT(begin, count) \
    muster_state_add_split(s, "a", MUSTER_DTYPE_F32, nine, 1, 0, begin, count, &value, &err)
    assert_int_equal(SPLIT(1, INT64_MAX), MUSTER_E_ARGUMENT);
    assert_non_null(strstr(err.text, "does not lie inside axis 0 of the whole, whose length is 1"));
    assert_int_equal(SPLIT(0, -1), MUSTER_E_ARGUMENT);
    assert_non_null(strstr(err.text, "does not lie inside"));
    assert_int_equal(SPLIT(1, 1), MUSTER_E_ARGUMENT);
#undef SPLIT
    assert_int_equal(muster_state_remove(s, NULL, &err), MUSTER_E_ARGUMENT);
    assert_int_equal(muster_state_count(s), 0);
    assert_int_equal(ADD(MUSTER_DTYPE_F32, zero, 2, NULL),
                     MUSTER_OK); /* empty: no address needed */
    assert_int_equal(ADD(MUSTER_DTYPE_F32, zero, 2, NULL), MUSTER_E_EXISTS);
    assert_non_null(strstr(err.text, "\"a\""));
#undef ADD
    assert_int_equal(muster_state_add_tensor(s, "b", MUSTER_DTYPE_I64, NULL, 0, &value, &err), 0);
    assert_int_equal(muster_state_add_tensor(s, "c", MUSTER_DTYPE_U8, nine, 8, &value, &err), 0);
    assert_int_equal(muster_state_add_blob(s, "d", NULL, 0, &err), MUSTER_OK);
    assert_int_equal(muster_state_count(s), 4);
    assert_int_equal(muster_state_add_split(s, "e", MUSTER_DTYPE_F32, zero, 2, 0, 0, 0, NULL, &err),
                     MUSTER_OK);
    muster_state_destroy(&s);
}

static void shape_text_is_cut_not_overrun(void **state)
{
    static const int64_t shape[3] = {3, 4, 5};
    char text[64];
    char tiny[8];

    (void)state;
    state_shape_text(STATE_DTYPE_BF16, shape, 3, text, sizeof text);
    assert_string_equal(text, "BF16 [3, 4, 5]");
    state_shape_text(STATE_DTYPE_I64, shape, 0, text, sizeof text);
    assert_string_equal(text, "I64 []");
    state_shape_text(STATE_DTYPE_BF16, shape, 3, tiny, sizeof tiny);
    assert_int_equal(strlen(tiny), 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_dtype_has_the_size_that_its_name_says),
        cmocka_unit_test(entries_are_counted_found_and_taken_out),
        cmocka_unit_test(name_must_be_short_plain_utf8),
        cmocka_unit_test(bad_arguments_are_named_and_change_nothing),
        cmocka_unit_test(shape_text_is_cut_not_overrun),
    };

    return cmocka_run_group_tests_name("state", tests, NULL, NULL);
}
