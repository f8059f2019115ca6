#!/bin/bash
# A real Prometheus scrapes `muster web` and a broker alone (musterd --metrics): in OpenMetrics, as it asks for, and with the alert rules. promtool has no
# complaint about the metrics, the rules and the expressions of the board.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/lib_web.sh"
for need in prometheus promtool; do
    command -v $need >/dev/null || { say "skipped: no $need (Debian: prometheus)"; exit 77; }
done
monitoring=$SOURCE_DIR/tools/monitoring

promtool check rules "$monitoring/muster-alerts.yml" >"$dir/rules.log" || fail "promtool: $(cat "$dir/rules.log")"
listen=$ipc
broker_options=(--metrics 127.0.0.1:0)
broker_start
own_said() { grep -q 'metrics at http://' "$dir/musterd.log"; }
await "the broker's own metrics" own_said
own=$(sed -n 's|.*metrics at http://\([0-9.:]*\)/metrics.*|\1|p' "$dir/musterd.log")
ranks_start 2 --steps 100000 --step-ms 20 --save-every 50 --until-file "$dir/end"
web_start --broker "$broker"
trains() { get /api/v1/jobs/job && grep -q '"state": "running"' <<<"$body"; }
await "the job to train" trains
get /metrics
promtool check metrics <<<"$body" >"$dir/metrics.log" 2>&1 || fail "promtool: $(cat "$dir/metrics.log")"

cat >"$dir/prometheus.yml" <<CONFIG
global: { scrape_interval: 1s, evaluation_interval: 1s }
rule_files: ["$monitoring/muster-alerts.yml"]
scrape_configs:
  - job_name: muster
    static_configs: [{ targets: ["${url#http://}"] }]
  - job_name: broker
    static_configs: [{ targets: ["$own"] }]
CONFIG
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
prometheus --config.file="$dir/prometheus.yml" --storage.tsdb.path="$dir/tsdb" --web.listen-address="127.0.0.1:$port" \
    </dev/null >"$dir/prometheus.log" 2>&1 &
started+=($!)
value() { promtool query instant "http://127.0.0.1:$port" "$1" 2>>"$dir/promtool.log"; }
has() { value "$1" | grep -q ' => '; }
for from in muster broker; do
    await "the scrape of muster_up by $from" has "muster_up{job=\"$from\"} == 1"
    await "the scrape of the ranks by $from" has "muster_job_live_ranks{job=\"$from\",muster_job=\"job\"} == 2"
done
await "two scrapes, so that rates exist" has 'rate(muster_job_steps_computed_total[1m]) > 0'
await "counted rounds" has 'muster_rounds_total{outcome="committed"} > 0'
has 'scrape_samples_scraped{job="muster"} > 50' || fail "few samples"

# every expression of the board can be evaluated
python3 - "$monitoring/muster-board.json" >"$dir/expressions" <<'BOARD'
import json, sys

for panel in json.load(open(sys.argv[1]))["panels"]:
    for target in panel["targets"]:
        print(target["expr"].replace("$job", ".*"))
BOARD
while IFS= read -r expression; do
    value "$expression" >"$dir/value" || fail "the board's expression cannot be evaluated: $expression: $(tail -n 2 "$dir/promtool.log")"
done <"$dir/expressions"
holds "expressions of the board" "$(wc -l <"$dir/expressions")" -gt 15

# the broker goes: an alert
broker_kill
await "the alert MusterDown" has 'ALERTS{alertname="MusterDown"}'
touch "$dir/end"
web_stop
