#!/bin/bash
# Tasks beside a training, parameter servers that are lost, and values that are being made when their worker is killed.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_tasks.sh"
. "$(dirname "$0")/../lib_members.sh"

steps_of() { query "SELECT ifnull(max(begun), 0) FROM progress"; }
begun() { [ "$(steps_of)" -ge 1 ]; }
said_unavailable() { grep -q unavailable "$dir/coordinator.log"; }

broker_start

# A worker that lives in the node of a training: the steps go on while its tasks run, and it is lost with the node.
member_start beside
await "the first step" begun
coordinate beside 60
member_killed beside
worker_lost() { [ "$(query "SELECT state FROM task_worker WHERE worker_index = 0")" = lost ]; }
node_lost() { grep -q 'rank 0 .* was lost' "$dir/musterd.log"; } # cheaper to ask than the database
await "the node's loss" node_lost
await "the worker's loss" worker_lost

# A worker and the parameter server are killed together in the middle of tasks: calls name the one, and need the other
# no more than its tasks, which go to the next.
member_start chief
member_start ps
await "the parameter server" there_is ps ps
for index in 0 1; do worker_start "$index"; done
await "the workers" workers_are_there
: >"$TASKS_LOG" >"$dir/coordinator.log"
coordinate_behind lost_ps 100
await "tasks that run" attempts_at_least 5
worker_kill 1
member_killed ps
await "the calls that name it" said_unavailable
member_start ps
coordinator_ends
attempts_right 101 3
same "tasks" "$(ended)" "101 taken, 101 ended"
forgotten=$((101 - $(query "SELECT count(*) FROM task"))) # what nobody held when a beat came
says "$(ask tasks --broker "$broker")" "^main +101 +0 +0 +[0-9]+ +0 +0 +$forgotten +[0-9]+"
says "$(ask status "$job" --broker "$broker")" "^  tasks +queue main: 101 of 101 have ended, 0 at workers"
member_ends ps
member_ends chief

# A worker is killed while it makes its value; another, that has made it, comes back and makes it again.
worker_start 1
worker_start 2
await "the workers" workers_are_there
: >"$TASKS_LOG"
coordinate_behind values
making() { [ "$(grep -cx '1 0' "$TASKS_LOG")" -ge 3 ]; }
await "all to make their values" making
worker_kill 1
used() { [ "$(query "SELECT ended FROM task_queue")" = 24 ]; }
await "the tasks, without it" used
worker_kill 0
worker_kill 2
before=$(grep -cx '1 0' "$TASKS_LOG")
worker_start 0
await "the one that comes back" workers_are_there
kill -USR1 "$coordinator"
coordinator_ends
same "how often the one that came back made its value" "$(($(grep -cx '1 0' "$TASKS_LOG") - before))" 1
workers_stop
finish "tasks beside a training that goes on; a lost parameter server is named until it is back, with a worker killed beside" \
    "it; values in the making at a killed worker, and made again by one that comes back"
