/* fuzz - what the targets share: a condition that must hold, and the input as a row of small
 * choices. An input that is used up gives zeros, so that every prefix of an input is an input. */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define must(condition)                                                                \
    do {                                                                               \
        if (!(condition)) {                                                            \
            fprintf(stderr, "%s:%d: must hold: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                                   \
        }                                                                              \
    } while (0)

struct bytes {
    const uint8_t *at;
    size_t left;
};

static inline unsigned take(struct bytes *in)
{
    if (in->left == 0)
        return 0;
    in->left--;
    return *in->at++;
}

/* The next line as a string of its own, without its end; NULL when there is none. Free with free().
 * A NUL byte ends what a C string can hold. */
static inline char *take_line(struct bytes *in)
{
    const uint8_t *end;
    size_t length;
    char *line;

    if (in->left == 0)
        return NULL;
    end = memchr(in->at, '\n', in->left);
    length = end != NULL ? (size_t)(end - in->at) : in->left;
    line = malloc(length + 1);
    must(line != NULL);
    memcpy(line, in->at, length);
    line[length] = '\0';
    length += end != NULL;
    in->at += length;
    in->left -= length;
    return line;
}

#endif
