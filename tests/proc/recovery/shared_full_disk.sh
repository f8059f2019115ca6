#!/bin/bash
# A broker of a shared database whose own disk takes nothing for a while: it says so and tries again, and is active once
# there is room. Nothing that was decided is lost, and the job finishes.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_shared.sh"

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
sharer_stop a
finish "a broker of a shared database whose disk is full for a while is active again once it is not"
