#!/bin/bash
# Nobody answers at the broker's address; and what offline_ok makes of it.
. "$(dirname "$0")/../lib.sh"

world=3
for broker in "ipc://$dir/nobody.sock" tcp://127.0.0.1:9; do
    began_ms=$(now_ms) launch=$((launch + 1)) pids=()
    rank_start 1 --connect-ms 700
    ranks_end 1
    took_ms=$(($(now_ms) - began_ms))
    holds "ms to give up" "$took_ms" -ge 700 -a "$took_ms" -lt 6000
    says "$(error_of 1)" 'status=MUSTER_E_BROKER' "$broker" 'start one with .musterd.' MUSTER_BROKER
done

job=alone options=(--connect-ms 200 --offline 1)
ranks_start 1 --steps 100 --signal-rank 0 --signal-step 40
all_preempted
rank_said 0 'log 1: .*goes on alone' || fail "the log does not say that the rank is alone"
ranks_start 1 --steps 100 --save-every 30
all_finished 100
ranks_start 1 --steps 110
saved=90
all_finished 110

job=two
ranks_start 2 --steps 100
ranks_end 1
says "$(error_of 0)" 'status=MUSTER_E_BROKER' 'offline_ok is for a world of 1'

finish "no broker: MUSTER_E_BROKER after the connect timeout, naming the address and what to start" \
    "offline_ok: saves, exits with the restart code and resumes by itself, policy saves too; only for a world of 1"
