#!/bin/bash
# A relay below a relay, and both die one after the other while the job trains: its ranks return, and save on notice.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_relay.sh"

progress() { query "SELECT COALESCE(MAX(done), 0) FROM progress WHERE job = '$job'"; }
progress_beyond() { [ "$(progress)" -gt "$1" ]; }

broker_start
relays=(below)
relay_start above "$broker"
relay_start below "$(relay_at above)"
options=(--steps 100000 --step-ms 5 --barrier 1)
relayed_start 4
for name in above below; do
    await "steps" progress_beyond "$(progress)"
    relay_kill "$name"
    case $name in
    above) relay_start above "$broker" ;;
    below) relay_start below "$(relay_at above)" ;;
    esac
    await "steps that the broker hears of" progress_beyond "$(progress)"
done
kill -TERM "${pids[2]}"
all_preempted
committed_whole "$saved"
nobody_lost
same "launches" "$(query "SELECT count(*) FROM generation WHERE job = '$job'")" 1
relay_stop below
relay_stop above
finish "two relays above each other, each killed and started again: nobody is lost, all save at one step"
