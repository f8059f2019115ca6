#!/bin/bash
# The broker is killed at a hundred random moments under load: every task ends once, and none is begun too often.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_tasks.sh"
listen=$ipc
patience=120
kills=${TASKS_KILLS:-100}

broker_start
for index in 0 1 2 3; do worker_start "$index" 2 2; done
total=0
for ((killed = 0; killed < kills;)); do
    : >"$TASKS_LOG"
    coordinate_behind run 400
    for ((burst = 0; burst < 5 && killed < kills; burst++)); do
        # At a random moment: after so many more attempts, or soon after its start.
        goal=$(($(attempts) + RANDOM % 120))
        attempts_or_end() { attempts_at_least "$goal" || coordinator_is_gone; }
        await "tasks that run" attempts_or_end
        if coordinator_is_gone; then break; fi
        broker_kill
        invariants
        broker_start
        killed=$((killed + 1))
    done
    coordinator_ends
    same "tasks" "$(ended)" "400 taken, 400 ended"
    attempts_right 400 3
    total=$((total + 400))
done
workers_stop
finish "the broker killed at $killed random moments under load: $total tasks, each ended once, none begun more than three times; invariants hold in $checked readings"
