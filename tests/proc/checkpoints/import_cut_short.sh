#!/bin/bash
# An import of a large checkpoint that a broker's crash cut short: its rows say so, and are no decision about it. The next
# launch does not go on from an older one, and imports it again.
# Rules: R11.5.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_put_back.sh"

broker_start
ranks_start 1 --steps 50 --save-every 20
saved=0
all_finished 50
broker_stop
"$sql" --write "$db" "UPDATE round SET state = 'aborted', reason = 'found on disk, in part' WHERE round = 2"
"$sql" --write "$db" "UPDATE checkpoint SET state = 'failed' WHERE round = 2"
broker_start
ranks_start 1 --steps 60
imports 1 40
saved=40
ranks_start 1 --steps 60
all_finished 60
finish "an import that was cut short is done again before a launch goes on"
