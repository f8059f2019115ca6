#!/bin/bash
# `muster run` starts the ranks, restarts all of them when they leave with the restart code, and says what happened.
. "$(dirname "$0")/../lib.sh"

broker_start
for job in replicated sharded; do
    layout=0
    [ "$job" = replicated ] || layout=1
    code=0
    TRAINER_GROUP=proc-$$-$job MUSTER_CHECKPOINT_DIR="$dir/checkpoints-$job" \
        timeout "$hangs_after" "$muster" run -n 3 --job "$job" --broker "$broker" -- "$trainer" --steps 120 --barrier 1 \
        --sharded $layout --signal-rank 1 --signal-step 30 --signal-again-step 70 >"$dir/$job.log" 2>&1 || code=$?
    same "exit code of muster run" "$code" 0
    steps=$(committed)
    same "checkpoints" "$(wc -w <<<"$steps")" 2
    first=${steps% *} second=${steps#* }
    # Each of three lives of each of three ranks: what it resumed, did, and where it stood.
    for life in "resumed=0 computed=$first done=$first" \
        "resumed=$first computed=$((second - first)) done=$second" \
        "resumed=$second computed=$((120 - second)) done=120"; do
        same "ranks that had $life" "$(grep -c "trainer: .* $life " "$dir/$job.log")" 3
    done
    sed -n 's/.* sum=\([0-9]*\) expected=\([0-9]*\) .*/\1 \2/p' "$dir/$job.log" >"$dir/sums"
    while read -r sum expected; do
        same "sum" "$sum" "$expected"
    done <"$dir/sums"
    committed_whole "$second"
done
finish "muster run, both layouts: preempted twice, restarted twice, each life resumed where the last one saved, exit code 0"
