#!/bin/bash
# SIGTERM before the first step, while a rank is still missing: nothing is newer than what was resumed from.
. "$(dirname "$0")/../lib.sh"

# some_join - all but the last of three ranks are there; one of them is told to leave.
some_join() {
    local rank

    world=3 launch=$((launch + 1)) pids=()
    for rank in 0 1; do
        rank_start "$rank" --barrier 0
    done
    for rank in 0 1; do
        await "rank $rank to join" rank_said "$rank" '^opened'
    done
    kill -TERM "${pids[1]}"
    all_preempted
    each_has computed 0
}

broker_start
for job in replicated sharded; do
    options=(--steps 100 --barrier 1)
    [ "$job" = replicated ] || options+=(--sharded 1)
    some_join
    same "step without a save" "$saved" 0
    same "checkpoints" "$(committed)" ''
    same "round" "$(query "SELECT state, step FROM round WHERE job = '$job'")" 'unchanged|0'
    ranks_start 3 --signal-rank 2 --signal-step 40
    all_preempted
    each_has resumed 0
    first=$saved
    some_join
    same "step without a save" "$saved" "$first"
    same "checkpoints" "$(committed)" "$first"
    same_why
    says "$story" "step $first"
    ranks_start 3
    all_finished 100
done
finish "SIGTERM while ranks are joining, both layouts: unchanged, no save, restart code; the next launch resumes as before"
