#!/bin/bash
# demo.sh BUILD_DIR [--layout replicated|sharded] [--steps N] - muster saves a real training job.
# Trains a language model on 4 ranks, terminates one of them half-way, and proves that nothing was lost: the resumed
# job ends with the bits of an uninterrupted one, and computed exactly the steps that were missing.
set -euo pipefail

usage="usage: demo.sh BUILD_DIR [--layout replicated|sharded] [--steps N]"
ranks=4
steps=2000
layout=replicated
restart_code=42
steps_min=64 # one rank has to be told in the middle of it
wrong_usage() { printf 'demo: %s\n%s\n' "$*" "$usage" >&2; exit 2; }
[ $# -ge 1 ] || wrong_usage "BUILD_DIR is missing"
build=$(cd "$1" 2>/dev/null && pwd) || wrong_usage "there is no directory $1"
shift
while [ $# -gt 0 ]; do
    case $1 in
    --layout | --steps) [ $# -ge 2 ] || wrong_usage "$1 needs a value" ;;
    *) wrong_usage "there is no option $1" ;;
    esac
    case $1 in
    --layout) layout=$2 ;;
    --steps) steps=$2 ;;
    esac
    shift 2
done
case $layout in replicated | sharded) ;; *) wrong_usage "--layout does not take '$layout'" ;; esac
[[ $steps =~ ^[1-9][0-9]{0,8}$ ]] || wrong_usage "--steps does not take '$steps': give a number of steps"
[ "$steps" -ge "$steps_min" ] || wrong_usage "$steps steps are too few to stop in their middle: give $steps_min or more"
# Progress is heard once a second: a short run is stretched, so that its middle is seen.
step_sleep_ms=$((steps < 500 ? 5000 / steps : 0))

musterd=${MUSTERD:-$build/broker/musterd}
muster=${MUSTER:-$build/tools/muster}
train_words=${TRAIN_WORDS:-$build/client/examples/train_words}
dir=$(mktemp -d "${TMPDIR:-/tmp}/muster demo.XXXXXX") # a space, since paths may have one
broker_pid= job_pid= tail_pid= reason=
unset "${!MUSTER_@}" # this job's identity comes from here, not from around us

clean_up() {
    local status=$? pid

    trap - EXIT INT TERM
    # The job first: `muster run` takes its ranks along.
    for pid in $job_pid $tail_pid $broker_pid; do
        kill -TERM "$pid" 2>/dev/null || continue
        for ((i = 0; i < 100; i++)); do
            kill -0 "$pid" 2>/dev/null || break
            sleep 0.1
        done
        kill -KILL "$pid" 2>/dev/null || true
    done
    [ -z "$job_pid" ] || kill -KILL -- "-$job_pid" 2>/dev/null || true # a rank that stayed behind
    wait 2>/dev/null || true
    if [ "$status" = 0 ]; then
        rm -rf "$dir"
    else
        echo "demo: logs, database and checkpoints are kept in '$dir'" >&2
        echo "demo: failed: ${reason:-a command ended with exit code $status}" >&2
    fi
    exit "$status"
}
trap clean_up EXIT
trap 'reason="it was interrupted"; exit 130' INT
trap 'reason="it was told to end"; exit 143' TERM

title() { printf '\n\033[1m== %s\033[0m\n' "$*"; }
[ -t 1 ] || title() { printf '\n== %s\n' "$*"; }
die() { reason=$*; exit 1; } # clean_up says it, as the last line

# await SECONDS WHAT COMMAND... - until the command succeeds, at most so long.
await() {
    local deadline=$((SECONDS + $1)) what=$2

    shift 2
    until "$@"; do
        [ "$SECONDS" -lt "$deadline" ] || die "waited in vain for $what"
        [ -z "$job_pid" ] || kill -0 "$job_pid" 2>/dev/null || die "the job ended while waiting for $what"
        sleep 0.1
    done
}

# start_job NAME - the training under `muster run`, in the background, as a process group of its own;
# the same for both jobs, but for their names.
start_job() {
    mkdir "$dir/checkpoints-$1"
    setsid "$muster" run --broker "$broker" -n "$ranks" --job "$1" -- \
        "$train_words" --steps "$steps" --hidden 256 --batch 64 --seed 7 --report-every $((steps / 8)) \
        --step-sleep-ms "$step_sleep_ms" --layout "$layout" --checkpoint-dir "$dir/checkpoints-$1" \
        --out "$dir/$1.f32" >"$dir/$1.log" 2>&1 &
    job_pid=$!
    touch "$dir/$1.log"
    tail -n +1 -f "$dir/$1.log" --pid="$job_pid" -s 0.2 &
    tail_pid=$!
}

finish_job() {
    local status=0

    wait "$job_pid" || status=$?
    job_pid=
    wait "$tail_pid" || true
    tail_pid=
    [ "$status" = 0 ] || die "the job ended with exit code $status"
}

# node_field NAME - that number of every rank of job `words`, one a line in rank order.
node_field() {
    "$muster" nodes --broker "$broker" --job words --json 2>/dev/null |
        tr ',{}[]' '\n\n\n\n\n' | sed -n "s/^[[:space:]]*\"$1\"[[:space:]]*:[[:space:]]*\\(-\\{0,1\\}[0-9]*\\)[[:space:]]*\$/\\1/p"
}

some_way_in() {
    local step reached=0

    while read -r step; do
        [ "$step" -lt $((steps / 4)) ] || reached=$((reached + 1))
    done < <(node_field done)
    [ "$reached" = "$ranks" ]
}

# lives PATTERN - how many ranks ended a life with a line that has this.
lives() { grep -c "words: rank=[0-9]* $1 " "$dir/words.log" || true; }

title "musterd starts"
"$musterd" --db "$dir/muster.db" --listen 'tcp://127.0.0.1:*' --port-file "$dir/port" >"$dir/musterd.log" 2>&1 &
broker_pid=$!
await 10 "musterd's port" test -s "$dir/port"
broker=$(head -n 1 "$dir/port")
echo "musterd, pid $broker_pid, listens on $broker"

title "the yardstick: $steps steps on $ranks ranks, uninterrupted"
start_job yardstick
finish_job
[ -s "$dir/yardstick.f32" ] || die "the yardstick wrote no weights"

title "the same again, and one rank is told to leave on the way"
start_job words
await 60 "all ranks to be a quarter through" some_way_in
mapfile -t pids < <(node_field pid)
[ "${#pids[@]}" = "$ranks" ] || die "muster nodes names ${#pids[@]} pids, not $ranks"
victim=$((RANDOM % ranks))
printf -- '-- SIGTERM to rank %d, pid %d\n' "$victim" "${pids[victim]}"
kill -TERM "${pids[victim]}" || die "rank $victim ended before it could be told"
finish_job

title "muster status"
"$muster" status --broker "$broker" --job words
title "muster checkpoints"
"$muster" checkpoints --broker "$broker" --job words
title "muster why"
"$muster" why --broker "$broker" --job words

title "the proof"
saved=$(sed -n 's/.*words: rank=0 resumed_at=0 .* step=\([0-9]*\) .*/\1/p' "$dir/words.log" | head -n 1)
[ -n "$saved" ] || die "rank 0 did not say at which step it stopped"
failures=0
check() {
    local what=$1

    shift
    if "$@"; then
        echo "  yes  $what"
    else
        echo "  NO   $what"
        failures=$((failures + 1))
    fi
}
check "all $ranks ranks stopped at one step: $saved" \
    test "$(lives "resumed_at=0 computed=$saved step=$saved")" = "$ranks"
check "it lies inside the run: 0 < $saved < $steps" test "$saved" -gt 0 -a "$saved" -lt "$steps"
check "muster run saw them exit with the restart code $restart_code and started them again" \
    grep -q "restart code $restart_code from all $ranks ranks" "$dir/words.log"
check "all $ranks resumed at step $saved and computed exactly $steps - $saved = $((steps - saved)) steps" \
    test "$(lives "resumed_at=$saved computed=$((steps - saved)) step=$steps")" = "$ranks"
check "the final weights are bit-identical to the uninterrupted run's ($(wc -c <"$dir/words.f32") bytes)" \
    cmp "$dir/yardstick.f32" "$dir/words.f32"
[ "$failures" = 0 ] || die "$failures of 5 proofs failed"
printf '\nA rank was terminated at step %s of %s, and nothing was lost. (%d s)\n' "$saved" "$steps" "$SECONDS"
