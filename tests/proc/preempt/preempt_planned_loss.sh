#!/bin/bash
# A notice stands, and its freeze is planned for later: the writer dies in the middle of another save. The others save at
# the step that all of them have done, and leave with the restart code.
. "$(dirname "$0")/../lib.sh"

measured() { [ "$(query "SELECT MIN(step_p95_ms) > 0 FROM progress WHERE job = '$job'")" = 1 ]; }
plan_waits() { [ "$(query "SELECT freeze_unix_ms > 0 FROM job WHERE job = '$job'")" = 1 ]; }
has_saved() { [ -n "$(committed)" ]; }
# the step that rank 0 saves
saved_now() {
    query "SELECT r.step FROM round r JOIN participant p ON p.job = r.job AND p.round = r.round
        WHERE r.job = '$job' AND r.state = 'decided' AND p.rank = 0 AND p.at_step_ms >= 0"
}
saves() { [ -n "$(saved_now)" ]; }

broker_start
for job in operator policy; do
    gate=$dir/gate-$job # no save ends while it is there
    options=(--steps 1000000 --step-ms 5 --barrier 1 --say-every 50 --save-fn 1 --save-gate "$gate")
    [ "$job" = operator ] || options+=(--save-every 100)
    ranks_start 3
    await "step 50" rank_said 1 'at step 50$'
    [ "$job" = policy ] || "$muster" save --wait --broker "$broker" --job "$job" >>"$dir/answers.log"
    await "a checkpoint" has_saved
    await "measured steps" measured
    "$muster" notify 1 --grace 60 --broker "$broker" --job "$job" >>"$dir/answers.log"
    await "the plan" plan_waits
    await "the end of all saves" not saves
    touch "$gate"
    [ "$job" = policy ] || "$muster" save --broker "$broker" --job "$job" >>"$dir/answers.log"
    await "a save" saves
    step=$(saved_now)
    kill_child "${pids[0]}" "rank 0"
    rm "$gate"
    ranks_end 42 1 2
    each_has status MUSTER_PREEMPTED 1 2
    each_has done "$step" 1 2
    committed_whole "$step"
    same_why
    says "$story" 'rank 0' lost "step $step" committed
done
finish "a planned notice, and the writer of another save dies: the others save at its step, and leave with the restart code"
