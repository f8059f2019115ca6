/* How far a save is, in words: with and without what is on the disk, as a line and as a bar. */
#include "tools/paint.c"         /* NOLINT(bugprone-suspicious-include) */
#include "tools/progress.c"      /* NOLINT(bugprone-suspicious-include) */
#include "tools/render.c"        /* NOLINT(bugprone-suspicious-include) */
#include "tools/run/save_text.c" /* NOLINT(bugprone-suspicious-include) */
#include "tools/written.c"       /* NOLINT(bugprone-suspicious-include) */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const struct save_news half = {.writes = true,
                                      .round = 7,
                                      .step = 400,
                                      .saved = 1,
                                      .writers = 4,
                                      .bytes = 4000000000,
                                      .of = 8000000000,
                                      .passed_ms = 20000};

static void is_line(struct save_news news, const char *expected)
{
    char text[320];

    save_watch_text(&news, text, sizeof text);
    assert_string_equal(text, expected);
}

static void bytes_rate_and_time_left_are_told(void **state)
{
    (void)state;
    is_line(half, "save at step 400: 4.0 GB of 8.0 GB, 200.0 MB/s, 20.0 s left (1 of 4 shards)");
}

static void the_first_save_has_nothing_to_compare_with(void **state)
{
    struct save_news news = half;

    (void)state;
    news.of = 0;
    is_line(news, "save at step 400: 4.0 GB (1 of 4 shards)");
}

static void of_files_on_another_host_the_shards_and_the_time_are_told(void **state)
{
    struct save_news news = half;

    (void)state;
    news.bytes = 0;
    is_line(news, "save at step 400: 20.0 s so far (1 of 4 shards)");
    news.writers = 1;
    news.saved = 0;
    is_line(news, "save at step 400: 20.0 s so far (0 of 1 shard)");
}

static void a_checkpoint_that_grew_is_never_more_than_whole(void **state)
{
    struct save_news news = half;
    char text[320];

    (void)state;
    news.bytes = 9000000000;
    is_line(news, "save at step 400: 9.0 GB of 9.0 GB, 450.0 MB/s, 0 ms left (1 of 4 shards)");
    save_watch_bar(&news, text, sizeof text, 200);
    assert_non_null(strstr(text, "[################] 9.0 GB"));
}

static void a_bar_ends_before_the_edge(void **state)
{
    char text[320];

    (void)state;
    save_watch_bar(&half, text, sizeof text, 80);
    assert_int_equal(strlen(text), 79);
    assert_memory_equal(text, "save at step 400 [########--------] 4.0 GB of 8.0 GB,", 53);
    save_watch_bar(&half, text, sizeof text, 1000);
    assert_string_equal(text + 36, "4.0 GB of 8.0 GB, 200.0 MB/s, 20.0 s left (1 of 4 shards)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_rate_and_time_left_are_told),
        cmocka_unit_test(the_first_save_has_nothing_to_compare_with),
        cmocka_unit_test(of_files_on_another_host_the_shards_and_the_time_are_told),
        cmocka_unit_test(a_checkpoint_that_grew_is_never_more_than_whole),
        cmocka_unit_test(a_bar_ends_before_the_edge),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
