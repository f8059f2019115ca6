#!/bin/bash
# One rank cannot write its shard: the round aborts and names it, and what was committed stays.
. "$(dirname "$0")/../lib.sh"

broker_start
options=(--barrier 1 --sharded 1 --cells 8192 --grace-ms 3000)
ranks_start 3 --steps 30 --save-every 20
ranks_end 0
same "committed" "$(committed)" 20
ranks_start 3 --steps 100 --signal-rank 0 --signal-step 50 --limit-rank 2 --limit-bytes 16384
await "rank 0 to resume" rank_said 0 '^opened' # now it has its manifest, whenever the ranks left before
checkpoint="$dir/checkpoints-$job/20"
files=$(cd "$checkpoint" && find . -type f | sort | xargs -d '\n' cksum)
began_ms=$(now_ms)
ranks_end 42
holds "ms to leave" $(($(now_ms) - began_ms)) -lt 8000
same "committed" "$(committed)" 20
same "files of the older checkpoint" "$(cd "$checkpoint" && find . -type f | sort | xargs -d '\n' cksum)" "$files"
same "culprit" "$(query "SELECT DISTINCT culprit_rank FROM round WHERE state = 'aborted'")" 2
holds "rounds, a full disk does not loop" "$(query "SELECT count(*) FROM round WHERE state = 'aborted'")" -le 3
for rank in 0 1 2; do
    says "$(error_of "$rank")" MUSTER_PREEMPTED 'no checkpoint was committed' 'rank 2'
done
same_why
says "$story" 'rank 2' 'File too large' 'step 20'
say "$story"
ranks_start 3 --steps 100
saved=20
all_finished 100
same "leftovers" "$(ls -A "$dir/checkpoints-$job")" "$(printf '%s\n' .muster 20)"
finish "a shard that cannot be written: the culprit is named, the older checkpoint is untouched and resumed from"
