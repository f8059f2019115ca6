/* sim_store - what sim_store.c and sim_store_faults.c share. */
#ifndef TESTS_SIM_SIM_STORE_H
#define TESTS_SIM_SIM_STORE_H

#include "broker/store/store_internal.h" /* boot_id: machines reboot here; db: for a mutation */
#include "tests/sim/sim_world.h"
#include "tests/support/fault_vfs.h"

struct sim_file {
    void *bytes;
    size_t size;
};

struct sim_store {
    char dir[64], path[96], wal[112];
    struct mem_vfs *disk;
    struct fault_vfs *faults;
    struct store *store;
    uint64_t hits_seen; /* failures before were for a fault that was met */
    bool failed;        /* an answer of it that musterd exits for */
    bool lost_power;
    struct sim_file copy, copy_wal; /* of an operator */
    bool copied, put_back;
    struct {
        bool on;
        unsigned after; /* calls of its kind */
        bool hit;
    } armed[STORE_FAULTS];
};

/* sim_store.c */
void store_copy_restore(struct sim *sim);

/* sim_store_faults.c */
enum fault store_fault_choose(void *arg, enum fault_call call, const char *path);
unsigned store_fault_keeps(struct sim *sim); /* percent of what was not synced */

#endif
