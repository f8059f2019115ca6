#!/bin/bash
# A save_fn that fails, one that returns when the time is over, and one that never does: named, and nothing committed is lost.
. "$(dirname "$0")/../lib.sh"

broker_start
for job in fails late hangs; do
    signalled=0
    case $job in
    fails) bad=(--save-fails-rank 1) ;;
    late) bad=(--save-late-rank 1 --save-late-ms 5000) ;;
    hangs) signalled=1 bad=(--save-late-rank 1 --save-late-ms 600000 --exit-policy 1) ;;
    esac
    options=(--sharded 1 --barrier 1 --save-fn 1 --grace-ms 3000)
    ranks_start 3 --steps 30 --save-every 20
    ranks_end 0
    ranks_start 3 --steps 100 --signal-rank $signalled --signal-step 50 "${bad[@]}"
    keep
done
recall fails
ranks_end 42
same "culprit" "$(query "SELECT DISTINCT culprit_rank FROM round WHERE job = 'fails' AND state = 'aborted'")" 1
says "$(error_of 2)" MUSTER_PREEMPTED 'no checkpoint was committed' 'rank 1' 'save_fn returned 5: CUDA . out of.memory at step'
same_why
says "$story" 'rank 1' 'save_fn returned 5: CUDA . out of.memory at step'
recall late
began_ms=$(now_ms)
ranks_end 42 0 2
holds "ms that the others waited for the late one" $(($(now_ms) - began_ms)) -lt 4000
ranks_end 42 1
same "culprit" "$(query "SELECT DISTINCT culprit_rank FROM round WHERE job = 'late' AND state = 'aborted'")" 1
says "$(error_of 2)" MUSTER_PREEMPTED 'no checkpoint was committed' 'rank 1'
same_why
says "$story" 'rank 1' 'step 20'
recall hangs
began_ms=$(now_ms)
ranks_end 42 # rank 1's agent ends it: its training thread never comes back
holds "ms until the one that hangs was ended, too" $(($(now_ms) - began_ms)) -lt 8000
left_preempted() { [ "$(query "SELECT leave_why FROM node WHERE job = 'hangs' AND rank = 1 ORDER BY rowid DESC LIMIT 1")" = preempted ]; }
await "the record of how it left" left_preempted
for job in fails late hangs; do
    same "committed" "$(committed)" 20
    launch=$((launch + 1))
    ranks_start 3 --steps 60
    saved=20
    all_finished 60
done
finish "a save_fn that fails, is late or never returns: rank and reason named, restart code at the margin, the older checkpoint resumed from"
