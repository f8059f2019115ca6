#!/bin/bash
# A relay dies by SIGKILL while a round is open: the freeze is on record, and its ranks have not heard of it. They come
# back through the relay that is started again, or go past it to the broker; the round is decided with all of them.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_relay.sh"

needs_fail_points
broker_is_stopped() { grep -q '^State:.T' "/proc/$broker_pid/status"; }

broker_start MUSTER_FAIL_POINT_FILE="$dir/order"
relays=(one two)
relay_start one "$broker"
relay_start two "$broker"
for job in again past again-sharded past-sharded; do
    options=(--steps 400 --step-ms 5 --barrier 1)
    case $job in *sharded) options+=(--sharded 1) ;; esac
    case $job in past*) past=1 ;; *) past=0 ;; esac
    relayed_start 8 --signal-rank 5 --signal-step 40
    printf 'stop commit_after:event-freeze\n' >"$dir/order"
    await "the freeze to be on record" broker_is_stopped
    rm "$dir/order"
    relay_kill one
    kill -CONT "$broker_pid"
    [ "$past" = 1 ] || relay_start one "$broker"
    all_preempted
    committed_whole "$saved"
    same "rounds of job $job" "$(query "SELECT count(*) FROM round WHERE job = '$job'")" 1
    same "ranks in its round" "$(query "SELECT count(*) FROM participant WHERE job = '$job'")" 8
    [ "$past" = 0 ] || relay_start one "$broker"
    relayed_start 8
    all_finished 400
done
nobody_lost
relay_stop one
relay_stop two
jobs_resumed 4
finish "a relay killed in an open round, both layouts: its ranks return through it or past it, and the round has all 8"
