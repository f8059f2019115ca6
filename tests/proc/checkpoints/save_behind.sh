#!/bin/bash
# Saves that are written while training goes on: a slow writer, a preemption, a failure, a kill and an end of the
# program in the middle of a write. The gate holds save_fn; nothing here depends on a disk's pace.
. "$(dirname "$0")/../lib.sh"

gate="$dir/gate"
options=(--sharded 1 --behind 1 --save-fn 1 --save-gate "$gate" --say-every 10 --step-ms 2)
saves_in() { rank_said "$1" "^in the save of step $2\$"; }
save_now() { "$muster" save --broker "$broker" --job "$job" >/dev/null; }
step_of_save() { sed -n 's/^in the save of step \([0-9]*\)$/\1/p' "$(log "$1")" | tail -n 1; }
beyond() { # RANK STEP - training went on so far
    [ "$(sed -n 's/^at step \([0-9]*\)$/\1/p' "$(log "$1")" | tail -n 1)" -ge "$2" ]
}
# a launch may come by a step at which an earlier one's save failed: the newest save of that step
state_of() { query "SELECT state FROM checkpoint WHERE job = '$job' AND step = $1 ORDER BY round DESC LIMIT 1"; }
has_state() { [ "$(state_of "$1")" = "$2" ]; }

broker_start

# --- training goes on; a preemption in the middle of the write waits for it
touch "$gate"
ranks_start 2 --steps 100000
await "step 10" rank_said 0 'at step 10$'
save_now
for rank in 0 1; do
    await "the save of rank $rank" rank_said "$rank" '^in the save of step'
done
first=$(step_of_save 0)
same "the step that rank 1 saves" "$(step_of_save 1)" "$first"
for rank in 0 1; do
    await "rank $rank to train on" beyond "$rank" $((first + 50))
done
same "state of what is written" "$(state_of "$first")" writing
same "round" "$(query "SELECT state FROM round WHERE job = '$job' AND step = $first")" writing
kill -TERM "${pids[1]}"
frozen_ms=$(now_ms)
decided() { [ -n "$(query "SELECT 1 FROM round WHERE job = '$job' AND cause = 'termination' AND step > $first")" ]; }
await "the termination's decision" decided
await "a wait of over a second" passed_ms "$frozen_ms" 1500
same "state of what is written" "$(state_of "$first")" writing
rm "$gate"
all_preempted
for step in "$first" "$saved"; do
    committed_whole "$step"
done
holds "steps between the two" "$saved" -gt $((first + 50))
rank_said 0 "the save of step $saved waited .* ms until the one before it was written" || fail "the wait is not in the log"

# --- from there; a failure behind: named once, training goes on, the step is not listed
ranks_start 2 --steps 100000 --save-fails-rank 1
await "a step" beyond 0 $((saved + 10))
code=0
"$muster" save --wait --broker "$broker" --job "$job" >"$dir/answer" 2>&1 || code=$?
same "exit code of muster save" "$code" 1
says "$(cat "$dir/answer")" 'rank 1' 'save_fn returned 5'
for rank in 0 1; do # the cause is tried three times: as many rounds failed
    await "rank $rank to be told" rank_said "$rank" '^save failed: rank=1 '
    await "rank $rank to train on" beyond "$rank" $((saved + 60))
done
failed=$(query "SELECT count(*) FROM round WHERE job = '$job' AND state = 'aborted'")
same "failures told to rank 0" "$(grep -c '^save failed: ' "$(log 0)")" "$failed"
same "committed" "$(committed)" "$first $saved"

# --- a writer is killed in the middle of a write
for pid in "${pids[@]}"; do kill -KILL "$pid"; done
ranks_end 137
touch "$gate"
ranks_start 2 --steps 100000
await "a step" beyond 0 $((saved + 10))
save_now
await "the save of rank 0" rank_said 0 '^in the save of step'
lost=$(step_of_save 0)
await "rank 0 to train on" beyond 0 $((lost + 20))
kill -KILL "${pids[1]}"
await "the abort" has_state "$lost" failed
rm "$gate"
rank_ends 1 137
rank_ends 0 1
same "culprit" "$(query "SELECT culprit_rank FROM round WHERE job = '$job' AND step = $lost ORDER BY round DESC LIMIT 1")" 1
same "committed" "$(committed)" "$first $saved"

# --- the program ends in the middle of a write: it waits, and the save counts
touch "$gate"
end=$((saved + 400))
ranks_start 2 --steps $end --barrier 1
await "a step" beyond 0 $((saved + 10))
save_now
for rank in 0 1; do
    await "the save of rank $rank" rank_said "$rank" '^in the save of step'
    await "the last steps of rank $rank" beyond "$rank" $((end - 10))
done
last=$(step_of_save 0)
rm "$gate"
all_finished $end
committed_whole "$last"
leftovers=$(find "$dir/checkpoints-$job/.muster" -mindepth 1 -maxdepth 1 -name '[0-9]*' | wc -l)
same "directories of rounds that did not commit" "$leftovers" 0
# --- the state's own copy: what is written behind is the state at its step, whatever training does meanwhile
job=copy
options=(--sharded 1 --behind 1 --cells 65536 --step-ms 0)
ranks_start 2 --steps 1000000 --save-every 20
several() { [ "$(committed | wc -w)" -ge 5 ]; }
await "some saves" several
for pid in "${pids[@]}"; do kill -KILL "$pid"; done
ranks_end 137
ranks_start 2 --steps 100000
for rank in 0 1; do
    await "rank $rank to resume" rank_said "$rank" '^opened at step'
done
resumed=$(sed -n 's/^opened at step //p' "$(log 0)")
holds "step that is resumed" "$resumed" -ge 100
kill -TERM "${pids[0]}"
all_preempted
each_has resumed "$resumed"
finish "training goes on while a save is written; the next save waits for it and says so; failures are told once; a killed writer's save is aborted; the end of a program waits for its save"
