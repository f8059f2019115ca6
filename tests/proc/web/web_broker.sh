#!/bin/bash
# `muster web` of a broker: streams tell what is new, a hasty scraper and pages that do not read cost the broker nothing
# more, and while the broker is away that is said, at once, until it is back.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/lib_web.sh"

listen=$ipc
broker_start
world=2
ranks_start 2 --steps 4000 --step-ms 20 --save-every 50 --until-file "$dir/end"
web_start --broker "$broker" --timeout 1
gets 200 /readyz ok
trains() { get /api/v1/jobs/job && grep -q '"state": "running"' <<<"$body"; }
await "the job to train" trains

# --- metrics: well-formed, and counted once
get /metrics "Host: localhost"$'\r\n'"Accept: application/openmetrics-text"
python3 "$client" metrics <<<"$body" || fail "the metrics"
says "$body" '^muster_up 1$' '^muster_job_live_ranks\{muster_job="job"\} 2$' '^muster_broker_received_messages_total [0-9]+$'
all_train() { get /metrics && grep -q '^muster_job_ranks{muster_job="job",state="training"} 2$' <<<"$body"; }
await "both ranks to train" all_train
counted() { # MIN
    get /metrics
    [ "$(sed -n 's/^muster_rounds_total{muster_job="job",cause="policy",outcome="committed"} //p' <<<"$body")" -ge "$1" ]
}
saves() { query "SELECT count(*) FROM round WHERE job = 'job' AND state = 'committed'"; }
two_saved() { [ "$(saves)" -ge 2 ]; }
await "two saves" two_saved
all_counted() { counted "$(saves)"; }
await "the rounds to be counted" all_counted

# --- a stream: facts, the grid, and news
python3 "$client" stream "$url/api/v1/jobs/job/stream" 600 >"$dir/stream" &
started+=($!)
told() { grep -q "$1" "$dir/stream"; }
await "a tick" told '^data: {"version":"[0-9a-f]*","steps":[0-9]*,"facts":{"step":"'
await "the grid" told '"states":"[a-z][a-z]","lags":\['
"$muster" notify 1 --job job --broker "$broker" --grace 600 >/dev/null
noticed() { get /jobs/job && grep -q 'Rank 1 (.*) will be ended' <<<"$body" && grep -q 'Next planned freeze' <<<"$body"; }
await "the page to show the notice and the planned freeze" noticed

# --- a scrape each 100 ms asks the broker no more often than answers grow old; pages that never read keep nobody away
python3 "$client" deaf "$url/api/v1/jobs/job/stream" 40 < <(exec tail --pid=$$ -f /dev/null 2>/dev/null) >"$dir/deaf" & # its input ends with this script
deaf_pid=$!
started+=("$deaf_pid")
await "40 pages that do not read" grep -q deaf "$dir/deaf"
stream_is() { # STATUS - of one stream more; what it tells goes on for ever, so only its first line is read
    local fd line=''
    exec {fd}<>"/dev/tcp/127.0.0.1/${url##*:}"
    printf 'GET /api/v1/stream HTTP/1.1\r\nHost: localhost\r\n\r\n' >&"$fd"
    read -r -t 20 line <&"$fd" || true
    exec {fd}>&-
    [[ $line = *" $1 "* ]]
}
is_full() { stream_is 503; }
await "the streams to be taken" is_full
gets 200 /jobs/job 'What happened'
read -r answered made took_ms < <(python3 "$client" often "$url/metrics" 100 20)
same "scrapes that were answered" "$answered" 20
holds "answers made in $took_ms ms, each of which counts the broker's messages" "$made" -le $((took_ms / 400 + 2))
holds "resident kB of muster web" "$(sed -n 's/^VmRSS:[[:space:]]*\([0-9]*\).*/\1/p' "/proc/$web_pid/status")" -lt 400000
kill "$deaf_pid"
has_room() { stream_is 200; }
await "room for streams again" has_room

# --- the broker dies and comes back
broker_kill
is_away() { is_ready /readyz 503; }
await "the page to say that nobody answers" is_away
says "$body" 'broker'
gets 200 /healthz ok
gets 200 /metrics 'muster_up 0'
gets 503 /jobs/job 'broker'
await "the stream to tell" told '^event: trouble'

# --- another broker takes its place, which speaks another version
"$TESTS_DIR/proc/prog_other_version" "$ipc" >"$dir/other.log" 2>&1 &
other_pid=$!
started+=("$other_pid")
await "the other broker" grep -q ready "$dir/other.log"
is_other() { get /readyz && grep -q 'version' <<<"$body"; }
await "the page to name the other version" is_other
says "$body" 'protocol version' 'install the same muster'
gets 200 /metrics 'muster_up 0'
kill_child "$other_pid" "the other broker"
lines=$(wc -l <"$dir/stream")
broker_start
is_back() { is_ready /readyz 200; }
await "the page to be back" is_back
told_later() { tail -n +"$((lines + 1))" "$dir/stream" | grep -q '^event: tick'; }
await "the stream to go on" told_later
gets 200 /jobs/job 'What happened'
touch "$dir/end"

# --- it ends in order also while a page is open
web_stop
