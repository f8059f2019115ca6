/* queues - what the other folders ask of tasks. The rest is tasks.h. */
#ifndef BROKER_CORE_QUEUES_H
#define BROKER_CORE_QUEUES_H

#include "broker/core/state/state.h"

/* tasks*.c */
void tasks_message(struct core *core, const struct input *in);
void tasks_load(struct core *core, const struct record *row);
void tasks_start(struct core *core);
void tasks_tick(struct core *core);
void tasks_node_left(struct core *core, uint64_t incarnation); /* in good order */
int64_t tasks_wakeup_boot_ms(const struct core *core);
void tasks_free(struct core *core);

#endif
