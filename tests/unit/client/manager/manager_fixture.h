/* manager_fixture - a manager of one process without a broker, in a directory of its own.
 * Owns: its options, which a test may change before managed_begin, its state: one number. */
#ifndef TESTS_UNIT_MANAGER_FIXTURE_H
#define TESTS_UNIT_MANAGER_FIXTURE_H

#include <muster/manager.h>

#include "tests/support/scratch.h"

#define NO_BROKER "ipc:///tmp/muster-manager-no-broker"

struct managed {
    char directory[SCRATCH_PATH_MAX];
    muster_state_t *state;
    int64_t value; /* the step that was trained last */
    struct muster_node_options node;
    struct muster_manager_options options;
    struct muster_policies policies;
    struct muster_save_policy save; /* every 2 steps */
    muster_manager_t *manager;
    struct muster_error error;
};

extern struct managed managed; /* made again by managed_setup */

int managed_setup(void **state);
int managed_teardown(void **state);

void managed_open(void);
/* Opens and restores; the index that training goes on behind, -1 = from the start. */
int64_t managed_begin(void);
/* A step that must not fail; was it saved? */
bool managed_save(int64_t step);
void managed_close(void);
/* In its stead one that reads the directory. */
void managed_open_reader(void);
/* What is listed: "0 2 4". */
const char *managed_steps(void);

#endif
