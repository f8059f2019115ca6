#!/bin/bash
# One rank's shard of the newest checkpoint is damaged: with restore_fallback all ranks take the next older
# one, also those that had restored the newest already; without it the launch ends and says which file. A program that
# a whole checkpoint does not fit is told so, and no older one is taken for it.
. "$(dirname "$0")/../lib.sh"

why() { "$muster" why --job "$job" --broker "$broker"; }

broker_start
job=sharded
options=(--sharded 1 --save-every 25 --barrier 1)
ranks_start 3 --steps 60
saved=0
all_finished 60
ranks_start 3 --steps 50 --barrier 0 # if all had left before its manifest was written, this launch wrote it
ranks_end 0
committed_whole 50
shard=$(find "$dir/checkpoints-$job/50" -name 'shard-00001-*' -type f)
damage_byte "$shard" -3

world=3 launch=3 pids=() # one that came after the failure would open the next generation, and wait there alone
for rank in 0 2; do
    rank_start $rank --steps 80 --barrier 0 # a barrier would wait for the rank that leaves
    await "rank $rank to restore" rank_said $rank '^opened'
done
rank_start 1 --steps 80 --barrier 0
ranks_end 1
error=$(error_of 1)
says "$error" MUSTER_E_RESTORE "$(basename "$shard")"
for rank in 0 2; do
    says "$(error_of $rank)" MUSTER_E_RESTORE
done
says "$(why)" 'muster run --fallback. .* lets all ranks take the next older checkpoint'

ranks_start 3 --steps 80 --fallback 1
saved=25
all_finished 80
same "superseded" "$(query "SELECT step FROM checkpoint WHERE job = '$job' AND $gone_back")" 50
job=misfit
options=(--save-every 25)
ranks_start 1 --steps 60
saved=0
all_finished 60
ranks_start 1 --steps 80 --fallback 1 --cells 3
ranks_end 1
says "$(error_of 0)" MUSTER_E_RESTORE vector
says "$(why)" 'the program could not take it: start the program that wrote it'
[[ $(why) != *"names damaged"* && $(why) != *"that did not help"* ]] || fail "why tells of damage, or of older ones: $(why)"
ranks_start 1 --steps 80 --fallback 1
saved=50
all_finished 80
same "superseded" "$(query "SELECT step FROM checkpoint WHERE job = '$job' AND $gone_back")" ''
for step in 25 50 75; do
    damage_byte "$(echo "$dir/checkpoints-$job/$step"/shard-*)" 900
done
ranks_start 1 --steps 80 --fallback 1
ranks_end 1
says "$(error_of 0)" MUSTER_E_RESTORE "no older checkpoint is left"
says "$(why)" 'older checkpoints were to be tried, too, and that did not help'
same "superseded when none is whole" \
    "$(query "SELECT step FROM checkpoint WHERE job = '$job' AND $gone_back")" ''

job=wishes
options=(--save-every 25)
ranks_start 2 --steps 30
saved=0
all_finished 30
launch=$((launch + 1)) pids=()
rank_start 0 --steps 40 --fallback 1 --barrier 0
await "the launch" grep -q 'job wishes: generation 2 opened' "$dir/musterd.log"
rank_start 1 --steps 40 --barrier 0 --open-ms 2000 # in which it is told why, on a busy machine too
ranks_end 1 1
says "$(error_of 1)" MUSTER_E_RESTORE "rank 1 takes the newest checkpoint alone, and the other ranks of job 'wishes'"
rank_start 1 --steps 40 --fallback 1 --barrier 0
saved=25
all_finished 40

finish "a damaged shard ends the launch at every rank and is named" \
    "with restore_fallback every rank resumes from the next older checkpoint, with the right sums" \
    "a program that does not fit, or nothing whole to fall back to, ends the launch and gives no checkpoint up" \
    "a rank that takes the newest alone does not join those that may go back"
