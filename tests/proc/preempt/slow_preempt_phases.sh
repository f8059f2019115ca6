#!/bin/bash
# preempt_phases for each form of a loop alone, in both layouts, with both exit policies.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_phases.sh"

broker_start
names=(mixed run check scope explicit)
for mode in -1 0 1 2 3; do
    for layout in 0 1; do
        for policy in 0 1; do
            job=${names[mode + 1]}-layout$layout-policy$policy
            all_phases $((mode < 0 ? 4 : 2)) $mode $layout --exit-policy $policy
        done
    done
done
finish "run, check, scope and explicit: a notice in every phase, both layouts, both exit policies"
