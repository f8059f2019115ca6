/* scratch - a directory of a test's own, and small files in it. Failures end the test (cmocka). */
#ifndef TESTS_SUPPORT_SCRATCH_H
#define TESTS_SUPPORT_SCRATCH_H

#include <stdbool.h>
#include <stddef.h>

#define SCRATCH_PATH_MAX 4096

/* Makes a new directory under $TMPDIR or /tmp; and removes it with all that is in it. */
void scratch_make(char ret_path[SCRATCH_PATH_MAX]);
void scratch_remove(const char *path);

/* "<dir>/<formatted>"; the same static buffers in turn, eight of them. */
const char *scratch_path(const char *dir, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

void scratch_write(const char *path, const void *data, size_t size);
/* Returned owned, free with free(); a NUL follows the bytes. */
char *scratch_read(const char *path, size_t *ret_size);
bool scratch_exists(const char *path);
void scratch_flip_bit(const char *path, size_t byte, int bit);
void scratch_cut(const char *path, size_t size);
/* The number of entries of a directory, "." and ".." not counted. */
size_t scratch_count(const char *dir);

#endif
