#!/bin/bash
# A manager whose saves go on behind the training: what is saved is the state of its step, the next save waits for the
# one before, a failure is told once on every rank, a preemption meets a save that is being written, a restart finds all.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_manager.sh"

# told RANK - of which steps the rank was told that they were not saved.
told() { sed -n 's/^error: .*step \([0-9]*\) was not saved.*/\1/p' "$(log "$1")" | xargs; }

broker_start
job=behind options=(--every 3 --behind 1 --save-ms 150 --step-ms 20)
ranks_start 3 --steps 10
ranks_end 0
all_have_saved '0 3 6 9'
listed '0 3 6 9'
for rank in 0 1 2; do rank_said "$rank" '^goes on at' || fail "rank $rank did not train on while its state was written"; done
ranks_start 3 --steps 11
ranks_end 0
each_has resumed 9
all_have_saved ''

job=fails options=(--every 2 --behind 1 --save-ms 50 --fail-rank 0 --fail-step 4)
ranks_start 3 --steps 9
ranks_end 0
all_have_saved '0 2 4 6 8' # taken; that of step 4 was not written
listed '0 2 6 8'
for rank in 0 1 2; do
    same "failures told to rank $rank" "$(told "$rank")" 4
    says "$(error_of "$rank")" 'save_fn returned 5' 'peer=0'
done
on_disk 0 2 6 8

job=checked options=(--every 3 --behind 1 --save-ms 20 --fail-rank 0 --fail-step 3 --check 1) # told as soon as it is known
ranks_start 2 --steps 7
ranks_end 0
listed '0 6'
for rank in 0 1; do
    same "failures told to rank $rank" "$(told "$rank")" 3
    same "what rank $rank was told before its next save" "$(sed -n '/^saved 6/q; /was not saved/p' "$(log "$rank")" | wc -l)" 1
done

job=last options=(--every 4 --behind 1 --save-ms 50 --fail-rank 0 --fail-step 8) # told by the wait at the end
ranks_start 2 --steps 9
ranks_end 0
listed '0 4'
for rank in 0 1; do same "failures told to rank $rank" "$(told "$rank")" 8; done

# Rank 1 writes step 0 for longer than rank 0 waits: its failure is told to rank 0 later.
job=late options=(--every 2 --behind 1 --sharded 1 --save-ms 1200 --slow-rank 1 --save-timeout-ms 200 --fail-rank 1 --fail-step 0)
ranks_start 2 --steps 4
ranks_end 0
rank_said 0 '^error: .*MUSTER_E_TIMEOUT' || fail "rank 0 did not give the wait up"
for rank in 0 1; do same "failures told to rank $rank" "$(told "$rank")" 0; done
ranks_start 2 --steps 1
ranks_end 0
each_has resumed 2
listed 2

options=(--every 2 --give-state 1) # save is given its state; preempted between two saves
for behind in 0 1; do
    job=given$behind
    ranks_start 2 --steps 9 --behind $behind --signal-rank 1 --signal-step 3
    ranks_end 42
    saved=$(steps_saved 0) # 3, but not if the notice met step 2 while that was written
    all_have_saved "$saved"
    ranks_start 2 --steps 7 --behind $behind
    ranks_end 0
    each_has resumed "${saved##* }"
    ranks_start 2 --steps 7
    ranks_end 0
    each_has resumed 6
done

job=preempted options=(--every 4 --behind 1 --save-ms 600 --step-ms 20) # while the state of step 4 is written
ranks_start 2 --steps 40 --signal-rank 1 --signal-step 6
ranks_end 42
saved=$(steps_saved 0)
same "steps saved by rank 1" "$(steps_saved 1)" "$saved"
listed "$saved"
ranks_start 2 --steps 3
ranks_end 0
each_has resumed "${saved##* }"

finish "training goes on while a state is written, and what is restored is that of its step" \
    "the state that is given with a save is what is saved, also by a preemption" \
    "a save whose end comes later than a rank waits for it is told all the same" \
    "a save that fails is told once on every rank, at the next save or the wait, and leaves the list" \
    "a preemption during a save behind saves its own step too, and the restart begins there"
