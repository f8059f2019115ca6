#!/bin/bash
# The broker's database is lost and nobody has run `muster import` yet: a launch does not begin again beside the job's
# checkpoints. It ends, all ranks say what to do, nothing is touched, and what they say helps. What the broker knows, in
# whatever state, holds nobody up; nor do another job's files, or a directory without a checkpoint.
# Rules: R11.6.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_put_back.sh"
checkpoints="$dir/the checkpoints"

broker_start
options=(--save-every 20)
ranks_start 3 --steps 50
saved=0
all_finished 50
broker_kill
rm -rf "${db%/*}"
broker_start
before=$(files)
for launch_of in 3 1; do
    world=$launch_of launch=$((launch + 1)) pids=()
    for ((rank = launch_of - 1; rank >= 0; rank--)); do # one that came after the refusal would open the next launch, and wait
        rank_start $rank --steps 60
        [ $rank = 0 ] || await "rank $rank to have nothing to restore" rank_said $rank '^opened'
    done
    ranks_end 1
    for ((rank = 0; rank < launch_of; rank++)); do
        says "$(error_of $rank)" MUSTER_E_RESTORE "knows of no checkpoint of job $job at step 40" \
            "$checkpoints/40 is there" "text=.muster import '$checkpoints'. is to be run first" "begin from the start"
    done
    same "the directory of a launch that was refused" "$(files)" "$before"
done
says "$("$muster" why --job "$job" --broker "$broker")" "restore failed .rank 0.: .muster import .*is to be run first"
import_as_told 2
ranks_start 3 --steps 60
saved=40
all_finished 60

job=given_up # what the records name is theirs: here a checkpoint that is deleted, and whose files are not gone yet
checkpoints="$dir/another"
ranks_start 1 --steps 30
saved=0
all_finished 30
for state in deleting deleted; do
    broker_stop
    "$sql" --write "$db" "UPDATE checkpoint SET state = '$state' WHERE job = '$job'"
    broker_start
    same "its row" "$(query "SELECT state FROM checkpoint WHERE job = '$job'")" $state
    "$muster" import "$checkpoints" --broker "$broker" >"$dir/import.txt" 2>&1 || fail "import: $(cat "$dir/import.txt")"
    says "$(cat "$dir/import.txt")" "$checkpoints/20 is on record as $state" '^0 checkpoints of job given_up .*, 1 was there already'
done
ranks_start 1 --steps 30
saved=0
all_finished 30
finish "a launch whose broker knows nothing does not begin anew beside the job's checkpoints: it says to import them, and then goes on"
