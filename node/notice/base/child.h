/* child - a command in a process group of its own, asked without waiting for it.
 * Owns: the group, two pipes: what it wrote (capped), its exit code. Default signal dispositions,
 * nothing blocked, no descriptor of the host's. Its exit code is not taken from waitpid, which the
 * host may have done before. Never: a wait; more than CHILD_LIMIT_MS. */
#ifndef NODE_NOTICE_CHILD_H
#define NODE_NOTICE_CHILD_H

#include "node/notice/base/source.h"

#include <sys/types.h>

#define CHILD_LIMIT_MS 10000
#define CHILD_OUTPUT_MAX 4096

struct child_pipe {
    int fd; /* -1: closed */
    char bytes[CHILD_OUTPUT_MAX];
    size_t size;
};

struct child {
    int64_t started_boot_ms, limit_ms;
    pid_t group; /* 0: does not run */
    struct child_pipe output, code;
};

void child_init(struct child *child, int64_t limit_ms);
/* /bin/sh -c command. 0, or what errno says. */
int child_start(struct child *child, const char *command, int64_t now_boot_ms);

enum child_state {
    CHILD_NONE,
    CHILD_RUNS,
    CHILD_ENDED, /* output.bytes, output.size; *ret_code: its exit code, -1: killed */
    CHILD_LATE
};
/* A child that ended or is late has been killed with its group; it can be started again. */
enum child_state child_look(struct child *child, int64_t now_boot_ms, long *ret_code);

size_t child_fds(const struct child *child, struct pollfd ret_fds[SOURCE_FDS_MAX]);
int64_t child_wakeup_boot_ms(const struct child *child); /* when it is late; of one that runs */
void child_end(struct child *child);                     /* kills it with its group */

#endif
