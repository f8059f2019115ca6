#!/bin/bash
# Workers, broker and coordinator are killed between and during tasks: every task ends once, results stay.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_tasks.sh"
listen=$ipc

broker_start
for index in 0 1 2; do worker_start "$index"; done

# Between tasks; the same one twice.
await "the workers" workers_are_there
coordinate run 20
worker_kill 0
coordinate run 20
worker_start 0
await "its next process" workers_are_there
worker_kill 0
coordinate run 20
worker_start 0

# During tasks: two of three at once, then their processes come back, and one of them is killed again.
: >"$TASKS_LOG"
coordinate_behind run 120 slow
await "tasks that run" attempts_at_least 10
worker_kill 1
worker_kill 2
invariants
worker_start 1
worker_start 2
await "their next processes" workers_are_there
await "a task at the one" has_a_task 1
worker_kill 1
not coordinator_is_gone || fail "the second kill came when all was done"
worker_start 1
coordinator_ends
attempts_right 120 3

# The broker.
: >"$TASKS_LOG"
coordinate_behind run 300
await "tasks that ran" attempts_at_least 30
broker_kill
invariants # while much is leased
broker_start
await "tasks that ran after its restart" attempts_at_least 150
broker_kill
broker_start
coordinator_ends
same "tasks" "$(ended)" "300 taken, 300 ended"
attempts_right 300 3

# The coordinator; then all workers, when all is done: the results are there.
: >"$TASKS_LOG"
coordinate begin 100
same "its tasks" "$(query "SELECT count(*) FROM task")" 100
await "its tasks, done without it" eval '[ "$(in_state "done")" = 100 ]'
invariants # while nothing is released
for index in 0 1 2; do worker_kill "$index"; done
coordinate attach 100
attempts_right 100 1

# The coordinator is killed while its tasks wait and run: who comes after it finds them.
for index in 0 1 2; do worker_start "$index"; done
await "the new workers" workers_are_there
: >"$TASKS_LOG"
coordinate_behind leave 50
are_taken() { [ "$(query "SELECT taken FROM task_queue WHERE name = 'main'")" = "$1" ]; }
await "its tasks" are_taken 50
await "tasks that run" attempts_at_least 3
kill_child "$coordinator" coordinator
same "tasks that were begun before its death" "$(attempts)" 3
touch "$TASKS_LOG.go"
coordinate attach 50
attempts_right 50 1
rm "$TASKS_LOG.go"

# And the error that no call had returned.
coordinate_behind leave_an_error
await "the failure" eval '[ "$(in_state failed)" = 1 ]'
await "its tasks" are_taken 21
kill_child "$coordinator" coordinator
coordinate attach_error
same "how they ended" "$(in_state failed), $(in_state cancelled)" "1, 20"

# A task that ends every worker.
: >"$TASKS_LOG"
coordinate_behind poisoned
poison_is_over() { workers_again && coordinator_is_gone; }
await "the end of a task that ends its workers" poison_is_over
coordinator_ends
same "how often it was tried" "$(attempts)" 3
workers_again
coordinate run 20
workers_stop
finish "workers killed between and during tasks, two at once, one twice; the broker twice under load; the coordinator," \
    "whose tasks and whose error the next one found, whose tasks went on and whose results outlived all workers; a task that ended three workers, by name"
