#!/bin/bash
# SIGTERM in the very last step: close() is a boundary too, and saves.
. "$(dirname "$0")/../lib.sh"

broker_start
for job in replicated sharded; do
    options=(--steps 60 --barrier 1)
    [ "$job" = replicated ] || options+=(--sharded 1)
    ranks_start 3 --signal-rank 1 --signal-step 60 --slow-rank 1 --slow-step 60 --slow-ms 500
    all_preempted
    same "save step" "$saved" 60
    committed_whole 60
    ranks_start 3
    all_finished 60
done
# A signal that races with the end may come too late; then all finished. Whatever it is, it is the same for all.
for job in race0 race1; do
    options=(--steps 60 --step-ms 1 --barrier 1 --sharded "${job#race}")
    ranks_start 3 --signal-rank 1 --signal-step 60
    codes=()
    for rank in 0 1 2; do
        await "the end of rank $rank" rank_is_gone "$rank"
        code=0
        wait "${pids[rank]}" || code=$?
        codes+=("$code")
        [ "$code" = 0 ] || [ "$code" = 42 ] || fail "exit code of rank $rank: $code"
    done
    sums_right
    each_has done 60
    saved=$(committed)
    ranks_start 3
    saved=${saved:-0}
    all_finished 60
    say "a racing signal: exit codes ${codes[*]}"
done
finish "SIGTERM in the last step, both layouts: close saves it, and the restart has nothing left to compute"
