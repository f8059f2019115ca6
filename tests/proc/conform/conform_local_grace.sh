#!/bin/bash
# Local mode with grace: the first notice finds no save to plan with, the second is planned with what the life before
# measured; in the two-save mode one more checkpoint. A notice that is withdrawn in time ends nothing.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_conform.sh"

grace_ms=6000
# The log of a planned life: what the plan was, and how it went.
local_plan() { grep -E "$1" "$dir/$job.log" || fail "$job's log does not say \"$1\""; }

# A withdrawal: prog_trainer hears of its end by a file.
withdrawn() {
    local notice=$dir/notice

    job=withdrawn broker=ipc://$dir/nobody
    options=(--offline 1 --connect-ms 50 --steps 1000000 --step-ms 5 --save-every 100 --say-every 50)
    MUSTER_NOTICE_SOURCES=file:$notice ranks_start 1
    await "measured steps" grep -q 'step_p95_ms [1-9]' "$dir/checkpoints-withdrawn/.muster/LOCAL"
    printf 'preempt +60\n' >"$notice"
    await "the plan" rank_said 0 'trains on until .* before its deadline'
    rm "$notice"
    await "the withdrawal" rank_said 0 'the notice is withdrawn; training goes on'
    printf 'preempt +4\n' >"$notice"
    ranks_end 42
    sums_right
    each_has status MUSTER_PREEMPTED
    says "$(error_of 0)" 'saved step [0-9]+ in .*, [0-9]+ ms before its deadline|leaving at step [0-9]+00, which needs no save'
}

all() { # at once: most of it is waiting
    local jobs=() pid

    (conform local-grace 1 0 --offline --notices 2 --grace-ms $grace_ms --step-ms 60) &
    jobs+=($!)
    (conform local-two-saves 1 0 --offline --notices 2 --grace-ms $grace_ms --step-ms 60 --two-saves) &
    jobs+=($!)
    withdrawn
    for pid in "${jobs[@]}"; do
        wait "$pid" || fail "a job failed"
    done
}
all
for job in local-grace local-two-saves; do
    same "plans of $job" "$(local_plan 'saves at once: .*no save was measured yet' | wc -l)" 1
    plan=$(local_plan 'trains on until [0-9.]+ s before its deadline')
    same "plans of $job that were waited for" "$(wc -l <<<"$plan")" 1
    went=$(local_plan 'saved step [0-9]+ in .*, [0-9]+ ms before its deadline' | tail -n 1)
    margin=$(sed -n 's/.*, \([0-9]*\) ms before its deadline.*/\1/p' <<<"$went")
    reserve=$(sed -n 's/.*trains on until \([0-9]*\)\.\([0-9]\) s before.*/\1\200/p' <<<"$plan")
    say "$job: reserve $reserve ms, $margin ms left"
    holds "margin of $job" "$margin" -gt 0
    # what was left at the save is within the reserve, so all before it was trained
    holds "margin of $job, of the grace" "$margin" -le $((grace_ms - (grace_ms - reserve - 100) * 8 / 10))
done
job=local-grace
ends_whole 1 3 2
job=local-two-saves
ends_whole 1 3 3

finish "local mode: a planned notice is trained through and saved before its deadline, also in the two-save mode" \
    "a notice that is withdrawn in time ends nothing, the next one does"
