#!/bin/bash
# Every kind of keep policy through a manager and a broker, in two lives of the job: on disk, and in the list of a reader.
# Bad saves leave nothing behind; what a reader reads stays while it does.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_manager.sh"

reader() { MUSTER_JOB=$job MUSTER_BROKER=$broker "$TESTS_DIR/proc/prog_reader" "$@"; }
is_on_disk() { [ "$(cd "$dir/checkpoints-$job" && ls -d [0-9]* 2>/dev/null | sort -n | xargs)" = "$*" ]; }

# twice STEPS KEPT... - half of the steps in one life, the rest in another.
twice() {
    local steps=$1

    shift
    ranks_start 1 --steps $((steps / 2))
    ranks_end 0
    ranks_start 1 --steps "$steps"
    ranks_end 0
    await "what job $job keeps on disk" is_on_disk "$@"
    same "what a reader lists of job $job" "$(reader list)" "$*"
}

# The loss of step s is (s - 3) squared: 9 4 1 0 1 4.
broker_start
job=greatest options=(--every 1 --keep-best 2 --best-greatest 1)
twice 6 0 5 # of equals the newer
job=unmeasured options=(--every 1 --keep-best 1 --no-loss 1 --best-unmeasured 1)
twice 6 2 3 5
job=measured options=(--every 1 --keep-best 1 --no-loss 1)
twice 6 3
job=given options=(--every 1 --keep-given 1,3)
twice 6 1 3
job=joint options=(--every 1 --keep-latest 1 --keep-every 4 --keep-best 1 --keep-given 1)
twice 8 0 1 3 4 7
job=trash options=(--every 1 --keep-latest 1 --trash old --prefix step_ --digits 2) # of which no two have one name
ranks_start 1 --steps 2
ranks_end 0
ranks_start 1 --steps 4
ranks_end 0
on_disk_is() { [ "$(cd "$dir/checkpoints-$job" && ls | xargs)" = "$*" ]; }
await "what job trash keeps" on_disk_is old step_03
same "what a reader lists of job $job" "$(reader list)" 3
same "what was moved away" "$(cd "$dir/checkpoints-trash/old" && ls -d */manifest.json | xargs)" 'step_00.1-1/manifest.json step_01.1-2/manifest.json step_02.2-3/manifest.json'

job=zero options=(--every 1 --keep-latest 0) # preempted: what it resumes from stays; finished: nothing does
ranks_start 1 --steps 9 --signal-rank 0 --signal-step 2
ranks_end 42
newest=$(steps_saved 0 | sed 's/.* //')
newest_is_listed() { [ "$(reader list)" = "$newest" ]; }
await "what a preempted job keeps" newest_is_listed
for step in $(cd "$dir/checkpoints-$job" && ls -d [0-9]*); do # who is told to end waits for no deletion: the next launch goes on with it
    [ "$step" = "$newest" ] || same "what step $step is" "$(query "SELECT state FROM checkpoint WHERE job = '$job' AND step = $((step + 1))")" deleting
done
[ -f "$dir/checkpoints-$job/$newest/manifest.json" ] || fail "what is resumed from is gone"
ranks_start 1 --steps 5
ranks_end 0
await "a job that wants nothing to leave nothing" is_on_disk
same "what a reader lists of job $job" "$(reader list)" ''

job=bad options=(--every 2)
ranks_start 2 --steps 6
ranks_end 0
what_there_is() {
    (cd "$dir/checkpoints-$job" && find . -type f | sort)
    query "SELECT round, step, state FROM checkpoint WHERE job = '$job' UNION ALL SELECT round, step, state FROM round WHERE job = '$job'"
}
before=$(what_there_is)
ranks_start 2 --bad 1 --steps 0
ranks_end 0
same "files and rows after bad saves" "$(what_there_is)" "$before"
for rank in 0 1; do
    same "answers to bad saves on rank $rank" "$(sed -n 's/^bad //p' "$(log "$rank")")" "existing: MUSTER_E_EXISTS 0
existing forced: MUSTER_E_EXISTS 0
first: MUSTER_E_EXISTS 0
first forced: MUSTER_E_EXISTS 0
backwards: MUSTER_E_ARGUMENT 0
backwards forced: MUSTER_E_ARGUMENT 0
negative: MUSTER_E_ARGUMENT 0
gap: MUSTER_E_ARGUMENT 0"
done

job=read options=(--every 1 --keep-latest 1 --save-ms 1) # by a save_fn, so that a reader can read slowly
ranks_start 1 --steps 1
ranks_end 0
reader slowly 0 "$dir/go" >"$dir/slowly.log" &
reading=$!
started+=("$reading")
await "the reader to begin" grep -q reading "$dir/slowly.log"
ranks_start 1 --steps 4
ranks_end 0
same "what is listed while step 0 is read" "$(reader list)" '0* 3'
touch "$dir/go"
wait "$reading" || fail "the reader failed: $(cat "$dir/slowly.log")"
says "$(cat "$dir/slowly.log")" 'restored 0 right'
ranks_start 1 --steps 5 # the next launch's chief deletes it
ranks_end 0
await "what was read to go" is_on_disk 4

finish "best by metric, least and greatest, with and without those that have none; given steps; four policies together; a trash folder" \
    "a save of a step that exists, forced too, backwards, negative or with a gap leaves neither a file nor a row" \
    "a checkpoint stays while a reader reads it, and goes afterwards"
