#!/bin/bash
# `muster tasks` and `muster why task`: where each task is and why, the same from the broker and from its database.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_tasks.sh"

# told ARGUMENTS... - the same answer from both; in $answer.
told() {
    local from_file

    answer=$(ask "$@" --broker "$broker") || fail "muster $*: exit code $?"
    from_file=$(ask "$@" --db "$db") || fail "muster $* --db: exit code $?"
    same "muster $* from the database file" "$from_file" "$answer"
}
in_states() { [ "$(query "SELECT group_concat(state, ' ') FROM (SELECT state FROM task ORDER BY id)")" = "$1" ]; }

broker_start
code=0
ask tasks --broker "$broker" >/dev/null 2>"$dir/none.log" || code=$?
same "exit code without a queue" "$code" 1
says "$(cat "$dir/none.log")" 'job job has no queue of tasks'
for word in foo 0; do
    code=0
    ask tasks "$word" --broker "$broker" >/dev/null 2>"$dir/none.log" || code=$?
    same "exit code of the word $word" "$code" 2
done

worker_start 0
await "the worker" workers_are_there
told tasks workers
says "$answer" "^ +0 +.* ${workers[0]} +live"
coordinate_behind stay
await "one task done, one at the worker, one queued" in_states "done leased queued"
told tasks
says "$answer" '^main +3 +1 +1 +1 +0 +0 +0 +1'
told tasks all
says "$answer" '^ +1 +main +done +echo' '^ +2 +main +leased +slow' '^ +3 +main +queued +echo'
told tasks leased --json
says "$answer" '"number": 2' '"state": "leased"' '"worker_index": 0'
told tasks 3
same "lines about one task" "$(wc -l <<<"$answer")" 2
told tasks workers
says "$answer" "^ +0 +.* ${workers[0]} +live .* 1 +main/2"
told why task 1
says "$answer" 'Task 1 \(echo\) of queue main of job job is done' 'with a result of 1 B'
told why task 2
says "$answer" "It is at worker 0 \(process ${workers[0]} on .*, which is live\)"
told why task 3
says "$answer" 'waits for its turn: 1 tasks are queued, and 1 workers have 1'

worker_kill 0
await "the worker's loss" in_states "done queued queued"
told why task 2
says "$answer" '1 times its worker was lost with it' 'no worker of job job is there'
told tasks workers
says "$answer" "lost"
code=0
ask why task 4 --broker "$broker" >/dev/null 2>"$dir/none.log" || code=$?
same "exit code of a task that is not there" "$code" 1
kill -KILL "$coordinator"
await "the coordinator's death" coordinator_is_gone
finish "queues, tasks by state and number, workers with what they hold, and why a task waits, runs or ended"
