#!/bin/bash
# Workers are killed at a hundred and fifty random moments, idle, busy or just given something. No task ends a worker, so
# none is lost for it: each ends once, and the queue never stops.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_tasks.sh"
listen=$ipc
patience=120
kills=${TASKS_KILLS:-150}
workers_max=6

broker_start
for ((index = 0; index < workers_max; index++)); do worker_start "$index"; done
total=0
for ((killed = 0; killed < kills;)); do
    : >"$TASKS_LOG"
    coordinate_behind run 300
    for ((burst = 0; burst < 8 && killed < kills; burst++)); do
        # What the kill before took has been tried again by then: one of the six is ended, and its task goes first.
        goal=$(($(attempts) + 12 + RANDOM % 60))
        attempts_or_end() { attempts_at_least "$goal" || coordinator_is_gone; }
        await "tasks that run" attempts_or_end
        if coordinator_is_gone; then break; fi
        index=$((RANDOM % workers_max))
        worker_kill "$index"
        worker_start "$index"
        killed=$((killed + 1))
    done
    # Between two lots all are idle.
    coordinator_ends
    same "tasks" "$(ended)" "300 taken, 300 ended"
    attempts_right 300 3
    total=$((total + 300))
    if [ "$killed" -lt "$kills" ]; then
        index=$((RANDOM % workers_max))
        worker_kill "$index"
        worker_start "$index"
        killed=$((killed + 1))
    fi
    invariants
done
workers_stop
finish "workers killed at $killed random moments, $total tasks: each ended once, and none was lost"
