/* check - what helper programs insist on: else the line, the condition and the last error, and exit
 * code 1. Whoever includes it has a `struct muster_error err`. */
#ifndef TESTS_PROC_CHECK_H
#define TESTS_PROC_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                \
    do {                                                                                \
        if (!(condition)) {                                                             \
            fprintf(stderr, "line %d: not: %s (%s)\n", __LINE__, #condition, err.text); \
            exit(1);                                                                    \
        }                                                                               \
    } while (0)

#endif
