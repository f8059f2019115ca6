#!/bin/bash
# `muster run --launcher`: a launcher starts the ranks, and says 1 of whatever ends them. The broker's record tells a
# preemption from a failure, and a launch from the one before.
. "$(dirname "$0")/../lib.sh"

here=$(cd "$(dirname "$0")" && pwd)
export LAUNCHER_LOG=$dir/launcher.log
launcher() { # JOB OPTIONS-OF-MUSTER-RUN -- OPTIONS-OF-THE-TRAINER; in $code
    local own=()
    job=$1
    shift
    while [ "$1" != -- ]; do own+=("$1") && shift; done
    shift
    code=0
    : >"$LAUNCHER_LOG"
    TRAINER_GROUP=proc-$$-$job MUSTER_CHECKPOINT_DIR="$dir/checkpoints-$job" timeout "$hangs_after" "$muster" run \
        --launcher --job "$job" --broker "$broker" --backoff-ms 1 ${own[@]+"${own[@]}"} -- \
        "${through[@]}" 3 "$trainer" --sharded 1 --barrier 1 "$@" >"$dir/$job.log" 2>&1 || code=$?
}
in_background() {
    launcher "$@" &
    runner=$!
    started+=("$runner")
}
process() { pgrep -P "$(pgrep -f "^timeout .* --job $1 ")"; } # muster run of a job
stepping() { [ "$(query "SELECT coalesce(min(done), 0) FROM progress WHERE job = '$1'")" -gt 20 ]; }
box() { sed -n '/^+---- muster run/,/^+----$/p' "$dir/$job.log"; }
through=("$here/fake_launcher")

listen=$ipc
broker_start

# Preempted twice. No failure is allowed, so the launcher's 1 was none.
launcher twice --max-failures 0 -- --steps 120 --signal-rank 1 --signal-step 30 --signal-again-step 70
same "exit code of muster run" "$code" 0
steps=$(committed)
same "checkpoints" "$(wc -w <<<"$steps")" 2
says "$(cat "$dir/twice.log")" '^muster run: launch 1: starting the launcher of job twice$' \
    '^muster run: launch 2: restarting the launcher \(preempted, the launcher exited with code 1\)$' \
    'job twice finished \(3 launches, 2 preemptions, 0 failures\)' '^trainer: rank=2 world=3 '
for life in "resumed=0 " "resumed=${steps% *} " "resumed=${steps#* } computed=$((120 - ${steps#* })) done=120 "; do
    same "ranks that had $life" "$(grep -c "^trainer: .* $life" "$dir/twice.log")" 3
done
same "what a launcher is told" "$(sort -u "$LAUNCHER_LOG")" "MUSTER_BROKER MUSTER_JOB MUSTER_RESTART_CODE"

# A rank's own number of an outer launch is not passed on.
MUSTER_RANK=0 MUSTER_WORLD_SIZE=1 MUSTER_LOCAL_RANK=0 MUSTER_RESTART_COUNT=3 MUSTER_ERROR_FILE=$dir/outer.json \
    launcher inner -- --steps 30
same "exit code inside of another muster run" "$code" 0
same "what an inner launcher is told" "$(cat "$LAUNCHER_LOG")" "MUSTER_BROKER MUSTER_JOB MUSTER_RESTART_CODE"

# SIGTERM at muster run: all save, and nobody starts them again.
in_background told -- --steps 100000
await "the steps of job told" stepping told
kill -TERM "$(process told)"
wait "$runner"
same "launches" "$(grep -c 'starting the launcher' "$dir/told.log")" 1
says "$(cat "$dir/told.log")" 'forwarded to the launcher$' 'job told ended \(preempted, .*1 preemption, 0 failures\), exit code 42$'
job=told
same "checkpoints of job told" "$(committed | wc -w)" 1

# SIGTERM at the launcher, as an administrator or a scheduler sends it: it goes on from there.
in_background agent --max-failures 0 -- --steps 1000000 --until-file "$dir/agent.end"
await "the steps of job agent" stepping agent
kill -TERM "$(pgrep -P "$(process agent)" -f "^/bin/bash .*fake_launcher")"
await "the next launch of job agent" grep -q '^muster run: launch 2' "$dir/agent.log"
touch "$dir/agent.end"
wait "$runner"
says "$(cat "$dir/agent.log")" 'job agent finished \(2 launches, 1 preemption, 0 failures\)'

# The job's own failure: the broker knows which rank it was, and in which words.
launcher failing --max-failures 1 -- --steps 1000 --fail-rank 1 --fail-step 30
same "exit code of a job that failed" "$code" 1
says "$(box)" '^\| first error: failed, the launcher exited with code 1; 2 failures' "^\\| rank 1 on $(uname -n) at " \
    '^\| an error, code 7:$' '^\|   the step function returned 7$' '2 launches, 0 preemptions, 2 failures; exit code 1$'

# A launch of which no rank came is not preempted by what ended the launch before.
through=(bash -c '[ "$(wc -l <"$LAUNCHER_LOG")" = 0 ] || { echo "no such module" >&2; exit 5; }; exec "$0" "$@"' "$here/fake_launcher")
launcher broken --max-failures 0 -- --steps 1000 --signal-rank 1 --signal-step 30
same "exit code of a launcher that starts nothing" "$code" 5
says "$(box)" 'first error: failed, the launcher exited with code 5; 1 failure' '^\|   no such module$' \
    '2 launches, 1 preemption, 1 failure; exit code 5$'

# SIGTERM once all ranks have finished, and SIGTERM while the first of them starts.
through=(bash -c '"$0" "$@" && kill -TERM $$ && sleep 60' "$here/fake_launcher")
launcher finished --max-failures 0 -- --steps 30
same "exit code of a launcher that was told behind its ranks' end" "$code" 0
says "$(cat "$dir/finished.log")" 'job finished finished \(1 launch, 0 preemptions, 0 failures\)'
through=(bash -c 'trap "exit 1" TERM; kill -TERM "$PPID"; sleep 60 & wait')
launcher early -- --steps 30
same "exit code of a launcher that was told before its ranks came" "$code" 42

# A launcher that swallows its ranks' codes; a rank that was given another rank's number; one who cannot be cured.
through=(bash -c '"$0" "$@" || exit 0' "$here/fake_launcher")
launcher silent -- --steps 120 --signal-rank 1 --signal-step 30
same "exit code" "$code" 0
says "$(cat "$dir/silent.log")" 'restarting the launcher \(preempted, the launcher exited with code 0\)' 'job silent finished \(2 launches'
through=(env MUSTER_RANK=0 MUSTER_WORLD_SIZE=1 "$here/fake_launcher")
launcher contradiction --max-failures 0 -- --steps 120
same "exit code" "$code" 1
says "$(cat "$dir/contradiction.log")" 'MUSTER_RANK and MUSTER_WORLD_SIZE say rank 0 of 1, but torchrun says rank [012] of 3'

# A broker that is away when a launch begins: a preemption of before that is not this launch's.
through=(bash -c 'touch "$0.begun"; until [ -e "$0.go" ]; do sleep 0.02; done; exit 5' "$dir/away")
broker_kill
in_background told --max-failures 0 -- --steps 1
await "the launcher" test -e "$dir/away.begun"
broker_start
touch "$dir/away.go"
wait "$runner"
job=told
says "$(box)" 'first error: failed, the launcher exited with code 5; 1 failure' '1 launch, 0 preemptions, 1 failure; exit code 5$'

# Without a broker the launcher's exit code is all there is.
through=(bash -c 'exit 42')
broker_stop
broker=ipc://$dir/nobody
launcher alone --max-preemptions 1 -- --steps 1
same "exit code without a broker" "$code" 42
says "$(cat "$dir/alone.log")" 'no broker answers, so whether job alone was preempted is not known' '2 launches, 2 preemptions'
through=(bash -c 'exit 7')
launcher alone --max-failures 0 -- --steps 1
same "exit code without a broker" "$code" 7
code=0
"$muster" run --launcher -n 2 -- true 2>"$dir/usage.log" || code=$?
same "exit code of -n with --launcher" "$code" 2
says "$(cat "$dir/usage.log")" '-n contradicts --launcher'
finish "muster run --launcher: preemptions are told from failures by the broker's record, whatever the launcher exits with"
