#!/bin/bash
# A lost database is rebuilt from manifests with what later launches gave up still given up: the job resumes from where
# it was, not from a step that it had left; importing again changes nothing.
# Rules: R11.3.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_manager.sh"
not_checked=1 # the processes that wrote what was found on disk are in no row
root=$dir/checkpoints-$job
options=(--every 1)
rows="SELECT round, generation, step, iif($gone_back, 'superseded', state) FROM checkpoint ORDER BY round"

broker_start
ranks_start 2 --steps 5
ranks_end 0
ranks_start 2 --steps 4 --restore 2 # gives up steps 3 and 4, and saves another 3
ranks_end 0
before=$(query "$rows")
says "$before" '^4\|1\|4\|superseded$' '^5\|1\|5\|superseded$' '^6\|2\|4\|committed$'
broker_stop
rm -rf "${db%/*}"
broker_start
"$muster" import "$root" --broker "$broker" >"$dir/import.txt" || fail "$(cat "$dir/import.txt")"
same "rows" "$(query "$rows")" "$before"
"$muster" import "$root" --broker "$broker" >"$dir/import.txt" || fail "$(cat "$dir/import.txt")"
says "$(cat "$dir/import.txt")" '^0 checkpoints .*, 6 were there already'
same "rows after another import" "$(query "$rows")" "$before"
ranks_start 2 --steps 5
ranks_end 0
each_has resumed 3

# A database that is not lost keeps what it knows of its launches, and one number that is another's keeps nothing out.
opened=$(query "SELECT generation, opened_unix_ms, started_unix_ms, end_text FROM generation ORDER BY generation")
without_checksum "$root/0/manifest.json"
sed -i 's/"round": *[0-9]*/"round":1/; s/"step": *[0-9]*/"step":99/; s/"total_run_calls": *[0-9]*/"total_run_calls":99/' "$root/0/manifest.json"
code=0
"$muster" import "$root" --broker "$broker" >"$dir/import.txt" 2>"$dir/refused.txt" || code=$?
same "exit code with one refused" "$code" 4
says "$(cat "$dir/refused.txt")" "$root/0 is left out: .*round 1 of its own"
same "launches" "$(query "SELECT generation, opened_unix_ms, started_unix_ms, end_text FROM generation ORDER BY generation")" "$opened"
finish "what a later launch gave up stays given up when the database is rebuilt; launches that are on record stay as they are"
