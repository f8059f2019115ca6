/* dispatch - from a message to the handler that takes it; see dispatch.c for the table. */
#ifndef BROKER_CORE_DISPATCH_H
#define BROKER_CORE_DISPATCH_H

#include "broker/core/state/state.h"

void dispatch_message(struct core *core, const struct input *in);

#endif
