# lib_lossy.sh - the preemption of both layouts with a broker that throws away frames on PUB.
jobs_min=2 # of each script

# preempt_with_losses N - every N-th frame is lost.
preempt_with_losses() {
    needs_fail_points
    broker_start MUSTER_TEST_PUB_DROP="$1"
    for job in replicated sharded; do
        options=(--steps 120 --step-ms 5 --barrier 1 --signal-rank 2 --signal-step 40)
        [ "$job" = replicated ] || options+=(--sharded 1)
        ranks_start 3
        all_preempted
        committed_whole "$saved"
        same "aborted rounds" "$(query "SELECT count(*) FROM round WHERE job = '$job' AND state = 'aborted'")" 0
        # by unicast at once, not only when a heartbeat shows the gap: all of it, save and manifest included
        holds "ms from freeze to commit" \
            "$(query "SELECT max(ended_unix_ms - opened_unix_ms) FROM round WHERE job = '$job'")" -lt 1000
        ranks_start 3
        all_finished 120
        same_why
        says "$story" "step $saved" committed
    done
    jobs_resumed $jobs_min
}
