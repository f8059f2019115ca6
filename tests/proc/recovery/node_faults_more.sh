#!/bin/bash
# A rank is killed or stopped until it is lost while ranks join, and in saves that are no termination: one of each kind.
# slow_node_faults_more.sh has all phases, faults and layouts.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_node_faults_more.sh"

needs_fail_points
lane_start "$dir/joining" start_fault joining kill sharded
lane_start "$dir/behind" save_fault in_save kill sharded behind
lane_start "$dir/policy" save_fault decided long replicated policy
lanes_end
finish "a rank killed while the others join, and in a save that is written while training goes on; one lost in a save by policy:" \
    "everybody ended or went on, resumed bit for bit, invariants hold"
