#!/bin/bash
# The broker dies by SIGKILL when the decision is in the database and nobody heard of it, and is started again.
. "$(dirname "$0")/../lib.sh"

needs_fail_points
listen=$ipc
for job in replicated sharded; do
    options=(--steps 400 --barrier 1 --signal-rank 1 --signal-step 20)
    [ "$job" = replicated ] || options+=(--sharded 1)
    broker_start MUSTER_FAIL_POINT=commit_after:event-decision
    ranks_start 3 --step-ms 20
    broker_await_killed
    same "round that is decided" "$(query "SELECT round, state FROM round WHERE job = '$job'")" '1|decided'
    decided=$(query "SELECT step FROM round WHERE job = '$job'")
    same "committed checkpoints" "$(committed)" ''
    broker_start
    all_preempted
    committed_whole "$saved"
    same "decisions of round 1" \
        "$(query "SELECT count(*), max(step) FROM event WHERE job = '$job' AND kind = 'decision' AND round = 1")" "1|$decided"
    ranks_start 3 --step-ms 1
    all_finished 400
    same_why
    says "$story" "step $saved" committed \
        "the broker was restarted; it went on with round 1 at step $decided, which had been decided"
    broker_stop
done
finish "broker killed between decision and publish and started again, both layouts: all commit, nothing is decided twice"
