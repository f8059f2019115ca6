#!/bin/bash
# musterd --metrics: a broker alone is scraped. Scrapes cost it at most a text a second, a scraper that does not read or
# asks for nonsense is bounded and told, and a port in use is said.
. "$(dirname "$0")/../lib.sh"

trap '' PIPE # a connection too many is closed at once
broker_options=(--metrics 127.0.0.1:0)
broker_start
url_said() { grep -q 'metrics at http://' "$dir/musterd.log"; }
await "the metrics' address" url_said
port=$(sed -n 's|.*metrics at http://127.0.0.1:\([0-9]*\)/metrics.*|\1|p' "$dir/musterd.log")

ask_metrics() { # METHOD PATH [HEADER] - $status and $body
    local fd text crlf=$'\r\n'
    exec {fd}<>"/dev/tcp/127.0.0.1/$port"
    printf '%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s\r\n\r\n' "$1" "$2" "${3:-Accept: */*}" >&"$fd"
    text=$(cat <&"$fd")
    exec {fd}>&-
    status=${text#* } status=${status%% *}
    head=${text%%"$crlf$crlf"*} body=${text#*"$crlf$crlf"}
}
gets() { # PATTERN... - a scrape has a line of each
    local pattern
    ask_metrics GET /metrics
    same "status of a scrape" "$status" 200
    for pattern; do
        grep -qE -- "^$pattern\$" <<<"$body" || fail "no line \"$pattern\" in: $body"
    done
}
says "$("$muster" broker --broker "$broker")" "It listens on $broker, with events on"
gets 'muster_up 1' 'muster_broker_running_jobs 0' 'muster_broker_refused_messages_total\{reason="key"\} 0'

ranks_start 2 --steps 100000 --step-ms 10 --save-every 20 --until-file "$dir/end"
trains() { ask_metrics GET /metrics && grep -q 'muster_job_running{muster_job="job"} 1' <<<"$body"; }
await "the job to train" trains
saved() { ask_metrics GET /metrics && grep -qE 'muster_job_checkpoint_step\{muster_job="job"\} [1-9]' <<<"$body"; }
await "a checkpoint in the metrics" saved
gets 'muster_job_live_ranks\{muster_job="job"\} 2' 'muster_job_world_ranks\{muster_job="job"\} 2' \
    'muster_job_step\{muster_job="job"\} [1-9][0-9]*' 'muster_job_launches_total\{muster_job="job"\} 1' \
    'muster_broker_commits_total [1-9][0-9]*' \
    'muster_job_checkpoint_timestamp_seconds\{muster_job="job"\} [0-9.e+]+' 'muster_job_active_notices\{muster_job="job"\} 0'
if command -v promtool >/dev/null; then
    promtool check metrics <<<"$body" >"$dir/promtool.log" 2>&1 || fail "promtool: $(cat "$dir/promtool.log")"
fi
ask_metrics GET /metrics 'Accept: application/openmetrics-text; version=1.0.0'
says "$head" 'openmetrics-text; version=1.0.0'
same "the end of OpenMetrics" "$(tail -n 1 <<<"$body")" '# EOF'

# the same names and types as `muster web` has
"$muster" web --listen 127.0.0.1:0 --broker "$broker" >"$dir/web.out" 2>"$dir/web.log" </dev/null &
started+=($!)
await "the page's address" grep -q ' shows ' "$dir/web.out"
types() { grep '^# TYPE' <<<"$1" | sort; }
own=$(types "$body") own_port=$port
port=$(sed -n 's|.*http://127.0.0.1:\([0-9]*\)/ shows.*|\1|p' "$dir/web.out")
ask_metrics GET /metrics 'Accept: application/openmetrics-text; version=1.0.0'
same "families that muster web does not have" "$(comm -23 <(echo "$own") <(types "$body"))" ''
port=$own_port

# what is no scrape
ask_metrics GET / && same "status of another path" "$status" 404
ask_metrics POST /metrics && same "status of a POST" "$status" 405
ask_metrics GET /metrics "X: $(printf 'x%.0s' {1..2000})" && same "status of a long request" "$status" 431

# 60 scrapes in a row cost a text a second, and sixteen that do not read are closed
begun=$(now_ms)
for ((i = 0; i < 60; i++)); do ask_metrics GET /metrics && md5sum <<<"$body"; done >"$dir/texts"
took_ms=$(($(now_ms) - begun))
holds "milliseconds of 60 scrapes" "$took_ms" -lt 20000
holds "texts made in $took_ms ms, each of which counts the broker's messages" "$(sort -u "$dir/texts" | wc -l)" -le $((took_ms / 1000 + 2))
deaf=()
for ((i = 0; i < 16; i++)); do
    exec {fd}<>"/dev/tcp/127.0.0.1/$port"
    deaf+=("$fd")
done
scraped() { ask_metrics GET /metrics && [ "$status" = 200 ]; }
await "a scrape after deaf connections were closed" scraped
for fd in "${deaf[@]}"; do exec {fd}>&-; done

# a port in use, and an address that is none
for words in "127.0.0.1:$port" localhost 127.0.0.1:http; do
    code=0
    "$musterd" --db "$dir/other/muster.db" --listen 'tcp://127.0.0.1:*' --metrics "$words" >"$dir/refused.log" 2>&1 || code=$?
    [ "$code" != 0 ] || fail "musterd took --metrics $words"
    says "$(cat "$dir/refused.log")" 'metrics' 'choose another|give HOST:PORT'
done
[ ! -e "$dir/other/muster.db" ] || fail "a start that was refused left a database"

touch "$dir/end"
ranks_end 0
finish "a broker alone can be scraped, by hasty, deaf and wrong scrapers, too"
