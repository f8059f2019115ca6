/* Calls of the broker's database to its disk fail while checkpoints are kept and deleted, and while
 * tasks run. */
#include "tests/faults/store_sweep.h"

#define CHANGES (FAULT_CALL_WRITE | FAULT_CALL_TRUNCATE | FAULT_CALL_SYNC | FAULT_CALL_DELETE)
#define LOCKS (FAULT_CALL_LOCK | FAULT_CALL_SHM_LOCK)
#define CUT(percent) .calls = CHANGES, .fault = FAULT_CUT, .keep = (percent)
#define BUSY .calls = LOCKS, .fault = FAULT_BUSY
#define AND_ALL_AFTER_IT .sticky = true

static const struct store_sweep sweeps[] = {
    {"keep: EIO, any call", &story_keep, STORE_SWEEP(ANY, IO), .points_min = 1118},
    {"keep: EIO and all after it, any call", &story_keep, STORE_SWEEP(ANY, IO), AND_ALL_AFTER_IT,
     .stride = 3, .points_min = 373},
    {"keep: ENOSPC and all after it, writes", &story_keep, STORE_SWEEP(WRITE, FULL),
     AND_ALL_AFTER_IT, .points_min = 601},
    {"keep: short, then ENOSPC, writes", &story_keep, STORE_SWEEP(WRITE, SHORT_FULL), .stride = 3,
     .points_min = 201},
    {"keep: busy and all after it, locks", &story_keep, BUSY, AND_ALL_AFTER_IT, .points_min = 166},
    {"keep: power cut in any change, nothing kept", &story_keep, CUT(0), .points_min = 688},
    {"keep: power cut in any change, half kept", &story_keep, CUT(50), .points_min = 688},
    {"tasks: EIO, any call", &story_tasks, STORE_SWEEP(ANY, IO), .points_min = 603},
    {"tasks: EIO and all after it, any call", &story_tasks, STORE_SWEEP(ANY, IO), AND_ALL_AFTER_IT,
     .points_min = 603},
    {"tasks: ENOSPC and all after it, writes", &story_tasks, STORE_SWEEP(WRITE, FULL),
     AND_ALL_AFTER_IT, .points_min = 282},
    {"tasks: short, then ENOSPC, writes", &story_tasks, STORE_SWEEP(WRITE, SHORT_FULL),
     .points_min = 282},
    {"tasks: busy and all after it, locks", &story_tasks, BUSY, AND_ALL_AFTER_IT,
     .points_min = 116},
    {"tasks: power cut in any change, nothing kept", &story_tasks, CUT(0), .points_min = 335},
    {"tasks: power cut in any change, half kept", &story_tasks, CUT(50), .points_min = 335},
    {"keep: control: told before it is written", &story_keep, STORE_SWEEP(WRITE, IO), .stride = 40,
     .tell_first = true, .must_fail = true},
    {"tasks: control: told before it is written", &story_tasks, STORE_SWEEP(WRITE, IO),
     .stride = 20, .tell_first = true, .must_fail = true},
    {"tasks: control: without syncs", &story_tasks, STORE_SWEEP(WRITE, CUT), .stride = 10,
     .settings = "PRAGMA synchronous=OFF", .must_fail = true},
};

int main(void)
{
    return store_sweep_all(sweeps, sizeof sweeps / sizeof *sweeps);
}
