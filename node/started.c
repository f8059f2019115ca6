/* started - when this process began; see started.h. */
#include "node/started.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIELD_AFTER_NAME 20 /* starttime is field 22; the name, field 2, may hold blanks */
#define STAT_BYTES_MAX 4096

static _Atomic int asked_pid; /* a forked child is another process */

int64_t started_parse_ms(const char *stat, long ticks)
{
    const char *at = strrchr(stat, ')');
    unsigned long long start;

    for (int field = 0; at != NULL && field < FIELD_AFTER_NAME; field++)
        at = strchr(at + 1, ' ');
    if (at == NULL || ticks <= 0)
        return 0;
    start = strtoull(at, NULL, 10);
    if (start == 0 || start > (unsigned long long)INT64_MAX / 1000)
        return 0;
    return (int64_t)((start + 1) * 1000 /
                     (unsigned long long)ticks); /* the tick's end: not older */
}

int64_t started_first_node_boot_ms(void)
{
    char text[STAT_BYTES_MAX];
    int self = (int)getpid(), fd;
    ssize_t got;

    if (atomic_exchange(&asked_pid, self) == self)
        return 0;
    fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    got = read(fd, text, sizeof text - 1);
    close(fd);
    if (got <= 0)
        return 0;
    text[got] = '\0';
    return started_parse_ms(text, sysconf(_SC_CLK_TCK));
}
