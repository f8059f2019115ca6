#!/bin/bash
# All ranks save together at each multiple of save_every_steps; nobody leaves, and the last save is resumed from.
. "$(dirname "$0")/../lib.sh"

broker_start
for job in replicated sharded; do
    options=(--save-every 25)
    [ "$job" = replicated ] || options+=(--sharded 1)
    [ "$job" = sharded ] || options+=(--barrier 1)
    ranks_start 3 --steps 90
    saved=0
    all_finished 90
    same "committed steps of job $job" "$(committed)" '25 50 75'
    [ "$job" = sharded ] || committed_whole 25
    same "causes" "$(query "SELECT DISTINCT cause FROM checkpoint WHERE job = '$job'")" policy
    ranks_start 3 --steps 110
    saved=75
    all_finished 110
    committed_whole 75 # its manifest too: if all had left before it was committed, this launch wrote it
    same "committed steps of job $job" "$(committed)" '25 50 75 100'
    same_why
    says "$story" "step 100" committed
done
finish "policy saves, both layouts: checkpoints at exactly the multiples, committed, nobody left, the last is resumed from"
