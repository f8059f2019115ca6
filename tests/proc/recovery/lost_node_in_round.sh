#!/bin/bash
# A rank dies between the decision and its save, while the others stand in a collective of that step.
. "$(dirname "$0")/../lib.sh"

broker_start
for job in replicated sharded; do
    layout=0
    [ "$job" = replicated ] || layout=1
    ranks_start 3 --steps 60 --barrier 1 --sharded $layout --signal-rank 0 --signal-step 40 --slow-rank 2 --slow-step 40 \
        --slow-ms 800 --kill-rank 2 --kill-step 40
    keep
done
recall replicated # the survivors break the step off and save what all of them have: one step less
ranks_end 42 0 1
each_has done 39 0 1
sums=$(field 0 sum)
same "sum of rank 0" "$sums" "$(field 0 expected)"
committed_whole 39
same_why
says "$story" 'rank 2' 'step 39'
ranks_start 3 --steps 60 --barrier 1
saved=39
all_finished 60

recall sharded # a shard is missing: nothing can be saved, and why says whose
ranks_end 42 0 1
same "checkpoints" "$(committed)" ''
same "culprit" "$(query "SELECT DISTINCT culprit_rank FROM round WHERE job = '$job' AND state = 'aborted'")" 2
same_why
says "$story" 'rank 2' lost 'was left without a checkpoint'
says "$("$muster" status --job "$job" --broker "$broker")" preempted
ranks_start 3 --steps 60 --barrier 1 --sharded 1
saved=0
all_finished 60
finish "a rank lost inside a round: replicated commits one step less without it; sharded aborts and names it; who leaves wants to be begun again"
