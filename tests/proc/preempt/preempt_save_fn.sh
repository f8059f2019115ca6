#!/bin/bash
# The user's own save_fn and restore_fn, several files a rank, and the exit policy EXIT.
. "$(dirname "$0")/../lib.sh"

broker_start
for job in replicated sharded; do
    options=(--steps 120 --barrier 1 --save-fn 1 --exit-policy 1 --signal-rank 0 --signal-step 40)
    [ "$job" = replicated ] || options+=(--sharded 1)
    ranks_start 3
    all_exited
    committed_whole "$saved"
    writers=1
    [ "$job" = replicated ] || writers=3
    same "files of the checkpoint" "$(query "SELECT count(*) FROM shard_file WHERE job = '$job'")" $((2 * writers))
    ranks_start 3
    all_finished 120
done
finish "save_fn and restore_fn with policy EXIT, both layouts: one step, the restart code, resumed, nothing lost"
