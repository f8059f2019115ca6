/* Every call of the broker's database to its disk, with every fault. */
#include "tests/faults/store_sweep.h"

#define CHANGES (FAULT_CALL_WRITE | FAULT_CALL_TRUNCATE | FAULT_CALL_SYNC | FAULT_CALL_DELETE)
#define LOCKS (FAULT_CALL_LOCK | FAULT_CALL_SHM_LOCK)
#define CUT(percent) .calls = CHANGES, .fault = FAULT_CUT, .keep = (percent), .points_min = 523
#define BUSY .calls = LOCKS, .fault = FAULT_BUSY, .points_min = 130
#define AND_ALL_AFTER_IT .sticky = true
#define CONTROL .stride = 5, .must_fail = true

static const struct store_sweep sweeps[] = {
    {"EIO, any call, and the power goes later", STORE_SWEEP(ANY, IO), .then_cut = true,
     .points_min = 863},
    {"EIO and all after it, any call", STORE_SWEEP(ANY, IO), AND_ALL_AFTER_IT, .points_min = 863},
    {"EIO and all after it, syncs", STORE_SWEEP(SYNC, IO), AND_ALL_AFTER_IT, .points_min = 55},
    {"ENOSPC, writes", STORE_SWEEP(WRITE, FULL), .points_min = 456},
    {"ENOSPC and all after it, writes", STORE_SWEEP(WRITE, FULL), AND_ALL_AFTER_IT,
     .points_min = 456},
    {"EDQUOT and all after it, writes", STORE_SWEEP(WRITE, QUOTA), AND_ALL_AFTER_IT,
     .points_min = 456},
    {"short, then EIO, writes", STORE_SWEEP(WRITE, SHORT), .points_min = 456},
    {"short, then ENOSPC, writes", STORE_SWEEP(WRITE, SHORT_FULL), .points_min = 456},
    {"busy, locks", BUSY},
    {"busy and all after it, locks", BUSY, AND_ALL_AFTER_IT},
    {"power cut in any change, nothing kept", CUT(0)},
    {"power cut in any change, half kept", CUT(50)},
    {"power cut in any change, most kept", CUT(90)},
    {"control: without syncs", STORE_SWEEP(WRITE, CUT), CONTROL,
     .settings = "PRAGMA synchronous=OFF"},
    {"control: commits are not synced", STORE_SWEEP(WRITE, CUT), CONTROL,
     .settings = "PRAGMA synchronous=NORMAL"},
    {"control: told before it is written", STORE_SWEEP(WRITE, IO), CONTROL, .tell_first = true},
};

int main(void)
{
    return store_sweep_all(sweeps, sizeof sweeps / sizeof *sweeps);
}
