#!/bin/bash
# Seven windows of one browser, which has six connections to one host, are open at once: each follows its job.
# They do so also with a job each, and a closed window holds no stream.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/lib_web.sh"
. "$(dirname "$0")/lib_browser.sh"

listen=$ipc
broker_start
jobs=(a b c d e f g)
for job in "${jobs[@]}"; do
    ranks_start 1 --steps 100000 --step-ms 50 --until-file "$dir/end"
done
web_start --broker "$broker"
trains() { get "/api/v1/jobs/$1" && grep -q '"state": "running"' <<<"$body"; }
for job in "${jobs[@]}"; do await "job $job" trains "$job"; done
browser_start
page windows "$url"/jobs/{a,a,a,a,a,a,a}
page close_windows
page windows "${jobs[@]/#/$url/jobs/}"
page close_windows
connections() { [ "$(ss -Htn state established "sport = :${url##*:}" | wc -l)" = 0 ]; }
page open about:blank
await "the last connection to end" connections
page end
touch "$dir/end"
web_stop
