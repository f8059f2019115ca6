/* doctor - what the files of `muster doctor` share: findings, one line each. */
#ifndef TOOLS_DOCTOR_H
#define TOOLS_DOCTOR_H

#include "tools/tool.h"

#include <jansson.h>

struct doctor {
    struct tool *tool;
    json_t *findings; /* owned */
    size_t wrong;
};

/* Adds a finding. mend: what to do, "" = it is well. */
void doctor_say(struct doctor *doctor, const char *what, const char *mend, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Where checkpoints go: is it there, can this user write, do other hosts see it? several_hosts: the
 * job has ranks elsewhere. */
void doctor_directory(struct doctor *doctor, const char *directory, bool several_hosts);
/* Does a process take connections there? False: *ret_why is the reason. */
bool doctor_reaches(const char *host, const char *port, const char **ret_why);

#endif
