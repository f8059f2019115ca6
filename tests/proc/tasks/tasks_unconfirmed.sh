#!/bin/bash
# Four workers are killed, each between the decision to give it a task and the message that says so. The task never began
# anywhere, so nothing was lost: the fifth worker does it, in its first attempt. The broker stands before it sends a task,
# so that each worker is stopped in time.
# Rules: R20.5.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_tasks.sh"

needs_fail_points
order=$dir/order orders=0
# An order counts once, and again when it reads otherwise: 1, 01, 001, ...
stop_before_work() {
    orders=$((orders + 1))
    printf 'stop send_before:WORK:%0*d\n' "$orders" 1 >"$order.new"
    mv "$order.new" "$order"
}
broker_stands() { grep -q '^State:.T' "/proc/$broker_pid/status"; }
given_to() { [ "$(query "SELECT worker_index FROM task WHERE state = 'leased'")" = "$1" ]; }
# The broker sends a task again until its worker is lost. If it stands for the worker before, it goes on.
is_about_to_hear() {
    broker_stands || return 1
    given_to "$1" && return
    stop_before_work
    kill -CONT "$broker_pid"
    return 1
}

broker_start MUSTER_FAIL_POINT_FILE="$order"
coordinate_behind run 1
for index in 0 1 2 3; do
    stop_before_work
    worker_start "$index"
    await "the task given to worker $index" is_about_to_hear "$index"
    kill -STOP "${workers[$index]}"
    kill -CONT "$broker_pid"
    worker_kill "$index"
done
worker_start 4
coordinator_ends
attempts_right 1 1
finish "four workers killed when a task was on its way to them: the task is done in its first attempt"
