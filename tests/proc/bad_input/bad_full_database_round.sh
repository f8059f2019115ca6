#!/bin/bash
# The file system of the database is full when a round is to be decided: the decision waits, nobody hears of it, and it is
# made when there is room; the story tells why it took so long.
. "$(dirname "$0")/../lib.sh"

needs_fail_points
needs_tmpfs "$dir/state" 12m
order=$dir/order
echo 'stop commit_before:event-decision' >"$order"
broker_start MUSTER_FAIL_POINT_FILE="$order"
ranks_start 2 --steps 100000 --barrier 1 --say-every 10
await "step 10" rank_said 0 'at step 10$'
kill -TERM "${pids[1]}"
stopped() { grep -q '^State:.T' "/proc/$broker_pid/status"; }
await "the broker's stop before its decision is written" stopped
dd if=/dev/zero of="$dir/state/ballast" bs=1k 2>/dev/null || true
kill -CONT "$broker_pid"
await "the broker to say that there is no room" grep -q 'no room for database' "$dir/musterd.log"
same "round on a full disk" "$(query "SELECT state, step FROM round WHERE job = '$job'")" 'freezing|-1'
rm "$dir/state/ballast"
all_preempted
committed_whole "$saved"
same "times without room on record" "$(query "SELECT count(*) FROM broker_past WHERE kind = 'broker blocked'")" 1
same_why
says "$story" "the broker was held up: for [0-9]+\.[0-9] s it could write nothing" 'no room for database' committed
ranks_start 2 --steps $((saved + 20)) --barrier 1
all_finished $((saved + 20))
finish "a disk that fills before the decision is written: nobody hears of it, it is made when there is room, and the story tells \
the time without; the resumed job ends with the weights of an uninterrupted one"
