#!/bin/bash
# Two hosts with a relay each and four ranks behind it: a notice at one rank, all save at one step and resume there.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_relay.sh"

broker_start
relays=(one two)
relay_start one "$broker"
relay_start two "$broker"
for job in replicated sharded; do
    options=(--steps 120 --step-ms 5 --barrier 1 --signal-rank 5 --signal-step 40)
    [ "$job" = replicated ] || options+=(--sharded 1)
    relayed_start 8
    all_preempted
    committed_whole "$saved"
    relayed_start 8
    all_finished 120
    same_why
    says "$story" "step $saved" committed SIGTERM
done
nobody_lost
connections=$("$muster" broker --broker "$(relay_at one)" --json)
says "$connections" '"events_endpoint": *"tcp://127'
for name in one two; do
    relay_stop "$name"
    says "$(cat "$dir/$name.log")" 'the relay has ended: [1-9][0-9]* messages up in [1-9][0-9]* bundles, .* [1-9][0-9]* events, 0 too late'
done
jobs_resumed 2
finish "8 ranks behind 2 relays, both layouts: SIGTERM at one rank, all save at one step, leave with the restart code, resume"
