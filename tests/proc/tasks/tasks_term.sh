#!/bin/bash
# A worker under `muster run` that gets SIGTERM: what runs is run to its end and counts, what waits is given back, neither is
# a loss, and the worker has left.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_tasks.sh"

rows() { query "SELECT group_concat(state || ' ' || attempt || ' ' || losses, ', ') FROM (SELECT * FROM task ORDER BY id)"; }
rows_are() { [ "$(rows)" = "$1" ]; }
all_are_there() { rows_are "leased 1 0, leased 1 0, leased 1 0" && attempts_at_least 1; }
run_is_over() { not is_ours "$run"; }
run_ends() { # CODE
    local code=0

    await "the end of muster run" run_is_over
    wait "$run" || code=$?
    same "exit code of muster run" "$code" "$1"
}

broker_start
MUSTER_JOB=$job "$muster" run -n 1 --job "$job" --broker "$broker" -- "$tasks" worker 1 2 </dev/null >"$dir/run.log" 2>&1 &
run=$!
started+=("$run")
coordinate_behind hold
await "a task that runs and two that wait behind it" all_are_there
kill -TERM "$run"
await "those that wait to be given back" rows_are "leased 1 0, queued 0 0, queued 0 0"
touch "$TASKS_LOG.go"
run_ends 0
same "tasks after the worker's end: state, attempt, losses" "$(rows)" "done 1 0, queued 0 0, queued 0 0"
same "the worker" "$(query "SELECT state FROM task_worker")" left
worker_start 0
coordinator_ends
same "tasks after another worker: state, attempt, losses" "$(rows)" "done 1 0, done 1 0, done 1 0"
attempts_right 3 1
workers_stop
finish "SIGTERM under muster run: what ran was done, what waited was given back, neither counts as a loss"
