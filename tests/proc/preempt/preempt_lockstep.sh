#!/bin/bash
# One rank of a job in lockstep (a collective in every step) gets SIGTERM.
. "$(dirname "$0")/../lib.sh"

broker_start
for job in replicated sharded; do
    options=(--steps 120 --step-ms 5 --barrier 1 --signal-rank 1 --signal-step 40)
    [ "$job" = replicated ] || options+=(--sharded 1)
    ranks_start 3
    all_preempted
    holds "steps before the save" "$saved" -ge 40
    committed_whole "$saved"
    ranks_start 3
    all_finished 120
    same_why
    says "$story" "step $saved" committed SIGTERM
done
finish "in lockstep, both layouts: SIGTERM at one rank, all save at one step, leave with the restart code, resume there"
