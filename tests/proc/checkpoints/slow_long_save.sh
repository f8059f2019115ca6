#!/bin/bash
# Saves of more than 60 s in real processes: one whose save_fn tells that it comes further is waited for, by the broker and by the
# ranks that stand at its step, in the foreground and behind the training; one that tells nothing is given up.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_manager.sh"

listen=$ipc
patience=300
declare -A rules=(
    [told]='--progress 1 --ask 1'
    [sharded]='--progress 1 --sharded 1 --slow-rank 1' # rank 0 waits for what rank 1 writes
    [behind]='--progress 1 --behind 1'
    [silent]=''
)
broker_start
for job in told sharded behind silent; do
    read -ra options <<<"${rules[$job]} --given 1 --save-ms 70000 --step-ms 20"
    ranks_start 2 --steps 4
    keep
done

for job in told sharded behind; do
    recall $job
    ranks_end 0
    all_have_saved 1
    listed 1
    holds "ms that the save of job $job took" "$(query "SELECT total_ms FROM checkpoint WHERE job = '$job'")" -ge 70000
done

recall silent
ranks_end 0
listed ''
for rank in 0 1; do says "$(error_of "$rank")" 'step 1 was not saved' 'did not finish its save'; done
finish "a save of 70 s that tells how far it came is waited for by the broker and by the other rank, in the foreground, sharded and behind" \
    "one that tells nothing for 60 s is given up, and named"
