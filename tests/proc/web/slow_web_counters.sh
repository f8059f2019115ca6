#!/bin/bash
# Metrics of 1,000 jobs that are others than at first: they have counters, too, also behind a question that failed.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/lib_web.sh"

export MUSTER_TEST_NOW=1767614463000
"$rows" jobs "$dir/jobs.db"
web_start --db "$dir/jobs.db"
scrape() { request GET /metrics "Host: ${url#http://}"$'\r\n'"Accept: ${1:-text/plain}"; }
up() { scrape application/openmetrics-text && grep -qx "muster_up $1" <<<"$body"; }
scrape
says "$body" '^muster_left_out_jobs 9000$'
"$sql" --write "$dir/jobs.db" "INSERT INTO job (job, state, state_unix_ms, generation, seq, round, save_now_id,
    created_unix_ms) SELECT 'a-new', 'running', state_unix_ms, 0, 0, 0, '', created_unix_ms FROM job LIMIT 1"
"$sql" --write "$dir/jobs.db" 'ALTER TABLE shard RENAME TO hidden'
await "an answer that fails" up 0
"$sql" --write "$dir/jobs.db" 'ALTER TABLE hidden RENAME TO shard'
await "metrics again" up 1
says "$body" '^muster_job_checkpoint_bytes_total\{muster_job="a-new"\} 0$'
web_stop
