#!/bin/bash
# A parameter server that is preempted by SIGTERM and leaves with the restart code, and one that fails with code 1: the
# coordinator's calls name it until it is back, and its tasks are all done.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_tasks.sh"
. "$(dirname "$0")/../lib_members.sh"

begun() { [ "$(query "SELECT ifnull(max(begun), 0) FROM progress")" -ge 1 ]; }
is_named() { grep -q "unavailable: parameter server 0 of job job (process ${members[$1]} on .*) $2 and is not back" "$dir/coordinator.log"; }
all_at_work() { attempts_at_least 2; }

broker_start
worker_start 0 2
member_start chief
member_start ps_watch
await "the parameter server" there_is ps_watch ps
await "the worker" workers_are_there
await "the first step" begun

coordinate_behind lost_ps 10 "was preempted"
await "tasks that run" all_at_work
kill -TERM "${members[ps_watch]}"
member_ended ps_watch 42
member_ended chief 42 # the launch is over for all
await "the calls that name it" is_named ps_watch "was preempted"
member_start chief # the next launch misses it, too
await "its chief" there_is chief chief
not coordinator_is_gone || fail "the calls did not wait for the server: the chief alone was enough"
member_start ps
coordinator_ends
attempts_right 11 1

: >"$TASKS_LOG" >"$dir/coordinator.log"
coordinate_behind lost_ps 10 failed
await "tasks that run" all_at_work
kill -USR1 "${members[ps]}"
member_ended ps 1
await "the calls that name it" is_named ps failed
member_start ps
coordinator_ends
attempts_right 11 1

coordinate run 5 # once it is back nobody is told of it
member_ends ps
member_ends chief
workers_stop
finish "a parameter server that is preempted, and one that fails, is named by schedule, join and done until it is back, in the" \
    "next launch as well"
