/* alone_options - a node that finds no broker and goes on by itself, in a test's directory. */
#ifndef TESTS_UNIT_NODE_LOCAL_ALONE_OPTIONS_H
#define TESTS_UNIT_NODE_LOCAL_ALONE_OPTIONS_H

#include <muster/node.h>

/* Borrows both. A preemption returns, and no signal is a notice. */
struct muster_node_options alone_options(const char *directory, muster_state_t *state);

#endif
