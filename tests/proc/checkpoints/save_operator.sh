#!/bin/bash
# `muster save --wait`: an agreed checkpoint now, and the training goes on.
. "$(dirname "$0")/../lib.sh"

broker_start
for job in replicated sharded; do
    options=(--steps 300 --say-every 20)
    [ "$job" = replicated ] || options+=(--sharded 1)
    [ "$job" = sharded ] || options+=(--barrier 1)
    ranks_start 3
    await "step 20" rank_said 0 'at step 20$'
    answer=$("$muster" save --wait --broker "$broker" --job "$job") || fail "muster save: exit code $?: $answer"
    says "$answer" 'committed at step [0-9]+'
    saved=$(committed)
    says "$answer" "step $saved\\b"
    saved_before=$saved saved=0
    all_finished 300
    saved=$saved_before
    committed_whole "$saved"
    same "cause" "$(query "SELECT cause FROM checkpoint WHERE job = '$job'")" operator
    same_why
    says "$story" "step $saved" committed
done
if "$muster" save --wait --broker "$broker" --job nosuch >"$dir/answer" 2>&1; then
    fail "muster save of an unknown job succeeded"
fi
says "$(cat "$dir/answer")" nosuch 'its jobs are' replicated sharded
finish "operator's saves, both layouts: committed, nobody left, all steps run once" "an unknown job is named, with those there are"
