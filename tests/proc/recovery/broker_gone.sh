#!/bin/bash
# The broker is killed for good: nodes train on, finish, and a noticed one leaves by its own deadline. And one that stands
# still while a launch joins: what is over when it goes on is not the time to join.
# Rules: R7.7, R9.7.
. "$(dirname "$0")/../lib.sh"

broker_start
options=(--say-every 10)
job=together && ranks_start 3 --steps 300 --barrier 1 && keep
# Done long after the margin of the noticed one, whose end is timed: a search for leaks is no part of that.
job=apart && ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0 ranks_start 3 --steps 800 --grace-ms 3000 && keep
job=last && ranks_start 1 --steps 100000 --until-file "$dir/enough" --grace-ms 3000 && keep
for job in together apart last; do
    recall "$job"
    for rank in "${!pids[@]}"; do
        await "step 10" rank_said "$rank" 'at step 10$'
    done
done
broker_kill
kill -TERM "${pids[0]}" # of the job that is done before its margin, and closes during it
touch "$dir/enough"
recall apart
told_ms=$(now_ms)
kill -TERM "${pids[1]}"
ranks_end 42 1
took_ms=$(($(now_ms) - told_ms))
# It begins to leave at 1000 ms and takes half a second; where many wait for each core, nobody can tell (unit.member_end does).
[ "$took_ms" -lt 3000 ] || [ "$(cut -d. -f1 /proc/loadavg)" -ge 8 ] || fail "told to end in 3000 ms, without a broker, rank 1 was gone after $took_ms ms"
say "told to end in 3000 ms, without a broker, rank 1 was gone after $took_ms ms"
says "$(error_of 1)" MUSTER_PREEMPTED 'no checkpoint was committed'
ranks_end 0 0 2
each_has done 800 0 2
recall last
ranks_end 0
each_has status MUSTER_OK
recall together
ranks_end 0
each_has done 300
sums_right
says "$("$muster" status --db "$dir/state/muster.db")" "^as of .*: no musterd runs on $dir/state/muster.db now"
read -r pid space <"$dir/state/muster.db.lock"
[ -n "$space" ] || fail "the lock file does not say whose pids it has"
echo "$pid pid:[1]" >"$dir/state/muster.db.lock" # of a container: nobody here knows whether it runs
not grep -q '^as of' <<<"$("$muster" status --db "$dir/state/muster.db")" || fail "a broker of another pid space was taken for dead"
broker_start # what was recorded is there, and the next broker finds the nodes gone
same "jobs in the database" "$(query 'SELECT count(*) FROM job')" 3

job=late world=2 launch=1 pids=() saved=0 options=(--steps 20 --join-ms 5000 --connect-ms 20000)
rank_start 0
await "rank 0 to join" rank_said 0 '^opened'
stopped_ms=$(now_ms)
kill -STOP "$broker_pid"
rank_start 1 # in time
await "the rest of the join timeout" passed_ms "$stopped_ms" 5000
kill -CONT "$broker_pid"
all_finished 20
same "launches" "$(query "SELECT count(*) FROM generation WHERE job = '$job'")" 1
finish "broker killed for good: all train on and finish; a noticed rank leaves with the restart code at its own deadline" \
    "a rank that finishes before that has finished; ranks that join while the broker stands still are in time"
