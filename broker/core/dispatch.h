/* dispatch - which function handles each kind of input; see dispatch.c for the table of
 * messages. */
#ifndef BROKER_CORE_DISPATCH_H
#define BROKER_CORE_DISPATCH_H

#include "broker/core/members/members.h"
#include "broker/core/tasks/queues.h"

void dispatch_message(struct core *core, const struct input *in);
void job_tick(struct core *core, struct job *job);

/* start.c */
void start_take(struct core *core);
void start_job(struct core *core, struct job *job); /* its rows were loaded, at a start or later */

#endif
