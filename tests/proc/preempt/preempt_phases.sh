#!/bin/bash
# A notice in every phase of a program's life: before the first step, also after a restart, in an evaluation without
# boundaries, while held, inside a save, in the last step, after close began. Each of the four ranks has another form of
# loop: run, the check call, a scope, and one that asks whether it will save.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_phases.sh"

broker_start
job=replicated
all_phases 4 -1 0 --stride 3
job=close-replicated
after_close 0
job=close-sharded
after_close 1
job=behind-replicated
one_is_behind 0
job=behind-sharded
one_is_behind 1
job=written-behind-replicated
written_behind 0
job=written-behind-sharded
written_behind 1
job=after-the-end
after_the_end
finish "a notice in every phase of four forms of a loop: each save at the agreed step, resumed there, the model bit for bit" \
    "a call of several steps counts as one; no save and no exit code but 42 when there is nothing newer to save" \
    "a notice while close() saves: the save becomes the termination's, the restart has nothing left to do" \
    "a notice while one shard of a save is still being written: that save is the termination's, at its step" \
    "a notice after the last check call: nobody begins again from an older checkpoint"
