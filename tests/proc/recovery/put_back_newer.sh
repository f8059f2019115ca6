#!/bin/bash
# The broker's database is restored from an older copy, and what was saved since is on disk: a launch does not go on from the
# older checkpoint that the copy knows. Rank 0 imports what that database's broker wrote, all ranks leave with the restart
# code, and the next launch goes on from the newest. Nobody had to do anything, and nothing on disk is touched.
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
ranks_end 42
for rank in 0 1; do
    says "$(error_of $rank)" MUSTER_PREEMPTED "$checkpoints/80 is there" "knows of no checkpoint of job $job at step 80" \
        "restored from an older copy. Rank 0 imports what is there, and the next launch resumes from the newest"
done
says "$(cat "$(log 0)")" "3 checkpoints of job $job were imported"
same "the directory of a launch that imported" "$(files)" "$before"
says "$("$muster" why --job "$job" --broker "$broker")" "restored from an older copy. Rank 0 imports"
same "committed" "$(committed)" "20 40 60 80"
ranks_start 2 --steps 100
saved=80
all_finished 100
finish "a launch whose broker knows only an older checkpoint does not go on from it beside newer ones: rank 0 imports them, and the next launch goes on from the newest"
