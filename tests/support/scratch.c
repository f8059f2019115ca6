/* scratch - see scratch.h. */
#include "tests/support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void scratch_make(char ret_path[SCRATCH_PATH_MAX])
{
    const char *parent = getenv("TMPDIR");

    snprintf(ret_path, SCRATCH_PATH_MAX, "%s/muster-test-XXXXXX",
             parent == NULL || *parent == '\0' ? "/tmp" : parent);
    assert_non_null(mkdtemp(ret_path));
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)ftw;
    if (type == FTW_D || type == FTW_DNR)
        chmod(path, 0700);
    return remove(path);
}

void scratch_remove(const char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

const char *scratch_path(const char *dir, const char *format, ...)
{
    static char paths[8][SCRATCH_PATH_MAX];
    static unsigned next;
    char *path = paths[next++ % 8];
    va_list args;
    int n = snprintf(path, SCRATCH_PATH_MAX, "%s/", dir);

    assert_in_range(n, 1, SCRATCH_PATH_MAX - 1);
    va_start(args, format);
    n = vsnprintf(path + n, SCRATCH_PATH_MAX - (size_t)n, format, args);
    va_end(args);
    assert_in_range(n, 0, SCRATCH_PATH_MAX - 1);
    return path;
}

void scratch_write(const char *path, const void *data, size_t size)
{
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

char *scratch_read(const char *path, size_t *ret_size)
{
    FILE *file = fopen(path, "rb");
    struct stat st;
    char *data;

    assert_non_null(file);
    assert_int_equal(fstat(fileno(file), &st), 0);
    data = malloc((size_t)st.st_size + 1);
    assert_non_null(data);
    assert_int_equal(fread(data, 1, (size_t)st.st_size, file), st.st_size);
    data[st.st_size] = '\0';
    fclose(file);
    if (ret_size != NULL)
        *ret_size = (size_t)st.st_size;
    return data;
}

bool scratch_exists(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0;
}

void scratch_flip_bit(const char *path, size_t byte, int bit)
{
    unsigned char c;
    int fd = open(path, O_RDWR | O_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(pread(fd, &c, 1, (off_t)byte), 1);
    c = (unsigned char)(c ^ (1u << bit));
    assert_int_equal(pwrite(fd, &c, 1, (off_t)byte), 1);
    close(fd);
}

void scratch_cut(const char *path, size_t size)
{
    assert_int_equal(truncate(path, (off_t)size), 0);
}

size_t scratch_count(const char *dir)
{
    size_t count = 0;
    struct dirent *entry;
    DIR *d = opendir(dir);

    assert_non_null(d);
    while ((entry = readdir(d)) != NULL)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(d);
    return count;
}
