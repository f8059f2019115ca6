#!/bin/bash
# Four idle workers are killed, each just before a task is given to it. The task never began anywhere, so nothing was lost:
# the fifth worker does it, in its first attempt.
# Rules: R20.5.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_tasks.sh"

given_to() { [ "$(query "SELECT worker_index FROM task WHERE state = 'leased'")" = "$1" ]; }

broker_start
for index in 0 1 2 3; do
    worker_start "$index"
    await "worker $index" workers_are_there
    kill -STOP "${workers[$index]}"
    [ "$index" != 0 ] || coordinate_behind run 1
    await "the task given to worker $index" given_to "$index"
    worker_kill "$index"
done
worker_start 4
coordinator_ends
attempts_right 1 1
finish "four workers killed just before a task was given to them: the task is done in its first attempt"
