#!/bin/bash
# The file system of the database is full: the broker says so, keeps running, and goes on when there is room.
. "$(dirname "$0")/../lib.sh"

needs_tmpfs "$dir/state" 12m # a write-ahead log alone takes 4 MiB before it is carried over
broker_start
ranks_start 2 --steps 100000 --barrier 1 --say-every 10
await "step 10" rank_said 0 'at step 10$'
dd if=/dev/zero of="$dir/state/ballast" bs=1k 2>/dev/null || true
# what is there can still take a little: ask until it is full
is_full() {
    answer=$("$muster" save --broker "$broker" --job "$job" --timeout 2 2>&1) && return 1
    grep -qi 'disk\|could not be written\|space' <<<"$answer"
}
patience=20
await "the broker to say that its disk is full" is_full
say "$answer"
before=$(query "SELECT count(*) FROM event WHERE job = '$job'")
"$muster" status --broker "$broker" >/dev/null || fail "the broker does not answer reads on a full disk"
newest() { grep -o 'at step [0-9]*' "$(log 0)" | tail -n 1 | cut -d' ' -f3; }
at=$(newest)
trains_on() { [ "$(newest)" -gt $((at + 50)) ]; }
await "50 more steps on a full disk" trains_on
kill -0 "$broker_pid" || fail "the broker ended on a full disk"
patience=40
rm "$dir/state/ballast"
saves() { "$muster" save --wait --broker "$broker" --job "$job"; }
await "a save, with room on the disk" saves
holds "events" "$(query "SELECT count(*) FROM event WHERE job = '$job'")" -gt "$before"
kill -TERM "${pids[1]}"
all_preempted
committed_whole "$saved"
ranks_start 2 --steps $((saved + 20)) --barrier 1
all_finished $((saved + 20))
finish "a full disk for the database: orders are answered so, training goes on, and saves commit again once there is room; \
the resumed job ends with the weights of an uninterrupted one"
