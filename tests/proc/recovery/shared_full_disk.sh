#!/bin/bash
# A broker of a shared database whose own disk takes nothing for a while: it says so and tries again, and is active once
# there is room. Nothing that was decided is lost, and the job finishes.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_shared.sh"

needs_tmpfs "$dir/small" 64m
postgres_start
listen_of=([a]="ipc://$dir/a.sock")
options=(--barrier 1 --save-every 5 --until-file "$dir/until")
job=long
trains() { [ 0 != "$(query "SELECT count(*) FROM event WHERE job = '$job' AND kind = 'commit'")" ]; }

sharer_start a
sharer_is_active a
broker=${listen_of[a]}
ranks_start 2 --steps 1000000 --step-ms 20
await "a checkpoint" trains
prlimit --pid "${broker_pids[a]}" --fsize=4096:unlimited
sharer_says a 'no room for database'
sharer_says a 'not active: cannot .*; trying again'
prlimit --pid "${broker_pids[a]}" --fsize=unlimited:unlimited
sharer_is_active a 2
before=$(query "SELECT max(step) FROM checkpoint WHERE job = '$job'")
goes_on() { [ "$(query "SELECT max(step) FROM checkpoint WHERE job = '$job'")" -gt "$before" ]; }
await "the next checkpoint" goes_on
: >"$dir/until"
ranks_end 0
sums_right

# There is room for the snapshot, and none for what came after it.
broker=${listen_of[a]} job=filler saved=0 options=(--barrier 1 --save-every 1)
ranks_start 2 --steps 150 --step-ms 1
all_finished 150
kill -KILL "${broker_pids[a]}"
size=$(asked "SELECT sum(octet_length(data)) FROM muster_snapshot")
holds "bytes that came after the snapshot" "$(asked "SELECT sum(octet_length(changes)) FROM muster_batch")" -gt 131072
free=$(stat -f -c '%a * %S' "$dir/small")
head -c $((free - size - 65536)) /dev/zero >"$dir/small/filler"
listen_of[small]=ipc://$dir/b.sock
sharer_start small
sharer_says small 'not active: cannot write the copy .*small/muster.db.part: database or disk is full; check the disk; trying again'
rm "$dir/small/filler"
sharer_is_active small
sharer_stop small
finish "a broker of a shared database whose disk is full for a while is active again once it is not"
