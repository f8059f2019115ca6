#!/bin/bash
# The broker's database is lost under a manager's job that runs: its launch ends, the next one asks for an import, and with that
# the new database hears of the job's policies. They go on counting, those by time and those of what is kept.
# Rules: R10.2 R12.1.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_put_back.sh"
. "$(dirname "$0")/../lib_manager.sh"

listen=$ipc
options=(--period-ms 300 --keep-latest 2 --step-ms 20)
saves() { query "SELECT count(*) FROM checkpoint WHERE cause = 'period'"; }
has_saves() { [ "$(saves)" -ge "$1" ]; }
two_are_kept() { [ "$(query "SELECT count(*) FROM checkpoint WHERE state = 'committed'")" = 2 ]; }

broker_start
ranks_start 2 --steps 100000
await "a save by time to be on disk" compgen -G "$dir/checkpoints-$job/*/manifest.json"
broker_kill
rm -f "$db"*
broker_start
ranks_end 42
says "$(error_of 0)" MUSTER_PREEMPTED "does not know how this launch went on"
ranks_start 2 --steps 100000
ranks_end 1
known=$("$muster" import "$dir/checkpoints-$job" --broker "$broker") || fail "no import: $known"
before=$(saves)
ranks_start 2 --steps 100000
await "saves by time, by the new database" has_saves $((before + 2))
await "all but two to be given up" two_are_kept
kill -TERM "${pids[0]}"
ranks_end 42
finish "a database that is lost under a job that runs ends its launch, and hears of the job's policies again: saves by time go on, and two are kept"
