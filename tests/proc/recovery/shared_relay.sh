#!/bin/bash
# Relays are given two brokers of one database. The active one is killed when a decision is written and nobody heard of it:
# the relays go on to the other one, and all of their ranks save at one step.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_shared.sh"
. "$(dirname "$0")/../lib_relay.sh"

needs_fail_points
postgres_start
listen_of=([a]="ipc://$dir/a.sock" [b]="ipc://$dir/b.sock")
both=${listen_of[a]},${listen_of[b]}
options=(--steps 400 --step-ms 5 --barrier 1)
job=relayed
sharer_start a MUSTER_FAIL_POINT=commit_after:event-decision
sharer_is_active a
sharer_start b
sharer_says b "standby: musterd at .* is the active broker"
relays=(one two)
relay_start one "$both"
relay_start two "$both"
relayed_start 8 --signal-rank 5 --signal-step 40
sharer_ends a 137
sharer_is_active b
all_preempted
committed_whole "$saved"
same "ranks of the save" "$(query "SELECT count(*) FROM participant p JOIN checkpoint USING (job, round)
    WHERE job = '$job' AND checkpoint.state = 'committed'")" 8
same "rounds that were decided twice" "$(query "SELECT count(*) FROM (SELECT round FROM event WHERE job = '$job' AND
    kind = 'decision' GROUP BY round HAVING count(*) > 1)")" 0
relayed_start 8
all_finished 400
nobody_lost
relay_stop one
relay_stop two
sharer_stop b
finish "relays of two brokers: the active one dies behind a decision, and 8 ranks save at one step by the other one"
