#!/bin/bash
# A rank is killed, stopped for a while, or stopped until it is lost: on its way to S and while the manifest is written, in
# both layouts; while ranks join and restore; in saves by operator and by policy, also written while training goes on.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_node_faults_more.sh"

faults_min=108 # may grow, never fall

needs_fail_points
ended=0
# some NAME COMMAND... - in a lane; six at once.
some() {
    lane_start "$@"
    [ $((${#lanes[@]} - ended)) -lt 6 ] || { wait -n || true; ended=$((ended + 1)); }
}
for layout in sharded replicated; do
    for fault in kill stop long; do
        for phase in $more_phases; do
            some "$dir/$phase-$fault-$layout" node_fault "$phase" "$fault" "$layout"
        done
        for phase in $start_phases; do
            some "$dir/$phase-$fault-$layout" start_fault "$phase" "$fault" "$layout"
        done
        for cause in $save_causes; do
            for phase in $save_phases; do
                [ "$cause:$phase" != policy:reported ] || continue # its round is decided when it is opened
                some "$dir/$phase-$fault-$layout-$cause" save_fault "$phase" "$fault" "$layout" "$cause"
            done
        done
    done
done
lanes_end
faults=$(lane_sum faults)
holds "faults" "$faults" -ge $faults_min
finish "a rank killed, stopped for 1 s and stopped until it was lost while ranks join, restore, are on their way and write the" \
    "manifest, and in saves by operator, by policy and behind the training: $faults faults, $(lane_sum owed) checkpoints, everybody" \
    "ended or went on, resumed bit for bit, invariants hold"
