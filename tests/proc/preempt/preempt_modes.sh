#!/bin/bash
# The two other forms of a training loop: save_if_preempted after each step, and scopes.
. "$(dirname "$0")/../lib.sh"

broker_start
for mode in 1 2; do
    for layout in 0 1; do
        job=mode$mode-layout$layout
        options=(--steps 120 --mode $mode --barrier $((1 - layout)) --sharded $layout --signal-rank 1 --signal-step 40)
        ranks_start 3
        all_preempted
        committed_whole "$saved"
        ranks_start 3
        all_finished 120
    done
done
job=policy options=(--mode 1 --save-every 20)
ranks_start 2 --steps 50
saved=0
all_finished 50
same "policy saves of a loop with checks" "$(committed)" '20 40'
finish "check and scope, both layouts: all save at one step, resume there, and lose nothing; policy saves in a loop with checks"
