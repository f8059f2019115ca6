#!/bin/bash
# A program that watches SIGTERM and never comes to a boundary is not made immortal by that: once the job's end is
# settled it has abort_timeout_ms, then its process ends with the restart code. With a broker it leaves the job; without
# one the end of the grace settles it.
# Rules: R8.1.
. "$(dirname "$0")/../lib.sh"

hang() { # JOB - one rank of it
    job=$1 launch=1
    MUSTER_JOB=$job MUSTER_RANK=0 MUSTER_WORLD_SIZE=1 MUSTER_BROKER=$broker \
        MUSTER_CHECKPOINT_DIR=$dir/checkpoints-$job "$TESTS_DIR/proc/prog_setup" 500 3000 </dev/null >"$(log 0)" 2>&1 &
    pids=($!)
    started+=("${pids[0]}")
    await "the set-up that hangs" rank_said 0 'it hangs'
}
told() { # SIGTERM; how long it lived then, in $took
    local began

    began=$(now_ms)
    kill -TERM "${pids[0]}"
    rank_ends 0 42
    took=$(($(now_ms) - began))
}

left_preempted() { [ "$(query "SELECT state || ' ' || leave_why FROM node WHERE job = '$job'")" = "left preempted" ]; }

broker_start
hang heard
told
holds "ms that it had" "$took" -ge 500
await "the record of how it left" left_preempted
same_why
says "$story" SIGTERM
heard=$took

hang alone
broker_kill
told
holds "ms that it had without a broker" "$took" -ge 2500
broker_start
finish "SIGTERM to a rank that never reaches a boundary: it ended with the restart code after $heard ms, and after $took ms \
where no broker was there"
