#!/bin/bash
# Planned terminations by the dozen: jobs with steps, saves and graces of every length, each preempted in two launches. Every
# final save ends before its deadline, and at least 80 % of what the reserve leaves of the grace is trained.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_grace.sh"

seed=${GRACE_SEED:-$((EPOCHSECONDS % 100000))}
RANDOM=$seed
say "GRACE_SEED=$seed"
batches=3 jobs=10

steps_measured() { [ "$(query "SELECT MIN(step_p95_ms) > 0 FROM progress WHERE job = '$job'")" = 1 ]; }

# what_for JOB - its options, for both launches.
declare -A options_of
what_for() {
    local step=$((1 + RANDOM % 150)) save=$((RANDOM % 500)) grace

    grace=$((5500 + 3 * save + 3 * step + RANDOM % 3000))
    options_of[$1]="--steps 1000000 --say-every 1 --barrier $((RANDOM % 2)) --sharded $((RANDOM % 2)) --step-ms $step \
        --save-fn 1 --save-late-rank 0 --save-late-ms $save --grace-ms $grace"
}

launch_all() {
    local n

    for ((n = 0; n < jobs; n++)); do
        job=b$batch-$n launch=$1
        read -ra options <<<"${options_of[$job]}"
        ranks_start 2
        keep
    done
}

# tell_all - one rank of each, one job after the other; then what is on record of so many planned rounds.
tell_all() {
    local n

    for ((n = 0; n < jobs; n++)); do
        recall b$batch-$n
        await "a step of $job" rank_said 0 'at step'
        kill -TERM "${pids[RANDOM % 2]}"
    done
    for ((n = 0; n < jobs; n++)); do
        recall b$batch-$n
        all_preempted
        committed_whole "$saved"
        planned_well "$1"
    done
}

broker_start
for ((batch = 0; batch < batches; batch++)); do
    for ((n = 0; n < jobs; n++)); do what_for b$batch-$n; done
    launch_all 0
    for ((n = 0; n < jobs; n++)); do
        recall b$batch-$n
        await "measured steps of $job" steps_measured
        "$muster" save --wait --broker "$broker" --job "$job" >>"$dir/answers.log"
    done
    tell_all 1
    launch_all 1
    tell_all 2 # the first notice of a launch, planned with what the one before has measured
done
finish "$((batches * jobs * 2)) planned terminations: each saved before its deadline, each trained at least 80 % of what its reserve left"
