#!/bin/bash
# A relay that does nothing for 3 s delays its ranks and loses none. A sharded round that was asked for meanwhile is tried
# again until they answer. A broker that does nothing for as long is no reason for a relay to let anybody go.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_relay.sh"

stopped_for() { # MS PID
    local since

    kill -STOP "$2"
    since=$(now_ms)
    await "$1 ms" passed_ms "$since" "$1"
    kill -CONT "$2"
}
rank_trains() { [ "$(query "SELECT count(*) FROM progress WHERE job = '$job' AND done >= 20")" -gt 0 ]; }

broker_start
relays=(one two)
relay_start one "$broker"
relay_start two "$broker"
for job in replicated sharded broker; do
    options=(--steps 100000 --step-ms 5 --barrier 1)
    [ "$job" != sharded ] || options+=(--sharded 1)
    relayed_start 8
    await "steps" rank_trains
    case $job in
    replicated)
        stopped_for 3000 "${relay_pid[one]}"
        kill -TERM "${pids[5]}"
        ;;
    sharded)
        kill -STOP "${relay_pid[one]}"
        kill -TERM "${pids[5]}"
        stopped_for 3000 "${relay_pid[one]}"
        ;;
    broker)
        stopped_for 3000 "$broker_pid"
        kill -TERM "${pids[5]}"
        ;;
    esac
    all_preempted
    committed_whole "$saved"
done
nobody_lost
relay_stop one
relay_stop two
finish "a relay, or the broker, that stands still for 3 s: nobody is lost, and all save at one step"
