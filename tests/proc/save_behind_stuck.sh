#!/bin/bash
# A save that never ends behind the training thread keeps no process beyond its own deadline, by either
# exit policy. The gate holds save_fn and is there until the end.
. "$(dirname "$0")/lib.sh"

gate="$dir/gate"
grace_ms=4000
options=(--behind 1 --save-fn 1 --save-gate "$gate" --say-every 10 --step-ms 2 --grace-ms $grace_ms --steps 1000000)

# stick [OPTION VALUE...] - a job of one rank whose save stands still.
stick() {
    ranks_start 1 "$@"
    await "step 10 of job $job" rank_said 0 'at step 10$'
    "$muster" save --broker "$broker" --job "$job" >/dev/null
    await "the save of job $job" rank_said 0 '^in the save of step'
    keep
}

# ended_within MS SINCE WHAT
ended_within() {
    until rank_is_gone 0; do
        [ $(($(now_ms) - $2)) -lt "$1" ] || fail "job $job: $3, and the process is there after $1 ms"
        sleep 0.02
    done
}

nothing_committed() {
    same "checkpoints of job $job" "$(committed)" ''
    same "committed rounds of job $job" "$(query "SELECT count(*) FROM round WHERE job = '$job' AND state = 'committed'")" 0
    rank_said 0 '^log 1: the save .* is left unfinished' || fail "job $job: nothing says that the save was left"
}

broker_start
touch "$gate"
job=returns && stick
job=exits && stick --exit-policy 1

# --- its own deadline: both policies at once
told_ms=$(now_ms)
for job in returns exits; do
    recall $job && kill -TERM "${pids[0]}"
done
for job in returns exits; do
    recall $job
    ended_within $grace_ms "$told_ms" "$grace_ms ms were left"
    rank_ends 0 42
    nothing_committed
done
recall returns && each_has status MUSTER_PREEMPTED

finish "a save that stands still in the background keeps no process beyond its own deadline; it is not committed, and the log says so"
