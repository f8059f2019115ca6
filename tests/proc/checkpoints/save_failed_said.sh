#!/bin/bash
# Saves that fail are told where a user looks: in the rank's stderr, by `muster run`, in `status` and as warnings of the
# broker; with what they cost.
. "$(dirname "$0")/../lib.sh"

mkdir "$dir/runtime"
export XDG_RUNTIME_DIR="$dir/runtime" # where muster run keeps the ranks' files
broker_start
full=(--sharded 1 --barrier 1 --cells 8192 --limit-rank 1 --limit-bytes 16384 --own-log 0)

# runs JOB OPTION... - two ranks under `muster run`, which is to end with 0.
runs() {
    local code=0
    job=$1
    shift
    TRAINER_GROUP=proc-$$-$job MUSTER_CHECKPOINT_DIR="$dir/checkpoints-$job" timeout "$hangs_after" "$muster" run -n "${ranks:-2}" \
        --job "$job" --broker "$broker" --max-preemptions 1 -- "$trainer" "$@" >"$dir/run.log" 2>&1 || code=$?
    echo "$code" >"$dir/code"
}

runs policy "${full[@]}" --steps 70 --save-every 20
same "exit code" "$(cat "$dir/code")" 0
for rank in 0 1; do # rank 0 tells of all, rank 1 of its own
    says "$(grep "^\[$rank\] muster: warning: rank $rank: " "$dir/run.log")" \
        'step 60 was NOT saved: .*File too large.*begins from the start and computes 6[0-9] steps again'
done
says "$(grep '^muster run: ' "$dir/run.log")" \
    'muster run: rank [01]: 3 saves of this launch failed, the last of step 60: .*File too large'
says "$("$muster" status --broker "$broker" "$job")" '  not saved     3 saves failed; the last, round 3 of step 60: .*File too large'
same "the broker's warnings" "$(grep -c "warning: job $job: round .* (policy) aborted: .*File too large" "$dir/musterd.log")" 3

export MUSTER_LOG=none
runs silent "${full[@]}" --steps 30 --save-every 20
same "lines of the library" "$(grep -c '^\[.\] muster: ' "$dir/run.log")" 0
export MUSTER_LOG=info
runs talkative --own-log 0 --steps 30 --barrier 1
says "$(grep '^\[0\] muster: info: rank 0: ' "$dir/run.log")" 'rank 0 begins from the start'
export MUSTER_LOG=loud
runs misspelt --own-log 0 --steps 30
same "exit code" "$(cat "$dir/code")" 2
says "$(cat "$dir/run.log")" 'MUSTER_LOG or --log-level is "loud"; it takes none, error, warning, info or debug'
unset MUSTER_LOG

runs preempted "${full[@]}" --grace-ms 3000 --steps 1000 --signal-rank 0 --signal-step 45
says "$(grep '^muster run: ' "$dir/run.log")" \
    '^muster run: rank [01]: NOT saved: .*File too large.*it begins from the start and computes 4[0-9] steps again'

runs saved --barrier 1 --grace-ms 3000 --steps 1000 --signal-rank 0 --signal-step 45
says "$(grep '^muster run: ' "$dir/run.log")" '^muster run: rank [01]: .*saved at step 4[0-9], it resumes there'

alone() { # JOB OPTION... - the same for one rank that no broker answers
    local job=$1
    shift
    ranks=1 broker=ipc://$dir/nobody runs "$job" --offline 1 --connect-ms 100 "$@"
}
full=(--cells 8192 --limit-rank 0 --limit-bytes 16384 --own-log 0)
alone lone-policy "${full[@]}" --steps 70 --save-every 20
same "exit code" "$(cat "$dir/code")" 0
says "$(grep '^muster run: ' "$dir/run.log")" \
    '^muster run: rank 0: 3 saves of this launch failed, the last of step 60: .*File too large' 'job lone-policy finished'
alone lone-preempted "${full[@]}" --steps 1000 --signal-rank 0 --signal-step 45
same "exit code" "$(cat "$dir/code")" 42
says "$(grep '^muster run: ' "$dir/run.log")" '^muster run: rank 0: NOT saved: step 4[0-9], by notice .*File too large'
alone lone-saved --own-log 0 --steps 1000 --signal-rank 0 --signal-step 45
says "$(grep '^muster run: ' "$dir/run.log")" '^muster run: rank 0: notice .*: saved step 4[0-9] in '
finish "failed saves are told by the rank, by muster run, in status and by the broker; without a broker by the first two"
