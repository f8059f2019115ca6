#!/bin/bash
# `muster run` tells how far a long save is: lines in a log, a bar on a terminal, nothing where it was told to be quiet.
# The process that asks the broker ends with each launch, and with a supervisor that is killed.
. "$(dirname "$0")/../lib.sh"

job=words gate=$dir/gate log=$dir/run.log
broker_start
run_start() { # LOG OPTIONS... - leaves run_pid
    local log=$1
    shift
    rm -f "$dir/end"
    MUSTER_BROKER=$broker MUSTER_CHECKPOINT_DIR="$dir/ckpt" MUSTER_TEST_PROGRESS_MS=0 TRAINER_GROUP=$group-$job "$muster" run --job words -n 2 "$@" -- "$trainer" \
        --steps 100000 --step-ms 10 --sharded 1 --barrier 1 --save-every 50 --until-file "$dir/end" --save-fn 1 --save-gate "$gate" \
        </dev/null >"$log" 2>&1 &
    run_pid=$!
    started+=("$run_pid")
}
watcher() { # the process that asks
    local pid
    for pid in $(cat "/proc/$run_pid/task/$run_pid/children"); do
        [ "$(cat "/proc/$pid/comm")" != muster-saves ] || echo "$pid"
    done
}

# --- lines
run_start "$log"
has_saved() { [ "$(query "SELECT count(*) FROM checkpoint WHERE state = 'committed'")" -ge 1 ]; }
await "the first checkpoint" has_saved
: >"$gate" # from here a save stands with a half of it on the disk
told='muster run: save at step [0-9]+: [0-9.]+ k?B of [0-9.]+ k?B.* \(0 of 2 shards\)$'
has_line() { grep -qE -- "$1" "$log"; }
await "a line of how far it is" has_line "$told"
read -r _ _ _ _ _ step _ < <(grep -E "$told" "$log" | tail -n 1)
rm "$gate"
await "the end of the save" has_line "muster run: save at step ${step%:}: committed after [0-9.]+ s\$"
if grep -q $'\r\|\033' "$log"; then fail "a log has a terminal's characters"; fi

# --- a supervisor that is killed leaves no process
asks=$(watcher)
[ -n "$asks" ] || fail "no process asks for the saves"
kill -KILL "$run_pid"
gone() { not is_ours "$asks"; }
await "the process that asks to end" gone
all_gone() { not pgrep -f "$gate" >/dev/null; }
await "the ranks to end" all_gone

# --- a bar on a terminal; a line that comes takes it away
log=$dir/terminal.log
: >"$gate"
printf -v line '%q ' "$muster" run --job words -n 2 -- "$trainer" --steps 100000 --step-ms 10 --sharded 1 --barrier 1 --save-every 50 \
    --until-file "$dir/end" --save-fn 1 --save-gate "$gate"
MUSTER_BROKER=$broker MUSTER_CHECKPOINT_DIR="$dir/ckpt" MUSTER_TEST_PROGRESS_MS=0 TRAINER_GROUP=$group-$job \
    script -qefc "stty cols 70; exec $line" "$log" </dev/null >/dev/null 2>&1 &
run_pid=$!
started+=("$run_pid")
await "a bar" has_line $'save at step [0-9]+ \\[#+-+\\] '
rm "$gate"
await "the end of the bar" has_line $'\r\033\\[K.*muster run: save at step [0-9]+: committed after'
: >"$dir/end"
run_ended() { not is_ours "$run_pid"; }
await "the end of the job" run_ended
same "bars wider than the terminal" "$(tr '\r' '\n' <"$log" | grep -cE '^(.\[K)?save at step .{58}')" 0

# --- nothing is told where it was not asked for
log=$dir/quiet.log
run_start "$log" --log-level warning
await "ranks in training" has_line '^\[0\] opened'
same "processes that ask" "$(watcher)" ''
: >"$dir/end"
await "the end of the job" run_ended
if grep -q 'save at step' "$log"; then fail "it told of saves"; fi
