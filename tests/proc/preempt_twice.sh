#!/bin/bash
# Two preemptions in a row; then SIGTERM at all ranks at once; the host's own SIGTERM handler is called each time.
. "$(dirname "$0")/lib.sh"

broker_start
for job in replicated sharded; do
    options=(--steps 160 --barrier 1 --host-handler 1 --signal-rank 1 --signal-step 30 --signal-again-step 70)
    [ "$job" = replicated ] || options+=(--sharded 1)
    ranks_start 3
    all_preempted
    first=$saved
    each_has handler 1 1
    each_has handler 0 0 2
    ranks_start 3
    all_preempted
    each_has resumed "$first"
    each_has handler 1 1
    holds "the second save" "$saved" -ge 70
    ranks_start 3 --signal-rank -2 --signal-step 110 --signal-again-step 0
    second=$saved
    all_preempted
    each_has resumed "$second"
    each_has handler 1
    committed_whole "$saved"
    ranks_start 3
    all_finished 160
    same "checkpoints" "$(committed)" "$first $second $saved"
    same "rounds" "$(query "SELECT count(*) FROM round WHERE job = '$job'")" 3
done
finish "two preemptions in a row and one of all ranks at once, both layouts: each saved and resumed, one round each" \
    "the host's SIGTERM handler was called at each signal"
