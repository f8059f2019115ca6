/* Colours are marks until they are written, and no byte of a text commands the terminal. */
#include "tools/paint.c" /* NOLINT(bugprone-suspicious-include) */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void is_written(bool on, int width, const char *text, const char *expected)
{
    char *written = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&written, &size);

    paint_on = on;
    if (width > 0)
        paint_line(out, text, strlen(text), width);
    else
        paint_text(out, text, strlen(text));
    fclose(out);
    assert_string_equal(written, expected);
    free(written);
}

static void marks_are_colours_on_a_terminal_and_nothing_elsewhere(void **state)
{
    (void)state;
    is_written(true, 0, "a \002good\001 b\n", "a \033[32mgood\033[0m b\n");
    paint_on = false;
    assert_string_equal(paint(PAINT_GOOD), "");
    is_written(false, 0, "a \002good\001 b\n", "a ?good? b\n");
}

static void no_byte_commands_the_terminal(void **state)
{
    (void)state;
    is_written(true, 0, "\033[2J\r\177\a", "?[2J???");
    is_written(true, 0, "forged \005red\nnext", "forged \033[1;31mred\033[0m\nnext");
    is_written(true, 0, "plain\n\ttext\n\005red\nplain\n\xc3\xa4\a\n",
               "plain\n\ttext\n\033[1;31mred\033[0m\nplain\n\xc3\xa4?\n");
    is_written(true, 0, "", "");
    is_written(true, 0, "open \005", "open \033[1;31m\033[0m");
}

static void a_line_is_cut_by_what_is_seen(void **state)
{
    (void)state;
    is_written(true, 4, "\002abcdef\001", "\033[32mabcd\033[0m");
    is_written(false, 3, "\xc3\xa4\xc3\xb6\xc3\xbc\xc3\x9f", "\xc3\xa4\xc3\xb6\xc3\xbc");
}

static void a_state_has_the_colour_of_its_first_word(void **state)
{
    (void)state;
    assert_int_equal(paint_of_state("lost: preempted"), PAINT_BAD);
    assert_int_equal(paint_of_state("running"), PAINT_GOOD);
    assert_int_equal(paint_of_state("runningx"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(marks_are_colours_on_a_terminal_and_nothing_elsewhere),
        cmocka_unit_test(no_byte_commands_the_terminal),
        cmocka_unit_test(a_line_is_cut_by_what_is_seen),
        cmocka_unit_test(a_state_has_the_colour_of_its_first_word),
    };

    return cmocka_run_group_tests_name("paint", tests, NULL, NULL);
}
