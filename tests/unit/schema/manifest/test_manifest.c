/* test_manifest - manifest.json: rendered the same each time, read back, and hostile text refused.
 */
#include "schema/manifest/manifest.h"
#include "schema/manifest/manifest_read.h"
#include "schema/manifest/seal.h"
#include "tests/support/manifest_same.h"

#include <jansson.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUM "xxh3-128:00112233445566778899aabbccddeeff"

static const struct wire_file files_0[] = {
    {"shard-00000-00000000000000a0/b", 5, SUM},
    {"shard-00000-00000000000000a0/a", 0, SUM},
};
static const struct wire_file files_1[] = {{"shard-00001-ffffffffffffffff.safetensors", 4096, SUM}};
static const struct manifest_shard shards[] = {
    {1, UINT64_MAX, files_1, 1},
    {0, 0xa0, files_0, 2},
};

static struct manifest sample(void)
{
    return (struct manifest){.job = "words",
                             .generation = 2,
                             .round = 7,
                             .step = 1200,
                             .layout = LAYOUT_SHARDED,
                             .world_size = 2,
                             .epoch = 3,
                             .step_in_epoch = 0,
                             .data_position = -1,
                             .total_run_calls = 1200,
                             .created_unix_ms = 1700000000000,
                             .cause = "termination",
                             .shards = shards,
                             .shard_count = 2};
}

static char *rendered(const struct manifest *m)
{
    char *text = NULL;
    size_t size = 0;
    struct muster_error err = {0};

    if (manifest_render(m, &text, &size, &err) != MUSTER_OK)
        fail_msg("%s", err.text);
    assert_int_equal(strlen(text), size);
    return text;
}

static void parse_gives_back_what_render_took(void **state)
{
    struct manifest in = sample();
    struct manifest *out = NULL;
    char *text = rendered(&in);

    (void)state;
    assert_int_equal(manifest_parse(text, strlen(text), &out, NULL), MUSTER_OK);
    free(text);
    assert_string_equal(out->job, "words");
    assert_int_equal(out->generation, 2);
    assert_int_equal(out->round, 7);
    assert_int_equal(out->step, 1200);
    assert_int_equal(out->layout, LAYOUT_SHARDED);
    assert_int_equal(out->world_size, 2);
    assert_int_equal(out->epoch, 3);
    assert_int_equal(out->step_in_epoch, 0);
    assert_int_equal(out->data_position, -1);
    assert_int_equal(out->total_run_calls, 1200);
    assert_int_equal(out->created_unix_ms, 1700000000000);
    assert_string_equal(out->cause, "termination");
    assert_int_equal(out->shard_count, 2);
    assert_int_equal(out->shards[0].rank, 0);
    assert_int_equal(out->shards[0].incarnation, 0xa0);
    assert_int_equal(out->shards[0].file_count, 2);
    assert_string_equal(out->shards[0].files[0].path, "shard-00000-00000000000000a0/a");
    assert_int_equal(out->shards[0].files[1].bytes, 5);
    assert_string_equal(out->shards[0].files[1].checksum, SUM);
    assert_true(out->shards[1].incarnation == UINT64_MAX);
    assert_ptr_equal(manifest_shard_of(out, 1), &out->shards[1]);
    assert_null(manifest_shard_of(out, 2));
    manifest_destroy(&out);
    assert_null(out);
    manifest_destroy(&out);
}

static void where_its_launch_began_is_told_if_it_is_known(void **state)
{
    struct manifest in = sample();
    struct manifest *out = NULL;
    char *text = rendered(&in);

    (void)state;
    assert_null(strstr(text, "resumed_step"));
    free(text);
    in.resumed_known = true;
    in.resumed_step = 800;
    text = rendered(&in);
    assert_int_equal(manifest_parse(text, strlen(text), &out, NULL), MUSTER_OK);
    free(text);
    assert_true(out->resumed_known);
    assert_int_equal(out->resumed_step, 800);
    manifest_destroy(&out);
    in.resumed_step = 1201; /* beyond its own */
    assert_int_equal(manifest_render(&in, &text, &(size_t){0}, NULL), MUSTER_E_ARGUMENT);
}

/* R11.6 */
static void the_database_that_it_was_made_from_is_told(void **state)
{
    struct manifest in = sample();
    struct manifest *out = NULL;
    char *text = rendered(&in), *at;

    (void)state;
    assert_null(strstr(text, "database"));
    free(text);
    in.database = UINT64_C(0xfedcba9876543210);
    text = rendered(&in);
    assert_int_equal(manifest_parse(text, strlen(text), &out, NULL), MUSTER_OK);
    assert_true(out->database == in.database);
    manifest_destroy(&out);
    at = strstr(text, "fedcba9876543210");
    assert_non_null(at);
    memcpy(at, "fedcba98 6543210", 16);
    assert_int_equal(manifest_parse(text, strlen(text), &out, NULL), MUSTER_E_CORRUPT);
    free(text);
}

static void equal_content_gives_equal_bytes_in_any_order(void **state)
{
    struct wire_file files_swapped[] = {files_0[1], files_0[0]};
    struct manifest_shard swapped[] = {{0, 0xa0, files_swapped, 2}, shards[0]};
    struct manifest a = sample();
    struct manifest b = sample();
    char *text_a = rendered(&a);
    char *text_b;

    (void)state;
    b.shards = swapped;
    text_b = rendered(&b);
    assert_string_equal(text_a, text_b);
    free(text_a);
    free(text_b);
    assert_string_equal(files_0[0].path + 29, "b"); /* the caller's rows stay as they were */
}

static void same_checkpoint_is_told_by_job_round_and_shards(void **state)
{
    struct manifest_shard other_life[] = {shards[0], {0, 0xa1, files_0, 2}};
    struct manifest a = sample();
    struct manifest b = sample();

    (void)state;
    b.cause = "operator"; /* said later, by a newer broker: still the same checkpoint */
    assert_true(manifest_same_checkpoint(&a, &b));
    b.round = 8;
    assert_false(manifest_same_checkpoint(&a, &b));
    b = sample();
    b.job = "other";
    assert_false(manifest_same_checkpoint(&a, &b));
    b = sample();
    b.shards = other_life;
    assert_false(manifest_same_checkpoint(&a, &b));
}

static void render_refuses_what_parse_would(void **state)
{
    struct manifest_shard twice[] = {shards[0], shards[0]};
    struct wire_file up[] = {{"../x", 1, SUM}};
    struct manifest_shard outside[] = {{0, 1, up, 1}};
    struct manifest m;
    char *text = (char *)1;
    size_t size = 77;

    (void)state;
#define REFUSED(change)                                                               \
    do {                                                                              \
        m = sample();                                                                 \
        change;                                                                       \
        assert_int_equal(manifest_render(&m, &text, &size, NULL), MUSTER_E_ARGUMENT); \
    } while (0)
    REFUSED(m.job = "");
    REFUSED(m.job = NULL);
    REFUSED(m.job = "a\xff");
    REFUSED(m.round = 0);
    REFUSED(m.generation = 0);
    REFUSED(m.step = -1);
    REFUSED(m.epoch = -2);
    REFUSED(m.world_size = 0);
    REFUSED(m.world_size = 3);
    REFUSED(m.world_size = WORLD_SIZE_MAX + 1);
    REFUSED(m.layout = LAYOUT_NONE);
    REFUSED(m.layout = LAYOUT_REPLICATED);
    REFUSED(m.cause = "");
    REFUSED(m.shards = twice);
    REFUSED((m.layout = LAYOUT_REPLICATED, m.shards = outside, m.shard_count = 1));
#undef REFUSED
    assert_ptr_equal(text, (char *)1);
    assert_int_equal(size, 77);
}

static void path_stays_inside_its_directory(void **state)
{
    static char longest[FILE_PATH_MAX + 2];
    static const struct {
        const char *path;
        bool good;
    } rows[] = {
        {"a", true},       {"a/b.c", true}, {"..a/b..", true}, {"a/...", true}, {"", false},
        {"/a", false},     {"a/", false},   {"a//b", false},   {".", false},    {"..", false},
        {"a/../b", false}, {"a/.", false},  {"./a", false},    {"a\\b", false}, {"a\nb", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (manifest_path_ok(rows[i].path) != rows[i].good)
            fail_msg("\"%s\"", rows[i].path);
    }
    memset(longest, 'x', FILE_PATH_MAX);
    assert_true(manifest_path_ok(longest));
    longest[FILE_PATH_MAX] = 'x';
    assert_false(manifest_path_ok(longest));
}

static void checksum_text_is_checked_to_the_letter(void **state)
{
    (void)state;
    assert_true(manifest_checksum_ok(SUM));
    assert_false(manifest_checksum_ok(""));
    assert_false(manifest_checksum_ok("xxh3-128:"));
    assert_false(manifest_checksum_ok("xxh3-128:00112233445566778899aabbccddeef"));
    assert_false(manifest_checksum_ok("xxh3-128:00112233445566778899aabbccddeeffa"));
    assert_false(manifest_checksum_ok("xxh3-128:00112233445566778899aabbccddeefF"));
    assert_false(manifest_checksum_ok("sha2-256:00112233445566778899aabbccddeeff"));
}

/* Replaces the first `from` in text by `to`; returned owned. */
static char *replaced(const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);
    size_t size = strlen(text) + strlen(to) + 1;
    char *result = malloc(size);

    assert_non_null(at);
    assert_non_null(result);
    snprintf(result, size, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    return result;
}

/* With the checksum of what it says now. */
static char *sealed(char *text)
{
    const size_t size = strlen(text) - SEAL_BYTES;

    seal_make(text, size, text + size);
    return text;
}

struct change {
    const char *from;
    const char *to;
    enum muster_status status; /* of the text with that change */
};

static void parse_changed(const struct change *changes, size_t count)
{
    struct manifest m = sample();
    char *text = rendered(&m);

    for (size_t i = 0; i < count; i++) {
        struct muster_error err = {0};
        struct manifest *out = NULL;
        char *changed = sealed(replaced(text, changes[i].from, changes[i].to));
        enum muster_status status = manifest_parse(changed, strlen(changed), &out, &err);

        if (status != changes[i].status)
            fail_msg("change %zu: %s: %s", i, muster_status_name(status), err.text);
        if (status != MUSTER_OK) {
            assert_null(out);
            assert_int_equal(err.status, status);
            assert_true(err.text[0] != '\0');
        }
        manifest_destroy(&out);
        free(changed);
    }
    free(text);
}

static void hostile_fields_are_refused(void **state)
{
    static const struct change changes[] = {
        {"{", "", MUSTER_E_CORRUPT},
        {"{", "[", MUSTER_E_CORRUPT},
        {"\"muster_manifest\": 1", "\"muster_manifest\": 2", MUSTER_E_VERSION},
        {"\"muster_manifest\": 1", "\"muster_manifest\": 0", MUSTER_E_CORRUPT},
        {"\"muster_manifest\": 1", "\"muster_manifest\": \"1\"", MUSTER_E_CORRUPT},
        {"\"muster_manifest\": 1,", "", MUSTER_E_CORRUPT},
        {"\"muster_manifest\": 1", "\"muster_manifest\": 1", MUSTER_OK},
        {"\"job\"", "\"later\": {\"a\": [1]}, \"job\"", MUSTER_OK},
        {"\"job\"", "\"job\": \"x\", \"job\"", MUSTER_E_CORRUPT}, /* a key twice */
        {"\"words\"", "\"\"", MUSTER_E_CORRUPT},
        {"\"words\"", "7", MUSTER_E_CORRUPT},
        {"\"words\"", "\"a\\u0000b\"", MUSTER_E_CORRUPT},
        {"\"words\"", "\"\xff\"", MUSTER_E_CORRUPT},
        {"\"step\": 1200", "\"step\": -1", MUSTER_E_CORRUPT},
        {"\"step\": 1200", "\"step\": 1.5", MUSTER_E_CORRUPT},
        {"\"step\": 1200", "\"step\": 99999999999999999999", MUSTER_E_CORRUPT},
        /* a job goes on behind them: its numbers have to stay those of a database */
        {"\"step\": 1200", "\"step\": 2305843009213693952", MUSTER_OK},
        {"\"step\": 1200", "\"step\": 2305843009213693953", MUSTER_E_CORRUPT},
        {"\"total_run_calls\": 1200", "\"total_run_calls\": 9223372036854775807", MUSTER_E_CORRUPT},
        {"\"round\": 7", "\"round\": 2305843009213693952", MUSTER_OK},
        {"\"round\": 7", "\"round\": 2305843009213693953", MUSTER_E_CORRUPT},
        {"\"generation\": 2", "\"generation\": 2305843009213693953", MUSTER_E_CORRUPT},
        {"\"bytes\": 4096", "\"bytes\": 9223372036854775807", MUSTER_E_CORRUPT}, /* in all */
        {"\"round\": 7", "\"round\": 0", MUSTER_E_CORRUPT},
        {"\"generation\": 2", "\"generation\": -2", MUSTER_E_CORRUPT},
    };

    (void)state;
    parse_changed(changes, sizeof changes / sizeof changes[0]);
}

static void hostile_shards_and_files_are_refused(void **state)
{
    static const struct change changes[] = {
        {"\"sharded\"", "\"replicated\"", MUSTER_E_CORRUPT},
        {"\"sharded\"", "\"striped\"", MUSTER_E_CORRUPT},
        {"\"world_size\": 2", "\"world_size\": 3", MUSTER_E_CORRUPT},
        {"\"world_size\": 2", "\"world_size\": 1", MUSTER_E_CORRUPT},
        {"\"world_size\": 2", "\"world_size\": 1000000000", MUSTER_E_CORRUPT},
        {"\"rank\": 0", "\"rank\": 1", MUSTER_E_CORRUPT},
        {"\"rank\": 0", "\"rank\": 2", MUSTER_E_CORRUPT},
        {"\"00000000000000a0\"", "\"a0\"", MUSTER_E_CORRUPT},
        {"\"00000000000000a0\"", "\"00000000000000A0\"", MUSTER_E_CORRUPT},
        {"/b\"", "/a\"", MUSTER_E_CORRUPT}, /* a path twice */
        {"/b\"", "/../../b\"", MUSTER_E_CORRUPT},
        {"\"shard-00001", "\"/shard-00001", MUSTER_E_CORRUPT},
        {"\"bytes\": 4096", "\"bytes\": -1", MUSTER_E_CORRUPT},
        {"\"bytes\": 4096", "\"bites\": 4096", MUSTER_E_CORRUPT},
        {"xxh3-128:", "md5:", MUSTER_E_CORRUPT},
        {"\"files\": [", "\"files\": 3, \"x\": [", MUSTER_E_CORRUPT},
        {"\"shards\": [", "\"shards\": null, \"x\": [", MUSTER_E_CORRUPT},
    };

    (void)state;
    parse_changed(changes, sizeof changes / sizeof changes[0]);
}

/* They are read one by one. */
static void what_stands_between_shards_counts_too(void **state)
{
    static const struct change changes[] = {
        {"\"shards\": [", "\"shards\": [], \"shards\": [", MUSTER_E_CORRUPT},
        {"\"shards\": [", "\"sh\\u0061rds\": [], \"shards\": [", MUSTER_E_CORRUPT},
        {"\"shards\": [", "\"sh\\u0061rds\": [", MUSTER_E_CORRUPT},
        {"\"shards\": [", "\"shards\": [1,", MUSTER_E_CORRUPT},
        {"\"shards\": [", "\"shards\": [[],", MUSTER_E_CORRUPT},
        {"\"shards\": [", "\"shards\": [,", MUSTER_E_CORRUPT},
        {"\"shards\": [", "\"shards\": [{}", MUSTER_E_CORRUPT},
        {"\"shards\": [", "\"shards\": [}", MUSTER_E_CORRUPT},
        {"\"shards\": [", "\"shards\" [", MUSTER_E_CORRUPT},
        {"  },", "  }", MUSTER_E_CORRUPT},
        {"  },", "  },,", MUSTER_E_CORRUPT},
        {"\n  }\n ],", "\n  },\n ],", MUSTER_E_CORRUPT},
        {"\n  }\n ],", "\n  ]\n ],", MUSTER_E_CORRUPT},
        {"\n  }\n ],", "\n  }\n },", MUSTER_E_CORRUPT},
        {"\"shards\": [", "\"custom\": {\"shards\": [1, {}]}, \"shards\": [", MUSTER_OK},
    };

    (void)state;
    parse_changed(changes, sizeof changes / sizeof changes[0]);
}

/* Their form is another one's to say: no word of it may keep a reader from hearing the number. */
static void a_newer_format_is_told_whatever_its_shards_are(void **state)
{
    static const char text[] = "{\"shards\": [{\"parts\": 3}], \"muster_manifest\": 2}";
    struct manifest *out = NULL;

    (void)state;
    assert_int_equal(manifest_parse(text, strlen(text), &out, NULL), MUSTER_E_VERSION);
}

/* As if it had been read at once. */
static void what_is_no_json_is_told_with_its_line(void **state)
{
    static const char *const rows[][2] = {{"\"cause\"", "cause"},
                                          {"\"bytes\": 5,", "\"bytes\": 5"},
                                          {"\"bytes\": 4096,", "\"bytes\": 4096"},
                                          {"\"total_run_calls\"", "total_run_calls"}};
    struct manifest m = sample();
    char *text = rendered(&m);

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *wrong = replaced(text, rows[i][0], rows[i][1]);
        struct manifest *out = NULL;
        struct muster_error err = {0};
        json_error_t why;
        char line[32];

        assert_null(json_loads(wrong, 0, &why));
        snprintf(line, sizeof line, "(line %d:", why.line);
        assert_int_equal(manifest_parse(wrong, strlen(wrong), &out, &err), MUSTER_E_CORRUPT);
        if (strstr(err.text, line) == NULL)
            fail_msg("row %zu: %s, not %s", i, err.text, line);
        free(wrong);
    }
    free(text);
}

/* As any other program would write it, and in pieces of any size. */
static void text_is_plain_json_and_may_come_in_pieces(void **state)
{
    const struct wire_file odd[] = {{"a \"quoted\" \xc3\xa4", 1, SUM}, {"b", 2, SUM}};
    const struct manifest_shard with_odd[] = {{0, 1, odd, 2}, {1, 2, NULL, 0}};
    struct manifest m = sample();
    json_error_t why;
    char *text;

    (void)state;
    m.shards = with_odd;
    m.metrics = "{\"loss\": 0.5}";
    m.custom = "{\"x\": \"\\n \\\"shards\\\": []\"}";
    text = rendered(&m);
    json_t *root = json_loads(text, 0, &why);
    char *again = json_dumps(root, JSON_INDENT(1));
    assert_string_equal(text, again);
    json_decref(root);
    for (size_t piece = 1; piece < 200; piece += 13) {
        struct manifest_reader *reader = manifest_reader_create();
        struct manifest *out = NULL;
        const size_t size = strlen(text);

        for (size_t at = 0; at < size; at += piece)
            manifest_reader_feed(reader, text + at, size - at < piece ? size - at : piece);
        assert_int_equal(manifest_reader_end(&reader, &out, NULL), MUSTER_OK);
        assert_true(manifest_same_checkpoint(&m, out));
        manifest_destroy(&out);
    }
    free(text);
    free(again);
}

static void every_cut_of_the_text_is_refused(void **state)
{
    struct manifest m = sample();
    char *text = rendered(&m);
    struct manifest *out = NULL;

    (void)state;
    for (size_t size = 0; size < strlen(text); size++) {
        char *cut = malloc(size + 1); /* its own block, so that a read past it is seen */

        assert_non_null(cut);
        memcpy(cut, text, size);
        assert_int_equal(manifest_parse(cut, size, &out, NULL), MUSTER_E_CORRUPT);
        free(cut);
    }
    assert_null(out);
    free(text);
}

/* --- its checksum ----------------------------------------------------------------------------- */

/* The text without its checksum, as an older muster wrote it. */
static char *unsealed(char *text)
{
    strcpy(text + strlen(text) - SEAL_BYTES, "\n}");
    return text;
}

/* R11.9 */
static void one_of_an_older_muster_has_no_checksum(void **state)
{
    struct manifest m = sample();
    struct manifest *out = NULL;
    char *text = rendered(&m), *more;

    (void)state;
    assert_int_equal(manifest_parse(text, strlen(text), &out, NULL), MUSTER_OK);
    assert_true(out->sealed);
    manifest_destroy(&out);
    more = replaced(text, "\"job\"", "\"later\": 1, \"job\"");
    unsealed(text);
    unsealed(more);
    assert_int_equal(manifest_parse(text, strlen(text), &out, NULL), MUSTER_OK);
    assert_false(out->sealed);
    manifest_destroy(&out);
    /* what no older one wrote may be a damaged checksum */
    assert_int_equal(manifest_parse(more, strlen(more), &out, NULL), MUSTER_E_CORRUPT);
    free(text);
    free(more);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parse_gives_back_what_render_took),
        cmocka_unit_test(the_database_that_it_was_made_from_is_told),
        cmocka_unit_test(where_its_launch_began_is_told_if_it_is_known),
        cmocka_unit_test(equal_content_gives_equal_bytes_in_any_order),
        cmocka_unit_test(same_checkpoint_is_told_by_job_round_and_shards),
        cmocka_unit_test(render_refuses_what_parse_would),
        cmocka_unit_test(path_stays_inside_its_directory),
        cmocka_unit_test(checksum_text_is_checked_to_the_letter),
        cmocka_unit_test(hostile_fields_are_refused),
        cmocka_unit_test(hostile_shards_and_files_are_refused),
        cmocka_unit_test(what_stands_between_shards_counts_too),
        cmocka_unit_test(a_newer_format_is_told_whatever_its_shards_are),
        cmocka_unit_test(what_is_no_json_is_told_with_its_line),
        cmocka_unit_test(text_is_plain_json_and_may_come_in_pieces),
        cmocka_unit_test(every_cut_of_the_text_is_refused),
        cmocka_unit_test(one_of_an_older_muster_has_no_checksum),
    };

    return cmocka_run_group_tests_name("manifest", tests, NULL, NULL);
}
