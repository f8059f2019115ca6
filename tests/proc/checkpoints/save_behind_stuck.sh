#!/bin/bash
# A save that never ends behind the training thread keeps no process beyond its time: not with a notice, by either exit
# policy, and not at the end of a program whose broker is gone. The gate holds save_fn and is there until the end.
. "$(dirname "$0")/../lib.sh"

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

# ended_within MS SINCE WHAT - the program's last line is there: what follows is the sanitizer's search for leaks, half
# a second on a busy host.
ended_within() {
    until rank_said 0 '^trainer: '; do
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
job=finishes && stick --until-file "$dir/enough"

# --- its own deadline: both policies at once
told_ms=$(now_ms)
for job in returns exits; do
    recall $job && kill -TERM "${pids[0]}"
done
for job in returns exits; do # before anything else is looked at: the time runs for both
    recall $job
    ended_within $grace_ms "$told_ms" "$grace_ms ms were left"
done
for job in returns exits; do
    recall $job
    rank_ends 0 42
    nothing_committed
done
recall returns && each_has status MUSTER_PREEMPTED

# --- the end of a program that nobody waits for any more
recall finishes
is_ours "${pids[0]}" || fail "what was still wanted was given up"
broker_kill
touch "$dir/enough"
closed_ms=$(now_ms)
# the broker is missed after 5 s of silence, the write gets 1.5 s to break off; the rest is for a loaded host
ended_within 20000 "$closed_ms" "its program is over and its broker gone"
say "the end without a broker took $(($(now_ms) - closed_ms)) ms"
rank_ends 0 0
broker_start
nothing_committed
finish "a save that stands still in the background keeps no process beyond its own deadline, and none whose broker is gone"
