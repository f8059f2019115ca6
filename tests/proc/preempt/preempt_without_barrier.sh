#!/bin/bash
# No collective keeps the ranks together: at the freeze they are far apart, and the one whose shard is needed in both
# layouts is inside a step of 2 s.
. "$(dirname "$0")/../lib.sh"

broker_start
for job in replicated sharded; do
    options=(--steps 200)
    [ "$job" = replicated ] || options+=(--sharded 1)
    ranks_start 3 --slow-rank 0 --slow-step 5 --step-ms 10 --slow-ms 2000 --signal-rank 2 --signal-step 60
    all_preempted
    round=$(query "SELECT round FROM round WHERE job = '$job' AND state = 'committed' AND step = $saved")
    behind=$(query "SELECT min(begun) FROM participant WHERE job = '$job' AND round = $round")
    furthest=$(query "SELECT max(begun) FROM participant WHERE job = '$job' AND round = $round")
    same "save step, the furthest rank's begun" "$saved" "$furthest"
    holds "steps between the ranks at the freeze" $((furthest - behind)) -ge 3
    same "begun of the rank in its long step" "$behind" 5
    committed_whole "$saved"
    ranks_start 3 --step-ms 1
    all_finished 200
    same_why
    says "$story" "step $saved" committed
done
finish "without a barrier, both layouts: ranks $((furthest - behind)) steps apart, one in a step of 2 s, all save at the furthest rank's step"
