#!/bin/bash
# A launch looks for checkpoints that the broker never heard of, and no further: a manifest that cannot be read (here it is a
# socket, so that open(2) fails as on a bad disk) of an older checkpoint harms nobody; of the one that is restored it
# leads to the next older one where that is allowed; of a newer one that the broker knows, neither. One that it does not know
# ends the launch, the import says why it leaves it out, and moving it away helps; unless a later launch fell back behind it.
# A broker that is away just then is awaited.
# Rules: R11.6.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_put_back.sh"
options=(--save-every 20 --connect-ms 600)
break_manifest() { ln -f "$dir/broker.sock" "$dir/checkpoints-$job/$1/manifest.json"; }

broker_start
job=older
ranks_start 1 --steps 50
saved=0
all_finished 50
break_manifest 20
ranks_start 1 --steps 70
saved=40
all_finished 70
job=newest
ranks_start 1 --steps 50
saved=0
all_finished 50
break_manifest 40
ranks_start 1 --steps 45
ranks_end 1
says "$(error_of 0)" 'MUSTER_E_IO' 'next older checkpoint'
ranks_start 1 --steps 45 --fallback 1
saved=20
all_finished 45

job=unknown
kept_at_20
ranks_start 1 --steps 50
saved=20
all_finished 50
broker_stop
records_put_back
broker_start
break_manifest 40
ranks_start 1 --steps 60
refused 20 40
"$muster" import "$dir/checkpoints-$job" --broker "$broker" >"$dir/import.txt" 2>&1 && fail "all was imported"
says "$(cat "$dir/import.txt")" "checkpoints-$job/40 is left out: .*cannot open"
mv "$dir/checkpoints-$job/40" "$dir/moved"
ranks_start 1 --steps 60
all_finished 60

job=known
ranks_start 1 --steps 50
saved=0
all_finished 50
broker_stop
"$sql" --write "$db" "INSERT INTO launch (job, generation, began_step) VALUES ('$job', 2, 20)"
if [ "$fail_points" = 1 ]; then
    broker_start MUSTER_FAIL_POINT=core_before:QUERY
    ranks_start 1 --steps 60
    broker_await_killed
    since=$(now_ms)
    await "the connect timeout to be over" passed_ms "$since" 1500
    broker_start
else
    broker_start
    ranks_start 1 --steps 60
fi
saved=20
all_finished 60

job=fallback # what it left behind counts no more, also for a broker that never heard of it
ranks_start 1 --steps 70
saved=0
all_finished 70
break_manifest 60
ranks_start 1 --steps 50 --save-every 5 --fallback 1
saved=40
all_finished 50
broker_kill
rm -rf "${db%/*}"
broker_start
"$muster" import "$dir/checkpoints-$job" --broker "$broker" >"$dir/import.txt" 2>&1 && fail "all was imported"
says "$(cat "$dir/import.txt")" "checkpoints-$job/60 is left out: .*cannot open"
ranks_start 1 --steps 70
saved=45
all_finished 70
finish "manifests that cannot be read end a launch only where a newer checkpoint may be unknown to the broker, and a broker that is away is awaited"
