#!/bin/bash
# A rank is killed by SIGKILL: the others hear of it within the bounds, also from inside a collective.
. "$(dirname "$0")/../lib.sh"

declare -A options_of=([lockstep]='--barrier 1 --save-every 10' [apart]='--sharded 1 --step-ms 30')
broker_start
for job in lockstep apart; do
    ranks_start 3 --steps 1000 ${options_of[$job]} --kill-rank 2 --kill-step 35
    keep
done
for job in lockstep apart; do
    recall "$job"
    await "the death of rank 2" rank_is_gone 2
    died_ms=$(now_ms)
    ranks_end 1 0 1
    took_ms=$(($(now_ms) - died_ms))
    for rank in 0 1; do
        says "$(error_of "$rank")" 'status=MUSTER_E_PEER peer=2 ' 'rank 2 \(process [0-9]+ on' 'silent for [5-7]\.[0-9] s'
        each_has errors 1 "$rank"
    done
    [ "$job" = lockstep ] || continue
    holds "ms from the death to the last of the others" "$took_ms" -lt 9000
    same "the newest checkpoint" "$(ask latest --db "$db" | grep -o '^[0-9]*')" 30
    ranks_start 3 --steps 60 --barrier 1
    saved=30
    all_finished 60
    recall "$job"
done
finish "a rank killed by SIGKILL: the others end with MUSTER_E_PEER, rank and reason, after 5 s of silence; nothing hangs" \
    "the restart resumes from the newest policy save"
