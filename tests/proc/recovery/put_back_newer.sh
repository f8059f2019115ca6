#!/bin/bash
# The broker's database is restored from an older copy, and what was saved since is on disk: a launch does not go on from the
# older checkpoint that the copy knows. It ends, all ranks say what to do, nothing is touched, and what they say
# helps.
# Rules: R11.6.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_put_back.sh"
checkpoints="$dir/the checkpoints"

broker_start
options=(--save-every 20)
ranks_start 2 --steps 30
saved=0
all_finished 30
broker_stop
records_keep
broker_start
ranks_start 2 --steps 90
saved=20
all_finished 90
broker_stop
records_put_back
broker_start
before=$(files)
launch=$((launch + 1)) pids=()
for rank in 1 0; do # one that came after the refusal would open the next launch, and wait
    rank_start $rank --steps 100
    [ $rank = 0 ] || await "rank $rank to have nothing to restore" rank_said $rank '^opened'
done
ranks_end 1
for rank in 0 1; do
    says "$(error_of $rank)" MUSTER_E_RESTORE \
        "has this launch resume at step 20, and knows of no checkpoint of job $job at step 80" \
        "$checkpoints/80 is there" "text=.muster import '$checkpoints'. is to be run first" "go on from there without an import"
done
same "the directory of a launch that was refused" "$(files)" "$before"
why=$("$muster" why --job "$job" --broker "$broker")
says "$why" "rank 0 could not restore: .muster import .*is to be run first" "unless that is put right"
[[ $why != *fallback* ]] || fail "muster why gives advice that does not help: $why"
refusal=$(error_of 0)
world=2 launch=$((launch + 1)) pids=() # a rank that comes late is alone, and its supervisor ends it
rank_start 1 --steps 100
await "rank 1 to be in a launch of its own" rank_said 1 '^opened'
kill -TERM "${pids[1]}"
ranks_end 42 1
same "rounds of that launch" "$(query "SELECT round || ' ' || state FROM round WHERE job = '$job' AND generation = 3")" '2 unchanged'
import_as_told 3 "$refusal"
ranks_start 2 --steps 100
saved=80
all_finished 100
finish "a launch whose broker knows only an older checkpoint does not go on from it beside newer ones: it says to import them, and then goes on from the newest"
