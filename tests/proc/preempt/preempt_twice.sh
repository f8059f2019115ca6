#!/bin/bash
# Two preemptions in a row; then SIGTERM at all ranks at once; the host's own SIGTERM handler is called each time.
# A launch that is to be preempted has no end of its own in reach: however late the signal is heard, it is heard.
. "$(dirname "$0")/../lib.sh"

broker_start
for job in replicated sharded; do
    options=(--steps 100000000 --barrier 1 --host-handler 1)
    [ "$job" = replicated ] || options+=(--sharded 1)
    ranks_start 3 --signal-rank 1 --signal-step 30
    all_preempted
    first=$saved
    each_has handler 1 1
    each_has handler 0 0 2
    ranks_start 3 --signal-rank 1 --signal-step $((first + 40))
    all_preempted
    second=$saved
    each_has resumed "$first"
    each_has handler 1 1
    holds "the second save" "$second" -ge $((first + 40))
    ranks_start 3 --signal-rank -2 --signal-step $((second + 40))
    all_preempted
    each_has resumed "$second"
    each_has handler 1
    committed_whole "$saved"
    total=$((saved + 50))
    ranks_start 3 --steps "$total"
    all_finished "$total"
    same "checkpoints" "$(committed)" "$first $second $saved"
    same "rounds" "$(query "SELECT count(*) FROM round WHERE job = '$job'")" 3
done
finish "two preemptions in a row and one of all ranks at once, both layouts: each saved and resumed, one round each" \
    "the host's SIGTERM handler was called at each signal"
