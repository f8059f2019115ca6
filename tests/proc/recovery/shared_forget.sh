#!/bin/bash
# A broker died while it forgot a job, and its record fills a shared database. A job of that name comes again: the next
# broker, and who reads, find the rows of that one alone.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_shared.sh"

job=again saved=0 options=(--barrier 1)
mkdir "$dir/a"
db=$dir/a/muster.db listen=$ipc
broker_start
ranks_start 2 --steps 30 --step-ms 1 --save-every 1
all_finished 30
broker_stop
rm -r "$dir/checkpoints-$job"
python3 -c 'import sqlite3, sys
with sqlite3.connect(sys.argv[1]) as db: db.execute("INSERT INTO job_garbage VALUES (?)", sys.argv[2:])' "$db" "$job"

postgres_start
listen_of=([b]="ipc://$dir/b.sock")
sharer_start a
sharer_is_active a
saved=0
ranks_start 2 --steps 3 --step-ms 1 --save-every 1
all_finished 3
kill -KILL "${broker_pids[a]}"
sharer_start b
sharer_is_active b
holds "checkpoints of it" "$(query "SELECT count(*) FROM checkpoint WHERE job = '$job' AND state = 'committed'")" -ge 1
same "those of the forgotten one" "$(query "SELECT count(*) FROM checkpoint WHERE job = '$job' AND step > 3")" 0
says "$("$muster" status "$job" --db "$shared")" "job $job: finished"
sharer_stop b
finish "what is half forgotten when a record becomes a shared one is gone, and nothing of it comes back"
