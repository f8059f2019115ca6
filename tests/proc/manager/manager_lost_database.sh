#!/bin/bash
# The broker's database is lost under a manager's job that runs: the new one hears of the job's policies, and they go on
# counting, those by time and those of what is kept.
# Rules: R12.1.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_manager.sh"

listen=$ipc
not_checked=1 # what was before is in no row
options=(--period-ms 300 --keep-latest 2 --step-ms 20)
saves() { query "SELECT count(*) FROM checkpoint WHERE cause = 'period'"; }
has_saves() { [ "$(saves)" -ge "$1" ]; }
two_are_kept() { [ "$(query "SELECT count(*) FROM checkpoint WHERE state = 'committed'")" = 2 ]; }

broker_start
ranks_start 2 --steps 100000
await "a save by time" has_saves 1
broker_kill
rm -f "$db"*
broker_start
await "saves by time, by the new database" has_saves 3
await "all but two to be given up" two_are_kept
kill -TERM "${pids[0]}"
ranks_end 42
finish "a database that is lost under a job that runs hears of the job's policies again: saves by time go on, and two are kept"
