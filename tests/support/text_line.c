/* text_line - see text_line.h. */
#include "tests/support/text_line.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

void line_put(struct line *line, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    int n = vsnprintf(line->text + line->used, line->size - line->used, format, args);
    va_end(args);
    assert_true(n >= 0 && (size_t)n < line->size - line->used);
    line->used += (size_t)n;
}
