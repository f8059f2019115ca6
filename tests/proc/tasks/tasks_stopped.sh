#!/bin/bash
# A worker that stands still for longer than its lease, with two tasks begun: another does them. When it goes on, its ends
# are told stale and its results, a short and a long one, are dropped: each task is done once. A broker that stands still
# gives a worker's index to no other process.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_tasks.sh"

tap="$TESTS_DIR/proc/prog_tap"
heard=$dir/heard # by the worker that stands still

tap_is_ready() { [ "$(head -n 1 "$heard")" = ready ]; }
is_heard() { grep -qx "$1" "$heard"; }
worker_is() { [ "$(query "SELECT count(*) FROM task_worker WHERE worker_index = $1 AND pid = ${workers[$1]} AND state = '$2'")" = 1 ]; }
rows() { query "SELECT group_concat(state || ' ' || attempt || ' ' || bytes, ', ') FROM (SELECT * FROM task ORDER BY id)"; }
rows_are() { [ "$(rows)" = "$1" ]; }
done_by() { query "SELECT group_concat(DISTINCT (SELECT worker_index FROM task_worker w WHERE w.incarnation = t.worker)) FROM task t"; }

broker_start
"$tap" "ipc://$dir/tap.sock" "$broker" </dev/null >"$heard" 2>"$dir/tap.log" &
started+=("$!")
await "the tap" tap_is_ready
direct=$broker broker="ipc://$dir/tap.sock"
worker_start 0 2
broker=$direct
coordinate_behind stopped
await "both tasks at work" attempts_at_least 2
kill -STOP "${workers[0]}"
await "its loss" worker_is 0 lost
worker_start 1 2
await "both tasks at work again" attempts_at_least 4
touch "$TASKS_LOG.go"
await "the ends at another" rows_are "done 2 10, done 2 200000"
same "who did them" "$(done_by)" 1
not grep -q taken "$heard" || fail "an end of the worker that stood still was answered before"

kill -CONT "${workers[0]}"
for task in 1 2; do await "the word that task $task is stale" is_heard "work_taken $task 1 MUSTER_E_STALE"; done
is_heard "part_taken 2 1 MUSTER_E_STALE" || fail "parts of a result that no longer counts were taken"
same "ends that count" "$(grep -c "MUSTER_OK" "$heard" || true)" 0
await "it to be back" worker_is 0 live
same "the tasks" "$(rows)" "done 2 10, done 2 200000"
same "who did them" "$(done_by)" 1
same "attempts" "$(sort "$TASKS_LOG" | xargs)" "1 1 1 2 2 1 2 2"
same "the queue" "$(ended)" "2 taken, 2 ended"
kill -USR1 "$coordinator" # which fetches once more, from the table
coordinator_ends
invariants

# It is a worker as any.
kill -TERM "${workers[1]}"
await "the other's end" worker_is 1 left
unset "workers[1]"
coordinate run 5

holder=${workers[0]}
worker_start 0 2
second=${workers[0]} workers[0]=$holder since_ms=$(now_ms)
await "it to ask for the index" passed_ms "$since_ms" 2000 # again and again, from then on
for stop in 1 2; do
    kill -STOP "$broker_pid"
    since_ms=$(now_ms)
    await "the time that it stands still" passed_ms "$since_ms" 3000
    kill -CONT "$broker_pid"
    coordinate run 5
    worker_is 0 live || fail "the worker lost its index while the broker stood still ($stop)"
done
kill_child "$second" "the second process of worker 0"
workers_stop
finish "a worker that stood still: its tasks done by another, both attempts begun under numbers of their own, its own ends told" \
    "stale and their results dropped, at the fetch and in the table; and it works on; a broker that stood still gave its index to no other"
