/* text_line - a text that a fixture writes piece by piece into a buffer of its own. */
#ifndef TESTS_SUPPORT_TEXT_LINE_H
#define TESTS_SUPPORT_TEXT_LINE_H

#include <stddef.h>

struct line {
    char *text;
    size_t used, size;
};

/* Appends; a text that does not fit ends the test (cmocka). */
void line_put(struct line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
