/* number - a whole decimal number that options, the environment and files give as text. */
#ifndef SCHEMA_NUMBER_H
#define SCHEMA_NUMBER_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* The whole text is a number of that range; blanks and a sign may stand before it. */
static inline bool number_read(const char *text, int64_t least, int64_t most, int64_t *ret_number)
{
    char *end;
    long long number;

    errno = 0;
    number = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || number < least || number > most)
        return false;
    *ret_number = number;
    return true;
}

/* The same of digits alone. */
static inline bool number_read_digits(const char *text, int64_t least, int64_t most,
                                      int64_t *ret_number)
{
    return text[0] >= '0' && text[0] <= '9' && number_read(text, least, most, ret_number);
}

#endif
