#!/bin/bash
# A notice that tells its time: the ranks train on, save before the deadline, and the next launch plans its first
# notice too. One that is withdrawn in time ends nobody.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_grace.sh"

grace_ms=9000

# what `muster status` and the database say of the waiting plan
plan_waits() { [ "$(query "SELECT freeze_unix_ms > 0 FROM job WHERE job = '$job'")" = 1 ]; }

steps_measured() { [ "$(query "SELECT MIN(step_p95_ms) > 0 FROM progress WHERE job = '$job'")" = 1 ]; }

broker_start
options=(--steps 1000000 --step-ms 5 --barrier 1 --grace-ms $grace_ms --say-every 100)
ranks_start 2
await "step 200" rank_said 1 'at step [2-9]00$'
"$muster" save --wait --broker "$broker" --job "$job" >>"$dir/answers.log"
await "measured steps" steps_measured

answer=$("$muster" notify 1 --grace 60 --broker "$broker" --job "$job" --json)
id=$(grep -o 'operator-[0-9a-f]*' <<<"$answer" | head -1)
await "the plan" plan_waits
status=$("$muster" status "$job" --broker "$broker")
says "$status" 'trains on for' "before the deadline of notice $id"
story=$(ask why notice "$id" --broker "$broker")
says "$story" 'the job trains on: the freeze is planned for'
"$muster" notify --cancel "$id" --broker "$broker" --job "$job" >>"$dir/answers.log"
await "no plan" not plan_waits
await "a step after the withdrawal" rank_said 1 'at step [1-9][0-9]*00$'
for rank in 0 1; do not rank_is_gone "$rank" || fail "rank $rank left after a notice that was withdrawn"; done

lives=0
for life in first second; do
    if [ "$life" = second ]; then # a plan waits already: the earlier notice moves it forward
        "$muster" notify 0 --grace 60 --broker "$broker" --job "$job" >>"$dir/answers.log"
        await "the plan" plan_waits
    fi
    kill -TERM "${pids[1]}"
    all_preempted
    committed_whole "$saved"
    lives=$((lives + 1))
    planned_well $lives
    margin=$((($(plans | tail -n 1 | cut -d'|' -f5) + 50) / 100)) # as why rounds it
    same_why
    says "$story" 'The freeze was to come .* before the deadline of notice signal[^,]*, which gave 9\.0 s' \
        '\(step p95 [1-9][0-9]* ms, save p95 [1-9][0-9]* ms, ranks [0-9]+ steps? apart\)' \
        "was committed after [0-9.]+ m?s, $((margin / 10))\.$((margin % 10)) s before the deadline: "
    [ "$life" = second ] || { ranks_start 2 && await "some steps" rank_said 1 'at step'; }
done
finish "a notice of $grace_ms ms: trained on for at least 80 % of what the reserve leaves, saved before the deadline, told by why: notice, its time, step and save times, margin" \
    "an earlier notice moves a waiting plan forward" \
    "the first notice of the next launch is planned with the times of the one before" \
    "a notice that is withdrawn before its freeze ends nobody; status and why showed its plan"
