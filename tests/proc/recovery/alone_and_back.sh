#!/bin/bash
# offline_ok: lives with a broker and without one, in turn. What a life alone saved no broker knows; the next launch with one
# does not go on without it, and `muster import` takes all of it: each life alone numbers its rounds above all that are there.
# Rules: R11.8.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_put_back.sh"
options=(--save-every 20 --connect-ms 1500 --offline 1)
alone() { rank_said 0 'goes on alone' || fail "rank 0 was not alone"; }

job=between
broker_start
ranks_start 1 --steps 30
saved=0
all_finished 30
for steps in 50 90; do # broker, alone, broker, alone, broker
    broker_stop
    saved=$((steps - 30))
    ranks_start 1 --steps $steps
    all_finished $steps
    alone
    broker_start
    ranks_start 1 --steps $((steps + 20))
    refused "$saved" $((steps - 10))
    import_as_told 1
    saved=$((steps - 10))
    ranks_start 1 --steps $((steps + 20))
    all_finished $((steps + 20))
done
same "committed" "$(committed)" '20 40 60 80 100'
broker_stop

job=first
saved=0
for steps in 30 50 70; do # alone, alone, alone, broker
    ranks_start 1 --steps $steps
    all_finished $steps
    alone
    saved=$((steps - 10))
done
broker_start
ranks_start 1 --steps 90
ranks_end 1
says "$(error_of 0)" MUSTER_E_RESTORE "knows of no checkpoint of job $job at step 60"
import_as_told 3
ranks_start 1 --steps 90
all_finished 90
same "committed" "$(committed)" '20 40 60 80'

job=unnamed # the broker's newest has its manifest and not yet its name, as its writer's death in between leaves it
saved=0
ranks_start 1 --steps 50
all_finished 50
unnamed=$dir/checkpoints-$job/.muster/$(query "SELECT generation || '-' || round FROM checkpoint WHERE job = '$job' AND step = 40")
broker_stop
mv "$dir/checkpoints-$job/40" "$unnamed"
saved=40
ranks_start 1 --steps 55
all_finished 55
alone
[ ! -e "$unnamed" ] || fail "it has no name yet"
broker_start
ranks_start 1 --steps 70 # it is where the records say
all_finished 70
same "committed" "$(committed)" '20 40 60'
finish "offline_ok: a job goes between lives alone and lives with a broker, and loses no checkpoint by it, nor one that has no name yet"
