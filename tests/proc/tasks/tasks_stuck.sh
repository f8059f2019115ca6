#!/bin/bash
# A task that says nothing is named before its time is over: in the journal, the log, `muster tasks` and `muster why task`,
# of a job that has nothing but tasks; the next attempt begins without it.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_tasks.sh"

named='task 1 \(slow\) of queue main has said nothing for [0-9]+ s, at worker 0 \(process [0-9]+ on .*\)'
is_named() { grep -q 'has said nothing' "$dir/musterd.log"; } # written before it is logged
at_attempt() { [ "$(query "SELECT attempt FROM task WHERE id & 1099511627775 = 1 AND state = 'leased'")" = "$1" ]; }

broker_start
worker_start 0
await "the worker" workers_are_there
since() { query "SELECT unix_ms FROM task_worker"; }
begun=$(since)
coordinate_behind silent
await "its name" is_named
kill -STOP "$broker_pid" # its time stands still, so that the attempt is not over while it is looked at
says "$(ask tasks 1 --db "$db")" "leased +slow .*$named"
says "$(ask why task 1 --db "$db")" "makes no progress.*$named" 'Next: look at that process'
kill -CONT "$broker_pid"
await "its next attempt" at_attempt 2
same "since when the worker is there: it said one HELLO" "$(since)" "$begun"
not grep -q stuck <<<"$(ask why task 1 --broker "$broker")" || fail "the attempt that is over is told of the new one"
says "$(ask events --broker "$broker" --job "$job")" "stuck .*$named"
same "how often it was named" "$(query "SELECT count(*) FROM event WHERE text LIKE 'task 1 %' AND unix_ms <
    (SELECT leased_unix_ms FROM task)")" 1
says "$(cat "$dir/musterd.log")" "$named"
says "$(ask status --broker "$broker")" "^job $job: not launched; .muster tasks. shows its tasks$"
kill -KILL "$coordinator"
await "the coordinator's death" coordinator_is_gone
workers_stop
finish "a task without a word is named once, before it is taken away: event, log, muster tasks, muster why task"
