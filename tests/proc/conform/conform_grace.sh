#!/bin/bash
# With grace, as TerminationConfig.grace_period: the first notice of all finds no save to plan with; the second, first of its
# launch, is planned with what the launch before measured. One checkpoint a preemption; in their two-save mode (one at
# once, one near the end) two for the planned one.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_conform.sh"
. "$(dirname "$0")/../lib_grace.sh"

broker_start
both() { # two jobs at once: most of it is waiting
    local jobs=() pid

    (conform grace 4 0 --notices 2 --grace-ms 8000 --step-ms 60) &
    jobs+=($!)
    (conform two-saves 4 0 --notices 2 --grace-ms 8000 --step-ms 60 --two-saves --form check) &
    jobs+=($!)
    for pid in "${jobs[@]}"; do
        wait "$pid" || fail "a job failed"
    done
}
both
job=grace
ends_whole 4 3 2
planned_well 1
same "causes of the rounds" "$(query "SELECT cause FROM round WHERE job = 'grace' ORDER BY round" | xargs)" 'termination termination'
job=two-saves
ends_whole 4 3 3
planned_well 1
same "causes of the rounds" "$(query "SELECT cause FROM round WHERE job = 'two-saves' ORDER BY round" | xargs)" \
    'termination notice termination'
same_why
says "$story" 'The freeze was to come .* before the deadline'
finish "with grace: trained on, saved before the deadline, one checkpoint a preemption, the whole sum" \
    "save_on_notice: one checkpoint at once and one near the end, and who left at the first of them: nobody"
