/* Calls of the broker's database to its disk fail, one in each run, from the first start to the
 * resumed job: a part of them. slow_vfs_calls has all. */
#include "tests/faults/store_sweep.h"

#define CHANGES (FAULT_CALL_WRITE | FAULT_CALL_TRUNCATE | FAULT_CALL_SYNC | FAULT_CALL_DELETE)

static const struct store_sweep sweeps[] = {
    {"EIO, any call", STORE_SWEEP(ANY, IO), .stride = 6, .points_min = 144},
    {"EIO, syncs, and the power goes later", STORE_SWEEP(SYNC, IO), .then_cut = true, .stride = 2,
     .points_min = 28},
    {"ENOSPC and all after it, writes", STORE_SWEEP(WRITE, FULL), .sticky = true, .stride = 10,
     .points_min = 46},
    {"short, then ENOSPC, writes", STORE_SWEEP(WRITE, SHORT_FULL), .stride = 10, .points_min = 46},
    {"power cut in a sync, nothing kept", STORE_SWEEP(SYNC, CUT), .points_min = 55},
    {"power cut in any change, half kept", .calls = CHANGES, .fault = FAULT_CUT, .keep = 50,
     .stride = 7, .points_min = 75},
    {"keep: EIO, any call", &story_keep, STORE_SWEEP(ANY, IO), .stride = 60, .points_min = 19},
    {"keep: power cut in a sync, nothing kept", &story_keep, STORE_SWEEP(SYNC, CUT), .stride = 9,
     .points_min = 8},
    {"tasks: EIO, any call", &story_tasks, STORE_SWEEP(ANY, IO), .stride = 30, .points_min = 17},
    {"tasks: power cut in a sync, nothing kept", &story_tasks, STORE_SWEEP(SYNC, CUT), .stride = 5,
     .points_min = 9},
    {"control: without syncs", STORE_SWEEP(WRITE, CUT), .stride = 40,
     .settings = "PRAGMA synchronous=OFF", .must_fail = true},
    {"control: told before it is written", STORE_SWEEP(WRITE, IO), .stride = 40, .tell_first = true,
     .must_fail = true},
};

int main(void)
{
    return store_sweep_all(sweeps, sizeof sweeps / sizeof *sweeps);
}
