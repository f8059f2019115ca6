#!/bin/bash
# preempt_phases for one process without a broker, each form of a loop: it saves and leaves by itself.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_phases.sh"

broker=ipc://$dir/nobody

checkpoints() { (cd "$dir/checkpoints-$job" && find . -mindepth 2 -maxdepth 2 -name manifest.json | cut -d/ -f2 | sort -n | xargs); }

# told_at PLACE STEP OPTIONS... - a launch that is told to end there leaves at STEP with the restart code.
told_at() {
    local place=$1 step=$2

    shift 2
    launch_to "$place" 1 "$@"
    kill -TERM "${pids[0]}"
    await "the notice" rank_said 0 'notice (SIGTERM'
    go_on "$place"
    all_exited
    nothing_wrong
    same "step at which $job, launch $launch, left" "$saved" "$step"
}

names=(run check scope explicit)
for mode in 0 1 2 3; do
    job=${names[mode]} launch=0 next=$((mode % 2))
    options=(--gates "$gates" --mode $mode --offline 1 --exit-policy $((mode / 2)))
    told_at open-0 $next # who checks after its steps has no boundary before the first
    at=$((4 + next))
    told_at eval-4 $at
    told_at open-$at $((at + next))
    at=$((at + next))
    told_at hold-8 $((8 + next))
    told_at save-12 12 --save-every 12
    told_at step-$steps $steps
    ranks_start 1 --steps $steps
    all_finished $steps
    nothing_wrong
    same "calls in all" "$(total_run_calls)" $steps
    same "checkpoints of $job" "$(checkpoints)" "$( ((next == 0)) && echo "4 8 12 $steps" || echo "1 5 6 9 12 $steps")"
done
job=after-the-end launch=0
options=(--gates "$gates" --mode 1 --offline 1)
told_at eval-$steps $steps # alone there is no other rank that might be in the step after the last check
ranks_start 1 --steps $steps
all_finished $steps
finish "alone: a notice in every phase of four forms of a loop; each save where the loop stands, resumed there, bit for bit"
