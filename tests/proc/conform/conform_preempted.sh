#!/bin/bash
# As PreemptionCheckpointHandler, seeds of its tests: 4 ranks, 8 epochs of 15 steps; a random rank is told to end at a
# random step, without grace: one checkpoint, all leave with 42, the restart ends with the whole sum.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_conform.sh"

broker_start
for form in run check scope; do
    conform "no-grace-$form" 4 0 --form $form
    ends_whole 4 2 1
    same "checkpoints in the database" "$(committed | wc -w)" 1
done
finish "a notice on a random rank, no grace: run, the check call and the scope give the whole sum and one checkpoint"
