#!/bin/bash
# Ten thousand ranks, and ten thousand jobs: pages say how many they leave out, and stay small.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/lib_web.sh"

export MUSTER_TEST_NOW=1767614463000
"$rows" ranks "$dir/ranks.db"
web_start --db "$dir/ranks.db"
gets 200 /jobs/words 'step 40' 'data-part="/jobs/words/story"' 'data-part="/jobs/words/worst"'
holds "bytes of the page" "${#body}" -lt 60000
gets 200 /jobs/words/worst '8 of 10,000 shown' '6 lost'
gets 200 /jobs/words/story 'saved at step 40'
gets 200 '/jobs/words/ranks?page=100' '9,901 to 10,000 of 10,000' '<td>node-1249</td>'
same "rows of a page" "$(grep -c '<tr><th scope="row"' <<<"$body")" 100
gets 200 '/jobs/words/ranks?page=101' 'of 10,000'
gets 200 /jobs/words/rounds/3 '1 to 100 of 10,000' 'rank 2,999 last'
get /api/v1/jobs/words/heat
printf '%s' "$body" >"$dir/heat.json"
python3 - "$dir/heat.json" <<'CHECK' || fail "the grid of ranks"
import json, sys

heat = json.load(open(sys.argv[1]))
assert len(heat["states"]) == len(heat["lags"]) == 10000
assert sorted(heat["order"]) == list(range(10000))
assert len(heat["hosts"]) == 1250 and all(count == 8 for _, count in heat["hosts"])
assert heat["hosts"][2] == ["node-2", 8] and heat["hosts"][10][0] == "node-10", "hosts are in the order of people"
assert heat["states"].count("x") == 6 and "q" in heat["states"] and "s" in heat["states"]
CHECK
web_stop

"$rows" jobs "$dir/jobs.db"
web_start --db "$dir/jobs.db"
gets 200 / '1 to 100 of 10,000' '3,334 running' '?page=2'
gets 200 '/?page=100' '9,901 to 10,000 of 10,000'
web_stop
