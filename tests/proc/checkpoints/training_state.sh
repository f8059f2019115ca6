#!/bin/bash
# A training in epochs and batches: after a kill, and after a preemption, every rank goes on at the same batch with
# the same data, also with the frequencies that save seldom or never.
. "$(dirname "$0")/../lib.sh"
trainer=$TESTS_DIR/proc/prog_training

# begin_at POSITION DATA EPOCH - every rank was told to begin there.
begin_at() {
    local rank

    for rank in "${!pids[@]}"; do
        same "where rank $rank of job $job begins" "$(sed -n 's/^begins at //p' "$(log "$rank")")" "$1 data $2 epoch $3"
        if grep WRONG "$(log "$rank")"; then fail "rank $rank of job $job, see above"; fi
    done
}

broker_start
job=epochs # a rank dies in the second batch of epoch 2
options=(--files 1)
ranks_start 3 --kill-rank 1 --kill-at 10
rank_ends 1 137
ranks_end 1 0 2
begin_at 0.0 -1 0
says "$(error_of 0)" MUSTER_E_PEER peer=1
ranks_start 3
ranks_end 0
begin_at 2.0 80 2
rank_said 2 '^evaluates from 7, predicts from 7$' || fail "a back-up moved the epoch of what does not train"
each_has value 12
same "steps committed: one back-up is kept" "$(committed)" 12
for rank in 1 2; do # written by every batch, removed with every back-up and at the end
    rank_said "$rank" "^wrote .*/workertemp_$rank 1" || fail "rank $rank wrote nothing beside the back-up"
    [ ! -e "$dir/checkpoints-$job/workertemp_$rank" ] || fail "workertemp_$rank is still there"
done
[ -e "$dir/checkpoints-$job/chief/notes-0" ] || fail "the chief's own file is gone"

job=never # and preempted in the sixth batch
options=(--every -1)
ranks_start 3 --signal-rank 2 --signal-at 6
ranks_end 42
each_has value 6
ranks_start 3
ranks_end 0
begin_at 1.2 60 1
each_has value 12
same "steps committed" "$(committed)" 6

job=batches # every three of them, and a kill
options=(--every 3)
ranks_start 2 --kill-rank 0 --kill-at 9
rank_ends 0 137
ranks_end 1 1
ranks_start 2 --epochs 2 --delete 1
ranks_end 0
begin_at 1.2 60 1
each_has value 8
same "steps committed after the back-up was deleted" "$(committed)" ''
same "what is left of it" "$(ls "$dir/checkpoints-$job/chief")" ''
ranks_start 2 --epochs 1
ranks_end 0
begin_at 0.0 -1 0

job=last # preempted in the last batch of an epoch: the next one begins
options=(--every -1)
ranks_start 2 --signal-rank 0 --signal-at 8
ranks_end 42
each_has value 8
ranks_start 2
ranks_end 0
begin_at 2.0 80 2
each_has value 12

# A back-up that the program asks for, and a kill two batches later; beside it every rank has its own part.
explicit=(--every -1 --back-up-at 5)
sharded=(--every 2 --sharded 1)
job=explicit options=("${explicit[@]}")
ranks_start 2 --kill-rank 1 --kill-at 7
keep
job=sharded options=("${sharded[@]}")
ranks_start 3 --kill-rank 2 --kill-at 6
rank_ends 2 137
ranks_end 1 0 1
ranks_start 3 --epochs 2
keep
recall explicit
options=("${explicit[@]}")
rank_ends 1 137
ranks_end 1 0
ranks_start 2
ranks_end 0
begin_at 1.1 50 1
each_has value 12

recall sharded
options=("${sharded[@]}")
ranks_end 0
begin_at 1.0 40 1
each_has value 8

job=unknown options=(--unknown 1) # how many batches an epoch has: its end is a boundary of its own
ranks_start 3 --epochs 2
ranks_end 0
ranks_start 3
ranks_end 0
begin_at 2.0 80 2
each_has value 12

job=damaged options=()
ranks_start 1 --epochs 1
ranks_end 0
shard=$(echo "$dir/checkpoints-$job"/chief/3/shard-*)
damage_byte "$shard" -1
ranks_start 1
ranks_end 1
says "$(error_of 0)" MUSTER_E_RESTORE chief/3 checksum
same "steps committed: it is not thrown away" "$(committed)" 4
ranks_start 1 --fallback 1
ranks_end 1
says "$(error_of 0)" MUSTER_E_RESTORE chief/3 checksum 'no older checkpoint is left'
same "steps committed: it is not thrown away" "$(committed)" 4

job=older # one that somebody holds is kept beside the newest: with fallback all ranks take it, if only one cannot read that
options=(--sharded 1)
ranks_start 2 --epochs 1
ranks_end 0
"$muster" pin --broker "$broker" --job "$job" >/dev/null
ranks_start 2 --epochs 2
ranks_end 0
same "steps committed" "$(committed)" '4 8'
damage_byte "$(echo "$dir/checkpoints-$job"/chief/7/shard-00001-*)" -1
ranks_start 2 --fallback 1
ranks_end 0
begin_at 1.0 40 1
each_has value 12

job=read # by somebody who still holds it when training has succeeded
options=()
ranks_start 2 --epochs 1
ranks_end 0
"$muster" pin --broker "$broker" --job "$job" >/dev/null
ranks_start 2 --epochs 1 --delete 1
rank_ends 1 0
ranks_end 1 0
says "$(error_of 0)" MUSTER_E_BUSY 'checkpoint 1 \(step 3\) stays: .*has pinned it; .muster unpin 1'
same "steps committed: what is held stays" "$(committed)" 4
same "what is on disk of it" "$(ls "$dir/checkpoints-$job/chief")" 3
"$muster" unpin 1 --broker "$broker" --job "$job" >/dev/null
ranks_start 2 --epochs 1 --delete 1
ranks_end 0
begin_at 1.0 40 1
same "steps committed after it was let go and deleted" "$(committed)" ''
same "what is on disk after that" "$(ls "$dir/checkpoints-$job/chief")" ''

finish "after a kill and after a preemption every rank goes on at the same epoch, batch and data" \
    "preempted in the last batch of an epoch the next one begins; a back-up that is asked for; shards of all ranks" \
    "a damaged back-up is named, and stays; with fallback all ranks take an older one, if there is one" \
    "a back-up that is held is not deleted; let go it is" \
    "frequencies epoch, N batches and never; the preemption saves with all of them" \
    "one back-up is kept, and none after delete_backup" \
    "directories of the other ranks are gone after each back-up"
