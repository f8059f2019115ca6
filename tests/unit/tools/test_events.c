/* One event is one line, whatever a process gave as its name or text. */
#include "tools/show/cmd_events.c" /* NOLINT(bugprone-suspicious-include) */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

/* muster.c names it; nothing here calls it. */
int cmd_run(int argc, char **argv)
{
    (void)argv;
    return argc;
}

static void an_event_with_an_end_of_line_in_its_text_is_one_line(void **state)
{
    const struct muster_event_row event = {
        .seq = 7, .kind = "order", .text = "cancel notice a\n     8  FAKE\tORDER"};
    struct tool tool = {.out = NULL};
    char *text = NULL;
    size_t size;

    (void)state;
    tool.out = open_memstream(&text, &size);
    events_print_event(&tool, &event, false);
    fclose(tool.out);
    assert_ptr_equal(strchr(text, '\n'), text + size - 1);
    assert_non_null(strstr(text, "cancel notice a      8  FAKE ORDER\n"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_event_with_an_end_of_line_in_its_text_is_one_line),
    };

    return cmocka_run_group_tests_name("events", tests, NULL, NULL);
}
