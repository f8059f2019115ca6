#!/bin/bash
# `muster save --wait` when the launch ends before the attempt that was promised: the broker dies before the step is
# decided, and the rank before the save is tried again. The tool ends, and takes no later launch's round for its own.
. "$(dirname "$0")/../lib.sh"
listen=$ipc
tool_is_gone() { not is_ours "$tool"; }
job_is() { [ "$(query "SELECT state FROM job WHERE job = '$job'")" = "$1" ]; }
is_freezing() { [ -n "$(query "SELECT 1 FROM round WHERE job = '$job' AND state = 'freezing'")" ]; }

# save_in_vain [stopped] - a launch, a save that is waited for, and the end of the launch before the next attempt.
save_in_vain() {
    local pid rank='' number

    broker_start
    rank_through=("$muster" run -n 1 --job "$job" --max-failures 0 --)
    ranks_start 1 --steps 100000 --step-ms 20 --say-every 10
    await "some steps" rank_said 0 'at step '
    for pid in $(cat "/proc/${pids[0]}/task/${pids[0]}/children"); do
        if grep -q prog_trainer "/proc/$pid/cmdline"; then rank=$pid; fi
    done
    kill -STOP "$rank" # it answers no freeze, and does not come back to the broker that starts next
    "$muster" save --wait --broker "$broker" --job "$job" --timeout "$patience" >"$dir/save.log" 2>&1 &
    tool=$!
    started+=("$tool")
    await "the round" is_freezing
    ask nodes --broker "$broker" >/dev/null # what the broker answered before has left it, too
    [ "${1:-}" != stopped ] || kill -STOP "$tool"
    broker_kill
    broker_start
    kill -KILL "$rank"
    await "the end of the launch" job_is ended
    number=$(query "SELECT max(round) FROM round WHERE job = '$job'")
    same "the last round" "$(query "SELECT cause, state, final, reason FROM round WHERE job = '$job' AND round = $number")" \
        "operator|aborted|0|the broker was restarted before a step was decided"
    await "the end of the supervisor" rank_is_gone 0
}

# tool_says PATTERN... - it ends with exit code 1, and soon.
tool_says() {
    local code=0 ended_ms

    ended_ms=$(now_ms)
    await "the end of muster save" tool_is_gone
    holds "ms that it takes" $(($(now_ms) - ended_ms)) -lt 5000
    wait "$tool" || code=$?
    same "exit code of muster save" "$code" 1
    says "$(cat "$dir/save.log")" "$@"
}

save_in_vain
tool_says "generation 1 of job $job ended before it saved" 'muster why round [0-9]'
broker_stop

# --- and a launch after it has saved by the time that the tool looks again
save_in_vain stopped
rank_through=()
ranks_start 1 --steps 100000 --step-ms 20 --say-every 10
await "the next launch" job_is running
"$muster" save --wait --broker "$broker" --job "$job" >/dev/null || fail "the next launch's save"
kill -CONT "$tool"
tool_says "generation 2 of job $job ended before it saved" 'muster why round [0-9]'
finish "muster save --wait ends with the launch whose save it waits for, and takes no other launch's save for it"
